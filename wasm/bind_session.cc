// Model and Session: generation in small steps, and logits without generation.
#include <emscripten/bind.h>
#include <emscripten/em_js.h>

#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "guard.h"
#include "objects.h"
#include "wire.h"
#include "wire_capture.h"

namespace headlight::wasm {
namespace {

// A few nanoseconds between two layers. The page's thread gets the flag's own few bytes and never
// the WASM memory, which it would keep alive behind a worker that has ended.
// clang-format off
EM_JS(int, headlight_stop_asked, (), {
  const flag = Module['stopFlag'];
  return flag !== undefined && Atomics.load(flag, 0) !== 0;
});
// clang-format on

// Into a Uint8Array, which is no WASM memory: what is saved is never there twice.
class ArraySink : public SavedSink {
 public:
  explicit ArraySink(uint64_t n_bytes)
      : array_(val::global("Uint8Array").new_(static_cast<double>(n_bytes))) {}
  void Write(std::span<const uint8_t> bytes) override {
    if (bytes.empty()) return;
    array_.call<void>("set", val(emscripten::typed_memory_view(bytes.size(), bytes.data())), at_);
    at_ += static_cast<double>(bytes.size());
  }
  const val& array() const { return array_; }

 private:
  val array_;
  double at_ = 0;
};

class ArraySource : public SavedSource {
 public:
  explicit ArraySource(const val& array) : array_(array) {
    if (!array.instanceof(val::global("Uint8Array"))) {
      throw Error(ErrorCode::kBadOption, "bytes must be a Uint8Array", {{"option", "bytes"}});
    }
  }
  uint64_t n_bytes() const override {
    return static_cast<uint64_t>(array_["byteLength"].as<double>());
  }
  void Read(uint64_t offset, std::span<uint8_t> out) override {
    if (out.empty()) return;
    const double begin = static_cast<double>(offset);
    const val piece = array_.call<val>("subarray", begin, begin + static_cast<double>(out.size()));
    val(emscripten::typed_memory_view(out.size(), out.data())).call<void>("set", piece);
  }

 private:
  val array_;
};

}  // namespace

val ModelObject::Info() const { return ModelInfoToVal(model_->spec, model_->weights_bytes); }

val ModelObject::CreateSession(const val& options) const {
  return Guard([&] {
    return std::make_shared<SessionObject>(runtime_, model_, ReadSessionOptions(options));
  });
}

SessionObject::SessionObject(std::shared_ptr<RuntimeState> runtime,
                             std::shared_ptr<const Model> model, const SessionOptions& options)
    : runtime_(std::move(runtime)), session_(std::move(model), options, runtime_->pool) {
  session_.set_stop_asked([] { return headlight_stop_asked() != 0; });
}

val SessionObject::Begin(const val& tokens, const val& options) {
  return Guard([&] {
    const std::vector<uint32_t> ids = ReadUint32Array(tokens, "tokens");
    session_.Begin(ids, ReadGenerateOptions(options));
  });
}

val SessionObject::Advance(double budget_ms) {
  return Guard([&] { return ToVal(session_.Advance(budget_ms)); });
}

val SessionObject::Truncate(size_t n_tokens) {
  return Guard([&] { session_.Truncate(n_tokens); });
}

val SessionObject::CopyFrom(SessionObject& other) {
  return Guard([&] { session_.CopyFrom(other.session_); });
}

val SessionObject::Save() const {
  return Guard([&] {
    ArraySink sink(session_.SavedBytes());
    session_.Save(sink);
    return sink.array();
  });
}

val SessionObject::Restore(const val& bytes) {
  return Guard([&] {
    ArraySource source(bytes);
    session_.Restore(source);
  });
}

val SessionObject::BeginForward(const val& tokens, bool all_positions, const val& capture) {
  return Guard([&] {
    const std::vector<uint32_t> ids = ReadUint32Array(tokens, "tokens");
    const std::optional<CaptureRequest> request = ReadCaptureRequest(capture);
    session_.BeginForward(ids, all_positions, request.has_value() ? &*request : nullptr);
  });
}

val SessionObject::AdvanceForward(double budget_ms) {
  return Guard([&] {
    const std::optional<Session::Forward> result = session_.AdvanceForward(budget_ms);
    if (!result.has_value()) return val::null();
    val out = val::object();
    out.set("logits", ToFloat32Array(result->logits));
    out.set("capture", result->capture == nullptr ? val::null() : ToVal(*result->capture));
    return out;
  });
}

val SessionObject::History() const { return ToUint32Array(session_.history()); }
val SessionObject::Stats() const { return ToVal(session_.stats()); }
val SessionObject::Plan() const { return ToVal(session_.plan()); }

EMSCRIPTEN_BINDINGS(headlight_session) {
  emscripten::class_<ModelObject>("Model")
      .smart_ptr<std::shared_ptr<ModelObject>>("ModelPtr")
      .function("info", &ModelObject::Info)
#ifndef HEADLIGHT_NO_LAB
      .function("edit", &ModelObject::Edit)
      .function("attentionTensor", &ModelObject::AttentionTensor)
      .function("singularValues", &ModelObject::SingularValuesOf)
      .function("createCalibration", &ModelObject::CreateCalibration)
      .function("traceBlock", &ModelObject::TraceBlock)
#endif
      .function("createSession", &ModelObject::CreateSession);
  emscripten::class_<SessionObject>("Session")
      .smart_ptr<std::shared_ptr<SessionObject>>("SessionPtr")
      .function("begin", &SessionObject::Begin)
      .function("advance", &SessionObject::Advance)
      .function("cancel", &SessionObject::Cancel)
      .function("truncate", &SessionObject::Truncate)
      .function("beginForward", &SessionObject::BeginForward)
      .function("advanceForward", &SessionObject::AdvanceForward)
      .function("copyFrom", &SessionObject::CopyFrom)
      .function("save", &SessionObject::Save)
      .function("restore", &SessionObject::Restore)
#ifndef HEADLIGHT_NO_LAB
      .function("beginScores", &SessionObject::BeginScores)
      .function("advanceScores", &SessionObject::AdvanceScores)
#endif
      .function("history", &SessionObject::History)
      .function("stats", &SessionObject::Stats)
      .function("plan", &SessionObject::Plan);
}

}  // namespace headlight::wasm
