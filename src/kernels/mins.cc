#include "kernels/mins.h"

#include <algorithm>

#include "kernels/rows-inl.h"
#include "simd/part.h"

namespace headlight {
namespace {

constexpr size_t kPanelBlocks = 32;  // of minima widened at a time: 1 KiB
constexpr size_t kBlockMins = kBlockHalves * kRowGroup;

// One group and token: sum, less blocks [begin, begin + n_blocks) of the minima.
template <bool kByHalves>
HWY_INLINE VecF32 Subtract(const float* mins, const Activations& x, size_t token, size_t begin,
                           size_t n_blocks, VecF32 sum) {
  const F32x4 df;
  const float* scales = x.scales(token) + begin;
  const int32_t* sums = x.sums(token) + begin;
  const int32_t* first_sums = x.first_sums(token) + begin;
  for (size_t b = 0; b < n_blocks; ++b, mins += kBlockMins) {
    const int32_t first = kByHalves ? first_sums[b] : sums[b];
    const VecF32 factor = hn::Set(df, static_cast<float>(first) * scales[b]);
    sum = hn::Sub(sum, hn::Mul(hn::Load(df, mins), factor));
    if constexpr (kByHalves) {
      const VecF32 second = hn::Set(df, static_cast<float>(sums[b] - first) * scales[b]);
      sum = hn::Sub(sum, hn::Mul(hn::Load(df, mins + kRowGroup), second));
    }
  }
  return sum;
}

}  // namespace

void SubtractMins(const CodeGroup& groups, size_t n_groups, const Activations& x, TokenRange tokens,
                  const MinsOut& out) noexcept {
  alignas(kAlignment) float mins[kPanelBlocks * kBlockMins];
  const size_t n_blocks = groups.shape.n_blocks;
  const bool by_halves = groups.shape.code.scales == ScaleKind::kSuper16;
  CodeGroup from = groups;
  for (size_t row = 0; row < n_groups * kRowGroup && row < out.n_rows; row += kRowGroup) {
    const size_t n_rows = out.n_rows - row;
    for (size_t begin = 0; begin < n_blocks; begin += kPanelBlocks) {
      const size_t n = std::min(kPanelBlocks, n_blocks - begin);
      WidenMins(from, begin, n, mins);
      for (size_t t = 0; t < tokens.n; ++t) {
        float* y = out.y + t * out.y_stride + row;
        const VecF32 sum = begin == 0 ? hn::Zero(F32x4()) : LoadPart(y, n_rows);
        const size_t token = tokens.first + t;
        StorePart(by_halves ? Subtract<true>(mins, x, token, begin, n, sum)
                            : Subtract<false>(mins, x, token, begin, n, sum),
                  y, n_rows);
      }
    }
    ++from.group;
  }
}

}  // namespace headlight
