// How the reader and the model loader word their errors: what is wrong, where (key, tensor or byte
// offset), what to do. File contents go into messages through Quoted() only, so that hostile bytes
// cannot garble a message or make it huge.
#ifndef HEADLIGHT_GGUF_GGUF_ERROR_H_
#define HEADLIGHT_GGUF_GGUF_ERROR_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace headlight {

// The remedy where a number cannot be right.
inline constexpr const char* kFetchAgain = "; the file is damaged, fetch or convert it again";

inline std::string NumberText(uint64_t n) { return std::to_string(n); }

// 'text' in single quotes: printable ASCII as it is, other bytes as \xNN, cut after 80 bytes.
std::string Quoted(std::string_view text);

// "[64, 512]"
std::string ShapeText(std::span<const uint64_t> dims);

// "Q8_0", or the number for a type that nobody knows. Names types of the format that Headlight
// cannot even size.
std::string TensorTypeText(uint32_t type);

[[noreturn]] void ThrowBadModel(std::string message, Error::Details details = {});
[[noreturn]] void ThrowUnsupported(std::string message, Error::Details details = {});

}  // namespace headlight

#endif  // HEADLIGHT_GGUF_GGUF_ERROR_H_
