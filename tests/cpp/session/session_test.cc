// A session's runs: what Begin accepts, what Advance does and reports, how runs end. What stays the
// same however a sequence is computed: session_replay_test.cc.
#include "session/session.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "allocation_count.h"
#include "oracle/test_model.h"
#include "session/run_session.h"
#include "support.h"

namespace headlight {
namespace {

using testing::Detail;
using testing::ErrorOf;

TEST_CASE("session: the plan has the defaults, refuses what the model cannot do and is exact") {
  ModelSpec spec = SmallSessionSpec();
  CHECK(PlanSession(spec, {}, 1).n_ctx == spec.n_ctx_train);
  spec.n_ctx_train = 100000;
  CHECK(PlanSession(spec, {}, 1).n_ctx == kDefaultMaxCtx);
  CHECK(PlanSession(spec, {}, 1).prefill_chunk == kDefaultPrefillChunk);

  SessionOptions options;
  options.n_ctx = 100001;
  const Error too_long = ErrorOf([&] { PlanSession(spec, options, 1); });
  CHECK(too_long.code() == ErrorCode::kBadOption);
  CHECK(Detail(too_long, "option") == "n_ctx");
  CHECK(Detail(too_long, "value") == "100001");
  options.n_ctx = 50;
  options.prefill_chunk = kMaxPrefillChunk + 1;
  CHECK(Detail(ErrorOf([&] { PlanSession(spec, options, 1); }), "option") == "prefill_chunk");

  for (const ActivationType activations : {ActivationType::kInt8, ActivationType::kF32}) {
    options.prefill_chunk = 1000;  // more than the context
    options.activations = activations;
    options.kv_format = {CacheType::kF16, CacheType::kF32};
    ModelSpec large_vocabulary = SmallSessionSpec();
    large_vocabulary.vocab_size = 2000;
    const TestModel test = MakeTestModel(large_vocabulary, TensorType::kQ8_0, 1);
    ThreadPool pool(1);
    const size_t before = AlignedBytesAllocated();
    const Session session(test.model, options, pool);
    const size_t allocated = AlignedBytesAllocated() - before;
    const SessionPlan& plan = session.plan();
    CHECK(plan.prefill_chunk == 50);
    CHECK(plan.kv_cache_bytes == 50 * plan.kv_bytes_per_token);
    const size_t planned = plan.kv_cache_bytes + plan.workspace_bytes;
    CHECK(planned <= allocated);
    CHECK(allocated < planned + 20 * kAlignment);  // each array ends on a whole cache line
  }
}

TEST_CASE(
    "session: a rejected Begin names the fault and leaves history, cache and the run in progress "
    "alone") {
  struct Case {
    std::string option;
    ErrorCode code;
    void (*spoil)(std::vector<uint32_t>& tokens, GenerateOptions& options);
  };
  const Case cases[] = {
      {"tokens", ErrorCode::kBadOption, [](auto& tokens, auto&) { tokens.clear(); }},
      {"tokens[2]", ErrorCode::kBadOption, [](auto& tokens, auto&) { tokens[2] = 97; }},
      {"", ErrorCode::kContextFull, [](auto& tokens, auto&) { tokens.assign(65, 1); }},
      {"stop_tokens[1]", ErrorCode::kBadOption,
       [](auto&, auto& options) { options.stop_tokens = {2, 4294967295u}; }},
      {"temperature", ErrorCode::kBadOption,
       [](auto&, auto& options) { options.sampler.temperature = NAN; }},
      {"logit_bias[0] id", ErrorCode::kBadOption,
       [](auto&, auto& options) { options.sampler.logit_bias = {{97, 1.0f}}; }},
  };
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(20, 97, 1);
  const std::vector<SampledToken> expected = GenerateAlone(test, prompt, 12);
  for (const Case& c : cases) {
    CAPTURE(c.option);
    ThreadPool pool(1);
    Session session(test.model, SmallSessionOptions(), pool);
    session.Begin(prompt, Greedy(12));
    std::vector<SampledToken> tokens;
    for (int i = 0; i < 8; ++i) Append(session.Advance(0.0), tokens);
    const std::vector<uint32_t> history = session.history();

    std::vector<uint32_t> bad_tokens = prompt;
    GenerateOptions bad_options = Greedy(1);
    c.spoil(bad_tokens, bad_options);
    const Error error = ErrorOf([&] { session.Begin(bad_tokens, bad_options); });
    CHECK(error.code() == c.code);
    CHECK(Detail(error, "option") == c.option);
    if (c.code == ErrorCode::kContextFull) {
      CHECK(Detail(error, "needed_tokens") == "65");
      CHECK(Detail(error, "n_ctx") == "64");
    }
    CHECK(session.history() == history);
    Finish(session, 0.0, tokens);
    CHECK(SameTokens(tokens, expected));
  }
}

TEST_CASE("session: greedy generation takes the best token of Logits at every position") {
  const TestModel test = SmallSessionModel();
  ThreadPool pool(1);
  std::vector<uint32_t> sequence = RandomTokens(9, 97, 2);
  const std::vector<SampledToken> tokens = GenerateAlone(test, sequence, 10);
  REQUIRE(tokens.size() == 10);
  Session other(test.model, SmallSessionOptions(), pool);
  for (const SampledToken& token : tokens) {
    const std::vector<float> logits = other.Logits(sequence, false);
    CHECK(token.id ==
          static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    sequence.push_back(token.id);
  }
}

TEST_CASE("session: a budget of nothing does one layer a call and gives the same tokens") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(20, 97, 3);
  const std::vector<SampledToken> expected = GenerateAlone(test, prompt, 5);
  for (const double budget : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    ThreadPool pool(1);
    Session session(test.model, SmallSessionOptions(), pool);
    session.Begin(prompt, Greedy(5));
    // Chunks of 8, 8 and 4 tokens: 3 layers each, the head after the last.
    std::vector<size_t> progress;
    AdvanceResult result;
    while (result.tokens.empty()) {
      result = session.Advance(budget);
      progress.push_back(result.n_prompt_done);
      CHECK(result.n_prompt == 20);
    }
    CHECK(progress == std::vector<size_t>{0, 0, 8, 8, 8, 16, 16, 16, 16, 20});
    std::vector<SampledToken> tokens = result.tokens;
    const size_t n_calls = Finish(session, budget, tokens);
    CHECK(n_calls == 4 * 4);  // 3 layers and the head for each of the other four tokens
    CHECK(SameTokens(tokens, expected));
  }
}

TEST_CASE("session: a large budget still returns after each prefill chunk and each token") {
  const TestModel test = SmallSessionModel();
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  session.Begin(RandomTokens(20, 97, 3), Greedy(2));
  CHECK(session.Advance(1e9).n_prompt_done == 8);
  CHECK(session.Advance(INFINITY).n_prompt_done == 16);
  const AdvanceResult first = session.Advance(1e9);
  CHECK(first.tokens.size() == 1);
  CHECK_FALSE(first.done);
  const AdvanceResult second = session.Advance(1e9);
  CHECK(second.tokens.size() == 1);
  CHECK(second.done);
}

TEST_CASE("session: history is what the cache holds plus the last sampled token") {
  const TestModel test = SmallSessionModel();
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  std::vector<uint32_t> expected = RandomTokens(20, 97, 4);
  session.Begin(expected, Greedy(3));
  CHECK(session.history().empty());
  session.Advance(1e9);
  CHECK(session.history() == std::vector<uint32_t>(expected.begin(), expected.begin() + 8));
  std::vector<SampledToken> tokens;
  Finish(session, 1e9, tokens);
  for (const SampledToken& token : tokens) expected.push_back(token.id);
  CHECK(session.history() == expected);
  // The last token has no row yet: continuing computes it, and only it.
  session.Begin(session.history(), Greedy(1));
  CHECK(session.stats().n_prompt_reused == 22);
}

TEST_CASE("session: runs end at max_tokens, at a stop token, when the context is full") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(20, 97, 5);
  const std::vector<SampledToken> greedy = GenerateAlone(test, prompt, 45);
  REQUIRE(greedy.size() == 45);
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);

