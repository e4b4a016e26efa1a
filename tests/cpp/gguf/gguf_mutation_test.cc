// The poor man's fuzzer: seeded damage to a small right file, thousands of times, through the
// reader and the whole loader. Whatever comes out must be a model or a typed error. The unabridged
// form is tests/fuzz/gguf_fuzz.cc.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gguf_writer.h"
#include "model/model_loader.h"
#include "support.h"

namespace headlight::testing {
namespace {

// Numbers at which counts, lengths and offsets go wrong.
constexpr uint64_t kEdges[] = {0,
                               1,
                               2,
                               7,
                               0x7F,
                               0x80,
                               0xFF,
                               0xFFFF,
                               0x10000,
                               0x7FFFFFFF,
                               0x80000000,
                               0xFFFFFFFF,
                               uint64_t{1} << 53,
                               uint64_t{1} << 60,
                               ~uint64_t{0} >> 1,
                               ~uint64_t{0}};

void Mutate(Random& random, size_t n_interesting, std::vector<uint8_t>& file) {
  const size_t n_edits = 1 + random.Below(4);
  for (size_t i = 0; i < n_edits; ++i) {
    const size_t at = random.Below(std::min(n_interesting, file.size()));
    const auto place = file.begin() + static_cast<ptrdiff_t>(at);
    switch (random.Below(6)) {
      case 0:  // one bit
        file[at] ^= static_cast<uint8_t>(1u << random.Below(8));
        break;
      case 1:  // any byte
        file[at] = static_cast<uint8_t>(random.Bits());
        break;
      case 2: {  // a number at an edge, 1 to 8 bytes wide
        const uint64_t edge = kEdges[random.Below(std::size(kEdges))];
        const size_t width = std::min<size_t>(size_t{1} << random.Below(4), file.size() - at);
        for (size_t b = 0; b < width; ++b) file[at + b] = static_cast<uint8_t>(edge >> (8 * b));
        break;
      }
      case 3:  // bytes more
        file.insert(place, 1 + random.Below(9), static_cast<uint8_t>(random.Bits()));
        break;
      case 4:  // bytes less
        file.erase(place, place + static_cast<ptrdiff_t>(
                                      std::min<size_t>(1 + random.Below(9), file.size() - at - 1)));
        break;
      default:  // a piece of the file somewhere else
        const size_t n = std::min<size_t>(1 + random.Below(40), file.size() - at);
        std::copy_n(file.begin() + static_cast<ptrdiff_t>(random.Below(file.size() - n + 1)), n,
                    place);
        break;
    }
  }
}

// Returns the code of the error, or nothing if the file still loads.
std::optional<ErrorCode> Load(std::span<const uint8_t> file, size_t chunk) {
  try {
    ModelLoader loader(DotForm::kWide);
    while (!file.empty()) {
      const size_t n = loader.Append(file.first(std::min(chunk, file.size())));
      file = file.subspan(n);
      if (loader.state() == ModelLoader::State::kPlanned) loader.Allocate();
    }
    loader.Finish();
  } catch (const Error& error) {
    CHECK_FALSE(error.message().empty());
    CHECK(error.message().size() < 2000);
    return error.code();
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("gguf: 20,000 damaged files give a model or a typed error") {
  GgufModelOptions options;
  options.n_layers = 1;
  options.d_model = 8;
  options.heads = {2, 1, 4, 4};
  options.d_ff = 8;
  options.vocab_size = 6;
  GgufModel model = MakeGgufModel(options);
  model.writer.Uints("llama.attention.head_count_kv", {1}).Bool("llama.attention.causal", true);
  const std::vector<uint8_t> sound = model.writer.File();
  const size_t n_header = model.writer.Header().size();
  REQUIRE_FALSE(Load(sound, sound.size()).has_value());

  size_t n_loaded = 0, n_bad = 0, n_unsupported = 0;
  for (uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed);
    std::vector<uint8_t> file = sound;
    Mutate(random, n_header, file);
    INFO("seed ", seed);
    const std::optional<ErrorCode> code = Load(file, 1 + random.Below(300));
    if (!code) {
      ++n_loaded;
    } else {
      const bool expected = code == ErrorCode::kBadModel || code == ErrorCode::kUnsupported ||
                            code == ErrorCode::kOutOfMemory;
      CHECK(expected);
      ++(code == ErrorCode::kBadModel ? n_bad : n_unsupported);
    }
  }
  // The damage reaches all ways out; most of it is noticed.
  CHECK(n_loaded > 100);
  CHECK(n_unsupported > 500);
  CHECK(n_bad > 10000);
}

}  // namespace headlight::testing
