// Weights with codes against 8-bit activations. Per output and block of 32 columns: an exact
// integer sum (the halves' multipliers, and factors of 16 columns, included), times the product of
// the two scales, added to the output's float sum, blocks in order. Where weights have minima, what
// they take away from the output comes before (mins.h). That sequence is the same in every tile
// shape and form, so an output's bits depend on nothing else.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/code_dots-inl.h"
#include "kernels/mins.h"
#include "kernels/rows-inl.h"
#include "kernels/tiles.h"
#include "kernels/widen.h"
#include "simd/part.h"

namespace headlight {
namespace {

// Tile: row groups x tokens whose sums are held in registers together. Of 2x3, 2x4, 3x2, 3x3 and
// 1x6 the best or equal to it in Chromium, for 8 and for 4 bits (tests/bench/README.md).
constexpr size_t kTileGroups = 2;
constexpr size_t kTileTokens = 4;
// The same for one token: a strip, whose groups share what is made of the activations.
constexpr size_t kVectorGroups = kStripGroups;
// Codes of the tokens that meet a tile of weights while that is in the first-level cache: half of a
// second-level cache of 256 KiB, the smallest about.
constexpr size_t kTokenBlockBytes = 128 * 1024;
// Blocks of a panel, of all its groups: 12 KiB of widened codes, which stay in a first-level cache
// of 32 KiB beside the tokens of a tile.
constexpr size_t kPanelGroupBlocks = 48;

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

template <typename Activation>
struct Tile {
  const uint8_t* w_scales;  // first group's, of the first block
  const uint8_t* codes;     // likewise
  size_t scale_stride;      // bytes from a block's to the next one's
  size_t code_stride;
  size_t n_blocks;
  size_t token_stride;         // blocks from a token to the next
  const Activation* x;         // first token's codes
  const float* scales;         // first token's scales
  const int16_t* multipliers;  // first token's multipliers
  const int32_t* sums;         // first token's sums
  float* y;                    // first token, first row
  size_t y_stride;
  size_t n_rows;   // rows from y on, at least one
  int32_t offset;  // Dot's kOffset, 0 for codes that have none
  bool is_first;   // else the tile goes on with the sums in y
  // kBlockCols, a step that no block has. Read from memory, so that neither LLVM nor the engine
  // knows that the kernel never leaves a block early; the exits keep each step's work in its place.
  // Without them every sum's whole chain is moved to the block's end, all operands stay alive until
  // then, and the engine spills them (62 against 37 Gop/s).
  size_t never;
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
HWY_INLINE void BlockSums(const Tile<typename Dot::Activation>& tile, size_t index,
                          const typename Dot::Constants& constants,
                          VecI32 (&out)[kTokens][kGroups]) {
  Block<typename Dot::Activation, kTokens> block;
  block.codes = PinPointer(tile.codes + index * tile.code_stride);
  for (size_t t = 0; t < kTokens; ++t) {
    block.x[t] = PinPointer(tile.x + (t * tile.token_stride + index) * kBlockCols);
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
HWY_NOINLINE void RunTile(const Tile<typename Dot::Activation>& tile) {
  const F32x4 df;
  const typename Dot::Constants constants;
  const Scales scales;
  VecF32 totals[kTokens][kGroups];
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t g = 0; g < kGroups; ++g) {
      const size_t row = g * kRowGroup;
      const float* y = tile.y + t * tile.y_stride + row;
      totals[t][g] =
          tile.is_first || row >= tile.n_rows ? hn::Zero(df) : LoadPart(y, tile.n_rows - row);
    }
  }
  for (size_t block = 0; block < tile.n_blocks; ++block) {
    VecI32 sums[kTokens][kGroups];
    BlockSums<Dot>(tile, block, constants, sums);
    VecF32 w_scales[kGroups];
    const uint8_t* at = tile.w_scales + block * tile.scale_stride;
    for (size_t g = 0; g < kGroups; ++g) w_scales[g] = scales.Load(at + g * Scales::kGroupBytes);
    for (size_t t = 0; t < kTokens; ++t) {
      const VecF32 x_scale = hn::Set(df, tile.scales[t * tile.token_stride + block]);
      for (size_t g = 0; g < kGroups; ++g) {
        const VecF32 scaled = hn::Mul(hn::ConvertTo(df, sums[t][g]), hn::Mul(w_scales[g], x_scale));
        totals[t][g] = hn::Add(totals[t][g], scaled);
      }
    }
  }
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t g = 0; g < kGroups; ++g) {
      const size_t row = g * kRowGroup;
      if (row < tile.n_rows) {
        StorePart(totals[t][g], tile.y + t * tile.y_stride + row, tile.n_rows - row);
      }
    }
  }
}

// One tile's row groups against n_tokens tokens: kTokens at a time, and one by one those that are
// left (tiles of two and three tokens are 21 kB of module for a fifth of the time of so few).
// Called through a table: each stays a function of its own, which an engine's register allocation
// handles better than all of them inlined into one.
template <class Dot, class Scales, size_t kGroups, size_t kTokens>
void RunTokens(Tile<typename Dot::Activation> tile, size_t n_tokens) {
  static constexpr std::array kTiles = {&RunTile<Dot, Scales, kGroups, 1>,
                                        &RunTile<Dot, Scales, kGroups, kTokens>};
  while (n_tokens != 0) {
    const bool is_whole = n_tokens >= kTokens;
    kTiles[is_whole ? 1 : 0](tile);
    const size_t n = is_whole ? kTokens : 1;
    const size_t n_blocks = n * tile.token_stride;
    tile.x += n_blocks * kBlockCols;
    tile.scales += n_blocks;
    tile.multipliers += n_blocks * kBlockHalves;
    tile.sums += n_blocks;
    tile.y += n * tile.y_stride;
    n_tokens -= n;
  }
}

template <typename Activation>
const Activation* Codes(const Activations& x, size_t token) {
  if constexpr (sizeof(Activation) == sizeof(int8_t)) {
    return x.codes(token);
  } else {
    return x.wide_codes(token);
  }
}

// What a tile of n_groups adjacent groups reads of blocks [begin, begin + n_blocks).
struct PanelOut {
  float* scales;   // [n_blocks][n_groups][4]
  uint8_t* codes;  // [n_blocks][n_groups][kPanelBlockBytes], or null: they stay where they are
};

void FillPanel(CodeGroup from, size_t n_groups, size_t begin, size_t n_blocks,
               const PanelOut& to) noexcept {
  if (to.codes != nullptr) WidenCodes(from, n_groups, begin, n_blocks, to.codes);
  for (size_t g = 0; g < n_groups; ++g, ++from.group) {
    WidenScales(from, begin, n_blocks, to.scales + g * kRowGroup, n_groups * kRowGroup);
  }
}

// One tile of row groups by way of panels.
template <class Dot, size_t kGroups, size_t kTokens>
void RunPanels(const CodeGroup& groups, Tile<typename Dot::Activation> tile, size_t n_tokens) {
  constexpr bool kHasCodes = std::is_same_v<Dot, PanelWords>;
  constexpr size_t kBlocks = kPanelGroupBlocks / kGroups;
  alignas(kAlignment) float scales[kPanelGroupBlocks * kRowGroup];
  alignas(kAlignment) uint8_t codes[kHasCodes ? kPanelGroupBlocks * kPanelBlockBytes : 1];
  const size_t n_blocks = groups.shape.n_blocks;
  tile.w_scales = reinterpret_cast<const uint8_t*>(scales);
  tile.scale_stride = kGroups * F32Scales::kGroupBytes;
  tile.code_stride = kHasCodes ? kGroups * kPanelBlockBytes : groups.layout.block_bytes;
  for (size_t begin = 0; begin < n_blocks; begin += kBlocks) {
    tile.n_blocks = std::min(kBlocks, n_blocks - begin);
    FillPanel(groups, kGroups, begin, tile.n_blocks, {scales, kHasCodes ? codes : nullptr});
    tile.codes = kHasCodes ? codes : groups.Codes(begin);
    RunTokens<Dot, F32Scales, kGroups, kTokens>(tile, n_tokens);
    tile.is_first = false;
    tile.x += kBlocks * kBlockCols;
    tile.scales += kBlocks;
    tile.multipliers += kBlocks * kBlockHalves;
    tile.sums += kBlocks;
  }
}

// One tile of row groups.
template <class Dot, class Scales, size_t kGroups, size_t kTokens>
void RunGroups(const CodeGroup& groups, Tile<typename Dot::Activation> tile, size_t n_tokens) {
  if constexpr (std::is_same_v<Scales, F32Scales>) {
    RunPanels<Dot, kGroups, kTokens>(groups, tile, n_tokens);
  } else {
    tile.codes = groups.Codes(0);
    tile.code_stride = tile.scale_stride = groups.layout.block_bytes;
    tile.w_scales = groups.strip + groups.group * kScaleBlockBytes;
    RunTokens<Dot, Scales, kGroups, kTokens>(tile, n_tokens);
  }
}

// What turns stored codes into weights, a factor of the activations' sums.
template <class Dot>
int32_t OffsetOf(const PackedShape& shape) {
  const bool is_signed = shape.form == DotForm::kSigned && shape.family == PackedFamily::kP8;
  return is_signed || shape.code.values == CodeValues::kUnsigned ? 0 : Dot::kOffset;
}

// Tiles of kGroups x kTokens over a range; the groups of a strip that are left over go one by one.
template <class Dot, class Scales, size_t kGroups, size_t kTokens>
void RunRange(const RowRange& range) {
  using Activation = typename Dot::Activation;
  const PackedShape& shape = range.w->shape;
  const Activations& x = *range.x;
  const size_t token_bytes = shape.n_blocks * kBlockCols * sizeof(Activation);
  const size_t token_block = std::max(RoundUp(kTokenBlockBytes / token_bytes, kTokens), kTokens);
  Tile<Activation> tile{};
  tile.n_blocks = tile.token_stride = shape.n_blocks;
  tile.y_stride = range.y_stride;
  tile.never = kBlockCols;
  tile.offset = OffsetOf<Dot>(shape);
  tile.is_first = !shape.code.has_mins;
  for (size_t token = 0; token < x.n_tokens(); token += token_block) {
    const size_t n_tokens = std::min(token_block, x.n_tokens() - token);
    tile.x = Codes<Activation>(x, token);
    tile.scales = x.scales(token);
    tile.multipliers = x.multipliers(token);
    tile.sums = x.sums(token);
    for (size_t group = range.group_begin; group < range.group_end;) {
      const CodeGroup groups = {shape, StripOf(shape, group),
                                range.w->data + StripOffset(shape, group), group % kStripGroups};
      const size_t row = group * kRowGroup;
      tile.n_rows = shape.n_rows - row;
      tile.y = range.y + token * range.y_stride + row;
      const size_t n_left =
          std::min(groups.layout.n_groups - groups.group, range.group_end - group);
      const bool is_whole = n_left >= kGroups;
      if (shape.code.has_mins) {
        const MinsOut out = {tile.y, tile.y_stride, tile.n_rows};
        SubtractMins(groups, is_whole ? kGroups : 1, x, {token, n_tokens}, out);
      }
      if (is_whole) {
        RunGroups<Dot, Scales, kGroups, kTokens>(groups, tile, n_tokens);
      } else {
        RunGroups<Dot, Scales, 1, 1>(groups, tile, n_tokens);
      }
      group += is_whole ? kGroups : 1;
    }
  }
}

// One token.
template <class Dot, class Scales>
void RunVector(const RowRange& range) {
  RunRange<Dot, Scales, kVectorGroups, 1>(range);
}

// Several tokens.
template <class Dot>
void RunTiles(const RowRange& range) {
  RunRange<Dot, F32Scales, kTileGroups, kTileTokens>(range);
}

// kP8: VectorDot for one token, TileDot for several.
template <class VectorDot, class TileDot>
void RunP8(const RowRange& range) {
  range.x->n_tokens() == 1 ? RunVector<VectorDot, F16Scales>(range) : RunTiles<TileDot>(range);
}

// kP4 whose stored codes are the weights but for an offset.
template <class VectorDot, class TileDot>
void RunP4(const RowRange& range) {
  if (range.x->n_tokens() != 1) return RunTiles<TileDot>(range);
  ScalesInBlocks(range.w->shape) ? RunVector<VectorDot, F16Scales>(range)
                                 : RunVector<VectorDot, F32Scales>(range);
}

// Whether dots read the codes as they are stored; else they are widened first, in every form.
bool HasDirectDots(const PackedShape& shape) {
  const CodeValues values = shape.code.values;
  return shape.family == PackedFamily::kP8 ||
         (shape.family == PackedFamily::kP4 &&
          (values == CodeValues::kCentred || values == CodeValues::kUnsigned));
}

void RunWidened(const RowRange& range) {
  range.x->n_tokens() == 1 ? RunVector<PanelWords, F32Scales>(range) : RunTiles<PanelWords>(range);
}

}  // namespace

