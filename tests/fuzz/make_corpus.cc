// Writes the seeds of the fuzz targets into FOLDER/gguf, FOLDER/packing and FOLDER/session, which
// must be there: small right models of several types and shapes, a vocabulary, a first file of a
// split model; tensor data; saved sessions. usage: make_corpus FOLDER
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "gguf_writer.h"
#include "oracle/test_model.h"
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

  GgufModel split = MakeGgufModel(Small());
  split.writer.Raw("split.no", 2, ByteSink().Number(uint16_t{0}).bytes)
      .Raw("split.count", 2, ByteSink().Number(uint16_t{2}).bytes)
      .RemoveTensor("output_norm.weight");
  Write(folder, "split", split.writer.File());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  doctest::Context context;  // the writer's own assertions need one
  context.setAsDefaultForAssertsOutOfTestCases();
  WritePacking(std::string(argv[1]) + "/packing");
  WriteSessions(std::string(argv[1]) + "/session");
  WriteModels(std::string(argv[1]) + "/gguf");
  return 0;
}
