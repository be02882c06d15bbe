#include "evaluate/threads.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace ptxbench {
namespace {

// A thread begins with its creator's mask: a host's handlers run on the host's threads.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

ThreadGroup::ThreadGroup(int most) : most_(std::max(most, 1)), owner_(::getpid()) {}

ThreadGroup::~ThreadGroup() {
  if (owner_ != ::getpid()) {
    for (std::thread& thread : threads_) thread.detach();
    return;
  }
  std::deque<Task> dropped;  // destroyed without the lock
  std::vector<std::thread> threads;
  {
    const std::lock_guard threads_lock(threads_mutex_);
    const std::lock_guard lock(shared_->mutex);
    shared_->stopped = true;
    dropped.swap(shared_->tasks);
    threads.swap(threads_);
  }
  shared_->changed.notify_all();
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id())
      thread.detach();
    else
      thread.join();
  }
}

void ThreadGroup::run(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    ++shared->idle;
    shared->changed.wait(lock, [&] { return shared->stopped || !shared->tasks.empty(); });
    --shared->idle;
    if (shared->stopped) return;
    Task task = std::move(shared->tasks.front());
    shared->tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes without the lock
    lock.lock();
  }
}

void ThreadGroup::post(Task task) {
  const std::lock_guard threads_lock(threads_mutex_);
  bool start = false;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->stopped) return;  // by a task that ran while this was destroyed
    start = shared_->tasks.size() + 1 > static_cast<std::size_t>(shared_->idle) &&
            threads_.size() < static_cast<std::size_t>(most_);
  }
  if (start) {
    const NoSignals masked;
    threads_.reserve(static_cast<std::size_t>(most_));
    try {
      threads_.emplace_back([shared = shared_] { run(shared); });
    } catch (...) {
      if (threads_.empty()) throw;  // else the others do it
    }
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->tasks.push_back(std::move(task));
  }
  shared_->changed.notify_one();
}

bool ThreadGroup::is_own_thread() const noexcept {
  const std::lock_guard lock(threads_mutex_);
  return std::any_of(threads_.begin(), threads_.end(),
                     [](const std::thread& t) { return t.get_id() == std::this_thread::get_id(); });
}

}  // namespace ptxbench
