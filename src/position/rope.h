// Rotary positions (arXiv 2104.09864): which pairs, which frequencies, and the cached cosines and
// sines. Angles are computed in double. Works for any n_rot <= d_qk; the rest of a head passes
// through.
#ifndef HEADLIGHT_POSITION_ROPE_H_
#define HEADLIGHT_POSITION_ROPE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned.h"

namespace headlight {

enum class RopeStyle : uint8_t {
  kNone,
  kInterleaved,  // pairs (2i, 2i + 1)
  kHalfSplit,    // pairs (i, i + n_rot / 2)
};

// How frequencies are stretched for contexts beyond those of training.
enum class RopeScaling : uint8_t {
  kNone,        // or by linear_scale alone
  kNtk,         // the base grows by factor^(n_rot / (n_rot - 2)) instead (the "NTK-aware" scaling)
  kDynamicNtk,  // as that, by factor * n_ctx / n_ctx_original - (factor - 1), once n_ctx exceeds it
  kYarn,        // fast pairs keep their frequency, slow ones are divided by linear_scale
};

// The pairs between which YaRN blends (arXiv 2309.00071): those that turn beta_fast and beta_slow
// times in n_ctx_original positions. extrapolation: how much of the blend is applied, usually all.
struct YarnSpec {
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double extrapolation = 1.0;
  bool operator==(const YarnSpec&) const = default;
};

struct RopeSpec {
  RopeStyle style = RopeStyle::kNone;
  size_t n_rot = 0;  // rotated elements of a head, even
  double freq_base = 10000.0;
  double linear_scale = 1.0;  // angles are divided by it (position interpolation, arXiv 2306.15595)
  std::vector<float>
      freq_factors;  // empty, or [n_rot / 2]: divides each frequency (llama3 style tables)
  // In place of freq_factors for a context of more than n_ctx_original (LongRoPE, arXiv
  // 2402.13753).
  std::vector<float> long_factors;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;        // of kNtk and kDynamicNtk
  size_t n_ctx_original = 0;  // of training before it was stretched
  YarnSpec yarn;
  double magnitude = 1.0;  // of the rotated pairs: cosines and sines are multiplied by it
  bool operator==(const RopeSpec&) const = default;
};

// [n_rot / 2] angle per position in a context of n_ctx: freq_base^(-2i / n_rot) / linear_scale /
// freq_factors[i], or what the scaling makes of it.
std::vector<double> RopeFrequencies(const RopeSpec& spec, size_t n_ctx);

// Cosines and sines of positions [0, n_ctx), filled on demand.
class RopeTable {
 public:
  // Throws Error(kBadOption) for an odd n_rot, a factor table of the wrong length, or a base, scale
  // or factor that is not a positive finite number; Error(kOutOfMemory).
  RopeTable(const RopeSpec& spec, size_t n_ctx);
  // What the two tables hold, without rounding up to cache lines; 0 for kNone.
  static size_t Bytes(const RopeSpec& spec, size_t n_ctx);

  // Fills positions below n_pos (<= n_ctx). Not thread-safe; call before the kernels.
  void Ensure(size_t n_pos) noexcept;
  // Rotates one head x[>= n_rot] in place for position pos (Ensure'd).
  void Rotate(float* x, size_t pos) const noexcept;
  // Rotates n_heads adjacent heads of width d_qk >= n_rot.
  void RotateHeads(float* x, size_t n_heads, size_t d_qk, size_t pos) const noexcept;

 private:
  RopeStyle style_;
  size_t n_half_;
  double magnitude_;
  size_t n_filled_ = 0;
  std::vector<double> frequencies_;
  AlignedArray<float> cos_;  // [n_ctx, n_rot / 2]
  AlignedArray<float> sin_;
};

}  // namespace headlight

#endif  // HEADLIGHT_POSITION_ROPE_H_