  std::vector<SampledToken> tokens;
  session.Begin(prompt, Greedy(7));
  Finish(session, 1e9, tokens);
  CHECK(tokens.size() == 7);
  CHECK(session.Advance(1e9).finish == FinishReason::kLength);

  // A stop token ends the run and is part of neither the result nor the history.
  GenerateOptions options = Greedy(0);
  size_t stop_at = greedy.size() - 1;  // the last token that had not occurred before
  while (FirstIndexOf(greedy, greedy[stop_at].id) != stop_at) --stop_at;
  REQUIRE(stop_at > 0);
  options.stop_tokens = {0, greedy[stop_at].id};
  tokens.clear();
  session.Begin(prompt, options);
  Finish(session, 1e9, tokens);
  CHECK(session.Advance(1e9).finish == FinishReason::kStop);
  CHECK(tokens.size() == stop_at);
  CHECK(session.history().size() == 20 + stop_at);
  CHECK(session.stats().n_generated == stop_at);

  options.ignore_stop_tokens = true;
  tokens.clear();
  session.Begin(prompt, options);
  Finish(session, 1e9, tokens);
  CHECK(session.Advance(1e9).finish == FinishReason::kLength);
  // 44 rows were free; the token that the last one gives has no row.
  CHECK(tokens.size() == 45);
  CHECK(SameTokens(tokens, greedy));
  CHECK(session.history().size() == 65);
}

