// From logits to a token: bias, penalties, temperature, top-k, top-p, min-p, then one draw, in that
// order, with an explicit random state of its own (same seed, same text, in every module). No
// vocabulary, no text: ids and numbers only.
//
// The order is that of Hugging Face's generate(). llama.cpp's default differs in one point: its
// temperature comes last, so there top-p and min-p judge the unscaled distribution; at temperature
// 1 both agree.
#ifndef HEADLIGHT_SAMPLE_SAMPLER_H_
#define HEADLIGHT_SAMPLE_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sample/candidates.h"
#include "sample/logit_scan.h"
#include "sample/random.h"

namespace headlight {

inline constexpr uint32_t kMaxLogprobs = 20;  // as the common chat APIs allow

struct SamplerOptions {
  // At least 0. 0 is greedy: the highest logit, the lowest id on a tie; nothing is drawn.
  float temperature = 0.8f;
  uint32_t top_k = 40;  // 0: off
  float top_p = 0.95f;  // (0, 1], of what top-k left; 1: off
  float min_p = 0.05f;  // [0, 1), relative to the most likely token; 0: off
  // Above 0. Divides the positive and multiplies the other logits of tokens in the window, once
  // each (arXiv 1909.05858).
  float repetition_penalty = 1.0f;
  float frequency_penalty = 0.0f;  // [-2, 2]; subtracted once an occurrence
  float presence_penalty = 0.0f;   // [-2, 2]; subtracted once if present
  uint32_t penalty_last_n = 64;    // window of the penalties in tokens; 0: the whole history
  uint64_t seed = 0;
  // (id, what is added to its logit before everything else); -inf bans, repeated ids add up.
  std::vector<std::pair<uint32_t, float>> logit_bias;
  uint32_t n_logprobs = 0;  // how many of the most likely tokens to report, at most kMaxLogprobs
};

struct TokenLogprob {
  uint32_t id;
  float
      logprob;  // natural log of softmax over the raw logits (before bias, penalties, temperature)
};

struct SampledToken {
  uint32_t id = 0;
  float logprob = 0.0f;  // of id, over the raw logits like those of `top`
  // min(n_logprobs, vocab_size) entries, most likely first, the lower id on a tie.
  std::vector<TokenLogprob> top;
};

class Sampler {
 public:
  // Throws Error(kBadOption) naming the option, its value and its range.
  Sampler(SamplerOptions options, size_t vocab_size);
  // logits [vocab_size]: scratch, changed by bias and penalties. history: all tokens so far (prompt
  // and generated), ids below vocab_size. Throws Error(kInternal) for logits that hold a NaN or
  // +inf: the model's numbers overflowed.
  SampledToken Sample(std::span<float> logits, std::span<const uint32_t> history);
  const SamplerOptions& options() const { return options_; }

 private:
  bool has_penalties() const;
  void AddBias(std::span<float> logits);
  void SubtractPenalties(std::span<float> logits, std::span<const uint32_t> history);
  void SetLogit(std::span<float> logits, uint32_t id, float value);
  float RawLogit(std::span<const float> logits, uint32_t id) const;
  uint32_t Choose(std::span<const float> logits, const LogitScan& scan);

  SamplerOptions options_;
  size_t vocab_size_;
  Random random_;
  std::vector<Candidate> candidates_;
  std::vector<uint32_t> counts_;  // [vocab_size] while penalties are on, all zero between calls
  // (id, raw logit) of what bias and penalties changed in this call, oldest first.
  std::vector<std::pair<uint32_t, float>> changed_;
};

}  // namespace headlight

#endif  // HEADLIGHT_SAMPLE_SAMPLER_H_
