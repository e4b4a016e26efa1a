#include "gguf/gguf_reader.h"

#include <algorithm>
#include <cmath>

#include "gguf/gguf_error.h"
#include "gguf/gguf_parser.h"
#include "gguf/little_endian.h"

namespace headlight {
namespace {

// By index of GgufValue.
constexpr const char* kValueKinds[] = {
    "an unsigned integer", "a signed integer",   "a floating-point number", "a bool", "a string",
    "an array of strings", "an array of numbers"};
static_assert(std::size(kValueKinds) == std::variant_size_v<GgufValue>);

[[noreturn]] void ThrowMissing(std::string_view key) {
  ThrowBadModel("key " + Quoted(key) +
                    " is missing; the model must be converted again by a current converter",
                {{"key", std::string(key)}});
}

[[noreturn]] void ThrowWrongKind(std::string_view key, const GgufValue& value, const char* wanted) {
  ThrowBadModel("key " + Quoted(key) + " is " + kValueKinds[value.index()] + ", expected " +
                    wanted + "; the model must be converted again",
                {{"key", std::string(key)}});
}

}  // namespace

size_t GgufNumberArray::count() const { return bytes.size() / GgufTypeBytes(type); }

double GgufNumberArray::at(size_t i) const {
  const uint8_t* p = bytes.data() + i * GgufTypeBytes(type);
  switch (type) {
    case GgufType::kU8:
    case GgufType::kBool:
      return *p;
    case GgufType::kI8:
      return LoadLittleEndian<int8_t>(p);
    case GgufType::kU16:
      return LoadLittleEndian<uint16_t>(p);
    case GgufType::kI16:
      return LoadLittleEndian<int16_t>(p);
    case GgufType::kU32:
      return LoadLittleEndian<uint32_t>(p);
    case GgufType::kI32:
      return LoadLittleEndian<int32_t>(p);
    case GgufType::kF32:
      return LoadLittleEndian<float>(p);
    case GgufType::kU64:
      return static_cast<double>(LoadLittleEndian<uint64_t>(p));
    case GgufType::kI64:
      return static_cast<double>(LoadLittleEndian<int64_t>(p));
    case GgufType::kF64:
      return LoadLittleEndian<double>(p);
    case GgufType::kString:
    case GgufType::kArray:
      break;  // never the element type of a number array
  }
  return 0.0;
}

GgufReader::GgufReader() : parser_(std::make_unique<GgufParser>()) {}
GgufReader::~GgufReader() = default;
GgufReader::GgufReader(GgufReader&&) noexcept = default;
GgufReader& GgufReader::operator=(GgufReader&&) noexcept = default;

size_t GgufReader::Append(std::span<const uint8_t> bytes) {
  if (failure_) throw *failure_;
  if (parser_ == nullptr) return 0;
  try {
    const size_t n_taken = parser_->Append(bytes, header_);
    if (parser_->done()) parser_.reset();
    return n_taken;
  } catch (const Error& error) {
    failure_ = error;
    throw;
  } catch (const std::bad_alloc&) {
    failure_ =
        Error(ErrorCode::kOutOfMemory, "no memory for the model's header; use a smaller model");
    throw *failure_;
  }
}

void GgufReader::Finish() const {
  if (failure_) throw *failure_;
  if (parser_ != nullptr) parser_->ThrowIncomplete();
}

const GgufTensor* GgufReader::FindTensor(std::string_view name) const {
  const auto& order = header_.tensors_by_name;
  const auto it =
      std::lower_bound(order.begin(), order.end(), name,
                       [&](uint32_t i, std::string_view n) { return header_.tensors[i].name < n; });
  if (it == order.end() || header_.tensors[*it].name != name) return nullptr;
  return &header_.tensors[*it];
}

const GgufValue* GgufReader::Find(std::string_view key) const {
  const auto it = header_.values.find(key);
  return it == header_.values.end() ? nullptr : &it->second;
}

uint64_t GgufReader::GetUint(std::string_view key, std::optional<uint64_t> fallback) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return fallback ? *fallback : (ThrowMissing(key), 0);
  if (const auto* u = std::get_if<uint64_t>(value)) return *u;
  const auto* i = std::get_if<int64_t>(value);
  if (i == nullptr) ThrowWrongKind(key, *value, "an integer");
  if (*i < 0) {
    ThrowBadModel("key " + Quoted(key) + " is " + std::to_string(*i) + ", expected an integer >= 0",
                  {{"key", std::string(key)}});
  }
  return static_cast<uint64_t>(*i);
}

double GgufReader::GetFloat(std::string_view key, std::optional<double> fallback) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return fallback ? *fallback : (ThrowMissing(key), 0.0);
  if (const auto* f = std::get_if<double>(value)) return *f;
  if (const auto* u = std::get_if<uint64_t>(value)) return static_cast<double>(*u);
  if (const auto* i = std::get_if<int64_t>(value)) return static_cast<double>(*i);
  ThrowWrongKind(key, *value, "a number");
}

bool GgufReader::GetBool(std::string_view key, std::optional<bool> fallback) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return fallback ? *fallback : (ThrowMissing(key), false);
  if (const auto* b = std::get_if<bool>(value)) return *b;
  ThrowWrongKind(key, *value, "a bool");
}

const std::string& GgufReader::GetString(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) ThrowMissing(key);
  if (const auto* s = std::get_if<std::string>(value)) return *s;
  ThrowWrongKind(key, *value, "a string");
}

const GgufStringArray* GgufReader::FindStrings(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return nullptr;
  if (const auto* a = std::get_if<GgufStringArray>(value)) return a;
  ThrowWrongKind(key, *value, "an array of strings");
}

const GgufNumberArray* GgufReader::FindNumbers(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return nullptr;
  if (const auto* a = std::get_if<GgufNumberArray>(value)) return a;
  ThrowWrongKind(key, *value, "an array of numbers");
}

void GgufReader::Drop(std::string_view key) {
  const auto it = header_.values.find(key);
  if (it != header_.values.end()) header_.values.erase(it);
}

}  // namespace headlight
