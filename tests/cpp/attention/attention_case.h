// One attention problem with random contents, for the tests of every kernel: the sweep's
// parameters, the cache filled by the public path, and how far a float32 kernel may be from the
// double reference.
#ifndef HEADLIGHT_TESTS_ATTENTION_ATTENTION_CASE_H_
#define HEADLIGHT_TESTS_ATTENTION_ATTENTION_CASE_H_

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attention/attention.h"

namespace headlight {

struct AttentionCase {
  HeadLayout layout;
  size_t n_tokens = 1;
  size_t n_kv = 1;
  size_t pos0 = 0;
  size_t window = 0;
  float softcap = 0.0f;
  bool causal = true;
  size_t n_prefix = 0;
  size_t n_sinks = 0;
  bool alibi = false;
  bool sinks = false;
  // 1: a mask for each head and row, a third of it -inf; 2: one row of padding for all of them.
  int mask = 0;
  DotForm dot_form = DotForm::kWide;
  KvCacheFormat format;
  float magnitude = 1.0f;  // of queries: scores grow with it

  std::string Name() const {
    return std::to_string(layout.n_q_heads) + "/" + std::to_string(layout.n_kv_heads) + " d_qk " +
           std::to_string(layout.d_qk) + " d_v " + std::to_string(layout.d_v) + " n_tokens " +
           std::to_string(n_tokens) + " n_kv " + std::to_string(n_kv) + " pos0 " +
           std::to_string(pos0) + " window " + std::to_string(window) + " softcap " +
           std::to_string(softcap) + (causal ? " causal " : " bidirectional ") +
           (alibi ? "alibi " : "") + (sinks ? "sinks " : "") + "mask " + std::to_string(mask) +
           " first " + std::to_string(n_sinks) + " prefix " + std::to_string(n_prefix) + " " +
           CacheTypeName(format.k) + "/" + CacheTypeName(format.v);
  }
};

enum class AttentionKernel { kReference, kTiled, kDecode, kAttend };

class AttentionProblem {
 public:
  // Dead rows [n_kv, n_ctx) hold NaN, or in int8, which has none, the largest number: a kernel that
  // uses one shows it.
  explicit AttentionProblem(const AttentionCase& test, uint32_t seed = 1)
      : test_(test),
        kv_(test.layout, test.format, std::max(test.n_kv, test.pos0 + test.n_tokens) + kDeadRows) {
    std::mt19937 random(seed);
    const HeadLayout& layout = test.layout;
    q_ = Gaussian(test.n_tokens * (layout.q_width() + kGap), test.magnitude, random);
    k_ = Gaussian(test.n_kv * layout.k_width(), 1.0f, random);
    v_ = Gaussian(test.n_kv * layout.v_width(), 1.0f, random);
    for (size_t row = 0; row < test.n_kv; ++row) {
      kv_.WriteRow(row, k_.data() + row * layout.k_width(), v_.data() + row * layout.v_width());
    }
    for (size_t h = 0; h < layout.n_q_heads; ++h) {
      slopes_.push_back(0.5f / static_cast<float>(h + 1));
      sink_logits_.push_back(static_cast<float>(h) - 1.5f);
    }
    const size_t n_mask = test.mask == 1 ? layout.n_q_heads * test.n_tokens : 1;
    for (size_t i = 0; i < n_mask * test.n_kv; ++i) {
      const bool is_masked = random() % 3 == 0;
      mask_.push_back(is_masked ? -std::numeric_limits<float>::infinity()
                                : static_cast<float>(random() % 64) / 32.0f);
    }
    const std::vector<float> nan(layout.k_width() + layout.v_width(),
                                 std::numeric_limits<float>::quiet_NaN());
    const std::vector<float> huge(nan.size(), 1e30f);
    for (size_t row = test.n_kv; row < kv_.n_rows(); ++row) {
      kv_.WriteRow(row, test.format.k == CacheType::kInt8 ? huge.data() : nan.data(),
                   test.format.v == CacheType::kInt8 ? huge.data() : nan.data());
    }
  }

  AttentionSpec Spec() const {
    AttentionSpec spec;
    spec.layout = test_.layout;
    spec.scale = 1.0f / std::sqrt(static_cast<float>(test_.layout.d_qk));
    spec.window = test_.window;
    spec.n_sinks = test_.n_sinks;
    spec.softcap = test_.softcap;
    spec.causal = test_.causal;
    spec.dot_form = test_.dot_form;
    if (test_.alibi) spec.alibi_slopes = slopes_.data();
    if (test_.sinks) spec.sink_logits = sink_logits_.data();
    return spec;
  }

  // [n_tokens, n_q_heads * d_v].
  std::vector<float> Run(AttentionKernel kernel, size_t n_threads = 1) {
    return RunTokens(kernel, 0, test_.n_tokens, test_.n_kv, n_threads);
  }

