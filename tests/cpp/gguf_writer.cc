#include "gguf_writer.h"

#include <algorithm>
#include <utility>

#include "quant/blocks.h"
#include "support.h"

namespace headlight::testing {
namespace {

template <typename T>
std::vector<uint8_t> Payload(T value) {
  return ByteSink().Number(value).bytes;
}

template <typename T>
std::vector<uint8_t> ArrayPayload(GgufType type, const std::vector<T>& values) {
  ByteSink sink;
  sink.Number(static_cast<uint32_t>(type)).Number(uint64_t{values.size()});
  for (const T value : values) sink.Number(value);
  return sink.bytes;
}

uint64_t RoundUpTo(uint64_t n, uint64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

ByteSink& ByteSink::String(std::string_view text) {
  Number(uint64_t{text.size()});
  bytes.insert(bytes.end(), text.begin(), text.end());
  return *this;
}

ByteSink& ByteSink::Append(std::span<const uint8_t> more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
  return *this;
}

EncodedTensor EncodeTensor(TensorType type, std::span<const float> values) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(type));
  REQUIRE(values.size() % traits.n_block == 0);
  const size_t n_blocks = values.size() / traits.n_block;
  EncodedTensor out;
  out.bytes.resize(n_blocks * traits.block_bytes);
  out.values.resize(values.size());
  for (size_t b = 0; b < n_blocks; ++b) {
    uint8_t* block = out.bytes.data() + b * traits.block_bytes;
    EncodeBlock(type, values.data() + b * traits.n_block, block);
    DecodeBlock(type, block, out.values.data() + b * traits.n_block);
  }
  return out;
}

GgufWriter& GgufWriter::Uint(std::string_view key, uint32_t value) {
  return Raw(key, static_cast<uint32_t>(GgufType::kU32), Payload(value));
}

GgufWriter& GgufWriter::Float(std::string_view key, float value) {
  return Raw(key, static_cast<uint32_t>(GgufType::kF32), Payload(value));
}

GgufWriter& GgufWriter::Bool(std::string_view key, bool value) {
  return Raw(key, static_cast<uint32_t>(GgufType::kBool), {uint8_t{value}});
}

GgufWriter& GgufWriter::String(std::string_view key, std::string_view value) {
  return Raw(key, static_cast<uint32_t>(GgufType::kString), ByteSink().String(value).bytes);
}

GgufWriter& GgufWriter::Strings(std::string_view key, const std::vector<std::string>& values) {
  ByteSink sink;
  sink.Number(static_cast<uint32_t>(GgufType::kString)).Number(uint64_t{values.size()});
  for (const std::string& value : values) sink.String(value);
  return Raw(key, static_cast<uint32_t>(GgufType::kArray), std::move(sink.bytes));
}

GgufWriter& GgufWriter::Floats(std::string_view key, const std::vector<float>& values) {
  return Raw(key, static_cast<uint32_t>(GgufType::kArray), ArrayPayload(GgufType::kF32, values));
}

GgufWriter& GgufWriter::Ints(std::string_view key, const std::vector<int32_t>& values) {
  return Raw(key, static_cast<uint32_t>(GgufType::kArray), ArrayPayload(GgufType::kI32, values));
}

GgufWriter& GgufWriter::Uints(std::string_view key, const std::vector<uint32_t>& values) {
  return Raw(key, static_cast<uint32_t>(GgufType::kArray), ArrayPayload(GgufType::kU32, values));
}

GgufWriter& GgufWriter::Raw(std::string_view key, uint32_t type, std::vector<uint8_t> payload) {
  for (KeyValue& entry : key_values_) {
    if (entry.key != key) continue;
    entry.type = type;
    entry.payload = std::move(payload);
    return *this;
  }
  return RawAgain(key, type, std::move(payload));
}

GgufWriter& GgufWriter::RawAgain(std::string_view key, uint32_t type,
                                 std::vector<uint8_t> payload) {
  key_values_.push_back({std::string(key), type, std::move(payload)});
  return *this;
}

GgufWriter& GgufWriter::Remove(std::string_view key) {
  std::erase_if(key_values_, [&](const KeyValue& entry) { return entry.key == key; });
  return *this;
}

GgufWriter& GgufWriter::Tensor(GgufTensorEntry entry) {
  tensors_.push_back(std::move(entry));
  return *this;
}

GgufWriter& GgufWriter::Tensor(std::string_view name, TensorType type, size_t n_rows,
                               std::span<const float> values) {
  GgufTensorEntry entry;
  entry.name = name;
  entry.type = static_cast<uint32_t>(type);
  entry.dims = {n_rows == 0 ? values.size() : values.size() / n_rows};
  if (n_rows > 0) entry.dims.push_back(n_rows);
  entry.data = EncodeTensor(type, values).bytes;
  return Tensor(std::move(entry));
}

GgufWriter& GgufWriter::RemoveTensor(std::string_view name) {
  std::erase_if(tensors_, [&](const GgufTensorEntry& entry) { return entry.name == name; });
  return *this;
}

GgufTensorEntry& GgufWriter::tensor(std::string_view name) {
  const auto it = std::find_if(tensors_.begin(), tensors_.end(),
                               [&](const GgufTensorEntry& entry) { return entry.name == name; });
  REQUIRE(it != tensors_.end());
  return *it;
}

std::vector<uint8_t> GgufWriter::Header() const {
  ByteSink sink;
  sink.bytes.assign(magic.begin(), magic.end());
  sink.Number(version);
  sink.Number(n_tensors_claimed.value_or(tensors_.size()));
  sink.Number(n_keys_claimed.value_or(key_values_.size()));
  for (const KeyValue& entry : key_values_) {
    sink.String(entry.key).Number(entry.type).Append(entry.payload);
  }
  uint64_t offset = 0;
  for (const GgufTensorEntry& entry : tensors_) {
    sink.String(entry.name).Number(entry.n_dims.value_or(static_cast<uint32_t>(entry.dims.size())));
    for (const uint64_t dim : entry.dims) sink.Number(dim);
    sink.Number(entry.type).Number(entry.offset.value_or(offset));
    offset = RoundUpTo(offset + entry.data.size(), alignment);
  }
  if (!tensors_.empty())
    sink.bytes.resize(static_cast<size_t>(RoundUpTo(sink.bytes.size(), alignment)));
  return sink.bytes;
}

std::vector<uint8_t> GgufWriter::File() const {
  std::vector<uint8_t> file = Header();
  const size_t data_offset = file.size();
  uint64_t end = 0;
  for (const GgufTensorEntry& entry : tensors_) {
    uint64_t offset = RoundUpTo(end, alignment);
    if (place_by_offset) offset = entry.offset.value_or(offset);
    end = offset + entry.data.size();
    file.resize(std::max(file.size(), static_cast<size_t>(data_offset + end)));
    std::copy(entry.data.begin(), entry.data.end(),
              file.begin() + static_cast<ptrdiff_t>(data_offset + offset));
  }
  return file;
}

}  // namespace headlight::testing
