// TensorRole: what a weight is for, and sets of roles. A spec says with them which tensors its
// model has, and so which mechanisms: a layer with a kQNorm normalises its queries, one without an
// kAttentionNorm reads the residual stream as it is.
#ifndef HEADLIGHT_MODEL_TENSOR_ROLE_H_
#define HEADLIGHT_MODEL_TENSOR_ROLE_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace headlight {

// Names, shapes and places of all: tensor_table.cc.
enum class TensorRole : uint8_t {
  // Of the model.
  kEmbedding,
  kEmbeddingNorm,
  kEmbeddingNormBias,
  kPositions,  // learned absolute positions
  kHead,
  kHeadBias,
  kOutputNorm,
  kOutputNormBias,
  kRopeFactors,
  kRopeFactorsShort,  // in place of kRopeFactors up to the context of the first training
  kRopeFactorsLong,   // and beyond
  // Of a layer.
  kAttentionNorm,
  kAttentionNormBias,
  kQ,
  kQBias,
  kK,
  kKBias,
  kV,
  kVBias,
  kQNorm,
  kKNorm,
  kSinks,          // a logit a query head that has no value
  kAttentionGate,  // sigmoid gates of attention's output, one an element
  kHeadGate,       // or one a head
  kAttentionOutput,
  kAttentionOutputBias,
  kAttentionPostNorm,
  kFeedForwardNorm,
  kFeedForwardNormBias,
  kNormBetween,  // a kFeedForwardNorm whose name says what it follows
  kGate,
  kGateBias,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
  kFeedForwardPostNorm,
  // Multi-head latent attention.
  kQA,
  kQANorm,
  kQB,
  kKvA,
  kKvANorm,
  kKvB,  // keys and values of a latent, head by head; or apart:
  kKB,   // keys, transposed
  kVB,
  // A mixture of experts.
  kRouter,
  kRouterBias,
  kRouterChoiceBias,  // counts when experts are chosen, not in their weights
  kExpertGate,
  kExpertGateBias,
  kExpertUp,
  kExpertUpBias,
  kExpertDown,
  kExpertDownBias,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedRouter,  // a sigmoid gate of the shared expert
};
inline constexpr size_t kModelRoles = static_cast<size_t>(TensorRole::kAttentionNorm);
inline constexpr size_t kRoles = static_cast<size_t>(TensorRole::kSharedRouter) + 1;
static_assert(kRoles <= 64);

class TensorSet {
 public:
  constexpr TensorSet() = default;
  constexpr TensorSet(std::initializer_list<TensorRole> roles) {
    for (const TensorRole role : roles) bits_ |= Bit(role);
  }
  constexpr bool Has(TensorRole role) const { return (bits_ & Bit(role)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr void Add(TensorRole role) { bits_ |= Bit(role); }
  constexpr TensorSet operator|(TensorSet other) const { return TensorSet(bits_ | other.bits_); }
  constexpr TensorSet operator-(TensorSet other) const { return TensorSet(bits_ & ~other.bits_); }
  constexpr bool operator==(const TensorSet&) const = default;

 private:
  explicit constexpr TensorSet(uint64_t bits) : bits_(bits) {}
  static constexpr uint64_t Bit(TensorRole role) { return uint64_t{1} << static_cast<int>(role); }
  uint64_t bits_ = 0;
};

// Tensors that a model, or a layer, has always and those that it may have. Of a loaded model
// nothing is left open: what its files held is in `always`.
struct TensorUse {
  TensorSet always;
  TensorSet maybe;
  constexpr bool Has(TensorRole role) const { return always.Has(role) || maybe.Has(role); }
};

// Of a plain decoder: RMSNorm before attention and before a gated feed-forward, no biases.
inline constexpr TensorUse kPlainModelTensors = {{TensorRole::kEmbedding, TensorRole::kOutputNorm},
                                                 {TensorRole::kHead}};
inline constexpr TensorUse kPlainLayerTensors = {
    {TensorRole::kAttentionNorm, TensorRole::kQ, TensorRole::kK, TensorRole::kV,
     TensorRole::kAttentionOutput, TensorRole::kFeedForwardNorm, TensorRole::kGate, TensorRole::kUp,
     TensorRole::kDown},
    {}};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_TENSOR_ROLE_H_
