// libFuzzer target: any bytes as the header of a file, and everything read of its key-values that
// the tokenizer is built from (wasm/bind_loader.cc): scalars by type, strings, numbers. The outcome
// is values or a typed error, the same for every chunk size.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/error.h"
#include "gguf/gguf_reader.h"

namespace {

using headlight::Error;
using headlight::GgufNumberArray;
using headlight::GgufReader;
using headlight::GgufStringArray;

class Digest {
 public:
  void Add(std::string_view bytes) {
    for (const char byte : bytes) Add(static_cast<uint64_t>(byte));
  }
  void Add(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001B3u; }  // FNV-1a
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xCBF29CE484222325u;
};

void Check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void ReadStrings(const GgufStringArray& strings, Digest& digest) {
  Check(strings.offsets.front() == 0 && strings.offsets.back() == strings.bytes.size(),
        "offsets do not span the strings");
  size_t n_bytes = 0;
  for (size_t i = 0; i < strings.count(); ++i) {
    digest.Add(strings.at(i));
    n_bytes += strings.at(i).size();
  }
  Check(n_bytes == strings.bytes.size(), "strings overlap");
}

void ReadNumbers(const GgufNumberArray& numbers, Digest& digest) {
  for (size_t i = 0; i < numbers.count(); ++i) {
    uint64_t bits = 0;
    const double value = numbers.at(i);
    std::memcpy(&bits, &value, sizeof(bits));
    digest.Add(bits);
  }
}

// By every typed access, right or wrong.
void ReadScalar(const GgufReader& reader, const std::string& key, Digest& digest) {
  const std::function<uint64_t()> reads[] = {
      [&] { return reader.GetUint(key); },
      [&] { return static_cast<uint64_t>(reader.GetFloat(key) == 0.0); },
      [&] { return static_cast<uint64_t>(reader.GetBool(key)); },
      [&] { return reader.GetString(key).size(); },
  };
  for (const auto& read : reads) {
    try {
      digest.Add(read());
    } catch (const Error& error) {
      digest.Add(error.message());
    }
  }
}

std::string Outcome(std::span<const uint8_t> file, size_t chunk) {
  GgufReader reader;
  try {
    while (!file.empty() && !reader.header_done()) {
      file = file.subspan(reader.Append(file.first(std::min(chunk, file.size()))));
    }
    reader.Finish();
  } catch (const Error& error) {
    return error.message();
  }
  Digest digest;
  std::vector<std::string> keys;
  for (const auto& [key, value] : reader.values()) {
    digest.Add(key);
    if (const auto* strings = std::get_if<GgufStringArray>(&value)) {
      ReadStrings(*strings, digest);
    } else if (const auto* numbers = std::get_if<GgufNumberArray>(&value)) {
      ReadNumbers(*numbers, digest);
    } else {
      ReadScalar(reader, key, digest);
    }
    keys.push_back(key);
  }
  for (const std::string& key : keys) {
    reader.Drop(key);
    Check(!reader.Has(key), "a dropped key is still there");
  }
  return std::to_string(digest.hash());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  if (n_bytes == 0) return 0;
  const size_t chunk = 1 + data[n_bytes - 1] % 61;  // from the end, so that seeds are files
  const std::span<const uint8_t> file(data, n_bytes - 1);
  const std::string whole = Outcome(file, n_bytes);
  const std::string pieces = Outcome(file, chunk);
  if (whole != pieces) {
    std::fprintf(stderr, "whole: %s\nin chunks of %zu: %s\n", whole.c_str(), chunk, pieces.c_str());
    std::abort();
  }
  return 0;
}
