// ONNX's own node tests of the Attention operator (opsets 23, 24): the output of every case, and
// the scores that some of them have too, through the capture of each kernel. Needs the shared data
// folder.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "attention/attention.h"
#include "attention/attention_case.h"
#include "support.h"

namespace headlight {
namespace {

using Json = nlohmann::json;

// A tensor as [batch][token][head * d + i], from ONNX's [batch, heads, tokens, d] or
// [batch, tokens, heads * d].
struct Tensor {
  size_t n_batch = 0, n_tokens = 0, n_heads = 0, d = 0;
  std::vector<float> data;

  Tensor(const Json& json, size_t heads_of_3d) {
    const std::vector<size_t> shape = json["shape"];
    const std::vector<float> in = json["data"];
    n_batch = shape[0];
    n_heads = shape.size() == 4 ? shape[1] : heads_of_3d;
    n_tokens = shape.size() == 4 ? shape[2] : shape[1];
    d = shape.size() == 4 ? shape[3] : shape[2] / n_heads;
    data = in;
    if (shape.size() == 3) return;
    for (size_t b = 0; b < n_batch; ++b) {
      for (size_t h = 0; h < n_heads; ++h) {
        for (size_t t = 0; t < n_tokens; ++t) {
          for (size_t i = 0; i < d; ++i) {
            Row(b, t)[h * d + i] = in[((b * n_heads + h) * n_tokens + t) * d + i];
          }
        }
      }
    }
  }
  float* Row(size_t b, size_t t) { return data.data() + (b * n_tokens + t) * n_heads * d; }
};

// attn_mask [.., n_tokens, n_kv] of up to four dimensions as what is added to scores. Booleans say
// which keys stay.
struct MaskTensor {
  std::vector<float> data;
  std::vector<size_t> shape;  // [batch or 1, heads or 1, n_tokens, n_kv]

  explicit MaskTensor(const Json& inputs) {
    if (!inputs.contains("attn_mask")) return;
    const Json& json = inputs["attn_mask"];
    shape = json["shape"].get<std::vector<size_t>>();
    while (shape.size() < 4) shape.insert(shape.begin(), 1);
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    for (const Json& value : json["data"]) {
      if (json["type"] == "bool") {
        data.push_back(value.get<int>() != 0 ? 0.0f : kNone);
      } else {
        data.push_back(value.is_string() ? kNone : value.get<float>());
      }
    }
  }
  AttentionMask Of(size_t batch) const {
    if (data.empty()) return {};
    const size_t head = shape[2] * shape[3];
    const size_t first = shape[0] == 1 ? 0 : batch * shape[1] * head;
    return {data.data() + first, shape[1] == 1 ? 0 : head, shape[3]};
  }
};

// The operator's f16 cases compute in f16 throughout: its own rounding, three places of the result.
double ToleranceOf(const Json& test) {
  return test["inputs"]["Q"]["type"] == "f16" ? 3 * 0x1p-11 : 1e-6;
}

class OnnxCase {
 public:
  explicit OnnxCase(const Json& test)
      : test_(test),
        q_(test["inputs"]["Q"], test["attrs"].value("q_num_heads", size_t{1})),
        k_(test["inputs"]["K"], test["attrs"].value("kv_num_heads", size_t{1})),
        v_(test["inputs"]["V"], test["attrs"].value("kv_num_heads", size_t{1})),
        y_(test["outputs"]["Y"], test["attrs"].value("q_num_heads", size_t{1})),
        mask_(test["inputs"]) {
    spec_.layout = {q_.n_heads, k_.n_heads, k_.d, v_.d};
    spec_.scale =
        test["attrs"].value("scale", 1.0f / std::sqrt(static_cast<float>(spec_.layout.d_qk)));
    spec_.softcap = test["attrs"].value("softcap", 0.0f);
    spec_.causal = test["attrs"].value("is_causal", 0) != 0;
    CheckAttentionSpec(spec_);
    if (!test["outputs"].contains("qk_matmul_output")) return;
    for (const Json& value : test["outputs"]["qk_matmul_output"]["data"]) {
      scores_.push_back(value.is_string() ? -std::numeric_limits<float>::infinity()
                                          : value.get<float>());
    }
  }

  bool has_scores() const { return !scores_.empty(); }

  // Largest difference from the expected output, over the batch.
  double Difference(AttentionKernel kernel) {
    double max = 0.0;
    for (size_t b = 0; b < q_.n_batch; ++b) max = std::max(max, BatchDifference(kernel, b));
    return max;
  }

