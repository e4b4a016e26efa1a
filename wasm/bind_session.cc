// Model and Session: generation in small steps, and logits without generation.
#include <emscripten/bind.h>

#include <optional>
#include <span>
#include <vector>

#include "guard.h"
#include "objects.h"
#include "wire.h"
#include "wire_capture.h"

namespace headlight::wasm {

val ModelObject::Info() const { return ModelInfoToVal(model_->spec, model_->weights_bytes); }

val ModelObject::CreateSession(const val& options) const {
  return Guard([&] {
    return std::make_shared<SessionObject>(runtime_, model_, ReadSessionOptions(options));
  });
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

val SessionObject::Forward(const val& tokens, bool all_positions, const val& capture) {
  return Guard([&] {
    const std::vector<uint32_t> ids = ReadUint32Array(tokens, "tokens");
    const std::optional<CaptureRequest> request = ReadCaptureRequest(capture);
    const Session::Forward result =
        session_.Compute(ids, all_positions, request.has_value() ? &*request : nullptr);
    val out = val::object();
    out.set("logits", ToFloat32Array(result.logits));
    out.set("capture", result.capture == nullptr ? val::null() : ToVal(*result.capture));
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
      .function("createSession", &ModelObject::CreateSession);
  emscripten::class_<SessionObject>("Session")
      .smart_ptr<std::shared_ptr<SessionObject>>("SessionPtr")
      .function("begin", &SessionObject::Begin)
      .function("advance", &SessionObject::Advance)
      .function("cancel", &SessionObject::Cancel)
      .function("truncate", &SessionObject::Truncate)
      .function("forward", &SessionObject::Forward)
      .function("history", &SessionObject::History)
      .function("stats", &SessionObject::Stats)
      .function("plan", &SessionObject::Plan)
      .function("cancelFlagAddress", &SessionObject::CancelFlagAddress);
}

}  // namespace headlight::wasm
