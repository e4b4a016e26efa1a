// Progressive GGUF reader (v2, v3): bytes in, key-values and tensor directory out, as soon as they are complete, so that
// a header of several MB never has to be held twice. Reads headers only: tensor bytes go to quant/PackedWriter.
// Every count, length and offset is checked against a named limit before anything is allocated.
#ifndef HEADLIGHT_GGUF_GGUF_READER_H_
#define HEADLIGHT_GGUF_GGUF_READER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace headlight {

// Value types as numbered in the file.
enum class GgufType : uint32_t {
  kU8 = 0, kI8 = 1, kU16 = 2, kI16 = 3, kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7,
  kString = 8, kArray = 9, kU64 = 10, kI64 = 11, kF64 = 12,
};

// All strings of an array in one buffer: string i is bytes [offsets[i], offsets[i + 1]).
struct GgufStringArray {
  std::string bytes;
  std::vector<uint32_t> offsets;  // count + 1
  size_t count() const { return offsets.size() - 1; }
  std::string_view at(size_t i) const {
    return std::string_view(bytes).substr(offsets[i], offsets[i + 1] - offsets[i]);
  }
};

// Numbers of an array as the file stores them (little-endian, element type `type`).
struct GgufNumberArray {
  GgufType type = GgufType::kU8;
  std::vector<uint8_t> bytes;
  size_t count() const;
  double at(size_t i) const;  // value of element i
};

using GgufValue = std::variant<uint64_t, int64_t, double, bool, std::string, GgufStringArray, GgufNumberArray>;

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

class GgufReader {
 public:
  // Takes header bytes in order, in chunks cut anywhere; returns how many were taken. Fewer than given means that
  // the header (padding included) is complete and the rest is tensor data. Throws Error(kBadModel | kUnsupported).
  size_t Append(std::span<const uint8_t> bytes);
  bool header_done() const { return stage_ == Stage::kDone; }
  // Call when the stream ends: throws Error(kBadModel) naming the offset if the header is incomplete.
  void Finish() const;

  uint32_t version() const { return version_; }
  uint64_t data_offset() const { return data_offset_; }  // file offset of the data section
  uint64_t data_bytes() const { return data_bytes_; }    // up to the end of the last tensor
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // in file order
  const GgufTensor* FindTensor(std::string_view name) const;

  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  bool Has(std::string_view key) const { return values_.contains(key); }
  // Typed access. Without a default a missing key throws Error(kBadModel) naming it; a wrong type or a value that
  // does not fit always throws. Ids of 4294967295 mean "none" and are the caller's to treat.
  uint64_t GetUint(std::string_view key, std::optional<uint64_t> fallback = {}) const;
  double GetFloat(std::string_view key, std::optional<double> fallback = {}) const;
  bool GetBool(std::string_view key, std::optional<bool> fallback = {}) const;
  const std::string& GetString(std::string_view key) const;
  const GgufStringArray* FindStrings(std::string_view key) const;  // nullptr when missing
  const GgufNumberArray* FindNumbers(std::string_view key) const;  // nullptr when missing
  // Frees the named array once it has been handed on (vocabularies are large).
  void Drop(std::string_view key);

 private:
  enum class Stage : uint8_t { kPreamble, kKeyValues, kTensors, kPadding, kDone };
  // The implementer completes this part.
  Stage stage_ = Stage::kPreamble;
  uint32_t version_ = 0;
  uint64_t data_offset_ = 0;
  uint64_t data_bytes_ = 0;
  std::vector<GgufTensor> tensors_;
  std::map<std::string, GgufValue, std::less<>> values_;
};

}  // namespace headlight

#endif  // HEADLIGHT_GGUF_GGUF_READER_H_
