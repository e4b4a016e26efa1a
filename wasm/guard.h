// Turns what C++ throws into data: every bound call that can fail returns {value} or {error}, so
// that no exception crosses Embind (it would reach JavaScript as an opaque object or a bare
// number).
#ifndef HEADLIGHT_WASM_GUARD_H_
#define HEADLIGHT_WASM_GUARD_H_

#include <emscripten/val.h>

#include <type_traits>
#include <utility>

#include "base/error.h"

namespace headlight::wasm {

using emscripten::val;

// The exception being handled, as {error}. Not inline: what a catch block takes would be there once
// for every bound method.
val CaughtToVal();

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
  } catch (...) {
    return CaughtToVal();
  }
}

}  // namespace headlight::wasm

#endif  // HEADLIGHT_WASM_GUARD_H_
