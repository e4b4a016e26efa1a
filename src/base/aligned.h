// Owning, cache-line-aligned arrays for weights, caches and workspaces. Allocation failure is a
// typed OutOfMemory error that says how much was asked for. Not a container: the size is fixed at
// construction.
#ifndef HEADLIGHT_BASE_ALIGNED_H_
#define HEADLIGHT_BASE_ALIGNED_H_

#include <cstddef>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace headlight {

// One cache line: a vector load never straddles two, and two threads never share one at a buffer's
// edge.
inline constexpr size_t kAlignment = 64;

constexpr size_t RoundUp(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}
constexpr size_t CeilDiv(size_t n, size_t divisor) { return (n + divisor - 1) / divisor; }

template <typename T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  AlignedArray() = default;

  // n elements, all bytes zero. Throws Error(kOutOfMemory).
  explicit AlignedArray(size_t n) : n_(n) {
    if (n == 0) return;
    const bool overflows = n > (std::numeric_limits<size_t>::max() - kAlignment) / sizeof(T);
    if (!overflows) {
      data_ = static_cast<T*>(::operator new(RoundUp(n * sizeof(T), kAlignment),
                                             std::align_val_t{kAlignment}, std::nothrow));
    }
    if (data_ == nullptr) ThrowOutOfMemory(n);
    std::memset(static_cast<void*>(data_), 0, RoundUp(n * sizeof(T), kAlignment));
  }
  AlignedArray(AlignedArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), n_(std::exchange(other.n_, 0)) {}
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(n_, other.n_);
    return *this;
  }
  AlignedArray(const AlignedArray&) = delete;
  AlignedArray& operator=(const AlignedArray&) = delete;
  ~AlignedArray() { ::operator delete(data_, std::align_val_t{kAlignment}); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return n_; }
  size_t bytes() const { return n_ * sizeof(T); }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + n_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + n_; }

 private:
  [[noreturn]] static void ThrowOutOfMemory(size_t n) {
    const std::string needed = std::to_string(n) + " x " + std::to_string(sizeof(T));
    throw Error(ErrorCode::kOutOfMemory,
                "could not allocate " + needed +
                    " bytes; use a smaller n_ctx, a smaller cache format or a smaller model",
                {{"needed_bytes", std::to_string(static_cast<double>(n) * sizeof(T))}});
  }

  T* data_ = nullptr;
  size_t n_ = 0;
};

}  // namespace headlight

#endif  // HEADLIGHT_BASE_ALIGNED_H_
