#include "base/dtype.h"

namespace headlight {
namespace {

struct Row {
  TensorType type;
  TensorTypeTraits traits;
};

constexpr Row kTensorTypes[] = {
    {TensorType::kF32, {"F32", 1, 4}},         {TensorType::kF16, {"F16", 1, 2}},
    {TensorType::kQ4_0, {"Q4_0", 32, 18}},     {TensorType::kQ4_1, {"Q4_1", 32, 20}},
    {TensorType::kQ5_0, {"Q5_0", 32, 22}},     {TensorType::kQ5_1, {"Q5_1", 32, 24}},
    {TensorType::kQ8_0, {"Q8_0", 32, 34}},     {TensorType::kQ2_K, {"Q2_K", 256, 84}},
    {TensorType::kQ3_K, {"Q3_K", 256, 110}},   {TensorType::kQ4_K, {"Q4_K", 256, 144}},
    {TensorType::kQ5_K, {"Q5_K", 256, 176}},   {TensorType::kQ6_K, {"Q6_K", 256, 210}},
    {TensorType::kIQ4_NL, {"IQ4_NL", 32, 18}}, {TensorType::kIQ4_XS, {"IQ4_XS", 256, 136}},
    {TensorType::kBF16, {"BF16", 1, 2}},       {TensorType::kMXFP4, {"MXFP4", 32, 17}},
};

}  // namespace

const TensorTypeTraits* FindTensorType(uint32_t type) {
  for (const Row& row : kTensorTypes) {
    if (static_cast<uint32_t>(row.type) == type) return &row.traits;
  }
  return nullptr;
}

const char* CacheTypeName(CacheType type) {
  switch (type) {
    case CacheType::kF16:
      return "f16";
    case CacheType::kInt8:
      return "int8";
    case CacheType::kF32:
      break;
  }
  return "f32";
}

size_t CacheTypeBytes(CacheType type) {
  switch (type) {
    case CacheType::kF16:
      return 2;
    case CacheType::kInt8:
      return 1;
    case CacheType::kF32:
      break;
  }
  return 4;
}

uint16_t F16FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);  // >= 65520
  if (magnitude <
      0x38800000u) {  // below 2^-14: adding 0.5 lets the FPU round the subnormal's last bit
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000u));
  }
  const uint32_t odd = (magnitude >> 13) & 1u;
  return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xFFFu + odd) >> 13));
}

}  // namespace headlight
