#include "model/kept_mass.h"

#include <algorithm>
#include <numeric>

namespace headlight {
namespace {

uint64_t Floats(const KeptMassSize& size) {
  return uint64_t{size.n_q_heads} * size.n_queries * size.stride();
}

}  // namespace

KeptMass::KeptMass(const KeptMassSize& size)
    : size_(size),
      slot_of_head_(size.n_q_heads),
      slot_of_row_(size.max_tokens),
      weights_(static_cast<size_t>(Floats(size))) {
  std::iota(slot_of_head_.begin(), slot_of_head_.end(), 0u);
  capture_.slot_of_head = slot_of_head_.data();
  capture_.values = weights_.data();
  capture_.stride = size.stride();
  capture_.n_rows = size.n_queries;
}

uint64_t KeptMass::Bytes(const KeptMassSize& size) { return Floats(size) * sizeof(float); }

const AttentionCapture* KeptMass::Begin(size_t first, size_t n_tokens,
                                        size_t counts_from) noexcept {
  n_counted_ = 0;
  for (size_t i = 0; i < n_tokens; ++i) {
    const bool counts = first + i >= counts_from && n_counted_ < size_.n_queries;
    slot_of_row_[i] = counts ? static_cast<uint32_t>(n_counted_++) : AttentionCapture::kNone;
  }
  capture_.slot_of_row = slot_of_row_.data();
  return n_counted_ == 0 ? nullptr : &capture_;
}

void KeptMass::AddTo(const HeadLayout& layout, size_t n_kv, KeptRows& rows) const noexcept {
  for (size_t query = 0; query < n_counted_; ++query) {
    for (size_t head = 0; head < layout.n_q_heads; ++head) {
      const float* weights = weights_.data() + (head * size_.n_queries + query) * size_.stride();
      rows.AddWeights(head / layout.n_q_per_kv(), weights, n_kv);
    }
  }
}

}  // namespace headlight
