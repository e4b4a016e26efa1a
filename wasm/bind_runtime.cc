// Runtime: the probe, the thread pool, and how much memory there is.
#include <emscripten/bind.h>
#include <emscripten/heap.h>
#include <unistd.h>

#include <cstdint>
#include <new>
#include <string>

#include "base/aligned.h"
#include "guard.h"
#include "kernels/limits.h"
#include "objects.h"
#include "simd/probe.h"

namespace headlight::wasm {
namespace {

val Probe() {
  const ProbeResult probe = ProbeDot();
  val out = val::object();
  out.set("dotForm", std::string(DotFormName(probe.form)));
  out.set("relaxedBuild", probe.relaxed_build);
  out.set("relaxedOk", probe.relaxed_ok);
#ifdef __EMSCRIPTEN_PTHREADS__
  out.set("threadsBuild", true);
#else
  out.set("threadsBuild", false);
#endif
  return out;
}

double WasmBytes() { return static_cast<double>(emscripten_get_heap_size()); }

// Memory that is grown by malloc grows in many small steps, each of which may copy it. Here it is
// grown once; malloc then finds it grown. The break is where fresh memory begins: holes below it
// are not counted on.
val Reserve(double n_bytes) {
  return Guard([&] {
    const double needed = static_cast<double>(reinterpret_cast<uintptr_t>(sbrk(0))) + n_bytes;
    if (!(n_bytes >= 0)) {
      throw Error(ErrorCode::kBadOption, "nBytes must not be negative", {{"option", "nBytes"}});
    }
    if (needed <= static_cast<double>(emscripten_get_heap_size())) return;
    if (needed > static_cast<double>(emscripten_get_heap_max()) ||
        !emscripten_resize_heap(static_cast<size_t>(needed))) {
      throw std::bad_alloc();
    }
  });
}

val CreateRuntime(double n_threads) {
  return Guard([&] {
    // One tab cannot use more than this; it also bounds the stacks (1 MiB each).
    constexpr double kMaxThreads = 64;
    if (!(n_threads >= 1 && n_threads <= kMaxThreads)) {
      throw Error(ErrorCode::kBadOption, "threads must be in [1, 64]", {{"option", "threads"}});
    }
    auto state = std::make_shared<RuntimeState>(static_cast<size_t>(n_threads), ProbeDot().form);
    return std::make_shared<RuntimeObject>(std::move(state));
  });
}

val MeasureLimits(const RuntimeObject& runtime, double read_bytes, double budget_ms) {
  return Guard([&] {
    // More than any cache; the budget is what a person waits for.
    constexpr double kMaxReadBytes = 512e6;
    constexpr double kMaxBudgetMs = 60e3;
    if (!(read_bytes >= 0 && read_bytes <= kMaxReadBytes)) {
      throw Error(ErrorCode::kBadOption, "readBytes must be in [0, 512e6]",
                  {{"option", "readBytes"}});
    }
    if (!(budget_ms > 0 && budget_ms <= kMaxBudgetMs)) {
      throw Error(ErrorCode::kBadOption, "budgetMs must be in (0, 60000]",
                  {{"option", "budgetMs"}});
    }
    AlignedArray<uint8_t> bytes(static_cast<size_t>(read_bytes));
    const SpeedLimits limits =
        headlight::MeasureLimits({bytes.data(), bytes.size()}, budget_ms, runtime.pool());
    val out = val::object();
    out.set("readGBs", limits.read_gbs);
    out.set("dotGops", limits.dot_gops);
    out.set("fmaGflops", limits.fma_gflops);
    return out;
  });
}

EMSCRIPTEN_BINDINGS(headlight_runtime) {
  emscripten::function("probe", &Probe);
  emscripten::function("wasmBytes", &WasmBytes);
  emscripten::function("createRuntime", &CreateRuntime);
  emscripten::function("reserve", &Reserve);
  emscripten::function("measureLimits", &MeasureLimits);
  emscripten::class_<RuntimeObject>("Runtime")
      .smart_ptr<std::shared_ptr<RuntimeObject>>("RuntimePtr")
      .function("createLoader", &RuntimeObject::CreateLoader)
      .function("nThreads", &RuntimeObject::NThreads);
}

}  // namespace
}  // namespace headlight::wasm
