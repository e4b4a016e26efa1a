// The edits of one layer, on decoded copies of its attention matrices; model_edit.cc decides which
// and packs the copies again.
#ifndef HEADLIGHT_LAB_LAYER_EDIT_H_
#define HEADLIGHT_LAB_LAYER_EDIT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lab/weights.h"
#include "model/model_spec.h"

namespace headlight {

struct LayerCopy {
  LayerSpec spec;
  Weights w_q, w_k, w_v, w_o;
};

// All take valid arguments; a layer's spec and matrices change together.

// KV head g of n becomes the mean of its share of the old ones.
void PoolKvHeads(size_t n, LayerCopy& layer);

// Keeps the dimensions of `pairs`, ascending, in every head. Scores keep their size: the scale
// stays 1 / sqrt(d_qk) of the new width, and W_q is made longer by what that takes away.
// n_ctx: of the model's training, for scalings that ask for it.
void CutRotaryPairs(std::span<const uint32_t> pairs, size_t n_ctx, LayerCopy& layer);
// For layers without positions.
void CutQkProduct(size_t d_qk, LayerCopy& layer);
void CutVoProduct(size_t d_v, LayerCopy& layer);

// By query head of the layer: what becomes of it.
struct HeadFate {
  enum Kind : uint8_t { kStays, kPruned, kFixed } kind = kStays;
  const FixedPattern* pattern = nullptr;
};
// Heads that stay move together inside their KV group; groups that lost more than others are filled
// up with heads of zeros. Fixed heads' columns of W_o follow.
void RemoveHeads(const std::vector<HeadFate>& fates, LayerCopy& layer);
// For layers whose heads have more than matrices: columns of zeros in W_o, and nothing else.
void SilenceHeads(const std::vector<HeadFate>& fates, LayerCopy& layer);

}  // namespace headlight

#endif  // HEADLIGHT_LAB_LAYER_EDIT_H_
