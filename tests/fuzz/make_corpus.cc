// Writes the seeds of gguf_fuzz: small right models of several types and shapes, a vocabulary and a
// first file of a split model. usage: make_corpus FOLDER
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gguf_writer.h"

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  doctest::Context context;  // the writer's own assertions need one
  context.setAsDefaultForAssertsOutOfTestCases();
  const std::string folder = argv[1];
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
  return 0;
}
