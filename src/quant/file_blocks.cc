#include "quant/file_blocks.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace headlight {
namespace {

constexpr uint16_t kF16ExponentMask = 0x7C00;  // all ones: inf or NaN
constexpr uint16_t kF16Sign = 0x8000;
constexpr uint16_t kE8m0NaN = 255;

uint16_t LoadU16(const uint8_t* bytes) { return static_cast<uint16_t>(bytes[0] | (bytes[1] << 8)); }

void SetOnes(BlockParts& parts) {
  parts.factors[0] = parts.factors[1] = 1;
  parts.min_factors[0] = parts.min_factors[1] = 1;
}

// Byte i holds column i in its low nibble and column i + n in its high one.
void SplitNibbles(const uint8_t* bytes, size_t n, uint8_t* codes) {
  for (size_t i = 0; i < n; ++i) {
    codes[i] = bytes[i] & 15;
    codes[i + n] = bytes[i] >> 4;
  }
}

// Adds bit i of 32 bits to code i, as its fifth.
void AddFifthBits(const uint8_t* bits, uint8_t* codes) {
  for (size_t i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(codes[i] | ((bits[i / 8] >> (i % 8)) & 1) << 4);
  }
}

// 32 columns: scale [f16], min [f16, with_min], fifth bits [32, with_fifth], nibbles [16].
void SplitSmall(const uint8_t* block, bool with_min, bool with_fifth, BlockParts& parts) {
  SetOnes(parts);
  parts.scale = LoadU16(block);
  block += 2;
  if (with_min) {
    parts.min = LoadU16(block) ^ kF16Sign;
    block += 2;
  }
  SplitNibbles(block + (with_fifth ? 4 : 0), 16, parts.codes);
  if (with_fifth) AddFifthBits(block, parts.codes);
}

void SplitQ8_0(const uint8_t* block, BlockParts& parts) {
  SetOnes(parts);
  parts.scale = LoadU16(block);
  for (size_t i = 0; i < 32; ++i) parts.codes[i] = block[2 + i] ^ 0x80;
}

// scale bits [u8], nibbles [16]
void SplitMxfp4(const uint8_t* block, BlockParts& parts) {
  SetOnes(parts);
  parts.scale = block[0];
  SplitNibbles(block + 1, 16, parts.codes);
}

// Byte i of 32 holds columns i, 32 + i, 64 + i and 96 + i in pairs of bits from the lowest.
void SplitPairs(const uint8_t* bytes, uint8_t* codes) {
  for (size_t i = 0; i < 128; ++i) codes[i] = (bytes[i % 32] >> (i / 32 * 2)) & 3;
}

// scales and mins [16] of 4 bits, pairs of bits [64], scale [f16], min [f16]
void SplitQ2_K(const uint8_t* block, BlockParts& parts) {
  for (size_t i = 0; i < 16; ++i) {
    parts.factors[i] = block[i] & 15;
    parts.min_factors[i] = block[i] >> 4;
  }
  SplitPairs(block + 16, parts.codes);
  SplitPairs(block + 48, parts.codes + 128);
  parts.scale = LoadU16(block + 80);
  parts.min = LoadU16(block + 82);
}

// third bits [32 bytes; bit b of byte i is of column 32 b + i], pairs of bits [64], factors [16 of
// 6 bits, + 32], scale [f16]
void SplitQ3_K(const uint8_t* block, BlockParts& parts) {
  const uint8_t* packed = block + 96;
  SplitPairs(block + 32, parts.codes);
  SplitPairs(block + 64, parts.codes + 128);
  for (size_t i = 0; i < 256; ++i) {
    parts.codes[i] = static_cast<uint8_t>(parts.codes[i] | ((block[i % 32] >> (i / 32)) & 1) << 2);
  }
  for (size_t i = 0; i < 16; ++i) {
    const int low = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    const int high = (packed[8 + i % 4] >> (i / 4 * 2)) & 3;
    parts.factors[i] = static_cast<int8_t>((low | high << 4) - 32);
  }
  parts.scale = LoadU16(block + 108);
}

// 8 factors and 8 mins of 6 bits in 12 bytes: the first four of each in the low bits of bytes 0..3
// and 4..7, whose upper pairs are the upper bits of the last four.
void SplitSixBits(const uint8_t* packed, BlockParts& parts) {
  for (size_t i = 0; i < 8; ++i) {
    const bool is_low = i < 4;
    const int factor = is_low ? packed[i] & 63 : (packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4;
    const int min = is_low ? packed[i + 4] & 63 : packed[i + 4] >> 4 | (packed[i] >> 6) << 4;
    parts.factors[2 * i] = parts.factors[2 * i + 1] = static_cast<int8_t>(factor);
    parts.min_factors[2 * i] = parts.min_factors[2 * i + 1] = static_cast<uint8_t>(min);
  }
}

// scale [f16], min [f16], factors [12 bytes], fifth bits [32 bytes, with_fifth; bit b of byte i is
// of column 32 b + i], nibbles [128]
void SplitQ45_K(const uint8_t* block, bool with_fifth, BlockParts& parts) {
  parts.scale = LoadU16(block);
  parts.min = LoadU16(block + 2);
  SplitSixBits(block + 4, parts);
  const uint8_t* fifth = block + 16;
  const uint8_t* nibbles = fifth + (with_fifth ? 32 : 0);
  for (size_t i = 0; i < 4; ++i) SplitNibbles(nibbles + 32 * i, 32, parts.codes + 64 * i);
  for (size_t i = 0; with_fifth && i < 256; ++i) {
    parts.codes[i] = static_cast<uint8_t>(parts.codes[i] | ((fifth[i % 32] >> (i / 32)) & 1) << 4);
  }
}

// nibbles [128], upper pairs of bits [64], factors [16] int8, scale [f16]
void SplitQ6_K(const uint8_t* block, BlockParts& parts) {
  for (size_t half = 0; half < 2; ++half) {
    uint8_t* codes = parts.codes + 128 * half;
    uint8_t pairs[128];
    SplitNibbles(block + 64 * half, 64, codes);
    SplitPairs(block + 128 + 32 * half, pairs);
    for (size_t i = 0; i < 128; ++i) codes[i] = static_cast<uint8_t>(codes[i] | pairs[i] << 4);
  }
  std::memcpy(parts.factors, block + 192, sizeof(parts.factors));
  parts.scale = LoadU16(block + 208);
}

// scale [f16], upper pairs of bits of 8 factors [u16], lower nibbles of them [4], nibbles [128]
void SplitIq4Xs(const uint8_t* block, BlockParts& parts) {
  parts.scale = LoadU16(block);
  const int high = LoadU16(block + 2);
  for (size_t i = 0; i < 8; ++i) {
    const int low = (block[4 + i / 2] >> (i % 2 * 4)) & 15;
    const int factor = (low | ((high >> (2 * i)) & 3) << 4) - 32;
    parts.factors[2 * i] = parts.factors[2 * i + 1] = static_cast<int8_t>(factor);
    SplitNibbles(block + 8 + 16 * i, 16, parts.codes + 32 * i);
  }
}

struct Row {
  TensorType type;
  CodeFormat format;
};

constexpr Row kFormats[] = {
    {TensorType::kQ8_0, {8, ScaleKind::kF16, CodeValues::kCentred, false}},
    {TensorType::kQ4_0, {4, ScaleKind::kF16, CodeValues::kCentred, false}},
    {TensorType::kQ4_1, {4, ScaleKind::kF16, CodeValues::kUnsigned, true}},
    {TensorType::kQ5_0, {5, ScaleKind::kF16, CodeValues::kCentred, false}},
    {TensorType::kQ5_1, {5, ScaleKind::kF16, CodeValues::kUnsigned, true}},
    {TensorType::kQ2_K, {2, ScaleKind::kSuper16, CodeValues::kUnsigned, true}},
    {TensorType::kQ3_K, {3, ScaleKind::kSuper16, CodeValues::kCentred, false}},
    {TensorType::kQ4_K, {4, ScaleKind::kSuper32, CodeValues::kUnsigned, true}},
    {TensorType::kQ5_K, {5, ScaleKind::kSuper32, CodeValues::kUnsigned, true}},
    {TensorType::kQ6_K, {6, ScaleKind::kSuper16, CodeValues::kCentred, false}},
    {TensorType::kIQ4_NL, {4, ScaleKind::kF16, CodeValues::kIq4, false}},
    {TensorType::kIQ4_XS, {4, ScaleKind::kSuper32, CodeValues::kIq4, false}},
    {TensorType::kMXFP4, {4, ScaleKind::kE8m0, CodeValues::kE2m1, false}},
};

}  // namespace

const CodeFormat* FindCodeFormat(TensorType type) noexcept {
  for (const Row& row : kFormats) {
    if (row.type == type) return &row.format;
  }
  return nullptr;
}

void SplitBlock(TensorType type, const uint8_t* block, BlockParts& parts) noexcept {
  switch (type) {
    case TensorType::kQ8_0:
      return SplitQ8_0(block, parts);
    case TensorType::kQ4_0:
    case TensorType::kIQ4_NL:
      return SplitSmall(block, false, false, parts);
    case TensorType::kQ4_1:
      return SplitSmall(block, true, false, parts);
    case TensorType::kQ5_0:
      return SplitSmall(block, false, true, parts);
    case TensorType::kQ5_1:
      return SplitSmall(block, true, true, parts);
    case TensorType::kQ2_K:
      return SplitQ2_K(block, parts);
    case TensorType::kQ3_K:
      return SplitQ3_K(block, parts);
    case TensorType::kQ4_K:
      return SplitQ45_K(block, false, parts);
    case TensorType::kQ5_K:
      return SplitQ45_K(block, true, parts);
    case TensorType::kQ6_K:
      return SplitQ6_K(block, parts);
    case TensorType::kIQ4_XS:
      return SplitIq4Xs(block, parts);
    case TensorType::kMXFP4:
      return SplitMxfp4(block, parts);
    default:
      return;
  }
}

float BlockScale(ScaleKind kind, uint16_t scale) noexcept {
  if (kind != ScaleKind::kE8m0) return F32FromF16(scale);
  // 2^(byte - 128): byte as an exponent is 2^(byte - 127), but for byte 0, which is subnormal.
  const uint32_t bits = std::max(uint32_t{scale} << 23, uint32_t{1} << 22);
  return 0.5f * std::bit_cast<float>(bits);
}

bool IsFinite(const CodeFormat& format, const BlockParts& parts) noexcept {
  if (format.scales == ScaleKind::kE8m0) return parts.scale != kE8m0NaN;
  const auto is_finite = [](uint16_t f16) { return (f16 & kF16ExponentMask) != kF16ExponentMask; };
  return is_finite(parts.scale) && (!format.has_mins || is_finite(parts.min));
}

}  // namespace headlight
