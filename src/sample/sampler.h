// From logits to a token: penalties, bias, temperature, top-k, top-p, min-p, in that order, with an explicit random
// state of its own (same seed, same text, in every module). No vocabulary, no text: ids and numbers only.
#ifndef HEADLIGHT_SAMPLE_SAMPLER_H_
#define HEADLIGHT_SAMPLE_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace headlight {

struct SamplerOptions {
  float temperature = 0.8f;         // 0: greedy (highest logit, lowest id on a tie)
  uint32_t top_k = 40;              // 0: off
  float top_p = 0.95f;              // (0, 1]; 1: off
  float min_p = 0.05f;              // [0, 1); 0: off
  float repetition_penalty = 1.0f;  // > 0; divides positive and multiplies negative logits (arXiv 1909.05858)
  float frequency_penalty = 0.0f;   // [-2, 2]; minus this x count
  float presence_penalty = 0.0f;    // [-2, 2]; minus this if present
  uint32_t penalty_last_n = 64;     // window of the penalties in tokens; 0: the whole history
  uint64_t seed = 0;
  std::vector<std::pair<uint32_t, float>> logit_bias;  // id, added before everything else; -inf bans
  uint32_t n_logprobs = 0;          // how many of the most likely tokens to report, <= kMaxLogprobs
};
inline constexpr uint32_t kMaxLogprobs = 20;  // as the common chat APIs allow

struct TokenLogprob {
  uint32_t id;
  float logprob;  // natural log of softmax over the raw logits (before penalties and temperature)
};

struct SampledToken {
  uint32_t id = 0;
  float logprob = 0.0f;
  std::vector<TokenLogprob> top;  // n_logprobs entries, most likely first
};

class Sampler {
 public:
  // Throws Error(kBadOption) naming the option, its value and its range.
  Sampler(SamplerOptions options, size_t vocab_size);
  // logits [vocab_size]: scratch, may be changed. history: all tokens so far (prompt and generated).
  SampledToken Sample(std::span<float> logits, std::span<const uint32_t> history);
  const SamplerOptions& options() const { return options_; }

 private:
  SamplerOptions options_;
  size_t vocab_size_;
  uint64_t random_state_[4] = {};  // xoshiro256++ seeded by splitmix64
  std::vector<uint32_t> candidates_;
};

}  // namespace headlight

#endif  // HEADLIGHT_SAMPLE_SAMPLER_H_
