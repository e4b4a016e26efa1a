// Feeding bytes to a GgufReader in tests.
#ifndef HEADLIGHT_TESTS_GGUF_READING_H_
#define HEADLIGHT_TESTS_GGUF_READING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gguf/gguf_reader.h"

namespace headlight::testing {

// Feeds `file` in chunks until the header is done or the file ends; returns how many bytes were
// taken. Each chunk is a copy of its own, so that a reader that looks beyond it is seen by
// AddressSanitizer.
inline size_t AppendInChunks(GgufReader& reader, std::span<const uint8_t> file, size_t chunk) {
  size_t n_taken = 0;
  while (n_taken < file.size() && !reader.header_done()) {
    const auto part = file.subspan(n_taken, std::min(chunk, file.size() - n_taken));
    n_taken += reader.Append(std::vector<uint8_t>(part.begin(), part.end()));
  }
  return n_taken;
}

// The complete header of a file; throws what the reader throws. chunk 0: whole.
inline GgufReader ReadHeader(std::span<const uint8_t> file, size_t chunk = 0) {
  GgufReader reader;
  AppendInChunks(reader, file, chunk == 0 ? std::max<size_t>(file.size(), 1) : chunk);
  reader.Finish();
  return reader;
}

}  // namespace headlight::testing

#endif  // HEADLIGHT_TESTS_GGUF_READING_H_
