#include "oracle/oracle.h"

#include <algorithm>
#include <cmath>

#include "quant/packed.h"

namespace headlight {
namespace {

using Vector = std::vector<double>;

Matrix Decode(const PackedMatrix& packed) {
  Matrix matrix;
  matrix.n_rows = packed.shape.n_rows;
  matrix.n_cols = packed.shape.n_cols;
  std::vector<float> row(matrix.n_cols);
  for (size_t i = 0; i < matrix.n_rows; ++i) {
    DecodeRow(packed, i, row.data());
    matrix.values.insert(matrix.values.end(), row.begin(), row.end());
  }
  return matrix;
}

Vector Rounded(OracleRounding rounding, Vector x) {
  if (rounding == OracleRounding::kNone) return x;
  constexpr size_t kBlock = 32;
  constexpr size_t kHalf = 16;
  const Vector exact = x;
  const auto largest = [&](size_t begin, size_t n) {
    double max = 0.0;
    for (size_t i = begin; i < std::min(begin + n, x.size()); ++i)
      max = std::max(max, std::abs(exact[i]));
    return max;
  };
  for (size_t begin = 0; begin < x.size(); begin += kHalf) {
    const double max = largest(begin / kBlock * kBlock, kBlock);
    if (max == 0.0) continue;
    const double sixteenths = std::max(1.0, std::ceil(largest(begin, kHalf) / max * 16.0));
    const double step = max / 127.0 * sixteenths / 16.0;
    for (size_t i = begin; i < std::min(begin + kHalf, x.size()); ++i) {
      x[i] = std::nearbyint(exact[i] / step) * step;
    }
  }
  return x;
}

Vector MatVec(const Matrix& w, const Vector& x) {
  Vector y(w.n_rows, 0.0);
  for (size_t i = 0; i < w.n_rows; ++i) {
    for (size_t j = 0; j < w.n_cols; ++j) y[i] += w.row(i)[j] * x[j];
  }
  return y;
}

Vector RmsNorm(const Vector& x, const Vector& weight, double eps) {
  double mean_square = 0.0;
  for (const double value : x) mean_square += value * value / static_cast<double>(x.size());
  Vector y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] / std::sqrt(mean_square + eps) * weight[i];
  return y;
}

// Rotates the pairs of every head of x [n_heads * d] by pos * base^(-2i / n_rot) / scale /
// factor[i].
void Rotate(const RopeSpec& rope, size_t n_heads, size_t d, size_t pos, Vector& x) {
  if (rope.style == RopeStyle::kNone) return;
  const size_t n_half = rope.n_rot / 2;
  for (size_t head = 0; head < n_heads; ++head) {
    for (size_t i = 0; i < n_half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(rope.n_rot);
      double angle =
          static_cast<double>(pos) * std::pow(rope.freq_base, exponent) / rope.linear_scale;
      if (!rope.freq_factors.empty()) angle /= static_cast<double>(rope.freq_factors[i]);
      const bool interleaved = rope.style == RopeStyle::kInterleaved;
      double& a = x[head * d + (interleaved ? 2 * i : i)];
      double& b = x[head * d + (interleaved ? 2 * i + 1 : i + n_half)];
      const double old_a = a;
      a = old_a * std::cos(angle) - b * std::sin(angle);
      b = old_a * std::sin(angle) + b * std::cos(angle);
    }
  }
}

// One query at the position of the last of keys: softmax over the keys that the window admits, then
// the blend of values.
Vector Attend(const LayerSpec& layer, const Vector& q, const std::vector<Vector>& keys,
              const std::vector<Vector>& values) {
  const HeadLayout& heads = layer.heads;
  const size_t pos = keys.size() - 1;
  const size_t first = layer.window == 0 || pos < layer.window ? 0 : pos + 1 - layer.window;
  Vector out(heads.out_width(), 0.0);
  for (size_t h = 0; h < heads.n_q_heads; ++h) {
    const size_t kv_head = h / (heads.n_q_heads / heads.n_kv_heads);
    Vector weights;
    for (size_t t = first; t <= pos; ++t) {
      double score = 0.0;
      for (size_t i = 0; i < heads.d_qk; ++i) {
        score += q[h * heads.d_qk + i] * keys[t][kv_head * heads.d_qk + i];
      }
      score *= static_cast<double>(layer.attention_scale);
      const double cap = static_cast<double>(layer.attention_softcap);
      weights.push_back(cap == 0.0 ? score : cap * std::tanh(score / cap));
    }
    const double max = *std::max_element(weights.begin(), weights.end());
    double sum = 0.0;
    for (double& weight : weights) sum += weight = std::exp(weight - max);
    for (size_t t = first; t <= pos; ++t) {
      for (size_t i = 0; i < heads.d_v; ++i) {
        out[h * heads.d_v + i] += weights[t - first] / sum * values[t][kv_head * heads.d_v + i];
      }
    }
  }
  return out;
}

Vector FeedForward(const OracleLayer& weights, const Vector& x, OracleRounding rounding) {
  Vector gate = MatVec(weights.w_gate, x);
  const Vector up = MatVec(weights.w_up, x);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
  return MatVec(weights.w_down, Rounded(rounding, gate));
}

void AddTo(const Vector& y, Vector& x) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

}  // namespace

