#include "oracle/test_model.h"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "model/tensor_table.h"
#include "quant/packed.h"
#include "sample/random.h"
#include "simd/probe.h"

namespace headlight {
namespace {

class Builder {
 public:
  Builder(const ModelSpec& spec, TensorType type, uint64_t seed)
      : type_(type), random_(seed), model_(std::make_shared<Model>()) {
    model_->spec = spec;
  }

  TestModel Build() {
    ModelSpec& spec = model_->spec;
    model_->layers.resize(spec.layers.size());
    oracle_.layers.resize(spec.layers.size());
    if (spec.tied_head) spec.tensors.maybe = spec.tensors.maybe - TensorSet{TensorRole::kHead};
    for (size_t i = 0; i < NumPlaces(spec); ++i) {
      const TensorPlace place = PlaceAt(i);
      if (UseOf(spec, place).Has(place.role) && !place.is_rope_factors()) Add(place);
    }
    if (spec.tied_head) model_->head = model_->embedding;
    oracle_.spec = spec;
    return {std::move(model_), std::move(oracle_)};
  }

 private:
  // Standard deviation of a matrix that keeps the variance of a normalised x. Embeddings have that
  // variance themselves. The products that end a branch are smaller, as is usual at initialisation
  // (GPT-2): all branches together then weigh about as much as the embedding, whatever the depth.
  double SigmaOf(TensorRole role, size_t n_cols) const {
    constexpr TensorSet kRows = {TensorRole::kEmbedding, TensorRole::kPositions};
    constexpr TensorSet kLast = {TensorRole::kAttentionOutput, TensorRole::kDown,
                                 TensorRole::kExpertDown, TensorRole::kSharedDown};
    if (kRows.Has(role)) return 1.0;
    const double sigma = 1.0 / std::sqrt(static_cast<double>(n_cols));
    const double n_branches = 2.0 * static_cast<double>(model_->spec.layers.size());
    return kLast.Has(role) ? sigma / std::sqrt(n_branches) : sigma;
  }

  void Add(const TensorPlace& place) {
    const TensorShape shape = ExpectedShape(model_->spec, place);
    const WeightSlot slot = SlotOf(*model_, place);
    OracleWeights& weights = place.is_per_layer() ? oracle_.layers[place.layer] : oracle_.weights;
    std::vector<Matrix>& values = weights[place.role];
    if (auto* const* vector = std::get_if<const float**>(&slot)) {
      // Weights of norms are near 1, biases and sinks near 0, as after training.
      const std::string name = TensorName(place);
      const bool is_norm = name.ends_with("norm.weight");
      values.push_back({shape.n_rows, shape.n_cols, {}});
      **vector = AddVector(shape.n_rows * shape.n_cols, is_norm ? 1.0 : 0.0, values[0].values);
      return;
    }
    const double sigma = SigmaOf(place.role, shape.n_cols);
    if (auto* const* matrix = std::get_if<PackedMatrix*>(&slot)) {
      **matrix = AddStack(shape, sigma, values).at(0);
    } else if (auto* const* stack = std::get_if<PackedStack*>(&slot)) {
      **stack = AddStack(shape, sigma, values);
    }
  }

  PackedStack AddStack(const TensorShape& shape, double sigma, std::vector<Matrix>& values) {
    const bool divides = shape.n_cols % FindTensorType(static_cast<uint32_t>(type_))->n_block == 0;
    const TensorType type = divides ? type_ : TensorType::kF16;
    const PackedShape packed = PlanPacked(type, shape.n_rows, shape.n_cols, ProbeDot().form);
    AlignedArray<uint8_t> storage(packed.bytes * shape.n_matrices);
    for (size_t i = 0; i < shape.n_matrices; ++i) {
      const TestTensor tensor = MakeTensor(type, shape.n_rows, shape.n_cols, sigma, random_);
      values.push_back(tensor.matrix);
      PackedWriter(type, packed, storage.data() + i * packed.bytes).Append(tensor.bytes);
    }
    model_->storage.push_back(std::move(storage));
    return {packed, model_->storage.back().data()};
  }

  const float* AddVector(size_t n, double center, std::vector<double>& values) {
    std::vector<float> vector(n);
    for (float& weight : vector) weight = static_cast<float>(center + 0.2 * Normal(random_));
    values.assign(vector.begin(), vector.end());
    AlignedArray<uint8_t> storage(n * sizeof(float));
    std::memcpy(storage.data(), vector.data(), storage.size());
    model_->storage.push_back(std::move(storage));
    return reinterpret_cast<const float*>(model_->storage.back().data());
  }

  TensorType type_;
  Random random_;
  std::shared_ptr<Model> model_;
  OracleModel oracle_;
};

}  // namespace

ModelSpec SmallSpec(const HeadLayout& heads, size_t d_model, size_t d_ff, size_t n_layers) {
  LayerSpec layer;
  layer.heads = heads;
  layer.rope.style = RopeStyle::kInterleaved;
  layer.rope.n_rot = heads.d_qk / 2 * 2;
  layer.attention_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(heads.d_qk)));
  layer.d_ff = d_ff;
  ModelSpec spec;
  spec.architecture = "test";
  spec.d_model = d_model;
  spec.vocab_size = 97;
  spec.n_ctx_train = 512;
  spec.tied_head = true;
  spec.layers.assign(n_layers, layer);
  return spec;
}

TestModel MakeTestModel(const ModelSpec& spec, TensorType type, uint64_t seed) {
  return Builder(spec, type, seed).Build();
}

std::vector<uint32_t> RandomTokens(size_t n, size_t vocab_size, uint64_t seed) {
  Random random(seed);
  std::vector<uint32_t> tokens(n);
  for (uint32_t& token : tokens) token = static_cast<uint32_t>(random.Next() % vocab_size);
  return tokens;
}

}  // namespace headlight
