// attend(): one attention layer on rows given by the caller, for people who try head layouts
// without a model.
#include <emscripten/bind.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "attention/attention.h"
#include "guard.h"
#include "objects.h"
#include "wire.h"
#include "wire_capture.h"

namespace headlight::wasm {
namespace {

// Widest head and largest counts that attend() takes: far above any model's, low enough that sizes
// cannot overflow.
constexpr size_t kMaxHeads = 1024;
constexpr size_t kMaxHeadWidth = 8192;
constexpr size_t kMaxRows = size_t{1} << 20;

size_t ReadCount(const val& spec, const char* field, size_t max) {
  const size_t n = ReadSize(spec, field);
  if (n == 0 || n > max) {
    throw Error(ErrorCode::kBadOption,
                std::string(field) + " must be in [1, " + std::to_string(max) + "], got " +
                    std::to_string(n),
                {{"option", field}});
  }
  return n;
}

HeadLayout ReadLayout(const val& spec) {
  HeadLayout layout;
  layout.n_q_heads = ReadCount(spec, "nQHeads", kMaxHeads);
  layout.n_kv_heads = ReadCount(spec, "nKvHeads", kMaxHeads);
  layout.d_qk = ReadCount(spec, "dQk", kMaxHeadWidth);
  layout.d_v = ReadCount(spec, "dV", kMaxHeadWidth);
  if (layout.n_q_heads % layout.n_kv_heads != 0) {
    throw Error(ErrorCode::kBadOption,
                "nKvHeads must divide nQHeads, got " + std::to_string(layout.n_kv_heads) + " and " +
                    std::to_string(layout.n_q_heads),
                {{"option", "nKvHeads"}});
  }
  return layout;
}

// Elements of an array of these sizes. Throws std::bad_alloc where no memory could hold them: on
// wasm32 their product would wrap around.
size_t Elements(std::initializer_list<size_t> sizes) {
  double n = 1.0;
  for (const size_t size : sizes) n *= static_cast<double>(size);
  if (n > static_cast<double>(std::numeric_limits<size_t>::max() / sizeof(float))) {
    throw std::bad_alloc();
  }
  return static_cast<size_t>(n);
}

std::vector<float> ReadRows(const val& rows, const char* name, size_t n_expected) {
  std::vector<float> values = ReadFloat32Array(rows, name);
  if (values.size() != n_expected) {
    throw Error(ErrorCode::kBadOption,
                std::string(name) + " must have " + std::to_string(n_expected) + " elements, got " +
                    std::to_string(values.size()),
                {{"option", name}});
  }
  return values;
}

// What the kernels read and the caller owns; all fields are copies.
struct Extras {
  std::vector<float> alibi_slopes, sink_logits, mask;
};

// Null, or a Float32Array of n_expected numbers.
std::vector<float> ReadOptional(const val& options, const char* field, size_t n_expected) {
  const val value = options[field];
  return value.isNull() ? std::vector<float>() : ReadRows(value, field, n_expected);
}

const float* DataOrNull(const std::vector<float>& values) {
  return values.empty() ? nullptr : values.data();
}

// The mask is [n_q_heads or 1, n_tokens or 1, n_kv].
AttentionMask ReadMask(const val& options, const AttentionArgs& args, size_t n_q_heads,
                       std::vector<float>& values) {
  const size_t n_heads = ReadSize(options, "nMaskHeads");
  const size_t n_rows = ReadSize(options, "nMaskRows");
  if (n_heads == 0) return {};
  if ((n_heads != 1 && n_heads != n_q_heads) || (n_rows != 1 && n_rows != args.n_tokens)) {
    throw Error(ErrorCode::kBadOption,
                "mask must have 1 or nQHeads heads and 1 or nTokens rows, got " +
                    std::to_string(n_heads) + " and " + std::to_string(n_rows),
                {{"option", "mask"}});
  }
  values = ReadOptional(options, "mask", Elements({n_heads, n_rows, args.n_kv}));
  return {DataOrNull(values), n_heads == 1 ? 0 : n_rows * args.n_kv, n_rows == 1 ? 0 : args.n_kv};
}

AttentionSpec ReadSpec(const val& options, Extras& extras) {
  AttentionSpec spec;
  spec.layout = ReadLayout(options);
  spec.scale = static_cast<float>(ReadNumber(options, "scale"));
  if (spec.scale == 0.0f) spec.scale = 1.0f / std::sqrt(static_cast<float>(spec.layout.d_qk));
  spec.window = ReadSize(options, "window");
  spec.softcap = static_cast<float>(ReadNumber(options, "softcap"));
  spec.n_sinks = ReadSize(options, "windowSinks");
  spec.causal = ReadBool(options, "causal");
  extras.alibi_slopes = ReadOptional(options, "alibiSlopes", spec.layout.n_q_heads);
  extras.sink_logits = ReadOptional(options, "sinkLogits", spec.layout.n_q_heads);
  spec.alibi_slopes = DataOrNull(extras.alibi_slopes);
  spec.sink_logits = DataOrNull(extras.sink_logits);
  CheckAttentionSpec(spec);
  return spec;
}

// All of all heads and rows: [n_q_heads, n_tokens, n_kv].
struct CapturedAll {
  std::vector<uint32_t> slots;
  std::vector<float> values, sink_mass;
  AttentionCapture capture;

