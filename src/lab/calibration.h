// What heads do on average over a calibration text: their weights by relative offset, how far
// single inputs are from that, what a fixed pattern in their place would get wrong, and which
// rotary pairs their scores come from. The text is cut into segments of one length; each is
// computed from an empty cache. Two passes: all segments are added, then all are checked.
#ifndef HEADLIGHT_LAB_CALIBRATION_H_
#define HEADLIGHT_LAB_CALIBRATION_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "attention/fixed_pattern.h"
#include "base/parallel.h"
#include "model/decoder.h"
#include "model/model.h"

namespace headlight {

inline constexpr size_t kMaxSegmentTokens = 64;
// Of a head: its likeliest shift, the prefix mean, the first row, and its own table by offset.
inline constexpr size_t kNPatterns = 4;

struct HeadCalibration {
  // Mean weight of the row o back, of rows that have one other than the first row: [n_tokens].
  std::vector<float> by_offset;
  float first = 0.0f;  // mean weight of the first row, for queries after it
  size_t offset = 0;   // where by_offset is largest
  // Largest standard deviation over the segments of an entry of the map, and their mean.
  float spread = 0.0f;
  float mean_spread = 0.0f;
  // Mean over the segments of |P V - A V| / |A V|, the head's own output error (Frobenius norms),
  // of each pattern.
  float output_errors[kNPatterns] = {};

  FixedPattern Pattern(size_t i) const;
};

class Calibration : private LayerObserver {
 public:
  // Throws Error(kBadOption) for n_tokens outside 2..kMaxSegmentTokens or above the model's
  // context, Error(kOutOfMemory). The pool must outlive the calibration.
  Calibration(std::shared_ptr<const Model> model, size_t n_tokens, ThreadPool& pool);

  // Starts a segment of n_tokens ids, to be added or checked, in place of one that is not done.
  // Throws Error(kBadOption).
  void BeginSegment(std::span<const uint32_t> tokens, bool is_check);
  // Works for about budget_ms, one step of the decoder at least; whether the segment is done.
  bool Advance(double budget_ms = std::numeric_limits<double>::infinity());

  // Of valid numbers.
  HeadCalibration Head(size_t layer, size_t head) const;
  // Share of each pair of dimensions in the variance of the layer's scores, over the keys of a
  // query (what all keys of a query have in common does not change its weights); mean over the
  // heads, [d_qk / 2], sums to 1.
  std::vector<float> PairShares(size_t layer) const;

  const Model& model() const { return *model_; }

 private:
  void OnRows(size_t layer, LayerTensor what, const LayerRows& rows) noexcept override;
  void Weigh(size_t layer, size_t head) noexcept;
  void AddPairs(size_t layer, size_t head, size_t t) noexcept;
  void Add(size_t layer, size_t head) noexcept;
  void Check(size_t layer, size_t head) noexcept;
  double* SumsOf(size_t layer, size_t head) noexcept;
  const double* SumsOf(size_t layer, size_t head) const noexcept;
  size_t SumsPerHead(size_t layer) const noexcept;

  std::shared_ptr<const Model> model_;
  size_t n_;
  KvCache cache_;
  Decoder decoder_;
  size_t n_added_ = 0, n_checked_ = 0;
  bool is_check_ = false, has_segment_ = false;
  // The layer at work: [n_tokens, width] each.
  std::vector<float> q_, k_, v_;
  std::vector<double> weights_;  // [n_tokens, n_tokens] of the head at work
  // Of each head: the weights' sums [n, n] and sums of squares [n, n] over the segments, the
  // variances of pairs [d_qk / 2], the errors of patterns [kNPatterns].
  std::vector<double> sums_;
  std::vector<size_t> layer_offsets_;  // of a layer's first head in sums_
};

}  // namespace headlight

#endif  // HEADLIGHT_LAB_CALIBRATION_H_
