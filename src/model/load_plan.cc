#include "model/load_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/aligned.h"
#include "base/sort.h"
#include "gguf/gguf_error.h"
#include "model/vector_writer.h"

namespace headlight {
namespace {

// Same error, with the tensor's name in front.
[[noreturn]] void Rethrow(const Error& error, const std::string& tensor) {
  Error::Details details = error.details();
  details.emplace_back("tensor", tensor);
  throw Error(error.code(), "tensor " + Quoted(tensor) + ": " + error.message(),
              std::move(details));
}

// Several blocks instead of one, each (but for larger single matrices) of at most this: they fit
// into the holes of a 32-bit address space, and a pointer difference stays within 31 bits.
constexpr size_t kMaxArenaBytes = size_t{256} << 20;

[[noreturn]] void ThrowTooLarge(uint64_t n_bytes) {
  throw Error(ErrorCode::kOutOfMemory,
              "the model's weights need at least " + std::to_string(n_bytes) +
                  " bytes, more than this build can address; use a smaller model",
              {{"needed_bytes", std::to_string(n_bytes)}});
}

// Everything about a part but where its packed form goes.
LoadPart PlanPart(const ModelSpec& spec, const TensorPlace& place, const LoadJob& job,
                  DotForm form) {
  const TensorShape shape = ExpectedShape(spec, place);
  LoadPart part;
  part.place = place;
  if (place.is_vector()) {
    VectorWriter::CheckType(job.type);
    part.n_floats = shape.n_rows * shape.n_cols;
    return part;
  }
  part.shape = PlanPacked(job.type, shape.n_rows, shape.n_cols, form);
  part.n_matrices = shape.n_matrices;
  // Padding can double a small matrix, no large one.
  if (part.shape.bytes > std::numeric_limits<size_t>::max() / 2 / part.n_matrices)
    ThrowTooLarge(job.file_bytes);
  return part;
}

void PlaceInArena(LoadPlan& plan, LoadPart& part) {
  const size_t n_bytes = part.bytes();
  if (n_bytes == 0) return;
  const uint64_t total = uint64_t{plan.weights_bytes} + n_bytes;
  if (total > std::numeric_limits<size_t>::max()) ThrowTooLarge(total);
  plan.weights_bytes = static_cast<size_t>(total);
  const bool fits = !plan.arena_bytes.empty() && plan.arena_bytes.back() <= kMaxArenaBytes &&
                    n_bytes <= kMaxArenaBytes - plan.arena_bytes.back();
  if (!fits) plan.arena_bytes.push_back(0);
  part.i_arena = plan.arena_bytes.size() - 1;
  part.arena_offset = plan.arena_bytes.back();
  plan.arena_bytes.back() += n_bytes;
}

}  // namespace

size_t LoadPart::bytes() const {
  if (place.is_rope_factors()) return 0;
  if (place.is_vector()) return RoundUp(n_floats * sizeof(float), kAlignment);
  return shape.bytes * n_matrices;
}

LoadPlan PlanShard(const ModelSpec& spec, const GgufReader& header, DotForm form,
                   std::vector<bool>& is_placed) {
  LoadPlan plan;
  plan.jobs.reserve(header.tensors().size());
  for (const GgufTensor& tensor : header.tensors()) {
    LoadJob job{tensor.name, tensor.type, tensor.offset, tensor.bytes, {}};
    const std::vector<TensorPlace> places = FindPlaces(spec, tensor);
    if (!places.empty() && job.file_bytes > std::numeric_limits<size_t>::max() / 2)
      ThrowTooLarge(job.file_bytes);
    for (const TensorPlace& place : places) {
      if (is_placed[place.index()]) {
        ThrowBadModel("tensor " + Quoted(tensor.name) + " holds " + Quoted(TensorName(place)) +
                          ", which another tensor of the model holds too; if they are"
                          " in two files of the split model, fetch those again, else convert the"
                          " model again",
                      {{"tensor", tensor.name}});
      }
      is_placed[place.index()] = true;
      try {
        job.parts.push_back(PlanPart(spec, place, job, form));
      } catch (const Error& error) {
        Rethrow(error, job.name);
      }
      PlaceInArena(plan, job.parts.back());
    }
    plan.jobs.push_back(std::move(job));
  }
  HeapSort(plan.jobs, [](const LoadJob& a, const LoadJob& b) { return a.offset < b.offset; });
  return plan;
}

void SettleTensors(const std::vector<bool>& is_placed, ModelSpec& spec) {
  const auto has = [&](TensorRole role, size_t layer) {
    return is_placed[TensorPlace{role, layer}.index()];
  };
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    LayerSpec& layer = spec.layers[i];
    // Keys and values of a latent are apart, or joined; where the second norm is left open, it
    // tells whether the branches are parallel.
    const bool is_joined = has(TensorRole::kKvB, i);
    if (layer.latent.rank != 0 && !is_joined) {
      layer.tensors.always.Add(TensorRole::kKB);
      layer.tensors.always.Add(TensorRole::kVB);
    }
    if (layer.tensors.maybe.Has(TensorRole::kFeedForwardNorm)) {
      layer.is_parallel = !has(TensorRole::kFeedForwardNorm, i);
    }
  }
  for (size_t i = 0; i < NumPlaces(spec); ++i) {
    const TensorPlace place = PlaceAt(i);
    if (is_placed[i] || !UseOf(spec, place).always.Has(place.role)) continue;
    const std::string name = TensorName(place);
    ThrowBadModel(
        "tensor " + Quoted(name) +
            " is missing; the file is incomplete or holds no whole model, convert it again",
        {{"tensor", name}});
  }
  spec.tensors = {};
  for (LayerSpec& layer : spec.layers) layer.tensors = {};
  for (size_t i = 0; i < NumPlaces(spec); ++i) {
    const TensorPlace place = PlaceAt(i);
    if (is_placed[i]) UseOf(spec, place).always.Add(place.role);
  }
}

}  // namespace headlight
