#include "kernels/code_tile.h"

#include <type_traits>
#include <utility>

#include "kernels/code_dots-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/tiles.h"

namespace headlight {
namespace {

// Of 2x3, 2x4, 3x2, 3x3 and 1x6 the best or equal to it in Chromium, for 8 and for 4 bits
// (tests/bench/README.md).
constexpr size_t kTileGroups = 2;
constexpr size_t kTileTokens = 4;
// The same for one token: a strip, whose groups share what is made of the activations.
constexpr size_t kVectorGroups = kStripGroups;

// Scales as the strips of kP8 and kP4 have them: for one token, read where they are.
struct F16Scales {
  static constexpr size_t kGroupBytes = kScaleBlockBytes;
  F16Constants constants;
  HWY_INLINE VecF32 Load(const uint8_t* at) const { return LoadF16x4(at, constants); }
};

// Scales made floats once for all tokens.
struct F32Scales {
  static constexpr size_t kGroupBytes = kRowGroup * sizeof(float);
  HWY_INLINE VecF32 Load(const uint8_t* at) const {
    return hn::Load(F32x4(), reinterpret_cast<const float*>(at));
  }
};

// One block of a tile.
template <typename Activation, size_t kTokens>
struct Block {
  const uint8_t* codes;  // first group's
  const Activation* x[kTokens];
  const int16_t* multipliers;  // first token's
  size_t multiplier_stride;
  size_t never;  // of the tile
};

// out += the exact integer sums of one part of a block, lane = row. Tokens are the outer index
// everywhere: an input is made, used for all groups and dropped, while the weights of a step stay
// in registers.
template <class Dot, size_t kPart, size_t kGroups, size_t kTokens>
HWY_INLINE void AddPart(const Block<typename Dot::Activation, kTokens>& block,
                        const typename Dot::Constants& constants, VecI32 (&out)[kTokens][kGroups]) {
  typename Dot::Sum sums[kTokens][kGroups];
  for (auto& token : sums) {
    for (auto& sum : token) sum = Dot::Begin();
  }
  const auto step = [&](size_t s) __attribute__((always_inline)) {
    for (size_t t = 0; t < kTokens; ++t) {
      const typename Dot::template Inputs<kPart> inputs(block.x[t], s);
      for (size_t g = 0; g < kGroups; ++g) {
        const typename Dot::template Weights<kPart> weights(block.codes + g * Dot::kBlockBytes, s,
                                                            constants);
        sums[t][g] = Dot::Accumulate(weights, inputs, sums[t][g]);
      }
    }
    return s != block.never;
  };
  [&]<size_t... s>(std::index_sequence<s...>) __attribute__((always_inline)) {
    static_cast<void>((step(s) && ...));
  }(std::make_index_sequence<Dot::kPartSteps>());
  for (size_t t = 0; t < kTokens; ++t) {
    const int16_t* multipliers = block.multipliers + t * block.multiplier_stride;
    for (size_t g = 0; g < kGroups; ++g) {
      out[t][g] = hn::Add(out[t][g], Dot::template Finish<kPart>(sums[t][g], multipliers));
    }
  }
}

// out = the exact integer sums of one block.
template <class Dot, size_t kGroups, size_t kTokens>
HWY_INLINE void BlockSums(const CodeTile& tile, const uint8_t* codes, size_t index,
                          const typename Dot::Constants& constants,
                          VecI32 (&out)[kTokens][kGroups]) {
  using Activation = typename Dot::Activation;
  const auto* x = reinterpret_cast<const Activation*>(tile.x);
  Block<Activation, kTokens> block;
  block.codes = PinPointer(codes);
  for (size_t t = 0; t < kTokens; ++t) {
    block.x[t] = PinPointer(x + (t * tile.token_stride + index) * kBlockCols);
    const VecI32 start = hn::Set(I32x4(), tile.sums[t * tile.token_stride + index] * tile.offset);
    for (size_t g = 0; g < kGroups; ++g) out[t][g] = start;
  }
  block.multipliers = tile.multipliers + index * kBlockHalves;
  block.multiplier_stride = tile.token_stride * kBlockHalves;
  block.never = tile.never;
  AddPart<Dot, 0>(block, constants, out);
  if constexpr (Dot::kParts == 2) AddPart<Dot, 1>(block, constants, out);
}

template <class Dot, class Scales, size_t kGroups, size_t kTokens>
HWY_NOINLINE void RunTiles(const CodeTile& tile) {
  const F32x4 df;
  const typename Dot::Constants constants;
  const Scales scales;
  const uint8_t* codes = tile.codes;
  const uint8_t* scales_at = tile.w_scales;
  float* y = tile.y;
  for (size_t left = tile.n_tiles; left != 0; --left, y += kGroups * kRowGroup) {
    VecF32 totals[kTokens][kGroups];
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t g = 0; g < kGroups; ++g) {
        const float* begin = y + t * tile.y_stride + g * kRowGroup;
        totals[t][g] = tile.is_first ? hn::Zero(df) : hn::LoadU(df, begin);
      }
    }
    for (size_t block = 0; block < tile.n_blocks; ++block) {
      VecI32 sums[kTokens][kGroups];
      BlockSums<Dot>(tile, codes, block, constants, sums);
      VecF32 w_scales[kGroups];
      for (size_t g = 0; g < kGroups; ++g) {
        w_scales[g] = scales.Load(scales_at + g * Scales::kGroupBytes);
      }
      for (size_t t = 0; t < kTokens; ++t) {
        const VecF32 x_scale = hn::Set(df, tile.scales[t * tile.token_stride + block]);
        for (size_t g = 0; g < kGroups; ++g) {
          const VecF32 scale = hn::Mul(w_scales[g], x_scale);
          totals[t][g] = hn::Add(totals[t][g], hn::Mul(hn::ConvertTo(df, sums[t][g]), scale));
        }
      }
      codes += tile.code_stride;
      scales_at += tile.scale_stride;
    }
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t g = 0; g < kGroups; ++g) {
        hn::StoreU(totals[t][g], df, y + t * tile.y_stride + g * kRowGroup);
      }
    }
  }
}

