#include "lab/lab_error.h"

#include <string>

#include "base/error.h"

namespace headlight {

void ThrowOption(const char* option, size_t value, const char* rule, size_t number) {
  std::string range = rule;
  if (number != kNoNumber) range += " " + std::to_string(number);
  const std::string given = std::to_string(value);
  throw Error(ErrorCode::kBadOption, std::string(option) + " is " + given + ", it must be " + range,
              {{"option", option}, {"value", given}, {"range", range}});
}

void CheckLabTokens(const ModelSpec& spec, std::span<const uint32_t> tokens, size_t min,
                    size_t max) {
  if (tokens.size() < min) ThrowOption("tokens.length", tokens.size(), "at least", min);
  if (tokens.size() > max) ThrowOption("tokens.length", tokens.size(), "at most", max);
  for (const uint32_t id : tokens) {
    if (id >= spec.vocab_size) ThrowOption("tokens", id, "below", spec.vocab_size);
  }
}

void CheckLayer(const ModelSpec& spec, size_t layer) {
  if (layer >= spec.layers.size()) ThrowOption("layer", layer, "below", spec.layers.size());
}

}  // namespace headlight
