// One head layout in C++: 16 query heads on 2 KV heads, keys of width 48 and values of width 64 in
// an f16 cache, the decode kernel against the reference.  cmake --preset native-release && cmake
// --build --preset native-release
#include <cmath>
#include <cstdio>
#include <vector>

#include "attention/attention.h"

using headlight::AttentionArgs;
using headlight::AttentionSpec;
using headlight::CacheType;
using headlight::HeadLayout;
using headlight::KvLayer;

int main() {
  constexpr size_t kRows = 1000;
  const HeadLayout layout{.n_q_heads = 16, .n_kv_heads = 2, .d_qk = 48, .d_v = 64};

  // Any numbers do: smooth, and different for every head and row.
  const auto wave = [](size_t n, float phase) {
    std::vector<float> x(n);
    for (size_t i = 0; i < n; ++i) x[i] = std::sin(phase + 0.37f * static_cast<float>(i));
    return x;
  };

  KvLayer cache(layout, {.k = CacheType::kF16, .v = CacheType::kF16}, kRows);
  for (size_t row = 0; row < kRows; ++row) {
    const float phase = static_cast<float>(row);
    cache.WriteRow(row, wave(layout.k_width(), phase).data(),
                   wave(layout.v_width(), -phase).data());
  }

  const std::vector<float> q = wave(layout.q_width(), 0.5f);
  std::vector<float> fast(layout.out_width()), exact(layout.out_width());
  AttentionSpec spec;
  spec.layout = layout;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(layout.d_qk));
  AttentionArgs args{q.data(), q.size(), 1, kRows - 1, &cache, kRows, fast.data(), fast.size()};

  headlight::ThreadPool pool(2);
  headlight::AttentionWorkspace workspace(layout, kRows, pool.n_threads());
  headlight::AttentionDecode(spec, args, workspace, pool);
  args.out = exact.data();
  headlight::AttentionReference(spec, args);

  float max_error = 0.0f;
  for (size_t i = 0; i < fast.size(); ++i) {
    max_error = std::fmax(max_error, std::fabs(fast[i] - exact[i]));
  }
  std::printf("cache bytes a token: %zu\n",
              KvLayer::BytesPerToken(layout, {CacheType::kF16, CacheType::kF16}));
  std::printf("largest difference from the reference: %g\n", static_cast<double>(max_error));
  return max_error < 1e-4f ? 0 : 1;
}
