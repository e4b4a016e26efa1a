// Speed of the attention kernels beside the ceilings of the same machine, module and moment, as
// JSON lines, one thread:
//   prefill  GFLOP/s of AttentionTiled: 2 (d_qk + d_v) flop for each admitted (query head, key)
//   pair decode   GB/s of AttentionDecode: each live byte of the cache counts once ceilings f32
//   multiply-adds in registers, and reading as many bytes as the decode's cache has
// How to build and run it: tests/bench/README.md.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "attention/attention.h"
#include "simd/probe.h"
#include "simd/relaxed.h"

namespace headlight {
namespace {

constexpr HeadLayout kLayout{9, 3, 64, 64};
// Short rounds and the best of many: others use the machine too, and a round that nobody
// interrupted is what counts. A round is long enough for the 0.1 ms ticks of a browser's timer.
constexpr double kRoundSeconds = 0.002;
constexpr double kTotalSeconds = 1.0;
constexpr int kMinRounds = 3;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of one call of f. The first calls let an engine's optimising compiler catch up.
template <class F>
double BestSeconds(const F& f) {
  double best = 1e30;
  size_t n_calls = 1;
  int n_rounds = 0;
  for (const double first = Now(); n_rounds < kMinRounds || Now() - first < kTotalSeconds;) {
    const double start = Now();
    for (size_t i = 0; i < n_calls; ++i) {
      f();
      asm volatile("" ::: "memory");  // no call is merged with the next
    }
    const double seconds = Now() - start;
    if (seconds < kRoundSeconds) {
      n_calls *= 2;
      continue;
    }
    best = std::min(best, seconds / static_cast<double>(n_calls));
    ++n_rounds;
  }
  return best;
}

// Independent chains of multiply-adds in registers: twelve cover a product and a sum of three
// cycles each at two a cycle, and fit beside their operands.
constexpr size_t kChains = 12;
constexpr size_t kChainSteps = 2000;
float MulAddChains(float factor) {
  constexpr F32x4 kF32;
  VecF32 acc[kChains];
  for (size_t i = 0; i < kChains; ++i) acc[i] = hn::Set(kF32, static_cast<float>(i));
  const VecF32 a = hn::Set(kF32, factor);
  const VecF32 b = hn::Set(kF32, 1.0f - factor);
  for (size_t step = 0; step < kChainSteps; ++step) {
    for (size_t i = 0; i < kChains; ++i) acc[i] = MulAdd(acc[i], a, b);
  }
  for (size_t i = 1; i < kChains; ++i) acc[0] = hn::Add(acc[0], acc[i]);
  return hn::ReduceSum(kF32, acc[0]);
}

// Reads every byte of data once.
float ReadAll(const AlignedArray<float>& data) {
  constexpr F32x4 kF32;
  VecF32 acc[4];
  for (auto& a : acc) a = hn::Zero(kF32);
  for (size_t i = 0; i + 16 <= data.size(); i += 16) {
    for (size_t j = 0; j < 4; ++j) acc[j] = hn::Or(acc[j], hn::Load(kF32, data.data() + i + 4 * j));
  }
  return hn::GetLane(hn::Or(hn::Or(acc[0], acc[1]), hn::Or(acc[2], acc[3])));
}

double MulAddGflops() {
  // Called through a pointer that no optimiser sees through, so that the loop stays a function of
  // its own: engines optimise functions between calls.
  float (*volatile chains)(float) = &MulAddChains;
  volatile float factor = 0.999f;
  volatile float sink = 0.0f;
  const double seconds = BestSeconds([&] { sink = chains(factor); });
  return kChainSteps * kChains * 8 / seconds / 1e9;
}

double ReadGbps(size_t n_bytes) {
  const AlignedArray<float> data(n_bytes / sizeof(float));
  float (*volatile read)(const AlignedArray<float>&) = &ReadAll;
  volatile float sink = 0.0f;
  const double seconds = BestSeconds([&] { sink = read(data); });
  return static_cast<double>(n_bytes) / seconds / 1e9;
}

// A cache of n_kv rows and n_tokens queries after it, with contents that keep weights spread.
struct Setup {
  KvLayer kv;
  std::vector<float> q;
  std::vector<float> out;
  AttentionWorkspace workspace;
  ThreadPool pool;
  AttentionSpec spec;
  AttentionArgs args;