// Tokens that are left over go one by one: tiles of two and three are 21 kB of module for a fifth
// of the time of so few.
template <class Dot, class Scales, size_t kGroups, size_t kTokens>
constexpr CodeKernel KernelOf() {
  static_assert(kGroups <= kMaxTileGroups && kTokens <= kMaxTileTokens);
  return {&RunTiles<Dot, Scales, kGroups, kTokens>,
          &RunTiles<Dot, Scales, kGroups, 1>,
          &RunTiles<Dot, Scales, 1, 1>,
          kGroups,
          kTokens,
          sizeof(typename Dot::Activation),
          Dot::kOffset,
          std::is_same_v<Scales, F16Scales> ? WidenedPart::kNothing
          : std::is_same_v<Dot, PanelWords> ? WidenedPart::kAll
                                            : WidenedPart::kScales};
}

// One token.
template <class Dot>
constexpr CodeKernel kVector = KernelOf<Dot, F16Scales, kVectorGroups, 1>();
template <class Dot>
constexpr CodeKernel kWidenedVector = KernelOf<Dot, F32Scales, kVectorGroups, 1>();
// Several.
template <class Dot>
constexpr CodeKernel kTiles = KernelOf<Dot, F32Scales, kTileGroups, kTileTokens>();

// kP8: VectorDot for one token, TileDot for several.
template <class VectorDot, class TileDot>
const CodeKernel& P8Kernel(bool is_vector) {
  return is_vector ? kVector<VectorDot> : kTiles<TileDot>;
}

// kP4 whose stored codes are the weights but for an offset.
template <class VectorDot, class TileDot>
const CodeKernel& P4Kernel(const PackedShape& shape, bool is_vector) {
  if (!is_vector) return kTiles<TileDot>;
  return ScalesInBlocks(shape) ? kVector<VectorDot> : kWidenedVector<VectorDot>;
}

// Whether dots read the codes as they are stored; else they are widened first, in every form.
bool HasDirectDots(const PackedShape& shape) {
  const CodeValues values = shape.code.values;
  return shape.family == PackedFamily::kP8 ||
         (shape.family == PackedFamily::kP4 &&
          (values == CodeValues::kCentred || values == CodeValues::kUnsigned));
}

}  // namespace

CodeUse CodeUseOf(const PackedShape& shape) noexcept {
  CodeUse use{WordsMixHalves(shape.form), true,
              shape.code.has_mins && shape.code.scales == ScaleKind::kSuper16};
#if HEADLIGHT_HAS_DOT4
  use.wide = shape.form == DotForm::kWide || !HasDirectDots(shape) ||
             (shape.form == DotForm::kSplit && shape.family == PackedFamily::kP8);
#endif
  return use;
}

const CodeKernel& CodeKernelOf(const PackedShape& shape, bool is_vector) noexcept {
  if (!HasDirectDots(shape)) return is_vector ? kWidenedVector<PanelWords> : kTiles<PanelWords>;
  const bool is_p8 = shape.family == PackedFamily::kP8;
#if HEADLIGHT_HAS_DOT4
  switch (shape.form) {
    case DotForm::kUnsigned:
      return is_p8 ? P8Kernel<P8Unsigned, P8Unsigned>(is_vector)
                   : P4Kernel<P4Quads, P4Quads>(shape, is_vector);
    case DotForm::kSigned: {
      // In WASM both meanings are one instruction, so one kernel serves both.
      using Signed = std::conditional_t<HWY_TARGET == HWY_WASM, P8Unsigned, P8Signed>;
      return is_p8 ? P8Kernel<Signed, Signed>(is_vector)
                   : P4Kernel<P4Quads, P4Quads>(shape, is_vector);
    }
    case DotForm::kSplit:
      if (!is_p8) return P4Kernel<P4Pairs, P4Pairs>(shape, is_vector);
      break;
    case DotForm::kWide:
      break;
  }
#endif
  return is_p8 ? P8Kernel<P8Wide, PanelWords>(is_vector)
               : P4Kernel<P4Wide, PanelWords>(shape, is_vector);
}

}  // namespace headlight
