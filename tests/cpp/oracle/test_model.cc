#include "oracle/test_model.h"

#include <cmath>
#include <cstring>
#include <utility>

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
    oracle_.spec = spec;
  }

  TestModel Build() {
    const ModelSpec& spec = model_->spec;
    model_->embedding = AddMatrix(spec.vocab_size, spec.d_model, 1.0, oracle_.embedding);
    model_->head = model_->embedding;
    oracle_.head = oracle_.embedding;
    if (!spec.tied_head) {
      model_->head = AddMatrix(spec.vocab_size, spec.d_model, Sigma(spec.d_model), oracle_.head);
    }
    model_->output_norm = AddNorm(oracle_.output_norm);
    for (const LayerSpec& layer : spec.layers) AddLayer(layer);
    return {std::move(model_), std::move(oracle_)};
  }

 private:
  // Keeps the variance of a normalised x.
  static double Sigma(size_t n_cols) { return 1.0 / std::sqrt(static_cast<double>(n_cols)); }

  void AddLayer(const LayerSpec& layer) {
    const size_t d_model = model_->spec.d_model;
    const HeadLayout& heads = layer.heads;
    LayerWeights w;
    OracleLayer o;
    const auto add = [&](size_t n_rows, size_t n_cols, Matrix& values) {
      return AddMatrix(n_rows, n_cols, Sigma(n_cols), values);
    };
    // The products that end a branch are smaller, as is usual at initialisation (GPT-2): all
    // branches together then weigh about as much as the embedding, whatever the depth.
    const double shrink = 1.0 / std::sqrt(2.0 * static_cast<double>(model_->spec.layers.size()));
    const auto add_last = [&](size_t n_rows, size_t n_cols, Matrix& values) {
      return AddMatrix(n_rows, n_cols, shrink * Sigma(n_cols), values);
    };
    w.attention_norm = AddNorm(o.attention_norm);
    w.w_q = add(heads.q_width(), d_model, o.w_q);
    w.w_k = add(heads.k_width(), d_model, o.w_k);
    w.w_v = add(heads.v_width(), d_model, o.w_v);
    w.w_o = add_last(d_model, heads.out_width(), o.w_o);
    if (layer.feed_forward == FeedForwardKind::kGated) {
      w.feed_forward_norm = AddNorm(o.feed_forward_norm);
      w.w_gate = add(layer.d_ff, d_model, o.w_gate);
      w.w_up = add(layer.d_ff, d_model, o.w_up);
      w.w_down = add_last(d_model, layer.d_ff, o.w_down);
    }
    model_->layers.push_back(w);
    oracle_.layers.push_back(std::move(o));
  }

  PackedMatrix AddMatrix(size_t n_rows, size_t n_cols, double sigma, Matrix& values) {
    const bool divides = n_cols % FindTensorType(static_cast<uint32_t>(type_))->n_block == 0;
    const TestTensor tensor =
        MakeTensor(divides ? type_ : TensorType::kF16, n_rows, n_cols, sigma, random_);
    values = tensor.matrix;
    const PackedShape shape = PlanPacked(tensor.type, n_rows, n_cols, ProbeDot().form);
    AlignedArray<uint8_t> storage(shape.bytes);
    PackedWriter(tensor.type, shape, storage.data()).Append(tensor.bytes);
    const PackedMatrix matrix = {shape, storage.data()};
    model_->storage.push_back(std::move(storage));
    return matrix;
  }

  // Near 1, as trained norms are.
  const float* AddNorm(std::vector<double>& values) {
    std::vector<float> norm(model_->spec.d_model);
    for (float& weight : norm) weight = static_cast<float>(1.0 + 0.2 * Normal(random_));
    values.assign(norm.begin(), norm.end());
    AlignedArray<uint8_t> storage(norm.size() * sizeof(float));
    std::memcpy(storage.data(), norm.data(), storage.size());
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
