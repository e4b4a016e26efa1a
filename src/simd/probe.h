// Finds out, in the loaded module on the engine that runs it, how the relaxed integer dot reads its
// second operand, and so which exact form the kernels use. Takes well under a millisecond; to be
// called once, before weights are packed.
#ifndef HEADLIGHT_SIMD_PROBE_H_
#define HEADLIGHT_SIMD_PROBE_H_

#include "simd/dot_form.h"

namespace headlight {

struct ProbeResult {
  DotForm form = DotForm::kWide;  // always exact in this module
  bool relaxed_build = false;     // whether the module has the relaxed dot at all
  // False in a relaxed build whose engine computes something that is none of the known semantics,
  // not even for the operands that the specification defines: the loader then takes the plain
  // module, which is faster than kWide here.
  bool relaxed_ok = false;
};

// Chained dots with accumulators that are not zero, operands of both signs and all extremes, read
// from memory that the compiler cannot see through. Plain and native builds answer kWide.
ProbeResult ProbeDot() noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_SIMD_PROBE_H_
