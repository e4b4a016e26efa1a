// Windows and sinks through sessions: rings, going back, streams beyond the model's context, and
// what the first keys are worth.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/random_matrix.h"
#include "model/decode_all.h"
#include "oracle/test_model.h"
#include "session/run_session.h"
#include "support.h"

namespace headlight {
namespace {

using Tokens = std::vector<uint32_t>;

ModelSpec WindowSpec(size_t window, size_t n_layers) {
  ModelSpec spec = SmallSpec({4, 2, 24, 32}, 64, 96, n_layers);
  for (LayerSpec& layer : spec.layers) layer.window = window;
  spec.tied_head = false;
  spec.n_ctx_train = 2048;
  return spec;
}

SessionOptions OptionsOf(CacheType type, size_t n_ctx) {
  SessionOptions options;
  options.n_ctx = n_ctx;
  options.prefill_chunk = 32;
  options.kv_format = {type, type};
  return options;
}

EvictionOptions Sinks(size_t n_sinks, size_t window) {
  return {EvictionPolicy::kSinks, n_sinks, window};
}

Tokens Head(const Tokens& tokens, size_t n) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)};
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("session: layers with a window keep a ring, and say so in the plan") {
  ModelSpec spec = WindowSpec(100, 2);
  spec.layers[1].window = 0;
  const SessionOptions options = OptionsOf(CacheType::kF32, 2048);
  const SessionPlan plan = PlanSession(spec, options, 1);
  const size_t row = KvLayer::BytesPerToken(spec.layers[0].heads, options.kv_format);
  CHECK(plan.kv_cache_bytes == (256 + 2048) * row);
  SessionOptions with_sinks = options;
  with_sinks.eviction = Sinks(4, 128);
  // The layer with a smaller window stays as it is.
  CHECK(PlanSession(spec, with_sinks, 1).kv_cache_bytes == (256 + 512) * row);
}

TEST_CASE("session: over rings the logits of whole caches, also after going back") {
  const TestModel test = MakeTestModel(WindowSpec(60, 2), TensorType::kQ8_0, 5);
  const Tokens tokens = RandomTokens(900, 97, 6);
  for (const CacheType type : {CacheType::kF32, CacheType::kInt8}) {
    DecodeSetup setup;  // its caches are whole
    setup.activations = ActivationType::kInt8;
    setup.kv_format = {type, type};
    setup.chunk = 32;
    const std::vector<float> expected = DecodeAll(*test.model, tokens, setup);
    const auto row = [&](size_t n) {
      const auto end = expected.begin() + static_cast<std::ptrdiff_t>(n * 97);
      return std::vector<float>(end - 97, end);
    };
    ThreadPool pool(1);
    Session session(test.model, OptionsOf(type, 1000), pool);
    CHECK(session.plan().kv_cache_bytes < 300 * session.plan().kv_bytes_per_token);
    // Back a little, back far beyond what a ring holds, and on again.
    for (const size_t n : {700u, 690u, 900u, 899u, 720u, 100u, 101u, 850u, 1u, 300u}) {
      CAPTURE(n);
      CHECK(SameBits(session.Logits(Head(tokens, n), false), row(n)));
    }
    session.Logits(Head(tokens, 900), false);
    session.Truncate(850);  // within the ring
    session.Logits(Head(tokens, 860), false);
    CHECK(session.stats().n_prompt_reused == 850);
    session.Truncate(400);  // beyond it: computed again
    CHECK(session.history().size() == 400);
    CHECK(SameBits(session.Logits(Head(tokens, 410), false), row(410)));
    CHECK(session.stats().n_prompt_reused == 0);
  }
}

TEST_CASE("session: first keys that a layer keeps by itself stay, at their own positions") {
  ModelSpec spec = WindowSpec(60, 2);
  for (LayerSpec& layer : spec.layers) layer.n_sinks = 4;
  const TestModel test = MakeTestModel(spec, TensorType::kQ8_0, 5);
  const Tokens tokens = RandomTokens(900, 97, 6);
  DecodeSetup setup;  // its caches are whole
  setup.activations = ActivationType::kInt8;
  setup.chunk = 32;
  const std::vector<float> expected = DecodeAll(*test.model, tokens, setup);
  ThreadPool pool(1);
  SessionOptions options = OptionsOf(CacheType::kF32, 1000);
  Session rings(test.model, options, pool);
  const std::vector<float> logits = rings.Logits(tokens, false);
  CHECK(SameBits(logits, {expected.end() - 97, expected.end()}));
  CHECK(rings.plan().kv_cache_bytes < 600 * rings.plan().kv_bytes_per_token);
  // An eviction with a window that is no smaller changes nothing.
  options.eviction = Sinks(2, 60);
  Session same(test.model, options, pool);
  CHECK(SameBits(same.Logits(tokens, false), logits));
}

