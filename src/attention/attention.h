// Attention over a KV cache: what is computed (AttentionSpec, AttentionArgs) and the three kernels that compute it.
// attention_reference.cc is the definition; attention_tiled.cc (prefill) and attention_decode.cc (one query) are fast.
#ifndef HEADLIGHT_ATTENTION_ATTENTION_H_
#define HEADLIGHT_ATTENTION_ATTENTION_H_

#include <cstddef>

#include "base/aligned.h"
#include "base/head_layout.h"
#include "base/parallel.h"
#include "kv/kv_cache.h"

namespace headlight {

struct AttentionSpec {
  HeadLayout layout;
  float scale = 0.0f;   // multiplies q.k; usually 1 / sqrt(d_qk)
  size_t window = 0;    // W keys (q - k < W); 0: all
  float softcap = 0.0f; // s = cap * tanh(s / cap) after scaling; 0: none
  bool causal = true;
};

// Query row t stands at position pos0 + t and attends rows [0, n_kv) of the cache that the mask admits; row r holds
// position r. A fully masked row gives zeros.
struct AttentionArgs {
  const float* q = nullptr;   // [n_tokens, n_q_heads, d_qk] rotated, rows q_stride elements apart
  size_t q_stride = 0;
  size_t n_tokens = 0;
  size_t pos0 = 0;
  const KvLayer* kv = nullptr;
  size_t n_kv = 0;            // live rows, those of this call included
  float* out = nullptr;       // [n_tokens, n_q_heads, d_v], rows out_stride elements apart
  size_t out_stride = 0;
};

// Scratch for the fast kernels, sized once: O(n_threads * tile) for prefill, and for decode the partial
// (max, sum, acc) of each chunk of keys.
class AttentionWorkspace {
 public:
  AttentionWorkspace(const HeadLayout& widest, size_t n_ctx, size_t n_threads);
  static size_t Bytes(const HeadLayout& widest, size_t n_ctx, size_t n_threads);
  float* data() { return floats_.data(); }
  size_t size() const { return floats_.size(); }

 private:
  AlignedArray<float> floats_;
};

// Keys of a decode chunk; chunks are merged in order, so the thread count never changes a bit.
inline constexpr size_t kDecodeChunk = 256;

// Two passes, double precision: the definition.
void AttentionReference(const AttentionSpec& spec, const AttentionArgs& args) noexcept;
// Query block x key tile with online softmax; masked tiles are skipped.
void AttentionTiled(const AttentionSpec& spec, const AttentionArgs& args, AttentionWorkspace& workspace,
                    ThreadPool& pool) noexcept;
// n_tokens == 1; the query heads of a KV head share each loaded key.
void AttentionDecode(const AttentionSpec& spec, const AttentionArgs& args, AttentionWorkspace& workspace,
                     ThreadPool& pool) noexcept;
// Picks decode for one query, tiled otherwise.
void Attend(const AttentionSpec& spec, const AttentionArgs& args, AttentionWorkspace& workspace,
            ThreadPool& pool) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_ATTENTION_H_
