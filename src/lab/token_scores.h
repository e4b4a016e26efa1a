// How well a model predicts given tokens: perplexity is the exponential of the mean loss.
#ifndef HEADLIGHT_LAB_TOKEN_SCORES_H_
#define HEADLIGHT_LAB_TOKEN_SCORES_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "session/session.h"

namespace headlight {

// Entry i is about token i + 1, given those before it: [tokens.size() - 1].
struct TokenScores {
  std::vector<float> log_probabilities;
  std::vector<uint32_t> likeliest;
};

// The scores of `tokens` in pieces. Takes the session's history; the session must outlive it.
class ScoreRun {
 public:
  // Throws as Session::BeginForward does.
  ScoreRun(Session& session, std::span<const uint32_t> tokens);
  // Works for about budget_ms; the scores when they are there, once. Throws as
  // Session::AdvanceForward does.
  std::optional<TokenScores> Advance(double budget_ms = std::numeric_limits<double>::infinity());

 private:
  void ScoreRow();

  Session* session_;
  std::vector<uint32_t> tokens_;
  std::vector<float> logits_;  // [n_tokens, vocab_size] when they are there
  TokenScores scores_;
};

}  // namespace headlight

#endif  // HEADLIGHT_LAB_TOKEN_SCORES_H_
