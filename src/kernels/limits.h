// What the machine allows, measured in the module that runs: streaming reads, integer dots and
// float multiply-adds. Every speed that Headlight reports is shown as a share of these. Not a
// benchmark of our kernels.
#ifndef HEADLIGHT_KERNELS_LIMITS_H_
#define HEADLIGHT_KERNELS_LIMITS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/parallel.h"

namespace headlight {

struct SpeedLimits {
  double read_gbs = 0.0;  // 1e9 bytes a second, all threads
  double dot_gops =
      0.0;  // 1e9 operations a second (a multiply-add is two), ten accumulators a thread
  double fma_gflops = 0.0;  // the same for f32
};

// Best of the repetitions that fit budget_ms, shared equally among the three. `bytes` is what is
// read: it should be far larger than the caches (or be the weights themselves). The dot is the one
// that the build's kernels use: relaxed 8-bit, else 16-bit.
SpeedLimits MeasureLimits(std::span<const uint8_t> bytes, double budget_ms, ThreadPool& pool);

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_LIMITS_H_
