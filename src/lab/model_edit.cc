#include "lab/model_edit.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "lab/lab_error.h"
#include "lab/layer_edit.h"
#include "lab/weights.h"

namespace headlight {
namespace {

void CheckAtMost(const char* option, size_t value, size_t max) {
  if (value > max) ThrowOption(option, value, "at most", max);
}

void CheckHead(const ModelSpec& spec, const HeadId& id) {
  CheckLayer(spec, id.layer);
  const size_t n = spec.layers[id.layer].heads.n_q_heads;
  if (id.head >= n) ThrowOption("head", id.head, "below", n);
}

// A pattern's weights must be from 0 to 1; NaN is not.
void CheckPattern(const FixedPattern& pattern) {
  const auto is_weight = [](float weight) { return weight >= 0.0f && weight <= 1.0f; };
  if (is_weight(pattern.first) &&
      std::all_of(pattern.by_offset.begin(), pattern.by_offset.end(), is_weight))
    return;
  ThrowOption("fixed", pattern.by_offset.size(), "a table of weights from 0 to 1");
}

// The pairs that a layer keeps, ascending. Throws if they are not d_qk / 2 different ones.
std::vector<uint32_t> KeptPairs(const ModelEdit& edit, size_t layer, size_t n_pairs) {
  const size_t n = edit.d_qk / 2;
  if (edit.kept_pairs.size() < (layer + 1) * n)
    ThrowOption("kept_pairs.length", edit.kept_pairs.size(), "at least", (layer + 1) * n);
  const uint32_t* first = edit.kept_pairs.data() + layer * n;
  std::vector<uint32_t> pairs(first, first + n);
  std::sort(pairs.begin(), pairs.end());
  const bool repeats = std::adjacent_find(pairs.begin(), pairs.end()) != pairs.end();
  if (repeats || pairs.empty() || pairs.back() >= n_pairs)
    ThrowOption("kept_pairs", pairs.empty() ? 0 : pairs.back(), "different pairs below", n_pairs);
  return pairs;
}

void CutQk(const ModelEdit& edit, size_t index, size_t n_ctx, LayerCopy& layer) {
  const size_t d_qk = layer.spec.heads.d_qk;
  CheckAtMost("d_qk", edit.d_qk, d_qk);
  if (layer.spec.rope.style == RopeStyle::kNone) {
    CutQkProduct(edit.d_qk, layer);
    return;
  }
  if (edit.d_qk % 2 != 0 || d_qk % 2 != 0)
    ThrowOption("d_qk", edit.d_qk, "even: rotary dimensions come in pairs");
  CutRotaryPairs(KeptPairs(edit, index, d_qk / 2), n_ctx, layer);
}

void PoolKv(const ModelEdit& edit, LayerCopy& layer) {
  const size_t n = layer.spec.heads.n_kv_heads;
  if (edit.n_kv_heads > n || n % edit.n_kv_heads != 0)
    ThrowOption("n_kv_heads", edit.n_kv_heads, "a divisor of the model's", n);
  PoolKvHeads(edit.n_kv_heads, layer);
}

// What becomes of the heads of a layer; empty if nothing does.
std::vector<HeadFate> FatesOf(const ModelEdit& edit, size_t layer, size_t n_heads) {
  std::vector<HeadFate> fates(n_heads);
  for (const HeadFix& fix : edit.fixed) {
    if (fix.id.layer == layer) fates[fix.id.head] = {HeadFate::kFixed, &fix.pattern};
  }
  for (const HeadId& id : edit.pruned) {
    if (id.layer == layer) fates[id.head] = {HeadFate::kPruned, nullptr};
  }
  const bool all_stay = std::all_of(fates.begin(), fates.end(), [](const HeadFate& fate) {
    return fate.kind == HeadFate::kStays;
  });
  return all_stay ? std::vector<HeadFate>() : fates;
}

// FNV-1a over what tells an edited model from others.
void Mix(uint64_t value, Model& model) {
  model.content_hash = (model.content_hash ^ value) * 0x100000001B3u;
}

// Packs a matrix again if it is not what it was.
void PutBack(const Weights& weights, PackedMatrix& slot, Model& model) {
  const Weights old = DecodeWeights(slot);
  if (old.n_rows == weights.n_rows && old.values == weights.values) return;
  const TensorType type = EncodedType(slot.shape, weights.n_cols);
  model.weights_bytes -= slot.shape.bytes;
  slot = PackWeights(weights, type, slot.shape.form, model);
  model.weights_bytes += slot.shape.bytes;
  for (size_t i = 0; i < slot.shape.bytes; ++i) Mix(slot.data[i], model);
}

// What a layer's heads have besides their four matrices.
bool HasMore(const LayerWeights& weights) {
  return weights.b_q != nullptr || weights.b_k != nullptr || weights.b_v != nullptr ||
         weights.q_norm.w != nullptr || weights.k_norm.w != nullptr || weights.sinks != nullptr ||
         weights.w_attention_gate.data != nullptr || weights.w_head_gate.data != nullptr;
}

void CheckServed(const LayerSpec& spec, const LayerWeights& weights, bool is_only_pruned) {
  const bool has_alibi = spec.alibi_max_bias != 0.0f;
  if (spec.latent.rank == 0 && (is_only_pruned || (!HasMore(weights) && !has_alibi))) return;
  throw Error(
      ErrorCode::kUnsupported,
      "this model's heads have biases, norms, sinks, gates, ALiBi or latents, with which only "
      "pruning and windows are served; choose one of these edits");
}

void EditLayer(const ModelEdit& edit, size_t index, Model& model) {
  LayerSpec& spec = model.spec.layers[index];
  LayerWeights& weights = model.layers[index];
  const bool applies = edit.layers.empty() || std::find(edit.layers.begin(), edit.layers.end(),
                                                        index) != edit.layers.end();
  if (applies && edit.window != 0) {
    spec.window = edit.window;
    spec.n_sinks = edit.n_sinks;
    Mix(edit.window, model);
    Mix(edit.n_sinks, model);
  }
  const std::vector<HeadFate> fates = FatesOf(edit, index, spec.heads.n_q_heads);
  const bool reshapes = applies && (edit.n_kv_heads != 0 || edit.d_qk != 0 || edit.d_v != 0);
  if (fates.empty() && !reshapes) return;
  const bool is_fixing = std::any_of(fates.begin(), fates.end(), [](const HeadFate& fate) {
    return fate.kind == HeadFate::kFixed;
  });
  CheckServed(spec, weights, !reshapes && !is_fixing);
  LayerCopy copy = {spec, DecodeWeights(weights.w_q), DecodeWeights(weights.w_k),
                    DecodeWeights(weights.w_v), DecodeWeights(weights.w_o)};
  if (applies && edit.n_kv_heads != 0) PoolKv(edit, copy);
  if (applies && edit.d_qk != 0) CutQk(edit, index, model.spec.n_ctx_train, copy);
  if (applies && edit.d_v != 0) {
    CheckAtMost("d_v", edit.d_v, spec.heads.d_v);
    CutVoProduct(edit.d_v, copy);
  }
  if (HasMore(weights) || spec.alibi_max_bias != 0.0f) {
    SilenceHeads(fates, copy);
  } else if (!fates.empty()) {
    RemoveHeads(fates, copy);
  }
  PutBack(copy.w_q, weights.w_q, model);
  PutBack(copy.w_k, weights.w_k, model);
  PutBack(copy.w_v, weights.w_v, model);
  PutBack(copy.w_o, weights.w_o, model);
  spec = std::move(copy.spec);
}

}  // namespace

std::shared_ptr<const Model> EditModel(std::shared_ptr<const Model> model, const ModelEdit& edit) {
  const ModelSpec& spec = model->spec;
  for (const HeadId& id : edit.pruned) CheckHead(spec, id);
  for (const HeadFix& fix : edit.fixed) {
    CheckHead(spec, fix.id);
    CheckPattern(fix.pattern);
  }
  for (const size_t layer : edit.layers) CheckLayer(spec, layer);
  auto edited = std::make_shared<Model>();
  edited->spec = spec;
  edited->embedding = model->embedding;
  edited->embedding_norm = model->embedding_norm;
  edited->positions = model->positions;
  edited->head = model->head;
  edited->head_bias = model->head_bias;
  edited->output_norm = model->output_norm;
  edited->layers = model->layers;
  edited->weights_bytes = model->weights_bytes;
  edited->content_hash = model->content_hash;
  edited->base = std::move(model);
  for (size_t i = 0; i < spec.layers.size(); ++i) EditLayer(edit, i, *edited);
  return edited;
}

}  // namespace headlight
