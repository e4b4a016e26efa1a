#include "lab/token_scores.h"

#include <algorithm>
#include <cmath>

namespace headlight {

TokenScores ScoreTokens(Session& session, std::span<const uint32_t> tokens) {
  const std::vector<float> logits = session.Logits(tokens, true);
  const size_t vocab_size = logits.size() / tokens.size();
  TokenScores scores;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const float* row = logits.data() + i * vocab_size;
    const float* best = std::max_element(row, row + vocab_size);
    double sum = 0.0;
    for (size_t id = 0; id < vocab_size; ++id) {
      sum += std::exp(static_cast<double>(row[id] - *best));
    }
    const double loss = std::log(sum) + static_cast<double>(*best - row[tokens[i + 1]]);
    scores.log_probabilities.push_back(static_cast<float>(-loss));
    scores.likeliest.push_back(static_cast<uint32_t>(best - row));
  }
  return scores;
}

}  // namespace headlight
