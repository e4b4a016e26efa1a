// Which keys of an architecture are read, which mean nothing here, and which ask for a mechanism
// that is not served. For arch_table.cc.
#ifndef HEADLIGHT_MODEL_ARCH_KEYS_H_
#define HEADLIGHT_MODEL_ARCH_KEYS_H_

#include "gguf/gguf_reader.h"
#include "model/arch_table.h"

namespace headlight {

// Throws Error(kUnsupported) for the first key of the architecture that is neither read by
// BuildModelSpec, nor known to be without effect, nor at a value that switches its mechanism off.
void CheckArchitectureKeys(const GgufReader& header, const ArchRow& arch);

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_ARCH_KEYS_H_
