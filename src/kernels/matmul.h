// Matrix products over packed weights: y[n_tokens, n_rows] = x[n_tokens, n_cols] * W^T. One entry
// serves decode (n_tokens == 1: matvec at the speed of memory) and prefill (register-tiled). 8- and
// 4-bit weights meet 8-bit activations by integer dots; float weights meet f32 activations.
#ifndef HEADLIGHT_KERNELS_MATMUL_H_
#define HEADLIGHT_KERNELS_MATMUL_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/aligned.h"
#include "base/parallel.h"
#include "quant/packed.h"
#include "quant/packed_layout.h"

namespace headlight {

// How activations meet 8- and 4-bit weights. kF32 decodes the weights and is the precise, slow
// path.
enum class ActivationType : uint8_t { kInt8, kF32 };

inline constexpr int kMaxMultiplier = 16;

// What a kernel reads of 8-bit activations.
struct CodeUse {
  bool mixed_halves = false;  // WordsMixHalves of the weights' form: the order of the columns
  bool wide = false;          // m * c as int16, for kernels without a dot of bytes
  bool half_sums = false;     // first_sums(), for minima of 16 columns
};

// The x of a product, quantised once however many matrices it meets: per token and block of 32
// columns scale = max|x| / (127 * 16) (f32), and for each half of the block an integer multiplier
// m = ceil(max|x of the half| / max|x| * 16) in 1..16 and codes c = round-to-nearest-even(x / (m *
// scale)) in -127..127. x is about scale * m * c; the steps of 8 bits are those of 16 columns,
// while a block's products are still one exact integer sum. Also the sum of m * c. Blocks with
// max|x| < 1e-30 count as zero: scale 0, codes 0.
class Activations {
 public:
  // Workspace for up to max_tokens x max_cols. Throws Error(kOutOfMemory).
  Activations(size_t max_tokens, size_t max_cols, ActivationType type);
  static size_t WorkspaceBytes(size_t max_tokens, size_t max_cols, ActivationType type);

  // Points at x [n_tokens, n_cols], rows x_stride elements apart; x must stay unchanged until the
  // products are done.
  void Set(const float* x, size_t n_tokens, size_t n_cols, size_t x_stride) noexcept;
  // Makes the 8-bit form if it is not there yet (MatMul calls it when a matrix needs it).
  void Quantise(ThreadPool& pool, CodeUse use) noexcept;

  ActivationType type() const { return type_; }
  size_t n_tokens() const { return n_tokens_; }
  size_t n_cols() const { return n_cols_; }
  size_t n_blocks() const { return n_blocks_; }
  const float* row(size_t token) const { return x_ + token * x_stride_; }
  // [n_blocks][8 words][4], columns in the order of WordColumn (quant/packed_layout.h).
  const int8_t* codes(size_t token) const { return codes_.data() + token * n_blocks_ * kBlockCols; }
  // m * c in the same words, whose four are in the order 0, 2, 1, 3: operands of 16-bit dots.
  const int16_t* wide_codes(size_t token) const {
    return wide_codes_.data() + token * n_blocks_ * kBlockCols;
  }
  const float* scales(size_t token) const { return scales_.data() + token * n_blocks_; }
  // [n_blocks][2]
  const int16_t* multipliers(size_t token) const {
    return multipliers_.data() + token * n_blocks_ * kBlockHalves;
  }
  const int32_t* sums(size_t token) const { return sums_.data() + token * n_blocks_; }
  const int32_t* first_sums(size_t token) const { return first_sums_.data() + token * n_blocks_; }

 private:
  ActivationType type_;
  const float* x_ = nullptr;
  size_t n_tokens_ = 0, n_cols_ = 0, n_blocks_ = 0, x_stride_ = 0;
  bool has_codes_ = false;
  CodeUse made_;                       // of the codes that are there
  AlignedArray<int8_t> codes_;         // [n_tokens, n_blocks * 32], zero-padded
  AlignedArray<int16_t> wide_codes_;   // [n_tokens, n_blocks * 32]
  AlignedArray<float> scales_;         // [n_tokens, n_blocks]
  AlignedArray<int16_t> multipliers_;  // [n_tokens, n_blocks, 2]
  AlignedArray<int32_t> sums_;         // [n_tokens, n_blocks]
  AlignedArray<int32_t> first_sums_;   // [n_tokens, n_blocks]
};

// One product of a call; several that share x run under a single ParallelFor (Q, K and V; gate and
// up).
struct MatMulJob {
  const PackedMatrix* w = nullptr;
  float* y = nullptr;   // [n_tokens, n_rows]
  size_t y_stride = 0;  // elements between rows of y, >= n_rows
  // Row groups of w to compute, and no other rows of y are written. They end at w's last at most.
  size_t group_begin = 0;
  size_t group_end = static_cast<size_t>(-1);
};

// Part i of n of a product, all parts about as long. One that is past the rows of a small w is
// empty.
struct MatMulBand {
  size_t i = 0, n = 1;
  bool is_first() const { return i == 0; }
  bool is_last() const { return i + 1 == n; }
};
MatMulJob BandOf(MatMulJob job, MatMulBand band) noexcept;

// The same integers and the same float operations in the same order for every n_tokens, thread
// count and dot form: a row of prefill equals the row of a step bit for bit.
void MatMul(std::span<const MatMulJob> jobs, Activations& x, ThreadPool& pool) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KERNELS_MATMUL_H_
