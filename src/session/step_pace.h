// How many tokens a chunk of a prompt has, so that one step (a layer of a small model, a share of a
// large one's) stays short enough for a stop to be seen soon. The numbers that are computed do not
// depend on it.
#ifndef HEADLIGHT_SESSION_STEP_PACE_H_
#define HEADLIGHT_SESSION_STEP_PACE_H_

#include <algorithm>
#include <cstddef>

#include "model/decoder_plan.h"
#include "model/model_spec.h"

namespace headlight {

class StepPace {
 public:
  // A stop must be seen within 50 ms; what is left is for the way of the message.
  static constexpr double kStepMs = 25.0;
  // Below, the weights of a layer are read so often that a prompt takes twice as long.
  static constexpr size_t kMinTokens = 8;

  StepPace(const ModelSpec& spec, size_t max_tokens)
      : max_tokens_(max_tokens), n_tokens_(Clamp(kStepMs * kOpsPerMs / StepOps(spec))) {}

  size_t n_tokens() const { return n_tokens_; }
  // Of the step before the next.
  double step_ms() const { return step_ms_; }
  void Stepped(double ms) {
    step_ms_ = ms;
    longest_ms_ = std::max(longest_ms_, ms);
  }
  // After a chunk of n tokens of a prompt. Clocks go in steps of 0.1 ms on some pages.
  void ChunkDone(size_t n) {
    // Fewer tokens than a tile take about as long as a tile.
    if (n >= kMinTokens)
      n_tokens_ = Clamp(static_cast<double>(n) * kStepMs / std::max(longest_ms_, 0.1));
    longest_ms_ = 0.0;
  }

 private:
  // What the first chunk of a session goes by: one core without relaxed SIMD, some of it busy.
  static constexpr double kOpsPerMs = 40e6;

  // Of one token in the largest step, a multiply-add counted as two. Attention's first products are
  // never cut, the others are.
  static double StepOps(const ModelSpec& spec) {
    size_t most = 1;
    for (const LayerSpec& layer : spec.layers) {
      const HeadLayout& heads = layer.heads;
      const size_t qkv = heads.q_width() + heads.k_width() + heads.v_width();
      const size_t widths = qkv + heads.out_width() + 3 * layer.d_ff;
      const size_t cut = std::min(widths * spec.d_model, 2 * kStepWeights);
      most = std::max({most, qkv * spec.d_model, cut});
    }
    return 2.0 * static_cast<double>(most);
  }

  // Whole tiles of the products.
  size_t Clamp(double n) const {
    const double most = static_cast<double>(max_tokens_);
    const size_t whole = static_cast<size_t>(std::min(n, most)) / kMinTokens * kMinTokens;
    return n >= most ? max_tokens_ : std::min(std::max(whole, kMinTokens), max_tokens_);
  }

  size_t max_tokens_;
  size_t n_tokens_;
  double step_ms_ = 0.0;
  double longest_ms_ = 0.0;
};

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_STEP_PACE_H_
