// Changes of a loaded model's attention, made on copies: heads pruned or replaced by fixed
// patterns, KV heads pooled, widths cut, windows. The loaded model is never written to, so that
// undoing is dropping the copy; tensors that do not change are shared. What a change costs in
// quality is for the caller to measure (score.h).
#ifndef HEADLIGHT_LAB_MODEL_EDIT_H_
#define HEADLIGHT_LAB_MODEL_EDIT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "attention/fixed_pattern.h"
#include "model/model.h"

namespace headlight {

struct HeadId {
  size_t layer = 0;
  size_t head = 0;  // of the loaded model's query heads
  bool operator==(const HeadId&) const = default;
};

struct HeadFix {
  HeadId id;
  FixedPattern pattern;
};

// Carried out in the order of the fields. 0 leaves a number as it is.
struct ModelEdit {
  std::vector<size_t> layers;  // that the numbers below apply to; empty: all
  size_t n_kv_heads = 0;       // fewer KV heads, each the mean of neighbours: a divisor
  // Narrower queries and keys. Rotary layers keep the dimensions `kept_pairs` [n_layers, d_qk / 2]
  // of each head, pairs counted from the fastest, those that are not rotated last; layers without
  // positions keep the nearest product of W_q and W_k.
  size_t d_qk = 0;
  std::vector<uint32_t> kept_pairs;
  size_t d_v = 0;  // narrower values: the nearest product of W_o and W_v of each KV head
  size_t window = 0;
  size_t n_sinks = 0;
  std::vector<HeadId> pruned;  // leave nothing in the residual stream
  std::vector<HeadFix> fixed;  // blend values by a pattern, without query and key
};

// Throws Error(kBadOption) naming the number or the head that the model cannot have,
// Error(kUnsupported) for a layer with a mechanism that the edit does not know,
// Error(kOutOfMemory).
std::shared_ptr<const Model> EditModel(std::shared_ptr<const Model> model, const ModelEdit& edit);

}  // namespace headlight

#endif  // HEADLIGHT_LAB_MODEL_EDIT_H_
