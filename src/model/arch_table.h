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
#include "position/rope.h"

namespace headlight {

// Every row is: RMSNorm before attention and before a SwiGLU feed-forward, grouped query heads, no
// biases.
struct ArchRow {
  const char* name;        // general.architecture, and the prefix of the family's keys
  RopeStyle rope_style;    // which pairs the converter of this family leaves in Q and K
  size_t unrotated_every;  // layers n, 2n, ... (counted from 1) have no rotation; 0: all rotate
  bool has_rope_factors;   // a rope_freqs.weight table divides the frequencies
};

std::span<const ArchRow> Architectures();
const ArchRow* FindArchitecture(std::string_view name);  // nullptr when not served

// Reads the key-values of a complete header (of the first shard, if the model is split). tied_head
// says that this file has no output.weight; rope.freq_factors are the loader's to fill. Throws
// Error(kBadModel) naming a key that is missing or out of range, Error(kUnsupported) naming an
// architecture or a key whose mechanism is not served.
ModelSpec BuildModelSpec(const GgufReader& header);

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_ARCH_TABLE_H_
