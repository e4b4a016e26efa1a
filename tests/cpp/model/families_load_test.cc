// Files of every row of the table of architectures: each tensor arrives where it belongs, alone or
// joined with others, in chunks cut anywhere.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "gguf_reading.h"
#include "gguf_writer.h"
#include "model/arch_table.h"
#include "model/tensor_table.h"
#include "model_loading.h"
#include "oracle/oracle.h"
#include "support.h"

namespace headlight::testing {
namespace {

// Every width is different.
GgufWriter SmallKeys(const ArchRow& row) {
  GgufWriter writer;
  const std::string a = std::string(row.name) + ".";
  writer.String("general.architecture", row.name)
      .Uint(a + "context_length", 21)
      .Uint(a + "embedding_length", 12)
      .Uint(a + "block_count", 2)
      .Uint(a + "feed_forward_length", 10)
      .Uint(a + "attention.head_count", 4)
      .Uint(a + "attention.head_count_kv", 2)
      .Uint(a + "attention.key_length", 6)
      .Uint(a + "attention.value_length", 5)
      .Float(a + "attention.layer_norm_rms_epsilon", 1e-3f)
      .Float(a + "attention.layer_norm_epsilon", 1e-3f)
      .Uint(a + "vocab_size", 9);
  if (row.rope_style != RopeStyle::kNone) writer.Uint(a + "rope.dimension_count", 4);
  if (!row.experts.always.empty()) {
    writer.Uint(a + "expert_count", 3)
        .Uint(a + "expert_used_count", 2)
        .Uint(a + "expert_feed_forward_length", 7)
        .Uint(a + "leading_dense_block_count", 1);
  }
  if (row.is_latent) writer.Uint(a + "attention.kv_lora_rank", 8);
  return writer;
}

// A file with all that the spec says, and what each of its places must hold.
struct File {
  GgufWriter writer;
  std::map<size_t, std::vector<float>> values;  // by TensorPlace::index()
};

std::vector<uint64_t> DimsOf(const TensorPlace& place, const TensorShape& shape) {
  std::vector<uint64_t> dims = {shape.n_cols};
  if (!place.is_vector() || shape.n_rows > 1) dims.push_back(shape.n_rows);
  if (shape.n_matrices > 1) dims.push_back(shape.n_matrices);
  return dims;
}

void AddTensor(const std::string& name, std::vector<uint64_t> dims,
               const std::vector<float>& values, GgufWriter& writer) {
  GgufTensorEntry entry;
  entry.name = name;
  entry.dims = std::move(dims);
  entry.data = EncodeTensor(TensorType::kF32, values).bytes;
  writer.Tensor(std::move(entry));
}

// joined: the weights of such a name in one tensor, in this order.
struct Joined {
  std::string name;
  std::vector<TensorRole> roles;
};

File MakeFile(const ArchRow& row, const std::vector<Joined>& joined, TensorSet without) {
  File file;
  file.writer = SmallKeys(row);
  const ModelSpec spec = BuildModelSpec(ReadHeader(file.writer.File()));
  Random random(7);
  std::map<std::string, std::pair<std::vector<uint64_t>, std::vector<float>>> tensors;
  for (size_t i = 0; i < NumPlaces(spec); ++i) {
    const TensorPlace place = PlaceAt(i);
    if (!UseOf(spec, place).Has(place.role) || without.Has(place.role)) continue;
    const TensorShape shape = ExpectedShape(spec, place);
    std::vector<float> values(shape.n_rows * shape.n_cols * shape.n_matrices);
    for (float& value : values) value = 1.5f + random.Uniform();
    file.values[i] = values;
    std::string name = TensorName(place);
    for (const Joined& j : joined) {
      if (std::find(j.roles.begin(), j.roles.end(), place.role) == j.roles.end()) continue;
      name = "blk." + std::to_string(place.layer) + "." + j.name;
    }
    auto& [dims, all] = tensors[name];
    const std::vector<uint64_t> own = DimsOf(place, shape);
    if (dims.empty()) {
      dims = own;
    } else {
      dims.back() += own.back();
    }
    all.insert(all.end(), values.begin(), values.end());
  }
  for (const auto& [name, tensor] : tensors) {
    AddTensor(name, tensor.first, tensor.second, file.writer);
  }
  return file;
}

void CheckLoaded(const File& file) {
  for (const size_t chunk : {0u, 7u}) {
    const auto model = LoadModel(file.writer.File(), chunk);
    const OracleModel weights = OracleOf(*model);
    for (const auto& [index, values] : file.values) {
      const TensorPlace place = PlaceAt(index);
      CAPTURE(TensorName(place));
      if (place.is_rope_factors()) continue;
      const OracleWeights& of =
          place.is_per_layer() ? weights.layers[place.layer] : weights.weights;
      REQUIRE(of.contains(place.role));
      std::vector<float> loaded;
      for (const Matrix& matrix : of.at(place.role)) {
        for (const double value : matrix.values) loaded.push_back(static_cast<float>(value));
      }
      CHECK(loaded == values);
      CHECK(UseOf(model->spec, place).always.Has(place.role));
    }
  }
}

const ArchRow& Row(const char* name) { return *FindArchitecture(name); }

}  // namespace

TEST_CASE(
    "families: a file with all that an architecture may have loads, each tensor in its place") {
  constexpr TensorSet kSecondWays = {TensorRole::kHeadGate, TensorRole::kKvB};
  for (const ArchRow& row : Architectures()) {
    CAPTURE(std::string(row.name));
    CheckLoaded(MakeFile(row, {}, kSecondWays));
  }
}

TEST_CASE("families: joined tensors are taken apart by rows") {
  const Joined qkv = {"attn_qkv.weight", {TensorRole::kQ, TensorRole::kK, TensorRole::kV}};
  const Joined bias = {"attn_qkv.bias",
                       {TensorRole::kQBias, TensorRole::kKBias, TensorRole::kVBias}};
  const Joined up = {"ffn_up.weight", {TensorRole::kGate, TensorRole::kUp}};
  CheckLoaded(MakeFile(Row("phi3"), {qkv, up}, {}));
  CheckLoaded(MakeFile(Row("gpt2"), {qkv, bias}, {}));
}

TEST_CASE("families: the other ways of a family's tensors") {
  constexpr TensorSet kApart = {TensorRole::kKB, TensorRole::kVB};
  CheckLoaded(MakeFile(Row("deepseek2"), {}, kApart));
  CheckLoaded(MakeFile(Row("llama"), {}, {TensorRole::kAttentionGate}));
  CheckLoaded(MakeFile(Row("stablelm"), {},
                       {TensorRole::kFeedForwardNorm, TensorRole::kFeedForwardNormBias}));
}

TEST_CASE("families: a tensor that is joined and alone at once is refused, a missing one named") {
  const Joined qkv = {"attn_qkv.weight", {TensorRole::kQ, TensorRole::kK, TensorRole::kV}};
  File file = MakeFile(Row("phi3"), {qkv}, {});
  AddTensor("blk.0.attn_k.weight", {12, 12}, std::vector<float>(144), file.writer);
  const Error twice = ErrorOf([&] { LoadModel(file.writer.File()); });
  CHECK(twice.code() == ErrorCode::kBadModel);
  CHECK(Contains(twice.message(), "blk.0.attn_k.weight"));

  File without = MakeFile(Row("gpt-oss"), {}, {TensorRole::kSinks});
  CHECK(Detail(ErrorOf([&] { LoadModel(without.writer.File()); }), "tensor") ==
        "blk.0.attn_sinks.weight");
}

}  // namespace headlight::testing
