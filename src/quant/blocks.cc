#include "quant/blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "quant/file_blocks.h"

namespace headlight {
namespace {

constexpr size_t kBlock = 32;      // elements of a Q8_0 and of a Q4_0 block
constexpr size_t kScaleBytes = 2;  // f16, first in the block

uint16_t LoadU16(const uint8_t* bytes) { return static_cast<uint16_t>(bytes[0] | (bytes[1] << 8)); }

void StoreU16(uint16_t value, uint8_t* bytes) {
  bytes[0] = static_cast<uint8_t>(value);
  bytes[1] = static_cast<uint8_t>(value >> 8);
}

uint16_t BF16FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// Products and the difference in the order in which llama.cpp takes them.
void DecodeCodes(TensorType type, const uint8_t* block, float* out) {
  const CodeFormat* format = FindCodeFormat(type);
  if (format == nullptr) return;
  BlockParts parts;
  SplitBlock(type, block, parts);
  const float scale = BlockScale(format->scales, parts.scale);
  const float min = format->has_mins ? F32FromF16(parts.min) : 0.0f;
  const size_t n_cols = FindTensorType(static_cast<uint32_t>(type))->n_block;
  for (size_t i = 0; i < n_cols; ++i) {
    const size_t part = i / kPartCols;
    const float value = static_cast<float>(CodeValue(*format, parts.codes[i]));
    out[i] = scale * static_cast<float>(parts.factors[part]) * value;
    if (format->has_mins) out[i] -= min * static_cast<float>(parts.min_factors[part]);
  }
}

void EncodeQ8_0(const float* x, uint8_t* block) {
  float largest = 0.0f;
  for (size_t i = 0; i < kBlock; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = largest / 127.0f;
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  StoreU16(F16FromF32(scale), block);
  for (size_t i = 0; i < kBlock; ++i) {
    block[kScaleBytes + i] = static_cast<uint8_t>(static_cast<int8_t>(std::round(x[i] * inverse)));
  }
}

void EncodeQ4_0(const float* x, uint8_t* block) {
  float extreme = 0.0f;
  float largest = 0.0f;  // |extreme|, kept apart: LLVM 19 at -O3 loses the fabs of a comparison
                         // with fabs(extreme)
  for (size_t i = 0; i < kBlock; ++i) {
    if (std::fabs(x[i]) > largest) {
      largest = std::fabs(x[i]);
      extreme = x[i];
    }
  }
  const float scale = extreme / -8.0f;
  const float inverse = scale != 0.0f ? 1.0f / scale : 0.0f;
  StoreU16(F16FromF32(scale), block);
  const auto code = [inverse](float value) {
    return std::clamp(static_cast<int>(value * inverse + 8.5f), 0, 15);
  };
  for (size_t i = 0; i < kBlock / 2; ++i) {
    block[kScaleBytes + i] = static_cast<uint8_t>(code(x[i]) | (code(x[i + kBlock / 2]) << 4));
  }
}

}  // namespace

void DecodeBlock(TensorType type, const uint8_t* block, float* out) noexcept {
  switch (type) {
    case TensorType::kF32:
      std::memcpy(out, block, sizeof(float));
      return;
    case TensorType::kF16:
      *out = F32FromF16(LoadU16(block));
      return;
    case TensorType::kBF16:
      *out = F32FromBF16(LoadU16(block));
      return;
    default:
      return DecodeCodes(type, block, out);
  }
}

void EncodeBlock(TensorType type, const float* x, uint8_t* block) noexcept {
  switch (type) {
    case TensorType::kF32:
      std::memcpy(block, x, sizeof(float));
      return;
    case TensorType::kF16:
      StoreU16(F16FromF32(*x), block);
      return;
    case TensorType::kBF16:
      StoreU16(BF16FromF32(*x), block);
      return;
    case TensorType::kQ8_0:
      EncodeQ8_0(x, block);
      return;
    case TensorType::kQ4_0:
      EncodeQ4_0(x, block);
      return;
    default:
      return;
  }
}

}  // namespace headlight
