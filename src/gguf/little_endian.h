// Little-endian numbers out of unaligned file bytes. Every target of Headlight (WASM, x86-64,
// ARM64) is little-endian.
#ifndef HEADLIGHT_GGUF_LITTLE_ENDIAN_H_
#define HEADLIGHT_GGUF_LITTLE_ENDIAN_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace headlight {

static_assert(std::endian::native == std::endian::little);

template <typename T>
inline T LoadLittleEndian(const uint8_t* p) {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

}  // namespace headlight

#endif  // HEADLIGHT_GGUF_LITTLE_ENDIAN_H_
