// Scores and weights of chosen query heads and rows, written by the kernels while they compute: the
// same numbers that go into the result, not a second computation. Costs nothing where nothing is
// captured: the kernels look at one pointer for each row and chunk of keys.
#ifndef HEADLIGHT_ATTENTION_ATTENTION_CAPTURE_H_
#define HEADLIGHT_ATTENTION_ATTENTION_CAPTURE_H_

#include <cstddef>
#include <cstdint>

namespace headlight {

// How far a score has come. Scores are -inf where a key is not admitted; before the mask is added,
// keys that only the mask excludes still have theirs.
enum class CaptureStage : uint8_t {
  kScaled,      // q.k * scale
  kSoftcapped,  // then cap * tanh(s / cap)
  kScores,      // then ALiBi and mask: what the softmax sees
  // Then the softmax, before any rounding for int8 values: a row sums to 1, less the weight of a
  // learned sink, or to 0 where no key is admitted.
  kWeights,
};

// What to keep of one call. Memory is [captured heads, captured rows, stride]: the caller chooses.
struct AttentionCapture {
  static constexpr uint32_t kNone = ~uint32_t{0};

  CaptureStage stage = CaptureStage::kWeights;
  const uint32_t* slot_of_head = nullptr;  // [n_q_heads] place of a head in `values`, or kNone
  const uint32_t* slot_of_row = nullptr;   // [n_tokens of the call] of a row, or kNone
  size_t n_rows = 0;                       // captured rows: from a head's first to the next head's
  // [heads, n_rows, stride], stride >= n_kv. All of a captured row is written; what lies at n_kv
  // and beyond is not admitted.
  float* values = nullptr;
  size_t stride = 0;
  float* sink_mass = nullptr;  // [heads, n_rows] weight of the learned sink, or null

  // Index of (query head, row t of the call) in [heads, n_rows], or kNone.
  uint32_t Slot(size_t q_head, size_t t) const {
    const uint32_t head = slot_of_head[q_head];
    const uint32_t row = slot_of_row[t];
    if (head == kNone || row == kNone) return kNone;
    return head * static_cast<uint32_t>(n_rows) + row;
  }
  float* Row(size_t q_head, size_t t) const {
    const uint32_t slot = Slot(q_head, t);
    return slot == kNone ? nullptr : values + size_t{slot} * stride;
  }
};

}  // namespace headlight

#endif  // HEADLIGHT_ATTENTION_ATTENTION_CAPTURE_H_
