// Sorting of what is sorted once and not in a loop: a fifth of std::sort's code.
#ifndef HEADLIGHT_BASE_SORT_H_
#define HEADLIGHT_BASE_SORT_H_

#include <algorithm>

namespace headlight {

// In order of `less`, O(n log n) whatever the input; equal elements in any order.
template <class Container, class Less>
void HeapSort(Container& elements, const Less& less) {
  std::make_heap(elements.begin(), elements.end(), less);
  std::sort_heap(elements.begin(), elements.end(), less);
}

}  // namespace headlight

#endif  // HEADLIGHT_BASE_SORT_H_
