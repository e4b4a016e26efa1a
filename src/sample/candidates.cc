#include "sample/candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sample/logit_scan.h"

namespace headlight {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();

bool IsBetter(const Candidate& a, const Candidate& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

bool IsWorse(const Candidate& a, const Candidate& b) { return IsBetter(b, a); }

double TotalWeight(std::span<const Candidate> candidates) {
  double total = 0.0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  return total;
}

}  // namespace

void TakeTopK(std::span<const float> logits, size_t k, std::vector<Candidate>& candidates) {
  candidates.clear();
  if (k == 0 || k >= logits.size()) {
    for (uint32_t id = 0; id < logits.size(); ++id) {
      if (logits[id] > kBanned) candidates.push_back({0.0, logits[id], id});
    }
    if (k != 0) std::sort(candidates.begin(), candidates.end(), IsBetter);
    return;
  }
  // A heap whose front is the worst kept candidate. Ids come in ascending order, so a later equal
  // logit never displaces an earlier one and a comparison of logits is enough.
  float threshold = kBanned;
  const size_t n = logits.size();
  for (size_t i = FindAbove(logits.data(), 0, n, threshold); i < n;
       i = FindAbove(logits.data(), i + 1, n, threshold)) {
    if (candidates.size() == k) {
      std::pop_heap(candidates.begin(), candidates.end(), IsBetter);
      candidates.pop_back();
    }
    candidates.push_back({0.0, logits[i], static_cast<uint32_t>(i)});
    std::push_heap(candidates.begin(), candidates.end(), IsBetter);
    if (candidates.size() == k) threshold = candidates.front().logit;
  }
  std::sort_heap(candidates.begin(), candidates.end(), IsBetter);
}

void WeighCandidates(float max_logit, double temperature, std::vector<Candidate>& candidates) {
  for (Candidate& candidate : candidates) {
    const double distance = static_cast<double>(candidate.logit) - static_cast<double>(max_logit);
    candidate.weight = std::exp(distance / temperature);
  }
}

void KeepTopP(double top_p, bool sorted, std::vector<Candidate>& candidates) {
  const double wanted = top_p * TotalWeight(candidates);
  double sum = 0.0;
  if (sorted) {
    size_t n_kept = 0;
    while (n_kept < candidates.size() && (n_kept == 0 || sum < wanted)) {
      sum += candidates[n_kept++].weight;
    }
    candidates.resize(n_kept);
    return;
  }
  // A nucleus is usually far smaller than the vocabulary: popping it off a heap is cheaper than a
  // sort of everything.
  std::make_heap(candidates.begin(), candidates.end(), IsWorse);
  auto heap_end = candidates.end();
  while (heap_end != candidates.begin() && (heap_end == candidates.end() || sum < wanted)) {
    std::pop_heap(candidates.begin(), heap_end, IsWorse);
    --heap_end;
    sum += heap_end->weight;
  }
  candidates.erase(candidates.begin(), heap_end);
  std::reverse(candidates.begin(), candidates.end());
}

void KeepMinP(double min_p, std::vector<Candidate>& candidates) {
  std::erase_if(candidates, [&](const Candidate& candidate) { return candidate.weight < min_p; });
}

uint32_t DrawCandidate(std::span<const Candidate> candidates, double uniform) noexcept {
  const double target = uniform * TotalWeight(candidates);
  double sum = 0.0;
  uint32_t last = candidates.front().id;
  for (const Candidate& candidate : candidates) {
    if (candidate.weight == 0.0) continue;  // underflowed: never drawn
    sum += candidate.weight;
    last = candidate.id;
    if (sum > target) break;  // the last one with weight is left when rounding hides the total
  }
  return last;
}

}  // namespace headlight
