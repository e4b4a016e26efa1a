// Logits without generation, in pieces.
#include <doctest/doctest.h>

#include <optional>
#include <vector>

#include "oracle/test_model.h"
#include "session/run_session.h"
#include "session/session.h"
#include "support.h"

namespace headlight {
namespace {

using testing::ErrorOf;

TEST_CASE("session: logits in pieces are those at once, and an end between them leaves no trace") {
  const TestModel test = SmallSessionModel();
  const std::vector<uint32_t> prompt = RandomTokens(20, 97, 8);
  const std::vector<SampledToken> expected = GenerateAlone(test, prompt, 6);
  ThreadPool pool(1);
  const std::vector<float> whole =
      Session(test.model, SmallSessionOptions(), pool).Logits(prompt, true);
  Session session(test.model, SmallSessionOptions(), pool);
  session.BeginForward(prompt, true, nullptr);
  size_t n_pieces = 1;
  std::optional<Session::Forward> result;
  for (; !(result = session.AdvanceForward(0.0)).has_value(); ++n_pieces) {
  }
  CHECK(result->logits == whole);
  CHECK(session.history() == prompt);
  CHECK(n_pieces > test.model->layers.size());
  const auto advance = [&] { session.AdvanceForward(0.0); };
  CHECK(ErrorOf(advance).code() == ErrorCode::kAborted);  // nothing is under way
  for (size_t n_done = 0; n_done < n_pieces; ++n_done) {
    for (const bool by_flag : {false, true}) {
      CAPTURE(n_done);
      bool is_stopped = false;
      session.set_stop_asked([&] { return is_stopped; });
      session.BeginForward(prompt, true, nullptr);
      for (size_t i = 0; i < n_done; ++i) CHECK_FALSE(session.AdvanceForward(0.0).has_value());
      if (by_flag) {
        is_stopped = true;
      } else {
        session.Cancel();
      }
      CHECK(ErrorOf(advance).code() == ErrorCode::kAborted);
      is_stopped = false;
      std::vector<SampledToken> tokens;
      session.Begin(prompt, Greedy(6));
      Finish(session, 1e9, tokens);
      CHECK(SameTokens(tokens, expected));
    }
  }
}

}  // namespace
}  // namespace headlight
