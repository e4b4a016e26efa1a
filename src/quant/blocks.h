// The block formats of GGUF files, one block at a time, scalar: the definition that packed weights
// and kernels are tested against. Decoding is bit-exact with llama.cpp. Not fast; not for weights
// on their way to the kernels (quant/packed.h).
#ifndef HEADLIGHT_QUANT_BLOCKS_H_
#define HEADLIGHT_QUANT_BLOCKS_H_

#include <cstdint>

#include "base/dtype.h"

namespace headlight {

// out[n_block] float32 = the block's values. block: FindTensorType(type)->block_bytes bytes, any
// alignment.
void DecodeBlock(TensorType type, const uint8_t* block, float* out) noexcept;

// The nearest block of the format to x[n_block]; Q8_0: scale max|x|/127, halves away from zero;
// Q4_0: scale such that the value of largest magnitude becomes code 0 (so scales can be negative).
// F16, BF16: nearest even. x must be finite. Other types are read only: block stays as it is.
void EncodeBlock(TensorType type, const float* x, uint8_t* block) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_QUANT_BLOCKS_H_
