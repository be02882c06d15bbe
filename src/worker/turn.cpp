#include "worker/turn.hpp"

#include <algorithm>
#include <chrono>

namespace ptxbench {
namespace {

constexpr int kMostOvertaken = 8;
constexpr std::ptrdiff_t kMostCounts = 3;  // each opens the GPU for itself, which takes longer than to count

bool conflict(TurnKind a, TurnKind b) {
  return a == TurnKind::alone || b == TurnKind::alone || (a == TurnKind::verify && b == TurnKind::verify);
}

}  // namespace

bool Turns::may_begin(std::list<Waiting>::const_iterator place) const {
  const TurnKind wanted = place->kind;
  if (std::any_of(holders_.begin(), holders_.end(), [&](const Holder& h) { return conflict(h.kind, wanted); })) return false;
  const auto counts =
      std::count_if(holders_.begin(), holders_.end(), [](const Holder& h) { return h.kind == TurnKind::count; });
  if (wanted == TurnKind::count && counts == kMostCounts) return false;
  // What waits for counts to end loses little to a verification beside them.
  const auto lets_pass = [&](TurnKind before) {
    return wanted == TurnKind::verify && before == TurnKind::alone && counts > 0;
  };
  for (auto other = waiting_.begin(); other != waiting_.end(); ++other) {
    if (other == place || !conflict(other->kind, wanted)) continue;
    const bool comes_first = std::distance(waiting_.begin(), other) <
                             std::distance(waiting_.begin(), std::list<Waiting>::const_iterator(place));
    if (other->overtaken >= kMostOvertaken && place->overtaken < kMostOvertaken) return false;
    if (comes_first && !lets_pass(other->kind) && place->overtaken < kMostOvertaken) return false;
  }
  return true;
}

Result<Turns::Turn> Turns::take(TurnKind kind, const CancelToken* cancel) {
  constexpr std::chrono::milliseconds kLook{10};  // how often a waiting caller looks at its cancel token
  std::unique_lock lock(mutex_);
  if (std::any_of(holders_.begin(), holders_.end(), [](const Holder& h) { return h.thread == std::this_thread::get_id(); }))
    return make_error(ErrorCode::state, "a callback may not use the context that is calling it to run on the same device");
  const auto place =
      waiting_.insert(std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& other) { return other.kind > kind; }), Waiting{kind, 0});
  while (!may_begin(place)) {
    changed_.wait_for(lock, kLook);
    if (cancel == nullptr || !cancel->triggered()) continue;
    waiting_.erase(place);
    changed_.notify_all();
    return make_error(ErrorCode::cancelled, "cancelled while waiting for the device");
  }
  waiting_.erase(place);
  for (Waiting& other : waiting_)
    if (conflict(other.kind, kind) && other.kind != kind) ++other.overtaken;
  const std::uint64_t ticket = next_ticket_++;
  holders_.push_back({kind, std::this_thread::get_id(), ticket});
  changed_.notify_all();  // one behind it may run beside it
  return Turn(*this, ticket);
}

void Turns::end(std::uint64_t ticket) noexcept {
  {
    const std::lock_guard lock(mutex_);
    holders_.remove_if([&](const Holder& h) { return h.ticket == ticket; });
  }
  changed_.notify_all();
}

}  // namespace ptxbench
