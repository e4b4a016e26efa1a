// Which rows go, that the others stay what they were, and what attention each has received.
#include "kv/kept_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "kv/kv_cache.h"

namespace headlight {
namespace {

using Rows = std::vector<uint32_t>;

EvictionOptions H2o(size_t budget, size_t window) {
  return {EvictionPolicy::kH2o, 0, window, budget};
}
EvictionOptions SnapKv(size_t budget, size_t window) {
  return {EvictionPolicy::kSnapKv, 0, window, budget};
}

Rows Victims(const EvictionOptions& options, const Rows& positions, const std::vector<float>& mass,
             size_t n) {
  Rows rows = ChooseVictims(options, positions, mass, n);
  std::sort(rows.begin(), rows.end());
  return rows;
}

TEST_CASE("ChooseVictims: H2O gives up the least attended, the older first, never the recent") {
  // Rows in no order; the two newest are rows 1 and 4.
  const Rows positions = {3, 9, 0, 5, 8, 1};
  const std::vector<float> mass = {0.5f, 0.0f, 0.2f, 0.2f, 0.1f, 0.9f};
  CHECK(Victims(H2o(5, 2), positions, mass, 1) == Rows{2});
  CHECK(Victims(H2o(5, 2), positions, mass, 2) == Rows{2, 3});
  CHECK(Victims(H2o(5, 2), positions, mass, 3) == Rows{0, 2, 3});
  CHECK(Victims(H2o(5, 1), positions, mass, 1) == Rows{4});
}

TEST_CASE("ChooseVictims: SnapKV averages over five neighbours in the order of positions") {
  // Position 4 alone is attended to: its neighbours 2..6 are worth as much, the others nothing.
  Rows positions;
  std::vector<float> mass(12, 0.0f);
  for (size_t i = 0; i < 12; ++i) positions.push_back(static_cast<uint32_t>(11 - i));
  mass[11 - 4] = 1.0f;
  // Recent: 10 and 11. Of 0, 1, 7, 8, 9 all are worth nothing.
  CHECK(Victims(SnapKv(7, 2), positions, mass, 5) == Rows{2, 3, 4, 10, 11});
  CHECK(Victims(SnapKv(6, 2), positions, mass, 6) == Rows{2, 3, 4, 9, 10, 11});
}

constexpr size_t kBudget = 24, kWindow = 8, kStep = 10, kLength = 200;

// A stream of random keys, values and weights, kept in `rows` and whole in `all`, beside what the
// mass should come to, by position.
struct Stream {
  explicit Stream(CacheType type)
      : kv(kLayout, {type, type}, kBudget + kStep), all(kLayout, {type, type}, kLength) {}

  static constexpr HeadLayout kLayout{2, 2, 5, 3};
  KvLayer kv, all;
  KeptRows rows{2, kBudget + kStep};
  std::map<uint32_t, double> expected[2];  // [head]: of each position kept
  std::mt19937 random{3};

  void AddChunk(size_t pos0) {
    const auto uniform = [&] { return static_cast<float>(random() % 1000) / 500.0f - 1.0f; };
    rows.BeginChunk();
    for (size_t t = 0; t < kStep; ++t) {
      std::vector<float> k(10), v(6);
      for (float& x : k) x = uniform();
      for (float& x : v) x = uniform();
      kv.WriteRow(rows.n_rows() + t, k.data(), v.data());
      all.WriteRow(pos0 + t, k.data(), v.data());
    }
    for (size_t head = 0; head < 2; ++head) {
      std::vector<float> weights(rows.n_rows() + kStep);
      for (float& w : weights) w = static_cast<float>(random() % 64) / 64.0f;
      rows.AddWeights(head, weights.data(), weights.size());
      for (size_t row = 0; row < weights.size(); ++row) {
        const uint32_t position = row < rows.n_rows()
                                      ? rows.positions(head)[row]
                                      : static_cast<uint32_t>(pos0 + row - rows.n_rows());
        expected[head][position] += static_cast<double>(weights[row]);
      }
    }
    rows.CommitChunk(pos0, kStep);
  }

  // Each row is what its position says; returns the positions.
  std::set<uint32_t> CheckHead(size_t head) {
    std::set<uint32_t> kept;
    size_t n_wrong = 0;
    for (size_t row = 0; row < rows.n_rows(); ++row) {
      const uint32_t position = rows.positions(head)[row];
      kept.insert(position);
      n_wrong += static_cast<double>(rows.mass(head)[row]) != expected[head].at(position);
      for (size_t i = 0; i < 5; ++i) {
        n_wrong += kv.head(head).KeyAt(row, i) != all.head(head).KeyAt(position, i);
      }
      for (size_t i = 0; i < 3; ++i) {
        n_wrong += kv.head(head).ValueAt(row, i) != all.head(head).ValueAt(position, i);
      }
    }
    CHECK(n_wrong == 0);
    CHECK(kept.size() == rows.n_rows());
    return kept;
  }
};

TEST_CASE(
    "KeptRows: after any number of evictions every row is the position it says, in each format") {
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    Stream s(type);
    for (size_t end = kStep; end <= kLength; end += kStep) {
      s.AddChunk(end - kStep);
      s.rows.Evict(H2o(kBudget, kWindow), kBudget, s.kv);
      CHECK(s.rows.n_rows() == std::min(end, kBudget));
      for (size_t head = 0; head < 2; ++head) {
        const std::set<uint32_t> kept = s.CheckHead(head);
        for (size_t i = 1; i <= std::min(kWindow, end); ++i) {
          CHECK(kept.count(static_cast<uint32_t>(end - i)) == 1);
        }
        // Nothing that went was worth more than what stayed, the recent ones apart.
        double best_gone = -1.0, worst_kept = 1e9;
        for (const auto& [position, mass] : s.expected[head]) {
          if (kept.count(position) == 0) best_gone = std::max(best_gone, mass);
          if (kept.count(position) == 1 && position + kWindow < end) {
            worst_kept = std::min(worst_kept, mass);
          }
        }
        CHECK(best_gone <= worst_kept);
        std::erase_if(s.expected[head], [&](const auto& e) { return kept.count(e.first) == 0; });
      }
    }
  }
}

TEST_CASE("KeptRows: an unfinished chunk leaves no mass") {
  KeptRows rows(1, 8);
  const std::vector<float> weights(4, 0.25f);
  rows.BeginChunk();
  rows.AddWeights(0, weights.data(), 4);
  rows.CommitChunk(0, 4);
  rows.BeginChunk();
  rows.AddWeights(0, weights.data(), 4);
  rows.BeginChunk();  // the one before was given up
  rows.AddWeights(0, weights.data(), 2);
  rows.CommitChunk(4, 1);
  CHECK(rows.mass(0)[0] == 0.5f);
  CHECK(rows.mass(0)[3] == 0.25f);
  CHECK(rows.mass(0)[4] == 0.0f);
}

}  // namespace
}  // namespace headlight
