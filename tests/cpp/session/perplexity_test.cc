// What the 8-bit formats cost: perplexity of the default model on texts in its own manner.
#include "session/perplexity.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "model/decode_all.h"

namespace headlight {
namespace {

Perplexities Measure(const Model& model, const std::vector<std::vector<uint32_t>>& texts,
                     ActivationType activations, CacheType cache) {
  DecodeSetup setup;
  setup.activations = activations;
  setup.kv_format = {cache, cache};
  setup.chunk = 64;
  return MeasurePerplexity(
      texts, [&](const std::vector<uint32_t>& ids) { return DecodeAll(model, ids, setup); });
}

TEST_CASE("default model: perplexity with int8 cache and activations is within 0.5 % of f32") {
  const auto model = DefaultModelForText();
  const std::vector<std::vector<uint32_t>> texts = DefaultModelTexts();

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
