// AlignedArray: alignment, zeros, moves, and a typed error when there is no memory.
#include "base/aligned.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "support.h"

namespace headlight::testing {
namespace {

bool IsAligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kAlignment == 0; }

}  // namespace

TEST_CASE("aligned: arrays start on a cache line and are zero, to the end of the last line") {
  for (const size_t n : {size_t{1}, size_t{3}, size_t{16}, size_t{17}, size_t{1000}}) {
    CAPTURE(n);
    AlignedArray<float> array(n);
    CHECK(IsAligned(array.data()));
    CHECK(array.size() == n);
    CHECK(array.bytes() == n * sizeof(float));
    const size_t n_padded = RoundUp(n * sizeof(float), kAlignment) / sizeof(float);
    for (size_t i = 0; i < n_padded; ++i) CHECK(array.data()[i] == 0.0f);
    array[n - 1] = 2.0f;
    CHECK(*(array.end() - 1) == 2.0f);
  }
}

TEST_CASE("aligned: an array of nothing has no memory") {
  AlignedArray<uint8_t> array(0);
  CHECK(array.data() == nullptr);
  CHECK(array.size() == 0);
  CHECK(array.begin() == array.end());
  CHECK(AlignedArray<int32_t>().bytes() == 0);
}

TEST_CASE("aligned: moving hands the memory on, assignment swaps") {
  AlignedArray<int32_t> a(5);
  a[4] = 7;
  const int32_t* data = a.data();
  AlignedArray<int32_t> b = std::move(a);
  CHECK(b.data() == data);
  CHECK(b[4] == 7);
  AlignedArray<int32_t> c(2);
  c = std::move(b);
  CHECK(c.data() == data);
  CHECK(c.size() == 5);
}

TEST_CASE("aligned: more than can be had is OutOfMemory and says how much was asked for") {
  const size_t max = std::numeric_limits<size_t>::max();
  // Too large for the address space in bytes, by the count and by the padding.
  for (const size_t n : {max, max / sizeof(double), max / sizeof(double) - 1}) {
    const Error error = ErrorOf([&] { AlignedArray<double> array(n); });
    CHECK(error.code() == ErrorCode::kOutOfMemory);
    CHECK_FALSE(Detail(error, "needed_bytes").empty());
    CHECK(Contains(error.message(), std::to_string(n)));
  }
}

TEST_CASE("aligned: rounding and dividing up") {
  CHECK(RoundUp(0, 64) == 0);
  CHECK(RoundUp(1, 64) == 64);
  CHECK(RoundUp(64, 64) == 64);
  CHECK(CeilDiv(0, 4) == 0);
  CHECK(CeilDiv(1, 4) == 1);
  CHECK(CeilDiv(8, 4) == 2);
  CHECK(CeilDiv(9, 4) == 3);
}

}  // namespace headlight::testing
