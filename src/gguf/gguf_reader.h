// Progressive GGUF reader (v2, v3): bytes in, key-values and tensor directory out, as soon as they
// are complete, so that a header of several MB never has to be held twice. Reads headers only:
// tensor bytes go to quant/PackedWriter. Every count, length and offset is checked against a named
// limit (gguf_limits.h) before anything is allocated.
#ifndef HEADLIGHT_GGUF_GGUF_READER_H_
#define HEADLIGHT_GGUF_GGUF_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"

namespace headlight {

// Value types as numbered in the file.
enum class GgufType : uint32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};

// All strings of an array in one buffer: string i is bytes [offsets[i], offsets[i + 1]).
struct GgufStringArray {
  std::string bytes;
  std::vector<uint32_t> offsets = {0};  // count + 1
  size_t count() const { return offsets.size() - 1; }
  std::string_view at(size_t i) const {
    return std::string_view(bytes).substr(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

// Numbers of an array as the file stores them (little-endian, element type `type`; bool is a byte,
// 0 or 1).
struct GgufNumberArray {
  GgufType type = GgufType::kU8;
  std::vector<uint8_t> bytes;
  size_t count() const;
  double at(size_t i) const;  // value of element i; 64-bit integers beyond 2^53 are rounded
};

// Arrays of arrays are refused (kUnsupported): no key of the format's documentation uses them.
using GgufValue =
    std::variant<uint64_t, int64_t, double, bool, std::string, GgufStringArray, GgufNumberArray>;

struct GgufTensor {
  std::string name;
  TensorType type = TensorType::kF32;
  uint32_t n_dims = 0;
  uint64_t dims[4] = {1, 1, 1, 1};  // dims[0] is the row length
  uint64_t offset = 0;              // from the start of the data section
  uint64_t bytes = 0;               // in the file
  uint64_t n_cols() const { return dims[0]; }
  uint64_t n_rows() const { return dims[1] * dims[2] * dims[3]; }
};

// What a header says; complete once GgufReader::header_done().
struct GgufHeader {
  uint32_t version = 0;
  uint64_t alignment = 0;
  uint64_t data_offset = 0;
  uint64_t data_bytes = 0;
  std::vector<GgufTensor> tensors;        // in file order
  std::vector<uint32_t> tensors_by_name;  // indices of `tensors`, sorted by name
  std::map<std::string, GgufValue, std::less<>> values;
};

class GgufParser;  // the state machine, gguf_parser.h

class GgufReader {
 public:
  GgufReader();
  ~GgufReader();
  GgufReader(GgufReader&&) noexcept;
  GgufReader& operator=(GgufReader&&) noexcept;

  // Takes header bytes in order, in chunks cut anywhere; returns how many were taken. Fewer than
  // given means that the header (padding included) is complete and the rest is tensor data. Throws
  // Error(kBadModel | kUnsupported), and the same error again on every later call.
  size_t Append(std::span<const uint8_t> bytes);
  bool header_done() const { return parser_ == nullptr; }
  // Call when the stream ends: throws Error(kBadModel) naming the offset if the header is
  // incomplete.
  void Finish() const;

  uint32_t version() const { return header_.version; }
  uint64_t alignment() const { return header_.alignment; }
  uint64_t data_offset() const { return header_.data_offset; }  // file offset of the data section
  uint64_t data_bytes() const { return header_.data_bytes; }    // up to the end of the last tensor
  // In file order; neither overlapping nor repeated, each aligned, each row a whole number of
  // blocks.
  const std::vector<GgufTensor>& tensors() const { return header_.tensors; }
  const GgufTensor* FindTensor(std::string_view name) const;  // nullptr when missing

  const std::map<std::string, GgufValue, std::less<>>& values() const { return header_.values; }
  bool Has(std::string_view key) const { return header_.values.contains(key); }
  // Typed access. Without a default a missing key throws Error(kBadModel) naming it; a wrong type
  // or a value that does not fit always throws. GetUint takes any integer >= 0, GetFloat any
  // number. Ids of 4294967295 mean "none" and are the caller's to treat.
  uint64_t GetUint(std::string_view key, std::optional<uint64_t> fallback = {}) const;
  double GetFloat(std::string_view key, std::optional<double> fallback = {}) const;
  bool GetBool(std::string_view key, std::optional<bool> fallback = {}) const;
  const std::string& GetString(std::string_view key) const;
  const GgufStringArray* FindStrings(std::string_view key) const;  // nullptr when missing
  const GgufNumberArray* FindNumbers(std::string_view key) const;  // nullptr when missing
  // Frees the named value once it has been handed on (vocabularies are large); the key is gone
  // then.
  void Drop(std::string_view key);

 private:
  const GgufValue* Find(std::string_view key) const;

  GgufHeader header_;
  std::unique_ptr<GgufParser> parser_;  // gone once the header is complete
  std::optional<Error> failure_;
};

}  // namespace headlight

#endif  // HEADLIGHT_GGUF_GGUF_READER_H_
