#include "model_loading.h"

#include <algorithm>

#include "gguf/gguf_reader.h"
#include "model/model_loader.h"
#include "model/tensor_table.h"
#include "support.h"

namespace headlight::testing {
namespace {

void AppendFile(ModelLoader& loader, std::span<const uint8_t> file, size_t chunk) {
  if (chunk == 0) chunk = std::max<size_t>(file.size(), 1);
  while (!file.empty()) {
    const size_t n = loader.Append(file.first(std::min(chunk, file.size())));
    file = file.subspan(n);
    if (loader.state() == ModelLoader::State::kPlanned) loader.Allocate();
  }
}

}  // namespace

std::shared_ptr<const Model> LoadModel(std::span<const uint8_t> file, size_t chunk, DotForm form) {
  ModelLoader loader(form);
  AppendFile(loader, file, chunk);
  return loader.Finish();
}

std::shared_ptr<const Model> LoadShards(const std::vector<std::vector<uint8_t>>& files,
                                        size_t chunk) {
  ModelLoader loader(DotForm::kWide);
  for (size_t i = 0; i < files.size(); ++i) {
    if (i > 0) loader.BeginShard();
    AppendFile(loader, files[i], chunk);
  }
  return loader.Finish();
}

std::vector<float> WeightsOf(const Model& model, std::string_view tensor) {
  for (size_t i = 0; i < NumPlaces(model.spec); ++i) {
    const TensorPlace place = PlaceAt(i);
    if (TensorName(place) != tensor) continue;
    if (place.role == TensorRole::kRopeFactors) return model.spec.layers[0].rope.freq_factors;
    if (!UseOf(model.spec, place).Has(place.role)) continue;
    const TensorShape shape = ExpectedShape(model.spec, place);
    std::vector<float> values(shape.n_rows * shape.n_cols);
    const WeightSlot slot = SlotOf(const_cast<Model&>(model), place);  // only read here
    if (auto* const* vector = std::get_if<const float**>(&slot)) {
      std::copy_n(**vector, values.size(), values.begin());
      return values;
    }
    const PackedMatrix& matrix = *std::get<PackedMatrix*>(slot);
    REQUIRE(matrix.shape.n_rows == shape.n_rows);
    REQUIRE(matrix.shape.n_cols == shape.n_cols);
    for (size_t row = 0; row < shape.n_rows; ++row) {
      DecodeRow(matrix, row, values.data() + row * shape.n_cols);
    }
    return values;
  }
  FAIL("no place for the tensor");
  return {};
}

}  // namespace headlight::testing
