// Plain structs to and from JavaScript objects, with the field names of headlight.d.ts. Reading
// checks the type of every field and throws Error(kBadOption) naming it; ranges are checked by the
// structs' own users.
#ifndef HEADLIGHT_WASM_WIRE_H_
#define HEADLIGHT_WASM_WIRE_H_

#include <emscripten/val.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/model_spec.h"
#include "session/session.h"

namespace headlight::wasm {

using emscripten::val;

double ReadNumber(const val& object, const char* field);
// A non-negative integer of at most 2^32 - 1 (what a wasm32 size_t holds).
size_t ReadSize(const val& object, const char* field);
bool ReadBool(const val& object, const char* field);
std::string ReadString(const val& object, const char* field);
CacheType ReadCacheType(const val& object, const char* field);

// Typed arrays are copied in and out: a view of the heap dies when memory grows and cannot be
// posted when it is shared.
std::vector<uint32_t> ReadUint32Array(const val& array, const char* name);
std::vector<float> ReadFloat32Array(const val& array, const char* name);
val ToUint8Array(std::span<const uint8_t> bytes);
val ToUint32Array(std::span<const uint32_t> values);
val ToFloat32Array(std::span<const float> values);
val ToFloat64Array(std::span<const double> values);

SessionOptions ReadSessionOptions(const val& options);
GenerateOptions ReadGenerateOptions(const val& options);
val ToVal(const SessionPlan& plan);
val ToVal(const AdvanceResult& result);
val ToVal(const RunStats& stats);
val ModelInfoToVal(const ModelSpec& spec, size_t weights_bytes);

}  // namespace headlight::wasm

#endif  // HEADLIGHT_WASM_WIRE_H_
