// The lab's side of Model and Session: edited copies, decoded tensors, calibration, a block tensor
// by tensor.
#include <emscripten/bind.h>

#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "guard.h"
#include "lab/block_trace.h"
#include "lab/lab_error.h"
#include "lab/model_edit.h"
#include "lab/svd.h"
#include "lab/weights.h"
#include "objects.h"
#include "wire.h"

namespace headlight::wasm {
namespace {

std::vector<uint32_t> ReadRows(const val& object, const char* field, size_t width) {
  std::vector<uint32_t> values = ReadUint32Array(object[field], field);
  if (values.size() % width != 0) ThrowOption(field, values.size(), "whole rows of", width);
  return values;
}

std::vector<HeadFix> ReadFixes(const val& object) {
  const std::vector<uint32_t> rows = ReadRows(object, "fixed", 4);
  const std::vector<float> tables = ReadFloat32Array(object["tables"], "tables");
  std::vector<HeadFix> fixes;
  size_t at = 0;
  for (size_t i = 0; i < rows.size(); i += 4) {
    if (rows[i + 2] >= kNPatterns) ThrowOption("fixed", rows[i + 2], "a kind below", kNPatterns);
    HeadFix fix;
    fix.id = {rows[i], rows[i + 1]};
    fix.pattern.kind = static_cast<PatternKind>(rows[i + 2]);
    fix.pattern.offset = rows[i + 3];
    if (fix.pattern.kind == PatternKind::kByOffset) {
      const size_t n = rows[i + 3];
      if (tables.size() - at <= n) ThrowOption("tables", tables.size(), "more than", n);
      fix.pattern.first = tables[at];
      const auto first = tables.begin() + static_cast<std::ptrdiff_t>(at + 1);
      fix.pattern.by_offset.assign(first, first + static_cast<std::ptrdiff_t>(n));
      at += n + 1;
    }
    fixes.push_back(std::move(fix));
  }
  return fixes;
}

ModelEdit ReadEdit(const val& object) {
  ModelEdit edit;
  const std::vector<uint32_t> layers = ReadUint32Array(object["layers"], "layers");
  edit.layers.assign(layers.begin(), layers.end());
  edit.n_kv_heads = ReadSize(object, "nKvHeads");
  edit.d_qk = ReadSize(object, "dQk");
  edit.kept_pairs = ReadUint32Array(object["keptPairs"], "keptPairs");
  edit.d_v = ReadSize(object, "dV");
  edit.window = ReadSize(object, "window");
  edit.n_sinks = ReadSize(object, "nSinks");
  const std::vector<uint32_t> pruned = ReadRows(object, "pruned", 2);
  for (size_t i = 0; i < pruned.size(); i += 2) edit.pruned.push_back({pruned[i], pruned[i + 1]});
  edit.fixed = ReadFixes(object);
  return edit;
}

}  // namespace

const PackedMatrix& ModelObject::Matrix(size_t layer, size_t role) const {
  CheckLayer(model_->spec, layer);
  const LayerWeights& weights = model_->layers[layer];
  const PackedMatrix* const matrices[] = {&weights.w_q, &weights.w_k, &weights.w_v, &weights.w_o};
  if (role >= std::size(matrices)) ThrowOption("role", role, "at most", 3);
  return *matrices[role];
}

val ModelObject::Edit(const val& edit) const {
  return Guard(
      [&] { return std::make_shared<ModelObject>(runtime_, EditModel(model_, ReadEdit(edit))); });
}

val ModelObject::AttentionTensor(size_t layer, size_t role, bool encoded) const {
  return Guard([&] {
    const PackedMatrix& matrix = Matrix(layer, role);
    const Weights weights = DecodeWeights(matrix);
    const TensorType type = EncodedType(matrix.shape, weights.n_cols);
    val out = val::object();
    out.set("rows", weights.n_rows);
    out.set("cols", weights.n_cols);
    out.set("family", std::string(PackedFamilyName(matrix.shape.family)));
    out.set("packedBytes", matrix.shape.bytes);
    out.set("type", static_cast<uint32_t>(type));
    out.set("values", encoded ? ToFloat32Array({}) : ToFloat32Array(weights.values));
    out.set("bytes", encoded ? ToUint8Array(EncodeWeights(weights, type)) : ToUint8Array({}));
    return out;
  });
}

val ModelObject::SingularValuesOf(size_t layer, size_t role) const {
  return Guard([&] {
    const std::vector<double> sigma = SingularValues(DecodeWeights(Matrix(layer, role)));
    return ToFloat32Array(std::vector<float>(sigma.begin(), sigma.end()));
  });
}

val ModelObject::CreateCalibration(size_t n_tokens) const {
  return Guard([&] { return std::make_shared<CalibrationObject>(runtime_, model_, n_tokens); });
}

val ModelObject::TraceBlock(const val& tokens, const val& options) const {
  return Guard([&] {
    BlockTraceOptions trace_options;
    trace_options.layer = ReadSize(options, "layer");
    trace_options.kv_format = {ReadCacheType(options, "kvCacheK"),
                               ReadCacheType(options, "kvCacheV")};
    trace_options.last_only = ReadBool(options, "lastOnly");
    trace_options.budget_ms = ReadNumber(options, "budgetMs");
    const BlockTrace trace = headlight::TraceBlock(model_, ReadUint32Array(tokens, "tokens"),
                                                   trace_options, runtime_->pool);
    val list = val::array();
    for (const TracedTensor& tensor : trace.tensors) {
      val item = val::object();
      item.set("what", static_cast<uint32_t>(tensor.what));
      item.set("rows", tensor.n_rows);
      item.set("cols", tensor.n_cols);
      item.set("ms", tensor.ms);
      list.call<void>("push", item);
    }
    val out = val::object();
    out.set("nPasses", trace.n_passes);
    out.set("tensors", list);
    out.set("values", ToFloat32Array(trace.values));
    return out;
  });
}

val SessionObject::BeginScores(const val& tokens) {
  return Guard([&] {
    scores_.reset();
    scores_.emplace(session_, ReadUint32Array(tokens, "tokens"));
  });
}

val SessionObject::AdvanceScores(double budget_ms) {
  return Guard([&] {
    if (!scores_.has_value()) {
      throw Error(ErrorCode::kBadOption, "advanceScores comes after beginScores",
                  {{"option", "advanceScores"}});
    }
    const std::optional<TokenScores> scores = scores_->Advance(budget_ms);
    if (!scores.has_value()) return val::null();
    scores_.reset();
    val out = val::object();
    out.set("logProbabilities", ToFloat32Array(scores->log_probabilities));
    out.set("likeliest", ToUint32Array(scores->likeliest));
    return out;
  });
}

val CalibrationObject::Segment(const val& tokens, bool check) {
  return Guard([&] { calibration_.BeginSegment(ReadUint32Array(tokens, "tokens"), check); });
}

val CalibrationObject::Advance(double budget_ms) {
  return Guard([&] { return calibration_.Advance(budget_ms); });
}

val CalibrationObject::Layer(size_t layer) const {
  return Guard([&] {
    const ModelSpec& spec = calibration_.model().spec;
    CheckLayer(spec, layer);
    std::vector<float> by_offset, numbers;
    for (size_t head = 0; head < spec.layers[layer].heads.n_q_heads; ++head) {
      const HeadCalibration one = calibration_.Head(layer, head);
      by_offset.insert(by_offset.end(), one.by_offset.begin(), one.by_offset.end());
      const float figures[] = {one.first, one.spread, one.mean_spread,
                               static_cast<float>(one.offset)};
      numbers.insert(numbers.end(), std::begin(figures), std::end(figures));
      numbers.insert(numbers.end(), std::begin(one.output_errors), std::end(one.output_errors));
    }
    val out = val::object();
    out.set("byOffset", ToFloat32Array(by_offset));
    out.set("numbers", ToFloat32Array(numbers));
    out.set("pairShares", ToFloat32Array(calibration_.PairShares(layer)));
    return out;
  });
}

EMSCRIPTEN_BINDINGS(headlight_lab) {
  emscripten::class_<CalibrationObject>("Calibration")
      .smart_ptr<std::shared_ptr<CalibrationObject>>("CalibrationPtr")
      .function("segment", &CalibrationObject::Segment)
      .function("advance", &CalibrationObject::Advance)
      .function("layer", &CalibrationObject::Layer);
}

}  // namespace headlight::wasm
