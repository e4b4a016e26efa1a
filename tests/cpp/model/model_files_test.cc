// Real files, read and loaded whole: the default model of the repository, and small models and
// vocabularies of the shared data.
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "gguf_reading.h"
#include "gguf_writer.h"
#include "model/arch_table.h"
#include "model/tensor_table.h"
#include "model_loading.h"
#include "quant/blocks.h"
#include "support.h"

namespace headlight::testing {
namespace {

// The values of a tensor as the file's blocks define them, straight from the bytes.
std::vector<float> FileValues(const std::vector<uint8_t>& file, const GgufReader& header,
                              const GgufTensor& tensor) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(tensor.type));
  const uint8_t* block = file.data() + header.data_offset() + tensor.offset;
  std::vector<float> values(static_cast<size_t>(tensor.n_rows() * tensor.n_cols()));
  for (size_t i = 0; i < values.size(); i += traits.n_block, block += traits.block_bytes) {
    DecodeBlock(tensor.type, block, values.data() + i);
  }
  return values;
}

// Loads the file and compares every tensor; returns packed bytes over file bytes of the data
// section.
double CheckWholeFile(const std::string& path, const ModelSpec& spec) {
  const std::vector<uint8_t> file = ReadFile(path);
  const GgufReader header = ReadHeader(file, 4096);
  const uint64_t end = header.data_offset() + header.data_bytes();
  CHECK(end <= file.size());
  CHECK(file.size() - end < header.alignment());  // writers may pad the last tensor
  const auto model = LoadModel(file, 10007);
  CHECK(model->spec.layers.size() == spec.layers.size());
  for (const GgufTensor& tensor : header.tensors()) {
    CAPTURE(tensor.name);
    const std::vector<float> want = FileValues(file, header, tensor);
    const std::vector<float> got = WeightsOf(*model, tensor.name);
    REQUIRE(got.size() == want.size());
    CHECK(std::memcmp(got.data(), want.data(), want.size() * sizeof(float)) == 0);
  }
  return static_cast<double>(model->weights_bytes) / static_cast<double>(header.data_bytes());
}

}  // namespace

TEST_CASE("model files: the default model's header") {
  const GgufReader header =
      ReadHeader(ReadFile(RepoPath("examples/models/default-q8_0.gguf")), 1000);
  CHECK(header.version() == 3);
  CHECK(header.tensors().size() == 56);
  CHECK(header.values().size() == 33);
  CHECK(header.GetString("general.architecture") == "llama");
  CHECK(header.FindStrings("tokenizer.ggml.tokens")->count() == 2048);
  CHECK(header.FindStrings("tokenizer.ggml.tokens")->at(3) == "<|im_start|>");
  CHECK(header.FindNumbers("tokenizer.ggml.token_type")->at(3) == 3.0);
  CHECK(header.GetUint("tokenizer.ggml.eos_token_id") == 4);
  CHECK_FALSE(header.GetBool("tokenizer.ggml.add_space_prefix"));
  CHECK(header.FindTensor("blk.5.ffn_down.weight")->offset == 2888832);

  const ModelSpec spec = BuildModelSpec(header);
  CHECK(spec.d_model == 192);
  CHECK(spec.vocab_size == 2048);
  CHECK(spec.n_ctx_train == 512);
  CHECK(spec.norm_eps == 1e-5f);
  CHECK(spec.tied_head);
  REQUIRE(spec.layers.size() == 6);
  CHECK(spec.layers[5].heads == HeadLayout{8, 2, 24, 32});
  CHECK(spec.layers[5].d_ff == 512);
  CHECK(spec.layers[5].rope.n_rot == 24);
}

TEST_CASE("model files: the default model loads, packed no larger than the file") {
  const std::string path = RepoPath("examples/models/default-q8_0.gguf");
  const double ratio = CheckWholeFile(path, BuildModelSpec(ReadHeader(ReadFile(path))));
  // Every row is a multiple of 32 columns and every matrix of 4 rows, so that only the norms'
  // rounding to cache lines could add.
  CHECK(ratio <= 1.0);
}

