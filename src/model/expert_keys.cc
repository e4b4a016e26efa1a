// What the expert_* keys mean.
#include <string>

#include "gguf/gguf_error.h"
#include "model/model_keys.h"

namespace headlight {
namespace {

// Numbers of the format; 0 where old files have none.
ExpertGating GatingOf(const ModelKeys& keys, const ArchRow& arch) {
  constexpr uint64_t kSoftmax = 1, kSigmoid = 2, kChosenSoftmax = 3;
  const std::string key = keys.Name("expert_gating_func");
  const uint64_t number = keys.header().GetUint(key, 0);
  switch (number) {
    case 0:
      return arch.gating;
    case kSoftmax:
      return ExpertGating::kSoftmax;
    case kSigmoid:
      return ExpertGating::kSigmoid;
    case kChosenSoftmax:
      return ExpertGating::kChosenSoftmax;
    default:
      break;
  }
  ThrowUnsupported("key " + Quoted(key) + " is " + std::to_string(number) +
                       ", Headlight knows 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen);"
                       " use another model",
                   {{"key", key}});
}

}  // namespace

ExpertsSpec BuildExperts(const ModelKeys& keys, const ArchRow& arch, size_t d_ff) {
  ExpertsSpec experts;
  if (arch.experts.always.empty()) return experts;
  experts.n = keys.CountOrNone("expert_count", kMaxExperts);
  if (experts.n == 0) return experts;
  experts.n_used = keys.Count("expert_used_count", experts.n);
  experts.d_ff = keys.Count("expert_feed_forward_length", kMaxFeedForward, d_ff);
  if (arch.experts.Has(TensorRole::kSharedUp)) {
    const size_t n_shared = keys.Count("expert_shared_count", kMaxExperts, 1);
    experts.d_ff_shared = keys.Count("expert_shared_feed_forward_length", kMaxFeedForward,
                                     uint64_t{n_shared} * experts.d_ff);
  }
  experts.gating = GatingOf(keys, arch);
  experts.sums_to_one = keys.Flag("expert_weights_norm", arch.experts_sum_to_one);
  experts.scale = static_cast<float>(keys.Positive("expert_weights_scale", 1.0));
  return experts;
}

}  // namespace headlight
