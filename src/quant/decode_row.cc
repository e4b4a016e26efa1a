// DecodeRow: one row of a packed matrix, element by element.
#include <cstring>

#include "quant/file_blocks.h"
#include "quant/packed.h"
#include "quant/packed_layout.h"

namespace headlight {
namespace {

template <typename T>
T LoadAs(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// Byte `byte` of word `word` in the block of a group that begins at `codes`; lane: its row.
uint8_t PlaneCode(const PackedShape& shape, const uint8_t* codes, size_t lane, size_t word,
                  size_t byte) {
  const size_t at = lane * kWordCols + byte;
  int code = 0;
  size_t n_bits = shape.code.n_bits;
  size_t shift = 0;
  if (n_bits >= 4) {
    size_t step = 0, nibble = 0;
    while (NibbleWord(shape.family, shape.form, step, nibble) != word) {
      step += nibble;
      nibble ^= 1;
    }
    code = codes[step * kVectorBytes + at] >> (4 * nibble) & 15;
    codes += kBlockWords / 2 * kVectorBytes;
    n_bits -= 4;
    shift = 4;
  }
  if (n_bits >= 2) {
    code |= (codes[word / 4 * kVectorBytes + at] >> (word % 4 * 2) & 3) << shift;
    codes += 2 * kVectorBytes;
    n_bits -= 2;
    shift += 2;
  }
  if (n_bits == 1) code |= (codes[at] >> word & 1) << shift;
  return static_cast<uint8_t>(code);
}

// What scales the columns of one half of a block.
struct HalfScale {
  float scale;
  float min;
};

HalfScale ScaleOf(const PackedShape& shape, const uint8_t* strip, size_t n_groups, size_t row,
                  size_t block, size_t half) {
  const CodeFormat& code = shape.code;
  const HeadUnit unit(code, n_groups);
  const uint8_t* head = strip + block / unit.n_blocks * unit.bytes;
  const size_t in_unit = block % unit.n_blocks;
  const uint16_t bits =
      code.scales == ScaleKind::kE8m0 ? head[row] : LoadAs<uint16_t>(head + row * 2);
  int factor = 1;
  int min_factor = 1;
  const uint8_t* factors = head + unit.factors + in_unit * unit.factor_stride;
  if (code.scales == ScaleKind::kSuper32) {
    factor = static_cast<int8_t>(factors[row]);
    min_factor = head[unit.min_factors + in_unit * unit.min_factor_stride + row];
  } else if (code.scales == ScaleKind::kSuper16) {
    const uint8_t both = factors[row * kBlockHalves + half];
    factor = code.has_mins ? both & 15 : static_cast<int8_t>(both);
    min_factor = both >> 4;
  }
  HalfScale out{BlockScale(code.scales, bits) * static_cast<float>(factor), 0.0f};
  if (code.has_mins) {
    out.min =
        F32FromF16(LoadAs<uint16_t>(head + unit.mins + row * 2)) * static_cast<float>(min_factor);
  }
  return out;
}

// Of a family whose strips have a head.
void DecodePlanesRow(const PackedMatrix& w, size_t row, float* out) {
  const PackedShape& shape = w.shape;
  const size_t group = row / kRowGroup;
  const uint8_t* strip = w.data + StripOffset(shape, group);
  const StripLayout layout = StripOf(shape, group);
  for (size_t b = 0; b < shape.n_blocks; ++b) {
    const uint8_t* codes = strip + layout.head_bytes + b * layout.block_bytes +
                           group % kStripGroups * CodeBlockBytes(shape.family);
    HalfScale scales[kBlockHalves];
    for (size_t half = 0; half < kBlockHalves; ++half) {
      scales[half] = ScaleOf(shape, strip, layout.n_groups, row % kStripRows, b, half);
    }
    for (size_t i = 0; i < kBlockCols; ++i) {
      const size_t column = WordColumn(shape.form, i / kWordCols, i % kWordCols);
      const HalfScale& scale = scales[column / kHalfCols];
      const uint8_t code = PlaneCode(shape, codes, row % kRowGroup, i / kWordCols, i % kWordCols);
      float value = scale.scale * static_cast<float>(CodeValue(shape.code, code));
      if (shape.code.has_mins) value -= scale.min;
      out[b * kBlockCols + column] = value;
    }
  }
}

}  // namespace

void DecodeRow(const PackedMatrix& w, size_t row, float* out) noexcept {
  const PackedShape& shape = w.shape;
  const size_t group = row / kRowGroup;
  const uint8_t* strip = w.data + StripOffset(shape, group);
  const StripLayout layout = StripOf(shape, group);
  const size_t strip_row = row % kStripRows;
  if (!HasCodes(shape.family)) {
    const size_t element_bytes = PlainElementBytes(shape.family);
    for (size_t col = 0; col < shape.n_cols; ++col) {
      const uint8_t* at = strip + (col * layout.n_groups * kRowGroup + strip_row) * element_bytes;
      out[col] = shape.family == PackedFamily::kF32   ? LoadAs<float>(at)
                 : shape.family == PackedFamily::kF16 ? F32FromF16(LoadAs<uint16_t>(at))
                                                      : F32FromBF16(LoadAs<uint16_t>(at));
    }
    return;
  }
  if (!ScalesInBlocks(shape)) return DecodePlanesRow(w, row, out);
  const DotForm form = shape.form;
  const bool is_p8 = shape.family == PackedFamily::kP8;
  const size_t lane = row % kRowGroup;
  for (size_t b = 0; b < shape.n_blocks; ++b) {
    const uint8_t* block = strip + b * layout.block_bytes;
    const float scale = F32FromF16(LoadAs<uint16_t>(block + strip_row * sizeof(uint16_t)));
    const uint8_t* codes = block + layout.scale_bytes +
                           group % kStripGroups * CodeBlockBytes(shape.family) + lane * kWordCols;
    const auto store = [&](size_t word, size_t byte, int code) {
      const size_t column = b * kBlockCols + WordColumn(form, word, byte);
      out[column] = static_cast<float>(code) * scale;
    };
    for (size_t i = 0; i < CodeBlockBytes(shape.family) / kRowGroup; ++i) {
      const size_t step = i / kWordCols;
      const uint8_t code = codes[step * kVectorBytes + i % kWordCols];
      if (is_p8) {
        store(step, i % kWordCols, static_cast<int8_t>(code ^ P8Flip(form)));
      } else {
        store(P4Word(form, step, 0), i % kWordCols, (code & 15) - kP4Offset);
        store(P4Word(form, step, 1), i % kWordCols, (code >> 4) - kP4Offset);
      }
    }
  }
}

}  // namespace headlight