TEST_CASE("session: a prompt that fills the context gives one token") {
  const TestModel test = SmallSessionModel();
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  std::vector<SampledToken> tokens;
  session.Begin(RandomTokens(64, 97, 6), Greedy(0));
  Finish(session, 1e9, tokens);
  CHECK(tokens.size() == 1);
  CHECK(session.Advance(1e9).finish == FinishReason::kLength);
}

TEST_CASE("session: a cancelled run leaves what was done in the cache and the session usable") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(20, 97, 7);
  const std::vector<SampledToken> expected = GenerateAlone(test, prompt, 6);
  for (int n_calls = 0; n_calls < 20; ++n_calls) {
    for (const bool by_flag : {false, true}) {
      CAPTURE(n_calls);
      ThreadPool pool(1);
      Session session(test.model, SmallSessionOptions(), pool);
      bool is_stopped = false;
      session.set_stop_asked([&] { return is_stopped; });
      session.Begin(prompt, Greedy(6));
      for (int i = 0; i < n_calls; ++i) session.Advance(0.0);
      const std::vector<uint32_t> history = session.history();
      if (by_flag) {
        is_stopped = true;
      } else {
        session.Cancel();
      }
      const AdvanceResult result = session.Advance(1e9);
      CHECK(result.done);
      CHECK(result.finish == FinishReason::kAborted);
      CHECK(result.tokens.empty());
      CHECK(session.history() == history);
      is_stopped = false;
      // What was done of the prompt is not done again, and the tokens are the same.
      session.Begin(prompt, Greedy(6));
      CHECK(session.stats().n_prompt_reused == std::min<size_t>(history.size(), 19));
      std::vector<SampledToken> tokens;
      Finish(session, 1e9, tokens);
      CHECK(SameTokens(tokens, expected));
    }
  }
}

TEST_CASE("session: a stop is asked for before each step, and is seen within a call") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(20, 97, 7);
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  size_t n_asked = 0;
  session.set_stop_asked([&] { return ++n_asked > 5; });
  session.Begin(prompt, Greedy(6));
  std::vector<SampledToken> tokens;
  Finish(session, 1e9, tokens);
  CHECK(n_asked == 6);
  CHECK(session.Advance(1e9).finish == FinishReason::kAborted);
}

TEST_CASE("session: Advance without a run reports how the last one ended") {
  const TestModel test = SmallSessionModel();
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  CHECK(session.Advance(1.0).done);
  CHECK(session.Advance(1.0).finish == FinishReason::kNone);
  session.Cancel();  // of nothing
  CHECK(session.Advance(1.0).finish == FinishReason::kNone);
}

