// ONNX's own node tests of the operators around attention: norms, rotation, softmax, gated and
// plain activations. Needs the shared data folder.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "attention/attention.h"
#include "attention/attention_case.h"
#include "kernels/activation.h"
#include "kernels/vector_ops.h"
#include "position/rope.h"
#include "support.h"

namespace headlight {
namespace {

using Json = nlohmann::json;
using Floats = std::vector<float>;

struct Tensor {
  std::vector<size_t> shape;
  Floats data;

  explicit Tensor(const Json& json) : shape(json["shape"]), data(json["data"]) {}
  // Elements from dimension `axis` on; negative ones count from the end.
  size_t NumFrom(int axis) const {
    const int first = axis < 0 ? axis + static_cast<int>(shape.size()) : axis;
    return std::accumulate(shape.begin() + first, shape.end(), size_t{1}, std::multiplies<>());
  }
};

// A few roundings of numbers of magnitude 1 to 4; an operator of f16 rounds to its own places.
double ToleranceOf(const Tensor& expected, const std::string& type) {
  double max = 1.0;
  for (const float x : expected.data) max = std::max(max, std::fabs(static_cast<double>(x)));
  return type == "f16" ? 0x1p-10 * max : 1e-6 * max;
}

bool All(const Json&) { return true; }

// Runs `compute` on every case of a file that is `served`; its result is compared with `output`.
void CheckFile(const std::string& name, size_t n_cases, const char* output,
               const std::function<Floats(const Json&)>& compute,
               bool (*served)(const Json&) = All) {
  const auto path = testing::SharedPath("conformance/onnx_" + name + ".jsonl");
  SKIP_UNLESS(path);
  std::ifstream file(*path);
  size_t n_run = 0;
  for (std::string line; std::getline(file, line);) {
    const Json test = Json::parse(line);
    if (!served(test)) continue;
    ++n_run;
    CAPTURE(test["name"].get<std::string>());
    const Tensor expected(test["outputs"][output]);
    const double tolerance = ToleranceOf(expected, test["outputs"][output]["type"]);
    CHECK(MaxDifference(compute(test), expected.data) <= tolerance);
  }
  CHECK(n_run == n_cases);
}

TEST_CASE("RmsNorm: ONNX's node tests (needs ../shared)") {
  CheckFile("rmsnormalization", 15, "Y", [](const Json& test) {
    const Tensor x(test["inputs"]["X"]);
    const Tensor w(test["inputs"]["W"]);
    const size_t n = x.NumFrom(test["attrs"].value("axis", -1));
    REQUIRE(w.data.size() == n);
    Floats y(x.data.size());
    for (size_t at = 0; at < y.size(); at += n) {
      RmsNorm(x.data.data() + at, w.data.data(), n, test["attrs"].value("epsilon", 1e-5f),
              y.data() + at);
    }
    return y;
  });
}

TEST_CASE("LayerNorm: ONNX's node tests (needs ../shared)") {
  CheckFile("layernormalization", 11, "Y", [](const Json& test) {
    const Tensor x(test["inputs"]["X"]);
    const Tensor w(test["inputs"]["W"]);
    const Tensor b(test["inputs"]["B"]);
    const size_t n = x.NumFrom(test["attrs"].value("axis", -1));
    REQUIRE(w.data.size() == n);
    Floats y(x.data.size());
    for (size_t at = 0; at < y.size(); at += n) {
      LayerNorm(x.data.data() + at, w.data.data(), b.data.data(), n,
                test["attrs"].value("epsilon", 1e-5f), y.data() + at);
    }
    return y;
  });
}

TEST_CASE("ActivateMul: ONNX's node tests of SwiGLU (needs ../shared)") {
  CheckFile("swiglu", 3, "y", [](const Json& test) {
    Tensor a(test["inputs"]["a"]);
    Tensor b(test["inputs"]["b"]);
    // a / (1 + e^(-alpha a)) b is SiLU(alpha a) (b / alpha).
    const float alpha = test["attrs"].value("alpha", 1.0f);
    for (float& x : a.data) x *= alpha;
    for (float& x : b.data) x /= alpha;
    Floats y(a.data.size());
    ActivateMul(Activation::kSilu, a.data.data(), b.data.data(), y.size(), y.data());
    return y;
  });
}

TEST_CASE("Activate: ONNX's node tests of GELU in its tanh form (needs ../shared)") {
  const auto compute = [](const Json& test) {
    const Tensor x(test["inputs"]["x"]);
    Floats y(x.data.size());
    Activate(Activation::kGelu, x.data.data(), y.size(), y.data());
    return y;
  };
  // No family here has the form with erf, which the other two cases are of.
  CheckFile("gelu", 2, "y", compute,
            [](const Json& test) { return test["attrs"].value("approximate", "none") == "tanh"; });
}

// Softmax of scores along a row, as attention weighs keys: their values are the rows of an
// identity.
Floats Softmax(const Floats& scores, AttentionKernel kernel) {
  const size_t n = scores.size();
  AttentionSpec spec;
  spec.layout = {1, 1, 1, n};
  spec.scale = 1.0f;
  KvLayer kv(spec.layout, {}, n);
  for (size_t row = 0; row < n; ++row) {
    Floats value(n, 0.0f);
    value[row] = 1.0f;
    kv.WriteRow(row, &scores[row], value.data());
  }
  ThreadPool pool(1);
  AttentionWorkspace workspace(spec.layout, n, 1);
  const float q = 1.0f;
  Floats out(n);
  AttentionArgs args;
  args.q = &q;
  args.q_stride = 1;
  args.n_tokens = 1;
  args.pos0 = n - 1;
  args.kv = &kv;
  args.n_kv = n;
  args.out = out.data();
  args.out_stride = n;
  if (kernel == AttentionKernel::kReference) AttentionReference(spec, args);
  if (kernel == AttentionKernel::kTiled) AttentionTiled(spec, args, workspace, pool);
  if (kernel == AttentionKernel::kDecode) AttentionDecode(spec, args, workspace, pool);
  return out;
}

TEST_CASE("attention: ONNX's node tests of Softmax by every kernel (needs ../shared)") {
  for (const AttentionKernel kernel :
       {AttentionKernel::kReference, AttentionKernel::kTiled, AttentionKernel::kDecode}) {
    CheckFile("softmax", 5, "y", [&](const Json& test) {
      const Tensor x(test["inputs"]["x"]);
      const int axis = test["attrs"].value("axis", -1);
      const size_t n_all = x.NumFrom(axis);
      const size_t n = x.shape[axis < 0 ? x.shape.size() - 1 : static_cast<size_t>(axis)];
      const size_t stride = n_all / n;
      Floats y(x.data.size());
      for (size_t i = 0; i < y.size() / n; ++i) {
        const size_t first = i / stride * n_all + i % stride;
        Floats row;
        for (size_t j = 0; j < n; ++j) row.push_back(x.data[first + j * stride]);
        const Floats weights = Softmax(row, kernel);
        for (size_t j = 0; j < n; ++j) y[first + j * stride] = weights[j];
      }
      return y;
    });
  }
}

// Turns the pairs of head[n_rot] by the angles whose cosine and sine, times a magnitude of each
// pair's own, are given: RopeTable makes its angles itself, so they are given as its factors.
void RotateBy(RopeStyle style, const float* cos, const float* sin, size_t n_rot, float* head) {
  const size_t n_half = n_rot / 2;
  RopeSpec spec;
  spec.style = style;
  spec.n_rot = n_rot;
  for (size_t i = 0; i < n_half; ++i) {
    const double plain =
        std::pow(spec.freq_base, -2.0 * static_cast<double>(i) / static_cast<double>(n_rot));
    const double angle = std::atan2(static_cast<double>(sin[i]), static_cast<double>(cos[i]));
    spec.freq_factors.push_back(static_cast<float>(plain / angle));
    const float magnitude = std::hypot(cos[i], sin[i]);
    const bool is_interleaved = style == RopeStyle::kInterleaved;
    head[is_interleaved ? 2 * i : i] *= magnitude;
    head[is_interleaved ? 2 * i + 1 : i + n_half] *= magnitude;
  }
  RopeTable table(spec, 2);
  table.Ensure(2);
  table.Rotate(head, 1);
}

TEST_CASE("rope: ONNX's node tests of RotaryEmbedding (needs ../shared)") {
  CheckFile("rotaryembedding", 4, "output", [](const Json& test) {
    const Json& inputs = test["inputs"];
    const Tensor x(inputs["input"]);  // [batch, heads, tokens, d]
    const Tensor cos(inputs["cos_cache"]);
    const Tensor sin(inputs["sin_cache"]);
    const size_t n_heads = x.shape[1], n_tokens = x.shape[2], d = x.shape[3];
    const size_t n_rot = test["attrs"].value("rotary_embedding_dim", d);
    const RopeStyle style = test["attrs"].value("interleaved", 0) != 0 ? RopeStyle::kInterleaved
                                                                       : RopeStyle::kHalfSplit;
    REQUIRE(cos.shape.back() == n_rot / 2);
    Floats y = x.data;
    for (size_t i = 0; i < y.size() / d; ++i) {
      const size_t row = i / (n_heads * n_tokens) * n_tokens + i % n_tokens;  // [batch, tokens]
      const size_t pos =
          inputs.contains("position_ids") ? inputs["position_ids"]["data"][row].get<size_t>() : row;
      const size_t at = pos * (n_rot / 2);
      RotateBy(style, cos.data.data() + at, sin.data.data() + at, n_rot, y.data() + i * d);
    }
    return y;
  });
}

}  // namespace
}  // namespace headlight
