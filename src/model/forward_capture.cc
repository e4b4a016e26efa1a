#include "model/forward_capture.h"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <string>

#include "base/error.h"

namespace headlight {
namespace {

[[noreturn]] void ThrowIndex(const std::string& option, size_t i, uint32_t index,
                             const std::string& range) {
  const std::string name = option + "[" + std::to_string(i) + "]";
  const std::string value = std::to_string(index);
  throw Error(ErrorCode::kBadOption, name + " is " + value + ", it must be " + range,
              {{"option", name}, {"value", value}, {"range", range}});
}

// [a, b, c] zeros. On wasm32 a product of sizes must become an allocation that fails.
std::vector<float> Zeros(size_t a, size_t b, size_t c) {
  const double n = static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
  try {
    if (n > static_cast<double>(std::numeric_limits<size_t>::max() / sizeof(float))) {
      throw std::bad_alloc();
    }
    return std::vector<float>(a * b * c);
  } catch (const std::bad_alloc&) {
    const std::string bytes = std::to_string(static_cast<uint64_t>(n) * sizeof(float));
    throw Error(ErrorCode::kOutOfMemory,
                "no memory for a captured array of " + bytes +
                    " bytes; capture fewer layers, heads or rows",
                {{"needed_bytes", bytes}});
  }
}

}  // namespace

void CheckIndices(const std::string& option, const std::vector<uint32_t>& indices, size_t n,
                  const char* what) {
  std::vector<bool> seen(n, false);
  for (size_t i = 0; i < indices.size(); ++i) {
    const uint32_t index = indices[i];
    if (index >= n) ThrowIndex(option, i, index, "below " + std::to_string(n) + ", " + what);
    if (seen[index]) ThrowIndex(option, i, index, "given once");
    seen[index] = true;
  }
}

void CheckCapture(const ModelSpec& spec, const CaptureOptions& options) {
  const size_t n_layers = spec.layers.size();
  CheckIndices("capture.layers", options.layers, n_layers, "the model's layers");
  CheckIndices("capture.logitLens", options.lens_layers, n_layers, "the model's layers");
  if (options.all_heads) return;
  for (const uint32_t layer : options.layers) {
    CheckIndices("capture.heads", options.heads, spec.layers[layer].heads.n_q_heads,
                 "the query heads of each layer that is captured");
  }
}

ForwardCapture::ForwardCapture(const ModelSpec& spec, const CaptureOptions& options,
                               std::vector<uint32_t> rows, size_t n_positions)
    : stage(options.stage),
      n_kv(n_positions),
      positions(std::move(rows)),
      slot_of_position(n_positions, AttentionCapture::kNone) {
  for (size_t i = 0; i < n_rows(); ++i) slot_of_position[positions[i]] = static_cast<uint32_t>(i);
  for (const uint32_t index : options.layers) {
    const HeadLayout& heads = spec.layers[index].heads;
    Layer layer;
    layer.layer = index;
    layer.heads = options.heads;
    if (options.all_heads) {
      layer.heads.resize(heads.n_q_heads);
      std::iota(layer.heads.begin(), layer.heads.end(), 0u);
    }
    const size_t n_heads = layer.heads.size();
    layer.slot_of_head.assign(heads.n_q_heads, AttentionCapture::kNone);
    for (size_t i = 0; i < n_heads; ++i) {
      layer.slot_of_head[layer.heads[i]] = static_cast<uint32_t>(i);
    }
    layer.d_v = heads.d_v;
    layer.attention = Zeros(n_heads, n_rows(), n_kv);
    layer.sink_mass = Zeros(n_heads, n_rows(), 1);
    if (options.head_outputs) layer.head_outputs = Zeros(n_heads, n_rows(), heads.d_v);
    layers.push_back(std::move(layer));
  }
  if (options.residual_norms) residual_norms = Zeros(spec.layers.size() + 1, n_rows(), 1);
  for (const uint32_t index : options.lens_layers) {
    lenses.push_back({index, Zeros(n_rows(), spec.vocab_size, 1)});
  }
}

uint32_t ForwardCapture::first_position() const {
  return positions.empty() ? std::numeric_limits<uint32_t>::max()
                           : *std::min_element(positions.begin(), positions.end());
}

ForwardCapture::Layer* ForwardCapture::FindLayer(size_t layer) {
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const Layer& one) { return one.layer == layer; });
  return found == layers.end() ? nullptr : &*found;
}

ForwardCapture::Lens* ForwardCapture::FindLens(size_t layer) {
  const auto found = std::find_if(lenses.begin(), lenses.end(),
                                  [&](const Lens& one) { return one.layer == layer; });
  return found == lenses.end() ? nullptr : &*found;
}

AttentionCapture ForwardCapture::AttentionOf(Layer& layer, size_t pos0) {
  AttentionCapture capture;
  capture.stage = stage;
  capture.slot_of_head = layer.slot_of_head.data();
  capture.slot_of_row = slot_of_position.data() + pos0;
  capture.n_rows = n_rows();
  capture.values = layer.attention.data();
  capture.stride = n_kv;
  capture.sink_mass = layer.sink_mass.data();
  return capture;
}

}  // namespace headlight
