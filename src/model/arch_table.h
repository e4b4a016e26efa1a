// The architectures that the decoder serves, one row of data each, and the step from a file's
// key-values to a ModelSpec. A key that asks for a mechanism the decoder does not run is an error
// that names it: never silently other output.
#ifndef HEADLIGHT_MODEL_ARCH_TABLE_H_
#define HEADLIGHT_MODEL_ARCH_TABLE_H_

#include <cstddef>
#include <span>
#include <string_view>

#include "gguf/gguf_reader.h"
#include "model/model_spec.h"

namespace headlight {

// Which layers have the window that a file's attention.sliding_window gives.
struct WindowRow {
  size_t size = 0;           // where the file gives none; 0: then no window
  size_t period = 1;         // layers period - 1, 2 period - 1, ... have none; 1: all have it
  bool full_rotates = true;  // whether the others are rotated
  double windowed_freq_base = 0.0;  // of the layers with a window; 0: as the others
  bool windowed_is_scaled = true;   // whether rotary scaling is theirs too
};

// What a file does not say of a family. Every default is that of a plain decoder: RMSNorm before
// attention and before a SwiGLU feed-forward, grouped query heads, no biases.
struct ArchRow {
  const char* name;      // general.architecture, and the prefix of the family's keys
  RopeStyle rope_style;  // which pairs the converter of this family leaves in Q and K
  TensorUse layer = kPlainLayerTensors;
  TensorUse model = kPlainModelTensors;
  NormKind norm = NormKind::kRms;
  QkNorm qk_norm = QkNorm::kHead;
  Activation activation = Activation::kSilu;
  size_t unrotated_every = 0;  // layers n, 2n, ... (counted from 1) have no rotation; 0: all rotate
  WindowRow window = {};
  bool scales_embedding = false;   // by the root of d_model
  bool is_parallel = false;        // where the key use_parallel_residual does not say otherwise
  float attention_softcap = 0.0f;  // where the file gives none
  float logit_softcap = 0.0f;
  bool divides_logits = false;  // by logit_scale, which others multiply
  float alibi_max_bias = 0.0f;
  AddedPositions positions = AddedPositions::kNone;
  size_t n_wide_layers = 0;  // a model of so many layers scales scores by d_model / n_q_heads
  // What stands in place of kGate, kUp and kDown in layers with experts; empty: the family has
  // none.
  TensorUse experts = {};
  ExpertGating gating = ExpertGating::kSoftmax;  // where the file does not say
  bool experts_sum_to_one = false;               // where the file does not say
  bool is_latent = false;                        // latent attention
};

std::span<const ArchRow> Architectures();
const ArchRow* FindArchitecture(std::string_view name);  // nullptr when not served

// Reads the key-values of a complete header (of the first shard, if the model is split). tied_head
// says that this file has no output.weight; factors of rotary frequencies are the loader's to fill.
// Throws Error(kBadModel) naming a key that is missing or out of range, Error(kUnsupported) naming
// an architecture or a key whose mechanism is not served. (model_spec_builder.cc)
ModelSpec BuildModelSpec(const GgufReader& header);

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_ARCH_TABLE_H_
