// attend(): one attention layer on rows given by the caller, for people who try head layouts
// without a model.
#include <emscripten/bind.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "attention/attention.h"
#include "guard.h"
#include "objects.h"
#include "wire.h"

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

AttentionSpec ReadSpec(const val& options) {
  AttentionSpec spec;
  spec.layout = ReadLayout(options);
  spec.scale = static_cast<float>(ReadNumber(options, "scale"));
  if (spec.scale == 0.0f) spec.scale = 1.0f / std::sqrt(static_cast<float>(spec.layout.d_qk));
  spec.window = ReadSize(options, "window");
  spec.softcap = static_cast<float>(ReadNumber(options, "softcap"));
  spec.causal = ReadBool(options, "causal");
  if (!std::isfinite(spec.scale) || !std::isfinite(spec.softcap) || spec.softcap < 0) {
    throw Error(ErrorCode::kBadOption, "scale must be finite and softcap finite and not negative",
                {{"option", "scale"}});
  }
  return spec;
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

// The kernel that ran.
std::string RunKernel(const std::string& kernel, const AttentionSpec& spec,
                      const AttentionArgs& args, AttentionWorkspace& workspace, ThreadPool& pool) {
  if (kernel == "reference") {
    AttentionReference(spec, args);
  } else if (kernel == "tiled") {
    AttentionTiled(spec, args, workspace, pool);
  } else if (kernel == "decode") {
    if (args.n_tokens != 1) {
      throw Error(
          ErrorCode::kBadOption,
          "kernel 'decode' serves one query row, got nTokens " + std::to_string(args.n_tokens),
          {{"option", "kernel"}});
    }
    AttentionDecode(spec, args, workspace, pool);
  } else if (kernel == "auto") {
    Attend(spec, args, workspace, pool);
    return args.n_tokens == 1 ? "decode" : "tiled";
  } else {
    throw Error(ErrorCode::kBadOption, "kernel must be 'auto', 'reference', 'tiled' or 'decode'",
                {{"option", "kernel"}});
  }
  return kernel;
}

val Attend(const RuntimeObject& runtime, const val& options, const val& q_rows, const val& k_rows,
           const val& v_rows) {
  return Guard([&] {
    AttentionSpec spec = ReadSpec(options);
    spec.dot_form = runtime.form();
    const HeadLayout& layout = spec.layout;
    const size_t n_tokens = ReadCount(options, "nTokens", kMaxRows);
    const size_t n_kv = ReadCount(options, "nKv", kMaxRows);
    if (n_tokens > n_kv) {
      throw Error(ErrorCode::kBadOption,
                  "nTokens must not exceed nKv: the query rows are the last ones",
                  {{"option", "nTokens"}});
    }
    const KvCacheFormat format{ReadCacheType(options, "kvCacheK"),
                               ReadCacheType(options, "kvCacheV")};
    const std::vector<float> q = ReadRows(q_rows, "q", n_tokens * layout.q_width());
    const std::vector<float> k = ReadRows(k_rows, "k", n_kv * layout.k_width());
    const std::vector<float> v = ReadRows(v_rows, "v", n_kv * layout.v_width());

    KvLayer kv(layout, format, n_kv);
    for (size_t row = 0; row < n_kv; ++row) {
      kv.WriteRow(row, k.data() + row * layout.k_width(), v.data() + row * layout.v_width());
    }
    AttentionWorkspace workspace(layout, n_kv, runtime.pool().n_threads());
    std::vector<float> out(n_tokens * layout.out_width());
    const AttentionArgs args{.q = q.data(),
                             .q_stride = layout.q_width(),
                             .n_tokens = n_tokens,
                             .pos0 = n_kv - n_tokens,
                             .kv = &kv,
                             .n_kv = n_kv,
                             .out = out.data(),
                             .out_stride = layout.out_width()};
    const auto start = std::chrono::steady_clock::now();
    const std::string kernel =
        RunKernel(ReadString(options, "kernel"), spec, args, workspace, runtime.pool());
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;

    val result = val::object();
    result.set("out", ToFloat32Array(out));
    result.set("kvCacheBytes", KvLayer::Bytes(layout, format, n_kv));
    result.set("milliseconds", elapsed.count());
    result.set("kernel", kernel);
    return result;
  });
}

EMSCRIPTEN_BINDINGS(headlight_attend) { emscripten::function("attend", &Attend); }

}  // namespace
}  // namespace headlight::wasm
