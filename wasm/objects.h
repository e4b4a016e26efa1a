// The objects that JavaScript holds. Each keeps what it depends on alive by shared_ptr, so the
// order of delete() calls does not matter. Their methods return val: results or errors as data
// (guard.h).
#ifndef HEADLIGHT_WASM_OBJECTS_H_
#define HEADLIGHT_WASM_OBJECTS_H_

#include <emscripten/val.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/aligned.h"
#include "base/parallel.h"
#include "lab/calibration.h"
#include "lab/token_scores.h"
#include "model/model_loader.h"
#include "session/session.h"
#include "simd/dot_form.h"

namespace headlight::wasm {

using emscripten::val;

// The thread pool and the probe's answer, shared by loaders, models and sessions.
struct RuntimeState {
  explicit RuntimeState(size_t n_threads, DotForm dot_form) : pool(n_threads), form(dot_form) {}
  ThreadPool pool;
  DotForm form;
};

class RuntimeObject {
 public:
  explicit RuntimeObject(std::shared_ptr<RuntimeState> state) : state_(std::move(state)) {}
  val CreateLoader() const;
  size_t NThreads() const { return state_->pool.n_threads(); }
  ThreadPool& pool() const { return state_->pool; }
  DotForm form() const { return state_->form; }

 private:
  std::shared_ptr<RuntimeState> state_;
};

// Bytes that one append() can take. A network chunk is 16-64 KiB and a file slice is cut to fit.
inline constexpr size_t kStageBytes = size_t{1} << 20;

class LoaderObject {
 public:
  explicit LoaderObject(std::shared_ptr<RuntimeState> runtime);
  size_t Stage() const { return reinterpret_cast<size_t>(stage_.data()); }
  size_t StageBytes() const { return kStageBytes; }
  val Append(size_t n_bytes);
  std::string State() const;
  double ShardBytes() const { return static_cast<double>(loader_.shard_bytes()); }
  val ModelInfo() const;
  val PlanSession(const val& options) const;
  val Metadata() const;
  val Strings(const std::string& key) const;
  val Numbers(const std::string& key) const;
  void DropMetadata() { loader_.DropMetadata(); }
  val Allocate();
  val SkipData();
  val BeginShard();
  size_t ShardCount() const { return loader_.n_shards(); }
  val Finish();

 private:
  std::shared_ptr<RuntimeState> runtime_;
  ModelLoader loader_;
  mutable AlignedArray<uint8_t> stage_;
};

class CalibrationObject {
 public:
  CalibrationObject(std::shared_ptr<RuntimeState> runtime, std::shared_ptr<const Model> model,
                    size_t n_tokens)
      : runtime_(std::move(runtime)), calibration_(std::move(model), n_tokens, runtime_->pool) {}
  val Segment(const val& tokens, bool check);
  val Advance(double budget_ms);
  val Layer(size_t layer) const;

 private:
  std::shared_ptr<RuntimeState> runtime_;  // before calibration_: the pool outlives it
  Calibration calibration_;
};

class ModelObject {
 public:
  ModelObject(std::shared_ptr<RuntimeState> runtime, std::shared_ptr<const Model> model)
      : runtime_(std::move(runtime)), model_(std::move(model)) {}
  val Info() const;
  val CreateSession(const val& options) const;
  val Edit(const val& edit) const;
  val AttentionTensor(size_t layer, size_t role, bool encoded) const;
  val SingularValuesOf(size_t layer, size_t role) const;
  val CreateCalibration(size_t n_tokens) const;
  val TraceBlock(const val& tokens, const val& options) const;

 private:
  const PackedMatrix& Matrix(size_t layer, size_t role) const;

  std::shared_ptr<RuntimeState> runtime_;
  std::shared_ptr<const Model> model_;
};

class SessionObject {
 public:
  SessionObject(std::shared_ptr<RuntimeState> runtime, std::shared_ptr<const Model> model,
                const SessionOptions& options);
  val Begin(const val& tokens, const val& options);
  val Advance(double budget_ms);
  void Cancel() { session_.Cancel(); }
  val Truncate(size_t n_tokens);
  val CopyFrom(SessionObject& other);
  val Save() const;
  val Restore(const val& bytes);
  val BeginForward(const val& tokens, bool all_positions, const val& capture);
  val AdvanceForward(double budget_ms);
  val BeginScores(const val& tokens);
  val AdvanceScores(double budget_ms);
  val History() const;
  val Stats() const;
  val Plan() const;

 private:
  std::shared_ptr<RuntimeState> runtime_;  // before session_: the pool outlives it
  Session session_;
  std::optional<ScoreRun> scores_;
};

}  // namespace headlight::wasm

#endif  // HEADLIGHT_WASM_OBJECTS_H_
