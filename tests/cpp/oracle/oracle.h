// The forward pass once more, in double, straight from the formulas and with nothing clever: what
// the decoder is compared with. It shares the spec structs with the library and no arithmetic.
#ifndef HEADLIGHT_TESTS_ORACLE_ORACLE_H_
#define HEADLIGHT_TESTS_ORACLE_ORACLE_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/model.h"
#include "oracle/test_tensor.h"

namespace headlight {

// Weights by their role; most have one matrix, a stack has several, a vector is a row.
using OracleWeights = std::map<TensorRole, std::vector<Matrix>>;

// A query head of the model that blends by a pattern instead, whatever its query says.
struct OracleFixedHead {
  size_t layer, head;
  FixedPattern pattern;
};

struct OracleModel {
  ModelSpec spec;
  OracleWeights weights;
  std::vector<OracleWeights> layers;
  std::vector<OracleFixedHead> fixed;
};

// The weights of a loaded model, every row decoded.
OracleModel OracleOf(const Model& model);

// What happens to the x of every product. kEightBit: exact arithmetic on what 8 bits leave of x,
// that is, per 16 elements integers of up to 127 times a step, which is in sixteenths of that of 32
// elements (kernels/matmul.h); the error that no arithmetic can avoid once activations are so.
enum class OracleRounding { kNone, kEightBit };

// Logits of every position: [tokens.size(), vocab_size]. n_ctx: of the session, where a rotation
// depends on it; 0: as many as there are tokens.
Matrix OracleLogits(const OracleModel& model, std::span<const uint32_t> tokens,
                    OracleRounding rounding = OracleRounding::kNone, size_t n_ctx = 0);

// The same, seen from inside and with keys given up as the watch says (oracle_watch.h).
struct OracleWatch;
Matrix WatchedOracleLogits(const OracleModel& model, std::span<const uint32_t> tokens,
                           OracleWatch& watch, OracleRounding rounding = OracleRounding::kNone,
                           size_t n_ctx = 0);

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_ORACLE_ORACLE_H_
