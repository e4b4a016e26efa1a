// Prefill and decode speed of a whole model, natively or as WASM under Node, as one JSON object a
// run.
//   decode_bench MODEL.gguf [--prompt 128] [--gen 64] [--threads 1] [--chunk 0] [--kv f32|f16]
//   [--activations int8|f32]
//                [--repeat 3]
// The prompt is random ids and generation ignores stop tokens, so every run does the same work
// whatever the weights. Build: one source file beside the library (tests/bench/README.md); under
// Emscripten with -sNODERAWFS=1.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/model_loader.h"
#include "sample/random.h"
#include "session/session.h"
#include "simd/probe.h"

namespace headlight {
namespace {

struct Options {
  std::string model;
  size_t n_prompt = 128;
  size_t n_gen = 64;
  size_t n_threads = 1;
  size_t n_repeat = 3;
  SessionOptions session;
};

double NowMs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

[[noreturn]] void Fail(const std::string& message) { throw Error(ErrorCode::kBadOption, message); }

size_t Number(const std::string& text) {
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || text.size() > 9) Fail("not a number: " + text);
  return std::stoul(text);
}

void Set(const std::string& name, const std::string& value, Options& options) {
  if (name == "--prompt") {
    options.n_prompt = Number(value);
  } else if (name == "--gen") {
    options.n_gen = Number(value);
  } else if (name == "--threads") {
    options.n_threads = Number(value);
  } else if (name == "--repeat") {
    options.n_repeat = std::max<size_t>(Number(value), 1);
  } else if (name == "--chunk") {
    options.session.prefill_chunk = Number(value);
  } else if (name == "--kv" && (value == "f32" || value == "f16" || value == "int8")) {
    const CacheType type = value == "int8"  ? CacheType::kInt8
                           : value == "f16" ? CacheType::kF16
                                            : CacheType::kF32;
    options.session.kv_format = {type, type};
  } else if (name == "--activations" && (value == "int8" || value == "f32")) {
    options.session.activations = value == "f32" ? ActivationType::kF32 : ActivationType::kInt8;
  } else {
    Fail("unknown option " + name + " " + value);
  }
}

Options ParseOptions(int argc, char** argv) {
  if (argc < 2 || argc % 2 != 0) Fail("usage: decode_bench MODEL.gguf [--name value]...");
  Options options;
  options.model = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) Set(argv[i], argv[i + 1], options);
  return options;
}

// In chunks, as a page does: the file is never whole in memory.
std::shared_ptr<const Model> Load(const std::string& path, DotForm form) {
  std::ifstream file(path, std::ios::binary);
  if (!file) Fail("cannot open " + path);
  ModelLoader loader(form);
  std::vector<char> chunk(size_t{1} << 20);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(chunk.data()),
                                   static_cast<size_t>(file.gcount()));
    while (!bytes.empty()) {
      if (loader.state() == ModelLoader::State::kPlanned) loader.Allocate();
      const size_t n_taken = loader.Append(bytes);
      if (n_taken == 0 && loader.state() != ModelLoader::State::kPlanned) break;
      bytes = bytes.subspan(n_taken);
    }
  }
  return loader.Finish();
}

void Run(const Options& options) {
  const ProbeResult probe = ProbeDot();
  const double load_start = NowMs();
  const std::shared_ptr<const Model> model = Load(options.model, probe.form);
  const double load_ms = NowMs() - load_start;
  ThreadPool pool(options.n_threads);
  Session session(model, options.session, pool);
  Random random(1);
  std::vector<uint32_t> prompt(options.n_prompt);
  for (uint32_t& id : prompt) id = static_cast<uint32_t>(random.Next() % model->spec.vocab_size);
  GenerateOptions generate;
  generate.sampler.temperature = 0.0f;
  generate.max_tokens = options.n_gen;
  generate.ignore_stop_tokens = true;

  // The best of the repetitions: what nothing else on the machine interrupted.
  double prefill_rate = 0.0;
  double decode_rate = 0.0;
  for (size_t i = 0; i < options.n_repeat; ++i) {
    session.Truncate(0);
    session.Begin(prompt, generate);
    constexpr double kBudgetMs = 25.0;  // as the worker's default
    while (!session.Advance(kBudgetMs).done) {
    }
    const RunStats& stats = session.stats();
    prefill_rate =
        std::max(prefill_rate, 1e3 * static_cast<double>(stats.n_prompt) / stats.prefill_ms);
    if (stats.n_decode_steps == 0) continue;
    decode_rate =
        std::max(decode_rate, 1e3 * static_cast<double>(stats.n_decode_steps) / stats.decode_ms);
  }
  const SessionPlan& plan = session.plan();
  std::printf(
      "{\"dot_form\":\"%s\",\"relaxed\":%s,\"threads\":%zu,\"n_prompt\":%zu,\"n_gen\":%zu,"
      "\"prefill_chunk\":%zu,"
      "\"weights_bytes\":%zu,\"kv_cache_bytes\":%zu,\"workspace_bytes\":%zu,\"load_ms\":%.1f,"
      "\"prefill_tokens_per_s\":%.2f,\"decode_tokens_per_s\":%.2f}\n",
      DotFormName(probe.form), probe.relaxed_build ? "true" : "false", options.n_threads,
      options.n_prompt, options.n_gen, plan.prefill_chunk, model->weights_bytes,
      plan.kv_cache_bytes, plan.workspace_bytes, load_ms, prefill_rate, decode_rate);
}

}  // namespace
}  // namespace headlight

int main(int argc, char** argv) {
  try {
    headlight::Run(headlight::ParseOptions(argc, argv));
    return 0;
  } catch (const headlight::Error& error) {
    std::fprintf(stderr, "%s: %s\n", headlight::ErrorCodeName(error.code()), error.what());
    return 1;
  }
}