 private:
  double BatchDifference(AttentionKernel kernel, size_t b) {
    const Json& inputs = test_["inputs"];
    size_t n_past = 0;
    size_t n_kv = k_.n_tokens;
    KvLayer kv(spec_.layout, {}, 64);
    if (inputs.contains("past_key")) {
      Tensor past_k(inputs["past_key"], 0);
      Tensor past_v(inputs["past_value"], 0);
      n_past = past_k.n_tokens;
      for (size_t t = 0; t < n_past; ++t) kv.WriteRow(t, past_k.Row(b, t), past_v.Row(b, t));
    }
    for (size_t t = 0; t < n_kv; ++t) kv.WriteRow(n_past + t, k_.Row(b, t), v_.Row(b, t));
    AttentionArgs args;
    args.pos0 = n_past;
    args.n_kv = n_past + n_kv;
    if (inputs.contains("nonpad_kv_seqlen")) {  // live rows; the queries are the last of them
      args.n_kv = inputs["nonpad_kv_seqlen"]["data"][b];
      args.pos0 = args.n_kv - q_.n_tokens;
    }
    args.mask = mask_.Of(b);
    args.q = q_.Row(b, 0);
    args.q_stride = spec_.layout.q_width();
    args.n_tokens = q_.n_tokens;
    args.kv = &kv;
    args.out_stride = spec_.layout.out_width();
    std::vector<float> out(q_.n_tokens * args.out_stride);
    args.out = out.data();
    const std::vector<float> scores = Call(kernel, args);
    const float* expected = y_.Row(b, 0);
    const double of_out = MaxDifference(out, std::vector<float>(expected, expected + out.size()));
    if (!has_scores()) return of_out;
    const float* of_batch = scores_.data() + b * scores.size();
    return std::max(of_out,
                    MaxDifference(scores, std::vector<float>(of_batch, of_batch + scores.size())));
  }

  // The captured scores, [n_q_heads, n_tokens, n_kv] as ONNX has them. Its output modes are the
  // stages in their order.
  std::vector<float> Call(AttentionKernel kernel, AttentionArgs args) const {
    ThreadPool pool(1);
    AttentionWorkspace workspace(spec_.layout, 64, 1);
    std::vector<float> scores(q_.n_heads * q_.n_tokens * args.n_kv);
    std::vector<uint32_t> slots(std::max(q_.n_heads, q_.n_tokens));
    std::iota(slots.begin(), slots.end(), 0u);
    AttentionCapture capture;
    capture.stage = static_cast<CaptureStage>(test_["attrs"].value("qk_matmul_output_mode", 0));
    capture.slot_of_head = capture.slot_of_row = slots.data();
    capture.n_rows = q_.n_tokens;
    capture.values = scores.data();
    capture.stride = args.n_kv;
    args.capture = &capture;
    if (kernel == AttentionKernel::kReference) AttentionReference(spec_, args);
    if (kernel == AttentionKernel::kTiled) AttentionTiled(spec_, args, workspace, pool);
    if (kernel == AttentionKernel::kDecode) {
      args.n_tokens = 1;
      for (size_t t = 0; t < q_.n_tokens; ++t) {
        AttentionDecode(spec_, args, workspace, pool);
        args.q += args.q_stride;
        args.out += args.out_stride;
        ++args.pos0;
        ++capture.slot_of_row;
        if (args.mask.values != nullptr) args.mask.values += args.mask.row_stride;
      }
    }
    return scores;
  }

  const Json& test_;
  Tensor q_, k_, v_, y_;
  MaskTensor mask_;
  AttentionSpec spec_;
  std::vector<float> scores_;  // qk_matmul_output, [batch, n_q_heads, n_tokens, n_kv]
};

TEST_CASE("attention: all ONNX node tests give the expected outputs by every kernel") {
  const auto path = testing::SharedPath("conformance/onnx_attention.jsonl");
  SKIP_UNLESS(path);
  std::ifstream file(*path);
  size_t n_run = 0;
  size_t n_with_scores = 0;
  for (std::string line; std::getline(file, line);) {
    const Json test = Json::parse(line);
    CAPTURE(test["name"].get<std::string>());
    for (const AttentionKernel kernel :
         {AttentionKernel::kReference, AttentionKernel::kTiled, AttentionKernel::kDecode}) {
      OnnxCase onnx(test);
      CHECK(onnx.Difference(kernel) <= ToleranceOf(test));
      n_with_scores += onnx.has_scores() && kernel == AttentionKernel::kDecode ? 1 : 0;
    }
    ++n_run;
  }
  CHECK(n_run == 58);
  CHECK(n_with_scores == 12);
}

}  // namespace
}  // namespace headlight
