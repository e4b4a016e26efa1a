// libFuzzer target: any bytes through the whole loader, twice, in chunks of different sizes.
// Whatever they are, the outcome is a model or a typed error, and it does not depend on the chunks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "base/error.h"
#include "model/model_loader.h"

namespace {

using headlight::ModelLoader;

// A header may honestly ask for gigabytes of weights; the fuzzer stops there.
constexpr size_t kMaxWeightsBytes = 16u << 20;

// Sum over all weights, as bytes: any difference between two loads shows.
uint64_t Digest(const headlight::Model& model) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const auto& block : model.storage) {
    for (const uint8_t byte : block) hash = (hash ^ byte) * 0x100000001B3u;
  }
  return hash;
}

std::string Outcome(std::span<const uint8_t> file, size_t chunk) {
  try {
    ModelLoader loader(headlight::DotForm::kUnsigned);
    while (!file.empty()) {
      const size_t n = loader.Append(file.first(std::min(chunk, file.size())));
      file = file.subspan(n);
      if (loader.state() != ModelLoader::State::kPlanned) continue;
      if (loader.weights_bytes() > kMaxWeightsBytes) return "large";
      loader.Allocate();
    }
    const auto model = loader.Finish();
    return "model of " + std::to_string(model->weights_bytes) + " bytes " +
           std::to_string(Digest(*model));
  } catch (const headlight::Error& error) {
    return error.message();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  if (n_bytes == 0) return 0;
  const size_t chunk = 1 + data[n_bytes - 1] % 61;  // from the end, so that seeds are files
  const std::span<const uint8_t> file(data, n_bytes - 1);
  const std::string whole = Outcome(file, n_bytes);
  const std::string pieces = Outcome(file, chunk);
  if (whole != pieces) {
    std::fprintf(stderr, "whole: %s\nin chunks of %zu: %s\n", whole.c_str(), chunk, pieces.c_str());
    std::abort();
  }
  return 0;
}
