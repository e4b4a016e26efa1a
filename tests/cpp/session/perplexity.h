// Perplexity of the default model on conversations in its own manner; what the tests of rounded
// caches share.
#ifndef HEADLIGHT_TESTS_SESSION_PERPLEXITY_H_
#define HEADLIGHT_TESTS_SESSION_PERPLEXITY_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "model_loading.h"
#include "simd/probe.h"
#include "support.h"

namespace headlight {

inline std::shared_ptr<const Model> DefaultModelForText() {
  const auto path = testing::RepoPath("examples/models/default-q8_0.gguf");
  return testing::LoadModel(testing::ReadFile(path), 0, ProbeDot().form);
}

// Token ids of the conversations of tests/golden/default_model_text.json.
inline std::vector<std::vector<uint32_t>> DefaultModelTexts() {
  const auto file = testing::ReadFile(testing::RepoPath("tests/golden/default_model_text.json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::vector<std::vector<uint32_t>> texts;
  for (const auto& text : golden.at("texts")) texts.push_back(text.at("ids"));
  REQUIRE(texts.size() == 3);
  return texts;
}

// As the model's README says of its configuration.
inline constexpr uint32_t kStartOfTurn = 3;
inline constexpr uint32_t kEndOfTurnId = 4;
inline const std::vector<uint32_t> kAssistant = {559, 577, 480, 15};  // "assistant", end of line

// Whether each token is part of an answer, its end included: what the model was trained to say.
inline std::vector<bool> IsAnswer(const std::vector<uint32_t>& ids) {
  std::vector<bool> is_answer(ids.size());
  size_t answer = ids.size();  // where the current one begins
  for (size_t i = 0; i < ids.size(); ++i) {
    is_answer[i] = i >= answer;
    if (ids[i] == kEndOfTurnId) answer = ids.size();
    if (ids[i] != kStartOfTurn || ids.size() - i <= kAssistant.size()) continue;
    const auto role = ids.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::equal(kAssistant.begin(), kAssistant.end(), role)) answer = i + 1 + kAssistant.size();
  }
  return is_answer;
}

// -log p of the token `id` under a row of logits.
inline double SurpriseOf(std::span<const float> row, uint32_t id) {
  const double max = static_cast<double>(*std::max_element(row.begin(), row.end()));
  double total = 0.0;
  for (const float logit : row) total += std::exp(static_cast<double>(logit) - max);
  return max + std::log(total) - static_cast<double>(row[id]);
}

struct Perplexities {
  double answers;  // of the answers alone
  double all;      // what the user says included, which no model could foresee
};

// logits_of(ids): [ids.size(), vocab_size], what the model makes of a text.
template <typename F>
Perplexities MeasurePerplexity(const std::vector<std::vector<uint32_t>>& texts,
                               const F& logits_of) {
  double sums[2] = {};
  double counts[2] = {};
  for (const std::vector<uint32_t>& ids : texts) {
    const std::vector<float> logits = logits_of(ids);
    const size_t vocab_size = logits.size() / ids.size();
    const std::vector<bool> is_answer = IsAnswer(ids);
    for (size_t i = 1; i < ids.size(); ++i) {
      const std::span row(logits.data() + (i - 1) * vocab_size, vocab_size);
      sums[is_answer[i]] += SurpriseOf(row, ids[i]);
      counts[is_answer[i]] += 1.0;
    }
  }
  REQUIRE(counts[1] > 200);
  return {std::exp(sums[1] / counts[1]), std::exp((sums[0] + sums[1]) / (counts[0] + counts[1]))};
}

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_SESSION_PERPLEXITY_H_
