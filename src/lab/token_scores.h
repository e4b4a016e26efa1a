// How well a model predicts given tokens: perplexity is the exponential of the mean loss.
#ifndef HEADLIGHT_LAB_TOKEN_SCORES_H_
#define HEADLIGHT_LAB_TOKEN_SCORES_H_

#include <cstdint>
#include <span>
#include <vector>

#include "session/session.h"

namespace headlight {

// Entry i is about token i + 1, given those before it: [tokens.size() - 1].
struct TokenScores {
  std::vector<float> log_probabilities;
  std::vector<uint32_t> likeliest;
};

// Blocks until done; takes the session's history. Throws as Session::Logits does.
TokenScores ScoreTokens(Session& session, std::span<const uint32_t> tokens);

}  // namespace headlight

#endif  // HEADLIGHT_LAB_TOKEN_SCORES_H_
