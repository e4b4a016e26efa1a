// Attention over a KV cache: what is computed (AttentionSpec, AttentionArgs) and the three kernels
// that compute it. attention_reference.cc is the definition; attention_tiled.cc (prefill) and
// attention_decode.cc (one query) are fast.
#ifndef HEADLIGHT_ATTENTION_ATTENTION_H_
#define HEADLIGHT_ATTENTION_ATTENTION_H_

#include <cstddef>

#include "attention/attention_capture.h"
#include "base/aligned.h"
#include "base/head_layout.h"
#include "base/parallel.h"
#include "kv/kv_cache.h"
#include "simd/dot_form.h"

namespace headlight {

struct AttentionSpec {
  HeadLayout layout;
  float scale = 0.0f;  // multiplies q.k; usually 1 / sqrt(d_qk)
  size_t window = 0;   // W keys (q - k < W); 0: all
  // With a window: keys below this position stay admitted when the window has left them behind.
  size_t n_sinks = 0;
  float softcap = 0.0f;  // s = cap * tanh(s / cap) after scaling; 0: none
  bool causal = true;    // keys up to the query's own position
  // [n_q_heads] or null. ALiBi (arXiv 2108.12409): s -= slope * |query position - key position|.
  const float* alibi_slopes = nullptr;
  // [n_q_heads] or null. Learned sinks: a logit that takes part in the row's softmax and has no
  // value, so that the weights of the keys sum to less than one.
  const float* sink_logits = nullptr;
  // How the kernels multiply the codes of an int8 cache: one that is exact in this module
  // (simd/probe.h). All give the same bits.
  DotForm dot_form = DotForm::kWide;
};

// Throws Error(kBadOption) naming the field that no kernel can honour. Kernels take specs that
// passed.
void CheckAttentionSpec(const AttentionSpec& spec);

// What is added to the scores, after scale and softcap: mask value [head][t][key] at values + head
// * head_stride + t * row_stride + key, for keys in [0, n_kv). -inf excludes a key, whatever it
// scored; tiles of keys that no row admits are not computed.
struct AttentionMask {
  const float* values = nullptr;  // null: nothing is added
  size_t head_stride = 0;         // 0: the same for all query heads
  size_t row_stride = 0;          // 0: the same for all query rows (padding)
};

// Query row t stands at position pos0 + t and attends rows [0, n_kv) of the cache that the mask
// admits, numbered by position. A fully masked row gives zeros.
struct AttentionArgs {
  const float* q = nullptr;  // [n_tokens, n_q_heads, d_qk] rotated, rows q_stride elements apart
  size_t q_stride = 0;
  size_t n_tokens = 0;
  size_t pos0 = 0;
  const KvLayer* kv = nullptr;
  size_t n_kv = 0;       // live rows, those of this call included
  float* out = nullptr;  // [n_tokens, n_q_heads, d_v], rows out_stride elements apart
  size_t out_stride = 0;
  // [n_tokens, n_q_heads, d_qk], rows q_stride elements apart, or null. With a window: how rows at
  // positions from n_sinks + window on meet the sinks, each query rotated as if the keys between
  // had never been. At most kMaxSinks of them (kv/eviction.h).
  const float* q_sinks = nullptr;
  // Prefix-LM: queries below this position attend every key below it, causal or not.
  size_t n_prefix = 0;
  AttentionMask mask = {};
  const AttentionCapture* capture = nullptr;  // what to keep of scores or weights; null: nothing
};

// Both fast kernels take keys in chunks of this many, at multiples of it, and merge the chunks in
// order; within a chunk they add in the same order. So a row's result is the same bit for bit
// whichever kernel computed it, with any number of threads, alone or among others. 8-bit
// activations need that: one code rounded the other way grows, layer by layer, to the size of the
// rounding noise itself (1 % of the logits), and a prompt would differ from the same tokens one by
// one.
inline constexpr size_t kDecodeChunk = 256;

// Scratch for the fast kernels, allocated once. Each thread has room for one query block and one
// key tile (prefill) or the scores of one chunk of keys (decode): independent of the context. The
// partial (max, sum, acc) of decode grows by n_q_heads * (2 + d_v) floats a chunk of kDecodeChunk
// keys.
class AttentionWorkspace {
 public:
  // For every layout that exceeds `widest` in no field, contexts up to n_ctx and pools up to
  // n_threads. Throws Error(kOutOfMemory).
  AttentionWorkspace(const HeadLayout& widest, size_t n_ctx, size_t n_threads);
  // Exactly what the constructor allocates.
  static size_t Bytes(const HeadLayout& widest, size_t n_ctx, size_t n_threads);

  size_t bytes() const { return floats_.bytes(); }
  // 64-byte aligned scratch of one thread, and the partial results that all share. For the kernels.
  float* thread_scratch(size_t thread) { return floats_.data() + thread * thread_floats_; }
  float* partials() { return floats_.data() + n_threads_ * thread_floats_; }

 private:
  size_t n_threads_;
  size_t thread_floats_;
  AlignedArray<float> floats_;
};

// Two passes, double precision: the definition. Slow, and the only one that allocates: may throw
// std::bad_alloc. int8 keys meet queries rounded to 8 bits (attention_codes.h), as in the kernels;
// that the kernels round weights to 14 bits before int8 values is not part of it.
void AttentionReference(const AttentionSpec& spec, const AttentionArgs& args);
// Query block x key tile with online softmax; masked tiles are skipped.
void AttentionTiled(const AttentionSpec& spec, const AttentionArgs& args,
                    AttentionWorkspace& workspace, ThreadPool& pool) noexcept;
// n_tokens == 1; the query heads of a KV head share each loaded key.
void AttentionDecode(const AttentionSpec& spec, const AttentionArgs& args,
                     AttentionWorkspace& workspace, ThreadPool& pool) noexcept;
// Picks decode for one query, tiled otherwise.
void Attend(const AttentionSpec& spec, const AttentionArgs& args, AttentionWorkspace& workspace,
            ThreadPool& pool) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_ATTENTION_H_
