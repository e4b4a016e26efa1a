// H2O and SnapKV through sessions: nothing changes while everything fits, and what goes does not
// depend on how a sequence came to be computed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "model/decode_all.h"
#include "oracle/oracle_watch.h"
#include "oracle/test_model.h"
#include "session/perplexity.h"
#include "session/run_session.h"
#include "support.h"

namespace headlight {
namespace {

using Tokens = std::vector<uint32_t>;

TestModel KeptModel(size_t n_layers) {
  ModelSpec spec = SmallSpec({4, 2, 24, 32}, 64, 96, n_layers);
  spec.tied_head = false;
  spec.n_ctx_train = 1024;
  return MakeTestModel(spec, TensorType::kQ8_0, 5);
}

SessionOptions OptionsOf(EvictionPolicy policy, size_t budget, size_t window,
                         CacheType type = CacheType::kF32) {
  SessionOptions options;
  options.n_ctx = 600;
  options.prefill_chunk = 48;
  options.kv_format = {type, type};
  options.eviction = {policy, 0, window, budget};
  return options;
}

Tokens Head(const Tokens& tokens, size_t n) {
  return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n)};
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr EvictionPolicy kPolicies[] = {EvictionPolicy::kH2o, EvictionPolicy::kSnapKv};

TEST_CASE("H2O, SnapKV: with a budget of the whole sequence, the bits of no eviction") {
  const TestModel test = KeptModel(2);
  const Tokens tokens = RandomTokens(300, 97, 8);
  ThreadPool pool(1);
  for (const CacheType type : {CacheType::kF32, CacheType::kInt8}) {
    SessionOptions none = OptionsOf(EvictionPolicy::kNone, 0, 0, type);
    Session whole(test.model, none, pool);
    const std::vector<float> expected = whole.Logits(tokens, true);
    whole.Begin(tokens, Greedy(20));
    std::vector<SampledToken> generated;
    Finish(whole, 1e9, generated);
    for (const EvictionPolicy policy : kPolicies) {
      Session kept(test.model, OptionsOf(policy, 320, 64, type), pool);
      CHECK(SameBits(kept.Logits(tokens, true), expected));
      kept.Begin(tokens, Greedy(20));
      std::vector<SampledToken> again;
      Finish(kept, 1e9, again);
      CHECK(SameTokens(again, generated));
    }
  }
}

TEST_CASE("H2O: a prompt, its tokens one by one and a replay after going back give the same bits") {
  const TestModel test = KeptModel(2);
  const Tokens tokens = RandomTokens(400, 97, 9);
  ThreadPool pool(1);
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    const SessionOptions options = OptionsOf(EvictionPolicy::kH2o, 70, 30, type);
    Session at_once(test.model, options, pool);
    const std::vector<float> expected = at_once.Logits(tokens, true);
    const auto row = [&](size_t n) {
      const auto end = expected.begin() + static_cast<std::ptrdiff_t>(n * 97);
      return std::vector<float>(end - 97, end);
    };
    Session stepped(test.model, options, pool);
    for (size_t n = 150; n <= 400; ++n) {
      CHECK(SameBits(stepped.Logits(Head(tokens, n), false), row(n)));
    }
    CHECK(stepped.stats().n_prompt_reused == 399);
    stepped.Truncate(333);
    for (const size_t n : {340u, 399u, 129u, 400u}) {
      CAPTURE(n);
      CHECK(SameBits(stepped.Logits(Head(tokens, n), false), row(n)));
    }
    // And something was given up: without eviction the numbers are others.
    Session whole(test.model, OptionsOf(EvictionPolicy::kNone, 0, 0, type), pool);
    CHECK_FALSE(SameBits(whole.Logits(tokens, false), row(400)));
    CHECK(at_once.plan().kv_cache_bytes < whole.plan().kv_cache_bytes / 3);
  }
}