TEST_CASE("session: sinks serve a layer with a larger window as one without") {
  const Tokens tokens = RandomTokens(400, 97, 6);
  ThreadPool pool(1);
  SessionOptions options = OptionsOf(CacheType::kF32, 1000);
  options.eviction = Sinks(4, 40);
  const auto logits_with = [&](size_t window) {
    const TestModel test = MakeTestModel(WindowSpec(window, 2), TensorType::kQ8_0, 5);
    Session session(test.model, options, pool);
    return session.Logits(tokens, false);
  };
  CHECK(SameBits(logits_with(200), logits_with(0)));
  CHECK(!SameBits(logits_with(30), logits_with(0)));
}

struct MemorySink : SavedSink {
  void Write(std::span<const uint8_t> more) override {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  std::vector<uint8_t> bytes;
};

struct MemorySource : SavedSource {
  explicit MemorySource(const std::vector<uint8_t>& b) : bytes(b) {}
  uint64_t n_bytes() const override { return bytes.size(); }
  void Read(uint64_t offset, std::span<uint8_t> out) override {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }
  const std::vector<uint8_t>& bytes;
};

TEST_CASE("session: over rings, saved and forked sessions go on with the same bits") {
  const TestModel test = MakeTestModel(WindowSpec(60, 2), TensorType::kQ8_0, 5);
  const Tokens tokens = RandomTokens(900, 97, 6);
  ThreadPool pool(1);
  for (const CacheType type : {CacheType::kF32, CacheType::kInt8}) {
    for (const EvictionOptions& eviction : {EvictionOptions{}, Sinks(4, 40)}) {
      SessionOptions options = OptionsOf(type, 1000);
      options.eviction = eviction;
      Session straight(test.model, options, pool);
      const std::vector<float> expected = straight.Logits(tokens, false);
      Session saved(test.model, options, pool);
      saved.Logits(Head(tokens, 800), false);
      MemorySink sink;
      saved.Save(sink);
      CHECK(sink.bytes.size() == saved.SavedBytes());
      Session restored(test.model, options, pool), forked(test.model, options, pool);
      MemorySource source(sink.bytes);
      restored.Restore(source);
      forked.CopyFrom(saved);
      for (Session* session : {&restored, &forked}) {
        CHECK(SameBits(session->Logits(tokens, false), expected));
        CHECK(session->stats().n_prompt_reused == 800);
        // What a ring has lost is computed again, never taken for what it was.
        CHECK(SameBits(session->Logits(Head(tokens, 790), false),
                       straight.Logits(Head(tokens, 790), false)));
      }
      // Gone back beyond the ring: a history without rows, which can be saved too.
      saved.Truncate(300);
      MemorySink short_sink;
      saved.Save(short_sink);
      MemorySource short_source(short_sink.bytes);
      restored.Restore(short_source);
      CHECK(restored.history() == Head(tokens, 300));
      CHECK(SameBits(restored.Logits(tokens, false), expected));
      // Other rows are refused, not taken for damage.
      SessionOptions other = options;
      other.prefill_chunk = 256;
      Session wider(test.model, other, pool);
      const Error error = testing::ErrorOf([&] {
        MemorySource again(sink.bytes);
        wider.Restore(again);
      });
      CHECK(error.code() == ErrorCode::kBadOption);
      CHECK(testing::Detail(error, "differs") == "context, prefill chunk or eviction");
    }
  }
}

TEST_CASE("sinks: with room for everything, the bits of no eviction") {
  const TestModel test = MakeTestModel(WindowSpec(0, 2), TensorType::kQ8_0, 7);
  const Tokens tokens = RandomTokens(300, 97, 8);
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    ThreadPool pool(1);
    Session none(test.model, OptionsOf(type, 400), pool);
    SessionOptions options = OptionsOf(type, 400);
    options.eviction = Sinks(4, 296);
    Session sinks(test.model, options, pool);
    CHECK(SameBits(sinks.Logits(tokens, true), none.Logits(tokens, true)));
  }
}

