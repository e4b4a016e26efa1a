// Draws against the exact distribution that the documented order of filters defines, by Pearson's
// chi-square.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "sample/sampler.h"

namespace headlight {
namespace {

constexpr int kDraws = 40000;

const std::vector<float> kLogits = {1.5f, -0.5f, 2.0f,  0.0f,  2.0f,  -3.0f,
                                    1.0f, 0.5f,  -1.0f, 1.25f, -8.0f, 0.75f};
const std::vector<uint32_t> kHistory = {9, 2, 2, 0, 11, 2, 5, 6};

// The filters as the header documents them, one after the other over whole vectors: probabilities
// [vocab], 0 for what was filtered out.
std::vector<double> ExactDistribution(const SamplerOptions& o) {
  std::vector<double> logits(kLogits.begin(), kLogits.end());
  for (const auto& [id, bias] : o.logit_bias) logits[id] += static_cast<double>(bias);
  const size_t n_window = o.penalty_last_n == 0 ? kHistory.size() : o.penalty_last_n;
  std::map<uint32_t, int> counts;
  for (size_t i = kHistory.size() - std::min(n_window, kHistory.size()); i < kHistory.size(); ++i) {
    ++counts[kHistory[i]];
  }
  for (const auto& [id, count] : counts) {
    const double penalty = static_cast<double>(o.repetition_penalty);
    logits[id] = logits[id] > 0.0 ? logits[id] / penalty : logits[id] * penalty;
    logits[id] -=
        count * static_cast<double>(o.frequency_penalty) + static_cast<double>(o.presence_penalty);
  }
  std::vector<size_t> order(logits.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  if (o.top_k != 0 && o.top_k < order.size()) order.resize(o.top_k);
  std::vector<double> p(logits.size(), 0.0);
  const auto normalise = [&] {
    double sum = 0.0;
    for (const size_t id : order) sum += p[id];
    for (const size_t id : order) p[id] /= sum;
  };
  for (const size_t id : order) {
    p[id] = std::exp((logits[id] - logits[order[0]]) / static_cast<double>(o.temperature));
  }
  normalise();
  double sum = 0.0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    if (rank > 0 && sum >= static_cast<double>(o.top_p)) p[order[rank]] = 0.0;
    sum += p[order[rank]];
  }
  normalise();
  for (const size_t id : order) {
    if (p[id] < static_cast<double>(o.min_p) * p[order[0]]) p[id] = 0.0;
  }
  normalise();
  return p;
}

// Upper quantile of the chi-square distribution for a tail of 1e-6 (z = 4.753), by Wilson and
// Hilferty (PNAS 17, 1931).
double ChiSquareLimit(double n_degrees) {
  constexpr double kZ = 4.753;
  const double h = 2.0 / (9.0 * n_degrees);
  return n_degrees * std::pow(1.0 - h + kZ * std::sqrt(h), 3);
}

void CheckDraws(const SamplerOptions& options) {
  const std::vector<double> p = ExactDistribution(options);
  Sampler sampler(options, kLogits.size());
  std::vector<int> counts(kLogits.size(), 0);
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> logits = kLogits;
    ++counts[sampler.Sample(logits, kHistory).id];
  }
  double chi_square = 0.0;
  double n_degrees = -1.0;
  for (size_t id = 0; id < p.size(); ++id) {
    CAPTURE(id);
    if (p[id] == 0.0) {
      CHECK(counts[id] == 0);
      continue;
    }
    const double expected = p[id] * kDraws;
    chi_square += std::pow(counts[id] - expected, 2) / expected;
    n_degrees += 1.0;
  }
  if (n_degrees > 0.0) CHECK(chi_square < ChiSquareLimit(n_degrees));
}

TEST_CASE("sampler: draws follow the exact distribution of the filters in their order") {
  SamplerOptions plain;
  plain.temperature = 1.0f;
  plain.top_k = 0;
  plain.top_p = 1.0f;
  plain.min_p = 0.0f;
  plain.seed = 20240229;
  struct Case {
    std::string name;
    void (*change)(SamplerOptions&);
  };
  const Case cases[] = {
      {"softmax", [](SamplerOptions&) {}},
      {"cold", [](SamplerOptions& o) { o.temperature = 0.5f; }},
      {"hot", [](SamplerOptions& o) { o.temperature = 3.0f; }},
      {"top-k", [](SamplerOptions& o) { o.top_k = 5; }},
      {"top-k cuts a tie at the higher id", [](SamplerOptions& o) { o.top_k = 1; }},
      {"top-k of more than the vocabulary", [](SamplerOptions& o) { o.top_k = 1000; }},
      {"top-p", [](SamplerOptions& o) { o.top_p = 0.7f; }},
      {"top-p of next to nothing", [](SamplerOptions& o) { o.top_p = 1e-6f; }},
      {"top-p of what top-k left", [](SamplerOptions& o) { o.top_k = 6, o.top_p = 0.75f; }},
      {"top-p sees the temperature",
       [](SamplerOptions& o) { o.temperature = 2.0f, o.top_p = 0.7f; }},
      {"min-p", [](SamplerOptions& o) { o.min_p = 0.3f; }},
      {"min-p sees the temperature",
       [](SamplerOptions& o) { o.temperature = 2.0f, o.min_p = 0.3f; }},
      {"bias", [](SamplerOptions& o) { o.logit_bias = {{5, 5.0f}, {2, -1.0f}, {5, -0.5f}}; }},
      {"ban", [](SamplerOptions& o) { o.logit_bias = {{4, -INFINITY}}; }},
      {"repetition", [](SamplerOptions& o) { o.repetition_penalty = 1.5f; }},
      {"repetition below 1", [](SamplerOptions& o) { o.repetition_penalty = 0.8f; }},
      {"frequency", [](SamplerOptions& o) { o.frequency_penalty = 0.5f; }},
      {"presence", [](SamplerOptions& o) { o.presence_penalty = -0.7f; }},
      {"window", [](SamplerOptions& o) { o.presence_penalty = 1.0f, o.penalty_last_n = 2; }},
      {"whole history",
       [](SamplerOptions& o) { o.frequency_penalty = 0.5f, o.penalty_last_n = 0; }},
      {"everything",
       [](SamplerOptions& o) {
         o = {.temperature = 1.3f,
              .top_k = 9,
              .top_p = 0.9f,
              .min_p = 0.1f,
              .repetition_penalty = 1.2f,
              .frequency_penalty = 0.1f,
              .presence_penalty = 0.2f,
              .penalty_last_n = 6,
              .seed = 99,
              .logit_bias = {{7, 1.0f}, {0, -INFINITY}},
              .n_logprobs = 3};
       }},
  };
  for (const Case& c : cases) {
    CAPTURE(c.name);
    SamplerOptions options = plain;
    c.change(options);
    CheckDraws(options);
  }
}

}  // namespace
}  // namespace headlight
