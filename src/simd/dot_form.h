// DotForm: which exact way of multiplying 8-bit codes this module and engine can use. The second operand of WASM's
// relaxed integer dot is defined for 0..127 only; outside, engines differ, so the answer comes from a probe
// (simd/probe.h) and decides how 8-bit weights are stored. Every form gives the same integers.
#ifndef HEADLIGHT_SIMD_DOT_FORM_H_
#define HEADLIGHT_SIMD_DOT_FORM_H_

#include <cstdint>

namespace headlight {

enum class DotForm : uint8_t {
  kWide,      // no usable relaxed dot: operands widened to 16 bits (plain SIMD, native); stores w ^ 0x80
  kUnsigned,  // second operand read as exact unsigned 8 bit: stores w ^ 0x80, accumulators start at -128 * sum(x)
  kSigned,    // second operand read as signed 8 bit: stores w
  kSplit,     // second operand exact for 0..127 only: 8-bit weights as kWide, 4-bit weights by dots of byte pairs
};

// "wide", "unsigned", "signed", "split": as engine.info prints it.
const char* DotFormName(DotForm form);

}  // namespace headlight

#endif  // HEADLIGHT_SIMD_DOT_FORM_H_
