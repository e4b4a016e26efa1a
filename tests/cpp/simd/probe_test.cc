// The probe, and the relaxed operations that it vouches for.
#include "simd/probe.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <random>

#include "simd/relaxed.h"

namespace headlight {
namespace {

TEST_CASE("ProbeDot: plain builds answer wide, relaxed builds an exact form, the same every time") {
  const ProbeResult result = ProbeDot();
  CHECK(result.relaxed_build == kHasRelaxedDot);
  if (!kHasRelaxedDot) {
    CHECK(result.form == DotForm::kWide);
    CHECK_FALSE(result.relaxed_ok);
  }
  CHECK((result.form == DotForm::kWide) == !result.relaxed_ok);
  for (int i = 0; i < 20; ++i) CHECK(ProbeDot().form == result.form);
  MESSAGE("form: " << std::string(DotFormName(result.form)));
}

TEST_CASE("DotFormName: four different names") {
  CHECK(std::strcmp(DotFormName(DotForm::kWide), "wide") == 0);
  CHECK(std::strcmp(DotFormName(DotForm::kUnsigned), "unsigned") == 0);
  CHECK(std::strcmp(DotFormName(DotForm::kSigned), "signed") == 0);
  CHECK(std::strcmp(DotFormName(DotForm::kSplit), "split") == 0);
}

TEST_CASE("MulAdd: one or two roundings of a * b + c, nothing else") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const F32x4 d;
  for (int i = 0; i < 1000; ++i) {
    const float a = normal(random), b = normal(random), c = normal(random);
    const float got = hn::GetLane(MulAdd(hn::Set(d, a), hn::Set(d, b), hn::Set(d, c)));
    const volatile float product = a * b;
    const float twice = product + c;
    const float once = static_cast<float>(static_cast<double>(a) * b + static_cast<double>(c));
    CHECK((got == twice || got == once));
  }
}

#if defined(__wasm_relaxed_simd__)
TEST_CASE("RelaxedDot4: exact for a second operand of 0..127 where the probe says relaxed_ok") {
  if (!ProbeDot().relaxed_ok) return;
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    alignas(16) int8_t a[16], b[16];
    alignas(16) int32_t sum[4], out[4];
    for (int i = 0; i < 16; ++i) {
      a[i] = static_cast<int8_t>(random());
      b[i] = static_cast<int8_t>(random() & 127);
    }
    for (int32_t& s : sum) s = static_cast<int32_t>(random() % 2000001) - 1000000;
    hn::Store(RelaxedDot4(hn::Load(I8x16(), a), hn::Load(I8x16(), b), hn::Load(I32x4(), sum)),
              I32x4(), out);
    for (int lane = 0; lane < 4; ++lane) {
      int32_t expected = sum[lane];
      for (int i = 0; i < 4; ++i) expected += a[lane * 4 + i] * b[lane * 4 + i];
      CHECK(out[lane] == expected);
    }
  }
}
#endif

}  // namespace
}  // namespace headlight
