// Turns what C++ throws into data: every bound call that can fail returns {value} or {error}, so
// that no exception crosses Embind (it would reach JavaScript as an opaque object or a bare
// number).
#ifndef HEADLIGHT_WASM_GUARD_H_
#define HEADLIGHT_WASM_GUARD_H_

#include <emscripten/heap.h>
#include <emscripten/val.h>

#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace headlight::wasm {

using emscripten::val;

inline val ErrorToVal(const Error& error) {
  val details = val::object();
  for (const auto& [key, value] : error.details()) details.set(key, value);
  val data = val::object();
  data.set("code", std::string(ErrorCodeName(error.code())));
  data.set("message", error.message());
  data.set("details", details);
  val result = val::object();
  result.set("error", data);
  return result;
}

inline Error OutOfMemoryError() {
  return Error(ErrorCode::kOutOfMemory,
               "the WebAssembly memory could not grow any further; use a smaller n_ctx, a smaller "
               "cache format or "
               "a smaller model",
               {{"had_bytes", std::to_string(emscripten_get_heap_size())}});
}

// Calls f and wraps what it returns; a void f gives {value: null}.
template <typename F>
val Guard(F&& f) {
  try {
    val result = val::object();
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::forward<F>(f)();
      result.set("value", val::null());
    } else {
      result.set("value", std::forward<F>(f)());
    }
    return result;
  } catch (const Error& error) {
    return ErrorToVal(error);
  } catch (const std::bad_alloc&) {
    return ErrorToVal(OutOfMemoryError());
  } catch (const std::exception& error) {
    return ErrorToVal(Error(ErrorCode::kInternal, error.what()));
  } catch (...) {
    return ErrorToVal(Error(ErrorCode::kInternal, "an exception of an unknown type was thrown"));
  }
}

}  // namespace headlight::wasm

#endif  // HEADLIGHT_WASM_GUARD_H_
