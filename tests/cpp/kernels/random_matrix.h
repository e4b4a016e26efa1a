// Random tensors in file format, and what packing them gives; for the tests of quant/ and kernels/.
#ifndef HEADLIGHT_TESTS_CPP_KERNELS_RANDOM_MATRIX_H_
#define HEADLIGHT_TESTS_CPP_KERNELS_RANDOM_MATRIX_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "kernels/matmul_reference.h"
#include "quant/blocks.h"
#include "quant/packed.h"
#include "simd/relaxed.h"

namespace headlight::test {

inline constexpr TensorType kTypes[] = {
    TensorType::kF32,  TensorType::kF16,    TensorType::kBF16,   TensorType::kQ8_0,
    TensorType::kQ4_0, TensorType::kQ4_1,   TensorType::kQ5_0,   TensorType::kQ5_1,
    TensorType::kQ2_K, TensorType::kQ3_K,   TensorType::kQ4_K,   TensorType::kQ5_K,
    TensorType::kQ6_K, TensorType::kIQ4_NL, TensorType::kIQ4_XS, TensorType::kMXFP4};

inline const TensorTypeTraits& Traits(TensorType type) {
  return *FindTensorType(static_cast<uint32_t>(type));
}

inline bool IsCoded(TensorType type) { return FindCodeFormat(type) != nullptr; }

// Bytes of a block where binary16 scales and minima are.
inline std::vector<size_t> F16Places(TensorType type) {
  switch (type) {
    case TensorType::kQ4_1:
    case TensorType::kQ5_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {0, 2};
    case TensorType::kQ2_K:
      return {80, 82};
    case TensorType::kQ3_K:
      return {108};
    case TensorType::kQ6_K:
      return {208};
    case TensorType::kMXFP4:
      return {};
    default:
      return {0};
  }
}

// Forms whose kernels exist in this build and are exact on this engine (`probed` is the probe's
// answer). A native build has stand-ins for all of them.
inline std::vector<DotForm> ExactForms(DotForm probed) {
  std::vector<DotForm> forms = {DotForm::kWide};
  if (!kHasRelaxedDot && HEADLIGHT_HAS_DOT4) {
    forms.insert(forms.end(), {DotForm::kUnsigned, DotForm::kSigned, DotForm::kSplit});
  } else if (probed != DotForm::kWide) {
    forms.push_back(DotForm::kSplit);
    if (probed != DotForm::kSplit) forms.push_back(probed);
  }
  return forms;
}

enum class Fill {
  kNormal,   // what weights look like; Q4_0 scales of both signs
  kLowest,   // all codes at their lowest (-128 or -8), scale 1
  kHighest,  // all codes at their highest (127 or 7), negative scale
  kZero,
  kSubnormal,  // scales and 16-bit weights that are f16 subnormals (MXFP4: the least powers of
               // two), random codes
};
inline constexpr Fill kFills[] = {Fill::kNormal, Fill::kLowest, Fill::kHighest, Fill::kZero,
                                  Fill::kSubnormal};

inline void FillCodes(Fill fill, TensorType type, std::mt19937& random, uint8_t* block) {
  const bool is_q8 = type == TensorType::kQ8_0;
  for (size_t i = 0; i < Traits(type).block_bytes; ++i) {
    block[i] = static_cast<uint8_t>(random());
    if (fill == Fill::kLowest) block[i] = is_q8 ? 0x80 : 0x00;
    if (fill == Fill::kHighest) block[i] = is_q8 ? 0x7F : 0xFF;
    if (fill == Fill::kZero) block[i] = is_q8 ? 0x00 : 0x88;
  }
  uint16_t scale = F16FromF32(1.0f);
  if (fill == Fill::kHighest) scale = F16FromF32(-0.75f);
  if (fill == Fill::kZero) scale = 0;
  for (const size_t at : F16Places(type)) {
    if (fill == Fill::kSubnormal)
      scale = static_cast<uint16_t>(random() % 0x400 | (random() & 0x8000));
    if (fill == Fill::kNormal)
      scale = F16FromF32(std::normal_distribution<float>(0.0f, 0.002f)(random));
    std::memcpy(block + at, &scale, sizeof(scale));
  }
  if (type == TensorType::kMXFP4) {
    const uint8_t powers[] = {static_cast<uint8_t>(118 + random() % 6), 128, 120, 100,
                              static_cast<uint8_t>(random() % 2)};
    block[0] = powers[static_cast<size_t>(fill)];
  }
}

inline void FillPlain(Fill fill, TensorType type, std::mt19937& random, uint8_t* element) {
  float value = std::normal_distribution<float>(0.0f, 0.05f)(random);
  if (fill == Fill::kLowest) value = -1.0f;
  if (fill == Fill::kHighest) value = 127.0f;
  if (fill == Fill::kZero) value = 0.0f;
  if (fill == Fill::kSubnormal) value = static_cast<float>(random() % 0x400) * 0x1p-24f;
  EncodeBlock(type, &value, element);
}

inline bool HasEncoder(TensorType type) {
  return type == TensorType::kQ8_0 || type == TensorType::kQ4_0;
}

// n_rows x n_cols of `type`, as a file has it.
inline std::vector<uint8_t> RandomFileBytes(TensorType type, size_t n_rows, size_t n_cols,
                                            Fill fill, uint32_t seed) {
  std::mt19937 random(seed);
  const TensorTypeTraits& traits = Traits(type);
  std::vector<uint8_t> bytes(n_rows * n_cols / traits.n_block * traits.block_bytes);
  std::normal_distribution<float> normal(0.0f, 0.05f);
  for (size_t at = 0; at < bytes.size(); at += traits.block_bytes) {
    if (!IsCoded(type)) {
      FillPlain(fill, type, random, &bytes[at]);
    } else if (fill == Fill::kNormal && HasEncoder(type)) {
      float x[32];
      for (float& v : x) v = normal(random);
      EncodeBlock(type, x, &bytes[at]);
    } else {
      FillCodes(fill, type, random, &bytes[at]);
    }
  }
  return bytes;
}

// A packed matrix that owns its bytes.
struct OwnedMatrix {
  AlignedArray<uint8_t> storage;
  PackedMatrix matrix;
};

inline OwnedMatrix Pack(TensorType type, size_t n_rows, size_t n_cols,
                        const std::vector<uint8_t>& bytes, DotForm form) {
  OwnedMatrix owned;
  owned.matrix.shape = PlanPacked(type, n_rows, n_cols, form);
  owned.storage = AlignedArray<uint8_t>(owned.matrix.shape.bytes);
  owned.matrix.data = owned.storage.data();
  PackedWriter writer(type, owned.matrix.shape, owned.storage.data());
  writer.Append(bytes);
  return owned;
}

inline std::vector<float> RandomFloats(size_t n, float sigma, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, sigma);
  std::vector<float> values(n);
  for (float& v : values) v = normal(random);
  return values;
}

}  // namespace headlight::test

#endif  // HEADLIGHT_TESTS_CPP_KERNELS_RANDOM_MATRIX_H_
