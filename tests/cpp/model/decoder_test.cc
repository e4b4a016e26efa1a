// The decoder as a machine: chunks, steps, threads, memory. What it computes:
// decoder_oracle_test.cc.
#include "model/decoder.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "allocation_count.h"
#include "model/decode_all.h"
#include "oracle/test_model.h"

namespace headlight {
namespace {

constexpr HeadLayout kHeads = {8, 2, 24, 32};

TestModel SmallModel(TensorType type) {
  ModelSpec spec = SmallSpec(kHeads, 96, 160, 3);
  spec.layers[1].window = 9;
  return MakeTestModel(spec, type, 11);
}

struct Path {
  TensorType type;
  ActivationType activations;
  CacheType cache;
};

const Path kPaths[] = {
    {TensorType::kF32, ActivationType::kF32, CacheType::kF32},
    {TensorType::kF16, ActivationType::kF32, CacheType::kF16},
    {TensorType::kQ8_0, ActivationType::kInt8, CacheType::kF32},
    {TensorType::kQ4_0, ActivationType::kInt8, CacheType::kF16},
    {TensorType::kQ8_0, ActivationType::kInt8, CacheType::kInt8},
    {TensorType::kQ8_0, ActivationType::kF32, CacheType::kF32},
};

DecodeSetup SetupOf(const Path& path) {
  DecodeSetup setup;
  setup.activations = path.activations;
  setup.kv_format = {path.cache, path.cache};
  return setup;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST_CASE("decoder: n tokens at once, in chunks or one by one give the same bits") {
  for (const Path& path : kPaths) {
    const TestModel test = SmallModel(path.type);
    const std::vector<uint32_t> tokens = RandomTokens(45, test.model->spec.vocab_size, 1);
    DecodeSetup setup = SetupOf(path);
    setup.chunk = tokens.size();
    const std::vector<float> whole = DecodeAll(*test.model, tokens, setup);
    for (const size_t chunk : {1u, 2u, 7u, 16u, 44u}) {
      CAPTURE(chunk);
      setup.chunk = chunk;
      CHECK(SameBits(DecodeAll(*test.model, tokens, setup), whole));
    }
  }
}

TEST_CASE("decoder: the number of threads changes no bit") {
  for (const Path& path : kPaths) {
    const TestModel test = SmallModel(path.type);
    const std::vector<uint32_t> tokens = RandomTokens(40, test.model->spec.vocab_size, 2);
    for (const size_t chunk : {1u, 16u}) {
      DecodeSetup setup = SetupOf(path);
      setup.chunk = chunk;
      const std::vector<float> one = DecodeAll(*test.model, tokens, setup);
#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
      for (const size_t n_threads : {2u, 3u, 5u}) {
        CAPTURE(n_threads);
        setup.n_threads = n_threads;
        CHECK(SameBits(DecodeAll(*test.model, tokens, setup), one));
      }
#endif
    }
  }
}

TEST_CASE("decoder: the logits of the last row alone equal those among all rows bit for bit") {
  for (const Path& path : kPaths) {
    const TestModel test = SmallModel(path.type);
    const size_t vocab_size = test.model->spec.vocab_size;
    const std::vector<uint32_t> tokens = RandomTokens(21, vocab_size, 3);
    const std::vector<float> all = DecodeAll(*test.model, tokens, SetupOf(path));
    ThreadPool pool(1);
    Decoder decoder(*test.model, {tokens.size(), tokens.size(), path.activations}, pool);
    KvCache cache(LayoutsOf(test.model->spec), {path.cache, path.cache}, tokens.size());
    const std::span<const uint32_t> ids = tokens;
    std::vector<float> last(vocab_size);
    // A chunk without logits, whose last layer only fills the cache, then the rest.
    decoder.Start({ids.first(13), 0, LogitsOf::kNone, nullptr}, cache);
    while (decoder.Step()) {
    }
    decoder.Start({ids.subspan(13), 13, LogitsOf::kLastRow, last.data()}, cache);
    while (decoder.Step()) {
    }
    CHECK(SameBits(last, {all.end() - static_cast<std::ptrdiff_t>(vocab_size), all.end()}));
  }
}

TEST_CASE("decoder: stopping after every layer while another decoder runs changes no bit") {
  const TestModel test = SmallModel(TensorType::kQ8_0);
  const size_t vocab_size = test.model->spec.vocab_size;
  ThreadPool pool(1);
  struct Lane {
    std::vector<uint32_t> tokens;
    Decoder decoder;
    KvCache cache;
    std::vector<float> logits;
  };
  std::vector<Lane> lanes;
  lanes.reserve(2);
  for (const uint32_t seed : {1u, 2u}) {
    std::vector<uint32_t> tokens = RandomTokens(10 + seed, vocab_size, seed);
    const DecoderOptions options = {tokens.size(), tokens.size(), ActivationType::kInt8};
    lanes.push_back({tokens, Decoder(*test.model, options, pool),
                     KvCache(LayoutsOf(test.model->spec), {}, tokens.size()),
                     std::vector<float>(tokens.size() * vocab_size)});
  }
  for (Lane& lane : lanes) {
    lane.decoder.Start({lane.tokens, 0, LogitsOf::kAllRows, lane.logits.data()}, lane.cache);
  }
  const size_t n_steps = test.model->layers.size() + 1;
  for (size_t step = 0; step < n_steps; ++step) {
    for (Lane& lane : lanes) CHECK(lane.decoder.Step() == (step + 1 < n_steps));
  }
  for (const Lane& lane : lanes) {
    DecodeSetup alone;
    alone.activations = ActivationType::kInt8;
    CHECK(SameBits(lane.logits, DecodeAll(*test.model, lane.tokens, alone)));
  }
}

TEST_CASE("decoder: Step after the last step does nothing") {
  const TestModel test = SmallModel(TensorType::kF32);
  ThreadPool pool(1);
  Decoder decoder(*test.model, {4, 4, ActivationType::kF32}, pool);
  KvCache cache(LayoutsOf(test.model->spec), {}, 4);
  CHECK_FALSE(decoder.Step());  // nothing was started
  std::vector<float> logits(test.model->spec.vocab_size);
  const std::vector<uint32_t> tokens = {1, 2, 3};
  decoder.Start({tokens, 0, LogitsOf::kLastRow, logits.data()}, cache);
  while (decoder.Step()) {
  }
  const std::vector<float> before = logits;
  CHECK_FALSE(decoder.Step());
  CHECK(SameBits(logits, before));
}

TEST_CASE(
    "decoder: WorkspaceBytes is what the constructor allocates, and a chunk allocates nothing") {
  for (const Path& path : kPaths) {
    for (const size_t n_threads : {1u, 2u}) {
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
      if (n_threads > 1) continue;
#endif
      const TestModel test = SmallModel(path.type);
      const DecoderOptions options = {64, 24, path.activations};
      ThreadPool pool(n_threads);
      KvCache cache(LayoutsOf(test.model->spec), {path.cache, path.cache}, options.n_ctx);
      std::vector<float> logits(test.model->spec.vocab_size * options.max_tokens);
      const std::vector<uint32_t> tokens = RandomTokens(24, test.model->spec.vocab_size, 4);

      const size_t bytes_before = AlignedBytesAllocated();
      Decoder decoder(*test.model, options, pool);
      const size_t allocated = AlignedBytesAllocated() - bytes_before;
      const size_t planned = Decoder::WorkspaceBytes(test.model->spec, options, n_threads);
      // Each of at most 7 buffers is rounded up to a cache line.
      CHECK(planned <= allocated);
      CHECK(allocated < planned + 7 * kAlignment);

      const size_t count_before = AllocationCount();
      decoder.Start({tokens, 0, LogitsOf::kAllRows, logits.data()}, cache);
      while (decoder.Step()) {
      }
      decoder.Start({{tokens.data(), 1}, 24, LogitsOf::kLastRow, logits.data()}, cache);
      while (decoder.Step()) {
      }
      CHECK(AllocationCount() == count_before);
    }
  }
}

TEST_CASE("decoder: layers with equal rotary specs share a table") {
  ModelSpec spec = SmallSpec(kHeads, 64, 64, 4);
  const DecoderOptions options = {256, 8, ActivationType::kInt8};
  const size_t shared = Decoder::WorkspaceBytes(spec, options, 1);
  spec.layers[2].rope.freq_base = 1e6;
  const size_t two_tables = Decoder::WorkspaceBytes(spec, options, 1);
  CHECK(two_tables - shared == RopeTable::Bytes(spec.layers[2].rope, options.n_ctx));
}

}  // namespace
}  // namespace headlight
