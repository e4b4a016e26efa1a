// libFuzzer target: any bytes through the whole loader, twice, in chunks of different sizes.
// Whatever they are, the outcome is a model or a typed error, and it does not depend on the chunks.
// What a session of the model takes can be planned, and a few tokens of it computed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "model/model_loader.h"
#include "session/session.h"

namespace {

using headlight::ModelLoader;

// A header may honestly ask for gigabytes; inputs have a few KiB, and time is for them.
constexpr size_t kMaxWeightsBytes = 64u << 10;
constexpr size_t kMaxSessionBytes = 1u << 20;

// Sum over all weights, as bytes: any difference between two loads shows.
uint64_t Digest(const headlight::Model& model) {
  uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const auto& block : model.storage) {
    for (const uint8_t byte : block) hash = (hash ^ byte) * 0x100000001B3u;
  }
  return hash;
}

// Begins and ends; the numbers may overflow.
void Compute(std::shared_ptr<const headlight::Model> model) {
  static headlight::ThreadPool pool(1);
  headlight::SessionOptions options;
  options.n_ctx = std::min<size_t>(8, model->spec.n_ctx_train);
  try {
    const headlight::SessionPlan plan = headlight::PlanSession(model->spec, options, 1);
    if (plan.kv_cache_bytes > kMaxSessionBytes || plan.workspace_bytes > kMaxSessionBytes) return;
    headlight::Session session(model, options, pool);
    const uint32_t tokens[] = {0, 0, static_cast<uint32_t>(model->spec.vocab_size - 1)};
    headlight::GenerateOptions generate;
    generate.max_tokens = 2;
    session.Begin(std::span(tokens).first(std::min<size_t>(3, options.n_ctx)), generate);
    while (!session.Advance(0.0).done) continue;
  } catch (const headlight::Error&) {
  }
}

std::string Plan(const headlight::ModelSpec& spec) {
  try {
    const headlight::SessionPlan plan = headlight::PlanSession(spec, {}, 1);
    return std::to_string(plan.kv_cache_bytes) + " " + std::to_string(plan.workspace_bytes);
  } catch (const headlight::Error& error) {
    return error.message();
  }
}

std::string Outcome(std::span<const uint8_t> file, size_t chunk, bool computes) {
  std::string plan;
  try {
    ModelLoader loader(headlight::DotForm::kUnsigned);
    while (!file.empty()) {
      const size_t n = loader.Append(file.first(std::min(chunk, file.size())));
      file = file.subspan(n);
      if (loader.state() != ModelLoader::State::kPlanned) continue;
      plan = Plan(loader.spec());
      if (loader.weights_bytes() > kMaxWeightsBytes) return "large, " + plan;
      loader.Allocate();
    }
    const auto model = loader.Finish();
    if (computes) Compute(model);
    return plan + ", model of " + std::to_string(model->weights_bytes) + " bytes " +
           std::to_string(Digest(*model));
  } catch (const headlight::Error& error) {
    return error.message();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  if (n_bytes == 0) return 0;
  const uint8_t choice = data[n_bytes - 1];  // from the end, so that seeds are files
  const size_t chunk = 1 + choice % 61;
  const bool computes = choice % 8 == 0;  // it takes far longer than loading
  const std::span<const uint8_t> file(data, n_bytes - 1);
  const std::string whole = Outcome(file, n_bytes, computes);
  const std::string pieces = Outcome(file, chunk, false);
  if (whole != pieces) {
    std::fprintf(stderr, "whole: %s\nin chunks of %zu: %s\n", whole.c_str(), chunk, pieces.c_str());
    std::abort();
  }
  return 0;
}
