// What both protocols need before they time: the candidate and its baseline, loaded and ready on buffer sets
// at different addresses, a clock, and a check of outputs.
#pragma once

#include "bench/condition_watch.hpp"
#include "bench/timed_check.hpp"
#include "bench/timed_run.hpp"
#include "bench/timed_trials.hpp"
#include "verify/input_pool.hpp"
#include "verify/stopwatch.hpp"

#include <ptxbench/bench.hpp>

#include <memory>
#include <vector>

namespace ptxbench {

// Tensors, and what can run on them. Either role may use any set.
struct BufferSet {
  TensorBuffers buffers;
  std::unique_ptr<Runnable> candidate, baseline;  // after the buffers: they go first
};

class TimedSession {
 public:
  TimedSession(Device& device, const TimeJob& job, LibraryBaseline* library, HostCallbacks* callbacks,
               GpuMonitor* monitor, BaselineCalibration* calibration);

  // False where there is nothing to measure; the evidence says why.
  Result<bool> prepare();
  bool has_baseline() const { return sets_.front().baseline != nullptr; }

  // Draws inputs number @p number and places them in @p first and, if it is another set, @p second.
  Result<Inputs> place(int number, BufferSet& first, BufferSet& second);
  Error baseline_failed(const DeviceFault& fault) const;
  // Notes a fault of the candidate.
  void candidate_failed(DeviceFault fault, int pair);

  Device& device() { return device_; }
  const TimeJob& job() const { return job_; }
  TimeEvidence& evidence() { return evidence_; }
  RunClock& clock() { return *clock_; }
  TimedCheck& check() { return *check_; }
  ConditionWatch& watch() { return watch_; }
  std::vector<BufferSet>& sets() { return sets_; }
  L2Preparation l2_preparation() const {
    return job_.l2 == L2State::warm ? L2Preparation::read : L2Preparation::flush;
  }
  // Stage times, the method's gate, and what is known only at the end.
  TimeEvidence finish() &&;

 private:
  Result<Inputs> draw(int number);
  Result<void> prepare_baseline(const ScalarValues& scalars);
  Result<void> allocate_sets();
  Result<void> make_runnables(bool baseline);

  Device& device_;
  const TimeJob& job_;
  LibraryBaseline* library_;
  HostCallbacks* callbacks_;
  BaselineCalibration* calibration_;
  TimeEvidence evidence_;
  ConditionWatch watch_;
  TensorLayouts layouts_;
  InputPool pool_;
  std::unique_ptr<LoadedPlan> loaded_, baseline_loaded_;
  std::unique_ptr<JudgeOps> judge_;
  std::unique_ptr<ExpectedSource> expected_;
  std::unique_ptr<RunClock> clock_;
  std::unique_ptr<TimedCheck> check_;
  std::vector<BufferSet> sets_;
  std::size_t least_sets_ = 1;  // two where there is a baseline to run
};

// The drivers. Each fills the session's evidence.
Result<void> time_pairs(TimedSession& session, Stopwatch& watch);      // kRigorous
Result<void> time_published(TimedSession& session, Stopwatch& watch);  // kPublished

}  // namespace ptxbench
