// PlanShard: where packed weights will lie, for models too large to be made in a test.
#include "model/load_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/aligned.h"
#include "gguf_reading.h"
#include "gguf_writer.h"
#include "support.h"

namespace headlight::testing {
namespace {

ModelSpec WideSpec(size_t n_layers, size_t d_model, size_t d_ff) {
  ModelSpec spec;
  spec.architecture = "llama";
  spec.d_model = d_model;
  spec.vocab_size = 32000;
  spec.layers.resize(n_layers);
  for (LayerSpec& layer : spec.layers) {
    layer.heads = {d_model / 64, d_model / 64, 64, 64};
    layer.d_ff = d_ff;
  }
  return spec;
}

// The header of a file with every tensor of the spec, and no data behind it.
GgufReader HeaderOf(const ModelSpec& spec, TensorType matrix_type) {
  GgufWriter writer;
  uint64_t offset = 0;
  for (size_t i = 0; i < NumPlaces(spec); ++i) {
    const TensorPlace place = PlaceAt(i);
    if (!UseOf(spec, place).always.Has(place.role)) continue;
    const TensorShape shape = ExpectedShape(spec, place);
    GgufTensorEntry entry;
    entry.name = TensorName(place);
    const TensorType type = place.is_vector() ? TensorType::kF32 : matrix_type;
    entry.type = static_cast<uint32_t>(type);
    entry.dims = {shape.n_cols};
    if (!place.is_vector()) entry.dims.push_back(shape.n_rows);
    entry.offset = offset;
    const TensorTypeTraits& traits = *FindTensorType(entry.type);
    offset += uint64_t{shape.n_rows} * shape.n_cols / traits.n_block * traits.block_bytes;
    offset = (offset + 31) / 32 * 32;
    writer.Tensor(std::move(entry));
  }
  return ReadHeader(writer.File());
}

LoadPlan Plan(const ModelSpec& spec, TensorType type) {
  std::vector<bool> is_placed(NumPlaces(spec), false);
  return PlanShard(spec, HeaderOf(spec, type), DotForm::kWide, is_placed);
}

}  // namespace

TEST_CASE("load_plan: blocks of bounded size that hold every tensor, aligned and apart") {
  const LoadPlan plan = Plan(WideSpec(24, 2048, 5632), TensorType::kQ8_0);  // about 1.2 GB
  REQUIRE(plan.arena_bytes.size() > 3);
  std::vector<std::vector<std::pair<size_t, size_t>>> used(plan.arena_bytes.size());
  size_t total = 0;
  for (const LoadJob& job : plan.jobs) {
    REQUIRE(job.parts.size() == 1);
    const LoadPart& part = job.parts[0];
    CHECK(part.arena_offset % kAlignment == 0);
    CHECK(part.arena_offset + part.bytes() <= plan.arena_bytes[part.i_arena]);
    used[part.i_arena].emplace_back(part.arena_offset, part.bytes());
  }
  for (size_t a = 0; a < used.size(); ++a) {
    CHECK(plan.arena_bytes[a] <= size_t{256} << 20);
    total += plan.arena_bytes[a];
    std::sort(used[a].begin(), used[a].end());
    for (size_t i = 1; i < used[a].size(); ++i) {
      CHECK(used[a][i].first >= used[a][i - 1].first + used[a][i - 1].second);
    }
  }
  CHECK(total == plan.weights_bytes);
}

TEST_CASE("load_plan: a matrix larger than a block has one of its own") {
  const LoadPlan plan = Plan(WideSpec(1, 4096, 65536), TensorType::kF16);  // 512 MiB each
  size_t n_large = 0;
  for (const LoadJob& job : plan.jobs) {
    const LoadPart& part = job.parts[0];
    if (part.bytes() <= size_t{256} << 20) continue;
    ++n_large;
    CHECK(part.arena_offset == 0);
    CHECK(plan.arena_bytes[part.i_arena] == part.bytes());
  }
  CHECK(n_large == 3);
}

TEST_CASE("load_plan: weights beyond the address space are OutOfMemory, with their size") {
  if constexpr (sizeof(size_t) > 4) {
    CHECK(Plan(WideSpec(4, 16384, 65536), TensorType::kF32).weights_bytes > uint64_t{50} << 30);
  } else {
    // One matrix too large; many that are too large together.
    for (const ModelSpec& spec : {WideSpec(1, 16384, 65536), WideSpec(200, 2048, 5632)}) {
      const Error error = ErrorOf([&] { Plan(spec, TensorType::kF32); });
      CHECK(error.code() == ErrorCode::kOutOfMemory);
      CHECK(std::stod(Detail(error, "needed_bytes")) > 4e9);
    }
  }
}

}  // namespace headlight::testing
