// The state machine behind GgufReader: one step a field, over chunks cut anywhere. No byte is
// looked at twice: a field that a chunk's end cuts waits in a small carry, strings and arrays grow
// as their bytes arrive.
#ifndef HEADLIGHT_GGUF_GGUF_PARSER_H_
#define HEADLIGHT_GGUF_GGUF_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "gguf/gguf_reader.h"
#include "gguf/little_endian.h"

namespace headlight {

// Bytes of a number type; 0 for kString and kArray and for numbers that are no type.
size_t GgufTypeBytes(GgufType type);

class GgufParser {
 public:
  // Takes bytes up to the end of the header and fills `header`; returns how many. After a throw it
  // must not be used.
  size_t Append(std::span<const uint8_t> bytes, GgufHeader& header);
  bool done() const { return field_ == Field::kDone; }
  // The stream ended here: throws what is wrong with it. Only while !done().
  [[noreturn]] void ThrowIncomplete() const;

 private:
  // What the next bytes are.
  enum class Field : uint8_t {
    kMagic,
    kForeign,
    kVersion,
    kTensorCount,
    kKeyValueCount,
    kKeyLength,
    kKey,
    kValueType,
    kNumber,
    kStringLength,
    kString,
    kArrayType,
    kArrayCount,
    kNumbers,
    kElementLength,
    kElement,
    kNameLength,
    kName,
    kDimCount,
    kDims,
    kTensorType,
    kTensorOffset,
    kPadding,
    kDone,
  };

  // Each takes one field and returns false when its bytes are not all there yet.
  bool Step(GgufHeader& header);
  bool StepPreamble(GgufHeader& header);
  bool StepKeyValue(GgufHeader& header);
  bool StepNumber(GgufHeader& header);
  bool StepArray(GgufHeader& header);
  bool StepStrings(GgufHeader& header);
  bool StepTensor(GgufHeader& header);

  bool ReadMagic();
  bool ReadVersion(GgufHeader& header);
  bool ReadKeyLength();
  bool ReadKey(const GgufHeader& header);
  bool ReadValueType();
  bool ReadArrayType();
  bool ReadArrayCount();
  bool ReadNameLength();
  bool ReadDims();
  bool ReadTensorType();
  bool ReadTensorOffset(GgufHeader& header);

  void StoreValue(GgufHeader& header, GgufValue value);
  void NextKeyValue(GgufHeader& header);
  void NextTensor(GgufHeader& header);
  void FinishTensors(GgufHeader& header);

  // n bytes in a row (n <= sizeof carry_), or nullptr until they are there.
  const uint8_t* Take(size_t n);
  template <typename T>
  bool TakeNumber(T& value) {
    const uint8_t* p = Take(sizeof(T));
    if (p != nullptr) value = LoadLittleEndian<T>(p);
    return p != nullptr;
  }
  // Appends to dst until n_missing_ is 0; true then.
  bool TakeBytes(std::string& dst);
  // Throws unless `n` further bytes fit within the header's limit.
  void CheckHeaderRoom(uint64_t n) const;
  // " at byte N": where the field being read starts.
  std::string At() const;
  std::string Place() const;  // the key or tensor being read, in words

  std::span<const uint8_t> in_;
  uint64_t offset_ = 0;        // file bytes taken
  uint64_t field_offset_ = 0;  // where the last field that Take returned starts
  uint64_t n_missing_ = 0;     // bytes of the current string, number array or padding still to come
  size_t n_carry_ = 0;
  Field field_ = Field::kMagic;
  uint8_t carry_[32] = {};  // kMaxDims * 8 is the widest field

  uint64_t n_tensors_ = 0;
  uint64_t n_key_values_ = 0;
  uint64_t n_seen_ = 0;      // key-values, then tensors complete
  uint64_t n_elements_ = 0;  // array elements to come
  GgufType type_ = GgufType::kU8;
  std::string
      text_;  // key-value stage: the string being read; before: what a foreign file begins with
  std::string key_;
  GgufStringArray strings_;
  GgufNumberArray numbers_;
  GgufTensor tensor_;
};

}  // namespace headlight

#endif  // HEADLIGHT_GGUF_GGUF_PARSER_H_
