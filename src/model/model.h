// A loaded model: its spec and its packed weights. Immutable and shared by every session.
#ifndef HEADLIGHT_MODEL_MODEL_H_
#define HEADLIGHT_MODEL_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned.h"
#include "model/model_spec.h"
#include "quant/packed.h"

namespace headlight {

struct LayerWeights {
  const float* attention_norm = nullptr;     // [d_model]
  PackedMatrix w_q;                          // [n_q_heads * d_qk, d_model]
  PackedMatrix w_k;                          // [n_kv_heads * d_qk, d_model]
  PackedMatrix w_v;                          // [n_kv_heads * d_v, d_model]
  PackedMatrix w_o;                          // [d_model, n_q_heads * d_v]
  const float* feed_forward_norm = nullptr;  // [d_model]
  PackedMatrix w_gate;                       // [d_ff, d_model]
  PackedMatrix w_up;                         // [d_ff, d_model]
  PackedMatrix w_down;                       // [d_model, d_ff]
};

struct Model {
  ModelSpec spec;
  PackedMatrix embedding;              // [vocab_size, d_model]
  PackedMatrix head;                   // [vocab_size, d_model]; the embedding itself when tied
  const float* output_norm = nullptr;  // [d_model]
  std::vector<LayerWeights> layers;
  std::vector<AlignedArray<uint8_t>> storage;  // what the pointers above point into
  size_t weights_bytes = 0;
  uint64_t content_hash = 0;  // ContentHash of its files, one after another: which model it is
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_MODEL_H_
