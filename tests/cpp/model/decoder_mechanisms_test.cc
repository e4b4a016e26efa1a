// The decoder against the double-precision oracle: every mechanism that a ModelSpec or LayerSpec
// can say, one at a time.
#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "model/decode_all.h"
#include "oracle/oracle.h"
#include "oracle/test_model.h"

namespace headlight {
namespace {

constexpr size_t kTokens = 40;
constexpr size_t kLayers = 3;

struct Case {
  std::string name;
  void (*change)(ModelSpec&);
};

void AddQkNorm(ModelSpec& spec, QkNorm kind) {
  spec.layers[1].qk_norm = kind;
  spec.layers[1].tensors.always.Add(TensorRole::kQNorm);
  spec.layers[1].tensors.always.Add(TensorRole::kKNorm);
}

const Case kAttentionCases[] = {
    {"window", [](ModelSpec& s) { s.layers[1].window = 5; }},
    {"window of one key", [](ModelSpec& s) { s.layers[0].window = 1; }},
    {"softcap", [](ModelSpec& s) { s.layers[0].attention_softcap = 0.8f; }},
    {"scale", [](ModelSpec& s) { s.layers[2].attention_scale = 0.7f; }},
    {"ALiBi of a power of two of heads", [](ModelSpec& s) { s.layers[1].alibi_max_bias = 8.0f; }},
    {"ALiBi of six heads",
     [](ModelSpec& s) {
       s.layers[1].heads = {6, 3, 16, 24};
       s.layers[1].alibi_max_bias = 4.0f;
     }},
    {"clamped queries, keys and values", [](ModelSpec& s) { s.layers[1].qkv_clamp = 0.6f; }},
    {"QK-norm of heads", [](ModelSpec& s) { AddQkNorm(s, QkNorm::kHead); }},
    {"QK-norm of heads with weights of their own",
     [](ModelSpec& s) { AddQkNorm(s, QkNorm::kOwnHead); }},
    {"QK-norm of whole rows", [](ModelSpec& s) { AddQkNorm(s, QkNorm::kRow); }},
    {"learned sinks", [](ModelSpec& s) { s.layers[1].tensors.always.Add(TensorRole::kSinks); }},
    {"a gate an element of attention's output",
     [](ModelSpec& s) { s.layers[1].tensors.always.Add(TensorRole::kAttentionGate); }},
    {"a gate a head", [](ModelSpec& s) { s.layers[2].tensors.always.Add(TensorRole::kHeadGate); }},
    {"a head layout a layer",
     [](ModelSpec& s) {
       s.layers[0].heads = {3, 1, 20, 8};
       s.layers[2].heads = {5, 5, 16, 40};
     }},
};

const Case kPositionCases[] = {
    {"no rope", [](ModelSpec& s) { s.layers[1].rope.style = RopeStyle::kNone; }},
    {"partial rope", [](ModelSpec& s) { s.layers[0].rope.n_rot = 10; }},
    {"rope base", [](ModelSpec& s) { s.layers[2].rope.freq_base = 37.0; }},
    {"rope scale", [](ModelSpec& s) { s.layers[1].rope.linear_scale = 4.0; }},
    {"rope factors",
     [](ModelSpec& s) { s.layers[0].rope.freq_factors.assign(s.layers[0].rope.n_rot / 2, 3.0f); }},
    {"rope magnitude", [](ModelSpec& s) { s.layers[1].rope.magnitude = 1.3; }},
    {"NTK",
     [](ModelSpec& s) {
       s.layers[1].rope.scaling = RopeScaling::kNtk;
       s.layers[1].rope.factor = 8.0;
     }},
    {"dynamic NTK",
     [](ModelSpec& s) {
       s.layers[1].rope.scaling = RopeScaling::kDynamicNtk;
       s.layers[1].rope.factor = 2.0;
       s.layers[1].rope.n_ctx_original = 10;
     }},
    {"YaRN",
     [](ModelSpec& s) {
       s.layers[0].rope.scaling = RopeScaling::kYarn;
       s.layers[0].rope.linear_scale = 16.0;
       s.layers[0].rope.n_ctx_original = 300;
       s.layers[0].rope.magnitude = 1.2;
       s.layers[2].rope = s.layers[0].rope;
       s.layers[2].rope.yarn = {16.0, 2.0, 0.5};
     }},
    {"long rope factors",
     [](ModelSpec& s) {
       s.layers[0].rope.freq_factors.assign(s.layers[0].rope.n_rot / 2, 1.0f);
       s.layers[0].rope.long_factors.assign(s.layers[0].rope.n_rot / 2, 3.0f);
       s.layers[0].rope.n_ctx_original = 39;
     }},
    {"sinusoidal positions", [](ModelSpec& s) { s.positions = AddedPositions::kSinusoidal; }},
    {"learned positions",
     [](ModelSpec& s) {
       s.positions = AddedPositions::kLearned;
       s.tensors.always.Add(TensorRole::kPositions);
     }},
};

const Case kBlockCases[] = {
    {"no feed-forward", [](ModelSpec& s) { s.layers[1].feed_forward = FeedForwardKind::kNone; }},
    {"no feed-forward at the end",
     [](ModelSpec& s) { s.layers[2].feed_forward = FeedForwardKind::kNone; }},
    {"embedding scale", [](ModelSpec& s) { s.embedding_scale = 5.5f; }},
    {"norm eps", [](ModelSpec& s) { s.norm_eps = 0.3f; }},
    {"LayerNorm", [](ModelSpec& s) { s.norm = NormKind::kLayer; }},
    {"normalised embeddings",
     [](ModelSpec& s) { s.tensors.always.Add(TensorRole::kEmbeddingNorm); }},
    {"logit scale and softcap",
     [](ModelSpec& s) {
       s.logit_scale = 3.0f;
       s.logit_softcap = 2.0f;
     }},
    {"head bias", [](ModelSpec& s) { s.tensors.always.Add(TensorRole::kHeadBias); }},
    {"biases",
     [](ModelSpec& s) {
       s.norm = NormKind::kLayer;
       s.tensors.always.Add(TensorRole::kOutputNormBias);
       for (const TensorRole role :
            {TensorRole::kAttentionNormBias, TensorRole::kQBias, TensorRole::kKBias,
             TensorRole::kVBias, TensorRole::kAttentionOutputBias, TensorRole::kFeedForwardNormBias,
             TensorRole::kGateBias, TensorRole::kUpBias, TensorRole::kDownBias}) {
         s.layers[1].tensors.always.Add(role);
       }
     }},
    {"norms after the branches",
     [](ModelSpec& s) {
       s.layers[0].tensors.always.Add(TensorRole::kAttentionPostNorm);
       s.layers[1].tensors.always.Add(TensorRole::kFeedForwardPostNorm);
     }},
    {"no norms before the branches",
     [](ModelSpec& s) {
       TensorSet& tensors = s.layers[1].tensors.always;
       tensors = tensors - TensorSet{TensorRole::kAttentionNorm, TensorRole::kFeedForwardNorm};
       s.layers[2].tensors.always =
           s.layers[2].tensors.always - TensorSet{TensorRole::kFeedForwardNorm};
     }},
    {"parallel branches with norms of their own",
     [](ModelSpec& s) { s.layers[1].is_parallel = s.layers[2].is_parallel = true; }},
    {"parallel branches with one norm",
     [](ModelSpec& s) {
       for (const size_t i : {0u, 2u}) {
         s.layers[i].is_parallel = true;
         s.layers[i].tensors.always =
             s.layers[i].tensors.always - TensorSet{TensorRole::kFeedForwardNorm};
         s.layers[i].tensors.always.Add(TensorRole::kAttentionOutputBias);
         s.layers[i].tensors.always.Add(TensorRole::kDownBias);
       }
     }},
    {"parallel branches, one of them missing",
     [](ModelSpec& s) {
       s.layers[1].is_parallel = true;
       s.layers[1].feed_forward = FeedForwardKind::kNone;
     }},
    {"residual scale", [](ModelSpec& s) { s.layers[1].residual_scale = 0.3f; }},
    {"plain feed-forward",
     [](ModelSpec& s) {
       s.layers[1].feed_forward = FeedForwardKind::kPlain;
       s.layers[1].tensors.always = s.layers[1].tensors.always - TensorSet{TensorRole::kGate};
     }},
    {"GELU", [](ModelSpec& s) { s.layers[1].activation = Activation::kGelu; }},
    {"ReLU", [](ModelSpec& s) { s.layers[1].activation = Activation::kRelu; }},
    {"squared ReLU", [](ModelSpec& s) { s.layers[1].activation = Activation::kSquaredRelu; }},
    {"a feed-forward width a layer",
     [](ModelSpec& s) {
       s.layers[0].d_ff = 17;
       s.layers[1].d_ff = 300;
     }},
};

void CheckCases(std::span<const Case> cases) {
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const HeadLayout heads = {4, 2, 16, 24};
    ModelSpec spec = SmallSpec(heads, 48, 96, kLayers);
    const TestModel plain = MakeTestModel(spec, TensorType::kF32, 7);
    c.change(spec);
    const TestModel test = MakeTestModel(spec, TensorType::kF32, 7);
    const std::vector<uint32_t> tokens = RandomTokens(kTokens, spec.vocab_size, 8);
    const Matrix expected = OracleLogits(test.oracle, tokens);
    for (const size_t chunk : {1u, 16u}) {
      DecodeSetup setup;
      setup.chunk = chunk;
      const std::vector<float> logits = DecodeAll(*test.model, tokens, setup);
      const Difference d = Compare(logits, expected.values);
      CHECK(d.max <= F32Tolerance(spec, d.magnitude));
      // The case would be worthless if it changed nothing.
      CHECK(Compare(logits, OracleLogits(plain.oracle, tokens).values).relative_rms > 1e-3);
    }
  }
}

}  // namespace

TEST_CASE("decoder: everything that a spec says of attention is honoured") {
  CheckCases(kAttentionCases);
}

TEST_CASE("decoder: everything that a spec says of positions is honoured") {
  CheckCases(kPositionCases);
}

TEST_CASE("decoder: everything that a spec says of norms, branches and the head is honoured") {
  CheckCases(kBlockCases);
}

}  // namespace headlight
