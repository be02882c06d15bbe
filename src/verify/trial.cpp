#include "verify/trial.hpp"

namespace ptxbench {

Result<void> arm_trial(const TrialParts& parts, std::uint8_t poison, bool placed) {
  PTXBENCH_TRY(parts.buffers.arm(parts.device));
  if (!placed) PTXBENCH_TRY(parts.inputs.place(parts.judge, parts.device, parts.buffers));
  PTXBENCH_TRY(parts.buffers.poison_outputs(parts.device, poison));
  PTXBENCH_TRY(parts.runner.poison_workspaces(poison));
  PTXBENCH_TRY(parts.plan.globals->restore());
  PTXBENCH_TRY(parts.runner.set_globals());
  PTXBENCH_TRY(parts.judge.wipe_shared());
  return settle(parts.device, "making the inputs");
}

Result<OutputValues> take_outputs(const TrialParts& parts, TrialEvidence& trial, Stopwatch& watch) {
  PTXBENCH_TRY_ASSIGN(OutputValues got, OutputValues::take(parts.device, parts.layouts, parts.buffers));
  PTXBENCH_TRY(settle(parts.device, "taking the outputs"));
  PTXBENCH_TRY(parts.inputs.check(parts.judge, parts.device, parts.layouts, parts.buffers, trial.violations));
  const bool clobbered = !trial.violations.empty();
  PTXBENCH_TRY(parts.buffers.check(parts.device, parts.layouts, trial.violations));
  PTXBENCH_TRY(check_workspaces(parts.device, parts.runner, parts.plan.plan, trial.violations));
  if (clobbered) PTXBENCH_TRY(parts.inputs.place(parts.judge, parts.device, parts.buffers));
  watch.lap("compare");
  return got;
}

Result<std::vector<OutputDigest>> digest_outputs(JudgeOps& judge, const OutputValues& got, std::uint64_t trial_seed) {
  std::vector<OutputDigest> digests;
  for (const DeviceBuffer& buffer : got.buffers) {
    PTXBENCH_TRY_ASSIGN(const judge::Digest digest, judge.digest(buffer.address, buffer.bytes, trial_seed + digests.size()));
    digests.push_back({digest.low, digest.high});
  }
  return digests;
}

Result<void> judge_outputs(const TrialParts& parts, OutputValues got, TrialEvidence& trial, Stopwatch& watch,
                           const JudgedOutputs* first, std::optional<JudgedOutputs>* keep, bool diagnose) {
  OutputValues computed;
  if (first == nullptr) {
    PTXBENCH_TRY_ASSIGN(computed, parts.expected.compute(parts.judge, &parts.callbacks, parts.buffers, trial.seed));
    watch.lap("reference");
  } else {
    for (std::size_t i = 0; i < got.buffers.size() && !trial.differs; ++i) {
      PTXBENCH_TRY_ASSIGN(const judge::Mismatch differs,
                          parts.judge.compare(got.buffers[i].address, first->got.buffers[i].address, got.buffers[i].bytes));
      trial.differs = differs.count != 0;
    }
  }
  const OutputValues& expected = first != nullptr ? first->expected : computed;
  PTXBENCH_TRY_ASSIGN(trial.outputs,
                      compare_outputs(parts.judge, parts.device, parts.workload, parts.layouts, parts.comparator, got,
                                      expected, trial.poison, &parts.callbacks));
  if (parts.digest) {
    PTXBENCH_TRY_ASSIGN(const std::vector<OutputDigest> digests, digest_outputs(parts.judge, got, trial.seed));
    for (std::size_t i = 0; i < trial.outputs.size(); ++i) trial.outputs[i].digest = digests[i];
  }
  if (diagnose && !all_right(trial.outputs)) PTXBENCH_TRY(diagnose_outputs(parts, got, expected, trial.outputs));
  watch.lap("compare");
  if (keep != nullptr && first == nullptr) keep->emplace(JudgedOutputs{std::move(got), std::move(computed)});
  return {};
}

}  // namespace ptxbench
