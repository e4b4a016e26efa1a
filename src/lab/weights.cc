#include "lab/weights.h"

#include <utility>

#include "quant/blocks.h"

namespace headlight {

Weights DecodeWeights(const PackedMatrix& packed) {
  Weights weights(packed.shape.n_rows, packed.shape.n_cols);
  for (size_t i = 0; i < weights.n_rows; ++i) DecodeRow(packed, i, weights.row(i));
  return weights;
}

TensorType EncodedType(const PackedShape& shape, size_t n_cols) {
  switch (shape.family) {
    case PackedFamily::kF32:
      return TensorType::kF32;
    case PackedFamily::kF16:
      return TensorType::kF16;
    case PackedFamily::kBF16:
      return TensorType::kBF16;
    default:
      break;
  }
  if (n_cols % kBlockCols != 0) return TensorType::kF16;
  CodeFormat q4_0;
  q4_0.n_bits = 4;
  return shape.code == q4_0 ? TensorType::kQ4_0 : TensorType::kQ8_0;
}

std::vector<uint8_t> EncodeWeights(const Weights& weights, TensorType type) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(type));
  const size_t n_blocks = weights.values.size() / traits.n_block;
  std::vector<uint8_t> bytes(n_blocks * traits.block_bytes);
  for (size_t i = 0; i < n_blocks; ++i) {
    EncodeBlock(type, weights.values.data() + i * traits.n_block,
                bytes.data() + i * traits.block_bytes);
  }
  return bytes;
}

PackedMatrix PackWeights(const Weights& weights, TensorType type, DotForm form, Model& model) {
  const PackedShape shape = PlanPacked(type, weights.n_rows, weights.n_cols, form);
  AlignedArray<uint8_t> storage(shape.bytes);
  PackedWriter(type, shape, storage.data()).Append(EncodeWeights(weights, type));
  const PackedMatrix packed = {shape, storage.data()};
  model.storage.push_back(std::move(storage));
  return packed;
}

}  // namespace headlight
