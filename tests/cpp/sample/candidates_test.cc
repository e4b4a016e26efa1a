#include "sample/candidates.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace headlight {
namespace {

constexpr float kBanned = -std::numeric_limits<float>::infinity();
const std::vector<float> kLogits = {1.0f, 3.0f, kBanned, 2.0f, 3.0f, -1.0f, 2.0f};

std::vector<uint32_t> Ids(const std::vector<Candidate>& candidates) {
  std::vector<uint32_t> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.id);
  return ids;
}

TEST_CASE("candidates: the k best, best first, lower ids first, without banned tokens") {
  std::vector<Candidate> candidates;
  const std::vector<uint32_t> order = {1, 4, 3, 6, 0, 5};
  for (size_t k = 1; k < 9; ++k) {
    CAPTURE(k);
    TakeTopK(kLogits, k, candidates);
    CHECK(Ids(candidates) ==
          std::vector<uint32_t>(
              order.begin(), order.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(k, 6))));
  }
  TakeTopK(kLogits, 0, candidates);
  CHECK(Ids(candidates) == std::vector<uint32_t>{0, 1, 3, 4, 5, 6});
}

TEST_CASE(
    "candidates: the nucleus is the same, best first, from sorted and from unsorted candidates") {
  for (const double top_p : {1e-9, 0.3, 0.5, 0.9, 0.999, 1.0}) {
    CAPTURE(top_p);
    std::vector<Candidate> sorted, unsorted;
    TakeTopK(kLogits, kLogits.size(), sorted);
    TakeTopK(kLogits, 0, unsorted);
    for (auto* candidates : {&sorted, &unsorted}) WeighCandidates(3.0f, 1.0, *candidates);
    KeepTopP(top_p, true, sorted);
    KeepTopP(top_p, false, unsorted);
    CHECK(Ids(sorted) == Ids(unsorted));
    double total = 0.0, kept = 0.0;
    for (const float logit : kLogits) total += std::exp(static_cast<double>(logit));
    for (const Candidate& candidate : sorted)
      kept += std::exp(static_cast<double>(candidate.logit));
    CHECK(kept >= top_p * total * (1.0 - 1e-12));
    // One less would not reach top_p.
    CHECK(kept - std::exp(static_cast<double>(sorted.back().logit)) < top_p * total);
  }
}

TEST_CASE("candidates: a draw takes the id where the sum of weights passes the number") {
  const std::vector<Candidate> candidates = {
      {0.5, 0.0f, 8}, {0.0, 0.0f, 3}, {0.25, 0.0f, 5}, {0.25, 0.0f, 1}, {0.0, 0.0f, 2}};
  struct Case {
    double uniform;
    uint32_t id;
  };
  for (const Case& c :
       {Case{0.0, 8}, {0.4999, 8}, {0.5, 5}, {0.7499, 5}, {0.75, 1}, {1.0 - 0x1p-53, 1}}) {
    CAPTURE(c.uniform);
    CHECK(DrawCandidate(candidates, c.uniform) == c.id);
  }
}

}  // namespace
}  // namespace headlight
