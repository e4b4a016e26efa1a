// What the rope.* keys mean.
#include <string>

#include "gguf/gguf_error.h"
#include "model/model_keys.h"
#include "position/yarn.h"

namespace headlight {
namespace {

constexpr double kDefaultFreqBase = 10000.0;  // arXiv 2104.09864, and the format's documentation

size_t RotatedWidth(const ModelKeys& keys, size_t d_rotated) {
  const size_t n_rot = keys.Count("rope.dimension_count", kMaxHeadWidth, d_rotated);
  if (n_rot % 2 == 0 && n_rot <= d_rotated) return n_rot;
  const std::string key = keys.Name("rope.dimension_count");
  ThrowBadModel("key " + Quoted(key) + " is " + std::to_string(n_rot) +
                    ", expected an even number up to the key width of " +
                    std::to_string(d_rotated) + "; convert the model again",
                {{"key", key}});
}

// The factor by which the context grew; older files have it in rope.scale_linear.
double ScalingFactor(const ModelKeys& keys) {
  const char* key = keys.Has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  return keys.Positive(key, 1.0);
}

void ReadYarn(const ModelKeys& keys, double factor, RopeSpec& rope) {
  rope.scaling = RopeScaling::kYarn;
  rope.linear_scale = factor;
  rope.yarn.extrapolation = keys.Positive("rope.scaling.yarn_ext_factor", 1.0);
  rope.yarn.beta_fast = keys.Positive("rope.scaling.yarn_beta_fast", 32.0);
  rope.yarn.beta_slow = keys.Positive("rope.scaling.yarn_beta_slow", 1.0);
  // A model that scales its scores instead (mscale_all_dim, which files hold times 0.1) divides by
  // that again.
  const double log_multiplier = keys.PositiveOrNone("rope.scaling.yarn_log_multiplier");
  if (log_multiplier == 0.0) rope.magnitude = YarnMagnitude(factor, 1.0);
}

}  // namespace

RopeSpec BuildRope(const ModelKeys& keys, const ArchRow& arch, size_t d_rotated, size_t n_ctx) {
  RopeSpec rope;
  rope.style = arch.rope_style;
  if (rope.style == RopeStyle::kNone) return rope;
  rope.n_rot = RotatedWidth(keys, d_rotated);
  rope.freq_base = keys.Positive("rope.freq_base", kDefaultFreqBase);
  rope.n_ctx_original = keys.Count("rope.scaling.original_context_length", kMaxContext, n_ctx);
  const double factor = ScalingFactor(keys);
  const std::string type_key = keys.Name("rope.scaling.type");
  const std::string type =
      keys.header().Has(type_key) ? keys.header().GetString(type_key) : "linear";
  if (type == "linear") {
    rope.linear_scale = factor;
  } else if (type == "yarn") {
    ReadYarn(keys, factor, rope);
  } else if (type == "ntk" || type == "dynamic") {
    rope.scaling = type == "ntk" ? RopeScaling::kNtk : RopeScaling::kDynamicNtk;
    rope.factor = factor;
  } else if (type != "none" && type != "longrope") {
    ThrowUnsupported("key " + Quoted(type_key) + " asks for rotary scaling " + Quoted(type) +
                         ", Headlight runs none, linear, ntk, dynamic, yarn and longrope; use"
                         " another model",
                     {{"key", type_key}, {"mechanism", "rotary scaling"}});
  }
  rope.magnitude *= keys.Positive("rope.scaling.attn_factor", 1.0);
  return rope;
}

}  // namespace headlight
