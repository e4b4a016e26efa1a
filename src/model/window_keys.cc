// What attention.sliding_window and its pattern mean.
#include "model/model_keys.h"

namespace headlight {
namespace {

constexpr const char* kSize = "attention.sliding_window";
constexpr const char* kPattern = "attention.sliding_window_pattern";

// One flag a layer: whether it has the window. A number says that every so many-th layer has none;
// an array gives the flags themselves.
std::vector<bool> WindowPattern(const ModelKeys& keys, size_t period, size_t n_layers) {
  std::vector<bool> has_window(n_layers, true);
  if (const GgufNumberArray* flags = keys.FindPerLayer(kPattern, n_layers)) {
    for (size_t i = 0; i < n_layers; ++i) has_window[i] = flags->at(i) != 0.0;
    return has_window;
  }
  period = keys.Count(kPattern, kMaxLayers, period);
  if (period == 1) return has_window;
  for (size_t i = period - 1; i < n_layers; i += period) has_window[i] = false;
  return has_window;
}

}  // namespace

std::vector<size_t> BuildWindows(const ModelKeys& keys, const ArchRow& arch, size_t n_layers) {
  std::vector<size_t> windows(n_layers, 0);
  if (const GgufNumberArray* sizes = keys.FindPerLayer(kSize, n_layers)) {
    for (size_t i = 0; i < n_layers; ++i) {
      const double size = sizes->at(i);
      if (size > 0.0 && size < static_cast<double>(kMaxContext))
        windows[i] = static_cast<size_t>(size);
    }
    return windows;
  }
  const size_t size = keys.Has(kSize) ? keys.CountOrNone(kSize, UINT32_MAX) : arch.window.size;
  const std::vector<bool> has_window = WindowPattern(keys, arch.window.period, n_layers);
  for (size_t i = 0; i < n_layers; ++i) {
    if (has_window[i]) windows[i] = size;
  }
  return windows;
}

}  // namespace headlight
