// The same bits however a sequence came to be computed: alone or beside others, at once or in
// steps, after going back, with or without what the cache holds. Tokens are compared with their
// logprobs, logits as they are.
#include <doctest/doctest.h>

#include <cstring>
#include <deque>
#include <vector>

#include "oracle/test_model.h"
#include "session/run_session.h"
#include "session/session.h"

namespace headlight {
namespace {

using Tokens = std::vector<uint32_t>;

struct Path {
  TensorType type;
  ActivationType activations;
  CacheType cache;
};

const Path kPaths[] = {
    {TensorType::kF32, ActivationType::kF32, CacheType::kF32},
    {TensorType::kF16, ActivationType::kF32, CacheType::kF16},
    {TensorType::kQ8_0, ActivationType::kInt8, CacheType::kF32},
    {TensorType::kQ4_0, ActivationType::kInt8, CacheType::kF16},
    {TensorType::kQ8_0, ActivationType::kInt8, CacheType::kInt8},
};

// A model and sessions over it in one path.
struct Fixture {
  explicit Fixture(const Path& path)
      : test(SmallSessionModel(path.type)), options(SmallSessionOptions()) {
    options.activations = path.activations;
    options.kv_format = {path.cache, path.cache};
  }
  Session NewSession() { return Session(test.model, options, pool); }

  TestModel test;
  SessionOptions options;
  ThreadPool pool{1};
};

Tokens Ids(const std::vector<SampledToken>& tokens) {
  Tokens ids;
  for (const SampledToken& token : tokens) ids.push_back(token.id);
  return ids;
}

Tokens Joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

std::vector<SampledToken> Generate(Session& session, const Tokens& prompt, size_t max_tokens) {
  session.Begin(prompt, Greedy(max_tokens));
  std::vector<SampledToken> tokens;
  Finish(session, 1e9, tokens);
  return tokens;
}

TEST_CASE("session: sessions that take turns after every layer give what each gives alone") {
  for (const Path& path : kPaths) {
    Fixture f(path);
    const Tokens prompts[] = {RandomTokens(21, 97, 1), RandomTokens(5, 97, 2),
                              RandomTokens(13, 97, 3)};
    std::deque<Session> sessions;
    for (const Tokens& prompt : prompts) {
      sessions.emplace_back(f.test.model, f.options, f.pool);
      sessions.back().Begin(prompt, Greedy(12));
    }
    std::vector<SampledToken> tokens[3];
    for (bool all_done = false; !all_done;) {
      all_done = true;
      for (size_t i = 0; i < 3; ++i) {
        const AdvanceResult result = sessions[i].Advance(0.0);
        Append(result, tokens[i]);
        all_done = all_done && result.done;
      }
    }
    for (size_t i = 0; i < 3; ++i) {
      Session alone = f.NewSession();
      CHECK(SameTokens(tokens[i], Generate(alone, prompts[i], 12)));
    }
  }
}

TEST_CASE("session: going back to any point and on from there equals never having gone back") {
  for (const Path& path : kPaths) {
    Fixture f(path);
    const Tokens prompt = RandomTokens(21, 97, 4);
    Session straight = f.NewSession();
    const std::vector<SampledToken> expected = Generate(straight, prompt, 20);
    const Tokens sequence = Joined(prompt, Ids(expected));
    for (size_t point = 1; point <= sequence.size(); ++point) {
      CAPTURE(point);
      Session session = f.NewSession();
      Generate(session, prompt, 20);
      session.Truncate(point);
      CHECK(session.history() ==
            Tokens(sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(point)));
      // Again from the cut, through the tokens that were there.
      const size_t n_prompt = std::max(point, prompt.size());
      const Tokens again(sequence.begin(),
                         sequence.begin() + static_cast<std::ptrdiff_t>(n_prompt));
      const size_t n_known = n_prompt - prompt.size();
      if (n_known == expected.size()) continue;
      const std::vector<SampledToken> rest = Generate(session, again, expected.size() - n_known);
      CHECK(SameTokens(rest,
                       {expected.begin() + static_cast<std::ptrdiff_t>(n_known), expected.end()}));
    }
  }
}

TEST_CASE("session: logits are the same with and without what the cache holds") {
  for (const Path& path : kPaths) {
    Fixture f(path);
    const Tokens sequence = RandomTokens(40, 97, 5);
    Session fresh = f.NewSession();
    const std::vector<float> all = fresh.Logits(sequence, true);
    Session grown = f.NewSession();
    for (const size_t n : {1u, 2u, 9u, 10u, 25u, 24u, 40u, 40u}) {
      CAPTURE(n);
      const Tokens prefix(sequence.begin(), sequence.begin() + static_cast<std::ptrdiff_t>(n));
      const auto end = all.begin() + static_cast<std::ptrdiff_t>(n * 97);
      CHECK(SameBits(grown.Logits(prefix, false), {end - 97, end}));
    }
  }
}

TEST_CASE("session: a prompt computed at once equals its tokens generated one by one") {
  for (const Path& path : kPaths) {
    Fixture f(path);
    const Tokens prompt = RandomTokens(7, 97, 6);
    Session steps = f.NewSession();
    const std::vector<SampledToken> generated = Generate(steps, prompt, 40);
    const Tokens sequence = Joined(prompt, Ids(generated));
    // The same rows, but all as one prompt: the next token and everything after must be the same.
    for (const size_t n_known : {1u, 8u, 33u}) {
      Session session = f.NewSession();
      const Tokens known(sequence.begin(),
                         sequence.begin() + static_cast<std::ptrdiff_t>(prompt.size() + n_known));
      const std::vector<SampledToken> rest = Generate(session, known, generated.size() - n_known);
      CHECK(SameTokens(
          rest, {generated.begin() + static_cast<std::ptrdiff_t>(n_known), generated.end()}));
    }
  }
}

TEST_CASE("session: a sampled run is repeated by its seed") {
  Fixture f(kPaths[2]);
  const Tokens prompt = RandomTokens(9, 97, 7);
  const auto run = [&](uint64_t seed) {
    Session session = f.NewSession();
    GenerateOptions options = Greedy(30);
    options.sampler.temperature = 1.2f;
    options.sampler.seed = seed;
    session.Begin(prompt, options);
    std::vector<SampledToken> tokens;
    Finish(session, 1e9, tokens);
    return tokens;
  };
  CHECK(SameTokens(run(5), run(5)));
  CHECK_FALSE(SameTokens(run(5), run(6)));
}

}  // namespace
}  // namespace headlight
