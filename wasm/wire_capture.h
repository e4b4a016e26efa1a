// What a caller wants to look at, and what was captured, to and from JavaScript; field names of
// headlight.d.ts.
#ifndef HEADLIGHT_WASM_WIRE_CAPTURE_H_
#define HEADLIGHT_WASM_WIRE_CAPTURE_H_

#include <emscripten/val.h>

#include <optional>

#include "session/session.h"

namespace headlight::wasm {

using emscripten::val;

// CaptureStage by its name. Throws Error(kBadOption).
CaptureStage ReadCaptureStage(const val& object, const char* field);
// Nothing for null and undefined.
std::optional<CaptureRequest> ReadCaptureRequest(const val& request);
val ToVal(const ForwardCapture& capture);

}  // namespace headlight::wasm

#endif  // HEADLIGHT_WASM_WIRE_CAPTURE_H_
