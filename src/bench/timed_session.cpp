#include "bench/timed_session.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

constexpr std::size_t kMostSets = 4;
constexpr std::uint64_t kMemoryShare = 4;  // sets take at most this part of the device's memory

std::uint64_t set_bytes(const TensorLayouts& layouts, const ResolvedPlan& plan) {
  std::uint64_t bytes = 0;
  for (const auto* list : {&layouts.inputs, &layouts.outputs})
    for (const TensorLayout& layout : *list) bytes += layout.bytes;
  for (const auto& workspace : plan.workspaces) bytes += workspace.bytes;
  return bytes;
}

}  // namespace

TimedSession::TimedSession(Device& device, const TimeJob& job, LibraryBaseline* library,
                           HostCallbacks* callbacks, GpuMonitor* monitor, BaselineCalibration* calibration)
    : device_(device), job_(job), library_(library), callbacks_(callbacks), calibration_(calibration), watch_(monitor, evidence_.gpu) {
  evidence_.protocol = job.protocol;
  evidence_.baseline = job.baseline.kind;
  evidence_.l2 = job.l2;
  if (job.baseline.kind == BaselineKind::fixed_time) evidence_.fixed_ns = job.baseline.fixed_ns;
}

Result<bool> TimedSession::prepare() {
  PTXBENCH_TRY_ASSIGN(layouts_, tensor_layouts(job_.workload));
  pool_ = InputPool(job_.workload, layouts_, job_.seed);
  const ScalarValues scalars = draw_scalars(job_.workload, job_.seed);
  PlanProblem problem;
  PTXBENCH_TRY_ASSIGN(loaded_, load_plan(device_, job_.candidate, job_.workload, scalars, problem));
  if (!loaded_) {
    evidence_.plan_error = std::move(problem.error);
    if (problem.not_applicable) evidence_.unavailable = "not applicable: " + *problem.not_applicable;
    return false;
  }
  PTXBENCH_TRY_ASSIGN(judge_, make_judge_ops(device_, job_.judge_cubin));
  Result<std::unique_ptr<RunClock>> clock = RunClock::create(device_, *judge_, job_.run_deadline_ns);
  if (!clock) {
    if (clock.error().code != ErrorCode::unsupported) return std::move(clock).error();
    evidence_.unavailable =
        device_.info().id + " has no clock that would mean anything: " + clock.error().message;
    return false;
  }
  clock_ = std::move(*clock);
  PTXBENCH_TRY(clock_->measure_overhead(evidence_.event_overhead_ns, evidence_.empty_kernel_ns));
  PTXBENCH_TRY_ASSIGN(expected_, ExpectedSource::create(device_, job_.workload, layouts_, job_.reference,
                                                        job_.comparator.kind == ComparatorKind::model_error,
                                                        scalars, job_.run_deadline_ns));
  check_ = std::make_unique<TimedCheck>(device_, job_, layouts_, *judge_, *expected_, callbacks_, calibration_);
  const bool runs_baseline = job_.baseline.kind == BaselineKind::solution ||
                             (job_.baseline.kind == BaselineKind::library && library_ != nullptr);
  // Candidate and baseline never share buffers: what one writes is no result of the other.
  least_sets_ = runs_baseline ? 2 : 1;
  Result<void> made = allocate_sets();
  if (made) made = make_runnables(false);
  if (made) made = prepare_baseline(scalars);
  if (!made && made.error().code == ErrorCode::no_memory) {
    // Verification needs one set and has had it: its verdict stands.
    evidence_.unavailable = "the device's memory does not hold what timing needs: " + std::to_string(least_sets_) +
                            " sets of tensors and workspaces of " +
                            std::to_string(set_bytes(layouts_, loaded_->plan)) + " bytes each, and the baseline's (" +
                            made.error().message + ")";
    return false;
  }
  if (!made) return std::move(made).error();
  PTXBENCH_TRY(settle(device_, "preparing to time"));
  return true;
}

// As many as memory allows without crowding out references and workspaces; two where there is a baseline.
Result<void> TimedSession::allocate_sets() {
  const std::uint64_t bytes = std::max<std::uint64_t>(set_bytes(layouts_, loaded_->plan), 1);
  const std::uint64_t affordable = device_.info().limits.memory_bytes / kMemoryShare / bytes;
  const std::size_t wanted =
      std::max(least_sets_, static_cast<std::size_t>(std::min<std::uint64_t>(affordable, kMostSets)));
  sets_.reserve(wanted);
  while (sets_.size() < wanted) {
    Result<TensorBuffers> made = TensorBuffers::allocate(device_, layouts_, job_.seed + sets_.size(), false);
    if (!made && made.error().code == ErrorCode::no_memory && sets_.size() >= least_sets_) break;
    if (!made) return std::move(made).error();
    PTXBENCH_TRY(made->arm(device_));
    sets_.push_back({std::move(*made), nullptr, nullptr});
  }
  return {};
}

