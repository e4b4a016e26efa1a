// The part of the state machine that reads arrays: vocabularies, which are most of a header.
#include <algorithm>
#include <utility>

#include "gguf/gguf_error.h"
#include "gguf/gguf_limits.h"
#include "gguf/gguf_parser.h"

namespace headlight {

bool GgufParser::StepArray(GgufHeader& header) {
  switch (field_) {
    case Field::kArrayType:
      return ReadArrayType();
    case Field::kArrayCount:
      return ReadArrayCount();
    case Field::kNumbers: {
      const size_t n = static_cast<size_t>(std::min<uint64_t>(n_missing_, in_.size()));
      numbers_.bytes.insert(numbers_.bytes.end(), in_.begin(),
                            in_.begin() + static_cast<ptrdiff_t>(n));
      in_ = in_.subspan(n);
      offset_ += n;
      n_missing_ -= n;
      if (n_missing_ > 0) return false;
      if (numbers_.type == GgufType::kBool &&
          std::any_of(numbers_.bytes.begin(), numbers_.bytes.end(),
                      [](uint8_t b) { return b > 1; })) {
        ThrowBadModel("an array of bools holds a value other than 0 and 1" + Place() + kFetchAgain,
                      {{"key", key_}});
      }
      StoreValue(header, std::exchange(numbers_, {}));
      return true;
    }
    default:
      return StepStrings(header);
  }
}

bool GgufParser::ReadArrayType() {
  uint32_t type = 0;
  if (!TakeNumber(type)) return false;
  const Error::Details details = {{"key", key_}, {"offset", NumberText(field_offset_)}};
  if (type > static_cast<uint32_t>(GgufType::kF64)) {
    ThrowBadModel("unknown element type " + NumberText(type) + Place() + At() + kFetchAgain,
                  details);
  }
  type_ = static_cast<GgufType>(type);
  if (type_ == GgufType::kArray) {
    // No documented key nests, and refusing it keeps hostile depth out of this machine.
    ThrowUnsupported("an array of arrays" + Place() + At() + "; remove the key from the file",
                     details);
  }
  field_ = Field::kArrayCount;
  return true;
}

bool GgufParser::ReadArrayCount() {
  if (!TakeNumber(n_elements_)) return false;
  if (n_elements_ > kMaxArrayCount) {
    ThrowBadModel("an array of " + NumberText(n_elements_) + " elements" + Place() + At() +
                      ", at most " + NumberText(kMaxArrayCount) + " are accepted" + kFetchAgain,
                  {{"key", key_}, {"offset", NumberText(field_offset_)}});
  }
  if (type_ == GgufType::kString) {
    CheckHeaderRoom(n_elements_ * sizeof(uint64_t));
    strings_ = {};
    field_ = Field::kElementLength;
    return true;
  }
  numbers_ = {};
  numbers_.type = type_;
  n_missing_ = n_elements_ * GgufTypeBytes(type_);
  CheckHeaderRoom(n_missing_);
  field_ = Field::kNumbers;
  return true;
}

// Vocabularies are most of a header: the loop stays here until the chunk or the array ends.
bool GgufParser::StepStrings(GgufHeader& header) {
  while (n_elements_ > 0) {
    if (field_ == Field::kElementLength) {
      if (!TakeNumber(n_missing_)) return false;
      if (n_missing_ > kMaxStringBytes) {
        ThrowBadModel("a string of " + NumberText(n_missing_) + " bytes in element " +
                          NumberText(strings_.count()) + Place() + At() + ", at most " +
                          NumberText(kMaxStringBytes) + " are accepted" + kFetchAgain,
                      {{"key", key_}, {"offset", NumberText(field_offset_)}});
      }
      CheckHeaderRoom(n_missing_);
      field_ = Field::kElement;
    }
    if (!TakeBytes(strings_.bytes)) return false;
    strings_.offsets.push_back(static_cast<uint32_t>(strings_.bytes.size()));  // < kMaxHeaderBytes
    field_ = Field::kElementLength;
    --n_elements_;
  }
  StoreValue(header, std::exchange(strings_, {}));
  return true;
}

}  // namespace headlight
