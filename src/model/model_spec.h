// ModelSpec and LayerSpec: plain data that say everything the decoder needs to know of a model.
// arch_table.h turns a file's key-values into them; the decoder is the only forward pass and reads
// nothing else.
#ifndef HEADLIGHT_MODEL_MODEL_SPEC_H_
#define HEADLIGHT_MODEL_MODEL_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/fixed_pattern.h"
#include "base/head_layout.h"
#include "kernels/activation.h"
#include "model/tensor_role.h"
#include "position/rope.h"

namespace headlight {

// Every norm of a model is of one kind.
enum class NormKind : uint8_t {
  kRms,    // x / sqrt(mean(x^2) + eps) * w
  kLayer,  // (x - mean(x)) / sqrt(variance(x) + eps) * w + b
};

// What is normalised as one, where there are kQNorm and kKNorm. Before rotation.
enum class QkNorm : uint8_t {
  kHead,     // each head, with weights [d_qk] that all heads share
  kOwnHead,  // each head, with weights of its own: [n_heads, d_qk]
  kRow,      // all heads of a token at once, weights [n_heads * d_qk]
};

// kPlain: down(act(up(x))). kGated: down(act(gate(x)) * up(x)). kExperts: some of many gated ones.
enum class FeedForwardKind : uint8_t { kNone, kPlain, kGated, kExperts };

enum class ExpertGating : uint8_t {
  kSoftmax,        // of all experts' logits
  kSigmoid,        // of each logit
  kChosenSoftmax,  // of the chosen experts' logits alone
};

// A mixture of experts: a router chooses n_used of n gated feed-forwards for each token and blends
// them.
struct ExpertsSpec {
  size_t n = 0;
  size_t n_used = 0;
  size_t d_ff = 0;         // of an expert
  size_t d_ff_shared = 0;  // of the experts that every token uses, taken as one; 0: none
  ExpertGating gating = ExpertGating::kSoftmax;
  bool sums_to_one = false;  // the weights of the chosen are divided by their sum
  float scale = 1.0f;        // and then multiplied by this
};

// Multi-head latent attention (arXiv 2405.04434). A token's keys and values are products of a
// latent c [rank] and a rotated part [d_rope] that all heads share; those two are what the cache
// holds. LayerSpec::heads is then the layout of the absorbed computation: {n_q_heads, 1, rank +
// d_rope, rank}.
struct LatentSpec {
  size_t rank = 0;    // of the latent; 0: another kind of attention
  size_t q_rank = 0;  // of the queries' own latent; 0: queries come from x
  size_t d_nope = 0;  // the part of a query or key that is not rotated
  size_t d_rope = 0;
  size_t d_v = 0;  // width of a head's value

  constexpr size_t d_qk() const { return d_nope + d_rope; }
};

// A query head whose weights do not depend on the input: it has no query and reads no keys.
struct FixedHead {
  size_t kv_head = 0;
  FixedPattern pattern;
};

struct LayerSpec {
  HeadLayout heads;
  LatentSpec latent;
  RopeSpec rope;
  TensorUse tensors = kPlainLayerTensors;
  float attention_scale = 0.0f;    // 1 / sqrt(d_qk) unless the family says otherwise
  float attention_softcap = 0.0f;  // 0: none
  size_t window = 0;               // sliding window in keys; 0: none
  size_t n_sinks = 0;              // with a window: first keys that stay admitted
  float alibi_max_bias = 0.0f;     // ALiBi: slopes from 2^(-bias / n_q_heads) on; 0: none
  float qkv_clamp = 0.0f;          // Q, K and V are cut to +- this after their bias; 0: none
  QkNorm qk_norm = QkNorm::kHead;
  // Their outputs [fixed_heads, d_v] follow those of `heads`, which does not count them.
  std::vector<FixedHead> fixed_heads;
  // Both branches read the layer's input and are added at once. Without a kFeedForwardNorm the
  // feed-forward then reads what attention reads.
  bool is_parallel = false;
  float residual_scale = 1.0f;  // of what each branch adds
  FeedForwardKind feed_forward = FeedForwardKind::kGated;
  Activation activation = Activation::kSilu;
  size_t d_ff = 0;
  ExpertsSpec experts;

  // Of a row that the output projection takes.
  size_t out_width() const { return heads.out_width() + fixed_heads.size() * heads.d_v; }
};

// Positions that are added to the embeddings.
enum class AddedPositions : uint8_t { kNone, kLearned, kSinusoidal };

struct ModelSpec {
  std::string architecture;  // as the file names it, for people only
  std::string name;
  size_t d_model = 0;
  size_t vocab_size = 0;
  size_t n_ctx_train = 0;  // rows of the table of learned positions, too
  NormKind norm = NormKind::kRms;
  float norm_eps = 1e-5f;
  float embedding_scale = 1.0f;
  AddedPositions positions = AddedPositions::kNone;
  float logit_scale = 1.0f;    // multiplies the logits
  float logit_softcap = 0.0f;  // then l = cap * tanh(l / cap); 0: none
  bool tied_head = false;      // the head is the embedding table, stored once
  TensorUse tensors = kPlainModelTensors;
  std::vector<LayerSpec> layers;
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_MODEL_SPEC_H_
