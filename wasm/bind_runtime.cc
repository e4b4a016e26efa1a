// Runtime: the probe, the thread pool, and how much memory there is.
#include <emscripten/bind.h>
#include <emscripten/heap.h>

#include <string>

#include "guard.h"
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

EMSCRIPTEN_BINDINGS(headlight_runtime) {
  emscripten::function("probe", &Probe);
  emscripten::function("wasmBytes", &WasmBytes);
  emscripten::function("createRuntime", &CreateRuntime);
  emscripten::class_<RuntimeObject>("Runtime")
      .smart_ptr<std::shared_ptr<RuntimeObject>>("RuntimePtr")
      .function("createLoader", &RuntimeObject::CreateLoader)
      .function("nThreads", &RuntimeObject::NThreads);
}

}  // namespace
}  // namespace headlight::wasm
