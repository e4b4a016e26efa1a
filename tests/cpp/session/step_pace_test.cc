#include "session/step_pace.h"

#include <doctest/doctest.h>

namespace headlight {
namespace {

ModelSpec SpecOf(size_t d_model, size_t d_ff, const HeadLayout& heads) {
  ModelSpec spec;
  spec.d_model = d_model;
  LayerSpec layer;
  layer.heads = heads;
  layer.d_ff = d_ff;
  spec.layers.assign(2, layer);
  return spec;
}

const ModelSpec kSmall = SpecOf(576, 1536, {9, 3, 64, 64});
const ModelSpec kLarge = SpecOf(2048, 8192, {32, 8, 64, 64});
// Attention's first products are one step however large they are.
const ModelSpec kWide = SpecOf(8192, 8192, {64, 64, 128, 128});

TEST_CASE("step_pace: the largest step decides the first chunk: of a wide model the shortest") {
  CHECK(StepPace(kSmall, 64).n_tokens() == 64);
  CHECK(StepPace(kLarge, 64).n_tokens() == 56);
  CHECK(StepPace(kWide, 64).n_tokens() == StepPace::kMinTokens);
  CHECK(StepPace(kWide, 3).n_tokens() == 3);  // never more than the context
  CHECK(StepPace(kSmall, 100).n_tokens() == 100);
}

TEST_CASE("step_pace: the longest step of a chunk decides the next, within its bounds") {
  StepPace pace(kSmall, 64);
  pace.Stepped(10.0);
  pace.Stepped(2.0 * StepPace::kStepMs);
  pace.Stepped(1.0);
  CHECK(pace.step_ms() == 1.0);
  pace.ChunkDone(64);
  CHECK(pace.n_tokens() == 32);
  pace.Stepped(1000.0);
  pace.ChunkDone(32);
  CHECK(pace.n_tokens() == StepPace::kMinTokens);
  pace.Stepped(0.0);  // a coarse clock
  pace.ChunkDone(8);
  CHECK(pace.n_tokens() == 64);
}

TEST_CASE("step_pace: a few last tokens say nothing of a whole chunk") {
  StepPace pace(kSmall, 64);
  pace.Stepped(20.0);
  pace.ChunkDone(1);
  CHECK(pace.n_tokens() == 64);
  pace.Stepped(1.0);
  pace.ChunkDone(64);
  CHECK(pace.n_tokens() == 64);
}

}  // namespace
}  // namespace headlight
