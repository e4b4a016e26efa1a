#include "oracle/oracle.h"

#include <algorithm>
#include <cmath>

#include "oracle/oracle_ops.h"
#include "oracle/oracle_patterns.h"
#include "oracle/oracle_watch.h"

namespace headlight {
namespace {

using namespace oracle;
using Role = TensorRole;

// One layer of a model, or the whole of it but the layers, with what its formulas need at hand.
class Part {
 public:
  Part(const OracleModel& model, const OracleWeights& weights, OracleRounding rounding)
      : model_(model), weights_(weights), rounding_(rounding) {}

  bool Has(Role role) const { return weights_.contains(role); }
  const Matrix& At(Role role, size_t i = 0) const { return weights_.at(role)[i]; }
  // A vector, or nothing.
  Vector VectorOf(Role role) const { return Has(role) ? At(role).values : Vector(); }
  Vector Times(Role role, const Vector& x, size_t i = 0) const {
    return MatVec(At(role, i), Rounded(rounding_, x));
  }
  void AddBias(Role role, Vector& x) const {
    if (Has(role)) AddTo(At(role).values, x);
  }
  // x normalised, or as it is where there is no such norm.
  Vector Normed(Role weight, Role bias, const Vector& x) const {
    if (!Has(weight)) return x;
    return Norm(model_.spec.norm, eps(), x, VectorOf(weight),
                bias == weight ? Vector() : VectorOf(bias));
  }
  double eps() const { return static_cast<double>(model_.spec.norm_eps); }
  OracleRounding rounding() const { return rounding_; }
  const ModelSpec& spec() const { return model_.spec; }

