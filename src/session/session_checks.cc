#include "session/session_checks.h"

#include <string>

#include "base/error.h"

namespace headlight {

void CheckIds(const char* name, std::span<const uint32_t> ids, size_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < vocab_size) continue;
    std::string option = name;
    option += "[" + std::to_string(i) + "]";
    const std::string range = "below the vocabulary's " + std::to_string(vocab_size);
    std::string message = option;
    message += " is " + std::to_string(ids[i]) + ", it must be " + range;
    message += "; were the tokens made for another model?";
    throw Error(ErrorCode::kBadOption, message,
                {{"option", option}, {"value", std::to_string(ids[i])}, {"range", range}});
  }
}

void CheckTokens(std::span<const uint32_t> tokens, size_t n_ctx, size_t vocab_size) {
  if (tokens.empty()) {
    throw Error(ErrorCode::kBadOption,
                "tokens is empty; a run needs at least one token, such as the BOS",
                {{"option", "tokens"}});
  }
  if (tokens.size() > n_ctx) {
    throw Error(
        ErrorCode::kContextFull,
        std::to_string(tokens.size()) + " tokens do not fit into a context of " +
            std::to_string(n_ctx) + "; shorten the prompt or load with a larger n_ctx",
        {{"needed_tokens", std::to_string(tokens.size())}, {"n_ctx", std::to_string(n_ctx)}});
  }
  CheckIds("tokens", tokens, vocab_size);
}

// Rows of a cache that chooses them are no positions, and their attention is watched already.
void CheckCapture(const CaptureRequest* request, const EvictionOptions& eviction) {
  if (request == nullptr || !ChoosesRows(eviction)) return;
  throw Error(ErrorCode::kUnsupported,
              "a session that gives up keys by their attention captures nothing; use eviction "
              "'none' or 'sinks' to look inside",
              {{"option", "capture"}});
}

void CheckSave(const EvictionOptions& eviction) {
  if (!ChoosesRows(eviction)) return;
  throw Error(ErrorCode::kUnsupported,
              "a session that gives up keys by their attention cannot be saved or restored; keep "
              "the tokens and compute them again, or use eviction 'none' or 'sinks'",
              {{"option", "eviction.policy"}});
}

}  // namespace headlight
