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
#if defined(__EMSCRIPTEN__)
#include <emscripten/em_js.h>
#endif
#else
#define HEADLIGHT_HAS_THREADS 0
#endif

namespace headlight {

#if HEADLIGHT_HAS_THREADS

namespace {

#if defined(__EMSCRIPTEN__)
// A trap ends a WASM thread where it stands: no destructor runs, and a task that it had claimed is
// never finished. Only JavaScript sees it, so a thread's work is called from there; `failed` is the
// flag that the caller of ParallelFor reads, `waits` the word that it sleeps on.
EM_JS_DEPS(headlight_parallel, "$getWasmTableEntry");
// clang-format off
EM_JS(void, headlight_run_thread, (int entry, int argument, int failed, int waits), {
  try {
    getWasmTableEntry(entry)(argument);
  } catch (error) {
    if (error !== 'unwind') {
      const words = new Int32Array(wasmMemory.buffer);
      Atomics.store(words, failed >>> 2, 1);
      Atomics.notify(words, waits >>> 2);
    }
    throw error;
  }
});
EM_JS(void, headlight_pool_failed, (int silent), {
  const why = silent ? 'a thread of its pool does not answer' : 'a thread of its pool has failed';
  Module['onAbort']?.(why);
});
// clang-format on

// How often in a row nothing may have happened when the caller looks: a task takes milliseconds,
// and a machine that slept was away for one look. A browser that ends a thread does not say so.
constexpr int kMaxIdleLooks = 120;
#endif
// How long the caller sleeps before it looks whether the pool is still there.
constexpr int64_t kLookNs = 500'000'000;

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
// index of the caller and with it its scratch memory. timeout_ns: -1 for none (WASM only).
[[gnu::noinline]] void FutexWait(std::atomic<uint32_t>& word, uint32_t seen,
                                 [[maybe_unused]] int64_t timeout_ns) {
#if defined(__EMSCRIPTEN__)
  __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&word), static_cast<int>(seen),
                                      timeout_ns);
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
      for (size_t t = 1; t < n_threads; ++t) workers.emplace_back([this, t] { Start(t); });
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

  void Start(size_t thread) {
#if defined(__EMSCRIPTEN__)
    struct Place {
      Impl* pool;
      size_t thread;
    };
    const Place place = {this, thread};
    void (*entry)(const Place*) = [](const Place* p) { p->pool->Work(p->thread); };
    headlight_run_thread(reinterpret_cast<int>(entry), reinterpret_cast<int>(&place),
                         reinterpret_cast<int>(&thread_failed), reinterpret_cast<int>(&unfinished));
#else
    Work(thread);
#endif
  }

  // A task is lost, so nothing that this call should have computed can be given: the module ends
  // with a trap, which the worker reports (web/runtime/src/worker/host.ts).
  void CheckThreads([[maybe_unused]] int n_idle_looks) const {
#if defined(__EMSCRIPTEN__)
    const bool silent = n_idle_looks >= kMaxIdleLooks;
    if (thread_failed.load() == 0 && !silent) return;
    headlight_pool_failed(silent ? 1 : 0);
    __builtin_trap();
#endif
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
      while (generation.load() == seen) FutexWait(generation, seen, -1);
      n_sleepers.fetch_sub(1);
      seen = generation.load();
    }
  }

  void Run(size_t n, const TaskRef& new_task) {
    CheckThreads(0);
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
    int n_idle_looks = 0;
    for (uint32_t left = unfinished.load(); left != 0;) {
      FutexWait(unfinished, left, kLookNs);
      const uint32_t now = unfinished.load();
      n_idle_looks = now == left ? n_idle_looks + 1 : 0;
      CheckThreads(n_idle_looks);
      left = now;
    }
    caller_sleeps.store(false);
  }

  const size_t n_threads;
  const TaskRef* task = nullptr;
  size_t n_tasks = 0;
  std::atomic<uint32_t> thread_failed{0};
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
