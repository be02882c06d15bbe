// Are the outputs of a timed run right? Against the baseline's own where that is known to be right itself,
// which is cheap, else against the reference.
#pragma once

#include "bench/timed_run.hpp"

#include <ptxbench/bench.hpp>

#include <vector>

namespace ptxbench {

class TimedCheck {
 public:
  TimedCheck(Device& device, const TimeJob& job, const TensorLayouts& layouts, JudgeOps& judge,
             ExpectedSource& expected, HostCallbacks* callbacks, BaselineCalibration* calibration)
      : device_(device),
        job_(job),
        layouts_(layouts),
        judge_(judge),
        expected_(expected),
        callbacks_(callbacks),
        calibration_(calibration != nullptr && serves(job) ? *calibration : own_) {
    if (calibration_.comparator == job.comparator) return;
    calibration_ = {};
    calibration_.comparator = job.comparator;
  }

  // What a run may not have written to. Cheap.
  Result<void> red_zones(Runnable& candidate, const TensorBuffers& buffers, TimedFailure& failure);
  // Its inputs as they were placed, and its outputs, whole. @p baseline: where the baseline's outputs for the
  // same inputs lie; null without one. Nothing may be running.
  Result<void> whole(Inputs& inputs, const TensorBuffers& candidate, const TensorBuffers* baseline,
                     TimedFailure& failure);
  // Whether `whole` looks at the baseline's outputs.
  bool uses_baseline() const {
    return job_.comparator.kind != ComparatorKind::callback && !calibration_.wrong;
  }
  // The baseline's own outputs were beyond the limits: it is no yardstick.
  bool baseline_wrong() const { return calibration_.wrong; }

  static bool failed(const TimedFailure& failure) {
    return !failure.violations.empty() || (!failure.outputs.empty() && !all_right(failure.outputs));
  }

 private:
  // Of the library itself, and of inputs as other jobs have them.
  static bool serves(const TimeJob& job) {
    return job.baseline.kind == BaselineKind::library && job.reference.kind == ReferenceKind::native &&
           job.inputs == InputKind::random;
  }
  Result<void> calibrate(const OutputValues& expected, const TensorBuffers& baseline);
  Result<bool> agrees(const OutputValues& got, const TensorBuffers& baseline);

  Device& device_;
  const TimeJob& job_;
  const TensorLayouts& layouts_;
  JudgeOps& judge_;
  ExpectedSource& expected_;
  HostCallbacks* callbacks_;
  BaselineCalibration own_;
  BaselineCalibration& calibration_;
};

}  // namespace ptxbench
