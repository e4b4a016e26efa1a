// GgufReader over right files: every value type, every chunk size, typed access, the tensor
// directory.
#include "gguf/gguf_reader.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gguf/gguf_limits.h"
#include "gguf_reading.h"
#include "gguf_writer.h"
#include "support.h"

namespace headlight::testing {
namespace {

template <typename T>
std::vector<uint8_t> Bytes(T value) {
  return ByteSink().Number(value).bytes;
}

constexpr uint32_t Code(GgufType type) { return static_cast<uint32_t>(type); }

// One key of every type and arrays of every element type, tensors of several.
GgufWriter EveryType() {
  GgufWriter writer;
  writer.Raw("u8", Code(GgufType::kU8), Bytes(uint8_t{200}))
      .Raw("i8", Code(GgufType::kI8), Bytes(int8_t{-100}))
      .Raw("u16", Code(GgufType::kU16), Bytes(uint16_t{60000}))
      .Raw("i16", Code(GgufType::kI16), Bytes(int16_t{-30000}))
      .Uint("u32", 4294967295u)
      .Raw("i32", Code(GgufType::kI32), Bytes(int32_t{-2000000000}))
      .Float("f32", 0.1f)
      .Bool("yes", true)
      .Bool("no", false)
      .String("text", "na\xC3\xAFve \xF0\x9F\x99\x82")
      .String("empty text", "")
      .Raw("u64", Code(GgufType::kU64), Bytes(uint64_t{1} << 63))
      .Raw("i64", Code(GgufType::kI64), Bytes(std::numeric_limits<int64_t>::min()))
      .Raw("f64", Code(GgufType::kF64), Bytes(0.1))
      .Strings("strings", {"", "a", "bc", std::string(300, 'x'), ""})
      .Strings("no strings", {})
      .Floats("floats", {1.5f, -2.25f})
      .Ints("ints", {-1, 0, 2147483647})
      .Uints("uints", {0, 4294967295u})
      .Uints("no numbers", {});
  writer.Tensor({.name = "b", .type = 0, .dims = {3}, .data = std::vector<uint8_t>(12, 1)})
      .Tensor({.name = "a", .type = 8, .dims = {64, 2}, .data = std::vector<uint8_t>(136, 2)})
      .Tensor({.name = "c", .type = 1, .dims = {5, 2, 3, 2}, .data = std::vector<uint8_t>(120, 3)});
  return writer;
}

void CheckEveryType(const GgufReader& reader) {
  CHECK(reader.GetUint("u8") == 200);
  CHECK(std::get<int64_t>(reader.values().at("i8")) == -100);
  CHECK(reader.GetUint("u16") == 60000);
  CHECK(std::get<int64_t>(reader.values().at("i16")) == -30000);
  CHECK(reader.GetUint("u32") == 4294967295u);
  CHECK(std::get<int64_t>(reader.values().at("i32")) == -2000000000);
  CHECK(reader.GetFloat("f32") == double{0.1f});
  CHECK(reader.GetBool("yes"));
  CHECK_FALSE(reader.GetBool("no"));
  CHECK(reader.GetString("text") == "na\xC3\xAFve \xF0\x9F\x99\x82");
  CHECK(reader.GetString("empty text").empty());
  CHECK(reader.GetUint("u64") == uint64_t{1} << 63);
  CHECK(std::get<int64_t>(reader.values().at("i64")) == std::numeric_limits<int64_t>::min());
  CHECK(reader.GetFloat("f64") == 0.1);
  const GgufStringArray& strings = *reader.FindStrings("strings");
  REQUIRE(strings.count() == 5);
  CHECK(strings.at(0).empty());
  CHECK(strings.at(2) == "bc");
  CHECK(strings.at(3) == std::string(300, 'x'));
  CHECK(strings.at(4).empty());
  CHECK(reader.FindStrings("no strings")->count() == 0);
  CHECK(reader.FindNumbers("floats")->at(1) == -2.25);
  CHECK(reader.FindNumbers("ints")->count() == 3);
  CHECK(reader.FindNumbers("ints")->at(0) == -1.0);
  CHECK(reader.FindNumbers("uints")->at(1) == 4294967295.0);
  CHECK(reader.FindNumbers("no numbers")->count() == 0);
  CHECK(reader.values().size() == 20);
}

}  // namespace

TEST_CASE("gguf: every value type, whatever the chunks") {
  const GgufWriter writer = EveryType();
  const std::vector<uint8_t> file = writer.File();
  for (const size_t chunk :
       {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{64}, size_t{4096}, file.size()}) {
    CAPTURE(chunk);
    GgufReader reader;
    const size_t n_taken = AppendInChunks(reader, file, chunk);
    CHECK(n_taken == writer.Header().size());  // stops where the data begin
    CHECK(reader.header_done());
    CHECK(reader.Append(file) == 0);
    CheckEveryType(reader);
    CHECK(reader.version() == 3);
    CHECK(reader.data_offset() == writer.Header().size());
    CHECK(reader.data_bytes() == file.size() - writer.Header().size());
  }
}

TEST_CASE("gguf: number arrays of every element type") {
  struct Case {
    GgufType type;
    std::vector<uint8_t> element;
    double value;
  };
  const Case cases[] = {
      {GgufType::kU8, Bytes(uint8_t{255}), 255.0},
      {GgufType::kI8, Bytes(int8_t{-128}), -128.0},
      {GgufType::kU16, Bytes(uint16_t{65535}), 65535.0},
      {GgufType::kI16, Bytes(int16_t{-32768}), -32768.0},
      {GgufType::kU32, Bytes(4294967295u), 4294967295.0},
      {GgufType::kI32, Bytes(int32_t{-5}), -5.0},
      {GgufType::kF32, Bytes(0.1f), double{0.1f}},
      {GgufType::kBool, Bytes(uint8_t{1}), 1.0},
      {GgufType::kU64, Bytes(uint64_t{1} << 53), 9007199254740992.0},
      {GgufType::kI64, Bytes(int64_t{-7}), -7.0},
      {GgufType::kF64, Bytes(0.1), 0.1},
  };
  for (const Case& c : cases) {
    CAPTURE(Code(c.type));
    ByteSink payload;
    payload.Number(Code(c.type)).Number(uint64_t{3});
    for (int i = 0; i < 3; ++i) payload.Append(c.element);
    GgufWriter writer;
    writer.Raw("numbers", Code(GgufType::kArray), payload.bytes).Bool("after", true);
    const GgufReader reader = ReadHeader(writer.File(), 5);
    const GgufNumberArray& numbers = *reader.FindNumbers("numbers");
    CHECK(numbers.type == c.type);
    REQUIRE(numbers.count() == 3);
    CHECK(numbers.at(0) == c.value);
    CHECK(numbers.at(2) == c.value);
    CHECK(reader.GetBool("after"));
  }
}

TEST_CASE("gguf: the tensor directory in file order, and by name") {
  const GgufReader reader = ReadHeader(EveryType().File());
  REQUIRE(reader.tensors().size() == 3);
  CHECK(reader.tensors()[0].name == "b");
  const GgufTensor& a = *reader.FindTensor("a");
  CHECK(&a == &reader.tensors()[1]);
  CHECK(a.type == TensorType::kQ8_0);
  CHECK(a.n_dims == 2);
  CHECK(a.n_cols() == 64);
  CHECK(a.n_rows() == 2);
  CHECK(a.bytes == 136);
  CHECK(a.offset == 32);
  const GgufTensor& c = *reader.FindTensor("c");
  CHECK(c.n_rows() == 12);
  CHECK(c.bytes == 120);
  CHECK(c.offset == 192);
  for (const char* name : {"", "A", "aa", "d", "blk.0.attn_q.weight"})
    CHECK(reader.FindTensor(name) == nullptr);
}

TEST_CASE("gguf: many tensors are found, whatever their order in the file") {
  GgufWriter writer;
  constexpr size_t kTensors = 1000;
  for (size_t i = 0; i < kTensors; ++i) {
    writer.Tensor({.name = "t" + std::to_string(i * 7919 % kTensors),
                   .type = 0,
                   .dims = {1},
                   .data = {0, 0, 0, 0}});
  }
  GgufReader reader = ReadHeader(writer.File());
  GgufReader moved = std::move(reader);
  for (size_t i = 0; i < kTensors; ++i) {
    const std::string name = "t" + std::to_string(i);
    const GgufTensor* tensor = moved.FindTensor(name);
    REQUIRE(tensor != nullptr);
    CHECK(tensor->name == name);
  }
}

TEST_CASE("gguf: alignment from general.alignment, 32 without it") {
  for (const uint32_t alignment : {8u, 16u, 32u, 64u, 4096u, 65536u}) {
    CAPTURE(alignment);
    GgufWriter writer = EveryType();
    writer.alignment = alignment;
    writer.Uint("general.alignment", alignment);
    const std::vector<uint8_t> file = writer.File();
    GgufReader reader;
    CHECK(AppendInChunks(reader, file, 100) == writer.Header().size());
    CHECK(reader.alignment() == alignment);
    CHECK(reader.data_offset() % alignment == 0);
    CHECK(reader.FindTensor("a")->offset == std::max(alignment, 16u));
  }
  CHECK(ReadHeader(EveryType().File()).alignment() == 32);
}

TEST_CASE("gguf: version 2 reads like version 3") {
  GgufWriter writer = EveryType();
  writer.version = 2;
  const GgufReader reader = ReadHeader(writer.File());
  CheckEveryType(reader);
  CHECK(reader.version() == 2);
}

TEST_CASE("gguf: a file without tensors is complete at its last key, unpadded") {
  GgufWriter writer;
  writer.String("general.architecture", "llama");
  const std::vector<uint8_t> file = writer.File();
  GgufReader reader;
  CHECK(reader.Append(file) == file.size());
  CHECK(reader.header_done());
  CHECK(reader.data_offset() == file.size());
  CHECK(reader.data_bytes() == 0);

  GgufReader empty;
  empty.Append(GgufWriter().File());
  CHECK(empty.header_done());
}

TEST_CASE("gguf: typed access converts numbers, and names the key when it cannot") {
  const GgufReader reader = ReadHeader(EveryType().File());
  CHECK(reader.GetFloat("u8") == 200.0);
  CHECK(reader.GetFloat("i8") == -100.0);
  CHECK(reader.GetUint("absent", 7) == 7);
  CHECK(reader.GetFloat("absent", 0.5) == 0.5);
  CHECK(reader.GetBool("absent", true));
  CHECK(reader.FindStrings("absent") == nullptr);
  CHECK(reader.FindNumbers("absent") == nullptr);
  CHECK_FALSE(reader.Has("absent"));
  CHECK(reader.Has("u8"));

  const auto check = [](const char* key, auto&& get) {
    CAPTURE(key);
    const Error error = ErrorOf(get);
    CHECK(error.code() == ErrorCode::kBadModel);
    CHECK(Detail(error, "key") == key);
    CHECK(Contains(error.message(), key));
  };
  check("absent", [&] { (void)reader.GetUint("absent"); });
  check("absent", [&] { (void)reader.GetFloat("absent"); });
  check("absent", [&] { (void)reader.GetBool("absent"); });
  check("absent", [&] { (void)reader.GetString("absent"); });
  check("i8", [&] { (void)reader.GetUint("i8"); });  // negative
  check("i8", [&] { (void)reader.GetUint("i8", 1); });
  check("f32", [&] { (void)reader.GetUint("f32"); });
  check("text", [&] { (void)reader.GetFloat("text"); });
  check("u8", [&] { (void)reader.GetBool("u8"); });
  check("yes", [&] { (void)reader.GetUint("yes"); });
  check("strings", [&] { (void)reader.GetString("strings"); });
  check("floats", [&] { (void)reader.FindStrings("floats"); });
  check("strings", [&] { (void)reader.FindNumbers("strings"); });
}

TEST_CASE("gguf: Drop frees a value and only that") {
  GgufReader reader = ReadHeader(EveryType().File());
  reader.Drop("strings");
  reader.Drop("absent");
  CHECK_FALSE(reader.Has("strings"));
  CHECK(reader.FindStrings("strings") == nullptr);
  CHECK(reader.GetString("text").size() == 11);
}

TEST_CASE("gguf: a header at its limits is read") {
  GgufWriter writer;
  writer.Bool(std::string(kMaxKeyBytes, 'k'), true);
  writer.Tensor({.name = std::string(kMaxTensorNameBytes, 'n'),
                 .type = 0,
                 .dims = {1},
                 .data = {0, 0, 0, 0}});
  const GgufReader reader = ReadHeader(writer.File(), 1000);
  CHECK(reader.GetBool(std::string(kMaxKeyBytes, 'k')));
  CHECK(reader.FindTensor(std::string(kMaxTensorNameBytes, 'n')) != nullptr);
}

}  // namespace headlight::testing
