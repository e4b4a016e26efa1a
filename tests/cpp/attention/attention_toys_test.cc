// Small attention problems with numbers known by hand or from articles, and the properties that any
// attention has: weights that sum to one, outputs in the hull of the values, heads that do not mix.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "attention/attention.h"
#include "attention/attention_case.h"
#include "support.h"

namespace headlight {
namespace {

using Rows = std::vector<std::vector<float>>;

// q [n_tokens][n_q_heads * d_qk], k and v [n_kv][width]; positions from n_kv - n_tokens on.
struct Toy {
  AttentionSpec spec;
  Rows q, k, v;
};

constexpr AttentionKernel kKernels[] = {AttentionKernel::kReference, AttentionKernel::kTiled,
                                        AttentionKernel::kDecode};

std::vector<float> Flat(const Rows& rows) {
  std::vector<float> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  return flat;
}

// [n_tokens][n_q_heads * d_v].
Rows Attended(const Toy& toy, AttentionKernel kernel) {
  CheckAttentionSpec(toy.spec);
  const HeadLayout& layout = toy.spec.layout;
  KvLayer kv(layout, {}, toy.k.size());
  for (size_t row = 0; row < toy.k.size(); ++row) {
    kv.WriteRow(row, toy.k[row].data(), toy.v[row].data());
  }
  const std::vector<float> q = Flat(toy.q);
  std::vector<float> out(toy.q.size() * layout.out_width());
  ThreadPool pool(1);
  AttentionWorkspace workspace(layout, kv.n_rows(), 1);
  AttentionArgs args;
  args.q = q.data();
  args.q_stride = layout.q_width();
  args.n_tokens = toy.q.size();
  args.pos0 = toy.k.size() - toy.q.size();
  args.kv = &kv;
  args.n_kv = toy.k.size();
  args.out = out.data();
  args.out_stride = layout.out_width();
  if (kernel == AttentionKernel::kReference) AttentionReference(toy.spec, args);
  if (kernel == AttentionKernel::kTiled) AttentionTiled(toy.spec, args, workspace, pool);
  if (kernel == AttentionKernel::kDecode) {
    args.n_tokens = 1;
    for (size_t t = 0; t < toy.q.size(); ++t) {
      AttentionDecode(toy.spec, args, workspace, pool);
      args.q += args.q_stride;
      args.out += args.out_stride;
      ++args.pos0;
    }
  }
  Rows rows;
  for (size_t t = 0; t < toy.q.size(); ++t) {
    const auto row = out.begin() + static_cast<std::ptrdiff_t>(t * layout.out_width());
    rows.emplace_back(row, row + static_cast<std::ptrdiff_t>(layout.out_width()));
  }
  return rows;
}

// Values that make a head's output its weights: the identity, repeated for every KV head.
Rows IdentityValues(size_t n_kv, size_t n_kv_heads) {
  Rows v(n_kv, std::vector<float>(n_kv * n_kv_heads, 0.0f));
  for (size_t row = 0; row < n_kv; ++row) {
    for (size_t head = 0; head < n_kv_heads; ++head) v[row][head * n_kv + row] = 1.0f;
  }
  return v;
}

Toy WithIdentityValues(const HeadLayout& layout, float scale, Rows q, Rows k) {
  Toy toy;
  toy.spec.layout = layout;
  toy.spec.layout.d_v = k.size();
  toy.spec.scale = scale;
  toy.v = IdentityValues(k.size(), layout.n_kv_heads);
  toy.q = std::move(q);
  toy.k = std::move(k);
  return toy;
}

// One head of width d whose dot products with the query are exactly `scores`; its weights.
std::vector<float> Softmax(const std::vector<float>& scores, float scale, AttentionKernel kernel) {
  Rows k;
  for (const float score : scores) k.push_back({score});
  return Attended(WithIdentityValues({1, 1, 1, 0}, scale, {{1.0f}}, k), kernel)[0];
}

void CheckClose(const std::vector<float>& actual, const std::vector<double>& expected,
                double tolerance) {
  REQUIRE(actual.size() == expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    CHECK(std::fabs(static_cast<double>(actual[i]) - expected[i]) <= tolerance);
  }
}

Rows RandomRows(size_t n_rows, size_t width, uint64_t seed) {
  testing::Random random(seed);
  Rows rows(n_rows, std::vector<float>(width));
  for (auto& row : rows) {
    for (float& x : row) x = 2.0f * random.Uniform();
  }
  return rows;
}

TEST_CASE("toys: two heads of width 4 attend to different tokens, one head of 8 to both") {
  const Rows q = {{2, 1, 0, 1, 1, 2, 1, 0}};
  const Rows k = {{2, 1, 0, 1, 1, 0, 0, 1}, {0, 1, 1, 0, 0, 2, 1, 0}};
  for (const AttentionKernel kernel : kKernels) {
    // Scores (6, 1) and (1, 5), halved: e^2.5 = 12.1825 and e^-2 = 1 / 7.3891.
    const auto two = Attended(WithIdentityValues({2, 2, 4, 0}, 0.5f, q, k), kernel)[0];
    CheckClose(two, {0.9241, 0.0759, 0.1192, 0.8808}, 5e-5);
    CHECK(two[0] / two[1] == doctest::Approx(12.1825).epsilon(1e-5));
    CHECK(two[3] / two[2] == doctest::Approx(7.3891).epsilon(1e-5));
    // Scores 7 and 6 over sqrt(8).
    const auto one =
        Attended(WithIdentityValues({1, 1, 8, 0}, 1.0f / std::sqrt(8.0f), q, k), kernel)[0];
    CheckClose(one, {0.5875, 0.4125}, 5e-5);
  }
}

TEST_CASE("toys: seven scores of a head of width 128, exact and rounded") {
  const std::vector<float> scores = {14, 9, 6, 46, 41, 25, 11};
  for (const AttentionKernel kernel : kKernels) {
    const auto exact = Softmax(scores, 1.0f / std::sqrt(128.0f), kernel);
    CheckClose(exact, {.0300, .0193, .0148, .5074, .3262, .0793, .0230}, 5e-5);
    CHECK(exact[3] / exact[4] == doctest::Approx(std::exp(5.0 / std::sqrt(128.0))).epsilon(1e-5));
    // From scores rounded to one digit first, as an article prints them: the ratio becomes e^0.5.
    const auto rounded = Softmax({1.2f, .8f, .5f, 4.1f, 3.6f, 2.2f, 1.0f}, 1.0f, kernel);
    CheckClose(rounded, {.0287, .0192, .0142, .5207, .3158, .0779, .0235}, 5e-5);
    CHECK(rounded[3] / rounded[4] == doctest::Approx(std::exp(0.5)).epsilon(1e-5));
    // Without the scale a gap of 5 is a factor of 148.
    const auto unscaled = Softmax({46, 41}, 1.0f, kernel);
    CheckClose(unscaled, {.9933, .0067}, 5e-5);
  }
}

TEST_CASE("toys: softmax of equal scores is uniform, and of [2 1 0] and [16 8 0] as printed") {
  for (const AttentionKernel kernel : kKernels) {
    CheckClose(Softmax({5, 5, 5}, 1.0f, kernel), {1.0 / 3, 1.0 / 3, 1.0 / 3}, 1e-7);
    CheckClose(Softmax({2, 1, 0}, 1.0f, kernel), {.6652, .2447, .0900}, 5e-5);
    CheckClose(Softmax({16, 8, 0}, 1.0f, kernel), {.9997, .0003, .0000}, 5e-5);
  }
}

TEST_CASE("toys: three tokens, causal: weights and outputs of the self-attention example") {
  Toy toy;
  toy.spec.layout = {1, 1, 2, 2};
  toy.spec.scale = 1.0f / std::sqrt(2.0f);
  toy.q = {{2, 0}, {0, 3}, {1, 2}};
  toy.k = {{0, 2}, {3, 0}, {2, 1}};
  toy.v = {{1, 1}, {1, 4}, {2, 2}};
  const Toy weights = WithIdentityValues(toy.spec.layout, toy.spec.scale, toy.q, toy.k);
  for (const AttentionKernel kernel : kKernels) {
    const Rows out = Attended(toy, kernel);
    CheckClose(out[0], {1, 1}, 0);
    CheckClose(out[1], {1, 1.0425}, 5e-5);
    CheckClose(out[2], {1.4011, 1.9944}, 5e-5);
    const Rows a = Attended(weights, kernel);
    CheckClose(a[0], {1, 0, 0}, 0);  // masked weights are exactly 0
    CheckClose(a[1], {.9858, .0142, 0}, 5e-5);
    CHECK(a[1][2] == 0.0f);
    CheckClose(a[2], {.4011, .1978, .4011}, 5e-5);
    // Scores 4 3 4 over sqrt(2): 16.9, 8.3 and 16.9 before they are divided by their sum.
    CHECK(a[2][0] / a[2][1] == doctest::Approx(std::exp(1 / std::sqrt(2.0))).epsilon(1e-6));
  }
}

TEST_CASE("properties: weights are not negative, sum to one and are exactly 0 where masked") {
  const HeadLayout layout{6, 2, 16, 0};
  for (const size_t n : {1u, 5u, 70u, 300u}) {
    Toy toy = WithIdentityValues(layout, 0.25f, RandomRows(n, layout.q_width(), n),
                                 RandomRows(n, layout.k_width(), n + 1));
    toy.spec.window = 100;
    for (const AttentionKernel kernel : kKernels) {
      const Rows out = Attended(toy, kernel);
      size_t n_wrong = 0;
      for (size_t t = 0; t < n; ++t) {
        for (size_t h = 0; h < layout.n_q_heads; ++h) {
          double sum = 0.0;
          for (size_t key = 0; key < n; ++key) {
            const float weight = out[t][h * n + key];
            sum += static_cast<double>(weight);
            const bool admitted = key <= t && t - key < 100;
            n_wrong += admitted ? weight <= 0.0f : weight != 0.0f;
          }
          n_wrong += std::fabs(sum - 1.0) >= 1e-6;
        }
      }
      CHECK(n_wrong == 0);
    }
  }
}

TEST_CASE("properties: adding a constant to every score changes nothing, and nothing overflows") {
  // Scores are multiples of 1/8 below 4: adding 1000 is exact, and so the weights are the same.
  Rows k;
  Rows shifted;
  for (int i = 0; i < 40; ++i) {
    k.push_back({static_cast<float>(i * 7 % 32) / 8.0f, 0.0f});
    shifted.push_back({k.back()[0], 1000.0f});
  }
  for (const AttentionKernel kernel : kKernels) {
    const auto plain = Attended(WithIdentityValues({1, 1, 2, 0}, 1.0f, {{1, 1}}, k), kernel);
    const auto moved = Attended(WithIdentityValues({1, 1, 2, 0}, 1.0f, {{1, 1}}, shifted), kernel);
    CHECK(plain == moved);
  }
}

TEST_CASE("properties: every output lies between the smallest and the largest value") {
  Toy toy;
  toy.spec.layout = {4, 2, 8, 5};
  toy.spec.scale = 0.3f;
  toy.spec.causal = false;
  toy.q = RandomRows(50, toy.spec.layout.q_width(), 1);
  toy.k = RandomRows(50, toy.spec.layout.k_width(), 2);
  toy.v = RandomRows(50, toy.spec.layout.v_width(), 3);
  for (const AttentionKernel kernel : kKernels) {
    const Rows out = Attended(toy, kernel);
    for (size_t i = 0; i < toy.spec.layout.out_width(); ++i) {
      const size_t column = i / 5 / 2 * 5 + i % 5;  // of the head's KV head
      float low = 1e9f;
      float high = -1e9f;
      for (const auto& v : toy.v) {
        low = std::min(low, v[column]);
        high = std::max(high, v[column]);
      }
      for (const auto& row : out) CHECK((row[i] > low && row[i] < high));
    }
  }
}

TEST_CASE("properties: a head's bits do not depend on other heads, nor its weights on d_v") {
  Toy toy;
  toy.spec.layout = {4, 2, 8, 6};
  toy.spec.scale = 0.3f;
  toy.q = RandomRows(9, toy.spec.layout.q_width(), 1);
  toy.k = RandomRows(9, toy.spec.layout.k_width(), 2);
  toy.v = RandomRows(9, toy.spec.layout.v_width(), 3);
  Toy zeroed = toy;  // query heads 0, 1, 3 and KV head 0 emptied: head 2 reads KV head 1
  for (auto& row : zeroed.q) {
    std::fill(row.begin(), row.begin() + 16, 0.0f);
    std::fill(row.begin() + 24, row.end(), 0.0f);
  }
  for (auto& row : zeroed.k) std::fill(row.begin(), row.begin() + 8, 0.0f);
  for (auto& row : zeroed.v) std::fill(row.begin(), row.begin() + 6, 0.0f);
  Toy narrow = toy;  // the first value element of each KV head alone
  narrow.spec.layout.d_v = 1;
  for (auto& row : narrow.v) row = {row[0], row[6]};
  for (const AttentionKernel kernel : kKernels) {
    const Rows out = Attended(toy, kernel);
    const Rows alone = Attended(zeroed, kernel);
    const Rows first = Attended(narrow, kernel);
    for (size_t t = 0; t < 9; ++t) {
      for (size_t i = 12; i < 18; ++i) CHECK(out[t][i] == alone[t][i]);
      for (size_t h = 0; h < 4; ++h) CHECK(out[t][h * 6] == first[t][h]);
    }
  }
}

TEST_CASE("properties: without positions the order of the keys does not matter") {
  Toy toy;
  toy.spec.layout = {2, 1, 8, 4};
  toy.spec.scale = 0.35f;
  toy.spec.causal = false;
  toy.q = RandomRows(1, toy.spec.layout.q_width(), 1);
  toy.k = RandomRows(300, toy.spec.layout.k_width(), 2);
  toy.v = RandomRows(300, toy.spec.layout.v_width(), 3);
  Toy shuffled = toy;
  for (size_t i = 0; i < 300; ++i) {
    shuffled.k[i] = toy.k[i * 7 % 300];
    shuffled.v[i] = toy.v[i * 7 % 300];
  }
  for (const AttentionKernel kernel : kKernels) {
    const auto out = Attended(toy, kernel)[0];
    const auto other = Attended(shuffled, kernel)[0];
    // Sums of 300 terms of at most 2, in another order.
    CHECK(MaxDifference(out, other) <= 4 * 0x1p-24 * 2.0 * std::sqrt(300.0));
  }
}

TEST_CASE("attention: a spec that cannot be honoured is a BadOption that names the field") {
  AttentionSpec good;
  good.layout = {8, 2, 4, 4};
  good.scale = 0.5f;
  const auto field = [&](const std::function<void(AttentionSpec&)>& spoil) {
    AttentionSpec spec = good;
    spoil(spec);
    const Error error = testing::ErrorOf([&] { CheckAttentionSpec(spec); });
    CHECK(error.code() == ErrorCode::kBadOption);
    return testing::Detail(error, "option");
  };
  CheckAttentionSpec(good);
  CHECK(field([](AttentionSpec& s) { s.layout.n_kv_heads = 3; }) == "n_kv_heads");
  CHECK(field([](AttentionSpec& s) { s.layout.n_kv_heads = 0; }) == "n_kv_heads");
  CHECK(field([](AttentionSpec& s) { s.layout.n_q_heads = 0; }) == "n_kv_heads");
  CHECK(field([](AttentionSpec& s) { s.layout.d_qk = 0; }) == "d_qk");
  CHECK(field([](AttentionSpec& s) { s.layout.d_v = 0; }) == "d_v");
  CHECK(field([](AttentionSpec& s) { s.scale = std::nanf(""); }) == "scale");
  CHECK(field([](AttentionSpec& s) { s.softcap = -1.0f; }) == "softcap");
}

TEST_CASE("attention: the workspace is what it says, and prefill's part does not grow with n_ctx") {
  const HeadLayout widest{16, 8, 64, 80};
  for (const size_t n_ctx : {1u, 256u, 257u, 8192u}) {
    for (const size_t n_threads : {1u, 4u}) {
      const AttentionWorkspace workspace(widest, n_ctx, n_threads);
      CHECK(workspace.bytes() == AttentionWorkspace::Bytes(widest, n_ctx, n_threads));
    }
  }
  const size_t one = AttentionWorkspace::Bytes(widest, 256, 1);
  const size_t two = AttentionWorkspace::Bytes(widest, 512, 1);
  CHECK(two - one == 16 * (4 + 80) * sizeof(float));  // another chunk's partials
  CHECK(AttentionWorkspace::Bytes(widest, 4096, 1) < 512 * 1024);
}

TEST_CASE("attention: one workspace, whatever it holds, serves layers narrower in any field") {
  // {16, 2} has more query heads a KV head than the widest {16, 8}.
  const HeadLayout layouts[] = {{16, 2, 64, 8}, {8, 8, 16, 80}, {1, 1, 1, 1}, {2, 1, 3, 5}};
  AttentionWorkspace workspace({16, 8, 64, 80}, 300, 1);
  ThreadPool pool(1);
  for (const HeadLayout& layout : layouts) {
    AttentionSpec spec;
    spec.layout = layout;
    spec.scale = 0.125f;
    KvLayer kv(layout, {}, 300);
    const Rows k = RandomRows(300, layout.k_width(), 1);
    const Rows v = RandomRows(300, layout.v_width(), 2);
    for (size_t row = 0; row < 300; ++row) kv.WriteRow(row, k[row].data(), v[row].data());
    const std::vector<float> q = Flat(RandomRows(20, layout.q_width(), 3));
    std::vector<float> out(20 * layout.out_width());
    std::vector<float> expected(out.size());
    AttentionArgs args;
    args.q = q.data();
    args.q_stride = layout.q_width();
    args.n_tokens = 20;
    args.pos0 = 280;
    args.kv = &kv;
    args.n_kv = 300;
    args.out = expected.data();
    args.out_stride = layout.out_width();
    AttentionReference(spec, args);
    args.out = out.data();
    std::fill_n(workspace.thread_scratch(0), workspace.bytes() / sizeof(float), std::nanf(""));
    Attend(spec, args, workspace, pool);
    CHECK(MaxDifference(out, expected) < 1e-5);
    std::fill_n(workspace.thread_scratch(0), workspace.bytes() / sizeof(float), std::nanf(""));
    args.n_tokens = 1;  // the first token again, by decode
    Attend(spec, args, workspace, pool);
    CHECK(MaxDifference(out, expected) < 1e-5);
  }
}

}  // namespace
}  // namespace headlight
