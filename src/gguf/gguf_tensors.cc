// The second half of the state machine: the tensor directory, and what must hold for it as a whole.
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/sort.h"
#include "gguf/gguf_error.h"
#include "gguf/gguf_limits.h"
#include "gguf/gguf_parser.h"
#include "gguf/little_endian.h"

namespace headlight {
namespace {

Error::Details Details(const GgufTensor& tensor) { return {{"tensor", tensor.name}}; }

uint64_t ReadAlignment(const GgufHeader& header) {
  constexpr const char* kKey = "general.alignment";
  const auto it = header.values.find(kKey);
  if (it == header.values.end()) return kDefaultAlignment;
  const auto* value = std::get_if<uint64_t>(&it->second);
  if (value == nullptr || *value < kMinAlignment || *value > kMaxAlignment ||
      (*value & (*value - 1)) != 0) {
    ThrowBadModel("key 'general.alignment' is " +
                      (value == nullptr ? std::string("no unsigned integer") : NumberText(*value)) +
                      ", expected a power of two from " + NumberText(kMinAlignment) + " to " +
                      NumberText(kMaxAlignment) + "; convert the model again",
                  {{"key", kKey}});
  }
  return *value;
}

uint64_t RoundUpTo(uint64_t n, uint64_t power_of_two) {
  return (n + power_of_two - 1) & ~(power_of_two - 1);
}

// Bytes of the tensor in the file. Its dims are set, its type is in the table.
uint64_t FileBytes(const GgufTensor& tensor, const TensorTypeTraits& traits) {
  uint64_t n_elements = 1;
  for (const uint64_t dim : std::span(tensor.dims, tensor.n_dims)) {
    if (dim == 0 || dim > kMaxElements / n_elements) {
      ThrowBadModel(
          "tensor " + Quoted(tensor.name) + " has shape " +
              ShapeText({tensor.dims, tensor.n_dims}) +
              (dim == 0 ? ": no dimension may be 0" : ": more elements than any file can hold") +
              kFetchAgain,
          Details(tensor));
    }
    n_elements *= dim;
  }
  if (tensor.dims[0] % traits.n_block != 0) {
    ThrowBadModel("tensor " + Quoted(tensor.name) + " has rows of " + NumberText(tensor.dims[0]) +
                      " elements, but " + traits.name + " stores blocks of " +
                      NumberText(traits.n_block) +
                      "; convert the model again with another type for this tensor",
                  Details(tensor));
  }
  // At most 2^50 elements and at most 8 bytes an element.
  return n_elements / traits.n_block * traits.block_bytes;
}

void CheckOverlap(const GgufHeader& header) {
  std::vector<uint32_t> by_offset(header.tensors.size());
  std::iota(by_offset.begin(), by_offset.end(), 0u);
  HeapSort(by_offset, [&](uint32_t a, uint32_t b) {
    return header.tensors[a].offset < header.tensors[b].offset;
  });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const GgufTensor& a = header.tensors[by_offset[i - 1]];
    const GgufTensor& b = header.tensors[by_offset[i]];
    if (b.offset - a.offset >= a.bytes) continue;
    ThrowBadModel("tensors " + Quoted(a.name) + " (offset " + NumberText(a.offset) + ", " +
                      NumberText(a.bytes) + " bytes) and " + Quoted(b.name) + " (offset " +
                      NumberText(b.offset) + ") overlap" + kFetchAgain,
                  Details(b));
  }
}

// Fills tensors_by_name. Sorting, not hashing: no choice of names makes it slow.
void IndexByName(GgufHeader& header) {
  auto& order = header.tensors_by_name;
  order.resize(header.tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  HeapSort(order,
           [&](uint32_t a, uint32_t b) { return header.tensors[a].name < header.tensors[b].name; });
  for (size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& tensor = header.tensors[order[i]];
    if (header.tensors[order[i - 1]].name != tensor.name) continue;
    ThrowBadModel("tensor " + Quoted(tensor.name) + " occurs twice; convert the model again",
                  Details(tensor));
  }
}

}  // namespace

// Called when a key-value is complete, and before the first.
void GgufParser::NextKeyValue(GgufHeader& header) {
  if (n_seen_ < n_key_values_) {
    field_ = Field::kKeyLength;
    return;
  }
  header.alignment = ReadAlignment(header);
  n_seen_ = 0;
  NextTensor(header);
}

void GgufParser::NextTensor(GgufHeader& header) {
  if (n_seen_ < n_tensors_) {
    tensor_ = {};
    field_ = Field::kNameLength;
    return;
  }
  FinishTensors(header);
}

bool GgufParser::StepTensor(GgufHeader& header) {
  switch (field_) {
    case Field::kNameLength:
      return ReadNameLength();
    case Field::kName:
      if (!TakeBytes(tensor_.name)) return false;
      field_ = Field::kDimCount;
      return true;
    case Field::kDimCount:
      if (!TakeNumber(tensor_.n_dims)) return false;
      if (tensor_.n_dims == 0 || tensor_.n_dims > kMaxDims) {
        ThrowBadModel("tensor " + Quoted(tensor_.name) + " has " + NumberText(tensor_.n_dims) +
                          " dimensions" + At() + ", expected 1 to " + NumberText(kMaxDims) +
                          kFetchAgain,
                      Details(tensor_));
      }
      field_ = Field::kDims;
      return true;
    case Field::kDims:
      return ReadDims();
    case Field::kTensorType:
      return ReadTensorType();
    default:
      return ReadTensorOffset(header);
  }
}

bool GgufParser::ReadNameLength() {
  if (!TakeNumber(n_missing_)) return false;
  if (n_missing_ == 0 || n_missing_ > kMaxTensorNameBytes) {
    ThrowBadModel("a tensor name of " + NumberText(n_missing_) + " bytes" + Place() + At() +
                      ", expected 1 to " + NumberText(kMaxTensorNameBytes) + kFetchAgain,
                  {{"offset", NumberText(field_offset_)}});
  }
  CheckHeaderRoom(n_missing_);
  field_ = Field::kName;
  return true;
}

bool GgufParser::ReadDims() {
  const uint8_t* p = Take(tensor_.n_dims * sizeof(uint64_t));
  if (p == nullptr) return false;
  for (uint32_t i = 0; i < tensor_.n_dims; ++i) {
    tensor_.dims[i] = LoadLittleEndian<uint64_t>(p + i * sizeof(uint64_t));
  }
  field_ = Field::kTensorType;
  return true;
}

bool GgufParser::ReadTensorType() {
  uint32_t type = 0;
  if (!TakeNumber(type)) return false;
  const TensorTypeTraits* traits = FindTensorType(type);
  if (traits == nullptr) {
    ThrowUnsupported("tensor " + Quoted(tensor_.name) + " has type " + TensorTypeText(type) + At() +
                         ", which Headlight cannot read; use a file quantised to another type, "
                         "e.g. Q8_0 or Q4_0",
                     {{"tensor", tensor_.name}, {"type", TensorTypeText(type)}});
  }
  tensor_.type = static_cast<TensorType>(type);
  tensor_.bytes = FileBytes(tensor_, *traits);
  field_ = Field::kTensorOffset;
  return true;
}

bool GgufParser::ReadTensorOffset(GgufHeader& header) {
  if (!TakeNumber(tensor_.offset)) return false;
  if (tensor_.offset % header.alignment != 0) {
    ThrowBadModel("tensor " + Quoted(tensor_.name) + " starts at offset " +
                      NumberText(tensor_.offset) + At() +
                      ", which is no multiple of the alignment of " + NumberText(header.alignment) +
                      kFetchAgain,
                  Details(tensor_));
  }
  if (tensor_.offset > kMaxFileBytes || tensor_.bytes > kMaxFileBytes - tensor_.offset) {
    ThrowBadModel("tensor " + Quoted(tensor_.name) + " ends beyond byte 2^53 (offset " +
                      NumberText(tensor_.offset) + ", " + NumberText(tensor_.bytes) + " bytes)" +
                      kFetchAgain,
                  Details(tensor_));
  }
  header.tensors.push_back(std::move(tensor_));
  ++n_seen_;
  NextTensor(header);
  return true;
}

void GgufParser::FinishTensors(GgufHeader& header) {
  IndexByName(header);
  CheckOverlap(header);
  for (const GgufTensor& tensor : header.tensors) {
    header.data_bytes = std::max(header.data_bytes, tensor.offset + tensor.bytes);
  }
  // A file without tensors (a vocabulary) may end here, unpadded.
  header.data_offset = header.tensors.empty() ? offset_ : RoundUpTo(offset_, header.alignment);
  n_missing_ = header.data_offset - offset_;
  field_ = n_missing_ == 0 ? Field::kDone : Field::kPadding;
}

}  // namespace headlight
