// What can be seen of the oracle's pass, and keys that it gives up on the way, as the papers of H2O
// (arXiv 2306.14048) and SnapKV (arXiv 2404.14469) define it.
#ifndef HEADLIGHT_TESTS_ORACLE_ORACLE_WATCH_H_
#define HEADLIGHT_TESTS_ORACLE_ORACLE_WATCH_H_

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "kv/eviction.h"

namespace headlight {

// Of one token in one layer.
struct OracleRow {
  std::vector<std::vector<double>> weights;  // [n_q_heads] of the keys up to its own
  std::vector<double> heads;                 // [n_q_heads * d_v], gated if the layer gates them
};

struct OracleWatch {
  EvictionOptions eviction = {};  // of layers without a window
  size_t n_prompt = 0;            // kSnapKv: tokens, at whose end keys go
  // What was seen.
  std::vector<std::vector<OracleRow>> layers;  // [n_layers][n_tokens]
  std::vector<std::vector<double>>
      residual_norms;  // [n_layers + 1][n_tokens], the embedding's first
};

// The keys that a layer still has, head by head.
class OracleKept {
 public:
  OracleKept(const EvictionOptions& options, size_t n_prompt, size_t n_kv_heads)
      : options_(options), n_prompt_(n_prompt), mass_(n_kv_heads), gone_(n_kv_heads) {}

  bool Has(size_t kv_head, size_t pos) const { return gone_[kv_head].count(pos) == 0; }

  // weights of a query head for every key up to its own.
  void Add(size_t kv_head, const std::vector<double>& weights) {
    const size_t n = weights.size();
    const bool counts = options_.policy == EvictionPolicy::kH2o ||
                        (n <= n_prompt_ && n + options_.window > n_prompt_);
    mass_[kv_head].resize(std::max(n, mass_[kv_head].size()), 0.0);
    for (size_t pos = 0; counts && pos < n; ++pos) mass_[kv_head][pos] += weights[pos];
  }

  // n tokens are done.
  void Done(size_t n) {
    const bool is_h2o = options_.policy == EvictionPolicy::kH2o;
    if (is_h2o ? n % kH2oStep != 0 : n != n_prompt_) return;
    for (size_t head = 0; head < gone_.size(); ++head) GiveUp(head, n);
  }

 private:
  void GiveUp(size_t head, size_t n) {
    std::vector<size_t> old;  // those that may go, in order
    for (size_t pos = 0; pos + options_.window < n; ++pos) {
      if (Has(head, pos)) old.push_back(pos);
    }
    std::vector<std::pair<double, size_t>> worth;
    for (size_t i = 0; i < old.size(); ++i) {
      double value = mass_[head][old[i]];
      if (options_.policy == EvictionPolicy::kSnapKv) {
        value = 0.0;  // an average over five, zeros beyond the ends
        for (size_t j = i < 2 ? 0 : i - 2; j < std::min(i + 3, old.size()); ++j) {
          value += mass_[head][old[j]] / 5.0;
        }
      }
      worth.emplace_back(value, old[i]);
    }
    std::sort(worth.begin(), worth.end());
    const size_t n_stay = options_.budget - options_.window;
    for (size_t i = 0; i + n_stay < worth.size(); ++i) gone_[head].insert(worth[i].second);
  }

  EvictionOptions options_;
  size_t n_prompt_;
  std::vector<std::vector<double>> mass_;  // [n_kv_heads][position]
  std::vector<std::set<size_t>> gone_;
};

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_ORACLE_ORACLE_WATCH_H_
