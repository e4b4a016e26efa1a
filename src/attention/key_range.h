// Which cache rows a query admits: the mask as a range, so that kernels skip what is masked instead
// of computing it.
#ifndef HEADLIGHT_ATTENTION_KEY_RANGE_H_
#define HEADLIGHT_ATTENTION_KEY_RANGE_H_

#include <algorithm>
#include <cstddef>

#include "attention/attention.h"

namespace headlight {

// Rows [begin, end), begin <= end.
struct KeyRange {
  size_t begin;
  size_t end;
};

// Rows that a query at `pos` admits out of [0, n_kv). Both bounds grow with pos, so queries at
// pos_first..pos_last together admit [KeysOf(pos_first).begin, KeysOf(pos_last).end).
inline KeyRange KeysOf(const AttentionSpec& spec, const AttentionArgs& args, size_t pos) {
  const size_t seen = pos < args.n_prefix ? args.n_prefix : pos + 1;
  const size_t end = spec.causal ? std::min(args.n_kv, seen) : args.n_kv;
  const size_t begin = spec.window == 0 || pos < spec.window ? 0 : pos - spec.window + 1;
  return {std::min(begin, end), end};
}

// The part of `keys` in [begin, end).
inline KeyRange Within(KeyRange keys, size_t begin, size_t end) {
  return {std::clamp(keys.begin, begin, end), std::clamp(keys.end, begin, end)};
}

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_KEY_RANGE_H_
