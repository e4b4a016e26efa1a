#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/sort.h"
#include "sample/logit_scan.h"

namespace headlight {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMaxPenalty = 2.0f;  // of frequency and presence, as the common chat APIs allow

[[noreturn]] void ThrowBadOption(const std::string& name, const std::string& value,
                                 const std::string& range) {
  throw Error(ErrorCode::kBadOption, name + " is " + value + ", it must be " + range,
              {{"option", name}, {"value", value}, {"range", range}});
}

// NaN fails every comparison, so `ok` is written as what must hold.
void Check(bool ok, const char* name, float value, const char* range) {
  if (!ok) ThrowBadOption(name, std::to_string(value), range);
}

void CheckBias(const std::vector<std::pair<uint32_t, float>>& bias, size_t vocab_size) {
  std::vector<uint32_t> banned;
  for (size_t i = 0; i < bias.size(); ++i) {
    const auto& [id, value] = bias[i];
    const std::string name = "logit_bias[" + std::to_string(i) + "]";
    if (id >= vocab_size) {
      ThrowBadOption(name + " id", std::to_string(id),
                     "below vocab_size " + std::to_string(vocab_size));
    }
    if (!(value < kInfinity))
      ThrowBadOption(name, std::to_string(value), "finite, or -inf to ban the token");
    if (value == -kInfinity) banned.push_back(id);
  }
  HeapSort(banned, std::less<>());
  const auto n_banned = std::unique(banned.begin(), banned.end()) - banned.begin();
  if (static_cast<size_t>(n_banned) == vocab_size) {
    ThrowBadOption("logit_bias", "a ban on every token", "such that one token is left");
  }
}

void CheckOptions(const SamplerOptions& o, size_t vocab_size) {
  if (vocab_size == 0) ThrowBadOption("vocab_size", "0", "at least 1");
  Check(o.temperature >= 0.0f && o.temperature < kInfinity, "temperature", o.temperature,
        "finite and >= 0");
  Check(o.top_p > 0.0f && o.top_p <= 1.0f, "top_p", o.top_p, "in (0, 1]");
  Check(o.min_p >= 0.0f && o.min_p < 1.0f, "min_p", o.min_p, "in [0, 1)");
  Check(o.repetition_penalty > 0.0f && o.repetition_penalty < kInfinity, "repetition_penalty",
        o.repetition_penalty, "finite and > 0");
  Check(std::abs(o.frequency_penalty) <= kMaxPenalty, "frequency_penalty", o.frequency_penalty,
        "in [-2, 2]");
  Check(std::abs(o.presence_penalty) <= kMaxPenalty, "presence_penalty", o.presence_penalty,
        "in [-2, 2]");
  if (o.n_logprobs > kMaxLogprobs) {
    ThrowBadOption("n_logprobs", std::to_string(o.n_logprobs),
                   "at most " + std::to_string(kMaxLogprobs));
  }
  CheckBias(o.logit_bias, vocab_size);
}

}  // namespace

Sampler::Sampler(SamplerOptions options, size_t vocab_size)
    : options_(std::move(options)), vocab_size_(vocab_size), random_(options_.seed) {
  CheckOptions(options_, vocab_size_);
  if (has_penalties()) counts_.resize(vocab_size_);
}

bool Sampler::has_penalties() const {
  return options_.repetition_penalty != 1.0f || options_.frequency_penalty != 0.0f ||
         options_.presence_penalty != 0.0f;
}

SampledToken Sampler::Sample(std::span<float> logits, std::span<const uint32_t> history) {
  if (logits.size() != vocab_size_) {
    throw Error(ErrorCode::kInternal, "the sampler was given " + std::to_string(logits.size()) +
                                          " logits for a vocabulary of " +
                                          std::to_string(vocab_size_));
  }
  const LogitScan scan = ScanLogits(logits.data(), logits.size());
  if (!scan.usable) {
    throw Error(
        ErrorCode::kInternal,
        "the logits hold NaN or infinity, so the model's numbers overflowed; try f32 activations "
        "and an f32 cache");
  }
  const double log_total = LogSumExp(logits.data(), logits.size(), scan.max);
  const auto logprob = [&](float logit) {
    return static_cast<float>(static_cast<double>(logit) - log_total);
  };

  SampledToken token;
  if (options_.n_logprobs > 0) {
    TakeTopK(logits, std::min<size_t>(options_.n_logprobs, vocab_size_), candidates_);
    for (const Candidate& c : candidates_) token.top.push_back({c.id, logprob(c.logit)});
  }
  changed_.clear();
  AddBias(logits);
  if (has_penalties()) SubtractPenalties(logits, history);
  token.id = Choose(logits, changed_.empty() ? scan : ScanLogits(logits.data(), logits.size()));
  token.logprob = logprob(RawLogit(logits, token.id));
  return token;
}

void Sampler::SetLogit(std::span<float> logits, uint32_t id, float value) {
  changed_.emplace_back(id, logits[id]);
  // A huge bias or a tiny penalty may overflow: the largest float keeps the order and the
  // arithmetic finite.
  logits[id] = std::min(value, std::numeric_limits<float>::max());
}

float Sampler::RawLogit(std::span<const float> logits, uint32_t id) const {
  // The first entry of an id holds its logit before any change.
  for (const auto& [changed_id, raw] : changed_) {
    if (changed_id == id) return raw;
  }
  return logits[id];
}

void Sampler::AddBias(std::span<float> logits) {
  for (const auto& [id, bias] : options_.logit_bias) SetLogit(logits, id, logits[id] + bias);
}

void Sampler::SubtractPenalties(std::span<float> logits, std::span<const uint32_t> history) {
  const size_t n_window = options_.penalty_last_n == 0
                              ? history.size()
                              : std::min<size_t>(options_.penalty_last_n, history.size());
  const std::span<const uint32_t> window = history.last(n_window);
  for (const uint32_t id : window) {
    if (id < vocab_size_) ++counts_[id];
  }
  for (const uint32_t id : window) {
    if (id >= vocab_size_ || counts_[id] == 0) continue;
    const float count = static_cast<float>(counts_[id]);
    counts_[id] = 0;  // once per id, and the array is all zero again
    const float logit = logits[id];
    const float repeated =
        logit > 0.0f ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    SetLogit(logits, id,
             repeated - (count * options_.frequency_penalty + options_.presence_penalty));
  }
}

uint32_t Sampler::Choose(std::span<const float> logits, const LogitScan& scan) {
  if (!scan.usable) {
    throw Error(ErrorCode::kBadOption,
                "logit_bias and penalties leave no token to choose; allow at least one",
                {{"option", "logit_bias"}});
  }
  if (options_.temperature == 0.0f) {
    const auto best = std::find(logits.begin(), logits.end(), scan.max);
    return static_cast<uint32_t>(best - logits.begin());
  }
  const bool sorted = options_.top_k != 0;
  TakeTopK(logits, options_.top_k, candidates_);
  WeighCandidates(scan.max, static_cast<double>(options_.temperature), candidates_);
  if (options_.top_p < 1.0f) KeepTopP(static_cast<double>(options_.top_p), sorted, candidates_);
  if (options_.min_p > 0.0f) KeepMinP(static_cast<double>(options_.min_p), candidates_);
  return DrawCandidate(candidates_, random_.NextUniform());
}

}  // namespace headlight
