#ifndef HEADLIGHT_SESSION_STOPWATCH_H_
#define HEADLIGHT_SESSION_STOPWATCH_H_

#include <chrono>

namespace headlight {

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_)
        .count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace headlight

#endif  // HEADLIGHT_SESSION_STOPWATCH_H_
