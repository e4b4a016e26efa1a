// A stretch of one row's file blocks on its way into its strip: between the writer (packed.cc) and
// the functions that place the blocks of a type. Not for use outside quant/.
#ifndef HEADLIGHT_QUANT_PACK_RUN_H_
#define HEADLIGHT_QUANT_PACK_RUN_H_

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "quant/packed_layout.h"

namespace headlight {

struct PackRun {
  TensorType type;
  const uint8_t* src;  // n_blocks file blocks
  size_t n_blocks;
  uint8_t* strip;  // the strip's first byte
  StripLayout layout;
  size_t group;        // of the strip
  size_t lane;         // row % kRowGroup
  size_t first_block;  // place of the first block in its row, in file blocks
  DotForm form;
};

// Every type with codes whose strips have a head. Returns whether all scales and minima are finite.
bool PackPlanes(const PackRun& run);

}  // namespace headlight

#endif  // HEADLIGHT_QUANT_PACK_RUN_H_
