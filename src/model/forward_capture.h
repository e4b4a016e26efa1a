// What of a forward pass is kept to be looked at: scores or weights of chosen layers, query heads
// and positions, what those heads put out, how long the residual stream is, and what the model
// would say after a layer. The decoder fills it; memory is what the caller chose: heads x rows x
// n_kv for each layer.
#ifndef HEADLIGHT_MODEL_FORWARD_CAPTURE_H_
#define HEADLIGHT_MODEL_FORWARD_CAPTURE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/attention_capture.h"
#include "model/model_spec.h"

namespace headlight {

// Lists are in any order and name nothing twice.
struct CaptureOptions {
  CaptureStage stage = CaptureStage::kWeights;
  std::vector<uint32_t> layers;  // whose attention
  bool all_heads = true;
  std::vector<uint32_t> heads;        // query heads, of each of those layers; unless all_heads
  bool head_outputs = false;          // of the same layers and heads
  bool residual_norms = false;        // of all layers
  std::vector<uint32_t> lens_layers;  // after which the final norm and the head are applied
};

// Throws Error(kBadOption) for an index that is not below n, which is `what`, or is given twice.
void CheckIndices(const std::string& option, const std::vector<uint32_t>& indices, size_t n,
                  const char* what);

// Throws Error(kBadOption) naming the layer or head that is not there or is given twice.
void CheckCapture(const ModelSpec& spec, const CaptureOptions& options);

struct ForwardCapture {
  struct Layer {
    uint32_t layer = 0;
    std::vector<uint32_t> heads;
    std::vector<uint32_t> slot_of_head;  // [n_q_heads]
    size_t d_v = 0;
    std::vector<float> attention;  // [heads, rows, n_kv]
    std::vector<float> sink_mass;  // [heads, rows]
    std::vector<float>
        head_outputs;  // [heads, rows, d_v], gated if the layer gates them, before W_O; or empty
  };
  struct Lens {
    uint32_t layer = 0;
    std::vector<float> logits;  // [rows, vocab_size]
  };

  // options passed CheckCapture; positions: rows, distinct, below n_kv; n_kv: positions that are
  // there when the pass is done. Throws Error(kOutOfMemory).
  ForwardCapture(const ModelSpec& spec, const CaptureOptions& options,
                 std::vector<uint32_t> positions, size_t n_kv);

  size_t n_rows() const { return positions.size(); }
  uint32_t first_position() const;
  // Null where nothing of the layer is captured.
  Layer* FindLayer(size_t layer);
  Lens* FindLens(size_t layer);
  // For a call whose first query stands at pos0.
  AttentionCapture AttentionOf(Layer& layer, size_t pos0);

  CaptureStage stage;
  size_t n_kv;
  std::vector<uint32_t> positions;
  std::vector<uint32_t> slot_of_position;  // [n_kv] row, or AttentionCapture::kNone
  std::vector<Layer> layers;
  // [n_layers + 1, rows] |x|, the Euclidean norm: of the embedding, then after each layer. Or
  // empty.
  std::vector<float> residual_norms;
  std::vector<Lens> lenses;
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_FORWARD_CAPTURE_H_
