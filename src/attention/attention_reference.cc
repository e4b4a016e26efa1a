// The definition of attention: two passes over the admitted keys in double precision, every score
// computed as written in the papers. The fast kernels are tested against it; it shares no
// arithmetic with them.
#include <cmath>
#include <limits>
#include <vector>

#include "attention/attention.h"

namespace headlight {
namespace {

bool Admits(const AttentionSpec& spec, size_t query_pos, size_t key_pos) {
  if (spec.causal && key_pos > query_pos) return false;
  if (spec.window == 0 || key_pos >= query_pos) return true;
  return query_pos - key_pos < spec.window;
}

// A query as it meets the keys: scaled and, for int8 keys, rounded to 127ths of its largest
// element.
std::vector<double> QueryOf(const AttentionSpec& spec, CacheType k_type, const float* q) {
  std::vector<double> query(spec.layout.d_qk);
  float max = 0.0f;
  for (size_t i = 0; i < query.size(); ++i) {
    query[i] = static_cast<double>(q[i]) * static_cast<double>(spec.scale);
    max = std::fmax(max, std::fabs(q[i] * spec.scale));
  }
  if (k_type != CacheType::kInt8) return query;
  for (size_t i = 0; i < query.size(); ++i) {
    // In float, as the kernels do it: an element at the middle of two codes goes the same way.
    const float code = max < 1e-30f ? 0.0f : std::nearbyint(q[i] * spec.scale * (127.0f / max));
    query[i] = static_cast<double>(code) * static_cast<double>(max / 127.0f);
  }
  return query;
}

double Score(const AttentionSpec& spec, const std::vector<double>& query, const KvHeadView& kv,
             size_t key) {
  double score = 0.0;
  for (size_t i = 0; i < query.size(); ++i) score += query[i] * kv.KeyAt(key, i);
  return spec.softcap == 0.0f ? score : spec.softcap * std::tanh(score / spec.softcap);
}

// q [d_qk], out [d_v]: one query head at position pos.
void AttendRow(const AttentionSpec& spec, const KvHeadView& kv, size_t n_kv, size_t pos,
               const float* q, float* out) {
  const std::vector<double> query = QueryOf(spec, kv.format.k, q);
  std::vector<double> scores(n_kv, -std::numeric_limits<double>::infinity());
  double max = -std::numeric_limits<double>::infinity();
  for (size_t key = 0; key < n_kv; ++key) {
    if (!Admits(spec, pos, key)) continue;
    scores[key] = Score(spec, query, kv, key);
    max = std::fmax(max, scores[key]);
  }
  double sum = 0.0;
  std::vector<double> acc(spec.layout.d_v, 0.0);
  for (size_t key = 0; key < n_kv; ++key) {
    if (!Admits(spec, pos, key)) continue;
    const double weight = std::exp(scores[key] - max);
    sum += weight;
    for (size_t i = 0; i < acc.size(); ++i) acc[i] += weight * kv.ValueAt(key, i);
  }
  for (size_t i = 0; i < acc.size(); ++i)
    out[i] = sum == 0.0 ? 0.0f : static_cast<float>(acc[i] / sum);
}

}  // namespace

void AttentionReference(const AttentionSpec& spec, const AttentionArgs& args) {
  const HeadLayout& layout = spec.layout;
  for (size_t t = 0; t < args.n_tokens; ++t) {
    for (size_t h = 0; h < layout.n_q_heads; ++h) {
      const float* q = args.q + t * args.q_stride + h * layout.d_qk;
      float* out = args.out + t * args.out_stride + h * layout.d_v;
      AttendRow(spec, args.kv->head(h / layout.n_q_per_kv()), args.n_kv, args.pos0 + t, q, out);
    }
  }
}

}  // namespace headlight
