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

// Several blocks instead of one, each (but for larger single matrices) of at most this: they fit
// into the holes of a 32-bit address space, and a pointer difference stays within 31 bits.
constexpr size_t kMaxArenaBytes = size_t{256} << 20;

[[noreturn]] void ThrowTooLarge(uint64_t n_bytes) {
  throw Error(ErrorCode::kOutOfMemory,
              "the model's weights need at least " + std::to_string(n_bytes) +
                  " bytes, more than this build can address; use a smaller model",
              {{"needed_bytes", std::to_string(n_bytes)}});
}

// Sets the job's shape or length and returns the bytes it needs in an arena.
size_t PlanJob(const ModelSpec& spec, const TensorPlace& place, DotForm form, LoadJob& job) {
  // Padding can double a small matrix, no large one.
  if (job.file_bytes > std::numeric_limits<size_t>::max() / 2) ThrowTooLarge(job.file_bytes);
  const TensorShape shape = ExpectedShape(spec, place);
  try {
    if (place.is_vector()) {
      VectorWriter::CheckType(job.type);
      job.n_floats = shape.n_cols;
      if (place.role == TensorRole::kRopeFactors) return 0;
      return RoundUp(job.n_floats * sizeof(float), kAlignment);
    }
    job.shape = PlanPacked(job.type, shape.n_rows, shape.n_cols, form);
    return job.shape.bytes;
  } catch (const Error& error) {
    Rethrow(error, job.name);
  }
}

void PlaceInArena(size_t n_bytes, LoadPlan& plan, LoadJob& job) {
  const uint64_t total = uint64_t{plan.weights_bytes} + n_bytes;
  if (total > std::numeric_limits<size_t>::max()) ThrowTooLarge(total);
  plan.weights_bytes = static_cast<size_t>(total);
  const bool fits = !plan.arena_bytes.empty() && plan.arena_bytes.back() <= kMaxArenaBytes &&
                    n_bytes <= kMaxArenaBytes - plan.arena_bytes.back();
  if (!fits) plan.arena_bytes.push_back(0);
  job.i_arena = plan.arena_bytes.size() - 1;
  job.arena_offset = plan.arena_bytes.back();
  plan.arena_bytes.back() += n_bytes;
}

}  // namespace

LoadPlan PlanShard(const ModelSpec& spec, const GgufReader& header, DotForm form,
                   std::vector<bool>& is_placed) {
  LoadPlan plan;
  plan.jobs.reserve(header.tensors().size());
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
      const size_t n_bytes = PlanJob(spec, *job.place, form, job);
      if (n_bytes > 0) PlaceInArena(n_bytes, plan, job);
    }
    plan.jobs.push_back(std::move(job));
  }
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
