#include "model/model_keys.h"

#include <cmath>
#include <limits>
#include <variant>

#include "gguf/gguf_error.h"

namespace headlight {
namespace {

[[noreturn]] void ThrowRange(const std::string& key, const std::string& value, uint64_t min,
                             uint64_t max) {
  ThrowBadModel("key " + Quoted(key) + " is " + value + ", expected " + std::to_string(min) +
                    " to " + std::to_string(max) +
                    "; the file is damaged, fetch or convert it again",
                {{"key", key}, {"value", value}});
}

}  // namespace

size_t ModelKeys::Count(std::string_view suffix, uint64_t max,
                        std::optional<uint64_t> fallback) const {
  const std::string key = Name(suffix);
  const uint64_t value = header_.GetUint(key, fallback);
  if (value < 1 || value > max) ThrowRange(key, std::to_string(value), 1, max);
  return static_cast<size_t>(value);
}

size_t ModelKeys::CountOrNone(std::string_view suffix, uint64_t max) const {
  const std::string key = Name(suffix);
  const uint64_t value = header_.GetUint(key, 0);
  if (value > max) ThrowRange(key, std::to_string(value), 0, max);
  return static_cast<size_t>(value);
}

const GgufNumberArray* ModelKeys::FindPerLayer(std::string_view suffix, size_t n_layers) const {
  const std::string key = Name(suffix);
  const auto found = header_.values().find(key);
  if (found == header_.values().end()) return nullptr;
  const auto* array = std::get_if<GgufNumberArray>(&found->second);
  if (array == nullptr || array->count() == n_layers) return array;
  ThrowBadModel("key " + Quoted(key) + " has " + std::to_string(array->count()) + " values for " +
                    std::to_string(n_layers) + " layers; convert the model again",
                {{"key", key}});
}

std::vector<size_t> ModelKeys::CountPerLayer(std::string_view suffix, uint64_t max,
                                             size_t n_layers) const {
  const std::string key = Name(suffix);
  const GgufNumberArray* array = FindPerLayer(suffix, n_layers);
  if (array == nullptr) return std::vector<size_t>(n_layers, Count(suffix, max));
  std::vector<size_t> counts(n_layers);
  for (size_t i = 0; i < n_layers; ++i) {
    const double value = array->at(i);
    const bool is_count =
        value >= 1.0 && value <= static_cast<double>(max) && value == std::floor(value);
    if (!is_count) ThrowRange(key + "[" + std::to_string(i) + "]", std::to_string(value), 1, max);
    counts[i] = static_cast<size_t>(value);
  }
  return counts;
}

double ModelKeys::Positive(std::string_view suffix, std::optional<double> fallback) const {
  const std::string key = Name(suffix);
  const double value = header_.GetFloat(key, fallback);
  if (value == 0.0 && fallback) return *fallback;
  // What the kernels use must be a normal float. NaN compares false.
  if (value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max())
    return value;
  ThrowBadModel("key " + Quoted(key) + " is " + std::to_string(value) +
                    ", expected a finite number above 0; convert the model again",
                {{"key", key}});
}

double ModelKeys::PositiveOrNone(std::string_view suffix) const { return Positive(suffix, 0.0); }

}  // namespace headlight