Result<void> TimedSession::make_runnables(bool baseline) {
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    std::unique_ptr<Runnable>& to = baseline ? sets_[i].baseline : sets_[i].candidate;
    if (baseline && !baseline_loaded_) {
      to = make_library_runnable(*library_, sets_[i].buffers);
      continue;
    }
    Result<std::unique_ptr<Runnable>> made =
        make_plan_runnable(baseline ? *baseline_loaded_ : *loaded_, sets_[i].buffers);
    if (!made && made.error().code == ErrorCode::no_memory &&
        i >= least_sets_) {  // workspaces that fit fewer times
      sets_.erase(sets_.begin() + static_cast<std::ptrdiff_t>(i), sets_.end());
      break;
    }
    if (!made) return std::move(made).error();
    to = std::move(*made);
  }
  return {};
}

Result<void> TimedSession::prepare_baseline(const ScalarValues& scalars) {
  const BaselineKind kind = job_.baseline.kind;
  if (kind == BaselineKind::none) return {};
  if (kind == BaselineKind::fixed_time) {
    evidence_.baseline_description = "fixed time of " + std::to_string(job_.baseline.fixed_ns) + " ns";
    return {};
  }
  if (kind == BaselineKind::solution) {
    PTXBENCH_TRY_ASSIGN(baseline_loaded_, load_trusted_plan(device_, *job_.baseline.solution, job_.workload,
                                                            scalars, "baseline"));
    evidence_.baseline_description = "solution " + job_.baseline.solution->solution.name;
    return make_runnables(true);
  }
  if (library_ == nullptr) {
    evidence_.baseline_missing = "there is no library for this operation here";
    return {};
  }
  // Real inputs, because an algorithm is chosen by its time on them.
  PTXBENCH_TRY(place(kPairTrials - 1, sets_.front(), sets_.front()));
  PTXBENCH_TRY(settle(device_, "making the baseline's inputs"));
  Result<void> prepared = library_->prepare(device_, job_.workload, sets_.front().buffers.plan_buffers());
  if (!prepared) {
    if (prepared.error().code != ErrorCode::unsupported && prepared.error().code != ErrorCode::toolkit)
      return prepared;
    evidence_.baseline_missing = prepared.error().message;
    return {};
  }
  evidence_.baseline_description = library_->description();
  return make_runnables(true);
}

Result<Inputs> TimedSession::draw(int number) {
  if (job_.inputs == InputKind::callback) {
    if (callbacks_ == nullptr)
      return make_error(ErrorCode::invalid_argument,
                        "the job asks for an input source of the host; there is none");
    return Inputs::callback(job_.workload, layouts_, job_.seed, number, *callbacks_);
  }
  return pool_.draw(*judge_, device_, number);
}

Result<Inputs> TimedSession::place(int number, BufferSet& first, BufferSet& second) {
  PTXBENCH_TRY_ASSIGN(Inputs inputs, draw(number));
  PTXBENCH_TRY(inputs.place(*judge_, device_, first.buffers));
  if (&first == &second) return inputs;
  // Copying costs less than drawing again.
  for (std::size_t i = 0; i < first.buffers.inputs.size(); ++i) {
    const DeviceBuffer from = first.buffers.inputs[i].buffer(), to = second.buffers.inputs[i].buffer();
    PTXBENCH_TRY(device_.copy(to.address, from.address, from.bytes));
  }
  return inputs;
}

Error TimedSession::baseline_failed(const DeviceFault& fault) const {
  return make_error(
      job_.baseline.kind == BaselineKind::solution ? ErrorCode::invalid_argument : ErrorCode::driver,
      "the baseline (" + evidence_.baseline_description + ") failed: " + fault.name + ": " + fault.message);
}

void TimedSession::candidate_failed(DeviceFault fault, int pair) {
  evidence_.device_lost = fault.sticky || fault.kind == DeviceFault::Kind::timeout;
  evidence_.fault = std::move(fault);
  evidence_.fault_pair = pair;
}

TimeEvidence TimedSession::finish() && {
  if (clock_ && !clock_->gated() && !evidence_.method.empty()) {
    const std::size_t at = evidence_.method.find(", gated");
    if (at != std::string::npos) evidence_.method.replace(at, 7, ", not gated");
  }
  if (check_ && check_->baseline_wrong())
    evidence_.baseline_description += " (its own outputs are beyond the limits)";
  return std::move(evidence_);
}

}  // namespace ptxbench
