// Every coded file type from codes that the test chose: where a format's documentation puts each
// bit is written down here a second time, as places to write to, and the values are the formula's.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "quant/blocks.h"
#include "support.h"

namespace headlight {
namespace {

using testing::Random;

// What a block is to say: value = scale * factor * table(code) - min * min_factor.
struct Wanted {
  std::vector<int> codes;        // a column each
  std::vector<int> factors;      // one for each `factor_cols` columns
  std::vector<int> min_factors;  // likewise
  float scale = 0.0f;
  float min = 0.0f;
};

void SetBits(std::vector<uint8_t>& block, size_t byte, int shift, int value) {
  block[byte] = static_cast<uint8_t>(block[byte] | (value << shift));
}

void SetF16(std::vector<uint8_t>& block, size_t byte, float value) {
  const uint16_t bits = F16FromF32(value);
  std::memcpy(&block[byte], &bits, sizeof(bits));
}

// Nibbles of 2 n columns in n bytes, the first n columns low.
void SetNibbles(std::vector<uint8_t>& block, size_t byte, const int* codes, size_t n) {
  for (size_t c = 0; c < 2 * n; ++c) SetBits(block, byte + c % n, c < n ? 0 : 4, codes[c] & 15);
}

// Two bits of each of 256 columns in 64 bytes: four stretches of 32 columns share 32 bytes.
void SetPairs(std::vector<uint8_t>& block, size_t byte, const std::vector<int>& pairs) {
  for (size_t c = 0; c < 256; ++c) {
    SetBits(block, byte + c / 128 * 32 + c % 32, static_cast<int>(c % 128 / 32 * 2), pairs[c]);
  }
}

std::vector<int> Shifted(const std::vector<int>& codes, int shift, int mask) {
  std::vector<int> out;
  for (const int code : codes) out.push_back((code >> shift) & mask);
  return out;
}

void WriteSmall(const Wanted& w, bool has_min, bool has_fifth, std::vector<uint8_t>& block) {
  SetF16(block, 0, w.scale);
  size_t at = 2;
  if (has_min) {
    SetF16(block, at, -w.min);  // the format adds it
    at += 2;
  }
  for (size_t c = 0; has_fifth && c < 32; ++c) {
    SetBits(block, at + c / 8, static_cast<int>(c % 8), w.codes[c] >> 4);
  }
  SetNibbles(block, at + (has_fifth ? 4 : 0), w.codes.data(), 16);
}

// Eight pairs of 6 bits: the first four factors in bytes 0..3, their minima in bytes 4..7; of the
// last four the lower nibbles in bytes 8..11, the upper bits on top of bytes 0..7.
void WriteSixBits(const Wanted& w, size_t at, std::vector<uint8_t>& block) {
  for (size_t i = 0; i < 4; ++i) {
    SetBits(block, at + i, 0, w.factors[i]);
    SetBits(block, at + 4 + i, 0, w.min_factors[i]);
    SetBits(block, at + 8 + i, 0, w.factors[4 + i] & 15);
    SetBits(block, at + 8 + i, 4, w.min_factors[4 + i] & 15);
    SetBits(block, at + i, 6, w.factors[4 + i] >> 4);
    SetBits(block, at + 4 + i, 6, w.min_factors[4 + i] >> 4);
  }
}

void WriteQ45_K(const Wanted& w, bool has_fifth, std::vector<uint8_t>& block) {
  SetF16(block, 0, w.scale);
  SetF16(block, 2, w.min);
  WriteSixBits(w, 4, block);
  for (size_t c = 0; has_fifth && c < 256; ++c) {
    SetBits(block, 16 + c % 32, static_cast<int>(c / 32), w.codes[c] >> 4);
  }
  for (size_t i = 0; i < 4; ++i) {
    SetNibbles(block, (has_fifth ? 48 : 16) + 32 * i, &w.codes[64 * i], 32);
  }
}

void WriteQ3_K(const Wanted& w, std::vector<uint8_t>& block) {
  for (size_t c = 0; c < 256; ++c) {
    SetBits(block, c % 32, static_cast<int>(c / 32), w.codes[c] >> 2);
  }
  SetPairs(block, 32, Shifted(w.codes, 0, 3));
  for (size_t i = 0; i < 16; ++i) {
    const int bits = w.factors[i] + 32;
    SetBits(block, 96 + i % 8, i < 8 ? 0 : 4, bits & 15);
    SetBits(block, 104 + i % 4, static_cast<int>(i / 4 * 2), bits >> 4);
  }
  SetF16(block, 108, w.scale);
}

void WriteQ6_K(const Wanted& w, std::vector<uint8_t>& block) {
  SetNibbles(block, 0, &w.codes[0], 64);
  SetNibbles(block, 64, &w.codes[128], 64);
  SetPairs(block, 128, Shifted(w.codes, 4, 3));
  for (size_t i = 0; i < 16; ++i) block[192 + i] = static_cast<uint8_t>(w.factors[i]);
  SetF16(block, 208, w.scale);
}

void WriteIq4Xs(const Wanted& w, std::vector<uint8_t>& block) {
  SetF16(block, 0, w.scale);
  for (size_t i = 0; i < 8; ++i) {
    const int bits = w.factors[i] + 32;
    SetBits(block, 2 + i / 4, static_cast<int>(i % 4 * 2), bits >> 4);
    SetBits(block, 4 + i / 2, static_cast<int>(i % 2 * 4), bits & 15);
    SetNibbles(block, 8 + 16 * i, &w.codes[32 * i], 16);
  }
}

void WriteQ2_K(const Wanted& w, std::vector<uint8_t>& block) {
  for (size_t i = 0; i < 16; ++i) {
    block[i] = static_cast<uint8_t>(w.factors[i] | w.min_factors[i] << 4);
  }
  SetPairs(block, 16, w.codes);
  SetF16(block, 80, w.scale);
  SetF16(block, 82, w.min);
}

void WriteMxfp4(const Wanted& w, std::vector<uint8_t>& block) {
  // scale = 2^(E - 127), the OCP's.
  block[0] = static_cast<uint8_t>(std::lround(std::log2(w.scale)) + 127);
  SetNibbles(block, 1, w.codes.data(), 16);
}

void WriteQ8_0(const Wanted& w, std::vector<uint8_t>& block) {
  SetF16(block, 0, w.scale);
  for (size_t c = 0; c < 32; ++c) block[2 + c] = static_cast<uint8_t>(w.codes[c] - 128);
}

// The 16 values of an E2M1 float: 2^(e - 1) (1 + m / 2), or m / 2 where e is 0; bit 3 is the sign.
double E2m1(int code) {
  const int exponent = code >> 1 & 3;
  const double mantissa = (code & 1) / 2.0;
  const double magnitude = exponent == 0 ? mantissa : std::ldexp(1.0 + mantissa, exponent - 1);
  return (code & 8) != 0 ? -magnitude : magnitude;
}

double Iq4(int code) {
  constexpr double kValues[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};
  return kValues[code];
}

struct FileTypeCase {
  TensorType type;
  int n_codes;
  size_t factor_cols;           // columns of a factor; 0: none
  int factor_low, factor_high;  // range of factors
  int min_high;                 // minima's factors are 0..this; 0: none, with a min: always 1
  bool has_min;
  double (*value)(int code);
  void (*write)(const Wanted&, std::vector<uint8_t>&);
};

const FileTypeCase kCases[] = {
    {TensorType::kQ8_0, 256, 0, 1, 1, 0, false, [](int c) { return c - 128.0; }, WriteQ8_0},
    {TensorType::kQ4_0, 16, 0, 1, 1, 0, false, [](int c) { return c - 8.0; },
     [](const Wanted& w, auto& b) { WriteSmall(w, false, false, b); }},
    {TensorType::kQ4_1, 16, 0, 1, 1, 0, true, [](int c) { return double(c); },
     [](const Wanted& w, auto& b) { WriteSmall(w, true, false, b); }},
    {TensorType::kQ5_0, 32, 0, 1, 1, 0, false, [](int c) { return c - 16.0; },
     [](const Wanted& w, auto& b) { WriteSmall(w, false, true, b); }},
    {TensorType::kQ5_1, 32, 0, 1, 1, 0, true, [](int c) { return double(c); },
     [](const Wanted& w, auto& b) { WriteSmall(w, true, true, b); }},
    {TensorType::kQ2_K, 4, 16, 0, 15, 15, true, [](int c) { return double(c); }, WriteQ2_K},
    {TensorType::kQ3_K, 8, 16, -32, 31, 0, false, [](int c) { return c - 4.0; }, WriteQ3_K},
    {TensorType::kQ4_K, 16, 32, 0, 63, 63, true, [](int c) { return double(c); },
     [](const Wanted& w, auto& b) { WriteQ45_K(w, false, b); }},
    {TensorType::kQ5_K, 32, 32, 0, 63, 63, true, [](int c) { return double(c); },
     [](const Wanted& w, auto& b) { WriteQ45_K(w, true, b); }},
    {TensorType::kQ6_K, 64, 16, -128, 127, 0, false, [](int c) { return c - 32.0; }, WriteQ6_K},
    {TensorType::kIQ4_NL, 16, 0, 1, 1, 0, false, Iq4,
     [](const Wanted& w, auto& b) { WriteSmall(w, false, false, b); }},
    {TensorType::kIQ4_XS, 16, 32, -32, 31, 0, false, Iq4, WriteIq4Xs},
    {TensorType::kMXFP4, 16, 0, 1, 1, 0, false, E2m1, WriteMxfp4},
};

int Between(Random& random, int low, int high) {
  return low + static_cast<int>(random.Below(static_cast<size_t>(high - low + 1)));
}

Wanted RandomWanted(const FileTypeCase& c, size_t n_cols, Random& random) {
  Wanted w;
  for (size_t i = 0; i < n_cols; ++i) w.codes.push_back(Between(random, 0, c.n_codes - 1));
  for (size_t i = 0; c.factor_cols != 0 && i < n_cols / c.factor_cols; ++i) {
    w.factors.push_back(Between(random, c.factor_low, c.factor_high));
    w.min_factors.push_back(Between(random, 0, c.min_high));
  }
  // Binary16 of few bits, so that F16FromF32 keeps them; powers of two for MXFP4.
  w.scale = c.type == TensorType::kMXFP4
                ? std::ldexp(1.0f, Between(random, -20, 20))
                : static_cast<float>(Between(random, -1023, 1023)) * 0x1p-12f;
  w.min = c.has_min ? static_cast<float>(Between(random, -1023, 1023)) * 0x1p-10f : 0.0f;
  return w;
}

TEST_CASE("DecodeBlock: blocks written bit by bit give the values of their formula") {
  Random random(11);
  for (const FileTypeCase& c : kCases) {
    const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(c.type));
    CAPTURE(std::string(traits.name));
    for (int repeat = 0; repeat < 50; ++repeat) {
      const Wanted w = RandomWanted(c, traits.n_block, random);
      std::vector<uint8_t> block(traits.block_bytes);
      c.write(w, block);
      std::vector<float> values(traits.n_block);
      DecodeBlock(c.type, block.data(), values.data());
      size_t n_wrong = 0;
      for (size_t i = 0; i < values.size(); ++i) {
        const int factor = c.factor_cols == 0 ? 1 : w.factors[i / c.factor_cols];
        const int min_factor = c.factor_cols == 0 ? 1 : w.min_factors[i / c.factor_cols];
        // Both terms are exact in float but the first of many bits; their difference rounds once
        // more.
        const double product = static_cast<double>(w.scale) * factor * c.value(w.codes[i]);
        const float expected = static_cast<float>(static_cast<double>(static_cast<float>(product)) -
                                                  static_cast<double>(w.min) * min_factor);
        n_wrong += !(values[i] == expected);
      }
      CHECK(n_wrong == 0);
    }
  }
}

TEST_CASE("DecodeBlock: MXFP4 has the OCP's smallest and largest scales and no -0") {
  uint8_t block[17] = {};
  float values[32];
  for (size_t i = 0; i < 16; ++i) block[1 + i] = static_cast<uint8_t>(i | 8 << 4);
  for (const int e : {0, 1, 2, 127, 254}) {
    block[0] = static_cast<uint8_t>(e);
    DecodeBlock(TensorType::kMXFP4, block, values);
    for (size_t i = 0; i < 16; ++i) {
      CHECK(values[i] == static_cast<float>(std::ldexp(E2m1(static_cast<int>(i)), e - 127)));
    }
    CHECK(values[20] == 0.0f);
    CHECK_FALSE(std::signbit(values[20]));
  }
}

}  // namespace
}  // namespace headlight
