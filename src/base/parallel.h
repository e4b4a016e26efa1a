// ParallelFor over a pool that starts once. The caller's thread takes part; with one thread
// everything runs inline. Work is handed out by index, so which thread ran a task never changes a
// result. Not for nested use.
#ifndef HEADLIGHT_BASE_PARALLEL_H_
#define HEADLIGHT_BASE_PARALLEL_H_

#include <cstddef>
#include <memory>
#include <type_traits>

namespace headlight {

// Non-owning reference to a callable `void(size_t task, size_t thread)`: no allocation a call.
class TaskRef {
 public:
  template <typename F, typename = std::enable_if_t<!std::is_same_v<std::decay_t<F>, TaskRef>>>
  // NOLINTNEXTLINE(google-explicit-constructor): meant to be made from a lambda at the call.
  TaskRef(const F& f)
      : object_(&f), call_([](const void* object, size_t task, size_t thread) {
          (*static_cast<const F*>(object))(task, thread);
        }) {}
  void operator()(size_t task, size_t thread) const { call_(object_, task, thread); }

 private:
  const void* object_;
  void (*call_)(const void*, size_t, size_t);
};

class ThreadPool {
 public:
  // n_threads >= 1 counts the caller. In a build without threads only 1 is accepted (Error
  // kBadOption).
  explicit ThreadPool(size_t n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t n_threads() const;
  // Calls task(i, thread) once for each i in [0, n_tasks), thread in [0, n_threads); returns when
  // all are done, and all that they wrote is visible to the caller. Tasks must not throw.
  void ParallelFor(size_t n_tasks, TaskRef task) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headlight

#endif  // HEADLIGHT_BASE_PARALLEL_H_
