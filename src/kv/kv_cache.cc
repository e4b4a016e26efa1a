#include "kv/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace headlight {
namespace {

size_t SaturatingAdd(size_t a, size_t b) {
  return a > std::numeric_limits<size_t>::max() - b ? std::numeric_limits<size_t>::max() : a + b;
}

std::vector<KvLayerPlan> Contiguous(const std::vector<HeadLayout>& layers, size_t n_ctx) {
  std::vector<KvLayerPlan> plans;
  for (const HeadLayout& layout : layers) plans.push_back({layout, {n_ctx, 0, 0}});
  return plans;
}

}  // namespace

KvCache::KvCache(const std::vector<HeadLayout>& layers, KvCacheFormat format, size_t n_ctx)
    : KvCache(Contiguous(layers, n_ctx), format, n_ctx) {}

KvCache::KvCache(const std::vector<KvLayerPlan>& layers, KvCacheFormat format, size_t n_ctx)
    : format_(format), n_ctx_(n_ctx), bytes_(Bytes(layers, format)) {
  layers_.reserve(layers.size());
  for (const KvLayerPlan& plan : layers) {
    layers_.emplace_back(plan.layout, format, plan.placement);
    kept_.emplace_back();
    if (!plan.chooses_rows) continue;
    kept_.back().emplace(plan.layout.n_kv_heads, plan.placement.n_rows);
  }
}

void KvCache::CopyRows(KvCache& from) {
  for (size_t i = 0; i < layers_.size(); ++i) {
    kept_[i] = from.kept_[i];
    const size_t n_rows = kept_[i].has_value() ? kept_[i]->n_rows() : from.n_rows_;
    const auto source = from.layers_[i].RowSpans(n_rows);
    const auto target = layers_[i].RowSpans(n_rows);
    for (size_t s = 0; s < source.size(); ++s) {
      std::memcpy(target[s].bytes.data(), source[s].bytes.data(), source[s].bytes.size());
    }
  }
  n_rows_ = from.n_rows_;
  n_written_ = from.n_written_;
}

size_t KvCache::Bytes(const std::vector<HeadLayout>& layers, KvCacheFormat format, size_t n_ctx) {
  return Bytes(Contiguous(layers, n_ctx), format);
}

size_t KvCache::Bytes(const std::vector<KvLayerPlan>& layers, KvCacheFormat format) {
  size_t bytes = 0;
  for (const KvLayerPlan& plan : layers) {
    const size_t n_rows = plan.placement.n_rows;
    bytes = SaturatingAdd(bytes, KvLayer::Bytes(plan.layout, format, n_rows));
    if (plan.chooses_rows) {
      bytes = SaturatingAdd(bytes, KeptRows::Bytes(plan.layout.n_kv_heads, n_rows));
    }
  }
  return bytes;
}

void KvCache::SetRestoredRows(size_t n_rows) {
  n_rows_ = n_rows;
  n_written_ = std::numeric_limits<size_t>::max();
}

void KvCache::BeginChunk(size_t n_written) {
  n_written_ = std::max(n_written_, n_written);
  for (auto& kept : kept_) {
    if (kept.has_value()) kept->BeginChunk();
  }
}

void KvCache::CommitChunk(size_t n_written) {
  for (auto& kept : kept_) {
    if (kept.has_value()) kept->CommitChunk(n_rows_, n_written - n_rows_);
  }
  SetRows(n_written);
}

void KvCache::Evict(const EvictionOptions& options, bool at_prompt_end) {
  const bool is_time =
      options.policy == EvictionPolicy::kH2o ? n_rows_ % kH2oStep == 0 : at_prompt_end;
  for (size_t i = 0; is_time && i < layers_.size(); ++i) {
    if (kept_[i].has_value()) kept_[i]->Evict(options, options.budget, layers_[i]);
  }
}

void KvCache::ClearMass() noexcept {
  for (auto& kept : kept_) {
    if (kept.has_value()) kept->ClearMass();
  }
}

size_t KvCache::Restorable(size_t n) const {
  if (n == n_rows_) return n;
  for (const auto& kept : kept_) {
    if (kept.has_value()) return 0;
  }
  for (const KvLayer& layer : layers_) {
    if (!layer.placement().CanRollBack(n, n_written_)) return 0;
  }
  return n;
}

void KvCache::RollBack(size_t n) {
  n_rows_ = Restorable(n);
  if (n_rows_ != 0) return;
  n_written_ = 0;
  for (auto& kept : kept_) {
    if (kept.has_value()) kept->Clear();
  }
}

}  // namespace headlight
