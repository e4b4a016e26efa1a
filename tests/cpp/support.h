// What C++ tests share: where data lies, files, a seeded random source, and the error that a piece
// of code throws. For tests only; knows nothing of Headlight's formats (gguf_writer.h does).
#ifndef HEADLIGHT_TESTS_SUPPORT_H_
#define HEADLIGHT_TESTS_SUPPORT_H_

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace headlight::testing {

// A file of the repository, e.g. RepoPath("examples/models/default-q8_0.gguf").
std::string RepoPath(std::string_view relative);

// A file of the shared data folder: $HEADLIGHT_SHARED, or `shared` beside the repository. Nothing
// when it is absent: such data is not part of the project, and tests that need it say that they
// were skipped (SKIP_UNLESS).
std::optional<std::string> SharedPath(std::string_view relative);

// Fails the test if the file cannot be read.
std::vector<uint8_t> ReadFile(const std::string& path);

// Leaves the test case with a visible message. `path`: an optional<string> from SharedPath.
#define SKIP_UNLESS(path)                                        \
  do {                                                           \
    if (!(path)) {                                               \
      MESSAGE("SKIPPED: the shared data folder is not present"); \
      return;                                                    \
    }                                                            \
  } while (false)

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers everywhere, from a seed that a failing
// test can print.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Bits() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // [0, n), n > 0; the bias of at most n / 2^64 does not matter to tests.
  size_t Below(size_t n) { return static_cast<size_t>(Bits() % n); }
  // [-1, 1), multiples of 2^-23.
  float Uniform() { return static_cast<float>(Bits() >> 40) * 0x1p-23f - 1.0f; }

 private:
  uint64_t state_;
};

// The Error that f throws; fails the test if it throws none.
template <typename F>
Error ErrorOf(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Error& error) {
    return error;
  }
  FAIL("expected an Error");
  return Error(ErrorCode::kInternal, "");
}

// The value of a named detail, "" when there is none.
std::string Detail(const Error& error, std::string_view name);

bool Contains(std::string_view text, std::string_view part);

// n threads, or the one that a module without threads has.
constexpr size_t ThreadsHere(size_t n) {
#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
  return n;
#else
  return n == 0 ? 0 : 1;
#endif
}

}  // namespace headlight::testing

#endif  // HEADLIGHT_TESTS_SUPPORT_H_
