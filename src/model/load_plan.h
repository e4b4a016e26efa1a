// What a shard's header means for the loader: a list of jobs in the order of the data section, and
// the bytes that their packed forms need. Pure arithmetic over the header; model_loader.cc carries
// it out.
#ifndef HEADLIGHT_MODEL_LOAD_PLAN_H_
#define HEADLIGHT_MODEL_LOAD_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gguf/gguf_reader.h"
#include "model/model.h"
#include "model/tensor_table.h"
#include "simd/dot_form.h"

namespace headlight {

// What a tensor gives to one place of the model.
struct LoadPart {
  TensorPlace place;
  PackedShape shape;  // matrices only: of each of n_matrices
  size_t n_matrices = 1;
  size_t n_floats = 0;  // vectors only
  // Where its packed form goes; unused by rotary factors, which live in the spec.
  size_t i_arena = 0;
  size_t arena_offset = 0;  // a multiple of kAlignment

  // Of the packed form.
  size_t bytes() const;
};

struct LoadJob {
  std::string name;
  TensorType type = TensorType::kF32;
  uint64_t offset = 0;  // within the data section
  uint64_t file_bytes = 0;
  std::vector<LoadPart> parts;  // in the order of its rows; none: skipped
};

struct LoadPlan {
  std::vector<LoadJob> jobs;        // by offset
  std::vector<size_t> arena_bytes;  // the blocks of memory to allocate
  size_t weights_bytes = 0;         // their sum
};

// `is_placed`, one entry a place, gains this shard's tensors. Throws Error(kUnsupported |
// kBadModel) naming the tensor, and Error(kOutOfMemory) if the packed weights cannot be addressed.
LoadPlan PlanShard(const ModelSpec& spec, const GgufReader& header, DotForm form,
                   std::vector<bool>& is_placed);

// Once all headers are known: the spec's tensors become those that are placed. Throws
// Error(kBadModel) naming the first one that a complete model must have and that is not.
void SettleTensors(const std::vector<bool>& is_placed, ModelSpec& spec);

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_LOAD_PLAN_H_
