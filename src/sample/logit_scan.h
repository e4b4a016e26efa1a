// The two passes over all logits that every sampled token pays for, vectorised. Everything else in
// sample/ works on a few candidates.
#ifndef HEADLIGHT_SAMPLE_LOGIT_SCAN_H_
#define HEADLIGHT_SAMPLE_LOGIT_SCAN_H_

#include <cstddef>

namespace headlight {

struct LogitScan {
  float max = 0.0f;
  bool usable = false;  // no NaN and no +inf anywhere, and not everything is -inf
};

// logits [n], n >= 1. max is meaningful only if usable.
LogitScan ScanLogits(const float* logits, size_t n) noexcept;

// The first i >= begin with logits[i] > threshold; n if there is none. NaN is above nothing.
size_t FindAbove(const float* logits, size_t begin, size_t n, float threshold) noexcept;

// Natural log of sum(exp(logits[i])), max being the largest of them. Terms are computed in f32
// (ExpF32: at most 2.5 ulp each) and added in double.
double LogSumExp(const float* logits, size_t n, float max) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_SAMPLE_LOGIT_SCAN_H_
