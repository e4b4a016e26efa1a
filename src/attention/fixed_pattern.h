// A head whose weights are the same for every input: a shift, the mean of the prefix, the first
// row, or a table by relative offset. Out of such a head comes a blend of values alone; there is no
// query, no key and no score. For the lab, which replaces heads by what they do on average.
#ifndef HEADLIGHT_ATTENTION_FIXED_PATTERN_H_
#define HEADLIGHT_ATTENTION_FIXED_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/kv_cache.h"

namespace headlight {

enum class PatternKind : uint8_t {
  kShift,       // all weight on the row `offset` back; on the first row where there is none
  kPrefixMean,  // equal weights
  kFirstRow,    // all weight on the first row
  kByOffset,    // the table, divided by the sum of what a row finds of it
};

struct FixedPattern {
  PatternKind kind = PatternKind::kFirstRow;
  size_t offset = 0;
  // kByOffset: the weight of the row o back is by_offset[o], of the first row `first` more.
  std::vector<float> by_offset;
  float first = 0.0f;
};

// Weights of rows [0, pos] for a query at `pos`: out [pos + 1].
void FixedWeights(const FixedPattern& pattern, size_t pos, float* out) noexcept;

// out[d_v] = the weights' blend of the values of rows [0, pos].
void BlendFixed(const FixedPattern& pattern, const KvHeadView& kv, size_t d_v, size_t pos,
                float* out) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_FIXED_PATTERN_H_
