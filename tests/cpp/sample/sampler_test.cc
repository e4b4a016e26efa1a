#include "sample/sampler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "sample/random.h"

namespace headlight {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> RandomLogits(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<float> logits(n);
  for (float& x : logits) x = static_cast<float>(random.NextUniform() * 20.0 - 10.0);
  return logits;
}

uint32_t SampleOnce(Sampler& sampler, std::vector<float> logits,
                    const std::vector<uint32_t>& history = {}) {
  return sampler.Sample(logits, history).id;
}

TEST_CASE("sampler: an option that is out of range is refused by name") {
  struct Case {
    std::string option;
    void (*set)(SamplerOptions&);
  };
  const Case cases[] = {
      {"temperature", [](SamplerOptions& o) { o.temperature = -0.1f; }},
      {"temperature", [](SamplerOptions& o) { o.temperature = kNaN; }},
      {"temperature", [](SamplerOptions& o) { o.temperature = kInfinity; }},
      {"top_p", [](SamplerOptions& o) { o.top_p = 0.0f; }},
      {"top_p", [](SamplerOptions& o) { o.top_p = -0.5f; }},
      {"top_p", [](SamplerOptions& o) { o.top_p = 1.01f; }},
      {"top_p", [](SamplerOptions& o) { o.top_p = kNaN; }},
      {"min_p", [](SamplerOptions& o) { o.min_p = -0.01f; }},
      {"min_p", [](SamplerOptions& o) { o.min_p = 1.0f; }},
      {"min_p", [](SamplerOptions& o) { o.min_p = kNaN; }},
      {"repetition_penalty", [](SamplerOptions& o) { o.repetition_penalty = 0.0f; }},
      {"repetition_penalty", [](SamplerOptions& o) { o.repetition_penalty = -1.0f; }},
      {"repetition_penalty", [](SamplerOptions& o) { o.repetition_penalty = kNaN; }},
      {"repetition_penalty", [](SamplerOptions& o) { o.repetition_penalty = kInfinity; }},
      {"frequency_penalty", [](SamplerOptions& o) { o.frequency_penalty = 2.1f; }},
      {"frequency_penalty", [](SamplerOptions& o) { o.frequency_penalty = -2.1f; }},
      {"frequency_penalty", [](SamplerOptions& o) { o.frequency_penalty = kNaN; }},
      {"presence_penalty", [](SamplerOptions& o) { o.presence_penalty = 2.1f; }},
      {"presence_penalty", [](SamplerOptions& o) { o.presence_penalty = kNaN; }},
      {"logit_bias[1] id", [](SamplerOptions& o) { o.logit_bias = {{0, 1.0f}, {8, 1.0f}}; }},
      {"logit_bias[0]", [](SamplerOptions& o) { o.logit_bias = {{0, kNaN}}; }},
      {"logit_bias[0]", [](SamplerOptions& o) { o.logit_bias = {{0, kInfinity}}; }},
      {"logit_bias",
       [](SamplerOptions& o) {
         for (uint32_t id = 0; id < 8; ++id) o.logit_bias.emplace_back(id, -kInfinity);
       }},
      {"n_logprobs", [](SamplerOptions& o) { o.n_logprobs = kMaxLogprobs + 1; }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.option);
    SamplerOptions options;
    c.set(options);
    try {
      const Sampler sampler(options, 8);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kBadOption);
      CHECK(error.details().at(0) == std::pair<std::string, std::string>{"option", c.option});
      CHECK(error.message().starts_with(c.option + " is "));
    }
  }
}

