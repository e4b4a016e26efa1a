// Runs the decoder over a whole sequence in one way or another, and compares logits; what the
// decoder's tests share.
#ifndef HEADLIGHT_TESTS_MODEL_DECODE_ALL_H_
#define HEADLIGHT_TESTS_MODEL_DECODE_ALL_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "oracle/test_tensor.h"

namespace headlight {

struct DecodeSetup {
  ActivationType activations = ActivationType::kF32;
  KvCacheFormat kv_format;
  size_t chunk = 16;  // tokens of a chunk; 1: one step after the other
  size_t n_threads = 1;
  LatentComputation latent = LatentComputation::kAbsorbed;
};

inline std::vector<HeadLayout> LayoutsOf(const ModelSpec& spec) {
  std::vector<HeadLayout> layouts;
  for (const LayerSpec& layer : spec.layers) layouts.push_back(layer.heads);
  return layouts;
}

// Logits of every position, [tokens.size(), vocab_size].
inline std::vector<float> DecodeAll(const Model& model, std::span<const uint32_t> tokens,
                                    const DecodeSetup& setup) {
  ThreadPool pool(setup.n_threads);
  DecoderOptions options;
  options.n_ctx = tokens.size();
  options.max_tokens = setup.chunk;
  options.activations = setup.activations;
  options.latent = setup.latent;
  Decoder decoder(model, options, pool);
  KvCache cache(LayoutsOf(model.spec), setup.kv_format, tokens.size());
  std::vector<float> logits(tokens.size() * model.spec.vocab_size);
  for (size_t pos = 0; pos < tokens.size();) {
    DecoderChunk chunk;
    chunk.pos0 = pos;
    chunk.tokens = tokens.subspan(pos, std::min(setup.chunk, tokens.size() - pos));
    chunk.logits_of = LogitsOf::kAllRows;
    chunk.logits = logits.data() + pos * model.spec.vocab_size;
    decoder.Start(chunk, cache);
    while (decoder.Step()) {
    }
    pos += chunk.tokens.size();
    cache.SetRows(pos);
  }
  return logits;
}

struct Difference {
  double max = 0.0;           // largest |a - b|
  double relative_rms = 0.0;  // sqrt(sum (a - b)^2 / sum b^2)
  double magnitude = 0.0;     // root mean square of b
};

template <typename A, typename B>
Difference Compare(const A& a, const B& b) {
  Difference d;
  double squares = 0.0, error_squares = 0.0;
  for (size_t i = 0; i < b.size(); ++i) {
    const double expected = static_cast<double>(b[i]);
    const double error = static_cast<double>(a[i]) - expected;
    d.max = std::max(d.max, std::isfinite(error) ? std::abs(error) : INFINITY);
    squares += expected * expected;
    error_squares += error * error;
  }
  d.relative_rms = std::sqrt(error_squares / squares);
  d.magnitude = std::sqrt(squares / static_cast<double>(b.size()));
  return d;
}

// Largest rounding error of f32 to expect in a logit. An error of unit roundoff u = 2^-24 enters at
// each of the n terms of a sum and adds up like a random walk: sqrt(n). Each of a layer's two
// branches and the head contributes once, independently: sqrt(2 n_layers + 1). kSpread covers the
// largest of some thousand logits (4 standard deviations) and that softmax and SiLU may enlarge an
// error by a small factor.
inline double F32Tolerance(const ModelSpec& spec, double magnitude) {
  constexpr double kSpread = 8.0;
  size_t n_longest = spec.d_model;
  for (const LayerSpec& layer : spec.layers) {
    n_longest = std::max({n_longest, layer.d_ff, layer.heads.out_width(), layer.heads.d_qk});
  }
  const double n_branches = 2.0 * static_cast<double>(spec.layers.size()) + 1.0;
  return kSpread * 0x1p-24 * std::sqrt(static_cast<double>(n_longest) * n_branches) * magnitude;
}

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_MODEL_DECODE_ALL_H_
