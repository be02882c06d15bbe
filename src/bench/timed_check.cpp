#include "bench/timed_check.hpp"

namespace ptxbench {
namespace {

bool within(const OutputStatistics& s, double max, double rms_limit) {
  return s.nonfinite_wrong == 0 && s.max_absolute_error <= max &&
         s.sum_squared_error <= rms_limit * rms_limit * static_cast<double>(s.elements);
}

}  // namespace

Result<void> TimedCheck::red_zones(Runnable& candidate, const TensorBuffers& buffers, TimedFailure& failure) {
  PTXBENCH_TRY(buffers.check(device_, layouts_, failure.violations));
  return candidate.check(device_, failure.violations);
}

Result<void> TimedCheck::whole(Inputs& inputs, const TensorBuffers& candidate, const TensorBuffers* baseline,
                               TimedFailure& failure) {
  PTXBENCH_TRY(inputs.check(judge_, device_, layouts_, candidate, failure.violations));
  if (!failure.violations.empty()) return {};  // then nothing can be expected of the outputs
  const OutputValues got = OutputValues::view(layouts_, candidate);
  if (baseline != nullptr && job_.protocol == kPublished && job_.baseline.kind == BaselineKind::library) {
    // As published: what is expected is the library's own output.
    PTXBENCH_TRY_ASSIGN(failure.outputs,
                        compare_outputs(judge_, device_, job_.workload, layouts_, job_.comparator, got,
                                        OutputValues::view(layouts_, *baseline), kTimedPoison, callbacks_));
    return {};
  }
  if (baseline != nullptr && calibration_.done) {
    PTXBENCH_TRY_ASSIGN(const bool same, agrees(got, *baseline));
    if (same) return {};
  }
  PTXBENCH_TRY_ASSIGN(const OutputValues expected, expected_.compute(judge_, callbacks_, candidate,
                                                                  trial_seed(job_.seed, job_.workload.uuid, failure.pair)));
  PTXBENCH_TRY_ASSIGN(failure.outputs,
                      compare_outputs(judge_, device_, job_.workload, layouts_, job_.comparator, got,
                                      expected, kTimedPoison, callbacks_));
  if (all_right(failure.outputs) && baseline != nullptr && !calibration_.done)
    PTXBENCH_TRY(calibrate(expected, *baseline));
  return {};
}

Result<void> TimedCheck::calibrate(const OutputValues& expected, const TensorBuffers& baseline) {
  if (job_.comparator.kind == ComparatorKind::callback || calibration_.wrong) return {};
  PTXBENCH_TRY_ASSIGN(const auto outputs,
                      compare_outputs(judge_, device_, job_.workload, layouts_, job_.comparator,
                                      OutputValues::view(layouts_, baseline), expected, -1, callbacks_));
  if (!all_right(outputs)) {  // every pair that is verified is compared with the reference then
    calibration_.wrong = true;
    return {};
  }
  calibration_.allowances.clear();
  for (const OutputEvidence& output : outputs) {
    BaselineCalibration::Allowance allowance;
    const OutputCorrectness judged = judge_output(output);
    allowance.by_model = output.comparator == ComparatorKind::model_error;
    allowance.max = judged.max_limit + judged.max_absolute_error;
    allowance.rms = judged.rms_limit + judged.rms_error;
    allowance.tolerance = output.tolerance;
    calibration_.allowances.push_back(allowance);
  }
  calibration_.done = true;
  return {};
}

Result<bool> TimedCheck::agrees(const OutputValues& got, const TensorBuffers& baseline) {
  for (std::size_t i = 0; i < layouts_.outputs.size(); ++i) {
    const TensorLayout& layout = layouts_.outputs[i];
    const ElementsAt at{got.buffers[i].address, layout.dtype};
    const ElementsAt other{baseline.outputs[i].buffer().address, layout.dtype};
    if (calibration_.allowances[i].by_model) {
      PTXBENCH_TRY_ASSIGN(const OutputStatistics s, judge_.statistics(layout.elements, at, other, 0));
      if (!within(s, calibration_.allowances[i].max, calibration_.allowances[i].rms)) return false;
    } else {
      const Tolerance& allowed = calibration_.allowances[i].tolerance;
      PTXBENCH_TRY_ASSIGN(const judge::Mismatch wrong,
                          judge_.find_wrong(layout.elements, at, other, allowed.atol,
                                            allowed.either ? -allowed.rtol : allowed.rtol));
      if (wrong.count != 0) return false;
    }
  }
  return true;
}

}  // namespace ptxbench
