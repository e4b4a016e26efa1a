// What the 8-bit formats cost: perplexity of the default model on texts in its own manner.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/decode_all.h"
#include "model_loading.h"
#include "simd/probe.h"
#include "support.h"

namespace headlight {
namespace {

using testing::ReadFile;
using testing::RepoPath;

// As the model's README says of its configuration.
constexpr uint32_t kStartOfTurn = 3;
constexpr uint32_t kEndOfTurn = 4;
const std::vector<uint32_t> kAssistant = {559, 577, 480, 15};  // "assistant", end of line

// Whether each token is part of an answer, its end included: what the model was trained to say.
std::vector<bool> IsAnswer(const std::vector<uint32_t>& ids) {
  std::vector<bool> is_answer(ids.size());
  size_t answer = ids.size();  // where the current one begins
  for (size_t i = 0; i < ids.size(); ++i) {
    is_answer[i] = i >= answer;
    if (ids[i] == kEndOfTurn) answer = ids.size();
    if (ids[i] != kStartOfTurn || ids.size() - i <= kAssistant.size()) continue;
    const auto role = ids.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::equal(kAssistant.begin(), kAssistant.end(), role)) answer = i + 1 + kAssistant.size();
  }
  return is_answer;
}

// -log p of every token of a text that follows its first.
std::vector<double> Surprise(const Model& model, const std::vector<uint32_t>& ids,
                             const DecodeSetup& setup) {
  const std::vector<float> logits = DecodeAll(model, ids, setup);
  const size_t vocab_size = model.spec.vocab_size;
  std::vector<double> surprise = {0.0};
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const float* row = logits.data() + i * vocab_size;
    const double max = static_cast<double>(*std::max_element(row, row + vocab_size));
    double total = 0.0;
    for (size_t id = 0; id < vocab_size; ++id) {
      total += std::exp(static_cast<double>(row[id]) - max);
    }
    surprise.push_back(max + std::log(total) - static_cast<double>(row[ids[i + 1]]));
  }
  return surprise;
}

struct Perplexities {
  double answers;  // of the answers alone
  double all;      // what the user says included, which no model could foresee
};

Perplexities Measure(const Model& model, const std::vector<std::vector<uint32_t>>& texts,
                     ActivationType activations, CacheType cache) {
  DecodeSetup setup;
  setup.activations = activations;
  setup.kv_format = {cache, cache};
  setup.chunk = 64;
  double sums[2] = {};
  double counts[2] = {};
  for (const std::vector<uint32_t>& ids : texts) {
    const std::vector<double> surprise = Surprise(model, ids, setup);
    const std::vector<bool> is_answer = IsAnswer(ids);
    for (size_t i = 1; i < ids.size(); ++i) {
      sums[is_answer[i]] += surprise[i];
      counts[is_answer[i]] += 1.0;
    }
  }
  REQUIRE(counts[1] > 200);
  return {std::exp(sums[1] / counts[1]), std::exp((sums[0] + sums[1]) / (counts[0] + counts[1]))};
}

TEST_CASE("default model: perplexity with int8 cache and activations is within 0.5 % of f32") {
  const auto model = testing::LoadModel(ReadFile(RepoPath("examples/models/default-q8_0.gguf")), 0,
                                        ProbeDot().form);
  const std::vector<uint8_t> file = ReadFile(RepoPath("tests/golden/default_model_text.json"));
  const nlohmann::json golden = nlohmann::json::parse(file);
  std::vector<std::vector<uint32_t>> texts;
  for (const auto& text : golden.at("texts")) texts.push_back(text.at("ids"));
  REQUIRE(texts.size() == 3);

  const Perplexities exact = Measure(*model, texts, ActivationType::kF32, CacheType::kF32);
  CHECK(exact.answers > 1.2);  // the texts are neither gibberish to the model nor known by heart
  CHECK(exact.answers < 20.0);
  struct Case {
    const char* name;
    ActivationType activations;
    CacheType cache;
  };
  const Case cases[] = {{"int8 cache", ActivationType::kF32, CacheType::kInt8},
                        {"int8 activations", ActivationType::kInt8, CacheType::kF32},
                        {"int8 cache and activations", ActivationType::kInt8, CacheType::kInt8}};
  for (const Case& c : cases) {
    const Perplexities rounded = Measure(*model, texts, c.activations, c.cache);
    const double answers = rounded.answers / exact.answers - 1.0;
    const double all = rounded.all / exact.all - 1.0;
    MESSAGE("perplexity, f32 -> " << std::string(c.name) << ": answers " << exact.answers << " -> "
                                  << rounded.answers << " (" << 100.0 * answers << " %), all "
                                  << exact.all << " -> " << rounded.all << " (" << 100.0 * all
                                  << " %)");
    CHECK(std::abs(answers) <= 0.005);
    CHECK(std::abs(all) <= 0.005);
  }
}

}  // namespace
}  // namespace headlight
