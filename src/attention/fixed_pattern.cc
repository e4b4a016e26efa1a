#include "attention/fixed_pattern.h"

#include <algorithm>

namespace headlight {
namespace {

// Calls f(row, weight) for each row with a weight.
template <typename F>
void ForWeights(const FixedPattern& pattern, size_t pos, const F& f) {
  switch (pattern.kind) {
    case PatternKind::kShift:
      f(pos - std::min(pos, pattern.offset), 1.0f);
      return;
    case PatternKind::kFirstRow:
      f(size_t{0}, 1.0f);
      return;
    case PatternKind::kPrefixMean:
      for (size_t row = 0; row <= pos; ++row) f(row, 1.0f / static_cast<float>(pos + 1));
      return;
    case PatternKind::kByOffset:
      break;
  }
  const size_t n = std::min(pos + 1, pattern.by_offset.size());
  float sum = pattern.first;
  for (size_t offset = 0; offset < n; ++offset) sum += pattern.by_offset[offset];
  if (!(sum > 0.0f)) {
    f(size_t{0}, 1.0f);
    return;
  }
  f(size_t{0}, pattern.first / sum);
  for (size_t offset = 0; offset < n; ++offset) f(pos - offset, pattern.by_offset[offset] / sum);
}

}  // namespace

void FixedWeights(const FixedPattern& pattern, size_t pos, float* out) noexcept {
  std::fill(out, out + pos + 1, 0.0f);
  ForWeights(pattern, pos, [&](size_t row, float weight) { out[row] += weight; });
}

void BlendFixed(const FixedPattern& pattern, const KvHeadView& kv, size_t d_v, size_t pos,
                float* out) noexcept {
  std::fill(out, out + d_v, 0.0f);
  const bool is_f32 = kv.format.v == CacheType::kF32;
  ForWeights(pattern, pos, [&](size_t row, float weight) {
    const float* values = is_f32 ? static_cast<const float*>(kv.v) + row * kv.v_stride : nullptr;
    for (size_t i = 0; i < d_v; ++i) {
      out[i] += weight * (is_f32 ? values[i] : kv.ValueAt(row, i));
    }
  });
}

}  // namespace headlight
