// The random numbers of sampling: xoshiro256++ (Blackman and Vigna, ACM TOMS 47(4), 2021), its
// state filled by splitmix64. The same seed gives the same numbers on every platform. For sampling
// only: not for secrets.
#ifndef HEADLIGHT_SAMPLE_RANDOM_H_
#define HEADLIGHT_SAMPLE_RANDOM_H_

#include <bit>
#include <cstdint>

namespace headlight {

class Random {
 public:
  // Every seed is good, 0 included: splitmix64 never fills the whole state with zeros.
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9E3779B97F4A7C15u;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      word = z ^ (z >> 31);
    }
  }

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, 1): the top 53 bits, so every value is an exact double.
  double NextUniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_[4];
};

}  // namespace headlight

#endif  // HEADLIGHT_SAMPLE_RANDOM_H_
