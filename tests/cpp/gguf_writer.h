// Writes GGUF files for tests, right ones and wrong ones: every count, type, offset and length can
// be overridden. And a small model of any layout with seeded weights, together with the exact
// values that its blocks hold.
#ifndef HEADLIGHT_TESTS_GGUF_WRITER_H_
#define HEADLIGHT_TESTS_GGUF_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/head_layout.h"
#include "gguf/gguf_reader.h"

namespace headlight::testing {

// Bytes in the file's order.
class ByteSink {
 public:
  template <typename T>
  ByteSink& Number(T value) {
    const auto* p = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), p, p + sizeof(T));
    return *this;
  }
  ByteSink& String(std::string_view text);  // length, then bytes
  ByteSink& Append(std::span<const uint8_t> more);

  std::vector<uint8_t> bytes;
};

struct EncodedTensor {
  std::vector<uint8_t> bytes;  // as in the file
  std::vector<float> values;   // what those bytes mean
};
// values: [n] float32, n a multiple of the type's block.
EncodedTensor EncodeTensor(TensorType type, std::span<const float> values);

// A tensor's directory entry and data; fields default to what is right.
struct GgufTensorEntry {
  std::string name;
  uint32_t type = 0;
  std::vector<uint64_t> dims;  // dims[0] is the row length
  std::vector<uint8_t> data;
  std::optional<uint32_t> n_dims = {};  // what the file claims instead of dims.size()
  std::optional<uint64_t> offset =
      {};  // what the file claims; the data follow it if place_by_offset
};

class GgufWriter {
 public:
  GgufWriter& Uint(std::string_view key, uint32_t value);
  GgufWriter& Float(std::string_view key, float value);
  GgufWriter& Bool(std::string_view key, bool value);
  GgufWriter& String(std::string_view key, std::string_view value);
  GgufWriter& Strings(std::string_view key, const std::vector<std::string>& values);
  GgufWriter& Floats(std::string_view key, const std::vector<float>& values);
  GgufWriter& Ints(std::string_view key, const std::vector<int32_t>& values);
  GgufWriter& Uints(std::string_view key, const std::vector<uint32_t>& values);
  // A value of any type, given as the bytes that follow the type. A key given twice replaces the
  // first; RawAgain does not.
  GgufWriter& Raw(std::string_view key, uint32_t type, std::vector<uint8_t> payload);
  GgufWriter& RawAgain(std::string_view key, uint32_t type, std::vector<uint8_t> payload);
  GgufWriter& Remove(std::string_view key);

  GgufWriter& Tensor(GgufTensorEntry entry);
  // [n_rows, n_cols] float32, encoded as `type`; n_rows 0 for a vector.
  GgufWriter& Tensor(std::string_view name, TensorType type, size_t n_rows,
                     std::span<const float> values);
  GgufWriter& RemoveTensor(std::string_view name);
  GgufTensorEntry& tensor(std::string_view name);  // fails the test when missing

  std::vector<uint8_t> Header() const;  // padded to the data section
  std::vector<uint8_t> File() const;

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the layout; general.alignment is written only where a test does
  bool place_by_offset =
      false;  // File() puts data at claimed offsets; else one tensor after another
  std::optional<uint64_t> n_tensors_claimed;
  std::optional<uint64_t> n_keys_claimed;

 private:
  struct KeyValue {
    std::string key;
    uint32_t type;
    std::vector<uint8_t> payload;
  };
  std::vector<KeyValue> key_values_;
  std::vector<GgufTensorEntry> tensors_;
};

// A llama-like model. Widths need not be multiples of 32 for F32, F16 and BF16.
struct GgufModelOptions {
  std::string architecture = "llama";
  size_t n_layers = 2;
  size_t d_model = 64;
  HeadLayout heads = {4, 2, 16, 24};
  size_t d_ff = 96;
  size_t vocab_size = 96;
  size_t n_ctx = 128;
  TensorType type = TensorType::kF32;       // of the matrices
  TensorType norm_type = TensorType::kF32;  // of the vectors
  bool tied_head = true;
  std::optional<size_t> n_rot;  // d_qk when not given
  double freq_base = 10000.0;
  bool with_vocabulary = true;  // byte-fallback tokens, scores, types
  uint64_t seed = 1;
};

// The file to be, still to be changed by a test, and its decoded weights by tensor name ([n_rows,
// n_cols] or [n]).
struct GgufModel {
  GgufWriter writer;
  std::map<std::string, std::vector<float>, std::less<>> values;
};
GgufModel MakeGgufModel(const GgufModelOptions& options);
std::vector<uint8_t> MakeGgufModelFile(const GgufModelOptions& options);

}  // namespace headlight::testing

#endif  // HEADLIGHT_TESTS_GGUF_WRITER_H_
