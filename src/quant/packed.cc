#include "quant/packed.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/error.h"
#include "quant/pack_run.h"
#include "quant/packed_layout.h"
#include "simd/simd.h"

namespace headlight {
namespace {

constexpr size_t kFileScaleBytes = 2;
constexpr uint16_t kF16ExponentMask = 0x7C00;  // all ones: inf or NaN
constexpr uint16_t kBF16ExponentMask = 0x7F80;
constexpr uint32_t kF32ExponentMask = 0x7F800000;

template <typename T>
T LoadAs(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

// The words of a Q8_0 block's 32 codes.
struct Q8_0Words {
  static constexpr size_t kWords = kBlockWords;
  static void Make(DotForm form, const uint8_t* codes, uint32_t* words) {
    const U16x8 d16;
    const auto flip = hn::BitCast(d16, hn::Set(U8x16(), P8Flip(form)));
    const auto first = hn::Xor(hn::BitCast(d16, hn::LoadU(U8x16(), codes)), flip);
    const auto second = hn::Xor(hn::BitCast(d16, hn::LoadU(U8x16(), codes + kHalfCols)), flip);
    const bool mix = WordsMixHalves(form);
    const U32x4 d32;
    hn::Store(hn::BitCast(d32, mix ? hn::InterleaveLower(d16, first, second) : first), d32, words);
    hn::Store(hn::BitCast(d32, mix ? hn::InterleaveUpper(d16, first, second) : second), d32,
              words + kBlockWords / 2);
  }
};

// The steps of a Q4_0 block's 16 bytes, of which byte i holds columns i and 16 + i.
struct Q4_0Words {
  static constexpr size_t kWords = kBlockWords / 2;
  static void Make(DotForm form, const uint8_t* codes, uint32_t* words) {
    const U32x4 d32;
    auto word = hn::BitCast(d32, hn::LoadU(U8x16(), codes));
    if (WordsMixHalves(form)) {
      // Four columns of each half: two of them into the low nibbles, two into the high ones.
      const auto low_nibbles = hn::Set(d32, 0x0F0F0F0Fu);
      const auto first = hn::And(word, low_nibbles);
      const auto second = hn::And(hn::ShiftRight<4>(word), low_nibbles);
      const auto lower = hn::Set(d32, 0xFFFFu);
      word = hn::Or(hn::Or(hn::And(first, lower), hn::ShiftLeft<4>(hn::ShiftRight<16>(first))),
                    hn::Or(hn::ShiftLeft<16>(second), hn::ShiftLeft<4>(hn::AndNot(lower, second))));
    }
    hn::Store(word, d32, words);
  }
};

// Q8_0 and Q4_0: f16 scale, then the codes of 32 columns. Returns whether all scales are finite.
template <class Words>
bool PackCodes(const PackRun& run) {
  constexpr size_t kFileBlock = kFileScaleBytes + Words::kWords * sizeof(uint32_t);
  const uint8_t* src = run.src;
  uint8_t* block = run.strip + run.first_block * run.layout.block_bytes;
  uint8_t* scales = block + (run.group * kRowGroup + run.lane) * sizeof(uint16_t);
  uint8_t* codes = block + run.layout.scale_bytes + run.group * Words::kWords * kVectorBytes +
                   run.lane * sizeof(uint32_t);
  bool finite = true;
  for (size_t b = 0; b < run.n_blocks; ++b) {
    const uint16_t scale = LoadAs<uint16_t>(src);
    finite &= (scale & kF16ExponentMask) != kF16ExponentMask;
    std::memcpy(scales, &scale, sizeof(scale));
    alignas(kVectorBytes) uint32_t words[Words::kWords];
    Words::Make(run.form, src + kFileScaleBytes, words);
    for (size_t w = 0; w < Words::kWords; ++w) {
      std::memcpy(codes + w * kVectorBytes, &words[w], sizeof(words[w]));
    }
    src += kFileBlock;
    scales += run.layout.block_bytes;
    codes += run.layout.block_bytes;
  }
  return finite;
}

template <typename T, T kExponentMask>
bool PackPlain(const PackRun& run) {
  const size_t column_bytes = run.layout.n_groups * kRowGroup * sizeof(T);
  uint8_t* dst =
      run.strip + run.first_block * column_bytes + (run.group * kRowGroup + run.lane) * sizeof(T);
  bool finite = true;
  for (size_t i = 0; i < run.n_blocks; ++i) {
    const T value = LoadAs<T>(run.src + i * sizeof(T));
    finite &= (value & kExponentMask) != kExponentMask;
    std::memcpy(dst + i * column_bytes, &value, sizeof(T));
  }
  return finite;
}

// One row a file type: which family it becomes, and how. A new type with codes is a row here, its
// format and a function that takes its blocks apart (file_blocks.cc).
struct FileType {
  TensorType type;
  PackedFamily family;
  bool (*pack)(const PackRun& run);
};

constexpr FileType kFileTypes[] = {
    {TensorType::kF32, PackedFamily::kF32, PackPlain<uint32_t, kF32ExponentMask>},
    {TensorType::kF16, PackedFamily::kF16, PackPlain<uint16_t, kF16ExponentMask>},
    {TensorType::kBF16, PackedFamily::kBF16, PackPlain<uint16_t, kBF16ExponentMask>},
    {TensorType::kQ8_0, PackedFamily::kP8, PackCodes<Q8_0Words>},
    {TensorType::kQ4_0, PackedFamily::kP4, PackCodes<Q4_0Words>},
    {TensorType::kQ4_1, PackedFamily::kP4, PackPlanes},
    {TensorType::kQ5_0, PackedFamily::kP5, PackPlanes},
    {TensorType::kQ5_1, PackedFamily::kP5, PackPlanes},
    {TensorType::kQ2_K, PackedFamily::kP2, PackPlanes},
    {TensorType::kQ3_K, PackedFamily::kP3, PackPlanes},
    {TensorType::kQ4_K, PackedFamily::kP4, PackPlanes},
    {TensorType::kQ5_K, PackedFamily::kP5, PackPlanes},
    {TensorType::kQ6_K, PackedFamily::kP6, PackPlanes},
    {TensorType::kIQ4_NL, PackedFamily::kP4, PackPlanes},
    {TensorType::kIQ4_XS, PackedFamily::kP4, PackPlanes},
    {TensorType::kMXFP4, PackedFamily::kP4, PackPlanes},
};

const FileType* FindFileType(TensorType type) {
  for (const FileType& row : kFileTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

std::string TypeName(TensorType type) {
  const TensorTypeTraits* traits = FindTensorType(static_cast<uint32_t>(type));
  return traits != nullptr ? traits->name : "type " + std::to_string(static_cast<uint32_t>(type));
}

std::string SupportedNames() {
  std::string names;
  for (const FileType& row : kFileTypes) names += (names.empty() ? "" : ", ") + TypeName(row.type);
  return names;
}

[[noreturn]] void ThrowBadShape(const std::string& why, size_t n_rows, size_t n_cols) {
  throw Error(ErrorCode::kBadModel,
              "a matrix of " + std::to_string(n_rows) + " x " + std::to_string(n_cols) + " " + why,
              {{"n_rows", std::to_string(n_rows)}, {"n_cols", std::to_string(n_cols)}});
}

[[noreturn]] void ThrowNotFinite(TensorType type, size_t row, size_t column) {
  throw Error(ErrorCode::kBadModel,
              "the " + TypeName(type) + " data at row " + std::to_string(row) + ", column " +
                  std::to_string(column) +
                  " is infinite or not a number: the file is damaged or was converted wrongly",
              {{"row", std::to_string(row)}, {"column", std::to_string(column)}});
}

}  // namespace

const char* PackedFamilyName(PackedFamily family) {
  switch (family) {
    case PackedFamily::kF32:
      return "f32";
    case PackedFamily::kF16:
      return "f16";
    case PackedFamily::kBF16:
      return "bf16";
    case PackedFamily::kP8:
      return "p8";
    case PackedFamily::kP6:
      return "p6";
    case PackedFamily::kP5:
      return "p5";
    case PackedFamily::kP4:
      return "p4";
    case PackedFamily::kP3:
      return "p3";
    case PackedFamily::kP2:
      return "p2";
  }
  return "f32";
}

PackedShape PlanPacked(TensorType type, size_t n_rows, size_t n_cols, DotForm form) {
  const FileType* file_type = FindFileType(type);
  if (file_type == nullptr) {
    throw Error(ErrorCode::kUnsupported,
                "weights of type " + TypeName(type) + " are not supported; supported are " +
                    SupportedNames(),
                {{"type", TypeName(type)}, {"supported", SupportedNames()}});
  }
  const size_t n_block = FindTensorType(static_cast<uint32_t>(type))->n_block;
  if (n_rows == 0 || n_cols == 0) ThrowBadShape("is empty", n_rows, n_cols);
  if (n_cols % n_block != 0) {
    ThrowBadShape("does not divide into " + TypeName(type) + " blocks of " +
                      std::to_string(n_block) + " columns",
                  n_rows, n_cols);
  }
  // With both below 2^31 nothing overflows 64 bits; what this machine can address is the second
  // question.
  constexpr size_t kMaxSide = size_t{1} << 31;
  if (n_rows >= kMaxSide || n_cols >= kMaxSide) ThrowBadShape("is too large", n_rows, n_cols);
  PackedShape shape;
  shape.family = file_type->family;
  if (const CodeFormat* code = FindCodeFormat(type)) shape.code = *code;
  shape.form = form;
  shape.n_rows = n_rows;
  shape.n_cols = n_cols;
  shape.n_row_groups = CeilDiv(n_rows, kRowGroup);
  shape.n_blocks = CeilDiv(n_cols, kBlockCols);
  // A padded element takes at most 4 bytes, and with its share of the padded scales no more either.
  const uint64_t n_padded =
      uint64_t{shape.n_row_groups * kRowGroup} * (shape.n_blocks * kBlockCols);
  if (n_padded > (std::numeric_limits<size_t>::max() - kAlignment) / sizeof(float)) {
    ThrowBadShape("is too large for this machine's address space", n_rows, n_cols);
  }
  const size_t last = shape.n_row_groups - 1;
  shape.bytes =
      RoundUp(StripOffset(shape, last) + StripOf(shape, last).Bytes(shape.n_blocks), kAlignment);
  return shape;
}

PackedWriter::PackedWriter(TensorType type, const PackedShape& shape, uint8_t* dst)
    : type_(type), shape_(shape), dst_(dst) {
  const TensorTypeTraits* traits = FindTensorType(static_cast<uint32_t>(type));
  n_block_ = traits->n_block;
  block_bytes_ = traits->block_bytes;
  n_total_ = uint64_t{shape.n_rows} * (shape.n_cols / n_block_) * block_bytes_;
}

size_t PackedWriter::Append(std::span<const uint8_t> bytes) {
  const size_t n_taken = static_cast<size_t>(std::min<uint64_t>(bytes.size(), n_total_ - n_done_));
  const uint8_t* src = bytes.data();
  size_t n_left = n_taken;
  if (n_carry_ != 0) {
    const size_t n_fill = std::min(block_bytes_ - n_carry_, n_left);
    std::memcpy(carry_ + n_carry_, src, n_fill);
    n_carry_ += n_fill;
    src += n_fill;
    n_left -= n_fill;
    if (n_carry_ == block_bytes_) {
      PackBlocks(carry_, 1);
      n_carry_ = 0;
    }
  }
  const size_t row_blocks = shape_.n_cols / n_block_;
  while (n_left >= block_bytes_) {
    const size_t n_run = std::min(n_left / block_bytes_, row_blocks - next_block_);
    PackBlocks(src, n_run);
    src += n_run * block_bytes_;
    n_left -= n_run * block_bytes_;
  }
  if (n_left != 0) std::memcpy(carry_, src, n_left);
  n_carry_ += n_left;
  n_done_ += n_taken;
  return n_taken;
}

void PackedWriter::PackBlocks(const uint8_t* src, size_t n_blocks) {
  const size_t group = row_ / kRowGroup;
  const FileType* file_type = FindFileType(type_);
  PackRun run{type_,
              src,
              n_blocks,
              dst_ + StripOffset(shape_, group),
              StripOf(shape_, group),
              group % kStripGroups,
              row_ % kRowGroup,
              next_block_,
              shape_.form};
  if (!file_type->pack(run)) {
    // Rare: once more, block by block, to name the place.
    for (run.n_blocks = 1; file_type->pack(run); ++run.first_block) run.src += block_bytes_;
    ThrowNotFinite(type_, row_, run.first_block * n_block_);
  }
  next_block_ += n_blocks;
  if (next_block_ * n_block_ == shape_.n_cols) {
    next_block_ = 0;
    ++row_;
  }
}

}  // namespace headlight
