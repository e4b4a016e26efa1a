// The tensors that Headlight knows, one row each: what it is for, its name in files, its shape, and
// where the model keeps it. For tensor_table.cc.
#ifndef HEADLIGHT_MODEL_TENSOR_ROWS_H_
#define HEADLIGHT_MODEL_TENSOR_ROWS_H_

#include <cstddef>
#include <span>
#include <string_view>
#include <variant>

#include "model/model.h"
#include "model/tensor_table.h"

namespace headlight {

// A half of a norm's weights.
template <typename Owner>
struct NormSlot {
  NormWeights Owner::* norm;
  const float* NormWeights::* half;
};

// Rope factors have none.
template <typename Owner>
using OwnerSlot = std::variant<std::monostate, PackedMatrix Owner::*, PackedStack Owner::*,
                               const float * Owner::*, NormSlot<Owner>>;

struct ModelTensorRow {
  TensorRole role;
  std::string_view name;
  TensorShape (*shape)(const ModelSpec&);
  OwnerSlot<Model> slot;
};

struct LayerTensorRow {
  TensorRole role;
  std::string_view name;  // after "blk.<layer>."
  TensorShape (*shape)(const ModelSpec&, const LayerSpec&);
  OwnerSlot<LayerWeights> slot;
};

// In the order of the roles: [kModelRoles] and [kRoles - kModelRoles].
std::span<const ModelTensorRow> ModelTensorRows();
std::span<const LayerTensorRow> LayerTensorRows();

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_TENSOR_ROWS_H_
