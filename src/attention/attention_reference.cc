// The definition of attention: two passes over the admitted keys in double precision, every score
// computed as written in the papers. The fast kernels are tested against it; it shares no
// arithmetic with them.
#include <cmath>
#include <limits>
#include <vector>

#include "attention/attention.h"

namespace headlight {
namespace {

// Query head q_head at row t of the call.
struct QueryRow {
  size_t t;
  size_t q_head;
};

bool Admits(const AttentionSpec& spec, const AttentionArgs& args, size_t query_pos,
            size_t key_pos) {
  const bool both_in_prefix = query_pos < args.n_prefix && key_pos < args.n_prefix;
  if (spec.causal && key_pos > query_pos && !both_in_prefix) return false;
  if (spec.window == 0 || key_pos >= query_pos) return true;
  return query_pos - key_pos < spec.window || key_pos < spec.n_sinks;
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

// The query that meets the sinks, scaled; empty where the row's own does.
std::vector<double> SinkQueryOf(const AttentionSpec& spec, const AttentionArgs& args,
                                const QueryRow& row) {
  std::vector<double> query;
  if (args.q_sinks == nullptr || args.pos0 + row.t < spec.n_sinks + spec.window) return query;
  const float* q = args.q_sinks + row.t * args.q_stride + row.q_head * spec.layout.d_qk;
  for (size_t i = 0; i < spec.layout.d_qk; ++i) {
    query.push_back(static_cast<double>(q[i]) * static_cast<double>(spec.scale));
  }
  return query;
}

double ScaledScore(const std::vector<double>& query, const KvHeadView& kv, size_t key) {
  double score = 0.0;
  for (size_t i = 0; i < query.size(); ++i) score += query[i] * kv.KeyAt(key, i);
  return score;
}

double Softcapped(const AttentionSpec& spec, double score) {
  return spec.softcap == 0.0f ? score : spec.softcap * std::tanh(score / spec.softcap);
}

// What is added to the score of query head q_head, row t, and a key.
double Bias(const AttentionSpec& spec, const AttentionArgs& args, const QueryRow& row, size_t key) {
  double bias = 0.0;
  if (spec.alibi_slopes != nullptr) {
    const double distance = static_cast<double>(args.pos0 + row.t) - static_cast<double>(key);
    bias -= static_cast<double>(spec.alibi_slopes[row.q_head]) * std::fabs(distance);
  }
  const AttentionMask& mask = args.mask;
  if (mask.values != nullptr) {
    bias += mask.values[row.q_head * mask.head_stride + row.t * mask.row_stride + key];
  }
  return bias;
}

// Puts a captured score in its place; kScores and kWeights are of masked scores.
struct CapturedRow {
  float* values = nullptr;  // [stride]; null: not captured
  CaptureStage stage = CaptureStage::kWeights;

  void Keep(CaptureStage of, size_t key, double score) const {
    if (values != nullptr && stage == of) values[key] = static_cast<float>(score);
  }
};

CapturedRow BeginRow(const AttentionArgs& args, const QueryRow& row) {
  if (args.capture == nullptr) return {};
  CapturedRow captured{args.capture->Row(row.q_head, row.t), args.capture->stage};
  const bool is_weights = captured.stage == CaptureStage::kWeights;
  if (captured.values != nullptr) {
    std::fill_n(captured.values, args.capture->stride,
                is_weights ? 0.0f : -std::numeric_limits<float>::infinity());
  }
  return captured;
}

void AttendRow(const AttentionSpec& spec, const AttentionArgs& args, const QueryRow& row) {
  const HeadLayout& layout = spec.layout;
  const KvHeadView kv = args.kv->head(row.q_head / layout.n_q_per_kv());
  const float* q = args.q + row.t * args.q_stride + row.q_head * layout.d_qk;
  float* out = args.out + row.t * args.out_stride + row.q_head * layout.d_v;
  const std::vector<double> query = QueryOf(spec, kv.format.k, q);
  const std::vector<double> sink_query = SinkQueryOf(spec, args, row);
  constexpr double kMasked = -std::numeric_limits<double>::infinity();
  std::vector<double> scores(args.n_kv, kMasked);
  const CapturedRow captured = BeginRow(args, row);
  double max = kMasked;
  for (size_t key = 0; key < args.n_kv; ++key) {
    if (!Admits(spec, args, args.pos0 + row.t, key)) continue;
    const bool is_sink = key < spec.n_sinks && !sink_query.empty();
    const double scaled = ScaledScore(is_sink ? sink_query : query, kv, key);
    const double capped = Softcapped(spec, scaled);
    scores[key] = capped + Bias(spec, args, row, key);
    captured.Keep(CaptureStage::kScaled, key, scaled);
    captured.Keep(CaptureStage::kSoftcapped, key, capped);
    captured.Keep(CaptureStage::kScores, key, scores[key]);
    max = std::fmax(max, scores[key]);
  }
  double sum = 0.0;
  std::vector<double> acc(layout.d_v, 0.0);
  for (size_t key = 0; key < args.n_kv; ++key) {
    if (scores[key] == kMasked) continue;
    const double weight = std::exp(scores[key] - max);
    sum += weight;
    for (size_t i = 0; i < acc.size(); ++i) acc[i] += weight * kv.ValueAt(key, i);
  }
  double sink = 0.0;  // of a row without any key: the only one there is
  if (spec.sink_logits != nullptr) {
    sink = max == kMasked ? 1.0 : std::exp(spec.sink_logits[row.q_head] - max);
  }
  sum += sink;
  for (size_t key = 0; key < args.n_kv; ++key) {
    if (scores[key] == kMasked) continue;
    captured.Keep(CaptureStage::kWeights, key, std::exp(scores[key] - max) / sum);
  }
  if (captured.values != nullptr && args.capture->sink_mass != nullptr) {
    const uint32_t slot = args.capture->Slot(row.q_head, row.t);
    args.capture->sink_mass[slot] = static_cast<float>(sum > 0.0 ? sink / sum : 0.0);
  }
  // No key at all: zeros, with or without a sink.
  for (size_t i = 0; i < acc.size(); ++i)
    out[i] = max == kMasked ? 0.0f : static_cast<float>(acc[i] / sum);
}

}  // namespace

void AttentionReference(const AttentionSpec& spec, const AttentionArgs& args) {
  for (size_t t = 0; t < args.n_tokens; ++t) {
    for (size_t h = 0; h < spec.layout.n_q_heads; ++h) AttendRow(spec, args, {t, h});
  }
}

}  // namespace headlight
