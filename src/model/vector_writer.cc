#include "model/vector_writer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gguf/gguf_error.h"
#include "gguf/little_endian.h"

namespace headlight {

void VectorWriter::CheckType(TensorType type) {
  if (type == TensorType::kF32 || type == TensorType::kF16 || type == TensorType::kBF16) return;
  ThrowUnsupported("type " + TensorTypeText(static_cast<uint32_t>(type)) +
                   " for a vector, expected F32, F16 or BF16; convert the model again");
}

VectorWriter::VectorWriter(TensorType type, size_t n, float* dst)
    : type_(type), n_(n), dst_(dst), element_bytes_(type == TensorType::kF32 ? 4 : 2) {}

size_t VectorWriter::Append(std::span<const uint8_t> bytes) {
  size_t n_taken = 0;
  while (n_done_ < n_ && n_taken < bytes.size()) {
    if (n_carry_ == 0 && bytes.size() - n_taken >= element_bytes_) {
      Store(bytes.data() + n_taken);
      n_taken += element_bytes_;
      continue;
    }
    carry_[n_carry_++] = bytes[n_taken++];
    if (n_carry_ == element_bytes_) {
      n_carry_ = 0;
      Store(carry_);
    }
  }
  return n_taken;
}

void VectorWriter::Store(const uint8_t* element) {
  float x = 0.0f;
  if (type_ == TensorType::kF32) {
    x = LoadLittleEndian<float>(element);
  } else {
    const auto bits = LoadLittleEndian<uint16_t>(element);
    x = type_ == TensorType::kF16 ? F32FromF16(bits) : F32FromBF16(bits);
  }
  if (!std::isfinite(x)) {
    const std::string column = std::to_string(n_done_);
    ThrowBadModel(
        "element " + column +
            " is infinite or not a number; the file is damaged, fetch or convert it again",
        {{"row", "0"}, {"column", column}});
  }
  dst_[n_done_++] = x;
}

}  // namespace headlight
