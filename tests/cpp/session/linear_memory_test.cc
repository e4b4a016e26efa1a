// Memory of long contexts: what is reported is what is taken, and it grows with the number of
// tokens, not with its square.
#include <doctest/doctest.h>

#include <vector>

#include "allocation_count.h"
#include "kv/kept_rows.h"
#include "session/run_session.h"
#include "support.h"

namespace headlight {
namespace {

constexpr size_t kLong = 8192;

// As small as a model can be: of its last layer only the last row is computed, so it has two.
ModelSpec LongSpec() {
  ModelSpec spec = SmallSpec({2, 1, 8, 8}, 16, 16, 2);
  spec.n_ctx_train = 2 * kLong;
  return spec;
}

SessionOptions LongOptions(size_t n_ctx) {
  SessionOptions options;
  options.n_ctx = n_ctx;
  return options;
}

TEST_CASE("memory: 8192 tokens take what was reported, and nothing that grows with n x n") {
  const TestModel test = MakeTestModel(LongSpec(), TensorType::kQ8_0, 5);
  ThreadPool pool(testing::ThreadsHere(2));
  const size_t before = AlignedBytesAllocated();
  Session session(test.model, LongOptions(kLong), pool);
  const SessionPlan& plan = session.plan();
  // Each array is rounded up to its alignment: less than a thousand bytes for all of them.
  const size_t taken = AlignedBytesAllocated() - before;
  CHECK(taken >= plan.kv_cache_bytes + plan.workspace_bytes - 1024);
  CHECK(taken <= plan.kv_cache_bytes + plan.workspace_bytes + 1024);
  const std::vector<uint32_t> tokens = RandomTokens(kLong, test.model->spec.vocab_size, 6);
  const size_t aligned_before = AlignedBytesAllocated();
  const size_t bytes_before = BytesAllocated();
  session.Logits(tokens, false);
  CHECK(AlignedBytesAllocated() == aligned_before);
  // Copies of the tokens, and the logits of one row; n x n scores would be 268 MB.
  CHECK(BytesAllocated() - bytes_before <= 8 * kLong * sizeof(uint32_t));
}

TEST_CASE("memory: what each eviction takes at 8192 tokens is what was reported") {
  const TestModel test = MakeTestModel(LongSpec(), TensorType::kQ8_0, 5);
  ThreadPool pool(1);
  for (const EvictionOptions& eviction : {EvictionOptions{EvictionPolicy::kSinks, 4, 128, 0},
                                          EvictionOptions{EvictionPolicy::kH2o, 0, 128, 256},
                                          EvictionOptions{EvictionPolicy::kSnapKv, 0, 32, 256}}) {
    SessionOptions options = LongOptions(kLong);
    options.eviction = eviction;
    CAPTURE(static_cast<int>(eviction.policy));
    const size_t before = AlignedBytesAllocated();
    Session session(test.model, options, pool);
    const SessionPlan& plan = session.plan();
    // The books of rows that are chosen are in plain arrays, all others are aligned.
    const size_t n_rows = eviction.policy == EvictionPolicy::kH2o ? 256 + kH2oStep : kLong;
    const size_t books = ChoosesRows(eviction) ? 2 * KeptRows::Bytes(1, n_rows) : 0;
    const size_t taken = AlignedBytesAllocated() - before + books;
    CHECK(taken >= plan.kv_cache_bytes + plan.workspace_bytes - 1024);
    CHECK(taken <= plan.kv_cache_bytes + plan.workspace_bytes + 1024);
    CHECK(plan.workspace_bytes <= 4 << 20);  // n x n scores would be 268 MB
  }
}

TEST_CASE("memory: looking at the last row of 8192 takes heads x tokens") {
  const TestModel test = MakeTestModel(LongSpec(), TensorType::kQ8_0, 5);
  ThreadPool pool(testing::ThreadsHere(2));
  Session session(test.model, LongOptions(kLong), pool);
  const std::vector<uint32_t> tokens = RandomTokens(kLong, test.model->spec.vocab_size, 6);
  CaptureRequest request;
  request.what.layers = {0};
  const size_t before = BytesAllocated();
  const auto result = session.Compute(tokens, false, &request);
  CHECK(result.capture->layers[0].attention.size() == 2 * kLong);
  CHECK(BytesAllocated() - before <= 16 * kLong * sizeof(float));
}

TEST_CASE("memory: the reported workspace grows by the same number of bytes for each token") {
  ModelSpec spec = SmallSessionSpec();
  spec.n_ctx_train = 4 * kLong;
  const auto workspace = [&](size_t n_ctx) {
    return PlanSession(spec, LongOptions(n_ctx), 4).workspace_bytes;
  };
  const size_t step = workspace(2 * kLong) - workspace(kLong);
  CHECK(workspace(3 * kLong) - workspace(2 * kLong) == step);
  CHECK(workspace(4 * kLong) - workspace(3 * kLong) == step);
  CHECK(step <= kLong * 1024);  // bytes a token, of which rotary tables are the most
}

}  // namespace
}  // namespace headlight
