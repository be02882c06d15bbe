#include "worker/turn.hpp"

#include <chrono>

namespace ptxbench {

Result<Turns::Turn> Turns::take(const CancelToken* cancel) {
  constexpr std::chrono::milliseconds kLook{10};  // how often a waiting caller looks at its cancel token
  std::unique_lock lock(mutex_);
  if (taken_ && holder_ == std::this_thread::get_id())
    return make_error(ErrorCode::state, "a callback may not use the context that is calling it to run on the same device");
  const std::uint64_t ticket = next_ticket_++;
  const auto place = waiting_.insert(waiting_.end(), ticket);
  while (taken_ || waiting_.front() != ticket) {
    changed_.wait_for(lock, kLook);
    if (cancel == nullptr || !cancel->triggered()) continue;
    waiting_.erase(place);
    changed_.notify_all();
    return make_error(ErrorCode::cancelled, "cancelled while waiting for the device");
  }
  waiting_.erase(place);
  taken_ = true;
  holder_ = std::this_thread::get_id();
  return Turn(*this);
}

void Turns::end() noexcept {
  {
    const std::lock_guard lock(mutex_);
    taken_ = false;
    holder_ = {};
  }
  changed_.notify_all();
}

}  // namespace ptxbench
