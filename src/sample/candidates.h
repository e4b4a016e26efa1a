// Candidates: the few tokens that top-k, top-p and min-p leave over, with their weights. The
// filters keep a total order (higher logit first, then lower id), so the outcome never depends on a
// library's sort.
#ifndef HEADLIGHT_SAMPLE_CANDIDATES_H_
#define HEADLIGHT_SAMPLE_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headlight {

struct Candidate {
  double weight;  // exp((logit - max) / temperature); 0 until WeighCandidates
  float logit;
  uint32_t id;
};

// The k best of logits by (logit, then lowest id), best first; k == 0: all of them, in order of id.
// Banned tokens (-inf) are left out. One pass with a heap of k: about k * ln(n / k) of n logits
// enter it, so no sort of the vocabulary.
void TakeTopK(std::span<const float> logits, size_t k, std::vector<Candidate>& candidates);

// Sets the weights, in double; temperature > 0.
void WeighCandidates(float max_logit, double temperature, std::vector<Candidate>& candidates);

// Keeps the smallest set of best candidates whose share of the total weight reaches top_p (nucleus
// sampling, arXiv 1904.09751), best first. At least one stays.
void KeepTopP(double top_p, bool sorted, std::vector<Candidate>& candidates);

// Drops candidates of less than min_p times the weight of the best token, which is 1 (arXiv
// 2407.01082), keeping the order.
void KeepMinP(double min_p, std::vector<Candidate>& candidates);

// The id where the running sum of weights passes uniform * total, uniform in [0, 1).
uint32_t DrawCandidate(std::span<const Candidate> candidates, double uniform) noexcept;

}  // namespace headlight

#endif  // HEADLIGHT_SAMPLE_CANDIDATES_H_
