// What may look on while a layer runs: the lab, which shows each tensor of a block and calibrates
// over them. The decoder pays one comparison a tensor where nobody looks.
#ifndef HEADLIGHT_MODEL_LAYER_OBSERVER_H_
#define HEADLIGHT_MODEL_LAYER_OBSERVER_H_

#include <cstddef>
#include <cstdint>

namespace headlight {

// In the order in which they are shown.
enum class LayerTensor : uint8_t {
  kInput,         // [d_model] the residual stream
  kNorm,          // [d_model] its normalised copy
  kQ,             // [n_q_heads, d_qk]
  kK,             // [n_kv_heads, d_qk]
  kV,             // [n_kv_heads, d_v]
  kQRotated,      // [n_q_heads, d_qk]
  kKRotated,      // [n_kv_heads, d_qk], as the cache gets them
  kHeads,         // [n_q_heads + fixed heads, d_v] the heads' outputs, which are the concatenation
  kAttentionOut,  // [d_model]
  kAfterAttention,   // [d_model] the residual stream
  kFeedForwardNorm,  // [d_model]
  kGate,             // [d_ff]
  kUp,               // [d_ff]
  kActivated,        // [d_ff]
  kDown,             // [d_model]
  kOutput,           // [d_model] the residual stream
};
inline constexpr size_t kNLayerTensors = 16;

// Row t of the chunk is at data + t * stride.
struct LayerRows {
  const float* data;  // [n_rows, n_cols] float32
  size_t n_rows;
  size_t n_cols;
  size_t stride;  // elements
};

class LayerObserver {
 public:
  virtual ~LayerObserver() = default;
  // The rows are valid during the call.
  virtual void OnRows(size_t layer, LayerTensor what, const LayerRows& rows) noexcept = 0;
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_LAYER_OBSERVER_H_
