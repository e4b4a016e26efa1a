// A mixture of experts: each token's router chooses some, each expert runs over the tokens that
// chose it, and a token gets its experts' sum, always in the order of the experts, so that a prompt
// and single steps give the same bits.
#include <algorithm>
#include <cmath>

#include "kernels/vector_ops.h"
#include "model/decoder.h"

namespace headlight {
namespace {

// As many engines do: a sum of sigmoids may be no number to divide by.
constexpr float kSmallestSum = 6.103515625e-5f;

// logits [n] -> their share of a softmax.
void Softmax(float* logits, size_t n) noexcept {
  const float max = *std::max_element(logits, logits + n);
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) {
    logits[i] = std::exp(logits[i] - max);
    sum += static_cast<double>(logits[i]);
  }
  for (size_t i = 0; i < n; ++i) logits[i] = static_cast<float>(logits[i] / sum);
}

void Sigmoid(float* logits, size_t n) noexcept {
  for (size_t i = 0; i < n; ++i) logits[i] = 1.0f / (1.0f + std::exp(-logits[i]));
}

}  // namespace

std::span<Decoder::ChosenExpert> Decoder::ChosenBy(size_t layer, size_t row) noexcept {
  return {chosen_.data() + row * plan_.n_experts_used, model_.spec.layers[layer].experts.n_used};
}

// The best experts of a row by its router's logits, and their weights; ordered by expert.
void Decoder::ChooseExperts(size_t layer, size_t row) noexcept {
  const ExpertsSpec& spec = model_.spec.layers[layer].experts;
  const LayerWeights& weights = model_.layers[layer];
  float* scores = router_.at(row);
  if (weights.b_router != nullptr) AddTo(scores, weights.b_router, spec.n);
  if (spec.gating == ExpertGating::kSoftmax) Softmax(scores, spec.n);
  if (spec.gating == ExpertGating::kSigmoid) Sigmoid(scores, spec.n);
  const float* bias = weights.b_router_choice;
  const auto rank = [&](size_t i) { return bias == nullptr ? scores[i] : scores[i] + bias[i]; };
  const std::span<ChosenExpert> chosen = ChosenBy(layer, row);
  size_t n_chosen = 0;
  // Insertion, best first; of equals the first stays ahead.
  for (size_t i = 0; i < spec.n; ++i) {
    size_t at = n_chosen;
    while (at > 0 && rank(i) > rank(chosen[at - 1].expert)) --at;
    if (at == spec.n_used) continue;
    n_chosen = std::min(n_chosen + 1, spec.n_used);
    for (size_t j = n_chosen - 1; j > at; --j) chosen[j] = chosen[j - 1];
    chosen[at] = {static_cast<uint32_t>(i), 0.0f};
  }
  std::sort(chosen.begin(), chosen.end(),
            [](const ChosenExpert& a, const ChosenExpert& b) { return a.expert < b.expert; });
  float sum = 0.0f;
  if (spec.gating == ExpertGating::kChosenSoftmax) {
    float max = scores[chosen[0].expert];
    for (const ChosenExpert& choice : chosen) max = std::max(max, scores[choice.expert]);
    for (ChosenExpert& choice : chosen) {
      sum += choice.weight = std::exp(scores[choice.expert] - max);
    }
  } else {
    for (ChosenExpert& choice : chosen) sum += choice.weight = scores[choice.expert];
  }
  const bool divides = spec.sums_to_one || spec.gating == ExpertGating::kChosenSoftmax;
  const float factor = divides ? spec.scale / std::max(sum, kSmallestSum) : spec.scale;
  for (ChosenExpert& choice : chosen) choice.weight *= factor;
}

// The router of all rows, then the experts one by one, then the one that all share.
bool Decoder::Experts(size_t layer, size_t first_row, uint32_t expert) noexcept {
  const size_t d_model = model_.spec.d_model;
  const Rows input = FeedForwardInput(layer);
  if (expert == 0) {
    Multiply(model_.layers[layer].w_router, input, d_model, router_, first_row);
    ForRows(first_row, [&](size_t row) {
      ChooseExperts(layer, row);
      std::fill_n(expert_sum_.at(row), d_model, 0.0f);
    });
  }
  const bool is_chosen = RunExpert(layer, expert, input, first_row);
  if (expert + 1 < model_.spec.layers[layer].experts.n) return is_chosen;
  if (model_.layers[layer].w_shared_up.data != nullptr) RunSharedExpert(layer, input, first_row);
  ForRows(first_row, [&](size_t row) { std::copy_n(expert_sum_.at(row), d_model, h_.at(row)); });
  return is_chosen;
}

bool Decoder::RunExpert(size_t layer, uint32_t expert, Rows input, size_t first_row) noexcept {
  const LayerSpec& spec = model_.spec.layers[layer];
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  size_t n_rows = 0;
  for (size_t row = first_row; row < n_tokens_; ++row) {
    for (const ChosenExpert& choice : ChosenBy(layer, row)) {
      if (choice.expert == expert) rows_of_expert_[n_rows++] = {row, choice.weight};
    }
  }
  if (n_rows == 0) return false;
  ForRows(0, n_rows, [&](size_t i) {
    std::copy_n(input.at(rows_of_expert_[i].row), d_model, expert_in_.at(i));
  });
  // The vector of this expert in [n, width].
  const auto bias = [&](const float* b, size_t width) {
    return b == nullptr ? nullptr : b + expert * width;
  };
  const FeedForwardWeights matrices = {
      weights.w_expert_gate.at(expert), weights.w_expert_up.at(expert),
      weights.w_expert_down.at(expert), bias(weights.b_expert_gate, spec.experts.d_ff),
      bias(weights.b_expert_up, spec.experts.d_ff)};
  RunFeedForward(matrices, spec.activation, expert_in_, {0, n_rows}, expert_out_);
  const float* b_down = bias(weights.b_expert_down, d_model);
  ForRows(0, n_rows, [&](size_t i) {
    float* out = expert_out_.at(i);
    if (b_down != nullptr) AddTo(out, b_down, d_model);
    Scale(out, rows_of_expert_[i].weight, d_model);
    AddTo(expert_sum_.at(rows_of_expert_[i].row), out, d_model);
  });
  return true;
}

// The one that every token uses.
void Decoder::RunSharedExpert(size_t layer, Rows input, size_t first_row) noexcept {
  const LayerWeights& weights = model_.layers[layer];
  const size_t d_model = model_.spec.d_model;
  const bool is_gated = weights.w_shared_router.data != nullptr;
  if (is_gated) Multiply(weights.w_shared_router, input, d_model, router_, first_row);
  const FeedForwardWeights matrices = {weights.w_shared_gate, weights.w_shared_up,
                                       weights.w_shared_down, nullptr, nullptr};
  RunFeedForward(matrices, model_.spec.layers[layer].activation, input, {first_row, n_tokens_},
                 expert_out_);
  ForRows(first_row, [&](size_t row) {
    float* out = expert_out_.at(row);
    if (is_gated) {
      Sigmoid(router_.at(row), 1);
      Scale(out, router_.at(row)[0], d_model);
    }
    AddTo(expert_sum_.at(row), out, d_model);
  });
}

}  // namespace headlight
