#include "kv/kept_rows.h"

#include <algorithm>

#include "kv/kv_cache.h"

namespace headlight {

KeptRows::KeptRows(size_t n_kv_heads, size_t capacity)
    : n_kv_heads_(n_kv_heads),
      capacity_(capacity),
      positions_(n_kv_heads * capacity),
      mass_(n_kv_heads * capacity),
      chunk_mass_(n_kv_heads * capacity) {}

std::span<const uint32_t> KeptRows::positions(size_t kv_head) const {
  return std::span(positions_).subspan(kv_head * capacity_, n_rows_);
}

std::span<const float> KeptRows::mass(size_t kv_head) const {
  return std::span(mass_).subspan(kv_head * capacity_, n_rows_);
}

// What the chunk adds up is the total so far: sums go on in one order, wherever chunks begin.
void KeptRows::BeginChunk() noexcept {
  chunk_mass_ = mass_;
  for (size_t head = 0; head < n_kv_heads_; ++head) {
    const auto first = chunk_mass_.begin() + static_cast<std::ptrdiff_t>(head * capacity_);
    std::fill(first + static_cast<std::ptrdiff_t>(n_rows_),
              first + static_cast<std::ptrdiff_t>(capacity_), 0.0f);
  }
}

void KeptRows::AddWeights(size_t kv_head, const float* weights, size_t n) noexcept {
  float* mass = chunk_mass_.data() + kv_head * capacity_;
  for (size_t row = 0; row < n; ++row) mass[row] += weights[row];
}

void KeptRows::CommitChunk(size_t pos0, size_t n) noexcept {
  mass_.swap(chunk_mass_);
  for (size_t head = 0; head < n_kv_heads_; ++head) {
    for (size_t i = 0; i < n; ++i) {
      positions_[head * capacity_ + n_rows_ + i] = static_cast<uint32_t>(pos0 + i);
    }
  }
  n_rows_ += n;
}

void KeptRows::ClearMass() noexcept { std::fill(mass_.begin(), mass_.end(), 0.0f); }

void KeptRows::Clear() noexcept {
  n_rows_ = 0;
  ClearMass();
}

void KeptRows::Evict(const EvictionOptions& options, size_t n_keep, KvLayer& layer) {
  if (n_rows_ <= n_keep) return;
  for (size_t head = 0; head < n_kv_heads_; ++head) {
    const std::vector<uint32_t> victims =
        ChooseVictims(options, positions(head), mass(head), n_rows_ - n_keep);
    std::vector<bool> goes(n_rows_);
    for (const uint32_t row : victims) goes[row] = true;
    // Rows past n_keep that stay move into the places of those before it that go.
    size_t from = n_keep;
    for (size_t to = 0; to < n_keep; ++to) {
      if (!goes[to]) continue;
      while (goes[from]) ++from;
      layer.MoveRow(head, from, to);
      positions_[head * capacity_ + to] = positions_[head * capacity_ + from];
      mass_[head * capacity_ + to] = mass_[head * capacity_ + from];
      ++from;
    }
  }
  n_rows_ = n_keep;
}

}  // namespace headlight
