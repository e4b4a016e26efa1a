// What the keys of latent attention mean. Newer files give the widths of the absorbed computation
// in key_length and value_length and those of a head in *_mla; older ones only the latter, without
// the suffix.
#include <cmath>
#include <string>

#include "gguf/gguf_error.h"
#include "model/latent_products.h"
#include "model/model_keys.h"

namespace headlight {

LatentSpec BuildLatent(const ModelKeys& keys) {
  const bool is_new = keys.Has("attention.key_length_mla");
  const char* k_key = is_new ? "attention.key_length_mla" : "attention.key_length";
  const char* v_key = is_new ? "attention.value_length_mla" : "attention.value_length";
  LatentSpec latent;
  latent.rank = keys.Count("attention.kv_lora_rank", kMaxLatentRank);
  latent.q_rank = keys.CountOrNone("attention.q_lora_rank", kMaxModelWidth);
  latent.d_rope = keys.Count("rope.dimension_count", kMaxHeadWidth);
  const size_t d_qk = keys.Count(k_key, kMaxHeadWidth);
  latent.d_v = keys.Count(v_key, kMaxHeadWidth);
  if (d_qk <= latent.d_rope) {
    const std::string key = keys.Name(k_key);
    ThrowBadModel("key " + Quoted(key) + " is " + std::to_string(d_qk) +
                      ", expected more than the rotated " + std::to_string(latent.d_rope) +
                      "; convert the model again",
                  {{"key", key}});
  }
  latent.d_nope = d_qk - latent.d_rope;
  return latent;
}

double LatentScale(const ModelKeys& keys, const LatentSpec& latent) {
  const double plain = 1.0 / std::sqrt(static_cast<double>(latent.d_qk()));
  // mscale^2 with mscale = 1 + 0.1 mscale_all_dim ln(factor); files hold 0.1 mscale_all_dim.
  const double multiplier = keys.PositiveOrNone("rope.scaling.yarn_log_multiplier");
  const double factor = keys.Positive("rope.scaling.factor", 1.0);
  const double mscale = 1.0 + multiplier * std::log(factor);
  return plain * mscale * mscale;
}

}  // namespace headlight
