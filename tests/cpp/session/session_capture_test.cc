// Looking inside a computation: attention, head outputs, residual norms and the logit lens, of
// given tokens and while text is generated.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "model/decode_all.h"
#include "oracle/oracle_watch.h"
#include "session/run_session.h"
#include "support.h"

namespace headlight {
namespace {

using testing::Detail;
using testing::ErrorOf;
using RowsOf = CaptureRequest::RowsOf;

CaptureRequest Everything(RowsOf rows_of, std::vector<uint32_t> rows = {}) {
  CaptureRequest request;
  request.what.layers = {0, 1, 2};
  request.what.head_outputs = true;
  request.what.residual_norms = true;
  request.what.lens_layers = {2, 0};
  request.rows_of = rows_of;
  request.rows = std::move(rows);
  return request;
}

// Exact activations, so that the oracle's numbers are those of float32.
SessionOptions ExactOptions(size_t chunk = 8) {
  SessionOptions options = SmallSessionOptions();
  options.activations = ActivationType::kF32;
  options.prefill_chunk = chunk;
  return options;
}

Session::Forward Forward(const TestModel& test, const std::vector<uint32_t>& tokens,
                         const CaptureRequest& request, const SessionOptions& options,
                         size_t n_threads = 1) {
  ThreadPool pool(n_threads);
  Session session(test.model, options, pool);
  return session.Compute(tokens, true, &request);
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

bool SameBits(const ForwardCapture& a, const ForwardCapture& b) {
  bool same = SameBits(a.residual_norms, b.residual_norms) && a.positions == b.positions &&
              a.layers.size() == b.layers.size() && a.lenses.size() == b.lenses.size();
  for (size_t i = 0; same && i < a.layers.size(); ++i) {
    same = SameBits(a.layers[i].attention, b.layers[i].attention) &&
           SameBits(a.layers[i].sink_mass, b.layers[i].sink_mass) &&
           SameBits(a.layers[i].head_outputs, b.layers[i].head_outputs);
  }
  for (size_t i = 0; same && i < a.lenses.size(); ++i) {
    same = SameBits(a.lenses[i].logits, b.lenses[i].logits);
  }
  return same;
}

const float* AttentionRow(const ForwardCapture& capture, size_t layer, size_t head, size_t row) {
  return capture.layers[layer].attention.data() + (head * capture.n_rows() + row) * capture.n_kv;
}

TEST_CASE("capture: weights sum to one, are causal, and stay inside a layer's window") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> tokens = RandomTokens(37, 97, 3);
  const auto result = Forward(test, tokens, Everything(RowsOf::kAll), ExactOptions());
  const ForwardCapture& capture = *result.capture;
  REQUIRE(capture.n_rows() == 37);
  REQUIRE(capture.n_kv == 37);
  double worst = 0.0;
  size_t n_leaks = 0;
  for (size_t layer = 0; layer < 3; ++layer) {
    for (size_t head = 0; head < 4; ++head) {
      for (size_t row = 0; row < 37; ++row) {
        double sum = 0.0;
        for (size_t key = 0; key < 37; ++key) {
          const float weight = AttentionRow(capture, layer, head, row)[key];
          const bool is_seen = key <= row && (layer != 1 || row - key < 11);
          n_leaks += (is_seen ? weight <= 0.0f : weight != 0.0f) ? 1 : 0;
          sum += weight;
        }
        worst = std::max(worst, std::fabs(sum - 1.0));
      }
    }
  }
  CHECK(n_leaks == 0);
  CHECK(worst <= 1e-6);
}

TEST_CASE("capture: the lens after a layer is what a model cut off there says") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> tokens = RandomTokens(21, 97, 4);
  const auto result = Forward(test, tokens, Everything(RowsOf::kAll), ExactOptions());
  // After the last layer: the logits themselves.
  CHECK(SameBits(result.capture->lenses[0].logits, result.logits));
  OracleModel cut = test.oracle;
  cut.spec.layers.resize(1);
  cut.layers.resize(1);
  const Matrix expected = OracleLogits(cut, tokens);
  const Difference difference = Compare(result.capture->lenses[1].logits, expected.values);
  CHECK(difference.max <= F32Tolerance(test.model->spec, difference.magnitude));
}

// Captured against seen, for the rows at capture.positions. Returns the largest error of a weight,
// a sink's share or an element that a head puts out; of those only weights where latents are
// blended.
double WorstError(const ForwardCapture& capture, const OracleWatch& watch, const ModelSpec& spec) {
  double worst = 0.0;
  const auto compare = [&](float actual, double expected) {
    worst = std::max(worst, std::fabs(static_cast<double>(actual) - expected));
  };
  for (const ForwardCapture::Layer& layer : capture.layers) {
    const HeadLayout& heads = spec.layers[layer.layer].heads;
    for (size_t row = 0; row < capture.n_rows(); ++row) {
      const OracleRow& expected = watch.layers[layer.layer][capture.positions[row]];
      for (size_t head = 0; head < heads.n_q_heads; ++head) {
        const size_t at = head * capture.n_rows() + row;
        const std::vector<double>& weights = expected.weights[head];
        double sum = 0.0;
        for (size_t key = 0; key < capture.n_kv; ++key) {
          const double weight = key < weights.size() ? weights[key] : 0.0;
          compare(layer.attention[at * capture.n_kv + key], weight);
          sum += weight;
        }
        compare(layer.sink_mass[at], 1.0 - sum);
        if (spec.layers[layer.layer].latent.rank != 0) continue;
        for (size_t i = 0; i < heads.d_v; ++i) {
          compare(layer.head_outputs[at * heads.d_v + i], expected.heads[head * heads.d_v + i]);
        }
      }
    }
  }
  return worst;
}

// Weights and outputs are of magnitude 1: what float32 loses in three layers.
constexpr double kCaptureTolerance = 2e-5;

TEST_CASE("capture: weights, head outputs and residual norms are the oracle's, each in its place") {
  ModelSpec spec = SmallSessionSpec();
  spec.n_ctx_train = 1024;
  spec.layers[0].tensors.always.Add(TensorRole::kSinks);
  spec.layers[2].tensors.always.Add(TensorRole::kAttentionGate);
  const TestModel test = MakeTestModel(spec, TensorType::kQ8_0, 23);
  struct Case {
    size_t n_tokens, n_ctx;
    CaptureRequest request;
  };
  // The second goes round the ring that a layer with a window has in a long context.
  for (const Case& c : {Case{33, 64, Everything(RowsOf::kAll)},
                        Case{600, 1024, Everything(RowsOf::kListed, {599, 0, 256, 300})}}) {
    const std::vector<uint32_t> tokens = RandomTokens(c.n_tokens, 97, 5);
    OracleWatch watch;
    WatchedOracleLogits(test.oracle, tokens, watch);
    SessionOptions options = ExactOptions();
    options.n_ctx = c.n_ctx;
    const auto result = Forward(test, tokens, c.request, options);
    const ForwardCapture& capture = *result.capture;
    REQUIRE(capture.layers.size() == 3);
    CHECK(WorstError(capture, watch, spec) <= kCaptureTolerance);
    const size_t n_rows = capture.n_rows();
    REQUIRE(capture.residual_norms.size() == 4 * n_rows);
    for (size_t i = 0; i < capture.residual_norms.size(); ++i) {
      const double expected = watch.residual_norms[i / n_rows][capture.positions[i % n_rows]];
      CHECK(capture.residual_norms[i] == doctest::Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("capture: the weights of latent attention are those of the keys that are never made") {
  ModelSpec spec = SmallSpec({4, 1, 20 + 8, 20, true}, 64, 96, 3);
  for (LayerSpec& layer : spec.layers) {
    constexpr TensorSet kQkv = {TensorRole::kQ, TensorRole::kK, TensorRole::kV};
    constexpr TensorSet kLatent = {TensorRole::kQ, TensorRole::kKvA, TensorRole::kKvANorm,
                                   TensorRole::kKB, TensorRole::kVB};
    layer.latent = {20, 0, 11, 8, 14};
    layer.tensors.always = (layer.tensors.always - kQkv) | kLatent;
    layer.rope.n_rot = 8;
  }
  const TestModel test = MakeTestModel(spec, TensorType::kF32, 24);
  const std::vector<uint32_t> tokens = RandomTokens(33, 97, 6);
  OracleWatch watch;
  WatchedOracleLogits(test.oracle, tokens, watch);
  const auto result = Forward(test, tokens, Everything(RowsOf::kAll), ExactOptions());
  REQUIRE(result.capture->layers.size() == 3);
  CHECK(WorstError(*result.capture, watch, spec) <= kCaptureTolerance);
}

TEST_CASE("capture: the first position puts out its own value, whatever the head") {
  const TestModel test = SmallSessionModel();
  const auto result =
      Forward(test, RandomTokens(5, 97, 6), Everything(RowsOf::kListed, {0}), ExactOptions());
  const ForwardCapture::Layer& layer = result.capture->layers[0];
  REQUIRE(layer.head_outputs.size() == 4 * 32);
  // Heads 0 and 1 share KV head 0, 2 and 3 the other: with one key, all of a group give its value.
  for (size_t i = 0; i < 32; ++i) {
    CHECK(layer.head_outputs[i] == layer.head_outputs[32 + i]);
    CHECK(layer.head_outputs[2 * 32 + i] == layer.head_outputs[3 * 32 + i]);
  }
  CHECK(layer.head_outputs[0] != layer.head_outputs[2 * 32]);
}

TEST_CASE("capture: head outputs are what W_O gets: behind the layer's gate, if it has one") {
  ModelSpec spec = SmallSessionSpec();
  spec.layers[0].tensors.always.Add(TensorRole::kHeadGate);
  const TestModel test = MakeTestModel(spec, TensorType::kQ8_0, 22);
  const auto result =
      Forward(test, RandomTokens(5, 97, 6), Everything(RowsOf::kListed, {0}), ExactOptions());
  // Both heads blend the one value there is; each has a gate of its own.
  const std::vector<float>& outputs = result.capture->layers[0].head_outputs;
  const float ratio = outputs[0] / outputs[32];
  CHECK(ratio != doctest::Approx(1.0));
  for (size_t i = 0; i < 32; ++i) {
    CHECK(outputs[i] == doctest::Approx(ratio * outputs[32 + i]).epsilon(1e-5));
  }
}

TEST_CASE("capture: any chunk and any number of threads give the same bits, and change no logit") {
  for (const ActivationType activations : {ActivationType::kF32, ActivationType::kInt8}) {
    for (const CacheType type : {CacheType::kF32, CacheType::kInt8}) {
      const TestModel test = SmallSessionModel();
      const std::vector<uint32_t> tokens = RandomTokens(45, 97, 7);
      SessionOptions options = ExactOptions(64);
      options.activations = activations;
      options.kv_format = {type, type};
      const CaptureRequest request = Everything(RowsOf::kAll);
      const auto expected = Forward(test, tokens, request, options);
      ThreadPool pool(1);
      Session plain(test.model, options, pool);
      CHECK(SameBits(plain.Logits(tokens, true), expected.logits));
      for (const size_t chunk : {1u, 7u, 64u}) {
        for (const size_t n_threads : {size_t{1}, testing::ThreadsHere(3)}) {
          options.prefill_chunk = chunk;
          const auto other = Forward(test, tokens, request, options, n_threads);
          CHECK(SameBits(*other.capture, *expected.capture));
          CHECK(SameBits(other.logits, expected.logits));
        }
      }
    }
  }
}

TEST_CASE("capture: chosen heads and rows, in any order, are those of the whole") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> tokens = RandomTokens(30, 97, 8);
  const auto whole = Forward(test, tokens, Everything(RowsOf::kAll), SmallSessionOptions());
  CaptureRequest request = Everything(RowsOf::kListed, {29, 3, 17});
  request.what.layers = {2, 0};
  request.what.all_heads = false;
  request.what.heads = {3, 1};
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  session.Logits(tokens, false);  // everything is in the cache now, and is computed again
  const auto some = session.Compute(tokens, false, &request);
  const ForwardCapture& capture = *some.capture;
  const uint32_t layers[] = {2, 0};
  const uint32_t heads[] = {3, 1};
  const uint32_t rows[] = {29, 3, 17};
  for (size_t l = 0; l < 2; ++l) {
    CHECK(capture.layers[l].layer == layers[l]);
    for (size_t h = 0; h < 2; ++h) {
      for (size_t r = 0; r < 3; ++r) {
        CHECK(std::memcmp(AttentionRow(capture, l, h, r),
                          AttentionRow(*whole.capture, layers[l], heads[h], rows[r]),
                          30 * sizeof(float)) == 0);
        CHECK(std::memcmp(capture.layers[l].head_outputs.data() + (h * 3 + r) * 32,
                          whole.capture->layers[layers[l]].head_outputs.data() +
                              (heads[h] * 30 + rows[r]) * 32,
                          32 * sizeof(float)) == 0);
      }
    }
  }
  CHECK(std::memcmp(some.logits.data(), whole.logits.data() + 29 * 97, 97 * sizeof(float)) == 0);
}

TEST_CASE("capture: a run gives its prompt's rows, then each step's row, as a forward pass would") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(19, 97, 9);
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  GenerateOptions options = Greedy(6);
  options.ignore_stop_tokens = true;
  options.capture = Everything(RowsOf::kLast);
  session.Begin(prompt, options);
  std::vector<ForwardCapture> captures;
  std::vector<SampledToken> tokens;
  for (bool done = false; !done;) {
    AdvanceResult result = session.Advance(0.0);
    CHECK(result.captures.size() == result.tokens.size());
    for (ForwardCapture& capture : result.captures) captures.push_back(std::move(capture));
    Append(result, tokens);
    done = result.done;
  }
  CHECK(SameTokens(tokens, GenerateAlone(test, prompt, 6)));
  REQUIRE(captures.size() == 6);
  std::vector<uint32_t> all = prompt;
  for (const SampledToken& token : tokens) all.push_back(token.id);
  for (size_t i = 0; i < captures.size(); ++i) {
    const std::vector<uint32_t> so_far(all.begin(),
                                       all.begin() + static_cast<std::ptrdiff_t>(19 + i));
    const auto expected = Forward(test, so_far, Everything(RowsOf::kLast), SmallSessionOptions());
    CHECK(captures[i].n_kv == 19 + i);
    CHECK(SameBits(captures[i], *expected.capture));
  }
}

TEST_CASE("capture: what is not there, or is named twice, is refused by name and changes nothing") {
  const TestModel test = SmallSessionModel();
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  const std::vector<uint32_t> tokens = RandomTokens(9, 97, 10);
  session.Logits(tokens, false);
  const auto option = [&](const CaptureRequest& request) {
    const Error error = ErrorOf([&] { session.Compute(tokens, false, &request); });
    CHECK(error.code() == ErrorCode::kBadOption);
    CHECK(session.history() == tokens);
    return Detail(error, "option") + " " + Detail(error, "value");
  };
  CaptureRequest request;
  request.what.layers = {0, 3};
  CHECK(option(request) == "capture.layers[1] 3");
  request.what.layers = {1, 1};
  CHECK(option(request) == "capture.layers[1] 1");
  request.what.layers = {1};
  request.what.all_heads = false;
  request.what.heads = {4};
  CHECK(option(request) == "capture.heads[0] 4");
  request.what.heads = {2};
  request.what.lens_layers = {7};
  CHECK(option(request) == "capture.logitLens[0] 7");
  request.what.lens_layers = {};
  request.rows_of = RowsOf::kListed;
  request.rows = {8, 9};
  CHECK(option(request) == "capture.rows[1] 9");
  request.rows = {8, 8};
  CHECK(option(request) == "capture.rows[1] 8");
  GenerateOptions options = Greedy(1);
  options.capture = request;
  const Error error = ErrorOf([&] { session.Begin(tokens, options); });
  CHECK(Detail(error, "option") == "capture.rows[1]");
}

}  // namespace
}  // namespace headlight
