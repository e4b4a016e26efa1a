// The one way in which the lab refuses an argument.
#ifndef HEADLIGHT_LAB_LAB_ERROR_H_
#define HEADLIGHT_LAB_LAB_ERROR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "model/model_spec.h"

namespace headlight {

// "d_qk is 7, it must be even: rotary dimensions come in pairs". Throws Error(kBadOption) with
// details option, value, range. A number after `rule`, if given, ends the sentence.
inline constexpr size_t kNoNumber = static_cast<size_t>(-1);
[[noreturn]] void ThrowOption(const char* option, size_t value, const char* rule,
                              size_t number = kNoNumber);

// Throws unless there are min to max ids of the model's vocabulary.
void CheckLabTokens(const ModelSpec& spec, std::span<const uint32_t> tokens, size_t min,
                    size_t max);

// Throws for what the model does not have.
void CheckLayer(const ModelSpec& spec, size_t layer);

}  // namespace headlight

#endif  // HEADLIGHT_LAB_LAB_ERROR_H_
