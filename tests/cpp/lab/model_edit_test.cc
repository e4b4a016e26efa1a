// Each edit of a model against the same change made in the double-precision oracle: there a pruned
// head is a block of zeros in W_o, a dropped rotary pair a pair of zero rows, a fixed head a blend
// written out.
#include "lab/model_edit.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/svd.h"
#include "lab/weights.h"
#include "model/decode_all.h"
#include "oracle/oracle.h"
#include "oracle/test_model.h"
#include "support.h"

namespace headlight {
namespace {

constexpr size_t kTokens = 24;
constexpr size_t kLayers = 2;

// Six query heads in three groups; d_qk, d_v and d_model differ.
const HeadLayout kHeads = {6, 3, 12, 20};

ModelSpec SpecWith(RopeStyle style) {
  ModelSpec spec = SmallSpec(kHeads, 48, 64, kLayers);
  for (LayerSpec& layer : spec.layers) layer.rope.style = style;
  return spec;
}

std::vector<uint32_t> Tokens(const ModelSpec& spec) {
  return RandomTokens(kTokens, spec.vocab_size, 3);
}

// The edited model's logits, prompt and token by token, are those of the changed oracle.
void CheckEdit(const TestModel& test, const ModelEdit& edit, const OracleModel& changed) {
  const std::vector<uint32_t> tokens = Tokens(test.model->spec);
  const auto edited = EditModel(test.model, edit);
  const Matrix expected = OracleLogits(changed, tokens);
  for (const size_t chunk : {size_t{1}, kTokens}) {
    DecodeSetup setup;
    setup.chunk = chunk;
    const std::vector<float> logits = DecodeAll(*edited, tokens, setup);
    const Difference d = Compare(logits, expected.values);
    CHECK(d.max <= F32Tolerance(test.model->spec, d.magnitude));
    // The case would be worthless if it changed nothing.
    CHECK(Compare(logits, OracleLogits(test.oracle, tokens).values).relative_rms > 1e-3);
  }
}

void ZeroColumns(size_t begin, size_t n, Matrix& w) {
  for (size_t row = 0; row < w.n_rows; ++row) {
    for (size_t i = begin; i < begin + n; ++i) w.values[row * w.n_cols + i] = 0.0;
  }
}

void ZeroRow(size_t row, Matrix& w) {
  for (size_t i = 0; i < w.n_cols; ++i) w.values[row * w.n_cols + i] = 0.0;
}

TEST_CASE("model_edit: a pruned head leaves nothing in the stream, the others all they did") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kF32, 5);
  const std::vector<std::vector<HeadId>> cases = {
      {{0, 4}},                                          // one of a group of two
      {{1, 2}, {1, 3}},                                  // a whole group
      {{0, 0}, {0, 3}, {0, 5}},                          // one of each group
      {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}},  // a whole layer
  };
  for (const std::vector<HeadId>& heads : cases) {
    OracleModel changed = test.oracle;
    for (const HeadId& id : heads) {
      ZeroColumns(id.head * kHeads.d_v, kHeads.d_v,
                  changed.layers[id.layer][TensorRole::kAttentionOutput][0]);
    }
    ModelEdit edit;
    edit.pruned = heads;
    CheckEdit(test, edit, changed);
  }
}

TEST_CASE("model_edit: a head pruned in every group takes its bytes with it") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kF32, 5);
  ModelEdit edit;
  edit.pruned = {{0, 0}, {0, 3}, {0, 5}};
  const auto edited = EditModel(test.model, edit);
  CHECK(edited->spec.layers[0].heads == HeadLayout{3, 3, 12, 20});
  CHECK(edited->layers[0].w_q.shape.n_rows == 3 * 12);
  CHECK(edited->layers[0].w_o.shape.n_cols == 3 * 20);
  // Half of W_q, and of the columns of W_o, which come in blocks of 32.
  CHECK(test.model->weights_bytes - edited->weights_bytes ==
        (36 * 64 + 48 * (128 - 64)) * sizeof(float));
  CHECK(edited->layers[1].w_q.data == test.model->layers[1].w_q.data);  // shared, not copied
}

