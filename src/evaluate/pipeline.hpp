// Many requests on one device: their workloads are compiled ahead, in parallel and a bounded number of them,
// and measured by whoever takes them from the lane, or by a few threads as their turns on the device come.
#pragma once

#include "core/subprocess.hpp"
#include "core/unique_fd.hpp"
#include "evaluate/judge.hpp"
#include "evaluate/threads.hpp"

#include <ptxbench/evaluate.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace ptxbench {

// A request under way. Thread-safe. It finishes once, with its evaluation or with the first Error; nothing
// looks at its content, nor at the context, after that.
class RunningRequest {
 public:
  // `content` and `context` stay until it has finished. Errors: as begin_evaluation; io where there is no
  // descriptor.
  static Result<std::shared_ptr<RunningRequest>> begin(ContextImpl& context, const EvaluateRequest& content,
                                                       CancelToken cancel, bool with_descriptor);

  std::size_t units() const noexcept { return count_; }
  // Both halves for one workload; what goes wrong is kept here. Nothing where the device has nothing to do.
  std::optional<Prepared> prepare(std::size_t unit) noexcept;
  // `done` is called after the workload has been judged, and before the request may finish with it.
  void measure(std::size_t unit, Prepared prepared, const std::function<void()>& done) noexcept;
  // Whether the workload may be measured on any thread, while others are: it is counted, which goes on beside another's verification,
  // and no code of the host's is called.
  bool may_run_beside(std::size_t unit) const noexcept { return beside_[unit]; }

  // Ends it with `error` once nothing of it is being worked on.
  void fail(Error error) noexcept;
  // Ends it with ErrorCode::cancelled, at once where nothing of it is being worked on.
  void cancel() noexcept;
  bool finished() const noexcept;
  JobState state() const noexcept;
  int descriptor() const noexcept { return event_.get(); }
  // Whether it has finished by then.
  bool wait(std::optional<SteadyClock::time_point> until) const;
  Result<Evaluation> take();
  // Gives up what callbacks there are of the request, once it has finished: the last hold on a host's
  // userdata may be here.
  void drop_judging() noexcept;
  // Keeps `what` until it has finished; false, and nothing is kept, where it has.
  bool keep_until_finished(std::shared_ptr<void> what) noexcept;

 private:
  RunningRequest(ContextImpl& context, const EvaluateRequest& content, CancelToken cancel)
      : context_(context), content_(content), cancel_(std::move(cancel)), count_(content.workloads.size()) {}
  bool enter() noexcept;
  void leave(std::size_t unit, std::optional<Error> error, std::optional<Verdict> verdict) noexcept;
  void finish(std::optional<Error> error) noexcept;  // under the lock
  Stages stages(std::size_t unit) const;

  ContextImpl& context_;
  const EvaluateRequest& content_;
  const CancelToken cancel_;
  const std::size_t count_;
  UniqueFd event_;
  std::uint64_t seed_ = 0;
  Judging judging_;

  std::vector<bool> beside_;  // by unit; as it was when the request began

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Evaluation evaluation_;
  std::size_t remaining_ = 0;  // workloads without a verdict
  int active_ = 0;             // workloads that are being worked on
  bool begun_ = false, finished_ = false, taken_ = false;
  std::optional<Error> error_;
  std::shared_ptr<void> kept_;
};

// Where workloads wait between their halves. Thread-safe.
class Lane : public std::enable_shared_from_this<Lane> {
 public:
  // At most `window` workloads are being compiled or wait for the device. The threads live as long as anybody adds or takes.
  Lane(ThreadGroup& compilers, ThreadGroup& measurers, int window)
      : compilers_(compilers), measurers_(measurers), window_(window) {}

  void add(std::shared_ptr<RunningRequest> request);
  struct Ready {
    std::shared_ptr<RunningRequest> request;
    std::size_t unit = 0;
    std::optional<Prepared> prepared;
  };
  // Waits for one whose first half is done. Nothing after `stop`, or, where `cancel` is given, once that is
  // triggered or nothing is under way.
  std::optional<Ready> take(const CancelToken* cancel);
  // The second half, on this thread, or on one of the measurers where it may run beside others.
  void measure(Ready ready) noexcept;
  void stop() noexcept;

 private:
  struct Waiting {
    std::shared_ptr<RunningRequest> request;
    std::size_t unit = 0;
  };
  void measure_here(Ready& ready) noexcept;
  void compile_more() noexcept;
  void compile_one(const Waiting& waiting) noexcept;
  void release() noexcept;

  ThreadGroup& compilers_;
  ThreadGroup& measurers_;
  const int window_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Waiting> waiting_;
  std::deque<Ready> ready_;
  int under_way_ = 0;  // compiled or being compiled, and not measured
  bool stopped_ = false;
};

}  // namespace ptxbench
