// Which tensor of a file is which weight of a model: names as the format gives them, shapes as the
// spec demands them. For the model loader; knows nothing of bytes or packing.
#ifndef HEADLIGHT_MODEL_TENSOR_TABLE_H_
#define HEADLIGHT_MODEL_TENSOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "gguf/gguf_reader.h"
#include "model/model.h"

namespace headlight {

enum class TensorRole : uint8_t {
  kEmbedding,
  kHead,
  kOutputNorm,
  kRopeFactors,  // one a model
  kAttentionNorm,
  kQ,
  kK,
  kV,
  kAttentionOutput,
  kFeedForwardNorm,
  kGate,
  kUp,
  kDown,  // one a layer
};
inline constexpr size_t kModelRoles = 4;
inline constexpr size_t kRoles = 13;

struct TensorPlace {
  TensorRole role = TensorRole::kEmbedding;
  size_t layer = 0;  // 0 for the roles that occur once

  bool is_per_layer() const { return static_cast<size_t>(role) >= kModelRoles; }
  // Vectors are kept as floats, matrices are packed.
  bool is_vector() const;
  // The embedding serves as the head where there is none, and most models have no table of rotary
  // factors.
  bool is_optional() const { return role == TensorRole::kHead || role == TensorRole::kRopeFactors; }
  // [0, NumPlaces(spec)), different for each place.
  size_t index() const;
};

size_t NumPlaces(const ModelSpec& spec);
TensorPlace PlaceAt(size_t index);

// "blk.3.attn_q.weight"
std::string TensorName(const TensorPlace& place);

struct TensorShape {
  size_t n_rows = 0;  // 1 for vectors
  size_t n_cols = 0;
};
TensorShape ExpectedShape(const ModelSpec& spec, const TensorPlace& place);

// The place of a tensor of the file; nothing if it may be ignored. Throws Error(kUnsupported) for a
// tensor that the decoder would have to use and does not, Error(kBadModel) for a shape that the
// key-values do not agree with.
std::optional<TensorPlace> FindPlace(const ModelSpec& spec, const GgufTensor& tensor);

// Where the model keeps it. Only for a place of the matching kind; kRopeFactors has no slot (it is
// part of the spec).
PackedMatrix& MatrixSlot(Model& model, const TensorPlace& place);
const float*& VectorSlot(Model& model, const TensorPlace& place);

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_TENSOR_TABLE_H_
