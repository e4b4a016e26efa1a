// The decoder against the double-precision oracle, over head layouts, weight types, cache formats
// and everything that a LayerSpec can say.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/decode_all.h"
#include "oracle/oracle.h"
#include "oracle/test_model.h"

namespace headlight {
namespace {

constexpr size_t kTokens = 40;
constexpr size_t kLayers = 3;

struct Shape {
  HeadLayout heads;
  size_t d_model;
  size_t d_ff;
};

// n_q_heads * d_v == d_model only where it happens to be; odd widths, rows of 172 and of no whole
// vector, MHA, GQA and MQA.
const Shape kShapes[] = {
    {{2, 2, 8, 8}, 16, 32},     {{4, 1, 8, 24}, 32, 64},    {{8, 2, 24, 32}, 192, 512},
    {{6, 3, 16, 8}, 44, 172},   {{3, 3, 7, 9}, 21, 43},     {{16, 2, 48, 64}, 64, 128},
    {{1, 1, 1, 3}, 5, 7},       {{8, 1, 8, 4}, 64, 172},    {{4, 2, 80, 128}, 96, 96},
    {{9, 3, 64, 64}, 160, 224}, {{2, 1, 128, 16}, 32, 320},
};

constexpr TensorType kTypes[] = {TensorType::kF32, TensorType::kF16, TensorType::kBF16,
                                 TensorType::kQ8_0, TensorType::kQ4_0};

// Shape i takes one rotary style and one way of the head, so that both of each meet every weight
// type.
ModelSpec SpecOf(size_t i) {
  const Shape& shape = kShapes[i];
  ModelSpec spec = SmallSpec(shape.heads, shape.d_model, shape.d_ff, kLayers);
  spec.tied_head = i % 3 != 0;
  for (LayerSpec& layer : spec.layers) {
    layer.rope.style = i % 2 == 0 ? RopeStyle::kInterleaved : RopeStyle::kHalfSplit;
  }
  return spec;
}

// f16 keys and values are off by a relative 2^-11 at most; that passes through the attention branch
// of each layer once, independently: sqrt(n_layers). kSpread as for F32Tolerance.
double F16CacheTolerance(const ModelSpec& spec, double magnitude) {
  constexpr double kSpread = 8.0;
  return kSpread * 0x1p-11 * std::sqrt(static_cast<double>(spec.layers.size())) * magnitude;
}

std::string NameOf(const ModelSpec& spec, TensorType type) {
  const HeadLayout& heads = spec.layers[0].heads;
  return std::to_string(heads.n_q_heads) + "/" + std::to_string(heads.n_kv_heads) + " heads of " +
         std::to_string(heads.d_qk) + "/" + std::to_string(heads.d_v) + ", d_model " +
         std::to_string(spec.d_model) + ", " + FindTensorType(static_cast<uint32_t>(type))->name;
}

// Rows whose best logit leads by more than twice the largest error must have it in both.
void CheckTopTokens(const Matrix& expected, const std::vector<float>& logits, double max_error) {
  for (size_t row = 0; row < expected.n_rows; ++row) {
    const double* e = expected.row(row);
    const float* l = logits.data() + row * expected.n_cols;
    const size_t best = static_cast<size_t>(std::max_element(e, e + expected.n_cols) - e);
    double second = -INFINITY;
    for (size_t id = 0; id < expected.n_cols; ++id) {
      if (id != best) second = std::max(second, e[id]);
    }
    if (e[best] - second <= 2.0 * max_error) continue;
    CHECK(static_cast<size_t>(std::max_element(l, l + expected.n_cols) - l) == best);
  }
}

TEST_CASE(
    "decoder: f32 activations equal the oracle in every head layout, weight type and cache "
    "format") {
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    for (const TensorType type : kTypes) {
      const ModelSpec spec = SpecOf(i);
      CAPTURE(NameOf(spec, type));
      const TestModel test = MakeTestModel(spec, type, 100 + i);
      const std::vector<uint32_t> tokens = RandomTokens(kTokens, spec.vocab_size, i);
      const Matrix expected = OracleLogits(test.oracle, tokens);
      for (const CacheType cache : {CacheType::kF32, CacheType::kF16}) {
        for (const size_t chunk : {1u, 16u}) {
          DecodeSetup setup;
          setup.kv_format = {cache, cache};
          setup.chunk = chunk;
          const Difference d = Compare(DecodeAll(*test.model, tokens, setup), expected.values);
          const double cache_error =
              cache == CacheType::kF16 ? F16CacheTolerance(spec, d.magnitude) : 0.0;
          CHECK(d.max <= F32Tolerance(spec, d.magnitude) + cache_error);
        }
      }
    }
  }
}

TEST_CASE("decoder: 8-bit activations stay within 1 % of the oracle and choose the same tokens") {
  for (size_t i = 0; i < std::size(kShapes); ++i) {
    for (const TensorType type : {TensorType::kQ8_0, TensorType::kQ4_0}) {
      const ModelSpec spec = SpecOf(i);
      CAPTURE(NameOf(spec, type));
      const TestModel test = MakeTestModel(spec, type, 100 + i);
      const std::vector<uint32_t> tokens = RandomTokens(kTokens, spec.vocab_size, i);
      const Matrix expected = OracleLogits(test.oracle, tokens);
      DecodeSetup setup;
      setup.activations = ActivationType::kInt8;
      const std::vector<float> logits = DecodeAll(*test.model, tokens, setup);
      const Difference d = Compare(logits, expected.values);
      CHECK(d.relative_rms <= 1e-2);
      CheckTopTokens(expected, logits, d.max);
    }
  }
}

}  // namespace
}  // namespace headlight