TEST_CASE("SnapKV: rows go at a prompt's end; the same prompt again gives the same bits") {
  const TestModel test = KeptModel(2);
  const Tokens prompt = RandomTokens(300, 97, 10);
  ThreadPool pool(1);
  const SessionOptions options = OptionsOf(EvictionPolicy::kSnapKv, 64, 16);
  const auto generate = [&](Session& session) {
    session.Begin(prompt, Greedy(40));
    std::vector<SampledToken> tokens;
    Finish(session, 1e9, tokens);
    return tokens;
  };
  Session first(test.model, options, pool);
  const std::vector<SampledToken> expected = generate(first);
  // The prompt itself sees all of its keys.
  Session whole(test.model, OptionsOf(EvictionPolicy::kNone, 0, 0), pool);
  const std::vector<SampledToken> without = generate(whole);
  CHECK(expected[0].logprob == without[0].logprob);
  CHECK_FALSE(SameTokens(expected, without));
  first.Truncate(310);
  CHECK(SameTokens(generate(first), expected));
  CHECK(first.stats().n_prompt_reused == 0);  // what was given up cannot come back
  SessionOptions chunks = options;
  chunks.prefill_chunk = 7;
  Session small_steps(test.model, chunks, pool);
  CHECK(SameTokens(generate(small_steps), expected));
}

// Exact weights and activations, so that the oracle's numbers are those of float32.
struct ExactModel {
  TestModel test;
  OracleWatch watch;
  SessionOptions options;

  ExactModel(EvictionPolicy policy, size_t budget, size_t window)
      : options(OptionsOf(policy, budget, window)) {
    ModelSpec spec = SmallSpec({4, 2, 24, 32}, 64, 96, 3);
    spec.tied_head = false;
    spec.n_ctx_train = 1024;
    spec.layers[1].window = 40;  // keeps its window, whatever the policy
    test = MakeTestModel(spec, TensorType::kF32, 6);
    options.activations = ActivationType::kF32;
    watch.eviction = options.eviction;
  }
};

TEST_CASE("H2O: each KV head keeps what its paper says, at every position, as in the oracle") {
  ExactModel exact(EvictionPolicy::kH2o, 70, 30);
  const Tokens tokens = RandomTokens(400, 97, 13);
  const Matrix expected = WatchedOracleLogits(exact.test.oracle, tokens, exact.watch);
  ThreadPool pool(1);
  Session session(exact.test.model, exact.options, pool);
  const Difference d = Compare(session.Logits(tokens, true), expected.values);
  CHECK(d.max <= F32Tolerance(exact.test.model->spec, d.magnitude));
  // Keeping other keys, such as the recent ones alone, would show.
  OracleWatch recent;
  recent.eviction = {EvictionPolicy::kH2o, 0, 70, 70};
  const Matrix other = WatchedOracleLogits(exact.test.oracle, tokens, recent);
  CHECK(Compare(other.values, expected.values).max > 1e-2);
}

TEST_CASE("SnapKV: what is generated sees the keys that its paper keeps, as in the oracle") {
  ExactModel exact(EvictionPolicy::kSnapKv, 64, 16);
  const Tokens prompt = RandomTokens(300, 97, 14);
  ThreadPool pool(1);
  Session session(exact.test.model, exact.options, pool);
  session.Begin(prompt, Greedy(30));
  std::vector<SampledToken> sampled;
  Finish(session, 1e9, sampled);
  REQUIRE(sampled.size() == 30);
  Tokens tokens = prompt;
  for (const SampledToken& token : sampled) tokens.push_back(token.id);
  exact.watch.n_prompt = prompt.size();
  const Matrix expected = WatchedOracleLogits(exact.test.oracle, tokens, exact.watch);
  const Matrix whole = OracleLogits(exact.test.oracle, tokens);
  const auto log_p = [&](const Matrix& logits, size_t row, uint32_t id) {
    const std::vector<float> values(logits.row(row), logits.row(row) + logits.n_cols);
    return -SurpriseOf(values, id);
  };
  double largest = 0.0;
  for (size_t i = 0; i < sampled.size(); ++i) {
    const size_t row = prompt.size() - 1 + i;
    for (const TokenLogprob& top : sampled[i].top) {
      CHECK(static_cast<double>(top.logprob) ==
            doctest::Approx(log_p(expected, row, top.id)).epsilon(1e-5));
      largest =
          std::max(largest, std::fabs(log_p(whole, row, top.id) - log_p(expected, row, top.id)));
    }
  }
  CHECK(largest > 1e-2);  // with all keys the numbers are others
}

