// Activations: f32 rows and, when a matrix of codes asks for it, their 8-bit form.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/matmul.h"
#include "simd/int8-inl.h"

namespace headlight {
namespace {

using VecF32 = hn::Vec<F32x4>;
using VecI32 = hn::Vec<I32x4>;

constexpr size_t kLanes = 4;
constexpr size_t kHalfVectors = kHalfCols / kLanes;

// Blocks below this count as zero: 127 / max must not overflow, and nothing that small survives a
// norm.
constexpr float kSmallestMax = 1e-30f;

// NaN has no code and rounds to anything: a block's sum stays within that of numbers all the same,
// so that what is made of it does not overflow.
int32_t BoundedSum(VecI32 sum) {
  constexpr int32_t kMost = 127 * static_cast<int32_t>(kMaxMultiplier * kBlockCols);
  return std::clamp(hn::ReduceSum(I32x4(), sum), -kMost, kMost);
}

// Where a block goes.
struct BlockOut {
  int8_t* codes;  // [32]
  float* scale;
  int16_t* multipliers;  // [2]
};

// The sums of m * c of a block's halves, four parts of each.
struct HalfSums {
  VecI32 first, second;
};

HWY_INLINE float LargestOf(const VecF32 (&v)[kHalfVectors]) {
  VecF32 largest = hn::Abs(v[0]);
  for (size_t i = 1; i < kHalfVectors; ++i) largest = hn::Max(largest, hn::Abs(v[i]));
  return hn::ReduceMax(F32x4(), largest);
}

// codes[16] of half a block; returns their sum, four parts of it.
HWY_INLINE VecI32 RoundHalf(const VecF32 (&v)[kHalfVectors], float inverse, int8_t* codes) {
  const F32x4 df;
  const I32x4 di;
  const hn::FixedTag<int16_t, 4> d16;
  const hn::FixedTag<int8_t, 4> d8;
  VecI32 sum = hn::Zero(di);
  for (size_t i = 0; i < kHalfVectors; ++i) {
    const VecI32 code = NearestInts(hn::Mul(v[i], hn::Set(df, inverse)));
    sum = hn::Add(sum, code);
    hn::StoreU(hn::DemoteTo(d8, hn::DemoteTo(d16, code)), d8, codes + i * kLanes);
  }
  return sum;
}

// The codes of a block from column order into that of WordColumn for mixed halves.
HWY_INLINE void MixHalves(int8_t* codes) {
  const I16x8 d16;
  const auto first = hn::BitCast(d16, hn::Load(I8x16(), codes));
  const auto second = hn::BitCast(d16, hn::Load(I8x16(), codes + kHalfCols));
  int16_t* out = reinterpret_cast<int16_t*>(codes);
  hn::Store(hn::InterleaveLower(d16, first, second), d16, out);
  hn::Store(hn::InterleaveUpper(d16, first, second), d16, out + kHalfCols / 2);
}

// x[32] -> codes in column order, scale and multipliers.
HWY_INLINE HalfSums QuantiseBlock(const float* x, const BlockOut& out) {
  VecF32 v[kBlockHalves][kHalfVectors];
  float largest[kBlockHalves];
  for (size_t half = 0; half < kBlockHalves; ++half) {
    for (size_t i = 0; i < kHalfVectors; ++i) {
      v[half][i] = hn::LoadU(F32x4(), x + half * kHalfCols + i * kLanes);
    }
    largest[half] = LargestOf(v[half]);
  }
  const float max = largest[0] < largest[1] ? largest[1] : largest[0];
  const bool is_zero = !(max >= kSmallestMax);
  constexpr float kSteps = 127.0f * kMaxMultiplier;
  VecI32 sums[kBlockHalves];
  for (size_t half = 0; half < kBlockHalves; ++half) {
    // Divided first: neither overflows whatever is finite.
    const float share = is_zero ? 0.0f : std::ceil(largest[half] / max * kMaxMultiplier);
    // Written so that NaN, which infinities among x give, becomes 1.
    const float multiplier = share > 1.0f ? share : 1.0f;
    const float inverse = is_zero ? 0.0f : kSteps / max / multiplier;
    const int32_t m = static_cast<int32_t>(multiplier);
    out.multipliers[half] = static_cast<int16_t>(m);
    sums[half] =
        hn::Mul(RoundHalf(v[half], inverse, out.codes + half * kHalfCols), hn::Set(I32x4(), m));
  }
  *out.scale = is_zero ? 0.0f : max / kSteps;
  return {sums[0], sums[1]};
}

// One token; the last block is padded with zeros. sums[n_blocks] of whole blocks, and
// first_sums[n_blocks] of their first halves unless it is null.
void QuantiseRow(const float* x, size_t n_cols, bool mixed_halves, BlockOut out, int32_t* sums,
                 int32_t* first_sums) {
  for (size_t begin = 0, block = 0; begin < n_cols; begin += kBlockCols, ++block) {
    HalfSums halves;
    if (n_cols - begin >= kBlockCols) {
      halves = QuantiseBlock(x + begin, out);
    } else {
      float padded[kBlockCols] = {};
      for (size_t i = begin; i < n_cols; ++i) padded[i - begin] = x[i];
      halves = QuantiseBlock(padded, out);
    }
    sums[block] = BoundedSum(hn::Add(halves.first, halves.second));
    if (first_sums != nullptr) first_sums[block] = BoundedSum(halves.first);
    if (mixed_halves) MixHalves(out.codes);
    out = {out.codes + kBlockCols, out.scale + 1, out.multipliers + kBlockHalves};
  }
}

// wide: each code times its half's multiplier, four by four in the order 0, 2, 1, 3.
void WidenRow(const int8_t* codes, const int16_t* multipliers, size_t n_blocks, bool mixed_halves,
              int16_t* wide) {
  const I16x8 d16;
  const I32x4 di;
  for (size_t b = 0; b < n_blocks; ++b) {
    // Of mixed halves the lower 16 bits of each word are of the first half, the upper ones of the
    // second.
    int32_t both;
    std::memcpy(&both, multipliers + b * kBlockHalves, sizeof(both));
    const auto mixed = hn::BitCast(d16, hn::Set(di, both));
    for (size_t half = 0; half < kBlockHalves; ++half) {
      const size_t i = (b * kBlockHalves + half) * kHalfCols;
      const auto m = mixed_halves ? mixed : hn::Set(d16, multipliers[b * kBlockHalves + half]);
      const auto pairs = hn::BitCast(d16, hn::Load(I8x16(), codes + i));
      const auto even = hn::BitCast(di, hn::Mul(hn::ShiftRight<8>(hn::ShiftLeft<8>(pairs)), m));
      const auto odd = hn::BitCast(di, hn::Mul(hn::ShiftRight<8>(pairs), m));
      int32_t* out = reinterpret_cast<int32_t*>(wide + i);
      hn::Store(hn::InterleaveLower(di, even, odd), di, out);
      hn::Store(hn::InterleaveUpper(di, even, odd), di, out + 4);
    }
  }
}

}  // namespace

Activations::Activations(size_t max_tokens, size_t max_cols, ActivationType type) : type_(type) {
  if (type == ActivationType::kF32) return;
  const size_t n_blocks = max_tokens * CeilDiv(max_cols, kBlockCols);
  codes_ = AlignedArray<int8_t>(n_blocks * kBlockCols);
  wide_codes_ = AlignedArray<int16_t>(n_blocks * kBlockCols);
  scales_ = AlignedArray<float>(n_blocks);
  multipliers_ = AlignedArray<int16_t>(n_blocks * kBlockHalves);
  sums_ = AlignedArray<int32_t>(n_blocks);
  first_sums_ = AlignedArray<int32_t>(n_blocks);
}

size_t Activations::WorkspaceBytes(size_t max_tokens, size_t max_cols, ActivationType type) {
  if (type == ActivationType::kF32) return 0;
  constexpr size_t kColumnBytes = sizeof(int8_t) + sizeof(int16_t);
  const size_t n_blocks = max_tokens * CeilDiv(max_cols, kBlockCols);
  return n_blocks * (kBlockCols * kColumnBytes + kBlockHalves * sizeof(int16_t) + sizeof(float) +
                     2 * sizeof(int32_t));
}

void Activations::Set(const float* x, size_t n_tokens, size_t n_cols, size_t x_stride) noexcept {
  x_ = x;
  n_tokens_ = n_tokens;
  n_cols_ = n_cols;
  n_blocks_ = CeilDiv(n_cols, kBlockCols);
  x_stride_ = x_stride;
  has_codes_ = false;
}

void Activations::Quantise(ThreadPool& pool, CodeUse use) noexcept {
  const bool makes_codes =
      !has_codes_ || made_.mixed_halves != use.mixed_halves || (use.half_sums && !made_.half_sums);
  const bool makes_wide = use.wide && (makes_codes || !made_.wide);
  if (!makes_codes && !makes_wide) return;
  made_ = {use.mixed_halves, makes_wide || (!makes_codes && made_.wide),
           makes_codes ? use.half_sums : made_.half_sums};
  has_codes_ = true;
  // Tokens a task: a task should outlast the handing out of it.
  const size_t n_per_task = CeilDiv(size_t{4096}, n_cols_);
  pool.ParallelFor(CeilDiv(n_tokens_, n_per_task), [&](size_t task, size_t) {
    for (size_t t = task * n_per_task; t < n_tokens_ && t < (task + 1) * n_per_task; ++t) {
      const size_t first = t * n_blocks_;
      int8_t* codes = codes_.data() + first * kBlockCols;
      int16_t* multipliers = multipliers_.data() + first * kBlockHalves;
      if (makes_codes) {
        QuantiseRow(row(t), n_cols_, use.mixed_halves, {codes, scales_.data() + first, multipliers},
                    sums_.data() + first, use.half_sums ? first_sums_.data() + first : nullptr);
      }
      if (makes_wide) {
        WidenRow(codes, multipliers, n_blocks_, use.mixed_halves,
                 wide_codes_.data() + first * kBlockCols);
      }
    }
  });
}

}  // namespace headlight
