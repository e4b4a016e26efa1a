// libFuzzer target: what crosses from JavaScript into the core (wasm/wire.h, bind_lab.cc,
// bind_attend.cc), as the plain structs that it becomes: any numbers and lists for sessions,
// sampling, captures, edits and attention calls. Each is refused by a typed error or carried out.
// The reading of the JavaScript values themselves: tests/web/module/hostile_values.test.ts.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "attention/attention.h"
#include "base/error.h"
#include "lab/calibration.h"
#include "lab/model_edit.h"
#include "lab/token_scores.h"
#include "oracle/test_model.h"
#include "session/session.h"

namespace {

using namespace headlight;

// An honest context may take gigabytes; the fuzzer stops here.
constexpr size_t kMaxSessionBytes = 8u << 20;
// Of a run: with an eviction it may go on for ever.
constexpr int kMaxSteps = 12;
constexpr CacheType kCacheTypes[] = {CacheType::kF32, CacheType::kF16, CacheType::kInt8};

class Options {
 public:
  explicit Options(FuzzedDataProvider& in) : in_(in) {}

  // As wire.cc reads them: any 32-bit number, most often a small one.
  size_t Size() {
    return in_.ConsumeBool() ? in_.ConsumeIntegralInRange<uint32_t>(0, 40)
                             : in_.ConsumeIntegral<uint32_t>();
  }
  float Float() {
    constexpr float kSpecial[] = {0.0f,
                                  1.0f,
                                  -1.0f,
                                  std::numeric_limits<float>::infinity(),
                                  -std::numeric_limits<float>::infinity(),
                                  std::numeric_limits<float>::quiet_NaN()};
    if (in_.ConsumeBool()) return in_.PickValueInArray(kSpecial);
    return in_.ConsumeFloatingPointInRange<float>(-3.0f, 3.0f);
  }
  std::vector<uint32_t> Sizes(size_t most) {
    std::vector<uint32_t> out(in_.ConsumeIntegralInRange<size_t>(0, most));
    for (uint32_t& value : out) value = static_cast<uint32_t>(Size());
    return out;
  }
  std::vector<float> Floats(size_t n) {
    std::vector<float> out(n);
    for (float& value : out) value = Float();
    return out;
  }
  bool Bool() { return in_.ConsumeBool(); }
  template <typename T>
  T EnumBelow(int n) {
    return static_cast<T>(in_.ConsumeIntegralInRange<int>(0, n - 1));
  }

  SessionOptions Session() {
    SessionOptions out;
    out.n_ctx = Size();
    out.kv_format = {in_.PickValueInArray(kCacheTypes), in_.PickValueInArray(kCacheTypes)};
    out.activations = Bool() ? ActivationType::kF32 : ActivationType::kInt8;
    out.eviction.policy = EnumBelow<EvictionPolicy>(4);
    out.eviction.n_sinks = Size();
    out.eviction.window = Size();
    out.eviction.budget = Size();
    return out;
  }
  std::optional<CaptureRequest> Capture() {
    if (Bool()) return std::nullopt;
    CaptureRequest out;
    out.what.stage = EnumBelow<CaptureStage>(4);
    out.what.layers = Sizes(4);
    out.what.all_heads = Bool();
    out.what.heads = Sizes(4);
    out.what.head_outputs = Bool();
    out.what.residual_norms = Bool();
    out.what.lens_layers = Sizes(4);
    out.rows_of = EnumBelow<CaptureRequest::RowsOf>(3);
    out.rows = Sizes(4);
    return out;
  }
  GenerateOptions Generate() {
    GenerateOptions out;
    SamplerOptions& sampler = out.sampler;
    sampler.temperature = Float();
    sampler.top_k = static_cast<uint32_t>(Size());
    sampler.top_p = Float();
    sampler.min_p = Float();
    sampler.repetition_penalty = Float();
    sampler.frequency_penalty = Float();
    sampler.presence_penalty = Float();
    sampler.penalty_last_n = static_cast<uint32_t>(Size());
    sampler.seed = Size();
    for (const uint32_t id : Sizes(4)) sampler.logit_bias.emplace_back(id, Float());
    sampler.n_logprobs = static_cast<uint32_t>(Size());
    out.max_tokens = Size();
    out.stop_tokens = Sizes(4);
    out.ignore_stop_tokens = Bool();
    out.capture = Capture();
    return out;
  }
  ModelEdit Edit() {
    ModelEdit out;
    for (const uint32_t layer : Sizes(3)) out.layers.push_back(layer);
    out.n_kv_heads = Size();
    out.d_qk = Size();
    out.kept_pairs = Sizes(24);
    out.d_v = Size();
    out.window = Size();
    out.n_sinks = Size();
    for (const uint32_t head : Sizes(3)) out.pruned.push_back({Size(), head});
    for (const uint32_t head : Sizes(3)) {
      HeadFix fix;
      fix.id = {Size(), head};
      fix.pattern.kind = EnumBelow<PatternKind>(4);
      fix.pattern.offset = Size();
      fix.pattern.first = Float();
      fix.pattern.by_offset = Floats(in_.ConsumeIntegralInRange<size_t>(0, 6));
      out.fixed.push_back(fix);
    }
    return out;
  }

 private:
  FuzzedDataProvider& in_;
};

// Made once.
struct Shared {
  Shared() {
    ModelSpec spec = SmallSpec({4, 2, 24, 32}, 64, 96, 2);
    spec.n_ctx_train = 64;
    model = MakeTestModel(spec, TensorType::kQ8_0, 21).model;
  }
  ThreadPool pool{1};
  std::shared_ptr<const Model> model;
};

std::unique_ptr<Session> MakeSession(Shared& shared, std::shared_ptr<const Model> model,
                                     const SessionOptions& options) {
  const SessionPlan plan = PlanSession(model->spec, options, 1);
  if (plan.kv_cache_bytes > kMaxSessionBytes || plan.workspace_bytes > kMaxSessionBytes) {
    return nullptr;
  }
  return std::make_unique<Session>(std::move(model), options, shared.pool);
}

void Generate(Options& in, Session& session) {
  GenerateOptions options = in.Generate();
  session.Begin(in.Sizes(70), options);
  for (int i = 0; i < kMaxSteps && !session.Advance(0.0).done; ++i) continue;
  session.Truncate(in.Size());
}

void Forward(Options& in, Session& session) {
  const std::optional<CaptureRequest> capture = in.Capture();
  const bool all = in.Bool();
  session.BeginForward(in.Sizes(70), all, capture.has_value() ? &*capture : nullptr);
  while (!session.AdvanceForward(0.0).has_value()) continue;
  ScoreRun(session, in.Sizes(8)).Advance();
}

void Edit(Options& in, Shared& shared) {
  const std::shared_ptr<const Model> edited = EditModel(shared.model, in.Edit());
  SessionOptions options;
  options.n_ctx = 48;
  const std::unique_ptr<Session> session = MakeSession(shared, edited, options);
  if (session == nullptr) std::abort();
  session->Logits(RandomTokens(40, edited->spec.vocab_size, 3), true);
  Calibration calibration(edited, in.Size(), shared.pool);
  calibration.BeginSegment(in.Sizes(8), in.Bool());
  calibration.Advance();
}

void AttendOnce(Options& in, Shared& shared) {
  AttentionSpec spec;
  spec.layout = {1 + in.Size() % 6, 1 + in.Size() % 3, 1 + in.Size() % 40, 1 + in.Size() % 40};
  spec.scale = in.Float();
  spec.window = in.Size();
  spec.n_sinks = in.Size();
  spec.softcap = in.Float();
  spec.causal = in.Bool();
  const std::vector<float> per_head = in.Floats(spec.layout.n_q_heads);
  spec.alibi_slopes = in.Bool() ? per_head.data() : nullptr;
  spec.sink_logits = in.Bool() ? per_head.data() : nullptr;
  CheckAttentionSpec(spec);
  AttentionArgs args;
  args.n_tokens = 1 + in.Size() % 20;
  args.n_kv = 1 + in.Size() % 300;
  args.pos0 = in.Size();
  args.n_prefix = in.Size();
  const KvCacheFormat format = in.Session().kv_format;
  const std::vector<float> rows(std::max(spec.layout.k_width(), spec.layout.v_width()), 0.5f);
  KvLayer kv(spec.layout, format, args.n_kv);
  for (size_t row = 0; row < args.n_kv; ++row) kv.WriteRow(row, rows.data(), rows.data());
  const std::vector<float> mask = in.Floats(args.n_kv);
  if (in.Bool()) args.mask.values = mask.data();
  const std::vector<float> q(args.n_tokens * spec.layout.q_width(), in.Float());
  std::vector<float> out(args.n_tokens * spec.layout.out_width());
  args.q = q.data();
  args.q_stride = spec.layout.q_width();
  args.kv = &kv;
  args.out = out.data();
  args.out_stride = spec.layout.out_width();
  AttentionWorkspace workspace(spec.layout, args.n_kv, 1);
  if (in.Bool()) AttentionReference(spec, args);
  Attend(spec, args, workspace, shared.pool);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  static Shared shared;
  FuzzedDataProvider provider(data, n_bytes);
  Options in(provider);
  try {
    const int what = provider.ConsumeIntegralInRange<int>(0, 3);
    if (what == 2) {
      Edit(in, shared);
    } else if (what == 3) {
      AttendOnce(in, shared);
    } else if (auto session = MakeSession(shared, shared.model, in.Session())) {
      what == 0 ? Generate(in, *session) : Forward(in, *session);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) std::abort();
  }
  return 0;
}
