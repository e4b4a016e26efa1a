#include "model/arch_table.h"

namespace headlight {
namespace {

using Role = TensorRole;

constexpr TensorSet kQkv = {Role::kQ, Role::kK, Role::kV};
constexpr TensorSet kQkvBias = {Role::kQBias, Role::kKBias, Role::kVBias};
constexpr TensorSet kQkNorms = {Role::kQNorm, Role::kKNorm};
constexpr TensorSet kOutputBias = {Role::kAttentionOutputBias};
constexpr TensorSet kPreNorms = {Role::kAttentionNorm, Role::kFeedForwardNorm};
constexpr TensorSet kPreNormBiases = {Role::kAttentionNormBias, Role::kFeedForwardNormBias};
constexpr TensorSet kPostNorms = {Role::kAttentionPostNorm, Role::kFeedForwardPostNorm};
constexpr TensorSet kFeedForwardBiases = {Role::kUpBias, Role::kDownBias};
constexpr TensorSet kGate = {Role::kGate};
constexpr TensorSet kOutputGates = {Role::kAttentionGate, Role::kHeadGate};

constexpr TensorSet kExpertMatrices = {Role::kRouter, Role::kExpertGate, Role::kExpertUp,
                                       Role::kExpertDown};
constexpr TensorSet kExpertBiases = {Role::kRouterBias, Role::kExpertGateBias, Role::kExpertUpBias,
                                     Role::kExpertDownBias};
constexpr TensorSet kSharedExperts = {Role::kSharedGate, Role::kSharedUp, Role::kSharedDown};
constexpr TensorSet kChoiceBias = {Role::kRouterChoiceBias};

constexpr TensorSet kPlain = kPlainLayerTensors.always;
constexpr TensorSet kUngated = kPlain - kGate;
constexpr TensorSet kPlainModel = kPlainModelTensors.always;
constexpr TensorSet kHead = kPlainModelTensors.maybe;

constexpr TensorUse kWithRopeFactors = {kPlainModel, kHead | TensorSet{Role::kRopeFactors}};
constexpr TensorUse kLayerNormModel = {kPlainModel | TensorSet{Role::kOutputNormBias}, kHead};
// LayerNorm, biases everywhere, a plain feed-forward.
constexpr TensorUse kLayerNormLayer = {
    kUngated | kPreNormBiases | kQkvBias | kOutputBias | kFeedForwardBiases, {}};

// Pairs: converters of the "llama" kind permute Q and K so that the pairs are neighbours (2i, 2i +
// 1); those of the half-split kind leave them as trained.
constexpr RopeStyle kPairs = RopeStyle::kInterleaved;
constexpr RopeStyle kHalves = RopeStyle::kHalfSplit;

constexpr ArchRow kArchitectures[] = {
    // Also Llama 2 and 3, Mistral, TinyLlama, SmolLM and SmolLM2; and gates of attention's output.
    {.name = "llama",
     .rope_style = kPairs,
     .layer = {kPlain, kQkvBias | kOutputBias | kOutputGates | kFeedForwardBiases |
                           TensorSet{Role::kGateBias}},
     .model = kWithRopeFactors,
     .experts = {kExpertMatrices, {}},
     .experts_sum_to_one = true},
    {.name = "smollm3", .rope_style = kPairs, .unrotated_every = 4},
    {.name = "ernie4_5", .rope_style = kPairs},
    {.name = "internlm2", .rope_style = kPairs},
    {.name = "xverse", .rope_style = kPairs},
    {.name = "exaone", .rope_style = kHalves, .model = kWithRopeFactors},
    {.name = "qwen2", .rope_style = kHalves, .layer = {kPlain | kQkvBias, {}}},
    {.name = "qwen3", .rope_style = kHalves, .layer = {kPlain | kQkNorms, kQkvBias}},
    {.name = "qwen2moe",
     .rope_style = kHalves,
     .layer = {kPlain | kQkvBias, {}},
     .experts = {kExpertMatrices | kSharedExperts | TensorSet{Role::kSharedRouter}, {}}},
    {.name = "qwen3moe",
     .rope_style = kHalves,
     .layer = {kPlain | kQkNorms, {}},
     .experts = {kExpertMatrices, {}},
     .experts_sum_to_one = true},
    {.name = "olmoe",
     .rope_style = kHalves,
     .layer = {kPlain | kQkNorms, {}},
     .qk_norm = QkNorm::kRow,
     .experts = {kExpertMatrices, {}}},
    {.name = "deepseek", .rope_style = kPairs, .experts = {kExpertMatrices | kSharedExperts, {}}},
    {.name = "deepseek2",
     .rope_style = kPairs,
     .layer = {(kPlain - kQkv) | TensorSet{Role::kKvA, Role::kKvANorm},
               {Role::kQ, Role::kQA, Role::kQANorm, Role::kQB, Role::kKvB, Role::kKB, Role::kVB}},
     .experts = {kExpertMatrices | kSharedExperts, kChoiceBias},
     .is_latent = true},
    {.name = "gpt-oss",
     .rope_style = kHalves,
     .layer = {(kPlain - TensorSet{Role::kFeedForwardNorm}) | kQkvBias | kOutputBias |
                   TensorSet{Role::kSinks, Role::kNormBetween},
               {}},
     .activation = Activation::kClampedSwiglu,
     .window = {.period = 2},
     .experts = {kExpertMatrices | kExpertBiases, {}},
     .gating = ExpertGating::kChosenSoftmax},
    {.name = "gemma",
     .rope_style = kHalves,
     .activation = Activation::kGelu,
     .scales_embedding = true},
    {.name = "gemma2",
     .rope_style = kHalves,
     .layer = {kPlain | kPostNorms, {}},
     .activation = Activation::kGelu,
     .window = {.size = 4096, .period = 2},
     .scales_embedding = true,
     .attention_softcap = 50.0f,
     .logit_softcap = 30.0f,
     .n_wide_layers = 46},
    {.name = "gemma3",
     .rope_style = kHalves,
     .layer = {kPlain | kPostNorms | kQkNorms, {}},
     .activation = Activation::kGelu,
     .window = {.period = 6, .windowed_freq_base = 10000.0, .windowed_is_scaled = false},
     .scales_embedding = true,
     .n_wide_layers = 62},
    {.name = "phi3",
     .rope_style = kHalves,
     .model = {kPlainModel, kHead | TensorSet{Role::kRopeFactorsShort, Role::kRopeFactorsLong}}},
    {.name = "olmo2",
     .rope_style = kHalves,
     .layer = {(kPlain - kPreNorms) | kPostNorms | kQkNorms, {}},
     .qk_norm = QkNorm::kRow,
     .window = {.period = 4, .windowed_is_scaled = false}},
    {.name = "granite", .rope_style = kPairs, .model = kWithRopeFactors, .divides_logits = true},
    {.name = "granitemoe",
     .rope_style = kPairs,
     .divides_logits = true,
     .experts = {kExpertMatrices, {}},
     .experts_sum_to_one = true},
    {.name = "gpt2",
     .rope_style = RopeStyle::kNone,
     .layer = kLayerNormLayer,
     .model = {kLayerNormModel.always | TensorSet{Role::kPositions}, kHead},
     .norm = NormKind::kLayer,
     .activation = Activation::kGelu,
     .positions = AddedPositions::kLearned},
    {.name = "gptneox",
     .rope_style = kHalves,
     .layer = kLayerNormLayer,
     .model = kLayerNormModel,
     .norm = NormKind::kLayer,
     .activation = Activation::kGelu,
     .is_parallel = true},
    {.name = "starcoder2",
     .rope_style = kHalves,
     .layer = kLayerNormLayer,
     .model = kLayerNormModel,
     .norm = NormKind::kLayer,
     .activation = Activation::kGelu},
    {.name = "stablelm",
     .rope_style = kHalves,
     .layer = {(kPlain - kPreNorms) | TensorSet{Role::kAttentionNorm, Role::kAttentionNormBias},
               kQkvBias | kQkNorms | TensorSet{Role::kFeedForwardNorm, Role::kFeedForwardNormBias}},
     .model = kLayerNormModel,
     .norm = NormKind::kLayer,
     .qk_norm = QkNorm::kOwnHead},
    {.name = "phi2",
     .rope_style = kHalves,
     .layer = {(kLayerNormLayer.always -
                TensorSet{Role::kFeedForwardNorm, Role::kFeedForwardNormBias}),
               {}},
     .model = {kLayerNormModel.always | TensorSet{Role::kHead, Role::kHeadBias}, {}},
     .norm = NormKind::kLayer,
     .activation = Activation::kGelu,
     .is_parallel = true},
    {.name = "command-r",
     .rope_style = kPairs,
     .layer = {kPlain - TensorSet{Role::kFeedForwardNorm}, kQkNorms},
     .norm = NormKind::kLayer,
     .qk_norm = QkNorm::kOwnHead,
     .is_parallel = true},
    {.name = "cohere2",
     .rope_style = kPairs,
     .layer = {kPlain - TensorSet{Role::kFeedForwardNorm}, {}},
     .norm = NormKind::kLayer,
     .window = {.period = 4, .full_rotates = false},
     .is_parallel = true},
    {.name = "bloom",
     .rope_style = RopeStyle::kNone,
     .layer = kLayerNormLayer,
     .model = {kLayerNormModel.always | TensorSet{Role::kEmbeddingNorm, Role::kEmbeddingNormBias},
               kHead},
     .norm = NormKind::kLayer,
     .activation = Activation::kGelu,
     .alibi_max_bias = 8.0f},
    {.name = "mpt",
     .rope_style = RopeStyle::kNone,
     .layer = {kUngated, kPreNormBiases | kQkvBias | kOutputBias | kFeedForwardBiases},
     .model = {kPlainModel, kHead | TensorSet{Role::kOutputNormBias}},
     .norm = NormKind::kLayer,
     .activation = Activation::kGelu},
    {.name = "nemotron",
     .rope_style = kHalves,
     .layer = {kUngated | kPreNormBiases, kQkvBias | kOutputBias | kFeedForwardBiases},
     .model = kLayerNormModel,
     .norm = NormKind::kLayer,
     .activation = Activation::kSquaredRelu},
};

}  // namespace

std::span<const ArchRow> Architectures() { return kArchitectures; }

const ArchRow* FindArchitecture(std::string_view name) {
  for (const ArchRow& row : kArchitectures) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace headlight
