// Small random models, for the library (packed) and for the oracle (double) at once.
#ifndef HEADLIGHT_TESTS_ORACLE_TEST_MODEL_H_
#define HEADLIGHT_TESTS_ORACLE_TEST_MODEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/dtype.h"
#include "model/model.h"
#include "oracle/oracle.h"

namespace headlight {

struct TestModel {
  std::shared_ptr<const Model> model;
  OracleModel oracle;
};

// A spec with n_layers equal layers; every other field has the value of a common small Llama and
// can be changed after.
ModelSpec SmallSpec(const HeadLayout& heads, size_t d_model, size_t d_ff, size_t n_layers);

// Weights of `type` for `spec`; a matrix whose rows do not divide into blocks of 32 becomes F16, as
// in real files.
TestModel MakeTestModel(const ModelSpec& spec, TensorType type, uint64_t seed);

// n random ids below vocab_size.
std::vector<uint32_t> RandomTokens(size_t n, size_t vocab_size, uint64_t seed);

}  // namespace headlight

#endif  // HEADLIGHT_TESTS_ORACLE_TEST_MODEL_H_