  // Tokens [first, first + n_tokens) against the first n_kv rows. Output rows stand apart, and what
  // is between them must stay.
  std::vector<float> RunTokens(AttentionKernel kernel, size_t first, size_t n_tokens, size_t n_kv,
                               size_t n_threads = 1, const AttentionCapture* capture = nullptr) {
    const size_t width = test_.layout.out_width();
    std::vector<float> spaced(n_tokens * (width + kGap), kUntouched);
    AttentionArgs args;
    args.q_stride = test_.layout.q_width() + kGap;
    args.q = q_.data() + first * args.q_stride;
    args.n_tokens = n_tokens;
    args.pos0 = test_.pos0 + first;
    args.kv = &kv_;
    args.n_kv = n_kv;
    args.n_prefix = test_.n_prefix;
    if (test_.mask == 1) {
      args.mask = {mask_.data() + first * test_.n_kv, test_.n_tokens * test_.n_kv, test_.n_kv};
    }
    if (test_.mask == 2) args.mask = {mask_.data(), 0, 0};
    args.capture = capture;
    args.out = spaced.data();
    args.out_stride = width + kGap;
    ThreadPool pool(n_threads);
    AttentionWorkspace workspace(test_.layout, kv_.n_rows(), n_threads);
    Call(kernel, args, workspace, pool);
    std::vector<float> out;
    for (size_t t = 0; t < n_tokens; ++t) {
      const auto row = spaced.begin() + static_cast<std::ptrdiff_t>(t * args.out_stride);
      out.insert(out.end(), row, row + static_cast<std::ptrdiff_t>(width));
      for (size_t i = 0; i < kGap; ++i)
        gap_untouched_ &= row[static_cast<std::ptrdiff_t>(width + i)] == kUntouched;
    }
    return out;
  }

  // Writes row `row` of this problem into the cache of another one of the same layout.
  void CopyRow(size_t row, AttentionProblem& to) const {
    to.kv_.WriteRow(row, k_.data() + row * test_.layout.k_width(),
                    v_.data() + row * test_.layout.v_width());
  }

  bool gap_untouched() const { return gap_untouched_; }
  std::vector<float>& q() { return q_; }
  KvLayer& kv() { return kv_; }
  std::vector<float>& mask() { return mask_; }
  // Another row in the cache, such as one of NaN.
  void SetKv(size_t row, float k, float v) {
    const std::vector<float> keys(test_.layout.k_width(), k);
    const std::vector<float> values(test_.layout.v_width(), v);
    kv_.WriteRow(row, keys.data(), values.data());
  }
  size_t q_stride() const { return test_.layout.q_width() + kGap; }

  // |fast - reference| of any output element. With eps = 2^-24 a float32 score is off by about eps
  // sqrt(d_qk) |q| |k| scale, which changes a weight by the same relative amount; the sums over
  // n_kv weights and values add eps sqrt(n_kv), the exponentials and rescalings of the tiles a few
  // eps each. All of it is scaled by the largest value. Constant 4.
  double Tolerance() const {
    constexpr double kEps = 0x1p-24;
    const double d_qk = static_cast<double>(test_.layout.d_qk);
    double score =
        MaxNorm(q_, test_.n_tokens, test_.layout.n_q_heads, test_.layout.d_qk, q_stride()) *
        MaxNorm(k_, test_.n_kv, test_.layout.n_kv_heads, test_.layout.d_qk,
                test_.layout.k_width()) /
        std::sqrt(d_qk);
    if (test_.softcap != 0.0f) score += 4.0 * test_.softcap;  // tanh: 4 ulp
    if (test_.alibi) score += 0.5 * static_cast<double>(test_.n_kv + test_.n_tokens);
    if (test_.mask != 0) score += 2.0;
    double value = 0.0;
    for (const float v : v_) value = std::max(value, std::fabs(static_cast<double>(v)));
    const double n_kv = static_cast<double>(test_.n_kv);
    const double f32 =
        4.0 * kEps * value * (std::sqrt(d_qk) * score + std::sqrt(n_kv) + n_kv / 64.0 + 4.0);
    if (test_.format.v != CacheType::kInt8) return f32;
    // Each weight is off by at most half of 1/16383 of the largest one of its chunk, which is at
    // most the row's sum, and independently of the others: a standard deviation of 0.29 each.
    return f32 + 4.0 * 0.29 / 16383.0 * value * std::sqrt(n_kv);
  }

 private:
  static constexpr size_t kGap = 3;
  static constexpr size_t kDeadRows = 5;
  static constexpr float kUntouched = -12345.0f;

  static std::vector<float> Gaussian(size_t n, float magnitude, std::mt19937& random) {
    std::normal_distribution<float> normal(0.0f, magnitude);
    std::vector<float> x(n);
    for (float& value : x) value = normal(random);
    return x;
  }

  static double MaxNorm(const std::vector<float>& x, size_t n_rows, size_t n_heads, size_t d,
                        size_t stride) {
    double max = 0.0;
    for (size_t row = 0; row < n_rows; ++row) {
      for (size_t h = 0; h < n_heads; ++h) {
        double sum = 0.0;
        for (size_t i = 0; i < d; ++i)
          sum += std::pow(static_cast<double>(x[row * stride + h * d + i]), 2.0);
        max = std::max(max, std::sqrt(sum));
      }
    }
    return max;
  }

  void Call(AttentionKernel kernel, const AttentionArgs& args, AttentionWorkspace& workspace,
            ThreadPool& pool) {
    switch (kernel) {
      case AttentionKernel::kReference:
        return AttentionReference(Spec(), args);
      case AttentionKernel::kTiled:
        return AttentionTiled(Spec(), args, workspace, pool);
      case AttentionKernel::kDecode:
        return AttentionDecode(Spec(), args, workspace, pool);
      case AttentionKernel::kAttend:
        return Attend(Spec(), args, workspace, pool);
    }
  }

  AttentionCase test_;
  KvLayer kv_;
  std::vector<float> q_;  // [n_tokens, q_width + kGap]
  std::vector<float> k_;  // [n_kv, k_width]
  std::vector<float> v_;  // [n_kv, v_width]
  std::vector<float> slopes_;
  std::vector<float> sink_logits_;
  std::vector<float> mask_;  // [n_q_heads, n_tokens, n_kv] or [n_kv]
  bool gap_untouched_ = true;
};

// Largest |a - b|, equal infinities being equal; NaN anywhere gives infinity.
inline double MaxDifference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double max = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= max))
      max = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
  }
  return max;
}

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_ATTENTION_ATTENTION_CASE_H_
