#include "model/load_plan.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/aligned.h"
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

// Sets the job's shape or length and returns the bytes it needs in the arena.
size_t PlanJob(const ModelSpec& spec, DotForm form, LoadJob& job) {
  const TensorShape shape = ExpectedShape(spec, *job.place);
  try {
    if (job.place->is_vector()) {
      VectorWriter::CheckType(job.type);
      job.n_floats = shape.n_cols;
      if (job.place->role == TensorRole::kRopeFactors) return 0;
      return RoundUp(job.n_floats * sizeof(float), kAlignment);
    }
    job.shape = PlanPacked(job.type, shape.n_rows, shape.n_cols, form);
    return job.shape.bytes;
  } catch (const Error& error) {
    Rethrow(error, job.name);
  }
}

}  // namespace

LoadPlan PlanShard(const ModelSpec& spec, const GgufReader& header, DotForm form,
                   std::vector<bool>& is_placed) {
  LoadPlan plan;
  plan.jobs.reserve(header.tensors().size());
  uint64_t arena_bytes = 0;
  for (const GgufTensor& tensor : header.tensors()) {
    LoadJob job;
    job.name = tensor.name;
    job.type = tensor.type;
    job.offset = tensor.offset;
    job.file_bytes = tensor.bytes;
    job.place = FindPlace(spec, tensor);
    if (job.place) {
      if (is_placed[job.place->index()]) {
        ThrowBadModel("tensor " + Quoted(tensor.name) +
                          " occurs in two files of the split model; fetch the files again",
                      {{"tensor", tensor.name}});
      }
      is_placed[job.place->index()] = true;
      job.arena_offset = static_cast<size_t>(arena_bytes);
      arena_bytes += PlanJob(spec, form, job);
      if (arena_bytes > std::numeric_limits<size_t>::max() / 2) {
        throw Error(ErrorCode::kOutOfMemory,
                    "the packed weights need more than " + std::to_string(arena_bytes) +
                        " bytes, beyond what this build can address; use a smaller model",
                    {{"needed_bytes", std::to_string(arena_bytes)}});
      }
    }
    plan.jobs.push_back(std::move(job));
  }
  plan.arena_bytes = static_cast<size_t>(arena_bytes);
  std::sort(plan.jobs.begin(), plan.jobs.end(),
            [](const LoadJob& a, const LoadJob& b) { return a.offset < b.offset; });
  return plan;
}

void RequireAllPlaced(const ModelSpec& spec, const std::vector<bool>& is_placed) {
  for (size_t i = 0; i < NumPlaces(spec); ++i) {
    const TensorPlace place = PlaceAt(i);
    if (is_placed[i] || place.is_optional()) continue;
    const std::string name = TensorName(place);
    ThrowBadModel(
        "tensor " + Quoted(name) +
            " is missing; the file is incomplete or holds no whole model, convert it again",
        {{"tensor", name}});
  }
}

}  // namespace headlight
