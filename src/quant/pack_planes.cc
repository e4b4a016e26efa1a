// Blocks of any coded type, taken apart by SplitBlock, into heads and bit planes (packed_layout.h).
#include <cstring>

#include "quant/file_blocks.h"
#include "quant/pack_run.h"
#include "quant/packed.h"

namespace headlight {
namespace {

constexpr uint32_t kNibbles = 0x0F0F0F0Fu;
constexpr uint32_t kPairs = 0x03030303u;
constexpr uint32_t kBits = 0x01010101u;

void StoreU16(uint16_t value, uint8_t* to) { std::memcpy(to, &value, sizeof(value)); }

// What scales file block `unit` of the row.
void PackHead(const PackRun& run, const CodeFormat& code, const BlockParts& parts, size_t unit) {
  const HeadUnit layout(code, run.layout.n_groups);
  const size_t row = run.group * kRowGroup + run.lane;
  uint8_t* head = run.strip + unit * layout.bytes;
  if (code.scales == ScaleKind::kE8m0) {
    head[row] = static_cast<uint8_t>(parts.scale);
  } else {
    StoreU16(parts.scale, head + row * sizeof(uint16_t));
  }
  if (code.has_mins) StoreU16(parts.min, head + layout.mins + row * sizeof(uint16_t));
  if (!IsSuper(code.scales)) return;
  for (size_t block = 0; block < layout.n_blocks; ++block) {
    uint8_t* factors = head + layout.factors + block * layout.factor_stride;
    const int8_t* from = parts.factors + 2 * block;
    const uint8_t* mins = parts.min_factors + 2 * block;
    if (code.scales == ScaleKind::kSuper32) {
      factors[row] = static_cast<uint8_t>(from[0]);
      if (!code.has_mins) continue;
      head[layout.min_factors + block * layout.min_factor_stride + row] = mins[0];
    } else {
      for (size_t half = 0; half < kBlockHalves; ++half) {
        const int both = code.has_mins ? from[half] | mins[half] << 4 : from[half];
        factors[row * kBlockHalves + half] = static_cast<uint8_t>(both);
      }
    }
  }
}

// codes[32] of a block and row, to where the group's block begins (`to`).
void PackCodes(const PackRun& run, size_t n_bits, const uint8_t* codes, uint8_t* to) {
  uint32_t words[kBlockWords];
  for (size_t w = 0; w < kBlockWords; ++w) {
    uint8_t bytes[kWordCols];
    for (size_t i = 0; i < kWordCols; ++i) bytes[i] = codes[WordColumn(run.form, w, i)];
    std::memcpy(&words[w], bytes, sizeof(bytes));
  }
  to += run.lane * sizeof(uint32_t);
  const auto store = [&](uint32_t word) {
    std::memcpy(to, &word, sizeof(word));
    to += kVectorBytes;
  };
  if (n_bits >= 4) {
    const PackedFamily family = n_bits == 4 ? PackedFamily::kP4 : PackedFamily::kP6;
    for (size_t step = 0; step < kBlockWords / 2; ++step) {
      const uint32_t low = words[NibbleWord(family, run.form, step, 0)] & kNibbles;
      const uint32_t high = words[NibbleWord(family, run.form, step, 1)] & kNibbles;
      store(low | high << 4);
    }
    for (uint32_t& word : words) word = word >> 4 & kNibbles;
    n_bits -= 4;
  }
  if (n_bits >= 2) {
    for (size_t v = 0; v < kBlockWords; v += 4) {
      uint32_t pairs = 0;
      for (size_t i = 0; i < 4; ++i) pairs |= (words[v + i] & kPairs) << (2 * i);
      store(pairs);
    }
    for (uint32_t& word : words) word = word >> 2 & kNibbles;
    n_bits -= 2;
  }
  if (n_bits == 0) return;
  uint32_t bits = 0;
  for (size_t w = 0; w < kBlockWords; ++w) bits |= (words[w] & kBits) << w;
  store(bits);
}

}  // namespace

bool PackPlanes(const PackRun& run) {
  const CodeFormat& code = *FindCodeFormat(run.type);
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(run.type));
  const size_t code_bytes = kBlockCols * kRowGroup * code.n_bits / 8;
  const size_t n_blocks = traits.n_block / kBlockCols;
  bool finite = true;
  BlockParts parts;
  for (size_t i = 0; i < run.n_blocks; ++i) {
    SplitBlock(run.type, run.src + i * traits.block_bytes, parts);
    finite &= IsFinite(code, parts);
    const size_t unit = run.first_block + i;
    PackHead(run, code, parts, unit);
    uint8_t* blocks = run.strip + run.layout.head_bytes + unit * n_blocks * run.layout.block_bytes +
                      run.group * code_bytes;
    for (size_t b = 0; b < n_blocks; ++b) {
      PackCodes(run, code.n_bits, parts.codes + b * kBlockCols,
                blocks + b * run.layout.block_bytes);
    }
  }
  return finite;
}

}  // namespace headlight
