// DotForm: which exact way of multiplying 8-bit codes this module and engine can use. The second
// operand of WASM's relaxed integer dot is defined for 0..127 only; outside, engines differ, so the
// answer comes from a probe (simd/probe.h) and decides how 8-bit weights are stored. Every form
// gives the same integers.
#ifndef HEADLIGHT_SIMD_DOT_FORM_H_
#define HEADLIGHT_SIMD_DOT_FORM_H_

#include <cstdint>

namespace headlight {

enum class DotForm : uint8_t {
  // No usable relaxed dot (plain SIMD, native): operands are widened to 16 bits. Stores w ^ 0x80.
  kWide,
  // The second operand is read as exact unsigned 8 bit. Stores w ^ 0x80; sums start at -128 sum(x).
  kUnsigned,
  // The second operand is read as signed 8 bit. Stores w.
  kSigned,
  // The second operand is exact for 0..127 only (x86 without VNNI). 8-bit weights are treated as in
  // kWide, faster there than two dots with x split by sign; 4-bit weights by dots of byte pairs.
  kSplit,
};

// "wide", "unsigned", "signed", "split": as engine.info prints it.
const char* DotFormName(DotForm form);

}  // namespace headlight

#endif  // HEADLIGHT_SIMD_DOT_FORM_H_
