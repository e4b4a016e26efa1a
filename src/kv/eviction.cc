#include "kv/eviction.h"

#include <algorithm>

#include "base/sort.h"

namespace headlight {
namespace {

constexpr size_t kPoolReach = 2;  // neighbours on either side: SnapKV's kernel of five

// mass of rows in the order of their positions, each averaged with its neighbours; beyond the ends
// there is nothing.
std::vector<float> Pooled(const std::vector<uint32_t>& by_position, std::span<const float> mass) {
  std::vector<float> pooled(mass.size());
  for (size_t i = 0; i < by_position.size(); ++i) {
    const size_t begin = i < kPoolReach ? 0 : i - kPoolReach;
    const size_t end = std::min(i + kPoolReach + 1, by_position.size());
    float sum = 0.0f;
    for (size_t j = begin; j < end; ++j) sum += mass[by_position[j]];
    pooled[by_position[i]] = sum / (2 * kPoolReach + 1);
  }
  return pooled;
}

}  // namespace

std::vector<uint32_t> ChooseVictims(const EvictionOptions& options,
                                    std::span<const uint32_t> positions,
                                    std::span<const float> mass, size_t n_victims) {
  std::vector<uint32_t> rows(positions.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<uint32_t>(i);
  HeapSort(rows, [&](uint32_t a, uint32_t b) { return positions[a] < positions[b]; });
  rows.resize(rows.size() - std::min(rows.size(), options.window));
  std::vector<float> worth(mass.begin(), mass.end());
  if (options.policy == EvictionPolicy::kSnapKv) worth = Pooled(rows, mass);
  // NaN, which a model's overflow leaves, has no order.
  for (float& w : worth) w = w == w ? w : 0.0f;
  HeapSort(rows, [&](uint32_t a, uint32_t b) {
    return worth[a] != worth[b] ? worth[a] < worth[b] : positions[a] < positions[b];
  });
  rows.resize(std::min(rows.size(), n_victims));
  return rows;
}

}  // namespace headlight
