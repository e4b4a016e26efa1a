#include "kernels/limits.h"

#include <algorithm>
#include <chrono>

#include "base/aligned.h"
#include "simd/relaxed.h"
#include "simd/simd.h"

namespace headlight {
namespace {

using Clock = std::chrono::steady_clock;

// Independent chains: enough to cover the latency of a dot or multiply-add on current cores.
constexpr size_t kChains = 10;
constexpr size_t kRounds = 20000;  // about 0.2 ms a task: far above the timers' grain when repeated
constexpr size_t kReadSlice = size_t{256} << 10;  // bytes of a read task

// One cache line a thread, so that the sinks are never shared.
struct alignas(kAlignment) Sink {
  float value[4];
};

double Seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void SumBytes(const uint8_t* bytes, size_t n_bytes, Sink* sink) noexcept {
  const I32x4 d;
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  const auto* words = reinterpret_cast<const int32_t*>(bytes);
  for (size_t i = 0; i + 16 <= n_bytes / 4; i += 16) {
    s0 = hn::Xor(s0, hn::LoadU(d, words + i));
    s1 = hn::Xor(s1, hn::LoadU(d, words + i + 4));
    s2 = hn::Xor(s2, hn::LoadU(d, words + i + 8));
    s3 = hn::Xor(s3, hn::LoadU(d, words + i + 12));
  }
  const auto sum = hn::Xor(hn::Xor(s0, s1), hn::Xor(s2, s3));
  hn::Store(hn::BitCast(F32x4(), sum), F32x4(), sink->value);
}

// Operations of one chain step: a 16-byte vector holds 16 products of bytes or 8 of 16-bit words.
constexpr double kDotOps = kHasRelaxedDot ? 32.0 : 16.0;

void DotChains(const uint8_t* operands, Sink* sink) noexcept {
  const I32x4 d;
  VecI32 sums[kChains];
  for (auto& sum : sums) sum = hn::Zero(d);
#if defined(__wasm_relaxed_simd__)
  const I8x16 di;
  const auto a = hn::BitCast(di, hn::Load(U8x16(), operands));
  const auto b = hn::BitCast(di, hn::Load(U8x16(), operands + 16));
  for (size_t i = 0; i < kRounds; ++i) {
    for (auto& sum : sums) sum = RelaxedDot4(a, b, sum);
  }
#else
  // The second operand is the sum itself: a product of constants would be hoisted out of the loop.
  const I16x8 di;
  const auto a = hn::BitCast(di, hn::Load(U8x16(), operands));
  for (size_t i = 0; i < kRounds; ++i) {
    for (auto& sum : sums) {
      sum = hn::Add(sum, hn::WidenMulPairwiseAdd(d, a, hn::BitCast(di, sum)));
    }
  }
#endif
  auto total = sums[0];
  for (size_t c = 1; c < kChains; ++c) total = hn::Xor(total, sums[c]);
  hn::Store(hn::BitCast(F32x4(), total), F32x4(), sink->value);
}

void MulAddChains(Sink* sink) noexcept {
  const F32x4 d;
  VecF32 sums[kChains];
  for (auto& sum : sums) sum = hn::Zero(d);
  // The running value is multiplied: a product of constants would be hoisted out of the loop. It
  // tends to 1.
  const auto a = hn::Set(d, 0.5f);
  const auto b = hn::Set(d, 0.5f);
  for (size_t i = 0; i < kRounds; ++i) {
    for (auto& sum : sums) sum = MulAdd(sum, a, b);
  }
  auto total = sums[0];
  for (size_t c = 1; c < kChains; ++c) total = hn::Add(total, sums[c]);
  hn::Store(total, d, sink->value);
}

// Largest amount / seconds of repeated calls of run() within budget_ms; run() does `amount` of
// work.
template <typename Run>
double BestRate(double budget_ms, double amount, const Run& run) {
  double best = 0.0;
  const Clock::time_point start = Clock::now();
  // Unisolated browser timers tick at 0.1 ms: a measurement grows until it takes 50 ticks.
  size_t n_repeat = 1;
  do {
    const Clock::time_point t0 = Clock::now();
    for (size_t i = 0; i < n_repeat; ++i) run();
    const double seconds = Seconds(t0);
    if (seconds < 5e-3) {
      n_repeat *= 2;
      continue;
    }
    best = std::max(best, amount * static_cast<double>(n_repeat) / seconds);
  } while (Seconds(start) * 1e3 < budget_ms || best == 0.0);
  return best;
}

}  // namespace

SpeedLimits MeasureLimits(std::span<const uint8_t> bytes, double budget_ms, ThreadPool& pool) {
  const size_t n_threads = pool.n_threads();
  AlignedArray<Sink> sinks(n_threads);
  AlignedArray<uint8_t> operands(32);
  for (size_t i = 0; i < operands.size(); ++i) operands[i] = static_cast<uint8_t>(i % 3);
  const double share_ms = budget_ms / 3;
  const double n_steps = static_cast<double>(n_threads * kRounds * kChains);

  SpeedLimits limits;
  const size_t n_slices = std::max<size_t>(bytes.size() / kReadSlice, 1);
  const size_t slice = std::min(bytes.size(), kReadSlice);
  if (slice > 0) {
    limits.read_gbs = 1e-9 * BestRate(share_ms, static_cast<double>(n_slices * slice), [&] {
                        pool.ParallelFor(n_slices, [&](size_t task, size_t thread) {
                          SumBytes(bytes.data() + task * slice, slice, &sinks[thread]);
                        });
                      });
  }
  limits.dot_gops = 1e-9 * BestRate(share_ms, n_steps * kDotOps, [&] {
                      pool.ParallelFor(n_threads, [&](size_t task, size_t) {
                        DotChains(operands.data(), &sinks[task]);
                      });
                    });
  constexpr double kMulAddFlops = 8.0;  // four lanes
  limits.fma_gflops =
      1e-9 * BestRate(share_ms, n_steps * kMulAddFlops, [&] {
        pool.ParallelFor(n_threads, [&](size_t task, size_t) { MulAddChains(&sinks[task]); });
      });
  return limits;
}

}  // namespace headlight
