// What a decoder allocates and what it works out once: strides and places of its buffers, attention
// specs, rotary tables. For decoder.cc.
#ifndef HEADLIGHT_MODEL_DECODER_PLAN_H_
#define HEADLIGHT_MODEL_DECODER_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/attention.h"
#include "base/aligned.h"
#include "model/model.h"
#include "position/rope.h"

namespace headlight {

// Row strides in floats, whole cache lines; 0 where no layer needs the buffer. d_model is the
// stride of x, h and branch.
struct DecoderStrides {
  size_t d_model = 0;
  size_t branch = 0;  // d_model or 0
  // Of attention.
  size_t q = 0, k = 0, v = 0, heads = 0, gate_heads = 0;
  // Of latent attention besides: the queries' latent, queries before they are absorbed, [c, k_rope]
  // of a token, the heads' values.
  size_t q_latent = 0, q_plain = 0, kv_latent = 0, head_values = 0;
  // Of the feed-forward.
  size_t d_ff = 0;
  // Of experts: the router's logits; rows that one expert reads, what it makes of them, and the
  // sum.
  size_t router = 0, expert = 0;

  size_t attention_floats() const {
    return q + k + v + heads + gate_heads + q_latent + q_plain + kv_latent + head_values;
  }
  size_t feed_forward_floats() const { return 2 * d_ff + router + 3 * expert; }
  // All buffers of one row. Attention and feed-forward share their memory: each is dead when the
  // other lives.
  size_t row_floats() const;
};

// Weights that a step of the decoder multiplies, as far as its parts allow: a whole layer of a
// model with 135e6 parameters, while one with 1e9 takes some fourteen steps a layer, each about as
// long.
inline constexpr size_t kStepWeights = size_t{4} << 20;

struct DecoderPlan {
  DecoderStrides strides;
  size_t widest_product = 0;  // columns of the widest x of a product
  HeadLayout widest_layout;
  size_t n_experts_used = 0;  // at most, by a token
};

// How latent attention is computed. Both cache the latent alone and give the same numbers but for
// rounding. kAbsorbed: in the space of the latent. kPlain: keys and values of every head are made
// anew from all cached latents in every layer; for checking, slow.
enum class LatentComputation : uint8_t { kAbsorbed, kPlain };

DecoderPlan PlanDecoder(const ModelSpec& spec, LatentComputation latent);

// Of a layer of latent attention, in the plain computation.
HeadLayout PlainLayout(const LayerSpec& layer);

// Keys and values of the layer at work, of all cached positions: the plain computation's.
struct PlainHeads {
  // layout: PlainLayout of the layers of latent attention, which are alike.
  PlainHeads(const HeadLayout& layout, size_t rank, size_t n_ctx);
  static size_t Bytes(const HeadLayout& layout, size_t rank, size_t n_ctx);

  KvLayer rows;
  AlignedArray<float> latent, keys, values;  // of one row
};
// The first layer of latent attention; null if there is none.
const LayerSpec* FindLatentLayer(const ModelSpec& spec);

// Floats of the buffers of a chunk; saturates.
size_t BufferFloats(const DecoderPlan& plan, size_t max_tokens);
// On wasm32 a sum or product of sizes must become an allocation that fails, not one that wraps
// around.
size_t ClampToSize(uint64_t n);

// The distinct rotary specs of the layers in order of appearance; layers with equal specs share a
// table.
std::vector<RopeSpec> DistinctRopeSpecs(const ModelSpec& spec);

// alibi_slopes: AlibiSlopes of the layer, or null.
AttentionSpec AttentionSpecOf(const LayerSpec& layer, const LayerWeights& weights,
                              const float* alibi_slopes, DotForm dot_form);

// Hands out the rows of one allocation, buffer after buffer.
class BufferPlacer {
 public:
  BufferPlacer(float* begin, size_t n_rows) : next_(begin), n_rows_(n_rows) {}
  // [n_rows, stride]; null for a stride of 0.
  float* Take(size_t stride) {
    if (stride == 0) return nullptr;
    float* taken = next_;
    next_ += n_rows_ * stride;
    return taken;
  }

 private:
  float* next_;
  size_t n_rows_;
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_DECODER_PLAN_H_
