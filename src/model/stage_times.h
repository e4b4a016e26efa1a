// Where the time of a forward pass goes, by kind of work; of all layers together.
#ifndef HEADLIGHT_MODEL_STAGE_TIMES_H_
#define HEADLIGHT_MODEL_STAGE_TIMES_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace headlight {

enum class Stage : uint8_t {
  kEmbedding,
  kNorms,        // and residual sums
  kProjections,  // Q, K, V and output, with the 8-bit form of their inputs
  kPositions,    // rotary positions, and writing the cache
  kAttention,
  kFeedForward,  // its matrix products, with the 8-bit form of their inputs
  kActivation,   // SwiGLU
  kHead,
  kSampling,
};
inline constexpr size_t kNStages = 9;

struct StageTimes {
  std::array<double, kNStages> ms{};
  double& operator[](Stage stage) { return ms[static_cast<size_t>(stage)]; }
  double operator[](Stage stage) const { return ms[static_cast<size_t>(stage)]; }
};

// Adds what has passed since the last mark to a stage. A mark costs a reading of the clock, about
// 50 ns in a browser, where a layer has eight; where a page is not isolated the clock goes in steps
// of 0.1 ms, so that only sums over many tokens mean something.
class StageClock {
 public:
  void Start(StageTimes* times) {
    times_ = times;
    if (times_ != nullptr) last_ = Clock::now();
  }
  void Mark(Stage stage) {
    if (times_ == nullptr) return;
    const Clock::time_point now = Clock::now();
    (*times_)[stage] += std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
  }

 private:
  using Clock = std::chrono::steady_clock;
  StageTimes* times_ = nullptr;
  Clock::time_point last_;
};

}  // namespace headlight

#endif  // HEADLIGHT_MODEL_STAGE_TIMES_H_
