#include "evaluate/pipeline.hpp"

#include "core/guard.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace ptxbench {
namespace {

Error cancelled() { return Error{ErrorCode::cancelled, "cancelled", {}, {}, 0}; }

}  // namespace

Result<std::shared_ptr<RunningRequest>> RunningRequest::begin(ContextImpl& context,
                                                              const EvaluateRequest& content,
                                                              CancelToken cancel, bool with_descriptor) {
  if (content.solution == nullptr)
    return make_error(ErrorCode::invalid_argument, "a request without a solution");
  PTXBENCH_TRY_ASSIGN(Begun begun, begin_evaluation(*content.solution, content.workloads, content.judging,
                                                    content.options, cancel));
  std::shared_ptr<RunningRequest> request(new RunningRequest(context, content, std::move(cancel)));
  if (with_descriptor) {
    request->event_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!request->event_)
      return make_error(ErrorCode::io, std::string("no descriptor for a job: ") + std::strerror(errno));
  }
  request->evaluation_ = std::move(begun.evaluation);
  request->evaluation_.verdicts.resize(request->count_);
  request->remaining_ = request->count_;
  request->seed_ = begun.seed;
  request->judging_ = std::move(begun.judging);
  for (std::size_t unit = 0; unit < request->count_; ++unit) {
    const Stages stages = request->stages(unit);
    request->beside_.push_back(stages.count && !stages.calls_back());
  }
  return request;
}

Stages RunningRequest::stages(std::size_t unit) const {
  return {context_, content_.workloads[unit],      judging_, content_.options, cancel_,
          seed_,    counts(content_.options, unit)};
}

std::optional<Prepared> RunningRequest::prepare(std::size_t unit) noexcept {
  if (!enter()) return std::nullopt;
  Result<Prepared> prepared =
      guarded([&] { return ptxbench::prepare(stages(unit), *content_.solution, true); });
  if (!prepared) {
    leave(unit, std::move(prepared).error(), std::nullopt);
    return std::nullopt;
  }
  if (prepared->closed) {  // nothing for the device to do
    leave(unit, std::nullopt, std::move(prepared->verdict));
    return std::nullopt;
  }
  leave(unit, std::nullopt, std::nullopt);
  return std::move(*prepared);
}

void RunningRequest::measure(std::size_t unit, Prepared prepared,
                             const std::function<void()>& done) noexcept {
  if (!enter()) {
    done();
    return;
  }
  Result<Verdict> verdict = guarded([&] { return ptxbench::measure(stages(unit), std::move(prepared)); });
  done();
  if (verdict)
    leave(unit, std::nullopt, std::move(*verdict));
  else
    leave(unit, std::move(verdict).error(), std::nullopt);
}

bool RunningRequest::enter() noexcept {
  const std::lock_guard lock(mutex_);
  if (finished_) return false;
  if (error_ || cancel_.triggered()) {
    if (active_ == 0) finish(cancelled());
    return false;
  }
  begun_ = true;
  ++active_;
  return true;
}

void RunningRequest::leave(std::size_t unit, std::optional<Error> error,
                           std::optional<Verdict> verdict) noexcept {
  std::shared_ptr<void> kept;  // may be the last to hold the context: goes without the lock
  Judging dropped;
  const std::lock_guard lock(mutex_);
  --active_;
  if (error && !error_) error_ = std::move(error);
  if (verdict) {
    evaluation_.verdicts[unit] = std::move(*verdict);
    --remaining_;
  }
  if (active_ > 0) return;
  if (remaining_ == 0)
    finish(std::nullopt);
  else if (error_ || cancel_.triggered())
    finish(cancelled());
  if (!finished_ || !kept_) return;
  kept = std::move(kept_);  // nobody waits: what is left goes here
  std::swap(dropped, judging_);
}

void RunningRequest::fail(Error error) noexcept {
  if (enter()) leave(0, std::move(error), std::nullopt);
}

// The first error stays.
void RunningRequest::finish(std::optional<Error> error) noexcept {
  if (error && !error_) error_ = std::move(error);
  finished_ = true;
  if (event_) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);  // cannot be full
  }
  changed_.notify_all();
}

