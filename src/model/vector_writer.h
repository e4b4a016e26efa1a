// Decodes a norm vector or another 1-d float tensor as its file bytes arrive, in chunks cut
// anywhere: the small sibling of quant/PackedWriter for what is kept as plain floats.
#ifndef HEADLIGHT_MODEL_VECTOR_WRITER_H_
#define HEADLIGHT_MODEL_VECTOR_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace headlight {

class VectorWriter {
 public:
  // Throws Error(kUnsupported) for a type other than F32, F16 and BF16.
  static void CheckType(TensorType type);

  // dst: [n] float32. The type must have passed CheckType.
  VectorWriter(TensorType type, size_t n, float* dst);
  // Takes at most the bytes still missing; returns how many. Throws Error(kBadModel) on inf or NaN
  // (details: row, column).
  size_t Append(std::span<const uint8_t> bytes);
  bool done() const { return n_done_ == n_; }

 private:
  void Store(const uint8_t* element);

  TensorType type_;
  size_t n_;
  float* dst_;
  size_t element_bytes_;
  size_t n_done_ = 0;
  size_t n_carry_ = 0;
  uint8_t carry_[4] = {};
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_VECTOR_WRITER_H_