TEST_CASE("model files: stories260K in each type that has a decoder") {
  struct StoriesFile {
    const char* name;
    size_t n_keys;
    double max_ratio;  // rows of 172 columns are padded to 192
  };
  const StoriesFile files[] = {
      {"models/stories260K.gguf", 19, 1.05},
      {"models/stories260K-F16.gguf", 21, 1.05},
      {"models/stories260K-BF16.gguf", 21, 1.05},
      {"models/stories260K-mixed-q8_0-f16.gguf", 21, 1.05},
      {"models/stories260K-mixed-q5_0-q8_0-f16.gguf", 21, 1.15},
  };
  for (const StoriesFile& f : files) {
    const std::optional<std::string> path = SharedPath(f.name);
    SKIP_UNLESS(path);
    CAPTURE(*path);
    const GgufReader header = ReadHeader(ReadFile(*path), 77);
    CHECK(header.tensors().size() == 48);
    CHECK(header.values().size() == f.n_keys);
    CHECK(header.GetUint("tokenizer.ggml.padding_token_id") == 4294967295u);
    CHECK(header.FindStrings("tokenizer.ggml.tokens")->count() == 512);
    const ModelSpec spec = BuildModelSpec(header);
    CHECK(spec.d_model == 64);
    CHECK(spec.vocab_size == 512);  // from the tokens: the file has no vocab_size
    CHECK(spec.n_ctx_train == 128);
    CHECK_FALSE(spec.tied_head);
    REQUIRE(spec.layers.size() == 5);
    CHECK(spec.layers[0].heads == HeadLayout{8, 4, 8, 8});  // from 64 / 8: no key_length
    CHECK(spec.layers[0].d_ff == 172);
    CHECK(spec.layers[0].rope.freq_base == 10000.0);  // not in the file

    const double ratio = CheckWholeFile(*path, spec);
    CAPTURE(ratio);
    CHECK(ratio <= f.max_ratio);
  }
}

TEST_CASE(
    "model files: vocabularies of other families are read; only served architectures are run") {
  struct Vocabulary {
    const char* name;
    size_t n_tokens;
    bool served;
  };
  const Vocabulary files[] = {
      {"tokenizers/ggml-vocab-llama-spm.gguf", 32000, true},
      {"tokenizers/ggml-vocab-phi-3.gguf", 32064, true},
      {"tokenizers/ggml-vocab-gpt-2.gguf", 50257, true},
      {"tokenizers/ggml-vocab-falcon.gguf", 65024, false},
      {"tokenizers/ggml-vocab-deepseek-llm.gguf", 102400, true},  // its architecture key says llama
  };
  for (const Vocabulary& f : files) {
    const std::optional<std::string> path = SharedPath(f.name);
    SKIP_UNLESS(path);
    CAPTURE(*path);
    const std::vector<uint8_t> file = ReadFile(*path);
    const GgufReader header = ReadHeader(file, 65536);
    CHECK(header.FindStrings("tokenizer.ggml.tokens")->count() == f.n_tokens);
    CHECK(header.tensors().empty());
    const Error error = ErrorOf([&] { LoadModel(file); });
    CAPTURE(error.message());
    CHECK(error.code() == (f.served ? ErrorCode::kBadModel : ErrorCode::kUnsupported));
  }
}

TEST_CASE("model files: a header of 128k tokens and 280k merges parses in linear time") {
  // As large as today's: 128,256 tokens with scores and types, 280,147 merges.
  GgufWriter writer;
  std::vector<std::string> tokens, merges;
  Random random(5);
  for (size_t i = 0; i < 128256; ++i) tokens.push_back("token" + std::to_string(i));
  for (size_t i = 0; i < 280147; ++i)
    merges.push_back(tokens[random.Below(tokens.size())] + " " + tokens[i % 1000]);
  writer.Strings("tokenizer.ggml.tokens", tokens)
      .Strings("tokenizer.ggml.merges", merges)
      .Floats("tokenizer.ggml.scores", std::vector<float>(tokens.size()))
      .Ints("tokenizer.ggml.token_type", std::vector<int32_t>(tokens.size(), 1));
  const std::vector<uint8_t> file = writer.File();
  using Clock = std::chrono::steady_clock;
  double best[2] = {1e9, 1e9};  // ms, for chunks of 64 KiB and of 97 bytes
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const size_t chunk = i == 0 ? 65536 : 97;
      GgufReader reader;
      const auto start = Clock::now();
      for (size_t at = 0; at < file.size(); at += chunk) {
        reader.Append(std::span(file).subspan(at, std::min(chunk, file.size() - at)));
      }
      const double ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
      best[i] = std::min(best[i], ms);
      CHECK(reader.FindStrings("tokenizer.ggml.merges")->count() == merges.size());
    }
  }
  MESSAGE("header of ", file.size(), " bytes: ", best[0], " ms in chunks of 64 KiB, ", best[1],
          " ms in chunks of 97 bytes");
  // Quadratic behaviour would take minutes; 2 s leaves room for sanitizers and a busy machine.
  CHECK(best[0] < 2000.0);
  CHECK(best[1] < 2000.0);
}

}  // namespace headlight::testing
