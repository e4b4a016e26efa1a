// Speed of the matrix products and of packing beside the ceilings of the same machine, module and
// moment, as JSON lines.
//   matvec:  GB/s of packed weights, n_tokens 1; beside it the rate of reading the same bytes
//   matmul:  Gop/s, a multiply-add counting two
//   packing: GB/s of file bytes, in chunks of 256 KiB
// One thread. Arguments: parts of names ("q8_0", "matvec 576x1536"); a line is run if it holds them
// all. Build: one source file beside the library (tests/bench/README.md).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/limits.h"
#include "kernels/matmul.h"
#include "simd/probe.h"

namespace headlight {
namespace {

// Short rounds and the best of many: a round that nobody interrupted is what counts. A round is
// long enough for the 5 us ticks of an isolated page.
constexpr double kRoundSeconds = 0.002;
constexpr double kTotalSeconds = 0.25;
constexpr int kMinRounds = 10;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of one call of f, best round.
template <class F>
double BestSeconds(const F& f) {
  double best = 1e30;
  size_t n_calls = 1;
  int n_rounds = 0;
  for (const double first = Now(); n_rounds < kMinRounds || Now() - first < kTotalSeconds;) {
    const double start = Now();
    for (size_t i = 0; i < n_calls; ++i) f();
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

struct Filter {
  std::vector<std::string> parts;
  bool Admits(const std::string& name) const {
    return std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return name.find(part) != std::string::npos;
    });
  }
};

struct Shape {
  size_t n_rows, n_cols;
};
constexpr Shape kShapes[] = {{576, 576}, {192, 576},   {1536, 576}, {576, 1536},
                             {192, 512}, {49152, 576}, {768, 768},  {32768, 768}};
constexpr size_t kTokenCounts[] = {1, 4, 64, 256};
// One type for each way in which codes are stored, scaled and read.
constexpr TensorType kTypes[] = {TensorType::kQ8_0,   TensorType::kQ4_0,  TensorType::kQ4_K,
                                 TensorType::kQ6_K,   TensorType::kQ5_K,  TensorType::kQ3_K,
                                 TensorType::kQ2_K,   TensorType::kQ4_1,  TensorType::kQ5_0,
                                 TensorType::kIQ4_XS, TensorType::kMXFP4, TensorType::kF16,
                                 TensorType::kBF16,   TensorType::kF32};

// Offsets of the binary16 numbers of a block; K types end with theirs, but Q4_K and Q5_K begin.
std::vector<size_t> F16Places(TensorType type) {
  switch (type) {
    case TensorType::kQ6_K:
      return {208};
    case TensorType::kQ3_K:
      return {108};
    case TensorType::kQ2_K:
      return {80, 82};
    case TensorType::kQ4_1:
    case TensorType::kQ4_K:
    case TensorType::kQ5_K:
      return {0, 2};
    case TensorType::kMXFP4:
      return {};
    default:
      return {0};
  }
}

// Bytes that are valid as the type: small codes, scales and floats.
std::vector<uint8_t> FileBytes(TensorType type, const Shape& shape) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(type));
  std::vector<uint8_t> bytes(shape.n_rows * (shape.n_cols / traits.n_block) * traits.block_bytes);
  uint32_t state = 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    bytes[i] = static_cast<uint8_t>(state >> 24);
  }
  // The exponent's byte of each scale or element: 2^-7 or so.
  const size_t width = traits.n_block > 1 ? 2 : traits.block_bytes;
  const uint8_t top =
      std::strcmp(traits.name, "BF16") == 0 || traits.block_bytes == 4 ? 0x3C : 0x20;
  for (size_t at = 0; at < bytes.size(); at += traits.block_bytes) {
    for (const size_t place : F16Places(type)) bytes[at + place + width - 1] = top;
    if (type == TensorType::kMXFP4) bytes[at] = 120;
  }
  return bytes;
}

struct Weights {
  AlignedArray<uint8_t> storage;
  PackedMatrix matrix;
};

Weights Pack(TensorType type, const Shape& shape, DotForm form, const std::vector<uint8_t>& bytes) {
  Weights weights;
  weights.matrix.shape = PlanPacked(type, shape.n_rows, shape.n_cols, form);
  weights.storage = AlignedArray<uint8_t>(weights.matrix.shape.bytes);
  weights.matrix.data = weights.storage.data();
  PackedWriter(type, weights.matrix.shape, weights.storage.data()).Append(bytes);
  return weights;
}

struct Product {
  const Weights& weights;
  size_t n_tokens;
  ActivationType type;
};

