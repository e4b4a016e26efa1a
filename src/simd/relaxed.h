// The few operations that Highway (which has no relaxed SIMD) does better with WASM's relaxed
// instructions. In any other build MulAdd is Highway's; the plain WASM module has no 8-bit dot, and
// its kernels widen to 16 bits (DotForm::kWide). What the relaxed instructions really do depends on
// the engine: see simd/probe.h.
#ifndef HEADLIGHT_SIMD_RELAXED_H_
#define HEADLIGHT_SIMD_RELAXED_H_

#include "simd/simd.h"

namespace headlight {

using VecF32 = hn::Vec<F32x4>;
using VecI32 = hn::Vec<I32x4>;
using VecI16 = hn::Vec<I16x8>;
using VecI8 = hn::Vec<I8x16>;

#if defined(__wasm_relaxed_simd__)
inline constexpr bool kHasRelaxedDot = true;
#else
inline constexpr bool kHasRelaxedDot = false;
#endif

// Whether the kernels of every DotForm are compiled in: all but the plain WASM modules.
#if defined(__wasm_relaxed_simd__) || HWY_TARGET != HWY_WASM
#define HEADLIGHT_HAS_DOT4 1
#else
#define HEADLIGHT_HAS_DOT4 0
#endif

// The same pointer, as a value of its own: what is added to it later becomes the offset of a load,
// where LLVM would else regroup the sums and add at run time.
template <typename T>
HWY_INLINE const T* PinPointer(const T* p) {
#if HWY_TARGET == HWY_WASM
  asm volatile("" : "+r"(p));
#endif
  return p;
}

// A vector constant that is loaded once, where the call stands. V8 makes a vector literal anew, by
// three instructions, in every basic block that uses it.
template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadedConstant(D d, const T* constant) {
  return hn::Load(d, PinPointer(constant));
}

// a * b + c: rounded once where the relaxed instruction is fused, twice elsewhere. For float
// kernels that are faster by it; integer-dot kernels use a product and a sum, so that every module
// gives the same bits.
HWY_INLINE VecF32 MulAdd(VecF32 a, VecF32 b, VecF32 c) {
#if defined(__wasm_relaxed_simd__)
  return VecF32{reinterpret_cast<v128_t>(__builtin_wasm_relaxed_madd_f32x4(
      reinterpret_cast<__f32x4>(a.raw), reinterpret_cast<__f32x4>(b.raw),
      reinterpret_cast<__f32x4>(c.raw)))};
#else
  return hn::Add(hn::Mul(a, b), c);
#endif
}

#if defined(__wasm_relaxed_simd__)

namespace relaxed_detail {
typedef signed char I8Lanes __attribute__((__vector_size__(16)));
typedef int I32Lanes __attribute__((__vector_size__(16)));
}  // namespace relaxed_detail

// sum[i] + the dot of a's and b's bytes 4i..4i+3. Exact for a in -128..127 and b in 0..127; how
// other bytes of b are read, the probe has to find out.
HWY_INLINE VecI32 RelaxedDot4(VecI8 a, VecI8 b, VecI32 sum) {
  using namespace relaxed_detail;
  return VecI32{reinterpret_cast<v128_t>(__builtin_wasm_relaxed_dot_i8x16_i7x16_add_s_i32x4(
      reinterpret_cast<I8Lanes>(a.raw), reinterpret_cast<I8Lanes>(b.raw),
      reinterpret_cast<I32Lanes>(sum.raw)))};
}

// The dot of a's and b's bytes 2i and 2i+1, as int16. Exact for a in -128..127 and b in 0..127.
HWY_INLINE VecI16 RelaxedDot2(VecI8 a, VecI8 b) {
  using namespace relaxed_detail;
  return VecI16{reinterpret_cast<v128_t>(__builtin_wasm_relaxed_dot_i8x16_i7x16_s_i16x8(
      reinterpret_cast<I8Lanes>(a.raw), reinterpret_cast<I8Lanes>(b.raw)))};
}

// The two exact meanings of RelaxedDot4; which one holds is the probe's answer.
HWY_INLINE VecI32 UnsignedDot4(VecI8 a, VecI8 b, VecI32 sum) { return RelaxedDot4(a, b, sum); }
HWY_INLINE VecI32 SignedDot4(VecI8 a, VecI8 b, VecI32 sum) { return RelaxedDot4(a, b, sum); }

#elif HWY_TARGET != HWY_WASM

// Native stand-ins, one for each meaning, so that the kernels of every form can be tested on every
// machine.
HWY_INLINE VecI32 UnsignedDot4(VecI8 a, VecI8 b, VecI32 sum) {
  return hn::SumOfMulQuadAccumulate(I32x4(), hn::BitCast(U8x16(), b), a, sum);
}
HWY_INLINE VecI32 SignedDot4(VecI8 a, VecI8 b, VecI32 sum) {
  return hn::SumOfMulQuadAccumulate(I32x4(), a, b, sum);
}
HWY_INLINE VecI16 RelaxedDot2(VecI8 a, VecI8 b) {
  return hn::SatWidenMulPairwiseAdd(I16x8(), hn::BitCast(U8x16(), b), a);
}

#endif

}  // namespace headlight

#endif  // HEADLIGHT_SIMD_RELAXED_H_