TEST_CASE("sampler: options at the ends of their ranges are accepted") {
  SamplerOptions low;
  low.temperature = 1e-38f;
  low.top_p = 1e-38f;
  low.min_p = 0.0f;
  low.repetition_penalty = 1e-38f;
  low.frequency_penalty = low.presence_penalty = -2.0f;
  SamplerOptions high;
  high.temperature = 3e38f;
  high.top_k = ~0u;
  high.top_p = 1.0f;
  high.min_p = 0.999999f;
  high.repetition_penalty = 3e38f;
  high.frequency_penalty = high.presence_penalty = 2.0f;
  high.penalty_last_n = ~0u;
  high.n_logprobs = kMaxLogprobs;
  high.logit_bias = {{3, std::numeric_limits<float>::max()},
                     {2, std::numeric_limits<float>::lowest()}};
  for (const SamplerOptions& options : {low, high}) {
    Sampler sampler(options, 8);
    for (int i = 0; i < 100; ++i) CHECK(SampleOnce(sampler, RandomLogits(8, 1), {1, 2, 3, 3}) < 8);
  }
}

TEST_CASE("sampler: temperature 0 takes the highest logit and the lowest id on a tie") {
  SamplerOptions options;
  options.temperature = 0.0f;
  Sampler sampler(options, 7);
  CHECK(SampleOnce(sampler, {0.0f, 3.0f, -1.0f, 3.0f, 2.0f, 3.0f, 1.0f}) == 1);
  CHECK(SampleOnce(sampler, {-5.0f, -6.0f, -7.0f, -8.0f, -9.0f, -4.0f, -4.0f}) == 5);
}

TEST_CASE("sampler: greedy does not depend on the seed, top-k, top-p or min-p") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SamplerOptions options;
    options.temperature = 0.0f;
    Sampler plain(options, 301);
    options.seed = seed * 77;
    options.top_k = static_cast<uint32_t>(seed);
    options.top_p = 0.1f;
    options.min_p = 0.9f;
    Sampler other(options, 301);
    CHECK(SampleOnce(other, RandomLogits(301, seed)) == SampleOnce(plain, RandomLogits(301, seed)));
  }
}

TEST_CASE("sampler: top_k of 1 equals greedy, ties included") {
  SamplerOptions greedy;
  greedy.temperature = 0.0f;
  SamplerOptions top_1;
  top_1.temperature = 1.7f;
  top_1.top_k = 1;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<float> logits = RandomLogits(203, seed);
    for (float& x : logits) x = std::round(x);  // many ties
    Sampler a(greedy, logits.size());
    top_1.seed = seed;
    Sampler b(top_1, logits.size());
    CHECK(SampleOnce(a, logits) == SampleOnce(b, logits));
  }
}

TEST_CASE("sampler: the same seed gives the same tokens, another seed other ones") {
  const auto draw = [](uint64_t seed) {
    SamplerOptions options;
    options.temperature = 1.5f;
    options.seed = seed;
    Sampler sampler(options, 500);
    std::vector<uint32_t> ids;
    for (uint64_t i = 0; i < 50; ++i) ids.push_back(SampleOnce(sampler, RandomLogits(500, i), ids));
    return ids;
  };
  CHECK(draw(1) == draw(1));
  CHECK(draw(1) != draw(2));
}

TEST_CASE(
    "sampler: a banned token is never chosen, not even as the only one that top-k would keep") {
  SamplerOptions options;
  options.logit_bias = {{2, -kInfinity}};
  for (const float temperature : {0.0f, 1.0f}) {
    options.temperature = temperature;
    options.top_k = 1;
    Sampler sampler(options, 4);
    for (int i = 0; i < 50; ++i) CHECK(SampleOnce(sampler, {0.0f, 1.0f, 90.0f, 0.5f}) == 1);
  }
}

TEST_CASE(
    "sampler: logits that hold NaN or infinity are an Internal error and the sampler stays "
    "usable") {
  for (const float bad : {kNaN, -kNaN, kInfinity}) {
    for (const size_t place : {0u, 3u, 6u}) {  // in a vector, and in the rest after the last vector
      Sampler sampler({}, 7);
      std::vector<float> logits(7, 1.0f);
      logits[place] = bad;
      try {
        sampler.Sample(logits, {});
        FAIL("accepted");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::kInternal);
      }
      CHECK(SampleOnce(sampler, std::vector<float>(7, 1.0f)) < 7);
    }
  }
  Sampler sampler({}, 7);
  CHECK_THROWS_AS(SampleOnce(sampler, std::vector<float>(7, -kInfinity)), Error);
  CHECK_THROWS_AS(SampleOnce(sampler, std::vector<float>(6, 0.0f)), Error);
}