CodeUse CodeUseOf(const PackedShape& shape) noexcept {
  CodeUse use{WordsMixHalves(shape.form), true};
#if HEADLIGHT_HAS_DOT4
  use.wide = shape.form == DotForm::kWide || !HasDirectDots(shape) ||
             (shape.form == DotForm::kSplit && shape.family == PackedFamily::kP8);
#endif
  return use;
}

void MatMulCodes(const RowRange& range) noexcept {
  const PackedShape& shape = range.w->shape;
  if (!HasDirectDots(shape)) return RunWidened(range);
  const bool is_p8 = shape.family == PackedFamily::kP8;
#if HEADLIGHT_HAS_DOT4
  switch (shape.form) {
    case DotForm::kUnsigned:
      return is_p8 ? RunP8<P8Unsigned, P8Unsigned>(range) : RunP4<P4Quads, P4Quads>(range);
    case DotForm::kSigned: {
      // In WASM both meanings are one instruction, so one kernel serves both.
      using Signed = std::conditional_t<HWY_TARGET == HWY_WASM, P8Unsigned, P8Signed>;
      return is_p8 ? RunP8<Signed, Signed>(range) : RunP4<P4Quads, P4Quads>(range);
    }
    case DotForm::kSplit:
      if (!is_p8) return RunP4<P4Pairs, P4Pairs>(range);
      break;
    case DotForm::kWide:
      break;
  }
#endif
  return is_p8 ? RunP8<P8Wide, PanelWords>(range) : RunP4<P4Wide, PanelWords>(range);
}

}  // namespace headlight
