#include "simd/probe.h"

#include <cstddef>
#include <cstdint>

#include "simd/relaxed.h"

namespace headlight {

#if defined(__wasm_relaxed_simd__)
namespace {

constexpr size_t kChain =
    8;  // dots into one accumulator, as the kernels do for a block of 32 columns
constexpr size_t kVectorBytes = 16;

struct Operands {
  alignas(16) int8_t a[kChain * kVectorBytes];
  alignas(16) int8_t b[kChain * kVectorBytes];
  alignas(16) int32_t sum[4];
};

// What a second operand above 127 can mean.
struct Semantics {
  bool defined_exact = true;  // b in 0..127: the part that the specification defines, for both dots
  bool unsigned_exact = true;  // b read as 0..255, no saturation
  bool signed_exact = true;    // b read as -128..127
};

// Not inlined, and behind volatile pointers: an engine or compiler that folds constants must not
// answer instead of the instruction that the kernels will run.
__attribute__((noinline)) void ChainedDots(const Operands* operands, int32_t* out) {
  const I8x16 d8;
  const I32x4 d32;
  VecI32 sum = hn::Load(d32, operands->sum);
  for (size_t i = 0; i < kChain; ++i) {
    sum = RelaxedDot4(hn::Load(d8, operands->a + i * kVectorBytes),
                      hn::Load(d8, operands->b + i * kVectorBytes), sum);
  }
  hn::Store(sum, d32, out);
}

// Whether the dots of pairs of the first vectors are exact; b in 0..127.
__attribute__((noinline)) bool PairsExact(const Operands* operands) {
  alignas(16) int16_t out[8];
  const I8x16 d8;
  hn::Store(RelaxedDot2(hn::Load(d8, operands->a), hn::Load(d8, operands->b)), I16x8(), out);
  bool exact = true;
  for (size_t i = 0; i < 8; ++i) {
    const int expected =
        operands->a[2 * i] * operands->b[2 * i] + operands->a[2 * i + 1] * operands->b[2 * i + 1];
    exact &= out[i] == expected;
  }
  return exact;
}

void Check(const Operands& operands, bool is_defined, Semantics& semantics) {
  const Operands* volatile hidden = &operands;
  alignas(16) int32_t out[4];
  int32_t* volatile hidden_out = out;
  ChainedDots(hidden, hidden_out);
  if (is_defined && !PairsExact(hidden)) semantics.defined_exact = false;
  for (size_t lane = 0; lane < 4; ++lane) {
    int32_t with_unsigned = operands.sum[lane];
    int32_t with_signed = operands.sum[lane];
    for (size_t i = 0; i < kChain; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        const size_t at = i * kVectorBytes + lane * 4 + j;
        with_unsigned += operands.a[at] * static_cast<uint8_t>(operands.b[at]);
        with_signed += operands.a[at] * operands.b[at];
      }
    }
    if (out[lane] != with_unsigned) semantics.unsigned_exact = false;
    if (out[lane] != with_signed) semantics.signed_exact = false;
    if (is_defined && out[lane] != with_signed) semantics.defined_exact = false;
  }
}

// Numerical Recipes' 32-bit generator: any fixed sequence that covers the bytes will do.
uint32_t NextRandom(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return state >> 16;
}

// Fills a with bytes of both signs and b with bytes under `mask`; now and then an extreme one.
void Fill(uint32_t& state, uint8_t mask, Operands& operands) {
  constexpr uint8_t kExtremes[] = {0x80, 0x7F, 0xFF, 0x00, 0x81, 0x01, 0xC8, 0x40};
  const bool extreme = NextRandom(state) % 4 == 0;
  for (size_t i = 0; i < kChain * kVectorBytes; ++i) {
    const uint32_t a = NextRandom(state);
    const uint32_t b = NextRandom(state);
    operands.a[i] = static_cast<int8_t>(extreme ? kExtremes[a % 8] : a);
    operands.b[i] = static_cast<int8_t>((extreme ? kExtremes[b % 8] : b) & mask);
  }
  for (int32_t& sum : operands.sum) {
    sum = static_cast<int32_t>(NextRandom(state)) * 64 - (1 << 21);
  }
}

}  // namespace

ProbeResult ProbeDot() noexcept {
  Semantics semantics;
  Operands operands;
  // The case that tells most engines apart: 127 * 200 * 4 is 101600 exact, 65534 saturated by
  // pairs.
  for (size_t i = 0; i < kChain * kVectorBytes; ++i) {
    operands.a[i] = 127;
    operands.b[i] = static_cast<int8_t>(200);
  }
  for (int32_t& sum : operands.sum) sum = -1000;
  Check(operands, /*is_defined=*/false, semantics);
  // 2 * 256 chains of 8 vectors: 4096 random vectors, about 0.5 ms in optimised code.
  constexpr int kRounds = 256;
  uint32_t state = 20240229u;
  for (int round = 0; round < kRounds; ++round) {
    Fill(state, 0x7F, operands);
    Check(operands, /*is_defined=*/true, semantics);
    Fill(state, 0xFF, operands);
    Check(operands, /*is_defined=*/false, semantics);
  }
  ProbeResult result{DotForm::kWide, /*relaxed_build=*/true, semantics.defined_exact};
  if (!semantics.defined_exact) return result;
  result.form = semantics.unsigned_exact ? DotForm::kUnsigned
                : semantics.signed_exact ? DotForm::kSigned
                                         : DotForm::kSplit;
  return result;
}

#else

ProbeResult ProbeDot() noexcept { return ProbeResult{}; }

#endif

}  // namespace headlight
