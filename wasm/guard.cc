#include "guard.h"

#include <emscripten/heap.h>

#include <exception>
#include <new>
#include <string>

namespace headlight::wasm {
namespace {

val ErrorToVal(const Error& error) {
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

Error OutOfMemoryError() {
  return Error(ErrorCode::kOutOfMemory,
               "the WebAssembly memory could not grow any further; use a smaller n_ctx, a smaller "
               "cache format or "
               "a smaller model",
               {{"had_bytes", std::to_string(emscripten_get_heap_size())}});
}

}  // namespace

val CaughtToVal() {
  try {
    throw;
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
