// Writes the seeds of the fuzz targets into the folders FOLDER/<target>, which must be there: small
// right models of several types and shapes, a first file of a split model; vocabularies of both
// kinds; tensor data; saved sessions; random choices. usage: make_corpus FOLDER
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "gguf_writer.h"
#include "oracle/test_model.h"
#include "sample/random.h"
#include "session/session.h"

namespace {

using headlight::TensorType;
using headlight::testing::ByteSink;
using headlight::testing::GgufModel;
using headlight::testing::GgufModelOptions;
using headlight::testing::MakeGgufModel;

void Write(const std::string& folder, const char* name, std::vector<uint8_t> file) {
  file.push_back(40);  // the chunk size, see gguf_fuzz.cc
  std::ofstream(folder + "/" + name, std::ios::binary)
      .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
}

GgufModelOptions Small() {
  GgufModelOptions options;
  options.n_layers = 1;
  options.d_model = 8;
  options.heads = {2, 1, 4, 6};
  options.d_ff = 6;
  options.vocab_size = 5;
  return options;
}

using headlight::CacheType;

struct BytesSink : headlight::SavedSink {
  void Write(std::span<const uint8_t> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  std::vector<uint8_t> bytes;
};

void WriteBytes(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

// Blocks of small bytes: scales are then small numbers.
void WritePacking(const std::string& folder) {
  for (uint8_t type = 0; type < 48; ++type) {
    const headlight::TensorTypeTraits* traits = headlight::FindTensorType(type);
    if (traits == nullptr) continue;
    std::vector<uint8_t> bytes(size_t{2} * 3 * traits->block_bytes);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 37 % 61);
    // 3 rows of 2 blocks, form 1, chunks of 8 (packing_fuzz.cc).
    bytes.insert(bytes.end(), {type, 2, 1, 1, 7});
    WriteBytes(folder + "/" + traits->name, bytes);
  }
}

void WriteSessions(const std::string& folder) {
  const headlight::TestModel test = headlight::MakeTestModel(
      headlight::SmallSpec({4, 2, 24, 32}, 64, 96, 2), TensorType::kQ8_0, 21);
  headlight::ThreadPool pool(1);
  uint8_t choice = 0;
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    headlight::SessionOptions options;
    options.n_ctx = 32;
    options.kv_format = {type, type};
    headlight::Session session(test.model, options, pool);
    const std::vector<uint32_t> tokens = {1, 5, 9, 3, 7};
    headlight::GenerateOptions generate;
    generate.max_tokens = 3;
    session.Begin(tokens, generate);
    while (!session.Advance(1e9).done) continue;
    BytesSink sink;
    session.Save(sink);
    sink.bytes.push_back(choice);  // session_fuzz.cc
    choice = static_cast<uint8_t>(choice + 2);
    WriteBytes(folder + "/" + headlight::CacheTypeName(type), sink.bytes);
  }
}

void WriteModels(const std::string& folder) {
  GgufModelOptions options = Small();
  Write(folder, "f32", MakeGgufModel(options).writer.File());
  options.type = TensorType::kBF16;
  options.norm_type = TensorType::kF16;
  options.tied_head = false;
  GgufModel factors = MakeGgufModel(options);
  factors.writer.Tensor("rope_freqs.weight", TensorType::kF32, 0, std::vector<float>{1.0f, 2.0f});
  Write(folder, "bf16", factors.writer.File());

  GgufModelOptions blocks = Small();
  blocks.d_model = 32;
  blocks.heads = {1, 1, 4, 32};
  blocks.d_ff = 32;
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0}) {
    blocks.type = type;
    GgufModel model = MakeGgufModel(blocks);
    model.writer.Uints("llama.attention.head_count", {1}).Uint("general.alignment", 8);
    model.writer.alignment = 8;
    Write(folder, headlight::FindTensorType(static_cast<uint32_t>(type))->name,
          model.writer.File());
  }

  // As short as a whole model can be: for many runs in a short time.
  GgufModelOptions tiny = Small();
  tiny.d_model = 2;
  tiny.heads = {1, 1, 2, 2};
  tiny.d_ff = 1;
  tiny.vocab_size = 2;
  tiny.with_vocabulary = false;
  Write(folder, "tiny", MakeGgufModel(tiny).writer.File());

  GgufModel split = MakeGgufModel(Small());
  split.writer.Raw("split.no", 2, ByteSink().Number(uint16_t{0}).bytes)
      .Raw("split.count", 2, ByteSink().Number(uint16_t{2}).bytes)
      .RemoveTensor("output_norm.weight");
  Write(folder, "split", split.writer.File());
}

// What a tokenizer is built from, and a value of every other type.
void WriteMetadata(const std::string& folder) {
  using headlight::testing::GgufWriter;
  GgufWriter spm;
  spm.String("tokenizer.ggml.model", "llama")
      .Strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "<0x0A>", "", "\xE2\x96\x81the"})
      .Floats("tokenizer.ggml.scores", {0.0f, 0.0f, 0.0f, 0.0f, -1.0f, -2.0f})
      .Ints("tokenizer.ggml.token_type", {2, 3, 3, 6, 1, 1})
      .Uint("tokenizer.ggml.bos_token_id", 1)
      .Uint("tokenizer.ggml.eos_token_id", UINT32_MAX)
      .Bool("tokenizer.ggml.add_space_prefix", true)
      .String("tokenizer.chat_template", "{% for m in messages %}{{ m.content }}{% endfor %}");
  Write(folder, "spm", spm.Header());
  GgufWriter bpe;
  bpe.String("tokenizer.ggml.model", "gpt2")
      .String("tokenizer.ggml.pre", "qwen2")
      .Strings("tokenizer.ggml.tokens", {"a", "b", "ab"})
      .Strings("tokenizer.ggml.merges", {"a b"})
      .Uints("tokenizer.ggml.token_type", {1, 1, 1})
      .Float("general.float", 0.5f)
      .Raw("general.i64", 11, ByteSink().Number(int64_t{-1}).bytes)
      .Raw("general.u64", 10, ByteSink().Number(UINT64_MAX).bytes)
      .Raw("general.f64", 12, ByteSink().Number(1e300).bytes)
      .Raw("general.i8s", 9,
           ByteSink().Number(uint32_t{1}).Number(uint64_t{2}).Number(int16_t{-1}).bytes)
      .Raw("general.u64s", 9,
           ByteSink().Number(uint32_t{10}).Number(uint64_t{1}).Number(UINT64_MAX).bytes);
  Write(folder, "bpe", bpe.Header());
}

// Bytes that options_fuzz.cc makes choices of.
void WriteChoices(const std::string& folder) {
  headlight::Random random(7);
  for (size_t i = 0; i < 16; ++i) {
    std::vector<uint8_t> bytes(size_t{32} << (i % 4));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.NextUniform() * 256.0);
    WriteBytes(folder + "/" + std::to_string(i), bytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  doctest::Context context;  // the writer's own assertions need one
  context.setAsDefaultForAssertsOutOfTestCases();
  WritePacking(std::string(argv[1]) + "/packing");
  WriteSessions(std::string(argv[1]) + "/session");
  WriteModels(std::string(argv[1]) + "/gguf");
  WriteMetadata(std::string(argv[1]) + "/metadata");
  WriteChoices(std::string(argv[1]) + "/options");
  return 0;
}
