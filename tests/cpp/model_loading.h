// Loading whole models in tests, and reading their weights back by tensor name.
#ifndef HEADLIGHT_TESTS_MODEL_LOADING_H_
#define HEADLIGHT_TESTS_MODEL_LOADING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "gguf_writer.h"
#include "model/model.h"
#include "simd/dot_form.h"

namespace headlight::testing {

// Feeds one file in chunks of `chunk` bytes (0: whole) and finishes. Throws what the loader throws.
std::shared_ptr<const Model> LoadModel(std::span<const uint8_t> file, size_t chunk = 0,
                                       DotForm form = DotForm::kWide);
// The files of a split model.
std::shared_ptr<const Model> LoadShards(const std::vector<std::vector<uint8_t>>& files,
                                        size_t chunk = 0);

// [n_rows * n_cols] float32: the weights that belong to a tensor of the file, decoded row by row.
std::vector<float> WeightsOf(const Model& model, std::string_view tensor);

}  // namespace headlight::testing

#endif  // HEADLIGHT_TESTS_MODEL_LOADING_H_
