#include "emulator/async.hpp"

#include "emulator/run.hpp"

#include <algorithm>

namespace ptxbench::emulator {

bool AsyncQueue::stopped(const Run& run) { return run.failed(); }

bool AsyncQueue::ready(std::size_t index) const { return pending_[index]->ready(cluster_); }

void AsyncQueue::complete(std::size_t index, Run& run) {
  // Out of the list while it runs: what it wakes or signals may look at the list.
  std::unique_ptr<AsyncOp> op = std::move(pending_[index]);
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  ++cluster_.progress;
  if (op->complete(cluster_, run)) return;
  const auto at = std::find_if(pending_.begin(), pending_.end(),
                               [&](const auto& other) { return other->order > op->order; });
  pending_.insert(at, std::move(op));
}

void AsyncQueue::issue(std::unique_ptr<AsyncOp> op, Run& run) {
  op->order = ++issued_;
  const bool eager = cluster_.grid->schedule.mode == Schedule::Mode::eager;
  if (eager && pending_.empty() && op->ready(cluster_)) {
    ++cluster_.progress;
    while (!stopped(run))
      if (op->complete(cluster_, run)) return;
    return;
  }
  pending_.push_back(std::move(op));
  if (eager) poke(run);
}

void AsyncQueue::poke(Run& run) {
  if (cluster_.grid->schedule.mode != Schedule::Mode::eager) return;
  for (std::size_t i = 0; i < pending_.size() && !stopped(run);) {
    if (ready(i)) {
      complete(i, run);
      i = 0;  // it may have made an earlier one ready
    } else {
      ++i;
    }
  }
}

bool AsyncQueue::complete_any(Run& run) {
  // From a random place on, the first that is ready.
  const std::size_t n = pending_.size();
  const std::size_t start = static_cast<std::size_t>(cluster_.random() % n);
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t i = start + k < n ? start + k : start + k - n;
    if (!ready(i)) continue;
    complete(i, run);
    return true;
  }
  return false;
}

void AsyncQueue::breathe(Run& run) {
  const Schedule& schedule = cluster_.grid->schedule;
  if (schedule.mode != Schedule::Mode::random || pending_.empty() || stopped(run)) return;
  // Some seeds complete soon and some late, so that a few of them see queues of every depth.
  const unsigned late = static_cast<unsigned>(schedule.seed % 5);
  if ((cluster_.random() & ((2u << late) - 1)) == 0) complete_any(run);
}

bool AsyncQueue::advance(Run& run) {
  if (pending_.empty() || stopped(run)) return false;
  if (cluster_.grid->schedule.mode == Schedule::Mode::random) return complete_any(run);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    if (!ready(i)) continue;
    complete(i, run);
    return true;
  }
  return false;
}

}  // namespace ptxbench::emulator
