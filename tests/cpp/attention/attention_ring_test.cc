// A ring's cache gives the bits of a whole one, and sinks meet the query that was made for them.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "attention/attention.h"
#include "attention/attention_case.h"

namespace headlight {
namespace {

struct RingCase {
  HeadLayout layout;
  size_t window;
  size_t n_sinks;
  CacheType type;
};

constexpr size_t kTokens = 48;  // of a call
constexpr size_t kLength = 1500;

std::vector<float> Gaussian(size_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(random);
  return x;
}

struct Inputs {
  std::vector<float> q, q_sinks, k, v;
  explicit Inputs(const HeadLayout& layout)
      : q(Gaussian(kLength * layout.q_width(), 1)),
        q_sinks(Gaussian(kLength * layout.q_width(), 2)),
        k(Gaussian(kLength * layout.k_width(), 3)),
        v(Gaussian(kLength * layout.v_width(), 4)) {}
};

using Kernel = void (*)(const AttentionSpec&, const AttentionArgs&, AttentionWorkspace&,
                        ThreadPool&);

// All tokens through `kernel`, `n_call` a call, into [kLength, out_width].
std::vector<float> RunAll(const RingCase& c, const Inputs& in, KvLayer& kv, size_t n_call,
                          Kernel kernel) {
  AttentionSpec spec;
  spec.layout = c.layout;
  spec.scale = 1.0f / std::sqrt(static_cast<float>(c.layout.d_qk));
  spec.window = c.window;
  spec.n_sinks = c.n_sinks;
  ThreadPool pool(1);
  AttentionWorkspace workspace(c.layout, kLength, 1);
  std::vector<float> out(kLength * c.layout.out_width());
  for (size_t pos = 0; pos < kLength; pos += n_call) {
    const size_t n = std::min(n_call, kLength - pos);
    for (size_t p = pos; p < pos + n; ++p) {
      kv.WriteRow(p, in.k.data() + p * c.layout.k_width(), in.v.data() + p * c.layout.v_width());
    }
    AttentionArgs args;
    args.q_stride = c.layout.q_width();
    args.q = in.q.data() + pos * args.q_stride;
    if (c.n_sinks != 0) args.q_sinks = in.q_sinks.data() + pos * args.q_stride;
    args.n_tokens = n;
    args.pos0 = pos;
    args.kv = &kv;
    args.n_kv = pos + n;
    args.out = out.data() + pos * c.layout.out_width();
    args.out_stride = c.layout.out_width();
    kernel(spec, args, workspace, pool);
  }
  return out;
}

void Reference(const AttentionSpec& spec, const AttentionArgs& args, AttentionWorkspace&,
               ThreadPool&) {
  AttentionReference(spec, args);
}

constexpr RingCase kCases[] = {
    {{4, 2, 24, 32}, 100, 0, CacheType::kF32},  {{4, 2, 24, 32}, 100, 4, CacheType::kF32},
    {{3, 1, 48, 64}, 201, 4, CacheType::kF16},  {{2, 2, 3, 8}, 256, 7, CacheType::kF32},
    {{8, 2, 64, 16}, 40, 32, CacheType::kInt8}, {{1, 1, 8, 5}, 300, 1, CacheType::kInt8},
};

TEST_CASE("attention: over a ring the same bits as over a whole cache, prompt or step") {
  for (const RingCase& c : kCases) {
    const Inputs in(c.layout);
    KvLayer whole(c.layout, {c.type, c.type}, kLength);
    const std::vector<float> expected = RunAll(c, in, whole, kTokens, AttentionTiled);
    const KvPlacement place = PlaceKv({c.window, c.n_sinks, kTokens}, kLength);
    REQUIRE(place.is_ring());
    CAPTURE(c.window);
    for (const size_t n_call : {kTokens, size_t{1}}) {
      KvLayer ring(c.layout, {c.type, c.type}, place);
      const std::vector<float> got =
          RunAll(c, in, ring, n_call, n_call == 1 ? AttentionDecode : AttentionTiled);
      CHECK(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("attention: sinks behind the window meet their own query, as in the reference") {
  for (const RingCase& c : kCases) {
    if (c.n_sinks == 0) continue;
    const Inputs in(c.layout);
    const KvPlacement place = PlaceKv({c.window, c.n_sinks, kTokens}, kLength);
    KvLayer ring(c.layout, {c.type, c.type}, place);
    const std::vector<float> got = RunAll(c, in, ring, kTokens, AttentionTiled);
    KvLayer again(c.layout, {c.type, c.type}, place);
    const std::vector<float> expected = RunAll(c, in, again, kTokens, Reference);
    // Rounding of a few hundred keys in f32; int8 rounds the weights to 14 bits on top.
    const double tolerance = c.type == CacheType::kInt8 ? 2e-3 : 2e-5;
    CHECK(MaxDifference(got, expected) <= tolerance);
    // And it is not what the row's own query would give.
    RingCase without = c;
    Inputs same = in;
    same.q_sinks = same.q;
    KvLayer third(without.layout, {c.type, c.type}, place);
    const std::vector<float> other = RunAll(without, same, third, kTokens, AttentionTiled);
    CHECK(MaxDifference(got, other) > 0.01);
    const size_t n_full = (c.n_sinks + c.window) * c.layout.out_width();
    CHECK(std::memcmp(got.data(), other.data(), n_full * sizeof(float)) == 0);  // not yet behind it
  }
}

}  // namespace
}  // namespace headlight