void RunningRequest::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  cancel_.trigger();
  if (active_ == 0) finish(cancelled());
}

bool RunningRequest::finished() const noexcept {
  const std::lock_guard lock(mutex_);
  return finished_;
}

JobState RunningRequest::state() const noexcept {
  const std::lock_guard lock(mutex_);
  if (taken_) return JobState::taken;
  if (finished_) return JobState::finished;
  return begun_ ? JobState::running : JobState::queued;
}

bool RunningRequest::wait(std::optional<SteadyClock::time_point> until) const {
  std::unique_lock lock(mutex_);
  const auto done = [&] { return finished_; };
  if (until) return changed_.wait_until(lock, *until, done);
  changed_.wait(lock, done);
  return true;
}

Result<Evaluation> RunningRequest::take() {
  const std::lock_guard lock(mutex_);
  if (!finished_) return make_error(ErrorCode::busy, "the evaluation has not finished yet");
  if (taken_) return make_error(ErrorCode::state, "the evaluation has been taken before");
  taken_ = true;
  if (error_) return *error_;
  return std::move(evaluation_);
}

void RunningRequest::drop_judging() noexcept {
  Judging dropped;  // without the lock
  const std::lock_guard lock(mutex_);
  if (finished_) std::swap(dropped, judging_);
}

bool RunningRequest::keep_until_finished(std::shared_ptr<void> what) noexcept {
  const std::lock_guard lock(mutex_);
  if (finished_) return false;
  kept_ = std::move(what);
  return true;
}

void Lane::add(std::shared_ptr<RunningRequest> request) {
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t unit = 0; unit < request->units(); ++unit) waiting_.push_back({request, unit});
  }
  compile_more();
}

void Lane::compile_more() noexcept {
  for (;;) {
    Waiting next;
    {
      const std::lock_guard lock(mutex_);
      if (stopped_ || waiting_.empty() || under_way_ >= window_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
      ++under_way_;
    }
    try {
      compilers_.post([lane = shared_from_this(), next] { lane->compile_one(next); });
    } catch (const std::exception& e) {
      next.request->fail(guarded([&]() -> Result<void> {
                           return make_error(ErrorCode::no_memory,
                                             std::string("no thread to compile in: ") + e.what());
                         }).error());
      release();
    }
  }
}

void Lane::compile_one(const Waiting& waiting) noexcept {
  std::optional<Prepared> prepared = waiting.request->prepare(waiting.unit);
  if (prepared) {
    try {
      const std::lock_guard lock(mutex_);
      ready_.push_back({waiting.request, waiting.unit, std::move(prepared)});
      changed_.notify_all();
      return;
    } catch (const std::exception&) {
      waiting.request->fail(Error{ErrorCode::no_memory, {}, {}, {}, 0});
    }
  }
  release();
  compile_more();
}

void Lane::release() noexcept {
  const std::lock_guard lock(mutex_);
  --under_way_;
  changed_.notify_all();
}

std::optional<Lane::Ready> Lane::take(const CancelToken* cancel) {
  constexpr std::chrono::milliseconds kLook{10};  // how often the cancel token is looked at
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopped_ || (cancel != nullptr && (cancel->triggered() || (waiting_.empty() && under_way_ == 0))))
      return std::nullopt;
    if (!ready_.empty()) break;
    if (cancel != nullptr)
      changed_.wait_for(lock, kLook);
    else
      changed_.wait(lock);
  }
  Ready ready = std::move(ready_.front());
  ready_.pop_front();
  return ready;
}

void Lane::measure(Ready ready) noexcept {
  if (!ready.request->may_run_beside(ready.unit)) return measure_here(ready);
  const auto shared = std::make_shared<Ready>(std::move(ready));
  const Result<void> posted = guarded([&]() -> Result<void> {
    // A cancelled request finishes before its task has begun.
    measurers_.post([lane = shared_from_this(), shared] { lane->measure_here(*shared); });
    return {};
  });
  if (!posted) measure_here(*shared);
}

void Lane::measure_here(Ready& ready) noexcept {
  // After this the context may be gone.
  ready.request->measure(ready.unit, std::move(*ready.prepared), [this] {
    release();
    compile_more();
  });
}

void Lane::stop() noexcept {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace ptxbench