  Setup(CacheType type, size_t n_tokens, size_t n_kv)
      : kv(kLayout, {type, type}, n_kv),
        q(n_tokens * kLayout.q_width()),
        out(n_tokens * kLayout.out_width()),
        workspace(kLayout, n_kv, 1),
        pool(1) {
    std::vector<float> row(kLayout.k_width());
    for (size_t r = 0; r < n_kv; ++r) {
      for (size_t i = 0; i < row.size(); ++i) row[i] = Noise(r * 977 + i);
      kv.WriteRow(r, row.data(), row.data());
    }
    for (size_t i = 0; i < q.size(); ++i) q[i] = Noise(i * 31 + 7);
    spec.layout = kLayout;
    spec.dot_form = ProbeDot().form;
    spec.scale = 1.0f / std::sqrt(static_cast<float>(kLayout.d_qk));
    args.q = q.data();
    args.q_stride = kLayout.q_width();
    args.n_tokens = n_tokens;
    args.pos0 = n_kv - n_tokens;
    args.kv = &kv;
    args.n_kv = n_kv;
    args.out = out.data();
    args.out_stride = kLayout.out_width();
  }

  static float Noise(size_t i) {  // in [-1, 1)
    return static_cast<float>((i * 2654435761u >> 8) & 0xFFFF) / 32768.0f - 1.0f;
  }
};

// The last n_tokens of n_kv, as a chunk of a longer prompt.
void BenchPrefill(CacheType type, size_t n_tokens, size_t n_kv, double peak_gflops) {
  Setup setup(type, n_tokens, n_kv);
  const double seconds =
      BestSeconds([&] { AttentionTiled(setup.spec, setup.args, setup.workspace, setup.pool); });
  size_t n_pairs = 0;
  for (size_t pos = n_kv - n_tokens; pos < n_kv; ++pos) n_pairs += pos + 1;
  const double flop = static_cast<double>(n_pairs * kLayout.n_q_heads) *
                      static_cast<double>(2 * (kLayout.d_qk + kLayout.d_v));
  const double gflops = flop / seconds / 1e9;
  std::printf(
      "{\"bench\":\"attention_prefill\",\"cache\":\"%s\",\"n_tokens\":%zu,\"n_kv\":%zu,"
      "\"ms\":%.3f,\"gflops\":%.2f,\"of_peak\":%.3f}\n",
      CacheTypeName(type), n_tokens, n_kv, seconds * 1e3, gflops, gflops / peak_gflops);
  std::fflush(stdout);
}

void BenchDecode(CacheType type, size_t n_kv) {
  Setup setup(type, 1, n_kv);
  const double seconds =
      BestSeconds([&] { AttentionDecode(setup.spec, setup.args, setup.workspace, setup.pool); });
  const size_t n_bytes = KvLayer::BytesPerToken(kLayout, {type, type}) * n_kv;
  const double gbps = static_cast<double>(n_bytes) / seconds / 1e9;
  const double ceiling = ReadGbps(n_bytes);
  std::printf(
      "{\"bench\":\"attention_decode\",\"cache\":\"%s\",\"n_kv\":%zu,\"us\":%.2f,\"ns_per_key\":%.2f,"
      "\"gbps\":%.2f,"
      "\"read_gbps\":%.2f,\"of_read\":%.3f}\n",
      CacheTypeName(type), n_kv, seconds * 1e6, seconds * 1e9 / static_cast<double>(n_kv), gbps,
      ceiling, gbps / ceiling);
  std::fflush(stdout);
}

// Cache formats are taken from the command line ("int8 f16"); all of them without arguments.
bool Wants(int argc, char** argv, CacheType type) {
  bool wants = argc < 2;
  for (int i = 1; i < argc; ++i) wants |= std::strcmp(argv[i], CacheTypeName(type)) == 0;
  return wants;
}

void Run(int argc, char** argv) {
  const double peak = MulAddGflops();
  std::printf("{\"bench\":\"mul_add_peak\",\"gflops\":%.2f,\"dot_form\":\"%s\"}\n", peak,
              DotFormName(ProbeDot().form));
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    if (!Wants(argc, argv, type)) continue;
    BenchPrefill(type, 256, 256, peak);
    BenchPrefill(type, 2048, 2048, peak);
    for (const size_t n_kv : {1024u, 2048u, 8192u}) BenchPrefill(type, 64, n_kv, peak);
    for (const size_t n_kv : {128u, 1024u, 8192u, 65536u}) BenchDecode(type, n_kv);
  }
}

}  // namespace
}  // namespace headlight

int main(int argc, char** argv) {
  headlight::Run(argc, argv);
  return 0;
}
