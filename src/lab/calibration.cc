#include "lab/calibration.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lab/lab_error.h"
#include "session/session_plan.h"
#include "session/stopwatch.h"

namespace headlight {
namespace {

size_t CheckedTokens(const ModelSpec& spec, size_t n_tokens) {
  const size_t max = std::min(kMaxSegmentTokens, spec.n_ctx_train);
  if (n_tokens < 2) ThrowOption("n_tokens", n_tokens, "at least", 2);
  if (n_tokens > max) ThrowOption("n_tokens", n_tokens, "at most", max);
  return n_tokens;
}

void Copy(const LayerRows& rows, std::vector<float>& out) {
  out.resize(rows.n_rows * rows.n_cols);
  for (size_t t = 0; t < rows.n_rows; ++t) {
    std::copy_n(rows.data + t * rows.stride, rows.n_cols, out.data() + t * rows.n_cols);
  }
}

}  // namespace

Calibration::Calibration(std::shared_ptr<const Model> model, size_t n_tokens, ThreadPool& pool)
    : model_(std::move(model)),
      n_(CheckedTokens(model_->spec, n_tokens)),
      cache_(Decoder::PlanCache(model_->spec, {n_, n_}), KvCacheFormat(), n_),
      decoder_(*model_, {n_, n_}, pool),
      weights_(n_ * n_) {
  size_t n_sums = 0;
  for (size_t layer = 0; layer < model_->spec.layers.size(); ++layer) {
    layer_offsets_.push_back(n_sums);
    n_sums += SumsPerHead(layer) * model_->spec.layers[layer].heads.n_q_heads;
  }
  sums_.resize(n_sums);
}

size_t Calibration::SumsPerHead(size_t layer) const noexcept {
  return 2 * n_ * n_ + model_->spec.layers[layer].heads.d_qk / 2 + kNPatterns;
}

const double* Calibration::SumsOf(size_t layer, size_t head) const noexcept {
  return sums_.data() + layer_offsets_[layer] + head * SumsPerHead(layer);
}

double* Calibration::SumsOf(size_t layer, size_t head) noexcept {
  return sums_.data() + layer_offsets_[layer] + head * SumsPerHead(layer);
}

void Calibration::BeginSegment(std::span<const uint32_t> tokens, bool is_check) {
  CheckLabTokens(model_->spec, tokens, n_, n_);
  is_check_ = is_check;
  DecoderChunk chunk;
  chunk.tokens = tokens;
  chunk.observer = this;
  decoder_.Start(chunk, cache_);
  has_segment_ = true;
}

bool Calibration::Advance(double budget_ms) {
  if (!has_segment_) return true;
  const Stopwatch stopwatch;
  while (decoder_.Step()) {
    if (stopwatch.ms() >= budget_ms) return false;
  }
  has_segment_ = false;
  ++(is_check_ ? n_checked_ : n_added_);
  return true;
}

void Calibration::OnRows(size_t layer, LayerTensor what, const LayerRows& rows) noexcept {
  if (what == LayerTensor::kV) Copy(rows, v_);
  if (what == LayerTensor::kQRotated) Copy(rows, q_);
  if (what != LayerTensor::kKRotated) return;
  Copy(rows, k_);
  for (size_t head = 0; head < model_->spec.layers[layer].heads.n_q_heads; ++head) {
    Weigh(layer, head);
    if (is_check_) {
      Check(layer, head);
    } else {
      Add(layer, head);
    }
  }
}

// The weights of one head, in double.
void Calibration::Weigh(size_t layer, size_t head) noexcept {
  const LayerSpec& spec = model_->spec.layers[layer];
  const HeadLayout& layout = spec.heads;
  const double cap = static_cast<double>(spec.attention_softcap);
  for (size_t t = 0; t < n_; ++t) {
    const float* q = q_.data() + t * layout.q_width() + head * layout.d_qk;
    const float* k = k_.data() + head / layout.n_q_per_kv() * layout.d_qk;
    double* row = weights_.data() + t * n_;
    double max = -INFINITY;
    for (size_t key = 0; key <= t; ++key, k += layout.k_width()) {
      double score = 0.0;
      for (size_t i = 0; i < layout.d_qk; ++i) {
        score += static_cast<double>(q[i]) * static_cast<double>(k[i]);
      }
      score *= static_cast<double>(spec.attention_scale);
      if (cap != 0.0) score = cap * std::tanh(score / cap);
      const bool is_left = spec.window != 0 && t - key >= spec.window && key >= spec.n_sinks;
      row[key] = is_left ? -INFINITY : score;
      max = std::max(max, row[key]);
    }
    double sum = 0.0;
    for (size_t key = 0; key <= t; ++key) sum += row[key] = std::exp(row[key] - max);
    for (size_t key = 0; key <= t; ++key) row[key] /= sum;
    if (!is_check_) AddPairs(layer, head, t);
  }
}

// Adds the variance over the keys of query t of what each pair contributes to the scores.
void Calibration::AddPairs(size_t layer, size_t head, size_t t) noexcept {
  const LayerSpec& spec = model_->spec.layers[layer];
  const HeadLayout& layout = spec.heads;
  const bool is_split = spec.rope.style == RopeStyle::kHalfSplit;
  const size_t n_half = spec.rope.style == RopeStyle::kNone ? 0 : spec.rope.n_rot / 2;
  const float* q = q_.data() + t * layout.q_width() + head * layout.d_qk;
  double* variances = SumsOf(layer, head) + 2 * n_ * n_;
  for (size_t pair = 0; pair < layout.d_qk / 2; ++pair) {
    const bool apart = is_split && pair < n_half;
    const size_t a = apart ? pair : 2 * pair;
    const size_t b = apart ? pair + n_half : a + 1;
    const float* k = k_.data() + head / layout.n_q_per_kv() * layout.d_qk;
    double sum = 0.0, square = 0.0;
    for (size_t key = 0; key <= t; ++key, k += layout.k_width()) {
      const double part = static_cast<double>(q[a]) * static_cast<double>(k[a]) +
                          static_cast<double>(q[b]) * static_cast<double>(k[b]);
      sum += part;
      square += part * part;
    }
    const double n_keys = static_cast<double>(t + 1);
    variances[pair] += std::max(0.0, square / n_keys - sum / n_keys * (sum / n_keys));
  }
}

void Calibration::Add(size_t layer, size_t head) noexcept {
  double* sums = SumsOf(layer, head);
  for (size_t t = 0; t < n_; ++t) {
    for (size_t i = t * n_; i <= t * n_ + t; ++i) {
      sums[i] += weights_[i];
      sums[n_ * n_ + i] += weights_[i] * weights_[i];
    }
  }
}

void Calibration::Check(size_t layer, size_t head) noexcept {
  const HeadLayout& layout = model_->spec.layers[layer].heads;
  const float* v = v_.data() + head / layout.n_q_per_kv() * layout.d_v;
  double* errors = SumsOf(layer, head) + SumsPerHead(layer) - kNPatterns;
  const HeadCalibration average = Head(layer, head);
  float fixed[kMaxSegmentTokens];
  for (size_t i = 0; i < kNPatterns; ++i) {
    const FixedPattern pattern = average.Pattern(i);
    double wrong = 0.0, whole = 0.0;
    for (size_t t = 0; t < n_; ++t) {
      FixedWeights(pattern, t, fixed);
      for (size_t dim = 0; dim < layout.d_v; ++dim) {
        double real = 0.0, difference = 0.0;
        for (size_t key = 0; key <= t; ++key) {
          const double value = static_cast<double>(v[key * layout.v_width() + dim]);
          const double weight = weights_[t * n_ + key];
          real += weight * value;
          difference += (weight - static_cast<double>(fixed[key])) * value;
        }
        whole += real * real;
        wrong += difference * difference;
      }
    }
    errors[i] += whole > 0.0 ? std::sqrt(wrong / whole) : 0.0;
  }
}

FixedPattern HeadCalibration::Pattern(size_t i) const {
  FixedPattern pattern;
  pattern.kind = static_cast<PatternKind>(i);
  pattern.offset = offset;
  if (pattern.kind != PatternKind::kByOffset) return pattern;
  pattern.by_offset = by_offset;
  pattern.first = first;
  return pattern;
}

HeadCalibration Calibration::Head(size_t layer, size_t head) const {
  const double* sums = SumsOf(layer, head);
  const double* squares = sums + n_ * n_;
  const double count = static_cast<double>(std::max<size_t>(n_added_, 1));
  HeadCalibration out;
  double largest = 0.0, total = 0.0, first = 0.0;
  for (size_t t = 0; t < n_; ++t) {
    for (size_t i = t * n_; i <= t * n_ + t; ++i) {
      const double mean = sums[i] / count;
      const double deviation = std::sqrt(std::max(0.0, squares[i] / count - mean * mean));
      largest = std::max(largest, deviation);
      total += deviation;
    }
    if (t > 0) first += sums[t * n_];
  }
  out.spread = static_cast<float>(largest);
  out.mean_spread = static_cast<float>(total / static_cast<double>(n_ * (n_ + 1) / 2));
  out.first = static_cast<float>(first / count / static_cast<double>(n_ - 1));
  out.by_offset.resize(n_);
  for (size_t offset = 0; offset + 1 < n_; ++offset) {
    double sum = 0.0;
    for (size_t t = offset + 1; t < n_; ++t) sum += sums[t * n_ + t - offset];
    out.by_offset[offset] = static_cast<float>(sum / count / static_cast<double>(n_ - 1 - offset));
    if (out.by_offset[offset] > out.by_offset[out.offset]) out.offset = offset;
  }
  const double* errors = sums + SumsPerHead(layer) - kNPatterns;
  const double n_checked = static_cast<double>(std::max<size_t>(n_checked_, 1));
  for (size_t i = 0; i < kNPatterns; ++i)
    out.output_errors[i] = static_cast<float>(errors[i] / n_checked);
  return out;
}

std::vector<float> Calibration::PairShares(size_t layer) const {
  const HeadLayout& layout = model_->spec.layers[layer].heads;
  std::vector<float> shares(layout.d_qk / 2);
  for (size_t head = 0; head < layout.n_q_heads; ++head) {
    const double* variances = SumsOf(layer, head) + 2 * n_ * n_;
    double total = 0.0;
    for (size_t pair = 0; pair < shares.size(); ++pair) total += variances[pair];
    if (total == 0.0) continue;
    for (size_t pair = 0; pair < shares.size(); ++pair) {
      shares[pair] +=
          static_cast<float>(variances[pair] / total / static_cast<double>(layout.n_q_heads));
    }
  }
  return shares;
}

}  // namespace headlight
