#include "model/model_loader.h"

#include <algorithm>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/content_hash.h"
#include "gguf/gguf_error.h"
#include "model/arch_table.h"
#include "model/load_plan.h"
#include "model/tensor_table.h"
#include "model/vector_writer.h"

namespace headlight {
namespace {

// Files of a split model: split.count is a 16-bit number, real ones stay below 200.
constexpr uint64_t kMaxShards = 1000;

// Takes the bytes of a tensor that is not used.
struct Skipper {
  uint64_t n_missing = 0;
  size_t Append(std::span<const uint8_t> bytes) {
    const size_t n = static_cast<size_t>(std::min<uint64_t>(n_missing, bytes.size()));
    n_missing -= n;
    return n;
  }
  bool done() const { return n_missing == 0; }
};

using Writer = std::variant<Skipper, VectorWriter, PackedWriter>;

}  // namespace

struct ModelLoader::Impl {
  DotForm form;
  State state = State::kHeader;
  std::optional<Error> failure;

  GgufReader first;    // header of the first shard: the model's key-values
  GgufReader further;  // header of the current shard, if that is not the first
  size_t i_shard = 0;
  size_t n_shards = 1;
  uint64_t n_tensors_seen = 0;
  std::optional<uint64_t> n_tensors_claimed;  // split.tensors.count

  std::shared_ptr<Model> model = std::make_shared<Model>();
  std::vector<bool> is_placed;      // by TensorPlace::index()
  std::vector<float> rope_factors;  // until they are complete and enter the spec

  LoadPlan plan;           // of the current shard
  size_t first_arena = 0;  // of the current shard, in model->storage
  uint64_t position = 0;   // bytes of the current shard's data section seen
  size_t i_job = 0;
  // Of that job, once position has reached it: which part and which of its matrices the writer is
  // at.
  size_t i_part = 0;
  size_t i_matrix = 0;
  Writer writer;
  bool writer_open = false;
  bool plans_only = false;  // SkipData() was called
  ContentHash content;

  explicit Impl(DotForm dot_form) : form(dot_form) {}

  GgufReader& reader() { return i_shard == 0 ? first : further; }
  const GgufReader& reader() const { return i_shard == 0 ? first : further; }

  size_t Append(std::span<const uint8_t> bytes);
  void Plan();
  void ReadSplit();
  void Allocate();
  void SkipData();
  void BeginShard();
  std::shared_ptr<const Model> Finish();
  size_t AppendData(std::span<const uint8_t> bytes);
  size_t AppendToJob(std::span<const uint8_t> bytes);
  void OpenWriter(const LoadJob& job);
  bool CloseWriter(const LoadJob& job);
  void ClosePart(const LoadPart& part);
  uint8_t* ArenaPlace(const LoadPart& part);
  void SetRopeFactors(TensorRole role);
  [[noreturn]] void ThrowIncomplete() const;

