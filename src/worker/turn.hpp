// Whose turn it is on a GPU: a verification and counts of something else may run side by side, each in a process of its own, and
// nothing runs beside a timing. Cancellable while waiting.
#pragma once

#include <ptxbench/core.hpp>

#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <thread>

namespace ptxbench {

// What a turn is for. Those that wait come in this order, and within a kind in that of asking: what has been verified is timed and
// counted before the next is verified, so that little waits half done. Where counts are running a verification comes before what
// wants to be alone; but nothing is overtaken more than a few times.
enum class TurnKind : std::uint8_t {
  count,  // beside a verification and other counts
  alone,
  verify  // beside counts
};

class Turns {
 public:
  // Held until destroyed.
  class Turn {
   public:
    Turn(Turns& turns, std::uint64_t ticket) : turns_(&turns), ticket_(ticket) {}
    Turn(Turn&& other) noexcept : turns_(other.turns_), ticket_(other.ticket_) { other.turns_ = nullptr; }
    Turn& operator=(Turn&&) = delete;
    ~Turn() {
      if (turns_ != nullptr) turns_->end(ticket_);
    }

   private:
    Turns* turns_;
    std::uint64_t ticket_;
  };

  // Errors: cancelled; state where this very thread has a turn, that is, from within a callback of the job that runs:
  // waiting might never end.
  Result<Turn> take(TurnKind kind, const CancelToken* cancel);

 private:
  struct Holder {
    TurnKind kind;
    std::thread::id thread;
    std::uint64_t ticket;
  };
  struct Waiting {
    TurnKind kind;
    int overtaken = 0;  // by others that began meanwhile
  };
  void end(std::uint64_t ticket) noexcept;
  bool may_begin(std::list<Waiting>::const_iterator place) const;  // under the lock

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Waiting> waiting_;  // in the order in which they come
  std::list<Holder> holders_;
  std::uint64_t next_ticket_ = 0;
};

}  // namespace ptxbench
