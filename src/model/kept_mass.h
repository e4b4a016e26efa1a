// What each key of a layer that chooses its rows has received of attention: the weights of a
// chunk's queries, taken from the kernels' capture and added up head by head. For decoder.cc.
#ifndef HEADLIGHT_MODEL_KEPT_MASS_H_
#define HEADLIGHT_MODEL_KEPT_MASS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/attention_capture.h"
#include "base/aligned.h"
#include "base/head_layout.h"
#include "kv/eviction.h"
#include "kv/kept_rows.h"

namespace headlight {

// What the buffers have to hold.
struct KeptMassSize {
  size_t n_q_heads = 0;   // of the widest layer
  size_t n_queries = 0;   // of a chunk whose weights count
  size_t max_tokens = 0;  // of a chunk
  size_t n_kv = 0;        // keys of a layer

  size_t stride() const { return RoundUp(n_kv, size_t{4}); }
};

class KeptMass {
 public:
  // Throws Error(kOutOfMemory).
  explicit KeptMass(const KeptMassSize& size);
  static uint64_t Bytes(const KeptMassSize& size);

  // The capture for a call with queries [first, first + n_tokens) of the chunk, of which those from
  // `counts_from` on count; null if none does. Valid until the next call.
  const AttentionCapture* Begin(size_t first, size_t n_tokens, size_t counts_from) noexcept;
  // Adds what it holds after the call to `rows`: query by query, head by head.
  void AddTo(const HeadLayout& layout, size_t n_kv, KeptRows& rows) const noexcept;

 private:
  KeptMassSize size_;
  std::vector<uint32_t> slot_of_head_, slot_of_row_;
  AlignedArray<float> weights_;  // [n_q_heads, n_queries, stride]
  AttentionCapture capture_;
  size_t n_counted_ = 0;
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_KEPT_MASS_H_
