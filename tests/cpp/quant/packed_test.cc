// Packed weights hold exactly what the file's blocks say, however the bytes arrive.
#include "quant/packed.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "kernels/random_matrix.h"

namespace headlight {
namespace {

using test::Fill;

constexpr DotForm kForms[] = {DotForm::kWide, DotForm::kUnsigned, DotForm::kSigned,
                              DotForm::kSplit};

struct Shape {
  size_t n_rows, n_cols;
};

bool Divides(TensorType type, const Shape& shape) {
  return shape.n_cols % test::Traits(type).n_block == 0;
}

std::vector<float> DecodeFile(TensorType type, const std::vector<uint8_t>& bytes) {
  const TensorTypeTraits& traits = test::Traits(type);
  std::vector<float> values(bytes.size() / traits.block_bytes * traits.n_block);
  for (size_t b = 0; b < bytes.size() / traits.block_bytes; ++b) {
    DecodeBlock(type, &bytes[b * traits.block_bytes], &values[b * traits.n_block]);
  }
  return values;
}

TEST_CASE(
    "DecodeRow: every row of every type, shape, fill and form is what the file says, bit for bit") {
  constexpr Shape kShapes[] = {{1, 32},  {2, 32},    {3, 64},   {4, 96},  {5, 8},
                               {9, 172}, {172, 192}, {17, 576}, {7, 256}, {19, 768}};
  for (const TensorType type : test::kTypes) {
    for (const Shape& shape : kShapes) {
      if (!Divides(type, shape)) continue;
      for (const Fill fill : test::kFills) {
        const auto bytes = test::RandomFileBytes(type, shape.n_rows, shape.n_cols, fill, 7);
        const auto expected = DecodeFile(type, bytes);
        for (const DotForm form : kForms) {
          const auto packed = test::Pack(type, shape.n_rows, shape.n_cols, bytes, form);
          std::vector<float> row(shape.n_cols);
          for (size_t r = 0; r < shape.n_rows; ++r) {
            DecodeRow(packed.matrix, r, row.data());
            const bool equal = std::memcmp(row.data(), &expected[r * shape.n_cols],
                                           shape.n_cols * sizeof(float)) == 0;
            CHECK(equal);
          }
        }
      }
    }
  }
}

TEST_CASE("PackedWriter: chunks cut at every byte give the same matrix") {
  for (const TensorType type : test::kTypes) {
    const Shape kShape = {5, test::Traits(type).n_block == 256 ? size_t{256} : size_t{96}};
    const auto bytes = test::RandomFileBytes(type, kShape.n_rows, kShape.n_cols, Fill::kNormal, 3);
    const auto whole = test::Pack(type, kShape.n_rows, kShape.n_cols, bytes, DotForm::kUnsigned);
    const PackedShape& shape = whole.matrix.shape;
    const auto check_equal = [&](const AlignedArray<uint8_t>& other) {
      CHECK(std::memcmp(other.data(), whole.storage.data(), shape.bytes) == 0);
    };
    for (size_t cut = 0; cut <= bytes.size(); ++cut) {  // two chunks
      AlignedArray<uint8_t> dst(shape.bytes);
      PackedWriter writer(type, shape, dst.data());
      CHECK(writer.Append({bytes.data(), cut}) == cut);
      CHECK(writer.done() == (cut == bytes.size()));
      CHECK(writer.Append({bytes.data() + cut, bytes.size() - cut}) == bytes.size() - cut);
      CHECK(writer.done());
      check_equal(dst);
    }
    for (size_t step = 1; step < 80; ++step) {  // chunks of equal size
      AlignedArray<uint8_t> dst(shape.bytes);
      PackedWriter writer(type, shape, dst.data());
      for (size_t at = 0; at < bytes.size(); at += step) {
        writer.Append({bytes.data() + at, std::min(step, bytes.size() - at)});
      }
      CHECK(writer.done());
      check_equal(dst);
    }
  }
}

TEST_CASE("PackedWriter: takes no byte beyond its tensor") {
  auto bytes = test::RandomFileBytes(TensorType::kQ8_0, 2, 64, Fill::kNormal, 5);
  const size_t n_bytes = bytes.size();
  const PackedShape shape = PlanPacked(TensorType::kQ8_0, 2, 64, DotForm::kSigned);
  AlignedArray<uint8_t> dst(shape.bytes);
  PackedWriter writer(TensorType::kQ8_0, shape, dst.data());
  CHECK(writer.n_file_bytes() == n_bytes);
  bytes.resize(n_bytes + 100, 0xFF);  // the next tensor's: as a scale it would not be finite
  CHECK(writer.Append(bytes) == n_bytes);
  CHECK(writer.done());
  CHECK(writer.Append(bytes) == 0);
}

TEST_CASE(
    "PackedWriter: an infinite or NaN scale or weight is a BadModel that names row and column") {
  for (const TensorType type : test::kTypes) {
    const TensorTypeTraits& traits = test::Traits(type);
    const Shape shape = {6, traits.n_block == 256 ? size_t{512} : size_t{96}};
    const size_t row_blocks = shape.n_cols / traits.n_block;
    const size_t row = 4, block = row_blocks - 1;
    // Where a number of the block ends: its sign and exponent are in its last bytes.
    std::vector<size_t> ends = {size_t{type == TensorType::kF32 ? 4u : 2u}};
    if (type == TensorType::kMXFP4) ends = {1};
    if (test::IsCoded(type) && type != TensorType::kMXFP4) {
      ends.clear();
      for (const size_t at : test::F16Places(type)) ends.push_back(at + 2);
    }
    const bool is_long = type == TensorType::kF32 || type == TensorType::kBF16;
    for (const size_t end : ends) {
      for (const bool is_nan : {false, true}) {
        auto bytes = test::RandomFileBytes(type, shape.n_rows, shape.n_cols, Fill::kNormal, 9);
        uint8_t* value = &bytes[(row * row_blocks + block) * traits.block_bytes + end];
        if (type == TensorType::kMXFP4) {
          value[-1] = 0xFF;
        } else {
          value[-1] = is_long ? 0xFF : 0xFC;
          value[-2] = static_cast<uint8_t>((is_long ? 0x80 : 0x00) | (is_nan ? 1 : 0));
          if (type == TensorType::kF32) value[-3] = value[-4] = 0;
        }
        std::string row_detail, column_detail;
        try {
          test::Pack(type, shape.n_rows, shape.n_cols, bytes, DotForm::kWide);
        } catch (const Error& e) {
          CHECK(e.code() == ErrorCode::kBadModel);
          for (const auto& [key, value_text] : e.details()) {
            if (key == "row") row_detail = value_text;
            if (key == "column") column_detail = value_text;
          }
        }
        CAPTURE(std::string(traits.name));
        CHECK(row_detail == std::to_string(row));
        CHECK(column_detail == std::to_string(block * traits.n_block));
      }
    }
  }
}

// Packed over file bytes at most. Factors and minima of 6 bits take bytes in the head, and the
// 6-bit factors of Q3_K too.
double MaxRatio(TensorType type) {
  if (type == TensorType::kQ4_K || type == TensorType::kQ5_K) return 1.03;
  return type == TensorType::kQ3_K ? 1.04 : 1.02;
}

TEST_CASE("PlanPacked: packed bytes are within 2 to 4 % of the file's for a model's matrices") {
  constexpr Shape kShapes[] = {{576, 576}, {1536, 576}, {576, 1536}, {49152, 576},
                               {192, 512}, {288, 288},  {256, 256},  {2048, 768}};
  for (const TensorType type : test::kTypes) {
    for (const Shape& shape : kShapes) {
      if (!Divides(type, shape)) continue;
      const PackedShape packed = PlanPacked(type, shape.n_rows, shape.n_cols, DotForm::kUnsigned);
      const TensorTypeTraits& traits = test::Traits(type);
      const double file_bytes =
          static_cast<double>(shape.n_rows) *
          static_cast<double>(shape.n_cols / traits.n_block * traits.block_bytes);
      CAPTURE(std::string(traits.name));
      CHECK(static_cast<double>(packed.bytes) <= MaxRatio(type) * file_bytes);
      CHECK(packed.bytes % kAlignment == 0);
    }
  }
}

ErrorCode PlanError(TensorType type, size_t n_rows, size_t n_cols) {
  try {
    PlanPacked(type, n_rows, n_cols, DotForm::kWide);
  } catch (const Error& e) {
    return e.code();
  }
  return ErrorCode::kInternal;
}

TEST_CASE("PlanPacked: what cannot be packed is refused before anything is allocated") {
  CHECK(PlanError(static_cast<TensorType>(16), 4, 256) == ErrorCode::kUnsupported);  // IQ2_XXS
  CHECK(PlanError(static_cast<TensorType>(777), 4, 256) == ErrorCode::kUnsupported);
  CHECK(PlanError(TensorType::kQ8_0, 4, 172) == ErrorCode::kBadModel);
  CHECK(PlanError(TensorType::kQ4_0, 4, 16) == ErrorCode::kBadModel);
  CHECK(PlanError(TensorType::kF32, 0, 32) == ErrorCode::kBadModel);
  CHECK(PlanError(TensorType::kF32, 32, 0) == ErrorCode::kBadModel);
  CHECK(PlanError(TensorType::kF32, size_t{1} << 31, size_t{1} << 31) == ErrorCode::kBadModel);
  CHECK(PlanError(TensorType::kF32, (size_t{1} << 31) - 1, (size_t{1} << 31) - 1) ==
        ErrorCode::kBadModel);
}

}  // namespace
}  // namespace headlight