  CapturedAll(CaptureStage stage, size_t n_heads, const AttentionArgs& args)
      : slots(std::max(n_heads, args.n_tokens)),
        values(Elements({n_heads, args.n_tokens, args.n_kv})),
        sink_mass(Elements({n_heads, args.n_tokens})) {
    std::iota(slots.begin(), slots.end(), 0u);
    capture = {stage,         slots.data(), slots.data(),    args.n_tokens,
               values.data(), args.n_kv,    sink_mass.data()};
  }
};

// The decode kernel serves one query: rows are given to it one after the other.
void DecodeRows(const AttentionSpec& spec, AttentionArgs args, AttentionWorkspace& workspace,
                ThreadPool& pool) {
  AttentionCapture capture;
  if (args.capture != nullptr) {
    capture = *args.capture;
    args.capture = &capture;
  }
  for (size_t n_left = args.n_tokens; n_left > 0; --n_left) {
    args.n_tokens = 1;
    AttentionDecode(spec, args, workspace, pool);
    args.q += args.q_stride;
    args.out += args.out_stride;
    ++args.pos0;
    ++capture.slot_of_row;
    if (args.mask.values != nullptr) args.mask.values += args.mask.row_stride;
  }
}

// The kernel that ran.
std::string RunKernel(const std::string& kernel, const AttentionSpec& spec,
                      const AttentionArgs& args, AttentionWorkspace& workspace, ThreadPool& pool) {
  if (kernel == "reference") {
    AttentionReference(spec, args);
  } else if (kernel == "tiled") {
    AttentionTiled(spec, args, workspace, pool);
  } else if (kernel == "decode") {
    DecodeRows(spec, args, workspace, pool);
  } else if (kernel == "auto") {
    Attend(spec, args, workspace, pool);
    return args.n_tokens == 1 ? "decode" : "tiled";
  } else {
    throw Error(ErrorCode::kBadOption, "kernel must be 'auto', 'reference', 'tiled' or 'decode'",
                {{"option", "kernel"}});
  }
  return kernel;
}

val ArrayToVal(const std::vector<float>& data, size_t n_heads, size_t n_rows, size_t n_keys) {
  val shape = val::array();
  for (const size_t n : {n_heads, n_rows, n_keys}) {
    if (n != 0) shape.call<void>("push", n);
  }
  val out = val::object();
  out.set("data", ToFloat32Array(data));
  out.set("shape", shape);
  return out;
}

// Keys and values of the call as a layer's cache.
KvLayer FilledLayer(const AttentionSpec& spec, const val& options, size_t n_kv, const val& k_rows,
                    const val& v_rows) {
  const HeadLayout& layout = spec.layout;
  const KvCacheFormat format{ReadCacheType(options, "kvCacheK"),
                             ReadCacheType(options, "kvCacheV")};
  const std::vector<float> k = ReadRows(k_rows, "k", Elements({n_kv, layout.k_width()}));
  const std::vector<float> v = ReadRows(v_rows, "v", Elements({n_kv, layout.v_width()}));
  KvLayer kv(layout, format, n_kv);
  for (size_t row = 0; row < n_kv; ++row) {
    kv.WriteRow(row, k.data() + row * layout.k_width(), v.data() + row * layout.v_width());
  }
  return kv;
}

val Attend(const RuntimeObject& runtime, const val& options, const val& q_rows, const val& k_rows,
           const val& v_rows) {
  return Guard([&] {
    Extras extras;
    AttentionSpec spec = ReadSpec(options, extras);
    spec.dot_form = runtime.form();
    const HeadLayout& layout = spec.layout;
    AttentionArgs args;
    args.n_tokens = ReadCount(options, "nTokens", kMaxRows);
    args.n_kv = ReadCount(options, "nKv", kMaxRows);
    args.pos0 = ReadSize(options, "firstPosition");
    args.n_prefix = ReadSize(options, "prefix");
    args.mask = ReadMask(options, args, layout.n_q_heads, extras.mask);
    const std::vector<float> q = ReadRows(q_rows, "q", Elements({args.n_tokens, layout.q_width()}));
    const KvLayer kv = FilledLayer(spec, options, args.n_kv, k_rows, v_rows);
    AttentionWorkspace workspace(layout, args.n_kv, runtime.pool().n_threads());
    std::vector<float> out(Elements({args.n_tokens, layout.out_width()}));
    args.q = q.data();
    args.q_stride = layout.q_width();
    args.kv = &kv;
    args.out = out.data();
    args.out_stride = layout.out_width();
    std::optional<CapturedAll> captured;
    if (!options["capture"].isNull()) {
      captured.emplace(ReadCaptureStage(options, "capture"), layout.n_q_heads, args);
      args.capture = &captured->capture;
    }
    const auto start = std::chrono::steady_clock::now();
    const std::string kernel =
        RunKernel(ReadString(options, "kernel"), spec, args, workspace, runtime.pool());
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;

    val result = val::object();
    result.set("out", ToFloat32Array(out));
    result.set("kvCacheBytes", KvLayer::Bytes(layout, kv.format(), args.n_kv));
    result.set("milliseconds", elapsed.count());
    result.set("kernel", kernel);
    if (captured.has_value()) {
      const size_t n_heads = layout.n_q_heads;
      result.set("captured", ArrayToVal(captured->values, n_heads, args.n_tokens, args.n_kv));
      result.set("sinkMass", ArrayToVal(captured->sink_mass, n_heads, args.n_tokens, 0));
    }
    return result;
  });
}

EMSCRIPTEN_BINDINGS(headlight_attend) { emscripten::function("attend", &Attend); }

}  // namespace
}  // namespace headlight::wasm
