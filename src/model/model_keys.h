// The key-values of one architecture, read with their ranges checked. For model_spec_builder.cc and
// what belongs to it.
#ifndef HEADLIGHT_MODEL_MODEL_KEYS_H_
#define HEADLIGHT_MODEL_MODEL_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/gguf_reader.h"
#include "model/arch_table.h"

namespace headlight {

// Limits of a spec: several times the largest open model, so that products of two stay far below
// 2^53 and a damaged number is caught here and not as an allocation.
inline constexpr uint64_t kMaxLayers = 1024;           // 126 in the deepest
inline constexpr uint64_t kMaxModelWidth = 1u << 16;   // 16,384 in the widest
inline constexpr uint64_t kMaxFeedForward = 1u << 20;  // 53,248
inline constexpr uint64_t kMaxHeads = 1024;            // 128
inline constexpr uint64_t kMaxHeadWidth = 4096;        // 576
inline constexpr uint64_t kMaxVocab = 1u << 22;        // 262,144
inline constexpr uint64_t kMaxContext = 1u << 24;      // 10,485,760
inline constexpr uint64_t kMaxExperts = 4096;          // 512

class ModelKeys {
 public:
  // header must outlive this.
  ModelKeys(const GgufReader& header, std::string prefix)
      : header_(header), prefix_(std::move(prefix)) {}

  std::string Name(std::string_view suffix) const { return prefix_ + "." + std::string(suffix); }
  bool Has(std::string_view suffix) const { return header_.Has(Name(suffix)); }
  const GgufReader& header() const { return header_; }

  // 1 to max.
  size_t Count(std::string_view suffix, uint64_t max, std::optional<uint64_t> fallback = {}) const;
  // 0 to max, 0 where the key is missing.
  size_t CountOrNone(std::string_view suffix, uint64_t max) const;
  // The array of numbers of this key, which must have one a layer; null where it is something else.
  const GgufNumberArray* FindPerLayer(std::string_view suffix, size_t n_layers) const;
  // One number for all layers, or an array of one a layer; each 1 to max.
  std::vector<size_t> CountPerLayer(std::string_view suffix, uint64_t max, size_t n_layers) const;
  // Finite and > 0; 0 stands for "not given" in some writers and gives the default, if there is
  // one.
  double Positive(std::string_view suffix, std::optional<double> fallback = {}) const;
  // As Positive, and 0 where the key is missing or 0.
  double PositiveOrNone(std::string_view suffix) const;
  bool Flag(std::string_view suffix, bool fallback) const {
    return header_.GetBool(Name(suffix), fallback);
  }

 private:
  const GgufReader& header_;
  std::string prefix_;
};

// The rotation of every layer that is rotated; d_rotated: the widest that n_rot may be, and its
// default. n_ctx: the model's context. (rope_keys.cc)
RopeSpec BuildRope(const ModelKeys& keys, const ArchRow& arch, size_t d_rotated, size_t n_ctx);

// The experts of the layers that have some; n is 0 where the family or the file has none. d_ff: the
// width of other feed-forwards. (expert_keys.cc)
ExpertsSpec BuildExperts(const ModelKeys& keys, const ArchRow& arch, size_t d_ff);

// Which layers have a window and of how many keys; 0: none. (window_keys.cc)
std::vector<size_t> BuildWindows(const ModelKeys& keys, const ArchRow& arch, size_t n_layers);

// Latent attention of a family that has it. (latent_keys.cc)
LatentSpec BuildLatent(const ModelKeys& keys);
// What multiplies the scores of latent attention: 1 / sqrt(d_qk), and YaRN's temperature.
double LatentScale(const ModelKeys& keys, const LatentSpec& latent);

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_MODEL_KEYS_H_
