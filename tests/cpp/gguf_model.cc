// MakeGgufModel of gguf_writer.h.
#include <cmath>
#include <utility>

#include "gguf_writer.h"
#include "support.h"

namespace headlight::testing {
namespace {

void AddVocabulary(const GgufModelOptions& options, GgufWriter& writer) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types = {2, 3, 3};  // unknown, control, control
  static constexpr char kHex[] = "0123456789ABCDEF";
  for (size_t b = 0; b < 256; ++b) {
    tokens.push_back(std::string("<0x") + kHex[b >> 4] + kHex[b & 15] + ">");
    types.push_back(6);  // byte
  }
  while (tokens.size() < options.vocab_size) {
    tokens.push_back("t" + std::to_string(tokens.size()));
    types.push_back(1);  // normal
  }
  tokens.resize(options.vocab_size);
  types.resize(options.vocab_size);
  std::vector<float> scores(options.vocab_size);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = -static_cast<float>(i);
  writer.String("tokenizer.ggml.model", "llama")
      .Strings("tokenizer.ggml.tokens", tokens)
      .Floats("tokenizer.ggml.scores", scores)
      .Ints("tokenizer.ggml.token_type", types)
      .Uint("tokenizer.ggml.bos_token_id", 1)
      .Uint("tokenizer.ggml.eos_token_id", 2)
      .Uint("tokenizer.ggml.unknown_token_id", 0);
}

void AddKeys(const GgufModelOptions& options, GgufWriter& writer) {
  const auto u32 = [](size_t n) { return static_cast<uint32_t>(n); };
  const std::string a = options.architecture + ".";
  writer.String("general.architecture", options.architecture)
      .String("general.name", "test model")
      .Uint("general.quantization_version", 2)
      .Uint(a + "vocab_size", u32(options.vocab_size))
      .Uint(a + "context_length", u32(options.n_ctx))
      .Uint(a + "embedding_length", u32(options.d_model))
      .Uint(a + "block_count", u32(options.n_layers))
      .Uint(a + "feed_forward_length", u32(options.d_ff))
      .Uint(a + "attention.head_count", u32(options.heads.n_q_heads))
      .Uint(a + "attention.head_count_kv", u32(options.heads.n_kv_heads))
      .Uint(a + "attention.key_length", u32(options.heads.d_qk))
      .Uint(a + "attention.value_length", u32(options.heads.d_v))
      .Float(a + "attention.layer_norm_rms_epsilon", 1e-5f)
      .Uint(a + "rope.dimension_count", u32(options.n_rot.value_or(options.heads.d_qk)))
      .Float(a + "rope.freq_base", static_cast<float>(options.freq_base));
}

// Adds tensors with seeded weights and keeps their decoded values.
class Weights {
 public:
  Weights(const GgufModelOptions& options, GgufModel& model)
      : options_(options), model_(model), random_(options.seed) {}

  // Uniform with variance 1 / n_cols, so that a row's product with a vector keeps that vector's
  // scale.
  void Matrix(const std::string& name, size_t n_rows, size_t n_cols) {
    const float width = std::sqrt(3.0f / static_cast<float>(n_cols));
    std::vector<float> values(n_rows * n_cols);
    for (float& x : values) x = random_.Uniform() * width;
    Add(name, options_.type, n_rows, values);
  }
  void Norm(const std::string& name) {
    std::vector<float> values(options_.d_model);
    for (float& x : values) x = 1.0f + 0.25f * random_.Uniform();
    Add(name, options_.norm_type, 0, values);
  }

 private:
  void Add(const std::string& name, TensorType type, size_t n_rows,
           const std::vector<float>& values) {
    model_.writer.Tensor(name, type, n_rows, values);
    model_.values[name] = EncodeTensor(type, values).values;
  }

  const GgufModelOptions& options_;
  GgufModel& model_;
  Random random_;
};

}  // namespace

GgufModel MakeGgufModel(const GgufModelOptions& options) {
  GgufModel model;
  AddKeys(options, model.writer);
  if (options.with_vocabulary) AddVocabulary(options, model.writer);
  Weights weights(options, model);
  const size_t d_model = options.d_model;
  const HeadLayout& heads = options.heads;
  weights.Matrix("token_embd.weight", options.vocab_size, d_model);
  weights.Norm("output_norm.weight");
  if (!options.tied_head) weights.Matrix("output.weight", options.vocab_size, d_model);
  for (size_t i = 0; i < options.n_layers; ++i) {
    const std::string blk = "blk." + std::to_string(i) + ".";
    weights.Norm(blk + "attn_norm.weight");
    weights.Matrix(blk + "attn_q.weight", heads.q_width(), d_model);
    weights.Matrix(blk + "attn_k.weight", heads.k_width(), d_model);
    weights.Matrix(blk + "attn_v.weight", heads.v_width(), d_model);
    weights.Matrix(blk + "attn_output.weight", d_model, heads.out_width());
    weights.Norm(blk + "ffn_norm.weight");
    weights.Matrix(blk + "ffn_gate.weight", options.d_ff, d_model);
    weights.Matrix(blk + "ffn_up.weight", options.d_ff, d_model);
    weights.Matrix(blk + "ffn_down.weight", d_model, options.d_ff);
  }
  return model;
}

std::vector<uint8_t> MakeGgufModelFile(const GgufModelOptions& options) {
  return MakeGgufModel(options).writer.File();
}

}  // namespace headlight::testing
