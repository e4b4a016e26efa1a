#include "lab/token_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "session/stopwatch.h"

namespace headlight {

ScoreRun::ScoreRun(Session& session, std::span<const uint32_t> tokens)
    : session_(&session), tokens_(tokens.begin(), tokens.end()) {
  session_->BeginForward(tokens_, true, nullptr);
}

std::optional<TokenScores> ScoreRun::Advance(double budget_ms) {
  const Stopwatch stopwatch;
  if (logits_.empty()) {
    std::optional<Session::Forward> forward = session_->AdvanceForward(budget_ms);
    if (!forward.has_value()) return std::nullopt;
    logits_ = std::move(forward->logits);
  }
  while (scores_.likeliest.size() + 1 < tokens_.size()) {
    ScoreRow();
    if (stopwatch.ms() >= budget_ms) break;
  }
  if (scores_.likeliest.size() + 1 < tokens_.size()) return std::nullopt;
  return std::move(scores_);
}

void ScoreRun::ScoreRow() {
  const size_t i = scores_.likeliest.size();
  const size_t vocab_size = logits_.size() / tokens_.size();
  const float* row = logits_.data() + i * vocab_size;
  const float* best = std::max_element(row, row + vocab_size);
  double sum = 0.0;
  for (size_t id = 0; id < vocab_size; ++id) {
    sum += std::exp(static_cast<double>(row[id] - *best));
  }
  const double loss = std::log(sum) + static_cast<double>(*best - row[tokens_[i + 1]]);
  scores_.log_probabilities.push_back(static_cast<float>(-loss));
  scores_.likeliest.push_back(static_cast<uint32_t>(best - row));
}

}  // namespace headlight
