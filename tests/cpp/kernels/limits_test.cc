#include "kernels/limits.h"

#include <doctest/doctest.h>

#include "base/aligned.h"

namespace headlight {
namespace {

TEST_CASE("MeasureLimits: every rate is positive and below what any core does") {
  ThreadPool pool(1);
  AlignedArray<uint8_t> bytes(size_t{1} << 20);
  const SpeedLimits limits = MeasureLimits({bytes.data(), bytes.size()}, 60.0, pool);
  // A core at 6 GHz with four 64-byte loads or two 64-byte multiply-adds a cycle could not reach
  // these.
  CHECK(limits.read_gbs > 0.1);
  CHECK(limits.read_gbs < 1600.0);
  CHECK(limits.dot_gops > 0.1);
  CHECK(limits.dot_gops < 6000.0);
  CHECK(limits.fma_gflops > 0.1);
  CHECK(limits.fma_gflops < 800.0);
}

TEST_CASE("MeasureLimits: with nothing to read the read rate is zero and the others are measured") {
  ThreadPool pool(1);
  const SpeedLimits limits = MeasureLimits({}, 30.0, pool);
  CHECK(limits.read_gbs == 0.0);
  CHECK(limits.dot_gops > 0.1);
}

}  // namespace
}  // namespace headlight
