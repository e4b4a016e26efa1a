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

// Matrices of one shape, one after the other.
struct PackedStack {
  PackedShape shape;  // of each
  const uint8_t* data = nullptr;
  PackedMatrix at(size_t i) const { return {shape, data + i * shape.bytes}; }
};

// The weights of a norm; w null: no norm. b is null in most models.
struct NormWeights {
  const float* w = nullptr;
  const float* b = nullptr;
};

// What a model does not have is null.
struct LayerWeights {
  NormWeights attention_norm;  // [d_model]
  PackedMatrix w_q;            // [n_q_heads * d_qk, d_model]
  PackedMatrix w_k;            // [n_kv_heads * d_qk, d_model]
  PackedMatrix w_v;            // [n_kv_heads * d_v, d_model]
  const float* b_q = nullptr;
  const float* b_k = nullptr;
  const float* b_v = nullptr;
  NormWeights q_norm;  // see QkNorm
  NormWeights k_norm;
  const float* sinks = nullptr;        // [n_q_heads]
  PackedMatrix w_attention_gate;       // [n_q_heads * d_v, d_model]
  PackedMatrix w_head_gate;            // [n_q_heads, d_model]
  PackedMatrix w_o;                    // [d_model, n_q_heads * d_v]
  const float* b_o = nullptr;          // [d_model]
  NormWeights attention_post_norm;     // [d_model]
  NormWeights feed_forward_norm;       // [d_model]
  PackedMatrix w_gate;                 // [d_ff, d_model]
  PackedMatrix w_up;                   // [d_ff, d_model]
  PackedMatrix w_down;                 // [d_model, d_ff]
  const float* b_gate = nullptr;       // [d_ff]
  const float* b_up = nullptr;         // [d_ff]
  const float* b_down = nullptr;       // [d_model]
  NormWeights feed_forward_post_norm;  // [d_model]

  // Latent attention: w_q, or w_q_a and w_q_b; w_kv_b, or w_k_b and w_v_b.
  PackedMatrix w_q_a;     // [q_rank, d_model]
  NormWeights q_a_norm;   // [q_rank]
  PackedMatrix w_q_b;     // [n_q_heads * (d_nope + d_rope), q_rank]
  PackedMatrix w_kv_a;    // [rank + d_rope, d_model]
  NormWeights kv_a_norm;  // [rank]
  PackedMatrix w_kv_b;    // [n_q_heads * (d_nope + d_v), rank]: a head's keys, then its values
  PackedStack w_k_b;      // n_q_heads of [rank, d_nope]
  PackedStack w_v_b;      // n_q_heads of [d_v, rank]

  // Experts.
  PackedMatrix w_router;                   // [n, d_model]
  const float* b_router = nullptr;         // [n]
  const float* b_router_choice = nullptr;  // [n]
  PackedStack w_expert_gate;               // n of [d_ff, d_model]
  PackedStack w_expert_up;                 // n of [d_ff, d_model]
  PackedStack w_expert_down;               // n of [d_model, d_ff]
  const float* b_expert_gate = nullptr;    // [n, d_ff]
  const float* b_expert_up = nullptr;      // [n, d_ff]
  const float* b_expert_down = nullptr;    // [n, d_model]
  PackedMatrix w_shared_gate;              // [d_ff_shared, d_model]
  PackedMatrix w_shared_up;                // [d_ff_shared, d_model]
  PackedMatrix w_shared_down;              // [d_model, d_ff_shared]
  PackedMatrix w_shared_router;            // [1, d_model]
};

struct Model {
  ModelSpec spec;
  PackedMatrix embedding;            // [vocab_size, d_model]
  NormWeights embedding_norm;        // [d_model]
  PackedMatrix positions;            // [n_ctx_train, d_model]
  PackedMatrix head;                 // [vocab_size, d_model]; the embedding itself when tied
  const float* head_bias = nullptr;  // [vocab_size]
  NormWeights output_norm;           // [d_model]
  std::vector<LayerWeights> layers;
  std::vector<AlignedArray<uint8_t>> storage;  // what the pointers above point into
  std::shared_ptr<const Model> base;           // or into its storage, where this is an edited copy
  size_t weights_bytes = 0;
  uint64_t content_hash = 0;  // ContentHash of its files, one after another: which model it is
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_MODEL_H_
