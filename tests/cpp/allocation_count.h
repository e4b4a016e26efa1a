// Counts what the whole test program allocates, by replacing the global operators new: for tests
// that say "no allocation here" or "exactly this much". Counts every thread.
#ifndef HEADLIGHT_TESTS_ALLOCATION_COUNT_H_
#define HEADLIGHT_TESTS_ALLOCATION_COUNT_H_

#include <cstddef>

namespace headlight {

// Allocations since the program started, of every kind.
size_t AllocationCount();
// Bytes asked of any operator new since then.
size_t BytesAllocated();
// Bytes asked of the aligned operator new since the program started: what AlignedArray allocates,
// each array rounded up to kAlignment.
size_t AlignedBytesAllocated();

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_ALLOCATION_COUNT_H_