TEST_CASE("session: Logits ends a run, keeps the cache usable and can be cancelled") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(20, 97, 8);
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  session.Begin(prompt, Greedy(6));
  session.Advance(1e9);
  const std::vector<float> all = session.Logits(prompt, true);
  CHECK(all.size() == 20 * 97);
  CHECK(session.Advance(1e9).done);
  CHECK(session.history() == prompt);
  CHECK(session.stats().n_prompt_reused == 0);
  const std::vector<float> last = session.Logits(prompt, false);
  CHECK(session.stats().n_prompt_reused == 19);
  CHECK(last == std::vector<float>(all.end() - 97, all.end()));
  CHECK(ErrorOf([&] { session.Logits({}, false); }).code() == ErrorCode::kBadOption);
  CHECK(ErrorOf([&] { session.Logits(std::vector<uint32_t>(65, 1), true); }).code() ==
        ErrorCode::kContextFull);
  CHECK(session.history() == prompt);
}

TEST_CASE("session: Truncate cuts history and cache and refuses more than there is") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(20, 97, 9);
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  std::vector<SampledToken> tokens;
  session.Begin(prompt, Greedy(3));
  Finish(session, 1e9, tokens);
  const Error error = ErrorOf([&] { session.Truncate(24); });
  CHECK(error.code() == ErrorCode::kBadOption);
  CHECK(Detail(error, "value") == "24");
  CHECK(session.history().size() == 23);
  session.Truncate(23);
  CHECK(session.history().size() == 23);
  session.Truncate(11);
  CHECK(session.history() == std::vector<uint32_t>(prompt.begin(), prompt.begin() + 11));
  session.Begin(prompt, Greedy(3));
  CHECK(session.stats().n_prompt_reused == 11);
  session.Truncate(0);
  CHECK(session.history().empty());
  CHECK(session.Advance(1e9).finish == FinishReason::kAborted);  // the run that it ended
}

TEST_CASE("session: stats count what was computed") {
  const TestModel test = SmallSessionModel();
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  std::vector<uint32_t> prompt = RandomTokens(20, 97, 10);
  std::vector<SampledToken> tokens;
  session.Begin(prompt, Greedy(4));
  Finish(session, 0.0, tokens);
  const RunStats first = session.stats();
  CHECK(first.n_prompt == 20);
  CHECK(first.n_prompt_reused == 0);
  CHECK(first.n_generated == 4);
  CHECK(first.n_decode_steps == 3);
  CHECK(first.prefill_ms > 0.0);
  CHECK(first.decode_ms > 0.0);
  // What a run's time went into: every kind of work is there, and nothing is counted twice.
  const std::pair<const StageTimes*, double> kPhases[] = {{&first.prefill_stages, first.prefill_ms},
                                                          {&first.decode_stages, first.decode_ms}};
  for (const auto& [stages, total] : kPhases) {
    double sum = 0.0;
    for (const double ms : stages->ms) {
      CHECK(ms > 0.0);
      sum += ms;
    }
    CHECK(sum <= total);
  }
  prompt.resize(13);
  prompt.push_back((prompt[12] + 1) % 97);
  session.Begin(prompt, Greedy(1));
  CHECK(session.stats().n_prompt == 14);
  CHECK(session.stats().n_prompt_reused <= 13);
  CHECK(session.stats().n_generated == 0);
  CHECK(session.stats().prefill_ms == 0.0);
  CHECK(session.stats().decode_stages.ms == StageTimes().ms);
}

TEST_CASE(
    "session: numbers that overflow are an Internal error, after which the session is empty and "
    "usable") {
  ModelSpec spec = SmallSessionSpec();
  spec.embedding_scale = 3e38f;
  const TestModel test = MakeTestModel(spec, TensorType::kF32, 1);
  ThreadPool pool(1);
  Session session(test.model, SmallSessionOptions(), pool);
  for (int i = 0; i < 2; ++i) {
    session.Begin(RandomTokens(5, 97, 1), Greedy(2));
    CHECK(ErrorOf([&] { session.Advance(1e9); }).code() == ErrorCode::kInternal);
    CHECK(session.history().empty());
    CHECK(session.Advance(1e9).done);
  }
}

}  // namespace
}  // namespace headlight