OracleModel OracleOf(const Model& model) {
  const size_t d_model = model.spec.d_model;
  const auto norm = [&](const float* w) {
    return w == nullptr ? Vector() : Vector(w, w + d_model);
  };
  OracleModel oracle;
  oracle.spec = model.spec;
  oracle.embedding = Decode(model.embedding);
  oracle.head = Decode(model.head);
  oracle.output_norm = norm(model.output_norm);
  for (const LayerWeights& w : model.layers) {
    oracle.layers.push_back({norm(w.attention_norm), norm(w.feed_forward_norm), Decode(w.w_q),
                             Decode(w.w_k), Decode(w.w_v), Decode(w.w_o), Decode(w.w_gate),
                             Decode(w.w_up), Decode(w.w_down)});
  }
  return oracle;
}

Matrix OracleLogits(const OracleModel& model, std::span<const uint32_t> tokens,
                    OracleRounding rounding) {
  const ModelSpec& spec = model.spec;
  const double eps = static_cast<double>(spec.norm_eps);
  std::vector<Vector> rows;
  for (const uint32_t token : tokens) {
    rows.emplace_back(model.embedding.row(token), model.embedding.row(token) + spec.d_model);
    for (double& value : rows.back()) value *= static_cast<double>(spec.embedding_scale);
  }
  for (size_t l = 0; l < spec.layers.size(); ++l) {
    const LayerSpec& layer = spec.layers[l];
    const OracleLayer& weights = model.layers[l];
    const HeadLayout& heads = layer.heads;
    std::vector<Vector> keys, values;
    for (size_t pos = 0; pos < rows.size(); ++pos) {
      Vector& x = rows[pos];
      const Vector h = Rounded(rounding, RmsNorm(x, weights.attention_norm, eps));
      Vector q = MatVec(weights.w_q, h);
      keys.push_back(MatVec(weights.w_k, h));
      values.push_back(MatVec(weights.w_v, h));
      Rotate(layer.rope, heads.n_q_heads, heads.d_qk, pos, q);
      Rotate(layer.rope, heads.n_kv_heads, heads.d_qk, pos, keys.back());
      AddTo(MatVec(weights.w_o, Rounded(rounding, Attend(layer, q, keys, values))), x);
      if (layer.feed_forward == FeedForwardKind::kNone) continue;
      const Vector g = Rounded(rounding, RmsNorm(x, weights.feed_forward_norm, eps));
      AddTo(FeedForward(weights, g, rounding), x);
    }
  }
  Matrix logits;
  logits.n_rows = tokens.size();
  logits.n_cols = spec.vocab_size;
  for (const Vector& x : rows) {
    const Vector row = MatVec(model.head, Rounded(rounding, RmsNorm(x, model.output_norm, eps)));
    logits.values.insert(logits.values.end(), row.begin(), row.end());
  }
  return logits;
}

}  // namespace headlight
