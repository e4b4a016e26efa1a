// Element and tensor types shared by the file reader, the block formats, the packed weights and the
// caches, and the exact scalar conversions of the 16-bit float formats. Tables only: no kernels
// here.
#ifndef HEADLIGHT_BASE_DTYPE_H_
#define HEADLIGHT_BASE_DTYPE_H_

#include <bit>
#include <cstddef>
#include <cstdint>

namespace headlight {

// Tensor types as numbered in a GGUF file (the format's documentation; the numbers are facts of the
// format).
enum class TensorType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kIQ4_XS = 23,
  kBF16 = 30,
  kMXFP4 = 39,
};

// What the file format says of a type. quant/ has a decoder for every type in the table.
struct TensorTypeTraits {
  const char* name;      // as printed, e.g. "Q8_0"
  uint32_t n_block;      // elements a block
  uint32_t block_bytes;  // bytes a block
};

// nullptr for a number that is not in the table.
const TensorTypeTraits* FindTensorType(uint32_t type);

// Formats of the KV cache (and of other 1-d float stores).
enum class CacheType : uint8_t { kF32, kF16, kInt8 };
const char* CacheTypeName(CacheType type);  // "f32", "f16", "int8"
size_t CacheTypeBytes(CacheType type);      // bytes an element, scales of kInt8 apart

// IEEE 754 binary16 -> binary32, exact for every input (subnormals, inf and NaN included).
inline float F32FromF16(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7FFFu;
  if (magnitude >= 0x7C00u) {  // inf, NaN: exponent all ones
    return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  }
  // Shifted into f32 position the exponent is 112 too small; multiplying by 2^112 repairs it and
  // also normalises subnormals.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

// binary32 -> binary16, round to nearest even; overflow gives inf, NaN stays NaN (quiet).
uint16_t F16FromF32(float x);

inline float F32FromBF16(uint16_t b) {
  return std::bit_cast<float>(static_cast<uint32_t>(b) << 16);
}

}  // namespace headlight

#endif  // HEADLIGHT_BASE_DTYPE_H_
