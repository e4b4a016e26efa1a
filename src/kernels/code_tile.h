// Between the walk over a matrix with codes (matmul_codes.cc) and the kernels of its tiles
// (code_tile.cc): what a tile is, and which kernels serve a shape. Not for use outside kernels/.
#ifndef HEADLIGHT_KERNELS_CODE_TILE_H_
#define HEADLIGHT_KERNELS_CODE_TILE_H_

#include <cstddef>
#include <cstdint>

#include "quant/packed.h"

namespace headlight {

inline constexpr size_t kMaxTileGroups = 4;
inline constexpr size_t kMaxTileTokens = 4;

// Row groups x tokens whose sums are held in registers together.
struct CodeTile {
  const uint8_t* w_scales;  // first group's, of the first block
  const uint8_t* codes;     // likewise
  size_t scale_stride;      // bytes from a block's to the next one's
  size_t code_stride;
  size_t n_blocks;
  // Tiles one below the other: the next one's weights follow this one's last block, strides apart
  // like its blocks, and its rows follow in y. A matrix in memory is one stream then, which calls
  // between strips would interrupt (6 % of a token's time).
  size_t n_tiles;
  size_t token_stride;         // blocks from a token to the next
  const uint8_t* x;            // first token's codes, of the kernel's code_bytes
  const float* scales;         // first token's scales
  const int16_t* multipliers;  // first token's multipliers
  const int32_t* sums;         // first token's sums
  float* y;                    // first token, first row: all rows of all groups are there
  size_t y_stride;
  int32_t offset;  // of the stored codes: a factor of the activations' sums
  bool is_first;   // else the tile goes on with the sums in y
  // kBlockCols, a step that no block has. Read from memory, so that neither LLVM nor the engine
  // knows that the kernel never leaves a block early; the exits keep each step's work in its place.
  // Without them every sum's whole chain is moved to the block's end, all operands stay alive until
  // then, and the engine spills them (62 against 37 Gop/s).
  size_t never;
};

// What is made of the weights before tiles meet them.
enum class WidenedPart {
  kNothing,  // codes and f16 scales are read where they are
  kScales,   // scales are floats of a panel
  kAll,      // codes are 16-bit integers of a panel too
};

// The kernels of a range, called through pointers: each stays a function of its own, which an
// engine's register allocation handles better than all of them inlined into one.
struct CodeKernel {
  using Run = void (*)(const CodeTile&);
  Run tokens;  // n_groups x n_tokens
  Run token;   // n_groups x 1
  Run one;     // 1 x 1, for the groups of a strip that are left over
  size_t n_groups;
  size_t n_tokens;
  size_t code_bytes;  // of an activation's code: Activations::codes or wide_codes
  int32_t offset;     // CodeTile::offset of centred codes
  WidenedPart widened;
};

// For a matrix with codes of this shape against one token, or several.
const CodeKernel& CodeKernelOf(const PackedShape& shape, bool is_vector) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_CODE_TILE_H_
