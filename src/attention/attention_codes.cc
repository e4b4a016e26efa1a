#include "attention/attention_codes.h"

#include <algorithm>
#include <cstring>

#include "kv/int8_rows.h"
#include "simd/int8-inl.h"

namespace headlight {
namespace {

// Below, a row counts as zero: 16383 / max must not overflow, and nothing that small shows in a
// sum.
constexpr float kSmallestMax = 1e-30f;

// Blocks that a tile of one, two or three rows takes at a time (tests/bench/README.md).
constexpr size_t kTileBlocks[] = {0, 4, 2, 2};

// 16-bit codes are stored as columns 0, 2, 1, 3 of each four: even bytes of a block, then odd ones.
bool IsWide(DotForm form) {
#if HEADLIGHT_HAS_DOT4
  return form == DotForm::kWide || form == DotForm::kSplit;
#else
  static_cast<void>(form);
  return true;
#endif
}

template <class D>
HWY_INLINE hn::Vec<D> SplatWord(D d, const uint8_t* at) {
  int32_t word;
  std::memcpy(&word, at, sizeof(word));
  return hn::BitCast(d, hn::Set(I32x4(), word));
}

// How a block (4 lanes x 4 columns of code + 128) meets the codes of its columns. A struct has:
// - kStepBytes: codes of four columns.
// - Constants, Block, Inputs: what is made once (`offset` takes out that of the stored codes), of a
//   block, and of the codes.
// - Sum, Begin, Accumulate, Finish: the running sums, lane = row of the cache or column of a value.
//   `start` is Constants::offset * sum of the codes in every lane.

// Widened to 16 bits: exact everywhere.
struct WideCodes {
  static constexpr size_t kStepBytes = 8;
  using U16x8 = hn::FixedTag<uint16_t, 8>;
  using VecU16 = hn::Vec<U16x8>;
  struct Constants {
    alignas(16) static constexpr uint16_t kMask[8] = {0xFF, 0xFF, 0xFF, 0xFF,
                                                      0xFF, 0xFF, 0xFF, 0xFF};
    explicit Constants(DotForm /*form*/) {}
    static constexpr int32_t offset = -kInt8Offset;
    VecU16 mask = LoadedConstant(U16x8(), kMask);
  };
  struct Block {
    VecI16 even, odd;
    HWY_INLINE Block(const uint8_t* at, const Constants& constants) {
      const VecU16 pairs = hn::BitCast(U16x8(), hn::Load(U8x16(), at));
      even = hn::BitCast(I16x8(), hn::And(pairs, constants.mask));
      odd = hn::BitCast(I16x8(), hn::ShiftRight<8>(pairs));
    }
  };
  struct Inputs {
    VecI16 even, odd;
    HWY_INLINE explicit Inputs(const uint8_t* codes)
        : even(SplatWord(I16x8(), codes)), odd(SplatWord(I16x8(), codes + 4)) {}
  };
  using Sum = VecI32;
  static HWY_INLINE Sum Begin(VecI32 start) { return start; }
  static HWY_INLINE Sum Accumulate(const Block& block, const Inputs& x, Sum sum) {
    sum = hn::Add(sum, hn::WidenMulPairwiseAdd(I32x4(), block.even, x.even));
    return hn::Add(sum, hn::WidenMulPairwiseAdd(I32x4(), block.odd, x.odd));
  }
  static HWY_INLINE VecI32 Finish(Sum sum) { return sum; }
};

#if HEADLIGHT_HAS_DOT4

// Blocks as second operand of a byte dot, as what it reads there: unsigned as they are stored, or
// signed, without their offset. In WASM both are the same instruction, and one kernel serves both;
// natively they are stand-ins of their own.
template <bool kReadsSigned>
struct ByteDot {
  struct Constants {
    explicit Constants(DotForm form)
        : offset(form == DotForm::kSigned ? 0 : -kInt8Offset),
          flip(hn::Set(U8x16(), static_cast<uint8_t>(kInt8Offset + offset))) {}
    int32_t offset;
    hn::Vec<U8x16> flip;
  };
  struct Block {
    VecI8 bytes;
    HWY_INLINE Block(const uint8_t* at, const Constants& constants)
        : bytes(hn::BitCast(I8x16(), hn::Xor(hn::Load(U8x16(), at), constants.flip))) {}
  };
  static HWY_INLINE VecI32 Dot(VecI8 x, VecI8 block, VecI32 sum) {
    return kReadsSigned ? SignedDot4(x, block, sum) : UnsignedDot4(x, block, sum);
  }
};

// Codes of a query, one byte each.
template <class Base>
struct QueryCodes : Base {
  static constexpr size_t kStepBytes = 4;
  struct Inputs {
    VecI8 columns;
    HWY_INLINE explicit Inputs(const uint8_t* codes) : columns(SplatWord(I8x16(), codes)) {}
  };
  using Sum = VecI32;
  static HWY_INLINE Sum Begin(VecI32 start) { return start; }
  static HWY_INLINE Sum Accumulate(const typename Base::Block& block, const Inputs& x, Sum sum) {
    return Base::Dot(x.columns, block.bytes, sum);
  }
  static HWY_INLINE VecI32 Finish(Sum sum) { return sum; }
};

// Codes of weights, 14 bits: the upper seven of four keys, then the lower seven.
template <class Base>
struct WeightCodes : Base {
  static constexpr size_t kStepBytes = 8;
  struct Inputs {
    VecI8 high, low;
    HWY_INLINE explicit Inputs(const uint8_t* codes)
        : high(SplatWord(I8x16(), codes)), low(SplatWord(I8x16(), codes + 4)) {}
  };
  struct Sum {
    VecI32 high, low;
  };
  static HWY_INLINE Sum Begin(VecI32 start) { return {hn::Zero(I32x4()), start}; }
  static HWY_INLINE Sum Accumulate(const typename Base::Block& block, const Inputs& x, Sum sum) {
    return {Base::Dot(x.high, block.bytes, sum.high), Base::Dot(x.low, block.bytes, sum.low)};
  }
  static HWY_INLINE VecI32 Finish(Sum sum) { return hn::Add(hn::ShiftLeft<7>(sum.high), sum.low); }
};

#endif  // HEADLIGHT_HAS_DOT4

// kRows rows against kBlocks blocks, the first n_blocks of which are there; the others read the
// last one again and are not stored.
template <class Dot, size_t kRows, size_t kBlocks>
HWY_INLINE void RunTile(const CodeProduct& product, size_t block, size_t n_blocks,
                        const typename Dot::Constants& constants) {
  constexpr F32x4 kF32;
  typename Dot::Sum sums[kRows][kBlocks];
  for (size_t r = 0; r < kRows; ++r) {
    const VecI32 start = hn::Set(I32x4(), product.rows[r].sum * constants.offset);
    for (auto& sum : sums[r]) sum = Dot::Begin(start);
  }
  const uint8_t* blocks[kBlocks];
  for (size_t b = 0; b < kBlocks; ++b) {
    blocks[b] = product.blocks + (block + std::min(b, n_blocks - 1)) * product.block_stride;
  }
  const uint8_t* codes[kRows];
  for (size_t r = 0; r < kRows; ++r) codes[r] = product.codes + r * product.codes_stride;
  size_t offset = 0;
  for (size_t step = 0; step < product.n_steps; ++step, offset += product.step_stride) {
    for (size_t b = 0; b < kBlocks; ++b) {
      const typename Dot::Block operand(blocks[b] + offset, constants);
      for (size_t r = 0; r < kRows; ++r) {
        const typename Dot::Inputs inputs(codes[r] + step * Dot::kStepBytes);
        sums[r][b] = Dot::Accumulate(operand, inputs, sums[r][b]);
      }
    }
  }
  for (size_t b = 0; b < std::min(kBlocks, n_blocks); ++b) {
    const size_t first = 4 * (block + b);
    const VecF32 lanes = product.block_scales == nullptr
                             ? hn::Set(kF32, 1.0f)
                             : hn::LoadU(kF32, product.block_scales + first);
    for (size_t r = 0; r < kRows; ++r) {
      const VecF32 factor = hn::Mul(lanes, hn::Set(kF32, product.rows[r].scale));
      const VecF32 sum = hn::ConvertTo(kF32, Dot::Finish(sums[r][b]));
      hn::StoreU(hn::Mul(sum, factor), kF32, product.out + r * product.out_stride + first);
    }
  }
}

template <class Dot, size_t kRows>
HWY_NOINLINE void RunRows(DotForm form, const CodeProduct& product) {
  constexpr size_t kBlocks = kTileBlocks[kRows];
  const typename Dot::Constants constants(form);
  for (size_t block = 0; block < product.n_blocks; block += kBlocks) {
    RunTile<Dot, kRows, kBlocks>(product, block, product.n_blocks - block, constants);
  }
}

template <class Dot>
void Run(DotForm form, size_t n_rows, const CodeProduct& product) {
  static_assert(kMaxCodeRows == 3);
  switch (n_rows) {
    case 1:
      return RunRows<Dot, 1>(form, product);
    case 2:
      return RunRows<Dot, 2>(form, product);
    default:
      return RunRows<Dot, 3>(form, product);
  }
}

// codes (int32, in range) of four columns -> what Inputs reads, at `to`.
HWY_INLINE void StoreWide(VecI32 codes, uint8_t* to) {
  const hn::FixedTag<int16_t, 4> halves;
  const VecI32 even_first = hn::Per4LaneBlockShuffle<3, 1, 2, 0>(codes);
  hn::StoreU(hn::DemoteTo(halves, even_first), halves, reinterpret_cast<int16_t*>(to));
}
HWY_INLINE void StoreBytes(VecI32 codes, uint8_t* to) {
  const hn::FixedTag<int8_t, 4> bytes;
  hn::StoreU(hn::DemoteTo(bytes, codes), bytes, reinterpret_cast<int8_t*>(to));
}

}  // namespace

size_t CodeStepBytes(DotForm form, CodeOperand operand) noexcept {
  return operand == CodeOperand::kQuery && !IsWide(form) ? 4 : 8;
}

CodedRow EncodeQuery(DotForm form, float* x, size_t d) noexcept {
  constexpr I32x4 kI32;
  const float max = MaxMagnitude(x, d);
  const bool is_zero = !(max >= kSmallestMax);
  const float inverse = is_zero ? 0.0f : kMaxInt8Code / max;
  const bool is_wide = IsWide(form);
  const size_t step_bytes = CodeStepBytes(form, CodeOperand::kQuery);
  uint8_t* to = reinterpret_cast<uint8_t*>(x);
  VecI32 sum = hn::Zero(kI32);
  size_t i = 0;
  for (; i < d; i += 4, to += step_bytes) {
    const VecI32 codes = Int8Codes(x + i, d - i, inverse);
    sum = hn::Add(sum, codes);
    is_wide ? StoreWide(codes, to) : StoreBytes(codes, to);
  }
  for (; i % 16 != 0; i += 4, to += step_bytes) std::memset(to, 0, step_bytes);
  return {is_zero ? 0.0f : max / kMaxInt8Code, hn::ReduceSum(kI32, sum)};
}

CodedRow EncodeWeights(DotForm form, const float* value_scales, float* weights,
                       size_t n_vecs) noexcept {
  constexpr F32x4 kF32;
  constexpr I32x4 kI32;
  VecF32 largest = hn::Zero(kF32);
  for (size_t i = 0; i < 4 * n_vecs; i += 4) {
    const VecF32 folded = hn::Mul(hn::Load(kF32, weights + i), hn::LoadU(kF32, value_scales + i));
    largest = hn::Max(largest, folded);
    hn::Store(folded, kF32, weights + i);
  }
  const float max = hn::ReduceMax(kF32, largest);
  const bool is_zero = !(max >= kSmallestMax);
  const VecF32 inverse = hn::Set(kF32, is_zero ? 0.0f : kMaxWeightCode / max);
  const bool is_wide = IsWide(form);
  uint8_t* to = reinterpret_cast<uint8_t*>(weights);
  VecI32 sum = hn::Zero(kI32);
  for (size_t i = 0; i < 4 * n_vecs; i += 4, to += 8) {
    const VecI32 codes = NearestInts(hn::Mul(hn::Load(kF32, weights + i), inverse));
    sum = hn::Add(sum, codes);
    if (is_wide) {
      StoreWide(codes, to);
    } else {
      StoreBytes(hn::ShiftRight<7>(codes), to);
      StoreBytes(hn::And(codes, hn::Set(kI32, 127)), to + 4);
    }
  }
  // NaN has no code and rounds to anything: the sum stays within that of numbers all the same.
  const int32_t most = static_cast<int32_t>(kMaxWeightCode) * static_cast<int32_t>(4 * n_vecs);
  return {is_zero ? 0.0f : max / kMaxWeightCode, std::clamp(hn::ReduceSum(kI32, sum), -most, most)};
}

void MultiplyCodes(DotForm form, CodeOperand operand, size_t n_rows,
                   const CodeProduct& product) noexcept {
  if (IsWide(form)) return Run<WideCodes>(form, n_rows, product);
#if HEADLIGHT_HAS_DOT4
  constexpr bool kCanReadSigned = HWY_TARGET != HWY_WASM;
  const bool is_query = operand == CodeOperand::kQuery;
  if (kCanReadSigned && form == DotForm::kSigned) {
    using Dot = ByteDot<kCanReadSigned>;
    is_query ? Run<QueryCodes<Dot>>(form, n_rows, product)
             : Run<WeightCodes<Dot>>(form, n_rows, product);
  } else {
    using Dot = ByteDot<false>;
    is_query ? Run<QueryCodes<Dot>>(form, n_rows, product)
             : Run<WeightCodes<Dot>>(form, n_rows, product);
  }
#else
  static_cast<void>(operand);
#endif
}

}  // namespace headlight
