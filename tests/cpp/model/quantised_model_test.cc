// Whole models in every file type, and in a mixture of them, against the same weights as floats.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "gguf_writer.h"
#include "kernels/random_matrix.h"
#include "model/decode_all.h"
#include "model_loading.h"
#include "oracle/test_model.h"
#include "simd/probe.h"
#include "support.h"

namespace headlight {
namespace {

using testing::GgufModel;
using testing::GgufModelOptions;
using testing::GgufTensorEntry;

// The same model with every matrix as f32, decoded from the packed ones. `of` must outlive it.
Model Decoded(const Model& of) {
  Model model;
  model.spec = of.spec;
  model.output_norm = of.output_norm;
  model.layers = of.layers;
  const auto decode = [&](const PackedMatrix& from, PackedMatrix& to) {
    if (from.data == nullptr) return;
    const size_t n_rows = from.shape.n_rows, n_cols = from.shape.n_cols;
    std::vector<uint8_t> bytes(n_rows * n_cols * sizeof(float));
    std::vector<float> row(n_cols);
    for (size_t r = 0; r < n_rows; ++r) {
      DecodeRow(from, r, row.data());
      std::memcpy(&bytes[r * n_cols * sizeof(float)], row.data(), n_cols * sizeof(float));
    }
    auto packed = test::Pack(TensorType::kF32, n_rows, n_cols, bytes, from.shape.form);
    to = packed.matrix;
    model.storage.push_back(std::move(packed.storage));
  };
  decode(of.embedding, model.embedding);
  decode(of.head, model.head);
  for (size_t i = 0; i < of.layers.size(); ++i) {
    for (const auto matrix :
         {&LayerWeights::w_q, &LayerWeights::w_k, &LayerWeights::w_v, &LayerWeights::w_o,
          &LayerWeights::w_gate, &LayerWeights::w_up, &LayerWeights::w_down}) {
      decode(of.layers[i].*matrix, model.layers[i].*matrix);
    }
  }
  return model;
}

// f32 activations: the same bits as floats give. 8-bit activations: their noise, which grows with
// each layer, and the same bits token by token as at once. Returns that noise.
double CheckAgainstFloats(const Model& model, const std::vector<uint32_t>& tokens,
                          double max_noise) {
  const Model floats = Decoded(model);
  DecodeSetup setup;
  const std::vector<float> expected = DecodeAll(floats, tokens, setup);
  const std::vector<float> exact = DecodeAll(model, tokens, setup);
  CHECK(std::memcmp(exact.data(), expected.data(), exact.size() * sizeof(float)) == 0);
  setup.activations = ActivationType::kInt8;
  const std::vector<float> rounded = DecodeAll(model, tokens, setup);
  setup.chunk = 1;
  const std::vector<float> stepped = DecodeAll(model, tokens, setup);
  CHECK(std::memcmp(stepped.data(), rounded.data(), rounded.size() * sizeof(float)) == 0);
  const double noise = Compare(rounded, expected).relative_rms;
  CHECK(noise > 0.0);  // 8-bit activations were used at all
  CHECK(noise <= max_noise);
  return noise;
}

TEST_CASE("quantised models: logits of llama.cpp's files in twelve types (needs ../shared)") {
  for (const char* type : {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                           "Q6_K", "IQ4_NL", "IQ4_XS"}) {
    const auto path = testing::SharedPath(std::string("quant/") + type + ".gguf");
    SKIP_UNLESS(path);
    CAPTURE(std::string(type));
    const auto model = testing::LoadModel(testing::ReadFile(*path), 4099, ProbeDot().form);
    const auto tokens = RandomTokens(19, model->spec.vocab_size, 3);
    const double noise = CheckAgainstFloats(*model, tokens, 0.02);
    MESSAGE(std::string(type) << ": 8-bit activations differ by " << 100.0 * noise << " %");
  }
}

// A model whose matrices are of `types` in turn.
std::shared_ptr<const Model> MixedModel(const std::vector<TensorType>& types, DotForm form) {
  GgufModelOptions options;
  options.d_model = 256;
  options.heads = {4, 2, 64, 64};
  options.d_ff = 512;
  options.n_layers = 2;
  GgufModel file = MakeGgufModel(options);
  size_t next = 0;
  for (auto& [name, values] : file.values) {
    GgufTensorEntry& entry = file.writer.tensor(name);
    if (entry.dims.size() < 2) continue;
    const TensorType type = types[next++ % types.size()];
    const auto n_cols = static_cast<size_t>(entry.dims[0]);
    const auto n_rows = static_cast<size_t>(entry.dims[1]);
    entry.type = static_cast<uint32_t>(type);
    entry.data = test::RandomFileBytes(type, n_rows, n_cols, test::Fill::kNormal,
                                       static_cast<uint32_t>(next));
  }
  return testing::LoadModel(file.writer.File(), 1009, form);
}

TEST_CASE("quantised models: every type alone, and all of them mixed in one model") {
  const std::vector<TensorType> all(std::begin(test::kTypes), std::end(test::kTypes));
  std::vector<std::vector<TensorType>> mixtures = {all, {all.rbegin(), all.rend()}};
  for (const TensorType type : all) {
    if (test::IsCoded(type)) mixtures.push_back({type});
  }
  for (const DotForm form : test::ExactForms(ProbeDot().form)) {
    for (const std::vector<TensorType>& types : mixtures) {
      const auto model = MixedModel(types, form);
      CAPTURE(std::string(DotFormName(form)));
      CAPTURE(std::string(test::Traits(types[0]).name));
      // Random minima give weights a mean, which makes the rounding noise of a token one direction.
      CheckAgainstFloats(*model, RandomTokens(9, model->spec.vocab_size, 4), 0.05);
    }
  }
}

}  // namespace
}  // namespace headlight