TEST_CASE("H2O, SnapKV: a cancelled chunk leaves nothing behind") {
  const TestModel test = KeptModel(2);
  const Tokens tokens = RandomTokens(200, 97, 11);
  ThreadPool pool(1);
  for (const EvictionPolicy policy : kPolicies) {
    const SessionOptions options = OptionsOf(policy, 50, 20);
    Session straight(test.model, options, pool);
    const std::vector<float> expected = straight.Logits(tokens, false);
    Session stopped(test.model, options, pool);
    stopped.Begin(tokens, Greedy(1));
    for (int i = 0; i < 5; ++i) stopped.Advance(0.0);  // in the middle of a chunk
    stopped.Cancel();
    CHECK(SameBits(stopped.Logits(tokens, false), expected));
  }
}

TEST_CASE("H2O, SnapKV: a fork goes on with the same bits; saving is refused by name") {
  const TestModel test = KeptModel(2);
  const Tokens tokens = RandomTokens(300, 97, 12);
  ThreadPool pool(1);
  for (const EvictionPolicy policy : kPolicies) {
    const SessionOptions options = OptionsOf(policy, 50, 20, CacheType::kInt8);
    Session first(test.model, options, pool);
    first.Logits(Head(tokens, 200), false);
    Session fork(test.model, options, pool);
    fork.CopyFrom(first);
    CHECK(SameBits(fork.Logits(tokens, false), first.Logits(tokens, false)));
    CHECK(fork.stats().n_prompt_reused == 200);
    const Error error = testing::ErrorOf([&] { first.SavedBytes(); });
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(testing::Detail(error, "option") == "eviction.policy");
  }
}

TEST_CASE("H2O, SnapKV: what cannot be is refused by name") {
  const TestModel test = KeptModel(1);
  for (const EvictionPolicy policy : kPolicies) {
    for (const auto& [budget, window] : {std::pair<size_t, size_t>{10, 11}, {10, 0}}) {
      const Error error = testing::ErrorOf(
          [&] { PlanSession(test.model->spec, OptionsOf(policy, budget, window), 1); });
      CHECK(error.code() == ErrorCode::kBadOption);
      CHECK(testing::Detail(error, "option") == "eviction.window");
    }
    ThreadPool pool(1);
    Session session(test.model, OptionsOf(policy, 50, 20), pool);
    GenerateOptions options = Greedy(1);
    options.capture.emplace();
    const Error error = testing::ErrorOf([&] { session.Begin(RandomTokens(9, 97, 1), options); });
    CHECK(error.code() == ErrorCode::kUnsupported);
    CHECK(testing::Detail(error, "option") == "capture");
  }
}

TEST_CASE("default model: H2O beside a window of the same budget") {
  const auto model = DefaultModelForText();
  const auto texts = DefaultModelTexts();
  ThreadPool pool(1);
  const auto measure = [&](const EvictionOptions& eviction) {
    return MeasurePerplexity(texts, [&](const Tokens& ids) {
      SessionOptions options;
      options.eviction = eviction;
      Session session(model, options, pool);
      return session.Logits(ids, true);
    });
  };
  const Perplexities whole = measure({});
  const Perplexities h2o = measure({EvictionPolicy::kH2o, 0, 48, 96});
  const Perplexities sinks = measure({EvictionPolicy::kSinks, 4, 92, 0});
  MESSAGE("perplexity of answers: all keys " << whole.answers << ", H2O 48 + 48 " << h2o.answers
                                             << ", 4 sinks + 92 " << sinks.answers);
  CHECK(h2o.answers >= 0.98 * whole.answers);
  CHECK(h2o.answers < 3.0 * whole.answers);
}

}  // namespace
}  // namespace headlight
