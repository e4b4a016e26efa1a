// ModelLoader: what goes in comes out, whatever the chunks; what it refuses, and when.
#include "model/model_loader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "gguf_writer.h"
#include "model_loading.h"
#include "support.h"

namespace headlight::testing {
namespace {

constexpr DotForm kForms[] = {DotForm::kWide, DotForm::kUnsigned, DotForm::kSigned,
                              DotForm::kSplit};

// Every weight of the model equals what the file's blocks mean.
void CheckWeights(const Model& model, const GgufModel& file) {
  size_t n_checked = 0;
  for (const auto& [name, values] : file.values) {
    INFO("tensor ", name);
    const std::vector<float> got = WeightsOf(model, name);
    REQUIRE(got.size() == values.size());
    CHECK(std::memcmp(got.data(), values.data(), values.size() * sizeof(float)) == 0);
    ++n_checked;
  }
  CHECK(n_checked == file.values.size());
}

}  // namespace

TEST_CASE(
    "model_loader: every weight comes out as the file's blocks mean it, for each type and form") {
  for (const TensorType type : {TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                TensorType::kQ8_0, TensorType::kQ4_0}) {
    for (const DotForm form : kForms) {
      for (const bool tied : {true, false}) {
        GgufModelOptions options;
        options.type = type;
        options.tied_head = tied;
        options.heads = {4, 2, 16, 32};  // out_width 128: a multiple of the block
        CAPTURE(FindTensorType(static_cast<uint32_t>(type))->name);
        CAPTURE(DotFormName(form));
        CAPTURE(tied);
        const GgufModel file = MakeGgufModel(options);
        const auto model = LoadModel(file.writer.File(), 1000, form);
        CheckWeights(*model, file);
        CHECK(model->spec.tied_head == tied);
        CHECK((model->head.data == model->embedding.data) == tied);
      }
    }
  }
}

TEST_CASE("model_loader: chunk sizes change nothing") {
  GgufModelOptions options;
  options.d_model = 40;  // rows that end inside a block of 32 columns, as in real small models
  options.heads = {5, 5, 6, 10};
  options.d_ff = 44;
  options.type = TensorType::kBF16;
  const GgufModel file = MakeGgufModel(options);
  const std::vector<uint8_t> bytes = file.writer.File();
  for (const size_t chunk :
       {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{64}, size_t{4096}, bytes.size()}) {
    CAPTURE(chunk);
    CheckWeights(*LoadModel(bytes, chunk), file);
  }
}

TEST_CASE("model_loader: vectors may be F16 or BF16") {
  for (const TensorType type : {TensorType::kF16, TensorType::kBF16}) {
    GgufModelOptions options;
    options.norm_type = type;
    const GgufModel file = MakeGgufModel(options);
    CheckWeights(*LoadModel(file.writer.File(), 3), file);
  }
}

TEST_CASE("model_loader: the states, and the sizes known from the header alone") {
  GgufModelOptions options;
  options.type = TensorType::kQ8_0;
  options.heads = {4, 2, 16, 32};
  const GgufModel file = MakeGgufModel(options);
  const std::vector<uint8_t> bytes = file.writer.File();
  const size_t n_header = file.writer.Header().size();

  ModelLoader loader(DotForm::kWide);
  CHECK(loader.state() == ModelLoader::State::kHeader);
  CHECK(loader.Append(bytes) == n_header);  // stops before the data
  CHECK(loader.state() == ModelLoader::State::kPlanned);
  CHECK(loader.Append(std::span(bytes).subspan(n_header)) == 0);
  CHECK(loader.shard_bytes() == bytes.size());
  CHECK(loader.spec().layers.size() == options.n_layers);
  CHECK(loader.metadata().GetString("general.name") == "test model");
  const size_t weights_bytes = loader.weights_bytes();
  CHECK(weights_bytes > 0);

  loader.Allocate();
  CHECK(loader.state() == ModelLoader::State::kData);
  std::vector<uint8_t> rest(bytes.begin() + static_cast<ptrdiff_t>(n_header), bytes.end());
  rest.resize(rest.size() + 100);  // trailing bytes are taken and ignored
  CHECK(loader.Append(rest) == rest.size());
  CHECK(loader.state() == ModelLoader::State::kShardDone);
  CHECK(loader.Append(rest) == rest.size());

  CHECK(loader.metadata().FindStrings("tokenizer.ggml.tokens") != nullptr);
  loader.DropMetadata();
  CHECK(loader.metadata().FindStrings("tokenizer.ggml.tokens") == nullptr);
  CHECK(loader.metadata().GetString("general.name") == "test model");

  const auto model = loader.Finish();
  CHECK(model->weights_bytes == weights_bytes);
  size_t stored = 0;
  for (const auto& block : model->storage) stored += block.bytes();
  CHECK(stored == weights_bytes);
}

TEST_CASE("model_loader: a tied embedding is stored once") {
  GgufModelOptions options;
  options.n_layers = 1;
  ModelLoader tied(DotForm::kWide);
  tied.Append(MakeGgufModelFile(options));
  options.tied_head = false;
  ModelLoader separate(DotForm::kWide);
  separate.Append(MakeGgufModelFile(options));
  const size_t table =
      PlanPacked(options.type, options.vocab_size, options.d_model, DotForm::kWide).bytes;
  CHECK(separate.weights_bytes() - tied.weights_bytes() == table);
}

TEST_CASE("model_loader: a file cut anywhere fails cleanly and says where") {
  GgufModelOptions options;
  options.n_layers = 1;
  options.d_model = 8;
  options.heads = {2, 1, 4, 4};
  options.d_ff = 8;
  options.vocab_size = 5;
  const std::vector<uint8_t> bytes = MakeGgufModelFile(options);
  // All of the header, and enough of the data to cut every kind of tensor.
  for (size_t n = 0; n < bytes.size(); ++n) {
    const Error error = ErrorOf([&] { LoadModel(std::span(bytes).first(n), 64); });
    CAPTURE(n);
    CHECK(error.code() == ErrorCode::kBadModel);
    if (n >= 4) CHECK(Detail(error, "offset") == std::to_string(n));
  }
  LoadModel(bytes, 64);
}

TEST_CASE("model_loader: a failed load stays failed, with the same error") {
  GgufModelOptions options;
  GgufModel file = MakeGgufModel(options);
  file.writer.tensor("blk.1.ffn_up.weight").data[3] = 0xFF;  // exponent of the first weight
  file.writer.tensor("blk.1.ffn_up.weight").data[2] = 0xFF;
  const std::vector<uint8_t> bytes = file.writer.File();
  ModelLoader loader(DotForm::kWide);
  const size_t n = loader.Append(bytes);
  loader.Allocate();
  const Error first = ErrorOf([&] { loader.Append(std::span(bytes).subspan(n)); });
  CHECK(Detail(first, "tensor") == "blk.1.ffn_up.weight");
  CHECK(ErrorOf([&] { loader.Append(bytes); }).message() == first.message());
  CHECK(ErrorOf([&] { loader.Finish(); }).message() == first.message());
}

TEST_CASE("model_loader: a weight that is no finite number is refused by tensor, row and column") {
  struct Case {
    const char* tensor;
    size_t element;  // n_cols is 64 for both matrices
    float value;
    const char* row;
    const char* column;
  };
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Case cases[] = {
      {"blk.0.attn_q.weight", 64 * 5 + 7, inf, "5", "7"},
      {"token_embd.weight", 64 * 95 + 63, nan, "95", "63"},
      {"blk.1.attn_norm.weight", 9, -inf, "0", "9"},
      {"output_norm.weight", 63, nan, "0", "63"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.tensor);
    GgufModel file = MakeGgufModel({});
    std::memcpy(file.writer.tensor(c.tensor).data.data() + c.element * sizeof(float), &c.value,
                sizeof(float));
    const std::vector<uint8_t> bytes = file.writer.File();
    for (const size_t chunk : {size_t{1}, size_t{13}, bytes.size()}) {
      const Error error = ErrorOf([&] { LoadModel(bytes, chunk); });
      CHECK(error.code() == ErrorCode::kBadModel);
      CHECK(Detail(error, "tensor") == c.tensor);
      CHECK(Detail(error, "row") == c.row);
      CHECK(Detail(error, "column") == c.column);
      CHECK(Contains(error.message(), c.tensor));
    }
  }
}

TEST_CASE("model_loader: a missing tensor is named as soon as the header is there") {
  for (const char* name : {"token_embd.weight", "output_norm.weight", "blk.1.ffn_down.weight",
                           "blk.0.attn_norm.weight"}) {
    GgufModel file = MakeGgufModel({});
    file.writer.RemoveTensor(name);
    ModelLoader loader(DotForm::kWide);
    const Error error = ErrorOf([&] { loader.Append(file.writer.File()); });
    CHECK(error.code() == ErrorCode::kBadModel);
    CHECK(Detail(error, "tensor") == name);
  }
}

TEST_CASE("model_loader: rotary factors divide the frequencies of every rotated layer") {
  GgufModelOptions options;
  GgufModel file = MakeGgufModel(options);
  std::vector<float> factors(options.heads.d_qk / 2);
  for (size_t i = 0; i < factors.size(); ++i) factors[i] = 1.0f + static_cast<float>(i);
  file.writer.Tensor("rope_freqs.weight", TensorType::kF32, 0, factors);
  const auto model = LoadModel(file.writer.File(), 11);
  for (const LayerSpec& layer : model->spec.layers) CHECK(layer.rope.freq_factors == factors);

  factors[3] = 0.0f;
  GgufModel zero = MakeGgufModel(options);
  zero.writer.Tensor("rope_freqs.weight", TensorType::kF32, 0, factors);
  const Error error = ErrorOf([&] { LoadModel(zero.writer.File(), 11); });
  CHECK(error.code() == ErrorCode::kBadModel);
  CHECK(Detail(error, "tensor") == "rope_freqs.weight");
  CHECK(Detail(error, "column") == "3");
}

TEST_CASE("model_loader: Allocate before the header is done, or twice, is a wrong call") {
  ModelLoader early(DotForm::kWide);
  CHECK(ErrorOf([&] { early.Allocate(); }).code() == ErrorCode::kBadOption);
  ModelLoader twice(DotForm::kWide);
  twice.Append(MakeGgufModelFile({}));
  twice.Allocate();
  CHECK(ErrorOf([&] { twice.Allocate(); }).code() == ErrorCode::kBadOption);
}

TEST_CASE("model_loader: tensors in any order and with gaps between them") {
  GgufModel file = MakeGgufModel({});
  uint64_t offset = 0;  // the last tensor of the directory first, 96 unused bytes before each
  for (auto it = file.values.rbegin(); it != file.values.rend(); ++it) {
    GgufTensorEntry& entry = file.writer.tensor(it->first);
    entry.offset = offset += 96;
    offset += entry.data.size();
  }
  file.writer.place_by_offset = true;
  CheckWeights(*LoadModel(file.writer.File(), 50), file);
}

}  // namespace headlight::testing
