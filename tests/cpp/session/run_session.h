// Small sessions and whole runs of them; what the session tests share.
#ifndef HEADLIGHT_TESTS_SESSION_RUN_SESSION_H_
#define HEADLIGHT_TESTS_SESSION_RUN_SESSION_H_

#include <cstdint>
#include <vector>

#include "oracle/test_model.h"
#include "session/session.h"

namespace headlight {

// 3 layers, 97 tokens, GQA with d_qk != d_v, a window in one layer.
inline ModelSpec SmallSessionSpec() {
  ModelSpec spec = SmallSpec({4, 2, 24, 32}, 64, 96, 3);
  spec.layers[1].window = 11;
  spec.tied_head = false;  // a random tied model says its last token again for ever
  return spec;
}

inline TestModel SmallSessionModel(TensorType type = TensorType::kQ8_0) {
  return MakeTestModel(SmallSessionSpec(), type, 21);
}

// A context of 64 and chunks of 8, so that a few dozen tokens meet every edge.
inline SessionOptions SmallSessionOptions() {
  SessionOptions options;
  options.n_ctx = 64;
  options.prefill_chunk = 8;
  return options;
}

// With logprobs, so that comparing tokens compares the logits behind them.
inline GenerateOptions Greedy(size_t max_tokens) {
  GenerateOptions options;
  options.sampler.temperature = 0.0f;
  options.sampler.n_logprobs = 5;
  options.max_tokens = max_tokens;
  return options;
}

inline void Append(const AdvanceResult& result, std::vector<SampledToken>& tokens) {
  tokens.insert(tokens.end(), result.tokens.begin(), result.tokens.end());
}

// Advances to the end; returns how many calls it took.
inline size_t Finish(Session& session, double budget_ms, std::vector<SampledToken>& tokens) {
  size_t n_calls = 0;
  bool done = false;
  while (!done) {
    const AdvanceResult result = session.Advance(budget_ms);
    Append(result, tokens);
    done = result.done;
    ++n_calls;
  }
  return n_calls;
}

inline std::vector<SampledToken> GenerateAlone(const TestModel& test,
                                               const std::vector<uint32_t>& prompt,
                                               size_t max_tokens) {
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  session.Begin(prompt, Greedy(max_tokens));
  std::vector<SampledToken> tokens;
  Finish(session, 1e9, tokens);
  return tokens;
}

// Bit for bit, the reported logprobs included.
inline bool SameTokens(const std::vector<SampledToken>& a, const std::vector<SampledToken>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].id != b[i].id || a[i].logprob != b[i].logprob || a[i].top.size() != b[i].top.size())
      return false;
    for (size_t j = 0; j < a[i].top.size(); ++j) {
      if (a[i].top[j].id != b[i].top[j].id || a[i].top[j].logprob != b[i].top[j].logprob)
        return false;
    }
  }
  return true;
}

inline size_t FirstIndexOf(const std::vector<SampledToken>& tokens, uint32_t id) {
  size_t i = 0;
  while (i < tokens.size() && tokens[i].id != id) ++i;
  return i;
}

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_SESSION_RUN_SESSION_H_
