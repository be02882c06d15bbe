// Whose turn it is on a device: one job at a time, in the order of asking, cancellable while waiting.
#pragma once

#include <ptxbench/core.hpp>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

namespace ptxbench {

class Turns {
 public:
  // Held until destroyed.
  class Turn {
   public:
    explicit Turn(Turns& turns) : turns_(&turns) {}
    Turn(Turn&& other) noexcept : turns_(other.turns_) { other.turns_ = nullptr; }
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->end();
    }

   private:
    Turns* turns_;
  };

  // Errors: cancelled; state where this very thread has the turn, that is, from within a callback of the job that runs:
  // waiting would never end.
  Result<Turn> take(const CancelToken* cancel);

 private:
  void end() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<std::uint64_t> waiting_;  // tickets, in order
  std::uint64_t next_ticket_ = 0;
  bool taken_ = false;
  std::thread::id holder_;
};

}  // namespace ptxbench
