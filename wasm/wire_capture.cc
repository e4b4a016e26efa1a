#include "wire_capture.h"

#include <initializer_list>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "wire.h"

namespace headlight::wasm {
namespace {

constexpr std::pair<const char*, CaptureStage> kStages[] = {
    {"scaled", CaptureStage::kScaled},
    {"softcapped", CaptureStage::kSoftcapped},
    {"scores", CaptureStage::kScores},
    {"weights", CaptureStage::kWeights},
};

const char* StageName(CaptureStage stage) {
  for (const auto& [name, of] : kStages) {
    if (of == stage) return name;
  }
  return "";
}

CaptureRequest::RowsOf ReadRowsOf(const val& object, const char* field) {
  using RowsOf = CaptureRequest::RowsOf;
  const std::string name = ReadString(object, field);
  if (name == "last") return RowsOf::kLast;
  if (name == "all") return RowsOf::kAll;
  if (name == "listed") return RowsOf::kListed;
  throw Error(ErrorCode::kBadOption,
              std::string(field) + " is '" + name + "', it must be 'last', 'all' or 'listed'",
              {{"option", field}, {"value", name}});
}

val ArrayToVal(std::span<const float> data, std::initializer_list<size_t> shape) {
  val sizes = val::array();
  for (const size_t n : shape) sizes.call<void>("push", n);
  val out = val::object();
  out.set("data", ToFloat32Array(data));
  out.set("shape", sizes);
  return out;
}

}  // namespace

CaptureStage ReadCaptureStage(const val& object, const char* field) {
  const std::string name = ReadString(object, field);
  for (const auto& [of, stage] : kStages) {
    if (name == of) return stage;
  }
  throw Error(ErrorCode::kBadOption,
              std::string(field) + " is '" + name +
                  "', it must be 'weights', 'scores', 'softcapped' or 'scaled'",
              {{"option", field}, {"value", name}});
}

std::optional<CaptureRequest> ReadCaptureRequest(const val& request) {
  if (request.isNull() || request.isUndefined()) return std::nullopt;
  CaptureRequest out;
  out.what.stage = ReadCaptureStage(request, "what");
  out.what.layers = ReadUint32Array(request["layers"], "layers");
  out.what.all_heads = ReadBool(request, "allHeads");
  out.what.heads = ReadUint32Array(request["heads"], "heads");
  out.what.head_outputs = ReadBool(request, "headOutputs");
  out.what.residual_norms = ReadBool(request, "residualNorms");
  out.what.lens_layers = ReadUint32Array(request["logitLens"], "logitLens");
  out.rows_of = ReadRowsOf(request, "rowsOf");
  out.rows = ReadUint32Array(request["rows"], "rows");
  return out;
}

val ToVal(const ForwardCapture& capture) {
  const size_t n_rows = capture.n_rows();
  val layers = val::array();
  for (const ForwardCapture::Layer& layer : capture.layers) {
    const size_t n_heads = layer.heads.size();
    val item = val::object();
    item.set("layer", layer.layer);
    item.set("heads", ToUint32Array(layer.heads));
    item.set("attention", ArrayToVal(layer.attention, {n_heads, n_rows, capture.n_kv}));
    item.set("sinkMass", ArrayToVal(layer.sink_mass, {n_heads, n_rows}));
    if (!layer.head_outputs.empty()) {
      item.set("headOutputs", ArrayToVal(layer.head_outputs, {n_heads, n_rows, layer.d_v}));
    }
    layers.call<void>("push", item);
  }
  val out = val::object();
  out.set("what", std::string(StageName(capture.stage)));
  out.set("positions", ToUint32Array(capture.positions));
  out.set("nKv", capture.n_kv);
  out.set("layers", layers);
  if (!capture.residual_norms.empty()) {
    out.set("residualNorms",
            ArrayToVal(capture.residual_norms, {capture.residual_norms.size() / n_rows, n_rows}));
  }
  if (capture.lenses.empty()) return out;
  val lenses = val::array();
  for (const ForwardCapture::Lens& lens : capture.lenses) {
    val item = val::object();
    item.set("layer", lens.layer);
    item.set("logits",
             ArrayToVal(lens.logits, {n_rows, n_rows == 0 ? 0 : lens.logits.size() / n_rows}));
    lenses.call<void>("push", item);
  }
  out.set("logitLens", lenses);
  return out;
}

}  // namespace headlight::wasm
