// ModelSpec and LayerSpec: plain data that say everything the decoder needs to know of a model.
// arch_table.h turns a file's key-values into them; decoder.cc is the only forward pass and reads
// nothing else. No code here.
#ifndef HEADLIGHT_MODEL_MODEL_SPEC_H_
#define HEADLIGHT_MODEL_MODEL_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/head_layout.h"
#include "position/rope.h"

namespace headlight {

enum class FeedForwardKind : uint8_t { kNone, kGated };

struct LayerSpec {
  HeadLayout heads;
  RopeSpec rope;
  float attention_scale = 0.0f;    // 1 / sqrt(d_qk) unless the family says otherwise
  float attention_softcap = 0.0f;  // 0: none
  size_t window = 0;               // sliding window in keys; 0: none
  FeedForwardKind feed_forward = FeedForwardKind::kGated;
  size_t d_ff = 0;
};

struct ModelSpec {
  std::string architecture;  // as the file names it, for people only
  std::string name;
  size_t d_model = 0;
  size_t vocab_size = 0;
  size_t n_ctx_train = 0;
  float norm_eps = 1e-5f;
  float embedding_scale = 1.0f;
  bool tied_head = false;  // the head is the embedding table, stored once
  std::vector<LayerSpec> layers;
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_MODEL_SPEC_H_
