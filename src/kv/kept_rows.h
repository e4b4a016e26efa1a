// The rows of a layer that gives keys up one by one (H2O, SnapKV): which position each row holds,
// head by head, and the attention it has received. A row that is given up is overwritten in place,
// so rows are in no order. Bookkeeping only; which rows go is a policy's choice (eviction.h), and
// the keys and values are the KvLayer's.
#ifndef HEADLIGHT_KV_KEPT_ROWS_H_
#define HEADLIGHT_KV_KEPT_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kv/eviction.h"

namespace headlight {

class KvLayer;

class KeptRows {
 public:
  // Room for `capacity` rows of each head. Throws std::bad_alloc.
  KeptRows(size_t n_kv_heads, size_t capacity);
  static size_t Bytes(size_t n_kv_heads, size_t capacity) {
    return n_kv_heads * capacity * (sizeof(uint32_t) + 2 * sizeof(float));
  }

  size_t n_rows() const { return n_rows_; }  // live, the same for every head
  // [n_rows] of one head.
  std::span<const uint32_t> positions(size_t kv_head) const;
  std::span<const float> mass(size_t kv_head) const;

  // A chunk begins: forgets what an unfinished one has received.
  void BeginChunk() noexcept;
  // weights[n] of one query for rows [0, n), the chunk's own included. Added row by row in the
  // order of the calls, so that a prompt and its tokens one by one give the same bits.
  void AddWeights(size_t kv_head, const float* weights, size_t n) noexcept;
  // The chunk is done: its n rows, behind the live ones, hold positions pos0, pos0 + 1, ...
  void CommitChunk(size_t pos0, size_t n) noexcept;
  // Forgets the mass of all rows: what comes next is what counts.
  void ClearMass() noexcept;
  // Gives rows up until n_keep are left in each head: those that options' policy values least.
  void Evict(const EvictionOptions& options, size_t n_keep, KvLayer& layer);
  void Clear() noexcept;

 private:
  size_t n_kv_heads_;
  size_t capacity_;
  size_t n_rows_ = 0;
  std::vector<uint32_t> positions_;  // [n_kv_heads, capacity]
  std::vector<float> mass_;          // [n_kv_heads, capacity] of finished chunks
  std::vector<float> chunk_mass_;    // [n_kv_heads, capacity] of the chunk at work
};

}  // namespace headlight

#endif  // HEADLIGHT_KV_KEPT_ROWS_H_