 private:
  const OracleModel& model_;
  const OracleWeights& weights_;
  OracleRounding rounding_;
};

struct Attention {
  const LayerSpec& layer;
  const Part& part;
  size_t n_ctx;
  const std::vector<OracleFixedHead>& fixed;
  std::vector<Vector> keys, values;
  OracleKept* kept = nullptr;  // null: every key
  std::vector<OracleRow>* seen = nullptr;
};

// QK-norm of all heads.
void NormHeads(const Attention& a, Role role, size_t n_heads, Vector& x) {
  if (!a.part.Has(role)) return;
  const Vector weights = a.part.VectorOf(role);
  const size_t d = a.layer.qk_norm == QkNorm::kRow ? x.size() : a.layer.heads.d_qk;
  for (size_t begin = 0; begin < x.size(); begin += d) {
    const auto from = [&](const Vector& v, size_t at) {
      return Vector(v.begin() + static_cast<std::ptrdiff_t>(at),
                    v.begin() + static_cast<std::ptrdiff_t>(at + d));
    };
    const size_t own = weights.size() == n_heads * d ? begin : 0;
    const Vector y = Norm(a.part.spec().norm, a.part.eps(), from(x, begin), from(weights, own), {});
    std::copy(y.begin(), y.end(), x.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

// Queries, keys or values of a token.
Vector Project(const Attention& a, Role matrix, Role bias, const Vector& h) {
  Vector x = a.part.Times(matrix, h);
  a.part.AddBias(bias, x);
  const double limit = static_cast<double>(a.layer.qkv_clamp);
  if (limit != 0.0) {
    for (double& value : x) value = std::clamp(value, -limit, limit);
  }
  return x;
}

// Weights of query head h at the position of the last key, over all keys; those that the window
// leaves out get 0.
Vector WeightsOf(const Attention& a, const Vector& q, size_t h) {
  const LayerSpec& layer = a.layer;
  const size_t pos = a.keys.size() - 1;
  const size_t d = layer.heads.d_qk;
  const size_t kv_head = h / (layer.heads.n_q_heads / layer.heads.n_kv_heads);
  const double cap = static_cast<double>(layer.attention_softcap);
  Vector weights(pos + 1, 0.0);
  double sum = 0.0;
  for (size_t t = 0; t <= pos; ++t) {
    if (layer.window != 0 && pos - t >= layer.window && t >= layer.n_sinks) continue;
    if (a.kept != nullptr && !a.kept->Has(kv_head, t)) continue;
    double score = 0.0;
    for (size_t i = 0; i < d; ++i) score += q[h * d + i] * a.keys[t][kv_head * d + i];
    score *= static_cast<double>(layer.attention_scale);
    if (cap != 0.0) score = cap * std::tanh(score / cap);
    if (layer.alibi_max_bias != 0.0f) {
      const double slope = AlibiSlope(h, layer.heads.n_q_heads, layer.alibi_max_bias);
      score -= slope * static_cast<double>(pos - t);
    }
    sum += weights[t] = std::exp(score);
  }
  if (a.part.Has(Role::kSinks)) sum += std::exp(a.part.VectorOf(Role::kSinks)[h]);
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Latent attention as its paper defines it: keys and values of every head are made, nothing is
// absorbed.
Vector AttendLatent(Attention& a, const Vector& h) {
  const LatentSpec& latent = a.layer.latent;
  const size_t n_heads = a.layer.heads.n_q_heads;
  const size_t pos = a.keys.size();
  const size_t d_qk = latent.d_qk();
  Vector q;
  if (latent.q_rank == 0) {
    q = a.part.Times(Role::kQ, h);
  } else {
    const Vector c = a.part.Times(Role::kQA, h);
    q = a.part.Times(Role::kQB, a.part.Normed(Role::kQANorm, Role::kQANorm, c));
  }
  Rotate(a.layer.rope, {n_heads, d_qk, latent.d_nope, pos, a.n_ctx}, q);
  const Vector both = a.part.Times(Role::kKvA, h);
  const auto middle = both.begin() + static_cast<std::ptrdiff_t>(latent.rank);
  Vector k_rope(middle, both.end());
  Rotate(a.layer.rope, {1, latent.d_rope, 0, pos, a.n_ctx}, k_rope);
  const Vector c = a.part.Normed(Role::kKvANorm, Role::kKvANorm, Vector(both.begin(), middle));
  Vector keys, values;
  for (size_t head = 0; head < n_heads; ++head) {
    for (size_t i = 0; i < latent.d_nope; ++i) {
      double sum = 0.0;
      for (size_t j = 0; j < latent.rank; ++j) {
        sum += c[j] * (a.part.Has(Role::kKB)
                           ? a.part.At(Role::kKB, head).row(j)[i]
                           : a.part.At(Role::kKvB).row(head * (latent.d_nope + latent.d_v) + i)[j]);
      }
      keys.push_back(sum);
    }
    keys.insert(keys.end(), k_rope.begin(), k_rope.end());
    for (size_t i = 0; i < latent.d_v; ++i) {
      const size_t joined = head * (latent.d_nope + latent.d_v) + latent.d_nope + i;
      const double* row = a.part.Has(Role::kVB) ? a.part.At(Role::kVB, head).row(i)
                                                : a.part.At(Role::kKvB).row(joined);
      double sum = 0.0;
      for (size_t j = 0; j < latent.rank; ++j) sum += c[j] * row[j];
      values.push_back(sum);
    }
  }
  a.keys.push_back(keys);
  a.values.push_back(values);
  LayerSpec plain = a.layer;
  plain.heads = {n_heads, n_heads, d_qk, latent.d_v};
  const Attention expanded{plain, a.part, a.n_ctx, a.fixed, a.keys, a.values, nullptr, nullptr};
  Vector out(n_heads * latent.d_v, 0.0);
  OracleRow row;
  for (size_t head = 0; head < n_heads; ++head) {
    row.weights.push_back(WeightsOf(expanded, q, head));
    const Vector& weights = row.weights.back();
    for (size_t t = 0; t <= pos; ++t) {
      for (size_t i = 0; i < latent.d_v; ++i) {
        out[head * latent.d_v + i] += weights[t] * a.values[t][head * latent.d_v + i];
      }
    }
  }
  row.heads = out;
  a.seen->push_back(std::move(row));
  return a.part.Times(Role::kAttentionOutput, out);
}

// What attention adds to the residual stream for the next token; h: what it reads of it.
Vector Attend(Attention& a, const Vector& h) {
  if (a.layer.latent.rank != 0) return AttendLatent(a, h);
  const LayerSpec& layer = a.layer;
  const HeadLayout& heads = layer.heads;
  const size_t pos = a.keys.size();
  Vector q = Project(a, Role::kQ, Role::kQBias, h);
  Vector k = Project(a, Role::kK, Role::kKBias, h);
  NormHeads(a, Role::kQNorm, heads.n_q_heads, q);
  NormHeads(a, Role::kKNorm, heads.n_kv_heads, k);
  Rotate(layer.rope, {heads.n_q_heads, heads.d_qk, 0, pos, a.n_ctx}, q);
  Rotate(layer.rope, {heads.n_kv_heads, heads.d_qk, 0, pos, a.n_ctx}, k);
  a.keys.push_back(k);
  a.values.push_back(Project(a, Role::kV, Role::kVBias, h));
  Vector out(heads.out_width(), 0.0);
  OracleRow row;
  for (size_t head = 0; head < heads.n_q_heads; ++head) {
    const size_t kv_head = head / (heads.n_q_heads / heads.n_kv_heads);
    row.weights.push_back(WeightsOf(a, q, head));
    Blend(a, row.weights[head], kv_head, out.data() + head * heads.d_v);
    if (a.kept != nullptr) a.kept->Add(kv_head, row.weights[head]);
  }
  if (a.kept != nullptr) a.kept->Done(pos + 1);
  BlendFixedHeads(a, out);
  for (const Role role : {Role::kAttentionGate, Role::kHeadGate}) {
    if (!a.part.Has(role)) continue;
    const Vector gate = a.part.Times(role, h);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] /= 1.0 + std::exp(-gate[role == Role::kHeadGate ? i / heads.d_v : i]);
    }
  }
  row.heads = out;
  a.seen->push_back(std::move(row));
  Vector y = a.part.Times(Role::kAttentionOutput, out);
  a.part.AddBias(Role::kAttentionOutputBias, y);
  return a.part.Normed(Role::kAttentionPostNorm, Role::kAttentionPostNorm, y);
}

// One expert, or a shared one, of SwiGLU or of gpt-oss's kind.
struct ExpertRoles {
  Role gate, gate_bias, up, up_bias, down, down_bias;
};
Vector RunExpert(const LayerSpec& layer, const Part& part, const ExpertRoles& roles, size_t i,
                 const Vector& h) {
  const auto project = [&](Role role, Role bias, const Vector& x) {
    Vector y = part.Times(role, x, i);
    for (size_t j = 0; part.Has(bias) && j < y.size(); ++j) y[j] += part.At(bias).row(i)[j];
    return y;
  };
  const Vector gate = project(roles.gate, roles.gate_bias, h);
  Vector up = project(roles.up, roles.up_bias, h);
  const bool clamps = layer.activation == Activation::kClampedSwiglu;
  for (size_t j = 0; j < up.size(); ++j) {
    if (clamps) up[j] = std::clamp(up[j], -7.0, 7.0) + 1.0;
    up[j] *= ActivationOf(layer.activation, gate[j]);
  }
  return project(roles.down, roles.down_bias, up);
}

Vector Experts(const LayerSpec& layer, const Part& part, const Vector& h) {
  const ExpertsSpec& spec = layer.experts;
  Vector logits = part.Times(Role::kRouter, h);
  part.AddBias(Role::kRouterBias, logits);
  Vector scores = logits;
  double total = 0.0;
  for (const double logit : logits) total += std::exp(logit);
  for (double& score : scores) {
    if (spec.gating == ExpertGating::kSoftmax) score = std::exp(score) / total;
    if (spec.gating == ExpertGating::kSigmoid) score = 1.0 / (1.0 + std::exp(-score));
  }
  Vector ranks = scores;
  part.AddBias(Role::kRouterChoiceBias, ranks);
  std::vector<size_t> chosen(spec.n);
  for (size_t i = 0; i < spec.n; ++i) chosen[i] = i;
  std::sort(chosen.begin(), chosen.end(), [&](size_t a, size_t b) { return ranks[a] > ranks[b]; });
  chosen.resize(spec.n_used);
  const bool is_softmax = spec.gating == ExpertGating::kChosenSoftmax;
  double sum = 0.0;
  for (const size_t i : chosen) sum += is_softmax ? std::exp(logits[i]) : scores[i];
  constexpr ExpertRoles kOne = {Role::kExpertGate,   Role::kExpertGateBias, Role::kExpertUp,
                                Role::kExpertUpBias, Role::kExpertDown,     Role::kExpertDownBias};
  Vector y(h.size(), 0.0);
  for (const size_t i : chosen) {
    double weight = is_softmax ? std::exp(logits[i]) / sum : scores[i];
    if (spec.sums_to_one) weight /= is_softmax ? 1.0 : sum;
    const Vector out = RunExpert(layer, part, kOne, i, h);
    for (size_t j = 0; j < y.size(); ++j) y[j] += weight * static_cast<double>(spec.scale) * out[j];
  }
  if (!part.Has(Role::kSharedUp)) return y;
  constexpr ExpertRoles kShared = {Role::kSharedGate, Role::kGateBias,   Role::kSharedUp,
                                   Role::kUpBias,     Role::kSharedDown, Role::kDownBias};
  const Vector out = RunExpert(layer, part, kShared, 0, h);
  double gate = 1.0;
  if (part.Has(Role::kSharedRouter)) {
    gate = 1.0 / (1.0 + std::exp(-part.Times(Role::kSharedRouter, h)[0]));
  }
  for (size_t j = 0; j < y.size(); ++j) y[j] += gate * out[j];
  return y;
}

Vector FeedForward(const LayerSpec& layer, const Part& part, const Vector& h) {
  if (layer.feed_forward == FeedForwardKind::kExperts) return Experts(layer, part, h);
  Vector up = part.Times(Role::kUp, h);
  part.AddBias(Role::kUpBias, up);
  if (part.Has(Role::kGate)) {
    Vector gate = part.Times(Role::kGate, h);
    part.AddBias(Role::kGateBias, gate);
    for (size_t i = 0; i < up.size(); ++i) {
      if (layer.activation == Activation::kClampedSwiglu)
        up[i] = std::clamp(up[i], -7.0, 7.0) + 1.0;
      up[i] *= ActivationOf(layer.activation, gate[i]);
    }
  } else {
    for (double& value : up) value = ActivationOf(layer.activation, value);
  }
  Vector y = part.Times(Role::kDown, up);
  part.AddBias(Role::kDownBias, y);
  return part.Normed(Role::kFeedForwardPostNorm, Role::kFeedForwardPostNorm, y);
}

void AddScaled(const Vector& y, float scale, Vector& x) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += static_cast<double>(scale) * y[i];
}

// One layer over all rows of the residual stream.
void RunLayer(const Part& part, Attention attention, std::vector<Vector>& rows) {
  const LayerSpec& layer = attention.layer;
  const bool has_feed_forward = layer.feed_forward != FeedForwardKind::kNone;
  const bool has_norm = part.Has(Role::kFeedForwardNorm) || part.Has(Role::kNormBetween);
  const Role norm = part.Has(Role::kNormBetween) ? Role::kNormBetween : Role::kFeedForwardNorm;
  for (Vector& x : rows) {
    const Vector h = part.Normed(Role::kAttentionNorm, Role::kAttentionNormBias, x);
    const Vector input = x;
    AddScaled(Attend(attention, h), layer.residual_scale, x);
    if (!has_feed_forward) continue;
    const Vector& source = layer.is_parallel ? (has_norm ? input : h) : x;
    const Vector g = part.Normed(norm, Role::kFeedForwardNormBias, source);
    AddScaled(FeedForward(layer, part, g), layer.residual_scale, x);
  }
}

Vector NormsOf(const std::vector<Vector>& rows) {
  Vector norms;
  for (const Vector& x : rows) {
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    norms.push_back(std::sqrt(sum));
  }
  return norms;
}

Vector Embed(const Part& part, uint32_t token, size_t pos) {
  const ModelSpec& spec = part.spec();
  const double* row = part.At(Role::kEmbedding).row(token);
  Vector x(row, row + spec.d_model);
  for (double& value : x) value *= static_cast<double>(spec.embedding_scale);
  for (size_t i = 0; i < spec.d_model; ++i) {
    if (spec.positions == AddedPositions::kLearned) x[i] += part.At(Role::kPositions).row(pos)[i];
    if (spec.positions == AddedPositions::kSinusoidal) {
      const double exponent = static_cast<double>(i - i % 2) / static_cast<double>(spec.d_model);
      const double angle = static_cast<double>(pos) / std::pow(10000.0, exponent);
      x[i] += i % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  return part.Normed(Role::kEmbeddingNorm, Role::kEmbeddingNormBias, x);
}

Vector Head(const Part& part, const Vector& x) {
  const ModelSpec& spec = part.spec();
  const Vector h = part.Normed(Role::kOutputNorm, Role::kOutputNormBias, x);
  Vector logits = part.Times(part.Has(Role::kHead) ? Role::kHead : Role::kEmbedding, h);
  part.AddBias(Role::kHeadBias, logits);
  const double cap = static_cast<double>(spec.logit_softcap);
  for (double& logit : logits) {
    logit *= static_cast<double>(spec.logit_scale);
    if (cap != 0.0) logit = cap * std::tanh(logit / cap);
  }
  return logits;
}

}  // namespace

Matrix OracleLogits(const OracleModel& model, std::span<const uint32_t> tokens,
                    OracleRounding rounding, size_t n_ctx) {
  OracleWatch watch;
  return WatchedOracleLogits(model, tokens, watch, rounding, n_ctx);
}

Matrix WatchedOracleLogits(const OracleModel& model, std::span<const uint32_t> tokens,
                           OracleWatch& watch, OracleRounding rounding, size_t n_ctx) {
  const ModelSpec& spec = model.spec;
  const Part whole(model, model.weights, rounding);
  std::vector<Vector> rows;
  for (size_t pos = 0; pos < tokens.size(); ++pos) rows.push_back(Embed(whole, tokens[pos], pos));
  watch.layers.assign(spec.layers.size(), {});
  watch.residual_norms = {NormsOf(rows)};
  for (size_t l = 0; l < spec.layers.size(); ++l) {
    const LayerSpec& layer = spec.layers[l];
    const Part part(model, model.layers[l], rounding);
    const std::vector<OracleFixedHead> fixed = FixedHeadsOf(model, l);
    OracleKept kept(watch.eviction, watch.n_prompt, layer.heads.n_kv_heads);
    Attention attention{layer, part, n_ctx == 0 ? tokens.size() : n_ctx, fixed, {}, {}};
    if (ChoosesRows(watch.eviction) && layer.window == 0) attention.kept = &kept;
    attention.seen = &watch.layers[l];
    RunLayer(part, std::move(attention), rows);
    watch.residual_norms.push_back(NormsOf(rows));
  }
  Matrix logits{tokens.size(), spec.vocab_size, {}};
  for (const Vector& x : rows) {
    const Vector row = Head(whole, x);
    logits.values.insert(logits.values.end(), row.begin(), row.end());
  }
  return logits;
}

}  // namespace headlight