TEST_CASE(
    "sampler: logprobs are those of the raw logits, whatever bias, penalties and temperature do") {
  const std::vector<float> raw = RandomLogits(203, 5);
  double sum = 0.0;
  for (const float x : raw) sum += std::exp(static_cast<double>(x));
  SamplerOptions options;
  options.temperature = 0.3f;
  options.repetition_penalty = 1.4f;
  options.presence_penalty = 1.0f;
  options.logit_bias = {{7, 30.0f}, {9, -kInfinity}};
  options.n_logprobs = 5;
  Sampler sampler(options, raw.size());
  std::vector<float> logits = raw;
  const SampledToken token = sampler.Sample(logits, std::vector<uint32_t>{7, 7, 8});
  CHECK(token.id == 7);
  // f32 rounding of a value near 15, and of the terms of the sum.
  constexpr float kTolerance = 4e-6f;
  CHECK(std::abs(token.logprob - (raw[7] - static_cast<float>(std::log(sum)))) < kTolerance);
  REQUIRE(token.top.size() == 5);
  for (size_t i = 0; i < token.top.size(); ++i) {
    const TokenLogprob& entry = token.top[i];
    CHECK(std::abs(entry.logprob - (raw[entry.id] - static_cast<float>(std::log(sum)))) <
          kTolerance);
    size_t n_better = 0;
    for (const float x : raw) n_better += x > raw[entry.id] ? 1 : 0;
    CHECK(n_better == i);
  }
}

TEST_CASE("sampler: the logprobs of a whole small vocabulary sum to probability 1") {
  SamplerOptions options;
  options.n_logprobs = kMaxLogprobs;
  Sampler sampler(options, 13);
  std::vector<float> logits = RandomLogits(13, 3);
  const SampledToken token = sampler.Sample(logits, {});
  REQUIRE(token.top.size() == 13);
  double sum = 0.0;
  for (const TokenLogprob& entry : token.top) sum += std::exp(static_cast<double>(entry.logprob));
  CHECK(sum == doctest::Approx(1.0).epsilon(1e-6));
}

TEST_CASE("sampler: without n_logprobs no list is made, and ties in the list go by id") {
  std::vector<float> logits(9, 0.25f);
  Sampler none({}, 9);
  CHECK(none.Sample(logits, {}).top.empty());
  SamplerOptions options;
  options.n_logprobs = 3;
  Sampler three(options, 9);
  const SampledToken token = three.Sample(logits, {});
  REQUIRE(token.top.size() == 3);
  for (uint32_t id = 0; id < 3; ++id) CHECK(token.top[id].id == id);
  CHECK(token.logprob == doctest::Approx(-std::log(9.0)).epsilon(1e-6));
}

TEST_CASE("sampler: logprobs hold for logits far from zero and far apart") {
  SamplerOptions options;
  options.temperature = 0.0f;
  options.n_logprobs = 2;
  for (const float offset : {-3e4f, 0.0f, 3e4f}) {
    Sampler sampler(options, 5);
    std::vector<float> logits = {offset, offset - 1.0f, offset - 500.0f, -kInfinity,
                                 offset - 2000.0f};
    const SampledToken token = sampler.Sample(logits, {});
    CHECK(token.id == 0);
    const double log_total = std::log(1.0 + std::exp(-1.0));
    CHECK(token.top[0].logprob == doctest::Approx(-log_total).epsilon(1e-4));
    CHECK(token.top[1].logprob == doctest::Approx(-1.0 - log_total).epsilon(1e-4));
  }
}

}  // namespace
}  // namespace headlight
