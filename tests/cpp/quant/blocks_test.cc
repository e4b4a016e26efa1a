// Block formats against llama.cpp's own dequantisation, and against what the formats say of
// extremes.
#include "quant/blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gguf/gguf_reader.h"
#include "kernels/random_matrix.h"
#include "support.h"

namespace headlight {
namespace {

// The tensor `name` of a file in memory.
struct FileTensor {
  GgufTensor tensor;
  const uint8_t* bytes;
};

FileTensor FindTensor(const std::vector<uint8_t>& file, const char* name) {
  GgufReader reader;
  reader.Append(file);
  REQUIRE(reader.header_done());
  const GgufTensor* tensor = reader.FindTensor(name);
  REQUIRE(tensor != nullptr);
  return {*tensor, file.data() + reader.data_offset() + tensor->offset};
}

TEST_CASE(
    "DecodeBlock, DecodeRow: llama.cpp's dequantisation of twelve types, bit for bit (needs "
    "../shared)") {
  for (const char* type_name : {"Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K",
                                "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"}) {
    const std::string stem = std::string("quant/") + type_name;
    const auto model_path = testing::SharedPath(stem + ".gguf");
    const auto expected_path = testing::SharedPath(stem + ".ffn_gate.f32.bin");
    SKIP_UNLESS(model_path);
    SKIP_UNLESS(expected_path);
    const auto file = testing::ReadFile(*model_path);
    const auto expected = testing::ReadFile(*expected_path);
    const auto [tensor, bytes] = FindTensor(file, "blk.0.ffn_gate.weight");
    const TensorTypeTraits& traits = test::Traits(tensor.type);
    CHECK(std::string(traits.name) == type_name);
    const auto n_rows = static_cast<size_t>(tensor.n_rows());
    const auto n_cols = static_cast<size_t>(tensor.n_cols());
    REQUIRE(expected.size() == n_rows * n_cols * sizeof(float));

    std::vector<float> values(n_rows * n_cols);
    for (size_t b = 0; b < values.size() / traits.n_block; ++b) {
      DecodeBlock(tensor.type, bytes + b * traits.block_bytes, &values[b * traits.n_block]);
    }
    CHECK(std::memcmp(values.data(), expected.data(), expected.size()) == 0);

    const std::vector<uint8_t> tensor_bytes(bytes, bytes + tensor.bytes);
    for (const DotForm form : {DotForm::kWide, DotForm::kUnsigned, DotForm::kSigned}) {
      const auto packed = test::Pack(tensor.type, n_rows, n_cols, tensor_bytes, form);
      std::fill(values.begin(), values.end(), -1.0f);
      for (size_t row = 0; row < n_rows; ++row)
        DecodeRow(packed.matrix, row, &values[row * n_cols]);
      CHECK(std::memcmp(values.data(), expected.data(), expected.size()) == 0);
    }
  }
}

TEST_CASE("EncodeBlock, DecodeBlock: 16- and 32-bit floats survive, every f16 that is finite") {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7C00) == 0x7C00) continue;
    const uint8_t in[2] = {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)};
    uint8_t out[2];
    float value;
    DecodeBlock(TensorType::kF16, in, &value);
    EncodeBlock(TensorType::kF16, &value, out);
    CHECK(std::memcmp(in, out, 2) == 0);
    DecodeBlock(TensorType::kBF16, in, &value);
    EncodeBlock(TensorType::kBF16, &value, out);
    CHECK(std::memcmp(in, out, 2) == 0);
  }
}

// Half a step of the code, and what rounding the scale to f16 adds: codes up to 127 (8) times 2^-11
// of the scale.
double CodeTolerance(TensorType type, double largest) {
  const double n_codes = type == TensorType::kQ8_0 ? 127.0 : 8.0;
  // Q4_0 has codes -8..7: the value opposite to the extreme one may lie a whole step away.
  const double steps = type == TensorType::kQ8_0 ? 0.5 : 1.0;
  return largest / n_codes * steps * 1.001 + largest * 0x1p-11;
}

TEST_CASE("EncodeBlock: what it encodes decodes to within a step of the format") {
  for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0}) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
      const auto x = test::RandomFloats(32, 0.02f, seed);
      uint8_t block[34];
      float decoded[32];
      EncodeBlock(type, x.data(), block);
      DecodeBlock(type, block, decoded);
      double largest = 0.0;
      for (const float v : x) largest = std::max(largest, std::fabs(static_cast<double>(v)));
      for (size_t i = 0; i < 32; ++i) {
        const double error = std::fabs(static_cast<double>(decoded[i]) - static_cast<double>(x[i]));
        CAPTURE(seed);
        CHECK(error <= CodeTolerance(type, largest));
      }
    }
    const float zeros[32] = {};
    uint8_t block[34];
    float decoded[32];
    EncodeBlock(type, zeros, block);
    DecodeBlock(type, block, decoded);
    for (const float v : decoded) CHECK(v == 0.0f);
  }
}

}  // namespace
}  // namespace headlight
