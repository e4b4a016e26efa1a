// The arithmetic of the int8 cache, all of it in exact integers: codes of queries against keys, and
// codes of weights against values. Both are the same product over blocks of the cache
// (kv/int8_rows.h), four outputs a block. Every DotForm gives the same integers, and what becomes
// of them is a product or two of floats, so every module gives the same bits.
//
//   query    x[d_qk], already scaled: codes c = round(x 127 / max|x|), scale max|x| / 127
//   score    (sum of c * key code) * key scale * query scale
//   weights  folded with the scales of the values of the same keys, f_j = w_j s_j >= 0: codes
//            c = round(f 16383 / max f) of 14 bits, scale max f / 16383
//   acc      (sum of c * value code) * scale
// Rounding is to nearest even; 14 bits are what two operands of a byte dot hold (7 each), and what
// keeps 256 products of 16 bits inside int32. With 8 bits the weights of a long context's tail
// would all round to zero.
#ifndef HEADLIGHT_ATTENTION_ATTENTION_CODES_H_
#define HEADLIGHT_ATTENTION_ATTENTION_CODES_H_

#include <cstddef>
#include <cstdint>

#include "simd/dot_form.h"

namespace headlight {

inline constexpr float kMaxWeightCode = 16383.0f;

// What codes of a row become floats with, and their sum, which takes out the offset of the stored
// codes.
struct CodedRow {
  float scale;
  int32_t sum;
};

// Which operand the codes are for.
enum class CodeOperand : uint8_t { kQuery, kWeights };

// Bytes of the codes of four columns (or keys).
size_t CodeStepBytes(DotForm form, CodeOperand operand) noexcept;

// x[d] -> codes, in the place of x; x has room for d rounded up to 16 columns of CodeStepBytes a
// four, and those past d become 0. 16-byte aligned.
CodedRow EncodeQuery(DotForm form, float* x, size_t d) noexcept;

// weights[4 n_vecs] >= 0 and the value scales of the same keys -> codes, in the place of weights.
// 16-byte aligned.
CodedRow EncodeWeights(DotForm form, const float* value_scales, float* weights,
                       size_t n_vecs) noexcept;

// A block of the cache: 16 bytes, 4 lanes x 4 columns of codes + 128.
inline constexpr size_t kCodeBlockBytes = 16;
inline constexpr size_t kCodeBlockCols = 4;

// At most this many rows of codes meet each loaded block.
inline constexpr size_t kMaxCodeRows = 3;

// out[row][4 block + lane] = the exact sum over steps and their four columns, times
// block_scales[4 block + lane] (1 if null) and the row's scale.
struct CodeProduct {
  const uint8_t* blocks;  // the first one
  size_t block_stride;    // bytes from a block to the next one, and from a step's to the next one's
  size_t step_stride;
  size_t n_blocks;
  size_t n_steps;
  const uint8_t* codes;  // [n_rows, n_steps, CodeStepBytes], rows codes_stride bytes apart
  size_t codes_stride;
  const CodedRow* rows;       // [n_rows]
  const float* block_scales;  // [n_blocks, 4] or null
  float* out;                 // [n_rows, 4 n_blocks], rows out_stride floats apart, 16-byte aligned
  size_t out_stride;
};

// n_rows 1..kMaxCodeRows.
void MultiplyCodes(DotForm form, CodeOperand operand, size_t n_rows,
                   const CodeProduct& product) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_ATTENTION_CODES_H_