TEST_CASE("model_edit: pooled KV heads are the mean of their group") {
  ModelSpec spec = SpecWith(RopeStyle::kHalfSplit);
  for (LayerSpec& layer : spec.layers) layer.heads = {8, 4, 12, 20};
  const TestModel test = MakeTestModel(spec, TensorType::kF32, 6);
  for (const size_t n : {1u, 2u}) {
    OracleModel changed = test.oracle;
    for (size_t l = 0; l < kLayers; ++l) {
      changed.spec.layers[l].heads.n_kv_heads = n;
      const auto pool = [&](Matrix& w, size_t width) {
        Matrix out{n * width, w.n_cols, std::vector<double>(n * width * w.n_cols)};
        for (size_t head = 0; head < 4; ++head) {
          for (size_t i = 0; i < width; ++i) {
            for (size_t col = 0; col < w.n_cols; ++col) {
              out.values[(head / (4 / n) * width + i) * w.n_cols + col] +=
                  w.row(head * width + i)[col] / static_cast<double>(4 / n);
            }
          }
        }
        w = out;
      };
      pool(changed.layers[l][TensorRole::kK][0], 12);
      pool(changed.layers[l][TensorRole::kV][0], 20);
    }
    ModelEdit edit;
    edit.n_kv_heads = n;
    CheckEdit(test, edit, changed);
  }
}

TEST_CASE("model_edit: dropped rotary pairs add nothing to scores, the others keep their angles") {
  for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalfSplit}) {
    for (const size_t n_rot : {12u, 8u}) {
      ModelSpec spec = SpecWith(style);
      for (LayerSpec& layer : spec.layers) layer.rope.n_rot = n_rot;
      const TestModel test = MakeTestModel(spec, TensorType::kF32, 7);
      const std::vector<uint32_t> kept = {4, 1, 0, /* layer 1: */ 2, 3, 5};
      OracleModel changed = test.oracle;
      for (size_t l = 0; l < kLayers; ++l) {
        for (size_t pair = 0; pair < 6; ++pair) {
          if (std::find(kept.begin() + static_cast<std::ptrdiff_t>(3 * l),
                        kept.begin() + static_cast<std::ptrdiff_t>(3 * l + 3),
                        pair) != kept.begin() + static_cast<std::ptrdiff_t>(3 * l + 3))
            continue;
          const bool apart = style == RopeStyle::kHalfSplit && pair < n_rot / 2;
          const size_t a = apart ? pair : 2 * pair;
          const size_t b = apart ? pair + n_rot / 2 : a + 1;
          for (size_t head = 0; head < 6; ++head) {
            ZeroRow(head * 12 + a, changed.layers[l][TensorRole::kQ][0]);
            ZeroRow(head * 12 + b, changed.layers[l][TensorRole::kQ][0]);
          }
        }
      }
      ModelEdit edit;
      edit.d_qk = 6;
      edit.kept_pairs = kept;
      CheckEdit(test, edit, changed);
      CHECK(EditModel(test.model, edit)->spec.layers[0].heads.d_qk == 6);
    }
  }
}

// Sum of squares of W_o of each query head of KV head g times its W_v.
Weights ProductOf(const Model& model, size_t layer, size_t g) {
  const HeadLayout& heads = model.spec.layers[layer].heads;
  const Weights v = DecodeWeights(model.layers[layer].w_v);
  const Weights o = DecodeWeights(model.layers[layer].w_o);
  const size_t n_q = heads.n_q_per_kv();
  Weights product(n_q * o.n_rows, v.n_cols);
  for (size_t row = 0; row < product.n_rows; ++row) {
    for (size_t col = 0; col < v.n_cols; ++col) {
      double sum = 0.0;
      for (size_t i = 0; i < heads.d_v; ++i) {
        const size_t head = g * n_q + row / o.n_rows;
        sum += static_cast<double>(o.row(row % o.n_rows)[head * heads.d_v + i]) *
               static_cast<double>(v.row(g * heads.d_v + i)[col]);
      }
      product.row(row)[col] = static_cast<float>(sum);
    }
  }
  return product;
}

