// ThreadPool: every task once, everything visible afterwards, sleepers woken, sizes refused.
#include "base/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace headlight {
namespace {

#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
constexpr size_t kThreadCounts[] = {1, 2, 3, 5};
#else
constexpr size_t kThreadCounts[] = {1};
#endif

TEST_CASE("ThreadPool: each task runs once, whatever the thread and task counts") {
  for (const size_t n_threads : kThreadCounts) {
    ThreadPool pool(n_threads);
    CHECK(pool.n_threads() == n_threads);
    for (const size_t n_tasks : std::initializer_list<size_t>{0, 1, 2, 3, 7, 64, 1000}) {
      std::vector<int> runs(n_tasks, 0);
      std::atomic<bool> bad_thread{false};
      pool.ParallelFor(n_tasks, [&](size_t task, size_t thread) {
        ++runs[task];
        if (thread >= n_threads) bad_thread = true;
      });
      CHECK_FALSE(bad_thread.load());
      for (const int count : runs) CHECK(count == 1);
    }
  }
}

TEST_CASE("ThreadPool: what tasks wrote is visible to the caller and to the next call") {
  for (const size_t n_threads : kThreadCounts) {
    ThreadPool pool(n_threads);
    std::vector<size_t> values(97, 0);
    // Plain memory, read by other threads in the next call: a lost update or a stale read changes
    // the sum.
    constexpr size_t kCalls = 2000;
    for (size_t call = 0; call < kCalls; ++call) {
      pool.ParallelFor(values.size(), [&](size_t task, size_t) {
        values[(task * 31 + call) % values.size()] += 1;
      });
    }
    for (const size_t value : values) CHECK(value == kCalls);
  }
}

TEST_CASE("ThreadPool: threads that fell asleep are woken by the next call") {
  for (const size_t n_threads : kThreadCounts) {
    ThreadPool pool(n_threads);
    std::atomic<size_t> n_done{0};
    for (int call = 0; call < 5; ++call) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      pool.ParallelFor(50, [&](size_t, size_t) { n_done.fetch_add(1); });
    }
    CHECK(n_done.load() == 250);
  }
}

TEST_CASE("ThreadPool: the caller sleeps through a long task and returns after it") {
  for (const size_t n_threads : kThreadCounts) {
    ThreadPool pool(n_threads);
    std::atomic<int> n_done{0};
    for (int call = 0; call < 3; ++call) {
      pool.ParallelFor(n_threads, [&](size_t task, size_t) {
        if (task != 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
        n_done.fetch_add(1);
      });
      CHECK(n_done.load() == static_cast<int>(n_threads) * (call + 1));
    }
  }
}

TEST_CASE("ThreadPool: a count outside the module's range is a BadOption that names it") {
  std::vector<size_t> bad = {0, 257};
#if defined(__EMSCRIPTEN__) && !defined(__EMSCRIPTEN_PTHREADS__)
  bad.push_back(2);
#endif
  for (const size_t n_threads : bad) {
    bool thrown = false;
    try {
      ThreadPool pool(n_threads);
    } catch (const Error& e) {
      thrown = true;
      CHECK(e.code() == ErrorCode::kBadOption);
      CHECK(e.message().find(std::to_string(n_threads)) != std::string::npos);
    }
    CHECK(thrown);
  }
}

}  // namespace
}  // namespace headlight