TEST_CASE("sinks: a prompt, its tokens one by one and a replay give the same bits") {
  const TestModel test = MakeTestModel(WindowSpec(0, 2), TensorType::kQ8_0, 9);
  const Tokens tokens = RandomTokens(700, 97, 10);
  for (const CacheType type : {CacheType::kF32, CacheType::kInt8}) {
    SessionOptions options = OptionsOf(type, 1000);
    options.eviction = Sinks(4, 50);
    ThreadPool pool(1);
    Session at_once(test.model, options, pool);
    const std::vector<float> expected = at_once.Logits(tokens, true);
    Session stepped(test.model, options, pool);
    const auto row = [&](size_t n) {
      const auto end = expected.begin() + static_cast<std::ptrdiff_t>(n * 97);
      return std::vector<float>(end - 97, end);
    };
    for (size_t n = 1; n <= 80; ++n) {
      CHECK(SameBits(stepped.Logits(Head(tokens, n), false), row(n)));
    }
    for (const size_t n : {700u, 650u, 651u, 200u, 690u}) {
      CAPTURE(n);
      CHECK(SameBits(stepped.Logits(Head(tokens, n), false), row(n)));
    }
  }
}

// A layer alone: its keys depend on nothing but their tokens, so StreamingLLM's cache is what the
// first and the last tokens alone, one after the other, would leave.
TEST_CASE(
    "sinks: one layer computes what the kept tokens alone would, at the places of the cache") {
  const TestModel test = MakeTestModel(WindowSpec(0, 1), TensorType::kF32, 11);
  const Tokens tokens = RandomTokens(500, 97, 12);
  constexpr size_t kSinks = 4, kWindow = 40;
  SessionOptions options = OptionsOf(CacheType::kF32, 600);
  options.activations = ActivationType::kF32;
  SessionOptions plain = options;
  options.eviction = Sinks(kSinks, kWindow);
  ThreadPool pool(1);
  Session stream(test.model, options, pool);
  const std::vector<float> all = stream.Logits(tokens, true);
  for (const size_t n : {45u, 100u, 299u, 500u}) {
    Tokens kept = Head(tokens, kSinks);
    kept.insert(kept.end(), tokens.begin() + static_cast<std::ptrdiff_t>(n - kWindow),
                tokens.begin() + static_cast<std::ptrdiff_t>(n));
    Session alone(test.model, plain, pool);
    const std::vector<float> expected = alone.Logits(kept, false);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(n * 97);
    const Difference d = Compare(std::vector<float>(end - 97, end), expected);
    // Angles of positions in the hundreds have errors of 2^-24 of themselves.
    CHECK(d.relative_rms <= 2e-5);
  }
}

TEST_CASE("sinks: a stream goes on past the model's context, other sessions do not") {
  ModelSpec spec = WindowSpec(0, 1);
  spec.n_ctx_train = 64;
  const TestModel test = MakeTestModel(spec, TensorType::kQ8_0, 13);
  SessionOptions options = OptionsOf(CacheType::kF32, 700);
  ThreadPool pool(1);
  CHECK(testing::ErrorOf([&] { Session(test.model, options, pool); }).code() ==
        ErrorCode::kBadOption);
  options.eviction = Sinks(4, 60);
  Session session(test.model, options, pool);
  session.Begin(RandomTokens(10, 97, 14), Greedy(680));
  std::vector<SampledToken> tokens;
  Finish(session, 1e9, tokens);
  CHECK(tokens.size() == 680);
}

TEST_CASE("sinks: what cannot be is refused by name") {
  const ModelSpec spec = WindowSpec(0, 1);
  struct Case {
    EvictionOptions eviction;
    const char* option;
  };
  for (const Case& c :
       {Case{Sinks(33, 100), "eviction.sinks"}, Case{Sinks(4, 0), "eviction.window"},
        Case{Sinks(4, 2045), "eviction.window"}}) {
    SessionOptions options = OptionsOf(CacheType::kF32, 100);
    options.eviction = c.eviction;
    const Error error = testing::ErrorOf([&] { PlanSession(spec, options, 1); });
    CHECK(error.code() == ErrorCode::kBadOption);
    CHECK(testing::Detail(error, "option") == c.option);
  }
}

}  // namespace
}  // namespace headlight
