// 8- and 4-bit weights against 8-bit activations. Per output and block of 32 columns: an exact integer sum, times the
// product of the two scales, added to the output's float sum, blocks in order. That sequence is the same in every tile
// shape and form, so an output's bits depend on nothing else.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/code_dots-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/tiles.h"

namespace headlight {
namespace {

// Tile: row groups x tokens whose sums are held in registers together.
constexpr size_t kTileGroups = 2;
constexpr size_t kTileTokens = 4;
// Codes of the tokens that meet a tile of weights while that is in the first-level cache: half of a second-level cache
// of 256 KiB, the smallest about.
constexpr size_t kTokenBlockBytes = 128 * 1024;

struct Tile {
  const uint8_t* group;  // first group's bytes
  size_t group_bytes;
  size_t n_blocks;
  const int8_t* x;      // first token's codes
  const float* scales;  // first token's scales
  const int32_t* sums;  // first token's sums
  int32_t offset;       // sums' factor
  float* y;             // first token, first row
  size_t y_stride;
  size_t n_rows;        // rows from y on, at least one
};

template <class Dot, size_t kGroups, size_t kTokens>
HWY_INLINE void BlockSums(const Tile& tile, size_t block, VecI32 (&sums)[kGroups][kTokens]) {
  const uint8_t* codes = tile.group + CodesOffset(tile.n_blocks) + block * Dot::kBlockBytes;
  const int8_t* x = tile.x + block * kBlockCols;
  const size_t x_stride = tile.n_blocks * kBlockCols;
  for (size_t t = 0; t < kTokens; ++t) {
    const VecI32 start = hn::Set(I32x4(), tile.sums[t * tile.n_blocks + block] * tile.offset);
    for (size_t g = 0; g < kGroups; ++g) sums[g][t] = start;
  }
  for (size_t v = 0; v < Dot::kBlockBytes / kVectorBytes; ++v) {
    for (size_t t = 0; t < kTokens; ++t) {
      const typename Dot::Inputs inputs(x + t * x_stride + v * kStepCols);
      for (size_t g = 0; g < kGroups; ++g) {
        const typename Dot::Weights weights(codes + g * tile.group_bytes + v * kVectorBytes);
        sums[g][t] = Dot::Accumulate(weights, inputs, sums[g][t]);
      }
    }
  }
}

template <class Dot, size_t kGroups, size_t kTokens>
void RunTile(const Tile& tile) {
  const F32x4 df;
  VecF32 totals[kGroups][kTokens];
  for (auto& group : totals) {
    for (VecF32& total : group) total = hn::Zero(df);
  }
  for (size_t block = 0; block < tile.n_blocks; ++block) {
    VecI32 sums[kGroups][kTokens];
    BlockSums<Dot>(tile, block, sums);
    for (size_t g = 0; g < kGroups; ++g) {
      const VecF32 w_scale = LoadF16x4(tile.group + g * tile.group_bytes + block * kScaleBlockBytes);
      for (size_t t = 0; t < kTokens; ++t) {
        const VecF32 x_scale = hn::Set(df, tile.scales[t * tile.n_blocks + block]);
        const VecF32 scaled = hn::Mul(hn::ConvertTo(df, sums[g][t]), hn::Mul(w_scale, x_scale));
        totals[g][t] = hn::Add(totals[g][t], scaled);
      }
    }
  }
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t g = 0; g < kGroups; ++g) {
      const size_t row = g * kRowGroup;
      StoreRows(totals[g][t], tile.y + t * tile.y_stride + row, tile.n_rows - row);
    }
  }
}

template <class Dot, size_t kGroups>
void RunTokens(const Tile& tile, size_t n_tokens) {
  switch (n_tokens) {
    case 1:
      return RunTile<Dot, kGroups, 1>(tile);
    case 2:
      return RunTile<Dot, kGroups, 2>(tile);
    case 3:
      return RunTile<Dot, kGroups, 3>(tile);
    default:
      return RunTile<Dot, kGroups, kTileTokens>(tile);
  }
}

template <class Dot>
void RunRange(const RowRange& range) {
  const PackedShape& shape = range.w->shape;
  const Activations& x = *range.x;
  const size_t token_bytes = shape.n_blocks * kBlockCols;
  const size_t token_block =
      std::max(RoundUp(kTokenBlockBytes / token_bytes, kTileTokens), kTileTokens);
  Tile tile{};
  tile.group_bytes = GroupBytes(shape.family, shape.n_blocks);
  tile.n_blocks = shape.n_blocks;
  tile.offset = Dot::Offset(shape.form);
  tile.y_stride = range.y_stride;
  for (size_t block_begin = 0; block_begin < x.n_tokens(); block_begin += token_block) {
    const size_t block_end = std::min(block_begin + token_block, x.n_tokens());
    for (size_t group = range.group_begin; group < range.group_end; group += kTileGroups) {
      const size_t row = group * kRowGroup;
      tile.group = range.w->data + group * tile.group_bytes;
      tile.n_rows = shape.n_rows - row;
      for (size_t token = block_begin; token < block_end; token += kTileTokens) {
        tile.x = x.codes(token);
        tile.scales = x.scales(token);
        tile.sums = x.sums(token);
        tile.y = range.y + token * range.y_stride + row;
        const size_t n_tokens = std::min(kTileTokens, block_end - token);
        if (range.group_end - group >= kTileGroups) {
          RunTokens<Dot, kTileGroups>(tile, n_tokens);
        } else {
          RunTokens<Dot, 1>(tile, n_tokens);
        }
      }
    }
  }
}

}  // namespace

void MatMulCodes(const RowRange& range) noexcept {
  const PackedShape& shape = range.w->shape;
  const bool is_p8 = shape.family == PackedFamily::kP8;
#if defined(__wasm_relaxed_simd__)
  if (shape.form == DotForm::kUnsigned || shape.form == DotForm::kSigned) {
    return is_p8 ? RunRange<P8Relaxed>(range) : RunRange<P4Relaxed>(range);
  }
  if (shape.form == DotForm::kSplit && !is_p8) return RunRange<P4Relaxed>(range);
#endif
  return is_p8 ? RunRange<P8Wide>(range) : RunRange<P4Wide>(range);
}

}  // namespace headlight