TEST_CASE("model_edit: narrower values lose the smallest singular values of W_o W_v, no more") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kF32, 8);
  for (const size_t d_v : {20u, 11u, 1u}) {
    ModelEdit edit;
    edit.d_v = d_v;
    const auto edited = EditModel(test.model, edit);
    CHECK(edited->spec.layers[0].heads.d_v == d_v);
    for (size_t g = 0; g < 3; ++g) {
      const Weights whole = ProductOf(*test.model, 0, g);
      const Weights cut = ProductOf(*edited, 0, g);
      double error = 0.0;
      for (size_t i = 0; i < whole.values.size(); ++i) {
        const double d = static_cast<double>(whole.values[i]) - static_cast<double>(cut.values[i]);
        error += d * d;
      }
      double least = 0.0, total = 0.0;
      const std::vector<double> sigma = SingularValues(whole);
      for (size_t i = 0; i < sigma.size(); ++i) {
        total += sigma[i] * sigma[i];
        if (i >= d_v && i < 20) least += sigma[i] * sigma[i];
      }
      CHECK(error == doctest::Approx(least).epsilon(1e-4).scale(total * 1e-6));
    }
  }
}

TEST_CASE("model_edit: cuts to the full width change nothing") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kF32, 8);
  const std::vector<uint32_t> tokens = Tokens(test.model->spec);
  const std::vector<float> before = DecodeAll(*test.model, tokens, {});
  ModelEdit values;
  values.d_v = kHeads.d_v;
  const Difference d = Compare(DecodeAll(*EditModel(test.model, values), tokens, {}), before);
  CHECK(d.max > 0.0);  // another basis
  CHECK(d.max <= 2.0 * F32Tolerance(test.model->spec, d.magnitude));

  ModelEdit routing;
  routing.d_qk = kHeads.d_qk;
  routing.kept_pairs = {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5};
  CHECK(DecodeAll(*EditModel(test.model, routing), tokens, {}) == before);
}

TEST_CASE("model_edit: without positions, routing is cut by the product of W_q and W_k") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kNone), TensorType::kF32, 9);
  const std::vector<uint32_t> tokens = Tokens(test.model->spec);
  const std::vector<float> before = DecodeAll(*test.model, tokens, {});
  double last_error = INFINITY;
  for (const size_t d_qk : {2u, 7u, 11u, 12u}) {
    ModelEdit edit;
    edit.d_qk = d_qk;
    const auto edited = EditModel(test.model, edit);
    CHECK(edited->spec.layers[1].heads.d_qk == d_qk);
    const Difference d = Compare(DecodeAll(*edited, tokens, {}), before);
    CHECK(d.relative_rms < last_error);
    last_error = d.relative_rms;
    if (d_qk == 12) CHECK(d.max <= 2.0 * F32Tolerance(test.model->spec, d.magnitude));
  }
}

TEST_CASE("model_edit: a fixed head blends values by its pattern, without query and key") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kF32, 10);
  const FixedPattern patterns[] = {
      {PatternKind::kShift, 1, {}, 0.0f},
      {PatternKind::kPrefixMean, 0, {}, 0.0f},
      {PatternKind::kFirstRow, 0, {}, 0.0f},
      {PatternKind::kByOffset, 0, {0.5f, 0.25f, 0.0f, 0.125f}, 0.25f},
  };
  for (const FixedPattern& pattern : patterns) {
    ModelEdit edit;
    edit.fixed = {{{0, 3}, pattern}, {{1, 0}, pattern}};
    edit.pruned = {{0, 2}};
    OracleModel changed = test.oracle;
    ZeroColumns(2 * kHeads.d_v, kHeads.d_v, changed.layers[0][TensorRole::kAttentionOutput][0]);
    changed.fixed = {{0, 3, pattern}, {1, 0, pattern}};
    CheckEdit(test, edit, changed);
    CHECK(EditModel(test.model, edit)->layers[0].w_q.shape.n_rows == 6 * 12);
  }
}

TEST_CASE("model_edit: a window and the first keys that stay") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kF32, 11);
  for (const size_t n_sinks : {0u, 2u}) {
    ModelEdit edit;
    edit.window = 5;
    edit.n_sinks = n_sinks;
    edit.layers = {1};
    OracleModel changed = test.oracle;
    changed.spec.layers[1].window = 5;
    changed.spec.layers[1].n_sinks = n_sinks;
    CheckEdit(test, edit, changed);
  }
}