  // Runs a step; once one has failed, every later one fails the same way.
  template <typename F>
  auto Guarded(F&& step) {
    if (failure) throw *failure;
    try {
      return step();
    } catch (const Error& error) {
      failure = error;
      throw;
    } catch (const std::bad_alloc&) {
      failure = Error(ErrorCode::kOutOfMemory,
                      "no memory for the model's directory; use a smaller model");
      throw *failure;
    }
  }
};

size_t ModelLoader::Impl::Append(std::span<const uint8_t> bytes) {
  size_t n_taken = 0;
  if (state == State::kHeader) {
    n_taken = reader().Append(bytes);
    if (reader().header_done()) Plan();
  }
  if (state == State::kData) n_taken += AppendData(bytes.subspan(n_taken));
  content.Update(bytes.first(n_taken));
  if (state == State::kShardDone) n_taken = bytes.size();  // whatever follows the last tensor
  return n_taken;
}

void ModelLoader::Impl::Plan() {
  ReadSplit();
  if (i_shard == 0) {
    model->spec = BuildModelSpec(first);
    is_placed.assign(NumPlaces(model->spec), false);
    model->layers.resize(model->spec.layers.size());
  }
  plan = PlanShard(model->spec, reader(), form, is_placed);
  n_tensors_seen += plan.jobs.size();
  if (plan.weights_bytes > std::numeric_limits<size_t>::max() - model->weights_bytes) {
    throw Error(
        ErrorCode::kOutOfMemory,
        "the weights of all files are more than this build can address; use a smaller model");
  }
  model->weights_bytes += plan.weights_bytes;
  model->spec.tied_head = !is_placed[TensorPlace{TensorRole::kHead, 0}.index()];
  if (i_shard + 1 == n_shards) {
    if (n_tensors_claimed && *n_tensors_claimed != n_tensors_seen) {
      ThrowBadModel("the files of the split model hold " + std::to_string(n_tensors_seen) +
                        " tensors, key "
                        "'split.tensors.count' says " +
                        std::to_string(*n_tensors_claimed) + "; fetch the files again",
                    {{"key", "split.tensors.count"}});
    }
    SettleTensors(is_placed, model->spec);
  }
  state = State::kPlanned;
}

void ModelLoader::Impl::ReadSplit() {
  const GgufReader& header = reader();
  const uint64_t count = std::max<uint64_t>(header.GetUint("split.count", 1), 1);
  const uint64_t number = header.GetUint("split.no", 0);
  if (count > kMaxShards) {
    ThrowBadModel("key 'split.count' is " + std::to_string(count) + ", at most " +
                      std::to_string(kMaxShards) +
                      " files are accepted; the file is damaged, fetch it again",
                  {{"key", "split.count"}});
  }
  if (i_shard == 0) {
    n_shards = static_cast<size_t>(count);
    if (n_shards > 1 && header.Has("split.tensors.count"))
      n_tensors_claimed = header.GetUint("split.tensors.count");
  } else if (count != n_shards) {
    ThrowBadModel("file " + std::to_string(i_shard + 1) + " belongs to a model split in " +
                      std::to_string(count) +
                      " files (key 'split.count'), the first file to one of " +
                      std::to_string(n_shards) + "; give the files of one model",
                  {{"key", "split.count"}});
  }
  if (number == i_shard) return;
  ThrowBadModel("this is file " + std::to_string(number + 1) + " of " + std::to_string(count) +
                    " of a split model (key 'split.no'), expected file " +
                    std::to_string(i_shard + 1) + "; give the files in order",
                {{"key", "split.no"}});
}

void ModelLoader::Impl::Allocate() {
  if (state != State::kPlanned) {
    throw Error(ErrorCode::kBadOption,
                "Allocate() is for a loader whose header is complete and that has no memory yet");
  }
  first_arena = model->storage.size();
  model->storage.reserve(first_arena + plan.arena_bytes.size());
  for (const size_t n_bytes : plan.arena_bytes) model->storage.emplace_back(n_bytes);
  position = 0;
  i_job = i_part = i_matrix = 0;
  writer_open = false;
  state = plan.jobs.empty() ? State::kShardDone : State::kData;
}

void ModelLoader::Impl::SkipData() {
  if (state != State::kPlanned) {
    throw Error(ErrorCode::kBadOption,
                "SkipData() is for a loader whose header is complete and that has no memory yet");
  }
  plans_only = true;
  state = State::kShardDone;
}

void ModelLoader::Impl::BeginShard() {
  if (state != State::kShardDone || i_shard + 1 == n_shards) {
    if (state == State::kShardDone) {
      throw Error(ErrorCode::kBadOption,
                  "the model consists of " + std::to_string(n_shards) +
                      " file(s) and all were given; leave the further files out");
    }
    ThrowIncomplete();
  }
  further = GgufReader();
  plan = {};
  position = 0;
  i_job = 0;
  ++i_shard;
  state = State::kHeader;
}

size_t ModelLoader::Impl::AppendData(std::span<const uint8_t> bytes) {
  const size_t n_given = bytes.size();
  while (!bytes.empty() && i_job < plan.jobs.size()) {
    const LoadJob& job = plan.jobs[i_job];
    size_t n = 0;
    if (position < job.offset) {  // padding between tensors
      n = static_cast<size_t>(std::min<uint64_t>(job.offset - position, bytes.size()));
    } else {
      n = AppendToJob(bytes);
    }
    bytes = bytes.subspan(n);
    position += n;
  }
  if (i_job == plan.jobs.size()) state = State::kShardDone;
  return n_given - bytes.size();
}

size_t ModelLoader::Impl::AppendToJob(std::span<const uint8_t> bytes) {
  const LoadJob& job = plan.jobs[i_job];
  try {
    if (!writer_open) OpenWriter(job);
    const size_t n = std::visit([&](auto& w) { return w.Append(bytes); }, writer);
    if (std::visit([](const auto& w) { return w.done(); }, writer)) {
      writer_open = false;
      if (CloseWriter(job)) ++i_job;
    }
    return n;
  } catch (const Error& error) {
    Error::Details details = error.details();
    details.emplace_back("tensor", job.name);
    throw Error(error.code(), "tensor " + Quoted(job.name) + ": " + error.message(),
                std::move(details));
  }
}

uint8_t* ModelLoader::Impl::ArenaPlace(const LoadPart& part) {
  return model->storage[first_arena + part.i_arena].data() + part.arena_offset;
}

void ModelLoader::Impl::OpenWriter(const LoadJob& job) {
  writer_open = true;
  if (job.parts.empty()) {
    writer = Skipper{job.file_bytes};
    return;
  }
  const LoadPart& part = job.parts[i_part];
  if (part.place.is_rope_factors()) {
    rope_factors.resize(part.n_floats);
    writer = VectorWriter(job.type, part.n_floats, rope_factors.data());
  } else if (part.place.is_vector()) {
    writer = VectorWriter(job.type, part.n_floats, reinterpret_cast<float*>(ArenaPlace(part)));
  } else {
    writer = PackedWriter(job.type, part.shape, ArenaPlace(part) + i_matrix * part.shape.bytes);
  }
}

// Goes on to the next matrix or part; returns whether the tensor is complete.
bool ModelLoader::Impl::CloseWriter(const LoadJob& job) {
  if (job.parts.empty()) return true;
  if (++i_matrix < job.parts[i_part].n_matrices) return false;
  i_matrix = 0;
  ClosePart(job.parts[i_part]);
  if (++i_part < job.parts.size()) return false;
  i_part = 0;
  return true;
}

void ModelLoader::Impl::ClosePart(const LoadPart& part) {
  if (part.place.is_rope_factors()) return SetRopeFactors(part.place.role);
  const uint8_t* data = ArenaPlace(part);
  const WeightSlot slot = SlotOf(*model, part.place);
  if (auto* const* matrix = std::get_if<PackedMatrix*>(&slot)) **matrix = {part.shape, data};
  if (auto* const* stack = std::get_if<PackedStack*>(&slot)) **stack = {part.shape, data};
  if (auto* const* vector = std::get_if<const float**>(&slot))
    **vector = reinterpret_cast<const float*>(data);
}

void ModelLoader::Impl::SetRopeFactors(TensorRole role) {
  for (size_t i = 0; i < rope_factors.size(); ++i) {
    if (rope_factors[i] > 0.0f) continue;
    ThrowBadModel("factor " + std::to_string(i) + " is " + std::to_string(rope_factors[i]) +
                      ", expected a number above 0; the file is damaged, fetch or convert it again",
                  {{"row", "0"}, {"column", std::to_string(i)}});
  }
  const bool is_long = role == TensorRole::kRopeFactorsLong;
  for (LayerSpec& layer : model->spec.layers) {
    if (layer.rope.style == RopeStyle::kNone) continue;
    (is_long ? layer.rope.long_factors : layer.rope.freq_factors) = rope_factors;
  }
}

void ModelLoader::Impl::ThrowIncomplete() const {
  reader().Finish();  // throws while the header is incomplete
  const std::string file =
      n_shards > 1 ? "file " + std::to_string(i_shard + 1) + " of the model" : "the file";
  const uint64_t end = reader().data_offset() + reader().data_bytes();
  const uint64_t at = reader().data_offset() + position;
  const std::string tensor = i_job < plan.jobs.size() ? plan.jobs[i_job].name : "";
  ThrowBadModel(file + " ends at byte " + std::to_string(at) + " of " + std::to_string(end) +
                    ", before the end of tensor " + Quoted(tensor) +
                    ": the download is incomplete, fetch it again",
                {{"offset", std::to_string(at)}, {"tensor", tensor}});
}

std::shared_ptr<const Model> ModelLoader::Impl::Finish() {
  if (plans_only) {
    throw Error(ErrorCode::kBadOption,
                "the data of this model were left out; load it with a loader of its own");
  }
  if (state != State::kShardDone) ThrowIncomplete();
  if (i_shard + 1 < n_shards) {
    ThrowBadModel("the model is split in " + std::to_string(n_shards) + " files and " +
                      std::to_string(i_shard + 1) + " were given; give all of them, in order",
                  {{"key", "split.count"}});
  }
  if (model->spec.tied_head) model->head = model->embedding;
  model->content_hash = content.Digest();
  return model;
}

ModelLoader::ModelLoader(DotForm form) : impl_(std::make_unique<Impl>(form)) {}
ModelLoader::~ModelLoader() = default;

size_t ModelLoader::Append(std::span<const uint8_t> bytes) {
  return impl_->Guarded([&] { return impl_->Append(bytes); });
}

ModelLoader::State ModelLoader::state() const { return impl_->state; }

void ModelLoader::Allocate() {
  impl_->Guarded([&] { impl_->Allocate(); });
}

void ModelLoader::SkipData() {
  impl_->Guarded([&] { impl_->SkipData(); });
}

void ModelLoader::BeginShard() {
  impl_->Guarded([&] { impl_->BeginShard(); });
}

size_t ModelLoader::n_shards() const { return impl_->n_shards; }

uint64_t ModelLoader::shard_bytes() const {
  return impl_->reader().data_offset() + impl_->reader().data_bytes();
}

const GgufReader& ModelLoader::metadata() const { return impl_->first; }

void ModelLoader::DropMetadata() {
  std::vector<std::string> arrays;
  for (const auto& [key, value] : impl_->first.values()) {
    if (std::holds_alternative<GgufStringArray>(value) ||
        std::holds_alternative<GgufNumberArray>(value)) {
      arrays.push_back(key);
    }
  }
  for (const std::string& key : arrays) impl_->first.Drop(key);
}

const ModelSpec& ModelLoader::spec() const { return impl_->model->spec; }

size_t ModelLoader::weights_bytes() const { return impl_->model->weights_bytes; }

std::shared_ptr<const Model> ModelLoader::Finish() {
  return impl_->Guarded([&] { return impl_->Finish(); });
}

}  // namespace headlight
