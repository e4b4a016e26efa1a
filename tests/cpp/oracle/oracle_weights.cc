// The weights of a model, every row decoded, by their role.
#include <variant>
#include <vector>

#include "model/tensor_table.h"
#include "oracle/oracle.h"
#include "quant/packed.h"

namespace headlight {
namespace {

Matrix Decode(const PackedMatrix& packed) {
  Matrix matrix;
  matrix.n_rows = packed.shape.n_rows;
  matrix.n_cols = packed.shape.n_cols;
  std::vector<float> row(matrix.n_cols);
  for (size_t i = 0; i < matrix.n_rows; ++i) {
    DecodeRow(packed, i, row.data());
    matrix.values.insert(matrix.values.end(), row.begin(), row.end());
  }
  return matrix;
}

}  // namespace

OracleModel OracleOf(const Model& model) {
  OracleModel oracle;
  oracle.spec = model.spec;
  oracle.layers.resize(model.layers.size());
  Model& slots = const_cast<Model&>(model);  // SlotOf serves the loader; only read here
  for (size_t i = 0; i < NumPlaces(model.spec); ++i) {
    const TensorPlace place = PlaceAt(i);
    if (place.is_rope_factors() || !UseOf(model.spec, place).Has(place.role)) continue;
    const TensorShape shape = ExpectedShape(model.spec, place);
    const WeightSlot slot = SlotOf(slots, place);
    OracleWeights& weights = place.is_per_layer() ? oracle.layers[place.layer] : oracle.weights;
    if (auto* const* vector = std::get_if<const float**>(&slot)) {
      if (**vector == nullptr) continue;
      const size_t n = shape.n_rows * shape.n_cols;
      weights[place.role] = {
          {shape.n_rows, shape.n_cols, std::vector<double>(**vector, **vector + n)}};
    } else if (auto* const* matrix = std::get_if<PackedMatrix*>(&slot)) {
      if ((*matrix)->data != nullptr) weights[place.role] = {Decode(**matrix)};
    } else if (auto* const* stack = std::get_if<PackedStack*>(&slot)) {
      for (size_t m = 0; (*stack)->data != nullptr && m < shape.n_matrices; ++m) {
        weights[place.role].push_back(Decode((*stack)->at(m)));
      }
    }
  }
  return oracle;
}

}  // namespace headlight
