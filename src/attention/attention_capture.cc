// The first and the last step of a captured row; what lies between, attention_chunk does.
#include "attention/attention_capture.h"

#include <algorithm>

#include "attention/attention_chunk.h"
#include "attention/online_softmax-inl.h"
#include "simd/part.h"

namespace headlight {
namespace {

// scores[n] -> e^(s - max) / sum.
void NormaliseRow(const SoftmaxState& state, float* scores, size_t n) {
  constexpr F32x4 kF32;
  const VecF32 max = hn::Set(kF32, state.max);
  const VecF32 inverse = hn::Set(kF32, InverseSum(state));
  const auto weights = [&](VecF32 s) { return hn::Mul(ExpF32(kF32, hn::Sub(s, max)), inverse); };
  ForVectors(n, [&](size_t i, size_t n_left) {
    StorePart(weights(LoadPart(scores + i, n_left)), scores + i, n_left);
  });
}

}  // namespace

void BeginCapture(const AttentionArgs& args, size_t q_head, size_t t) noexcept {
  if (args.capture == nullptr) return;
  float* row = args.capture->Row(q_head, t);
  if (row != nullptr) std::fill_n(row, args.capture->stride, kMaskedScore);
}

void FinishCapture(const AttentionSpec& spec, const AttentionArgs& args, size_t q_head, size_t t,
                   const float* total) noexcept {
  if (args.capture == nullptr) return;
  const AttentionCapture& capture = *args.capture;
  const uint32_t slot = capture.Slot(q_head, t);
  if (slot == AttentionCapture::kNone) return;
  SoftmaxState state{total[0], total[1]};
  float sink_mass = 0.0f;
  if (spec.sink_logits != nullptr) {
    const MergeFactors factors = MergeSoftmax({spec.sink_logits[q_head], 1.0f}, state);
    sink_mass = hn::GetLane(factors.part) * InverseSum(state);
  }
  if (capture.sink_mass != nullptr) capture.sink_mass[slot] = sink_mass;
  if (capture.stage != CaptureStage::kWeights) return;
  NormaliseRow(state, capture.values + size_t{slot} * capture.stride, capture.stride);
}

}  // namespace headlight
