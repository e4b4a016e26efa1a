#include "base/parallel.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <system_error>
#include <vector>

#include "base/aligned.h"
#include "base/error.h"

#if !defined(__EMSCRIPTEN__) || defined(__EMSCRIPTEN_PTHREADS__)
#define HEADLIGHT_HAS_THREADS 1
#include <thread>
#else
#define HEADLIGHT_HAS_THREADS 0
#endif

namespace headlight {

#if HEADLIGHT_HAS_THREADS

namespace {

// Polls before a thread sleeps: some tens of microseconds, which bridges the gap between two
// products of one token (waking a sleeper costs about as much) and is nothing against the pause
// between two messages of a chat.
#if defined(__EMSCRIPTEN__)
constexpr int kSpins = 20000;  // about 2 ns a poll: WASM has no pause instruction
#else
constexpr int kSpins = 1500;
#endif

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Sleeps while *word == seen (may wake early). libc++'s atomic wait polls under Emscripten; the
// instruction does not. A function of its own, since the code of V8 11.3's baseline tier (Node 20)
// for that instruction loses a local of the function around it: inlined, workers took the thread
// index of the caller and with it its scratch memory.
[[gnu::noinline]] void FutexWait(std::atomic<uint32_t>& word, uint32_t seen) {
#if defined(__EMSCRIPTEN__)
  __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&word), static_cast<int>(seen), -1);
#else
  word.wait(seen);
#endif
}

inline void FutexWakeAll(std::atomic<uint32_t>& word) {
#if defined(__EMSCRIPTEN__)
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&word), ~0u);
#else
  word.notify_all();
#endif
}

}  // namespace

struct ThreadPool::Impl {
  explicit Impl(size_t n_threads) : n_threads(n_threads) {
    workers.reserve(n_threads - 1);
    try {
      for (size_t t = 1; t < n_threads; ++t) workers.emplace_back([this, t] { Work(t); });
    } catch (const std::system_error& e) {
      Stop();
      throw Error(ErrorCode::kBadOption,
                  "could not start thread " + std::to_string(workers.size() + 1) + " of " +
                      std::to_string(n_threads) + " (" + e.what() + "); use fewer threads",
                  {{"threads", std::to_string(n_threads)}});
    }
  }
  ~Impl() { Stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void Stop() {
    stop.store(true);
    Announce();
    for (std::thread& worker : workers) worker.join();
    workers.clear();
  }

  // A sleeper counts itself before it compares `generation`, so one of the two sides always sees
  // the other.
  void Announce() {
    generation.fetch_add(1);
    if (n_sleepers.load() != 0) FutexWakeAll(generation);
  }

  // Runs tasks of the current call until none is left to claim. A positive `unclaimed` alone says
  // that a claim is good; while a claimed task is not finished the call cannot return, so `task`
  // and `n_tasks` stand still, and what late threads take below zero the next call overwrites.
  void RunTasks(size_t thread) {
    while (unclaimed.load(std::memory_order_relaxed) > 0) {
      const int32_t left = unclaimed.fetch_sub(1, std::memory_order_acq_rel);
      if (left <= 0) return;
      (*task)(n_tasks - static_cast<size_t>(left), thread);
      if (unfinished.fetch_sub(1) == 1 && caller_sleeps.load()) FutexWakeAll(unfinished);
    }
  }

  void Work(size_t thread) {
    uint32_t seen = 0;
    while (!stop.load()) {
      RunTasks(thread);
      int spins = 0;
      while (generation.load() == seen && spins < kSpins) {
        Pause();
        ++spins;
      }
      n_sleepers.fetch_add(1);
      while (generation.load() == seen) FutexWait(generation, seen);
      n_sleepers.fetch_sub(1);
      seen = generation.load();
    }
  }

  void Run(size_t n, const TaskRef& new_task) {
    task = &new_task;
    n_tasks = n;
    unfinished.store(static_cast<uint32_t>(n));
    unclaimed.store(static_cast<int32_t>(n), std::memory_order_release);
    Announce();
    RunTasks(0);
    for (int spins = 0; spins < kSpins; ++spins) {
      if (unfinished.load() == 0) return;
      Pause();
    }
    caller_sleeps.store(true);
    for (uint32_t left = unfinished.load(); left != 0; left = unfinished.load()) {
      FutexWait(unfinished, left);
    }
    caller_sleeps.store(false);
  }

  const size_t n_threads;
  const TaskRef* task = nullptr;
  size_t n_tasks = 0;
  // Each on its own line: claims and completions come from different threads at once.
  alignas(kAlignment) std::atomic<int32_t> unclaimed{0};
  alignas(kAlignment) std::atomic<uint32_t> unfinished{0};
  alignas(kAlignment) std::atomic<uint32_t> generation{0};
  std::atomic<uint32_t> n_sleepers{0};
  std::atomic<bool> caller_sleeps{false};
  std::atomic<bool> stop{false};
  std::vector<std::thread> workers;
};

#else

struct ThreadPool::Impl {
  size_t n_threads = 1;
};

#endif  // HEADLIGHT_HAS_THREADS

ThreadPool::ThreadPool(size_t n_threads) {
  // More threads than any machine has: a typing error, not a wish.
  constexpr size_t kMaxThreads = HEADLIGHT_HAS_THREADS ? 256 : 1;
  if (n_threads < 1 || n_threads > kMaxThreads) {
    throw Error(ErrorCode::kBadOption,
                "threads is " + std::to_string(n_threads) + "; this module takes 1" +
                    (kMaxThreads == 1 ? " (it is built without threads)"
                                      : " to " + std::to_string(kMaxThreads)),
                {{"threads", std::to_string(n_threads)}});
  }
#if HEADLIGHT_HAS_THREADS
  impl_ = std::make_unique<Impl>(n_threads);
#else
  impl_ = std::make_unique<Impl>();
#endif
}

ThreadPool::~ThreadPool() = default;

size_t ThreadPool::n_threads() const { return impl_->n_threads; }

void ThreadPool::ParallelFor(size_t n_tasks, TaskRef task) noexcept {
#if HEADLIGHT_HAS_THREADS
  if (impl_->n_threads > 1 && n_tasks > 1) {
    impl_->Run(n_tasks, task);
    return;
  }
#endif
  for (size_t i = 0; i < n_tasks; ++i) task(i, 0);
}

}  // namespace headlight
