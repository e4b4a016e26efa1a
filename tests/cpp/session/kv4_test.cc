// An experiment, not a cache format: keys and values rounded to 4 bits, as they are and after a
// Hadamard rotation (which spreads outliers over a group; queries would be rotated likewise, so
// scores stay). Prints what it costs the default model (tests/bench/README.md).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "model/decode_all.h"
#include "session/perplexity.h"

namespace headlight {
namespace {

// In place, orthonormal and its own inverse; over the largest power of two that divides d, block by
// block: H16 x I3 for 48.
void Rotate(std::vector<float>& x) {
  size_t block = 1;
  while (x.size() % (2 * block) == 0) block *= 2;
  const float scale = 1.0f / std::sqrt(static_cast<float>(block));
  for (size_t start = 0; start < x.size(); start += block) {
    for (size_t step = 1; step < block; step *= 2) {
      for (size_t i = 0; i < block; ++i) {
        if ((i & step) != 0) continue;
        float& a = x[start + i];
        float& b = x[start + (i | step)];
        const float sum = a + b;
        b = a - b;
        a = sum;
      }
    }
  }
  for (float& v : x) v *= scale;
}

// Groups of at most 32: codes -7..7, scale f16(max / 7).
void Round4(std::vector<float>& x) {
  for (size_t begin = 0; begin < x.size(); begin += 32) {
    const size_t end = std::min(begin + 32, x.size());
    float max = 0.0f;
    for (size_t i = begin; i < end; ++i) max = std::max(max, std::fabs(x[i]));
    const float scale = F32FromF16(F16FromF32(max / 7.0f));
    for (size_t i = begin; i < end; ++i) {
      x[i] = scale == 0.0f ? 0.0f : scale * std::clamp(std::nearbyint(x[i] / scale), -7.0f, 7.0f);
    }
  }
}

enum class Rounding { kNone, kPlain, kRotated };

void RoundRow(const float* row, size_t d, Rounding rounding) {
  if (rounding == Rounding::kNone) return;
  std::vector<float> x(row, row + d);
  if (rounding == Rounding::kRotated) Rotate(x);
  Round4(x);
  if (rounding == Rounding::kRotated) Rotate(x);
  std::copy(x.begin(), x.end(), const_cast<float*>(row));  // the cache's own row
}

struct Experiment {
  const char* name;
  Rounding k, v;
};

// Rounds position pos of every layer and head of an f32 cache.
void RoundPosition(const KvCache& cache, const ModelSpec& spec, size_t pos, const Experiment& e) {
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const HeadLayout& heads = spec.layers[i].heads;
    for (size_t h = 0; h < heads.n_kv_heads; ++h) {
      const KvHeadView view = cache.layer(i).head(h);
      RoundRow(static_cast<const float*>(view.k) + pos * view.k_stride, heads.d_qk, e.k);
      RoundRow(static_cast<const float*>(view.v) + pos * view.v_stride, heads.d_v, e.v);
    }
  }
}

// Token by token over an f32 cache whose rows are rounded once the next token comes: only a token's
// own key and value are exact, and only to itself.
std::vector<float> DecodeRounded(const Model& model, const std::vector<uint32_t>& ids,
                                 const Experiment& experiment) {
  ThreadPool pool(1);
  DecoderOptions options;
  options.n_ctx = ids.size();
  options.max_tokens = 1;
  Decoder decoder(model, options, pool);
  KvCache cache(LayoutsOf(model.spec), {}, ids.size());
  std::vector<float> logits(ids.size() * model.spec.vocab_size);
  for (size_t pos = 0; pos < ids.size(); ++pos) {
    DecoderChunk chunk;
    chunk.pos0 = pos;
    chunk.tokens = std::span(ids).subspan(pos, 1);
    chunk.logits_of = LogitsOf::kAllRows;
    chunk.logits = logits.data() + pos * model.spec.vocab_size;
    decoder.Start(chunk, cache);
    while (decoder.Step()) {
    }
    cache.SetRows(pos + 1);
    RoundPosition(cache, model.spec, pos, experiment);
  }
  return logits;
}

TEST_CASE("Hadamard rotation: orthonormal, its own inverse, for widths that are no powers of two") {
  for (const size_t d : {1u, 8u, 24u, 32u, 48u}) {
    std::vector<float> x(d);
    for (size_t i = 0; i < d; ++i) x[i] = static_cast<float>(i * i % 17) - 5.0f;
    std::vector<float> y = x;
    Rotate(y);
    double xx = 0.0, yy = 0.0;
    for (size_t i = 0; i < d; ++i) {
      xx += static_cast<double>(x[i] * x[i]);
      yy += static_cast<double>(y[i] * y[i]);
    }
    CHECK(yy == doctest::Approx(xx).epsilon(1e-5));
    Rotate(y);
    for (size_t i = 0; i < d; ++i) CHECK(std::fabs(y[i] - x[i]) < 1e-5f);
  }
}

TEST_CASE("experiment: a 4-bit cache of the default model, with and without Hadamard rotation") {
  const auto model = DefaultModelForText();
  const auto texts = DefaultModelTexts();
  const Experiment experiments[] = {
      {"f32", Rounding::kNone, Rounding::kNone},
      {"4-bit keys", Rounding::kPlain, Rounding::kNone},
      {"4-bit keys, rotated", Rounding::kRotated, Rounding::kNone},
      {"4-bit both", Rounding::kPlain, Rounding::kPlain},
      {"4-bit both, rotated", Rounding::kRotated, Rounding::kRotated},
  };
  Perplexities exact{};
  for (const Experiment& e : experiments) {
    const Perplexities p = MeasurePerplexity(
        texts, [&](const std::vector<uint32_t>& ids) { return DecodeRounded(*model, ids, e); });
    if (e.k == Rounding::kNone && e.v == Rounding::kNone) exact = p;
    MESSAGE("perplexity, " << std::string(e.name) << ": answers " << p.answers << " ("
                           << 100.0 * (p.answers / exact.answers - 1.0) << " %), all " << p.all
                           << " (" << 100.0 * (p.all / exact.all - 1.0) << " %)");
    CHECK(p.answers < 2.0 * exact.answers);
  }
}

}  // namespace
}  // namespace headlight
