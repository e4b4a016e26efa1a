// How the int8 cache keeps rows, and what a code means: written by the cache, read by the
// reference, the kernels and tests.
//
// A row x[d] of one head has one scale s = f16(max|x| / 127) and codes c_i = x_i / s rounded to
// nearest even and limited to +-127; it reads as c_i * s. Stored is c + 128, an unsigned byte.
//
// Four consecutive rows are a group, a row for each 32-bit lane of a vector, so that one 16-byte
// load serves four keys (or four columns of four values) and no sum runs across lanes:
//   keys    [d / 4][4 rows][4 columns]: a vector holds 4 columns of each of 4 keys
//   values  [d][4 rows]: a vector holds 4 columns, each with its 4 rows side by side
// d is rounded up to 16. What padding and dead rows hold is never seen: they meet codes of 0.
#ifndef HEADLIGHT_KV_INT8_ROWS_H_
#define HEADLIGHT_KV_INT8_ROWS_H_

#include <cstddef>
#include <cstdint>

namespace headlight {

inline constexpr size_t kInt8GroupRows = 4;
inline constexpr int32_t kInt8Offset = 128;  // stored = code + this

enum class Int8Placement : uint8_t { kKeys, kValues };

// Byte of column `col` of row `row`, from the head's first; stride: d rounded up to 16.
constexpr size_t Int8At(Int8Placement placement, size_t stride, size_t row, size_t col) {
  const size_t group = row / kInt8GroupRows * kInt8GroupRows * stride;
  const size_t lane = row % kInt8GroupRows;
  return placement == Int8Placement::kKeys ? group + col / 4 * 16 + lane * 4 + col % 4
                                           : group + col * 4 + lane;
}

// Where one head's rows of codes are.
struct Int8Rows {
  Int8Placement placement;
  size_t stride;
  uint8_t* codes;    // [n_ctx rounded up to 4, stride], placed as above
  uint16_t* scales;  // [n_ctx rounded up to 4] binary16
};

// Stores x[d] as row `row`. NaN is stored as 0; a row beyond +-8.3e6 is limited to that. Threads
// may store different rows of a group at the same time.
void StoreInt8Row(const Int8Rows& rows, size_t row, const float* x, size_t d) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_KV_INT8_ROWS_H_