double ProductSeconds(const Product& product, ThreadPool& pool) {
  const PackedShape& shape = product.weights.matrix.shape;
  std::vector<float> x(product.n_tokens * shape.n_cols), y(product.n_tokens * shape.n_rows);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) * 0.02f - 1.0f;
  Activations activations(product.n_tokens, shape.n_cols, product.type);
  const MatMulJob job{&product.weights.matrix, y.data(), shape.n_rows};
  return BestSeconds([&] {
    activations.Set(x.data(), product.n_tokens, shape.n_cols, shape.n_cols);
    MatMul({&job, 1}, activations, pool);
  });
}

void BenchProducts(const char* type_name, const Weights& weights, const Filter& filter,
                   ThreadPool& pool) {
  const PackedShape& shape = weights.matrix.shape;
  for (const size_t n_tokens : kTokenCounts) {
    for (const ActivationType type : {ActivationType::kInt8, ActivationType::kF32}) {
      if (!HasCodes(shape.family) && type == ActivationType::kInt8) continue;
      char name[128];
      std::snprintf(name, sizeof(name), "%s %s %zux%zu t%zu x_%s %s",
                    n_tokens == 1 ? "matvec" : "matmul", type_name, shape.n_rows, shape.n_cols,
                    n_tokens, type == ActivationType::kInt8 ? "int8" : "f32",
                    DotFormName(shape.form));
      if (!filter.Admits(name)) continue;
      const double seconds = ProductSeconds({weights, n_tokens, type}, pool);
      const double gops = 2e-9 * static_cast<double>(shape.n_rows * shape.n_cols) *
                          static_cast<double>(n_tokens) / seconds;
      std::printf("{\"name\": \"%s\", \"gops\": %.1f", name, gops);
      if (n_tokens == 1) {
        const double read =
            MeasureLimits({weights.storage.data(), shape.bytes}, 150.0, pool).read_gbs;
        const double gbs = 1e-9 * static_cast<double>(shape.bytes) / seconds;
        std::printf(", \"gbs\": %.1f, \"read_gbs\": %.1f, \"share\": %.2f", gbs, read, gbs / read);
      }
      std::printf("}\n");
      std::fflush(stdout);
    }
  }
}

void BenchPacking(TensorType type, const Filter& filter, DotForm form) {
  const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(type));
  const std::string name = std::string("packing ") + traits.name;
  if (!filter.Admits(name)) return;
  constexpr Shape kShape = {6144, 768};
  constexpr size_t kChunk = size_t{256} << 10;
  const auto bytes = FileBytes(type, kShape);
  const PackedShape shape = PlanPacked(type, kShape.n_rows, kShape.n_cols, form);
  AlignedArray<uint8_t> dst(shape.bytes);
  const double seconds = BestSeconds([&] {
    PackedWriter writer(type, shape, dst.data());
    for (size_t at = 0; at < bytes.size(); at += kChunk) {
      writer.Append({bytes.data() + at, std::min(kChunk, bytes.size() - at)});
    }
  });
  std::printf("{\"name\": \"%s\", \"gbs\": %.2f}\n", name.c_str(),
              1e-9 * static_cast<double>(bytes.size()) / seconds);
  std::fflush(stdout);
}

void Run(const Filter& filter) {
  const ProbeResult probe = ProbeDot();
  ThreadPool pool(1);
  std::vector<uint8_t> large(size_t{64} << 20, 1);
  const SpeedLimits limits = MeasureLimits(large, 300.0, pool);
  std::printf(
      "{\"name\": \"limits\", \"form\": \"%s\", \"relaxed\": %s, \"read_gbs\": %.1f, "
      "\"dot_gops\": %.1f, \"fma_gflops\": %.1f}\n",
      DotFormName(probe.form), probe.relaxed_build ? "true" : "false", limits.read_gbs,
      limits.dot_gops, limits.fma_gflops);
  for (const TensorType type : kTypes) {
    const TensorTypeTraits& traits = *FindTensorType(static_cast<uint32_t>(type));
    BenchPacking(type, filter, probe.form);
    for (const Shape& shape : kShapes) {
      // A large vocabulary is where streaming shows; for the plain types a small one does.
      if (shape.n_rows >= 32768 && traits.n_block == 1) continue;
      if (shape.n_cols % traits.n_block != 0) continue;
      const auto bytes = FileBytes(type, shape);
      std::vector<DotForm> forms = {probe.form};
      if (probe.form != DotForm::kWide) forms.push_back(DotForm::kWide);
      for (const DotForm form : forms)
        BenchProducts(traits.name, Pack(type, shape, form, bytes), filter, pool);
    }
  }
}

}  // namespace
}  // namespace headlight

int main(int argc, char** argv) {
  headlight::Filter filter;
  for (int i = 1; i < argc; ++i) filter.parts.emplace_back(argv[i]);
  headlight::Run(filter);
  return 0;
}