TEST_CASE("model_edit: edits come together in the order of the fields") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kQ8_0, 12);
  const std::vector<uint32_t> tokens = Tokens(test.model->spec);
  ModelEdit edit;
  edit.n_kv_heads = 1;
  edit.d_qk = 8;
  edit.kept_pairs = {0, 1, 2, 3, 2, 3, 4, 5};
  edit.d_v = 16;
  edit.pruned = {{0, 1}};
  edit.fixed = {{{1, 5}, {PatternKind::kFirstRow, 0, {}, 0.0f}}};
  const auto edited = EditModel(test.model, edit);
  const LayerSpec& layer = edited->spec.layers[1];
  CHECK(layer.heads == HeadLayout{5, 1, 8, 16});
  CHECK(layer.fixed_heads.size() == 1);
  const std::vector<float> at_once = DecodeAll(*edited, tokens, {});
  const Difference d = Compare(at_once, OracleLogits(OracleOf(*edited), tokens).values);
  CHECK(d.max <= F32Tolerance(edited->spec, d.magnitude));
  DecodeSetup eight_bit;
  eight_bit.activations = ActivationType::kInt8;
  CHECK(Compare(DecodeAll(*edited, tokens, eight_bit), at_once).relative_rms < 2e-2);
}

TEST_CASE("model_edit: the loaded model gives the same bits whatever was made of it") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kQ8_0, 13);
  const std::vector<uint32_t> tokens = Tokens(test.model->spec);
  DecodeSetup setup;
  setup.activations = ActivationType::kInt8;
  const std::vector<float> before = DecodeAll(*test.model, tokens, setup);
  {
    ModelEdit edit;
    edit.d_v = 4;
    edit.pruned = {{0, 1}};
    CHECK(DecodeAll(*EditModel(test.model, edit), tokens, setup) != before);
  }
  CHECK(DecodeAll(*test.model, tokens, setup) == before);
  CHECK(DecodeAll(*EditModel(test.model, {}), tokens, setup) == before);
}

TEST_CASE("model_edit: a changed matrix keeps its type, where its rows still divide into blocks") {
  struct Case {
    TensorType type, changed;
  };
  for (const Case& c : {Case{TensorType::kF32, TensorType::kF32},
                        {TensorType::kF16, TensorType::kF16},
                        {TensorType::kQ8_0, TensorType::kQ8_0},
                        {TensorType::kQ4_0, TensorType::kQ4_0}}) {
    ModelSpec spec = SmallSpec({4, 2, 8, 16}, 64, 64, 1);
    const TestModel test = MakeTestModel(spec, c.type, 3);
    const auto shape_of = [&](size_t d_v) {
      ModelEdit edit;
      edit.d_v = d_v;
      return EditModel(test.model, edit)->layers[0].w_o.shape;
    };
    CHECK(EncodedType(shape_of(8), 32) == c.changed);
    const bool has_blocks = c.type == TensorType::kQ8_0 || c.type == TensorType::kQ4_0;
    if (has_blocks) CHECK(shape_of(4).family == PackedFamily::kF16);
  }
}

TEST_CASE("model_edit: numbers that the model cannot have are named") {
  const TestModel test = MakeTestModel(SpecWith(RopeStyle::kInterleaved), TensorType::kF32, 14);
  const auto error = [&](const ModelEdit& edit) {
    return testing::ErrorOf([&] { EditModel(test.model, edit); });
  };
  ModelEdit pool, qk, odd, repeated, v, head, layer, weight;
  pool.n_kv_heads = 2;
  qk.d_qk = 14;
  odd.d_qk = 5;
  repeated.d_qk = 4;
  repeated.kept_pairs = {1, 1, 0, 2};
  v.d_v = 21;
  head.pruned = {{0, 6}};
  layer.pruned = {{2, 0}};
  weight.fixed = {{{0, 0}, {PatternKind::kByOffset, 0, {NAN}, 0.0f}}};
  CHECK(testing::Detail(error(pool), "option") == "n_kv_heads");
  CHECK(testing::Detail(error(qk), "value") == "14");
  CHECK(testing::Detail(error(odd), "option") == "d_qk");
  CHECK(testing::Detail(error(repeated), "option") == "kept_pairs");
  CHECK(testing::Detail(error(v), "option") == "d_v");
  CHECK(testing::Detail(error(head), "option") == "head");
  CHECK(testing::Detail(error(layer), "option") == "layer");
  CHECK(error(weight).code() == ErrorCode::kBadOption);
}

}  // namespace
}  // namespace headlight
