// Threads that the library itself has: for jobs and lists of requests, none otherwise.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace ptxbench {

// At most so many threads, started when they are needed, that run tasks in the order of posting. No signal is
// delivered to them. Thread-safe.
class ThreadGroup {
 public:
  using Task = std::function<void()>;  // must not throw

  explicit ThreadGroup(int most);
  // Drops tasks that have not begun and waits for those that have. Called from one of its own threads (by a
  // task) it does not wait for that one.
  ~ThreadGroup();
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  // Throws std::system_error or std::bad_alloc where it cannot be run.
  void post(Task task);
  int most() const noexcept { return most_; }
  bool is_own_thread() const noexcept;

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Task> tasks;
    int idle = 0;
    bool stopped = false;
  };
  static void run(const std::shared_ptr<Shared>& shared);

  const int most_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  const pid_t owner_;  // a forked copy of the process has none of the threads
  mutable std::mutex threads_mutex_;
  std::vector<std::thread> threads_;
};

}  // namespace ptxbench
