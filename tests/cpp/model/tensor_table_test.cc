// Which tensor is which weight: names, shapes, and what is refused.
#include "model/tensor_table.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gguf_reading.h"
#include "gguf_writer.h"
#include "model/arch_table.h"
#include "support.h"

namespace headlight::testing {
namespace {

constexpr ErrorCode kBad = ErrorCode::kBadModel;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;

// Four layers; every width is different.
ModelSpec BuildSpec(const std::string& architecture = "llama") {
  GgufModelOptions options;
  options.architecture = architecture;
  options.n_layers = 4;
  options.d_model = 96;
  options.heads = {6, 2, 24, 40};
  options.d_ff = 160;
  options.vocab_size = 100;
  return BuildModelSpec(ReadHeader(MakeGgufModelFile(options)));
}

}  // namespace

TEST_CASE("tensor_table: places and indices are one to one, names are the format's") {
  ModelSpec spec = BuildSpec();
  for (size_t i = 0; i < NumPlaces(spec); ++i) CHECK(PlaceAt(i).index() == i);
  CHECK(NumPlaces(spec) == kModelRoles + 4 * (kRoles - kModelRoles));
  CHECK(TensorName({TensorRole::kHead, 0}) == "output.weight");
  CHECK(TensorName({TensorRole::kAttentionOutput, 3}) == "blk.3.attn_output.weight");
}

TEST_CASE(
    "tensor_table: tensors that the decoder would have to use and does not are refused by name") {
  struct UnknownTensor {
    const char* name;
    const char* said;
  };
  const UnknownTensor tensors[] = {
      {"blk.0.attn_norm.bias", "biases"},
      {"blk.1.attn_q_norm.weight", "QK-norm"},
      {"blk.1.attn_k_norm.weight", "QK-norm"},
      {"blk.2.ffn_gate_inp.weight", "mixture of experts"},
      {"blk.2.ffn_up_exps.weight", "mixture of experts"},
      {"blk.0.post_attention_norm.weight", "norms after"},
      {"blk.0.attn_sinks.weight", "sinks"},
      {"blk.4.attn_q.weight", "beyond the 4"},
      {"blk.00.attn_q.weight", "unknown"},
      {"blk.-1.attn_q.weight", "unknown"},
      {"blk.99999999999999999999.attn_q.weight", "unknown"},
      {"blk..attn_q.weight", "unknown"},
      {"blk.", "unknown"},
      {"blk.1", "unknown"},
      {"attn_q.weight", "unknown"},
      {"rope_factors_long.weight", "LongRoPE"},
      {"position_embd.weight", "learned positions"},
      {"token_embd.weight.lora_a", "LoRA"},
      {"mm.0.weight", "unknown"},
  };
  const ModelSpec spec = BuildSpec();
  for (const UnknownTensor& t : tensors) {
    const std::string name = t.name;
    CAPTURE(name);
    GgufTensor tensor;
    tensor.name = t.name;
    const Error error = ErrorOf([&] { (void)FindPlaces(spec, tensor); });
    CHECK(error.code() == kUnsupported);
    CHECK(Detail(error, "tensor") == t.name);
    CAPTURE(error.message());
    CHECK(Contains(error.message(), t.said));
    CHECK(Contains(error.message(), t.name));
  }
  // Rotary factors belong to some families only.
  GgufTensor factors;
  factors.name = "rope_freqs.weight";
  factors.n_dims = 1;
  factors.dims[0] = 12;
  CHECK(FindPlaces(spec, factors).at(0).role == TensorRole::kRopeFactors);
  CHECK(ErrorOf([&] { (void)FindPlaces(BuildSpec("xverse"), factors); }).code() == kUnsupported);
}

TEST_CASE("tensor_table: tables that repeat the keys are ignored") {
  GgufTensor tensor;
  tensor.name = "blk.2.attn_rot_embd.inv_freq";
  CHECK(FindPlaces(BuildSpec(), tensor).empty());
}

TEST_CASE("tensor_table: a shape that the keys do not agree with is an error with both shapes") {
  // q 6 * 24, k 2 * 24, v 2 * 40 and attention's output 6 * 40 wide.
  const ModelSpec spec = BuildSpec();
  struct Shape {
    const char* name;
    std::vector<uint64_t> right;  // row length first
  };
  const Shape shapes[] = {
      {"token_embd.weight", {96, 100}},
      {"output.weight", {96, 100}},
      {"output_norm.weight", {96}},
      {"rope_freqs.weight", {12}},
      {"blk.1.attn_norm.weight", {96}},
      {"blk.1.attn_q.weight", {96, 144}},
      {"blk.1.attn_k.weight", {96, 48}},
      {"blk.1.attn_v.weight", {96, 80}},
      {"blk.1.attn_output.weight", {240, 96}},
      {"blk.1.ffn_norm.weight", {96}},
      {"blk.1.ffn_gate.weight", {96, 160}},
      {"blk.1.ffn_up.weight", {96, 160}},
      {"blk.1.ffn_down.weight", {160, 96}},
  };
  for (const Shape& shape : shapes) {
    const std::string name = shape.name;
    CAPTURE(name);
    GgufTensor tensor;
    tensor.name = shape.name;
    tensor.n_dims = static_cast<uint32_t>(shape.right.size());
    std::copy(shape.right.begin(), shape.right.end(), tensor.dims);
    CHECK(FindPlaces(spec, tensor).size() == 1);
    for (size_t i = 0; i < 4; ++i) {  // each dimension one too many
      GgufTensor wrong = tensor;
      wrong.dims[i] += 1;
      wrong.n_dims = std::max(wrong.n_dims, static_cast<uint32_t>(i + 1));
      const Error error = ErrorOf([&] { (void)FindPlaces(spec, wrong); });
      CHECK(error.code() == kBad);
      CHECK(Detail(error, "tensor") == shape.name);
      CAPTURE(error.message());
      CHECK(Contains(error.message(), "[" + std::to_string(wrong.dims[0])));
      CHECK(Contains(error.message(), "ask for [" + std::to_string(shape.right[0])));
    }
  }
}

}  // namespace headlight::testing
