// The coded blocks of GGUF files taken apart: the integer codes of their columns and the numbers
// that scale them, in one form for every type. For the scalar decoder (blocks.h) and the packer;
// no arithmetic on floats here. Layouts: the format's documentation and ggml's block structures;
// MXFP4: the OCP Microscaling specification 1.0.
#ifndef HEADLIGHT_QUANT_FILE_BLOCKS_H_
#define HEADLIGHT_QUANT_FILE_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace headlight {

inline constexpr size_t kMaxFileBlock = 256;  // columns of the longest block
inline constexpr size_t kPartCols = 16;       // columns that share the smallest factors

// What an integer code stands for.
enum class CodeValues : uint8_t {
  kCentred,   // code - 2^(bits - 1)
  kUnsigned,  // code
  kIq4,       // a table of 16 integers that are denser around zero (IQ4_NL, IQ4_XS)
  kE2m1,      // twice a float of 2 exponent bits and 1 mantissa bit (MXFP4)
};

// How the scale of a column comes about.
enum class ScaleKind : uint8_t {
  kF16,      // a binary16 a block of 32 columns
  kE8m0,     // a power of two a block of 32 columns: 2^(byte - 128), half of what OCP writes, since
             // kE2m1 codes are doubled
  kSuper32,  // a binary16 for 256 columns, times an integer for each 32
  kSuper16,  // the same with an integer for each 16
};

struct CodeFormat {
  uint8_t n_bits = 8;  // of a code
  ScaleKind scales = ScaleKind::kF16;
  CodeValues values = CodeValues::kCentred;
  bool has_mins = false;
  bool operator==(const CodeFormat&) const = default;
};

constexpr bool IsSuper(ScaleKind kind) {
  return kind == ScaleKind::kSuper32 || kind == ScaleKind::kSuper16;
}

// weight[column] = (scale * factor[part]) * value(code[column]) - min * min_factor[part], part =
// column / 16, the products of floats in this order; the last term only with has_mins. Types whose
// factors are for 32 columns, or always 1, say so twice for each 32.
struct BlockParts {
  uint8_t codes[kMaxFileBlock];
  int8_t factors[kMaxFileBlock / kPartCols];
  uint8_t min_factors[kMaxFileBlock / kPartCols];
  uint16_t scale;  // binary16, or kE8m0's byte
  uint16_t min;    // binary16; of Q4_1 and Q5_1 the file's with its sign turned
};

// The format of a type with codes (all but F32, F16 and BF16).
const CodeFormat* FindCodeFormat(TensorType type) noexcept;

// Takes apart one block; columns past the block's are left alone. type: one that FindCodeFormat
// knows.
void SplitBlock(TensorType type, const uint8_t* block, BlockParts& parts) noexcept;

// The tables of kIq4 and kE2m1, by code.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};
inline constexpr int8_t kE2m1Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

constexpr int32_t CodeValue(const CodeFormat& format, uint8_t code) {
  switch (format.values) {
    case CodeValues::kCentred:
      return code - (1 << (format.n_bits - 1));
    case CodeValues::kUnsigned:
      return code;
    case CodeValues::kIq4:
      return kIq4Values[code];
    case CodeValues::kE2m1:
      return kE2m1Values[code];
  }
  return code;
}

// The scale before its factor, as float32, exact.
float BlockScale(ScaleKind kind, uint16_t scale) noexcept;

// Whether scale and min are finite (255 is the NaN of kE8m0).
bool IsFinite(const CodeFormat& format, const BlockParts& parts) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_QUANT_FILE_BLOCKS_H_
