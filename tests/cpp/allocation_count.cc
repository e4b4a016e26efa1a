#include "allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace headlight {
namespace {

std::atomic<size_t> g_count{0};
std::atomic<size_t> g_bytes{0};
std::atomic<size_t> g_aligned_bytes{0};

}  // namespace

size_t AllocationCount() { return g_count.load(); }
size_t BytesAllocated() { return g_bytes.load(); }
size_t AlignedBytesAllocated() { return g_aligned_bytes.load(); }

static void* CountedMalloc(size_t n) noexcept {
  ++g_count;
  g_bytes += n;
  return std::malloc(n == 0 ? 1 : n);
}

static void* CountedAlignedAlloc(size_t n, std::align_val_t alignment) noexcept {
  ++g_count;
  g_bytes += n;
  g_aligned_bytes += n;
  const size_t multiple = static_cast<size_t>(alignment);
  return std::aligned_alloc(multiple, (n + multiple - 1) / multiple * multiple);
}

}  // namespace headlight

void* operator new(size_t n) {
  if (void* p = headlight::CountedMalloc(n)) return p;
  throw std::bad_alloc();
}
void* operator new[](size_t n) { return operator new(n); }
void* operator new(size_t n, const std::nothrow_t&) noexcept { return headlight::CountedMalloc(n); }
void* operator new(size_t n, std::align_val_t alignment) {
  if (void* p = headlight::CountedAlignedAlloc(n, alignment)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return headlight::CountedAlignedAlloc(n, alignment);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }
