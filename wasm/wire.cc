#include "wire.h"

#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/error.h"
#include "model/tensor_table.h"
#include "wire_capture.h"

namespace headlight::wasm {
namespace {

[[noreturn]] void ThrowField(const char* field, const char* expected) {
  throw Error(ErrorCode::kBadOption, std::string(field) + " must be " + expected,
              {{"option", field}});
}

template <typename T>
val CopyOut(const char* constructor, std::span<const T> values) {
  // The view is of the heap as it is now; slice() copies it before anything can grow the heap. A
  // slice of a shared heap would be shared too, so the copy is made into a fresh array instead.
  val array = val::global(constructor).new_(values.size());
  if (!values.empty())
    array.call<void>("set", val(emscripten::typed_memory_view(values.size(), values.data())));
  return array;
}

template <typename T>
std::vector<T> CopyIn(const val& array, const char* constructor, const char* name) {
  if (!array.instanceof(val::global(constructor))) {
    throw Error(ErrorCode::kBadOption, std::string(name) + " must be a " + constructor,
                {{"option", name}});
  }
  return emscripten::convertJSArrayToNumberVector<T>(array);
}

const char* RopeStyleName(RopeStyle style) {
  switch (style) {
    case RopeStyle::kInterleaved:
      return "interleaved";
    case RopeStyle::kHalfSplit:
      return "half-split";
    case RopeStyle::kNone:
      break;
  }
  return "none";
}

const char* FinishName(FinishReason finish) {
  switch (finish) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kAborted:
      return "aborted";
    case FinishReason::kNone:
      break;
  }
  return "none";
}

val LayerToVal(const LayerSpec& layer) {
  val out = val::object();
  out.set("nQHeads", layer.heads.n_q_heads);
  out.set("nKvHeads", layer.heads.n_kv_heads);
  out.set("dQk", layer.heads.d_qk);
  out.set("dV", layer.heads.d_v);
  out.set("dFf", layer.d_ff);
  out.set("window", layer.window);
  out.set("ropeStyle", std::string(RopeStyleName(layer.rope.style)));
  out.set("nRot", layer.rope.n_rot);
  out.set("ropeFreqBase", layer.rope.freq_base);
  return out;
}

}  // namespace

double ReadNumber(const val& object, const char* field) {
  const val value = object[field];
  if (!value.isNumber()) ThrowField(field, "a number");
  return value.as<double>();
}

size_t ReadSize(const val& object, const char* field) {
  const double value = ReadNumber(object, field);
  if (!(value >= 0 && value <= std::numeric_limits<uint32_t>::max()) ||
      value != std::floor(value)) {
    ThrowField(field, "an integer in [0, 4294967295]");
  }
  return static_cast<size_t>(value);
}

bool ReadBool(const val& object, const char* field) {
  const val value = object[field];
  if (!value.isTrue() && !value.isFalse()) ThrowField(field, "true or false");
  return value.isTrue();
}

std::string ReadString(const val& object, const char* field) {
  const val value = object[field];
  if (!value.isString()) ThrowField(field, "a string");
  return value.as<std::string>();
}

CacheType ReadCacheType(const val& object, const char* field) {
  const std::string name = ReadString(object, field);
  for (const CacheType type : {CacheType::kF32, CacheType::kF16, CacheType::kInt8}) {
    if (name == CacheTypeName(type)) return type;
  }
  ThrowField(field, "'f32', 'f16' or 'int8'");
}

std::vector<uint32_t> ReadUint32Array(const val& array, const char* name) {
  return CopyIn<uint32_t>(array, "Uint32Array", name);
}

std::vector<float> ReadFloat32Array(const val& array, const char* name) {
  return CopyIn<float>(array, "Float32Array", name);
}

val ToUint8Array(std::span<const uint8_t> bytes) { return CopyOut("Uint8Array", bytes); }
val ToUint32Array(std::span<const uint32_t> values) { return CopyOut("Uint32Array", values); }
val ToFloat32Array(std::span<const float> values) { return CopyOut("Float32Array", values); }
val ToFloat64Array(std::span<const double> values) { return CopyOut("Float64Array", values); }

EvictionOptions ReadEviction(const val& options) {
  EvictionOptions out;
  const std::string policy = ReadString(options, "eviction");
  if (policy == "none") return out;
  if (policy == "sinks") {
    out.policy = EvictionPolicy::kSinks;
  } else if (policy == "h2o") {
    out.policy = EvictionPolicy::kH2o;
  } else if (policy == "snapkv") {
    out.policy = EvictionPolicy::kSnapKv;
  } else {
    ThrowField("eviction", "'none', 'sinks', 'h2o' or 'snapkv'");
  }
  out.n_sinks = ReadSize(options, "evictionSinks");
  out.window = ReadSize(options, "evictionWindow");
  out.budget = ReadSize(options, "evictionBudget");
  return out;
}

SessionOptions ReadSessionOptions(const val& options) {
  SessionOptions out;
  out.n_ctx = ReadSize(options, "nCtx");
  out.kv_format.k = ReadCacheType(options, "kvCacheK");
  out.kv_format.v = ReadCacheType(options, "kvCacheV");
  const std::string activations = ReadString(options, "activations");
  if (activations != "int8" && activations != "f32") ThrowField("activations", "'int8' or 'f32'");
  out.activations = activations == "f32" ? ActivationType::kF32 : ActivationType::kInt8;
  out.eviction = ReadEviction(options);
  return out;
}

GenerateOptions ReadGenerateOptions(const val& options) {
  GenerateOptions out;
  SamplerOptions& sampler = out.sampler;
  sampler.temperature = static_cast<float>(ReadNumber(options, "temperature"));
  sampler.top_k = static_cast<uint32_t>(ReadSize(options, "topK"));
  sampler.top_p = static_cast<float>(ReadNumber(options, "topP"));
  sampler.min_p = static_cast<float>(ReadNumber(options, "minP"));
  sampler.repetition_penalty = static_cast<float>(ReadNumber(options, "repetitionPenalty"));
  sampler.frequency_penalty = static_cast<float>(ReadNumber(options, "frequencyPenalty"));
  sampler.presence_penalty = static_cast<float>(ReadNumber(options, "presencePenalty"));
  sampler.penalty_last_n = static_cast<uint32_t>(ReadSize(options, "penaltyLastN"));
  sampler.seed = static_cast<uint64_t>(ReadSize(options, "seedLow")) |
                 static_cast<uint64_t>(ReadSize(options, "seedHigh")) << 32;
  const std::vector<uint32_t> ids = ReadUint32Array(options["logitBiasIds"], "logitBiasIds");
  const std::vector<float> biases = ReadFloat32Array(options["logitBiasValues"], "logitBiasValues");
  if (ids.size() != biases.size()) ThrowField("logitBiasValues", "as long as logitBiasIds");
  for (size_t i = 0; i < ids.size(); ++i) sampler.logit_bias.emplace_back(ids[i], biases[i]);
  sampler.n_logprobs = static_cast<uint32_t>(ReadSize(options, "nLogprobs"));
  out.max_tokens = ReadSize(options, "maxTokens");
  out.stop_tokens = ReadUint32Array(options["stopTokens"], "stopTokens");
  out.ignore_stop_tokens = ReadBool(options, "ignoreStopTokens");
  out.capture = ReadCaptureRequest(options["capture"]);
  return out;
}

val ToVal(const SessionPlan& plan) {
  val out = val::object();
  out.set("nCtx", plan.n_ctx);
  out.set("kvCacheBytes", plan.kv_cache_bytes);
  out.set("kvBytesPerToken", plan.kv_bytes_per_token);
  out.set("workspaceBytes", plan.workspace_bytes);
  return out;
}

val ToVal(const AdvanceResult& result) {
  val tokens = val::array();
  for (const SampledToken& token : result.tokens) {
    val top = val::array();
    for (const TokenLogprob& entry : token.top) {
      val item = val::object();
      item.set("id", entry.id);
      item.set("logprob", entry.logprob);
      top.call<void>("push", item);
    }
    val item = val::object();
    item.set("id", token.id);
    item.set("logprob", token.logprob);
    item.set("top", top);
    tokens.call<void>("push", item);
  }
  val captures = val::array();
  for (const ForwardCapture& capture : result.captures) {
    captures.call<void>("push", ToVal(capture));
  }
  val out = val::object();
  out.set("done", result.done);
  out.set("finish", std::string(FinishName(result.finish)));
  out.set("nPromptDone", result.n_prompt_done);
  out.set("nPrompt", result.n_prompt);
  out.set("tokens", tokens);
  out.set("captures", captures);
  return out;
}

namespace {

val StagesToVal(const StageTimes& times) {
  constexpr std::pair<Stage, const char*> kNames[] = {
      {Stage::kEmbedding, "embeddingMs"},     {Stage::kNorms, "normsMs"},
      {Stage::kProjections, "projectionsMs"}, {Stage::kPositions, "positionsMs"},
      {Stage::kAttention, "attentionMs"},     {Stage::kFeedForward, "feedForwardMs"},
      {Stage::kActivation, "activationMs"},   {Stage::kHead, "headMs"},
      {Stage::kSampling, "samplingMs"},
  };
  static_assert(std::size(kNames) == kNStages);
  val out = val::object();
  for (const auto& [stage, name] : kNames) out.set(name, times[stage]);
  return out;
}

}  // namespace

val ToVal(const RunStats& stats) {
  val out = val::object();
  out.set("nPrompt", stats.n_prompt);
  out.set("nPromptReused", stats.n_prompt_reused);
  out.set("nGenerated", stats.n_generated);
  out.set("nDecodeSteps", stats.n_decode_steps);
  out.set("prefillMs", stats.prefill_ms);
  out.set("decodeMs", stats.decode_ms);
  out.set("prefillStages", StagesToVal(stats.prefill_stages));
  out.set("decodeStages", StagesToVal(stats.decode_stages));
  return out;
}

val ModelInfoToVal(const ModelSpec& spec, size_t weights_bytes) {
  val layers = val::array();
  for (const LayerSpec& layer : spec.layers) layers.call<void>("push", LayerToVal(layer));
  val out = val::object();
  out.set("architecture", spec.architecture);
  out.set("name", spec.name);
  out.set("dModel", spec.d_model);
  out.set("vocabSize", spec.vocab_size);
  out.set("nCtxTrain", spec.n_ctx_train);
  out.set("tiedHead", spec.tied_head);
  out.set("layers", layers);
  out.set("weightsBytes", weights_bytes);
  out.set("parametersUsed", ParametersUsed(spec));
  return out;
}

}  // namespace headlight::wasm
