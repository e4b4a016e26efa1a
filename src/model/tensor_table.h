// Which tensor of a file is which weight of a model: names as the format gives them, shapes as the
// spec demands them. For the model loader; knows nothing of bytes or packing.
#ifndef HEADLIGHT_MODEL_TENSOR_TABLE_H_
#define HEADLIGHT_MODEL_TENSOR_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "gguf/gguf_reader.h"
#include "model/model.h"
#include "model/tensor_role.h"

namespace headlight {

struct TensorPlace {
  TensorRole role = TensorRole::kEmbedding;
  size_t layer = 0;  // 0 for the roles that occur once

  bool is_per_layer() const { return static_cast<size_t>(role) >= kModelRoles; }
  // Factors of rotary frequencies: vectors that live in the spec.
  bool is_rope_factors() const;
  // Vectors are kept as floats, matrices are packed.
  bool is_vector() const;
  // [0, NumPlaces(spec)), different for each place.
  size_t index() const;
};

size_t NumPlaces(const ModelSpec& spec);
TensorPlace PlaceAt(size_t index);

// The set that says whether a model has something in this place.
const TensorUse& UseOf(const ModelSpec& spec, const TensorPlace& place);
TensorUse& UseOf(ModelSpec& spec, const TensorPlace& place);

// "blk.3.attn_q.weight"
std::string TensorName(const TensorPlace& place);

struct TensorShape {
  size_t n_rows = 0;  // 1 for most vectors
  size_t n_cols = 0;
  size_t n_matrices = 1;  // of a stack, such as a layer's experts
  bool operator==(const TensorShape&) const = default;
};
TensorShape ExpectedShape(const ModelSpec& spec, const TensorPlace& place);

// Elements of the matrices that a token is multiplied with: of the experts only those it uses, no
// vectors, and of embedding and head one.
double ParametersUsed(const ModelSpec& spec);

// The places that a tensor of the file fills, in the order of its rows: one, or several where a
// file holds matrices joined (Q, K and V; gate and up). Empty: the tensor may be ignored. Throws
// Error(kUnsupported) for a tensor that the decoder would have to use and does not,
// Error(kBadModel) for a shape that the key-values do not agree with.
std::vector<TensorPlace> FindPlaces(const ModelSpec& spec, const GgufTensor& tensor);

// Where the model keeps it. Rope factors have no slot.
using WeightSlot = std::variant<PackedMatrix*, PackedStack*, const float**>;
WeightSlot SlotOf(Model& model, const TensorPlace& place);

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_TENSOR_TABLE_H_
