#include "gguf/gguf_parser.h"

#include <algorithm>
#include <utility>

#include "gguf/gguf_error.h"
#include "gguf/gguf_foreign.h"
#include "gguf/gguf_limits.h"
#include "gguf/little_endian.h"

namespace headlight {

size_t GgufTypeBytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

size_t GgufParser::Append(std::span<const uint8_t> bytes, GgufHeader& header) {
  in_ = bytes;
  while (field_ != Field::kDone && Step(header)) {
  }
  const size_t n_taken = bytes.size() - in_.size();
  in_ = {};
  return n_taken;
}

bool GgufParser::Step(GgufHeader& header) {
  if (field_ <= Field::kKeyValueCount) return StepPreamble(header);
  if (field_ <= Field::kElement) return StepKeyValue(header);
  if (field_ <= Field::kTensorOffset) return StepTensor(header);
  // Padding up to the data section.
  const size_t n = static_cast<size_t>(std::min<uint64_t>(n_missing_, in_.size()));
  in_ = in_.subspan(n);
  offset_ += n;
  n_missing_ -= n;
  if (n_missing_ > 0) return false;
  field_ = Field::kDone;
  return true;
}

// Input.

const uint8_t* GgufParser::Take(size_t n) {
  if (n_carry_ == 0 && in_.size() >= n) {
    const uint8_t* p = in_.data();
    in_ = in_.subspan(n);
    field_offset_ = offset_;
    offset_ += n;
    return p;
  }
  const size_t n_more = std::min(n - n_carry_, in_.size());
  std::copy_n(in_.data(), n_more, carry_ + n_carry_);
  in_ = in_.subspan(n_more);
  n_carry_ += n_more;
  offset_ += n_more;
  if (n_carry_ < n) return nullptr;
  n_carry_ = 0;
  field_offset_ = offset_ - n;
  return carry_;
}

bool GgufParser::TakeBytes(std::string& dst) {
  const size_t n = static_cast<size_t>(std::min<uint64_t>(n_missing_, in_.size()));
  dst.append(reinterpret_cast<const char*>(in_.data()), n);
  in_ = in_.subspan(n);
  offset_ += n;
  n_missing_ -= n;
  return n_missing_ == 0;
}

void GgufParser::CheckHeaderRoom(uint64_t n) const {
  if (n <= kMaxHeaderBytes && offset_ <= kMaxHeaderBytes - n) return;
  ThrowUnsupported(
      "the header would be longer than " + NumberText(kMaxHeaderBytes) + " bytes" + Place() + At(),
      {{"offset", NumberText(field_offset_)}});
}

std::string GgufParser::At() const { return " at byte " + NumberText(field_offset_); }

std::string GgufParser::Place() const {
  if (field_ <= Field::kKeyValueCount) return " in the preamble";
  if (field_ <= Field::kKey)
    return " in key " + NumberText(n_seen_ + 1) + " of " + NumberText(n_key_values_);
  if (field_ <= Field::kElement) return " in key " + Quoted(key_);
  if (field_ <= Field::kName)
    return " in tensor " + NumberText(n_seen_ + 1) + " of " + NumberText(n_tensors_);
  if (field_ <= Field::kTensorOffset) return " in tensor " + Quoted(tensor_.name);
  return " in the padding before the tensor data";
}

void GgufParser::ThrowIncomplete() const {
  const std::string head = text_ + std::string(reinterpret_cast<const char*>(carry_), n_carry_);
  const bool may_be_gguf = !head.empty() && std::string_view("GGUF").starts_with(head);
  if (field_ == Field::kForeign || (field_ == Field::kMagic && !may_be_gguf)) {
    ThrowBadModel("this is not a GGUF file but " + DescribeForeignFile(head), {{"offset", "0"}});
  }
  ThrowBadModel("the file ends at byte " + NumberText(offset_) + ", inside the header" + Place() +
                    ": the download is incomplete, fetch it again",
                {{"offset", NumberText(offset_)}});
}

// Preamble.

bool GgufParser::StepPreamble(GgufHeader& header) {
  switch (field_) {
    case Field::kMagic:
      return ReadMagic();
    case Field::kForeign:
      if (!TakeBytes(text_)) return false;
      ThrowIncomplete();
    case Field::kVersion:
      return ReadVersion(header);
    case Field::kTensorCount:
      if (!TakeNumber(n_tensors_)) return false;
      if (n_tensors_ > kMaxTensors) {
        ThrowBadModel("the file claims " + NumberText(n_tensors_) + " tensors" + At() +
                          ", at most " + NumberText(kMaxTensors) + " are accepted" + kFetchAgain,
                      {{"offset", NumberText(field_offset_)}});
      }
      field_ = Field::kKeyValueCount;
      return true;
    default:  // kKeyValueCount
      if (!TakeNumber(n_key_values_)) return false;
      if (n_key_values_ > kMaxKeyValues) {
        ThrowBadModel("the file claims " + NumberText(n_key_values_) + " keys" + At() +
                          ", at most " + NumberText(kMaxKeyValues) + " are accepted" + kFetchAgain,
                      {{"offset", NumberText(field_offset_)}});
      }
      NextKeyValue(header);
      return true;
  }
}

bool GgufParser::ReadMagic() {
  const uint8_t* p = Take(4);
  if (p == nullptr) return false;
  const std::string_view magic(reinterpret_cast<const char*>(p), 4);
  if (magic == "GGUF") {
    field_ = Field::kVersion;
    return true;
  }
  text_ = magic;
  n_missing_ = kSniffBytes - 4;
  field_ = Field::kForeign;
  return true;
}

bool GgufParser::ReadVersion(GgufHeader& header) {
  if (!TakeNumber(header.version)) return false;
  const uint32_t version = header.version;
  const Error::Details details = {{"version", NumberText(version)},
                                  {"offset", NumberText(field_offset_)}};
  if (version != 0 && (version & 0xFFFFu) == 0) {
    // A small number whose bytes are in the other order.
    ThrowUnsupported(
        "this GGUF file is big-endian; Headlight reads little-endian files: convert the model "
        "again without"
        " the big-endian option",
        details);
  }
  if (version == 0)
    ThrowBadModel("GGUF version 0 does not exist (byte 4)" + std::string(kFetchAgain), details);
  if (version < kGgufMinVersion || version > kGgufMaxVersion) {
    ThrowUnsupported("this file is GGUF version " + NumberText(version) + " (byte 4); versions " +
                         NumberText(kGgufMinVersion) + " and " + NumberText(kGgufMaxVersion) +
                         " are supported: convert the model again",
                     details);
  }
  field_ = Field::kTensorCount;
  return true;
}

// Key-values.

bool GgufParser::StepKeyValue(GgufHeader& header) {
  switch (field_) {
    case Field::kKeyLength:
      return ReadKeyLength();
    case Field::kKey:
      return TakeBytes(key_) && ReadKey(header);
    case Field::kValueType:
      return ReadValueType();
    case Field::kNumber:
      return StepNumber(header);
    case Field::kStringLength:
      if (!TakeNumber(n_missing_)) return false;
      if (n_missing_ > kMaxStringBytes) {
        ThrowBadModel("a string of " + NumberText(n_missing_) + " bytes" + Place() + At() +
                          ", at most " + NumberText(kMaxStringBytes) + " are accepted" +
                          kFetchAgain,
                      {{"key", key_}, {"offset", NumberText(field_offset_)}});
      }
      CheckHeaderRoom(n_missing_);
      text_.clear();
      field_ = Field::kString;
      return true;
    case Field::kString:
      if (!TakeBytes(text_)) return false;
      StoreValue(header, std::move(text_));
      return true;
    default:
      return StepArray(header);
  }
}

bool GgufParser::ReadKeyLength() {
  if (!TakeNumber(n_missing_)) return false;
  if (n_missing_ == 0 || n_missing_ > kMaxKeyBytes) {
    ThrowBadModel("a key of " + NumberText(n_missing_) + " bytes" + Place() + At() +
                      ", expected 1 to " + NumberText(kMaxKeyBytes) + kFetchAgain,
                  {{"offset", NumberText(field_offset_)}});
  }
  CheckHeaderRoom(n_missing_);
  key_.clear();
  field_ = Field::kKey;
  return true;
}

bool GgufParser::ReadKey(const GgufHeader& header) {
  if (header.values.contains(key_)) {
    ThrowBadModel("key " + Quoted(key_) + " occurs twice, the second time before byte " +
                      NumberText(offset_) + "; convert the model again",
                  {{"key", key_}, {"offset", NumberText(offset_)}});
  }
  field_ = Field::kValueType;
  return true;
}

bool GgufParser::ReadValueType() {
  uint32_t type = 0;
  if (!TakeNumber(type)) return false;
  if (type > static_cast<uint32_t>(GgufType::kF64)) {
    ThrowBadModel("unknown value type " + NumberText(type) + Place() + At() + kFetchAgain,
                  {{"key", key_}, {"offset", NumberText(field_offset_)}});
  }
  type_ = static_cast<GgufType>(type);
  if (type_ == GgufType::kString) {
    field_ = Field::kStringLength;
  } else {
    field_ = type_ == GgufType::kArray ? Field::kArrayType : Field::kNumber;
  }
  return true;
}

bool GgufParser::StepNumber(GgufHeader& header) {
  const uint8_t* p = Take(GgufTypeBytes(type_));
  if (p == nullptr) return false;
  switch (type_) {
    case GgufType::kU8:
      StoreValue(header, uint64_t{*p});
      return true;
    case GgufType::kU16:
      StoreValue(header, uint64_t{LoadLittleEndian<uint16_t>(p)});
      return true;
    case GgufType::kU32:
      StoreValue(header, uint64_t{LoadLittleEndian<uint32_t>(p)});
      return true;
    case GgufType::kU64:
      StoreValue(header, LoadLittleEndian<uint64_t>(p));
      return true;
    case GgufType::kI8:
      StoreValue(header, int64_t{LoadLittleEndian<int8_t>(p)});
      return true;
    case GgufType::kI16:
      StoreValue(header, int64_t{LoadLittleEndian<int16_t>(p)});
      return true;
    case GgufType::kI32:
      StoreValue(header, int64_t{LoadLittleEndian<int32_t>(p)});
      return true;
    case GgufType::kI64:
      StoreValue(header, LoadLittleEndian<int64_t>(p));
      return true;
    case GgufType::kF32:
      StoreValue(header, double{LoadLittleEndian<float>(p)});
      return true;
    case GgufType::kF64:
      StoreValue(header, LoadLittleEndian<double>(p));
      return true;
    default:  // kBool; strings and arrays have fields of their own
      if (*p > 1) {
        ThrowBadModel("a bool of value " + NumberText(*p) + Place() + At() + kFetchAgain,
                      {{"key", key_}, {"offset", NumberText(field_offset_)}});
      }
      StoreValue(header, *p == 1);
      return true;
  }
}

void GgufParser::StoreValue(GgufHeader& header, GgufValue value) {
  header.values.emplace(std::move(key_), std::move(value));
  ++n_seen_;
  NextKeyValue(header);
}

}  // namespace headlight
