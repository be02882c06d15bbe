#include "bench/timed_run.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

class PlanRunnable final : public Runnable {
 public:
  PlanRunnable(LoadedPlan& loaded, std::unique_ptr<PlanRunner> runner)
      : loaded_(loaded), runner_(std::move(runner)) {}
  Result<void> before() override {
    PTXBENCH_TRY(loaded_.globals->restore());
    PTXBENCH_TRY(runner_->set_globals());
    return runner_->poison_workspaces(kTimedPoison);
  }
  Result<DeviceOutcome> enqueue() override { return runner_->enqueue(); }
  Result<void> check(Device& device, std::vector<IntegrityViolation>& found) override {
    return check_workspaces(device, *runner_, loaded_.plan, found);
  }

 private:
  LoadedPlan& loaded_;
  std::unique_ptr<PlanRunner> runner_;
};

class LibraryRunnable final : public Runnable {
 public:
  LibraryRunnable(LibraryBaseline& library, PlanBuffers buffers)
      : library_(library), buffers_(std::move(buffers)) {}
  Result<void> before() override { return {}; }
  Result<DeviceOutcome> enqueue() override {
    PTXBENCH_TRY(library_.enqueue(buffers_));
    return DeviceOutcome{};
  }
  Result<void> check(Device&, std::vector<IntegrityViolation>&) override { return {}; }

 private:
  LibraryBaseline& library_;
  PlanBuffers buffers_;
};

}  // namespace

Result<std::unique_ptr<Runnable>> make_plan_runnable(LoadedPlan& loaded, const TensorBuffers& buffers) {
  PTXBENCH_TRY_ASSIGN(auto runner,
                      PlanRunner::create(loaded.device, loaded.plan, loaded.modules, buffers.plan_buffers()));
  return std::unique_ptr<Runnable>(std::make_unique<PlanRunnable>(loaded, std::move(runner)));
}

std::unique_ptr<Runnable> make_library_runnable(LibraryBaseline& library, const TensorBuffers& buffers) {
  return std::make_unique<LibraryRunnable>(library, buffers.plan_buffers());
}

Result<std::unique_ptr<RunClock>> RunClock::create(Device& device, JudgeOps& judge,
                                                   std::uint64_t run_deadline_ns) {
  std::unique_ptr<RunClock> clock(new RunClock(device, judge, run_deadline_ns));
  PTXBENCH_TRY_ASSIGN(clock->start_, OwnedEvent::create(device));
  PTXBENCH_TRY_ASSIGN(clock->end_, OwnedEvent::create(device));
  // The first flush allocates, which must not happen behind a closed gate.
  PTXBENCH_TRY(judge.flush_l2());
  PTXBENCH_TRY(settle(device, "preparing to time"));
  return clock;
}

Result<void> RunClock::prepare_l2(const TensorBuffers& buffers, L2Preparation l2) {
  if (l2 == L2Preparation::flush) return judge_.flush_l2();
  if (l2 == L2Preparation::zero) return device_.fill(zeroed_.address(), 0, 4, zeroed_.get().bytes / 4);
  for (const GuardedBuffer& input : buffers.inputs)
    PTXBENCH_TRY(judge_.read_through(input.buffer().address, input.buffer().bytes));
  return {};
}

Result<TimedRun> RunClock::run(Runnable& what, const TensorBuffers& buffers, L2Preparation l2) {
  if (l2 == L2Preparation::zero && zeroed_.address() == 0) {
    const std::int64_t size = device_.info().limits.l2_bytes;
    const std::uint64_t bytes = 2 * static_cast<std::uint64_t>(size > 0 ? size : std::int64_t{64} << 20);
    PTXBENCH_TRY_ASSIGN(zeroed_, OwnedBuffer::allocate(device_, bytes));
    PTXBENCH_TRY(prepare_l2(buffers, l2));  // once in front of any gate
  }
  PTXBENCH_TRY(what.before());
  PTXBENCH_TRY(judge_.wipe_shared());
  PTXBENCH_TRY(settle(device_, "preparing a timed run"));
  // Lines that an earlier run marked to stay would outlive the flush.
  PTXBENCH_TRY(device_.reset_persisting_l2());
  if (!ungated_) {
    const Result<void> closed = device_.close_gate();
    if (!closed && closed.error().code != ErrorCode::unsupported) return closed.error();
    ungated_ = !closed;
  }
  const bool gated = !ungated_;
  const auto queue = [&]() -> Result<DeviceOutcome> {
    PTXBENCH_TRY(prepare_l2(buffers, l2));
    PTXBENCH_TRY(device_.record(start_.get()));
    PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, what.enqueue());
    if (!outcome) PTXBENCH_TRY(device_.record(end_.get()));
    return outcome;
  };
  Result<DeviceOutcome> queued = queue();
  if (gated) PTXBENCH_TRY(device_.open_gate());
  if (!queued && gated && queued.error().code == ErrorCode::state) {
    // More operations or parameters than the driver's queue takes while it is held: from now on without the
    // gate.
    ungated_ = true;
    PTXBENCH_TRY(settle(device_, "what did not fit behind the gate"));
    return run(what, buffers, l2);
  }
  if (!queued) return std::move(queued).error();
  TimedRun run;
  run.fault = std::move(*queued);
  if (run.fault) return run;
  PTXBENCH_TRY_ASSIGN(run.fault, device_.synchronize(run_deadline_ns_));
  if (run.fault) return run;
  PTXBENCH_TRY_ASSIGN(run.ns, device_.elapsed_ns(start_.get(), end_.get()));
  return run;
}

Result<DeviceOutcome> RunClock::run_untimed(Runnable& what) {
  PTXBENCH_TRY(what.before());
  PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, what.enqueue());
  if (outcome) return outcome;
  return device_.synchronize(run_deadline_ns_);
}

Result<std::uint64_t> RunClock::interval(bool with_kernel) {
  const Result<void> closed = device_.close_gate();
  if (!closed && closed.error().code != ErrorCode::unsupported) return closed.error();
  const auto queue = [&]() -> Result<void> {
    PTXBENCH_TRY(judge_.wipe_shared());  // something to run before, as in a timed run
    PTXBENCH_TRY(device_.record(start_.get()));
    if (with_kernel) PTXBENCH_TRY(judge_.draw(judge::DrawSpec{}, 0));  // of no elements
    return device_.record(end_.get());
  };
  const Result<void> queued = queue();
  if (closed) PTXBENCH_TRY(device_.open_gate());
  PTXBENCH_TRY(Result<void>(queued));
  PTXBENCH_TRY(settle(device_, "timing an empty interval"));
  return device_.elapsed_ns(start_.get(), end_.get());
}

Result<void> RunClock::measure_overhead(std::uint64_t& empty_ns, std::uint64_t& empty_kernel_ns) {
  constexpr std::size_t kRuns = 5;
  // A kernel's first launch may load it, which must not happen behind a closed gate.
  PTXBENCH_TRY(judge_.wipe_shared());
  PTXBENCH_TRY(judge_.draw(judge::DrawSpec{}, 0));
  PTXBENCH_TRY(settle(device_, "preparing to time an empty interval"));
  for (const bool with_kernel : {false, true}) {
    std::vector<std::uint64_t> times;
    for (std::size_t i = 0; i < kRuns; ++i) {
      PTXBENCH_TRY_ASSIGN(const std::uint64_t ns, interval(with_kernel));
      times.push_back(ns);
    }
    std::sort(times.begin(), times.end());
    (with_kernel ? empty_kernel_ns : empty_ns) = times[kRuns / 2];
  }
  return {};
}

}  // namespace ptxbench
