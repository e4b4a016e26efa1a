#include "gguf/gguf_error.h"

#include "base/dtype.h"

namespace headlight {
namespace {

constexpr size_t kMaxQuotedBytes = 80;  // one line of a message

// Types of the format without a row in base/dtype.cc, for error messages only.
struct NamedType {
  uint32_t type;
  const char* name;
};
constexpr NamedType kOtherTypes[] = {
    {9, "Q8_1"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {21, "IQ3_S"}, {22, "IQ2_S"}, {24, "I8"},      {25, "I16"},    {26, "I32"},     {27, "I64"},
    {28, "F64"},   {29, "IQ1_M"}, {34, "TQ1_0"},   {35, "TQ2_0"},
};

}  // namespace

std::string Quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = "'";
  for (const char c : text.substr(0, kMaxQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  if (text.size() > kMaxQuotedBytes) out += "...";
  return out + "'";
}

std::string ShapeText(std::span<const uint64_t> dims) {
  std::string out = "[";
  for (size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) out += ", ";
    out += std::to_string(dims[i]);
  }
  return out + "]";
}

std::string TensorTypeText(uint32_t type) {
  if (const TensorTypeTraits* traits = FindTensorType(type)) return traits->name;
  for (const NamedType& row : kOtherTypes) {
    if (row.type == type) return row.name;
  }
  return "number " + std::to_string(type);
}

void ThrowBadModel(std::string message, Error::Details details) {
  throw Error(ErrorCode::kBadModel, std::move(message), std::move(details));
}

void ThrowUnsupported(std::string message, Error::Details details) {
  throw Error(ErrorCode::kUnsupported, std::move(message), std::move(details));
}

}  // namespace headlight
