// What every judged run of a candidate shares, whether it is verified or counted: how it is armed, and how its outputs are
// judged once it has finished.
#pragma once

#include "verify/judge_ops.hpp"
#include "verify/session.hpp"
#include "verify/stopwatch.hpp"

#include <ptxbench/verify.hpp>

#include <optional>

namespace ptxbench {

// The parts that were made for a trial; all of them outlive it.
struct TrialParts {
  Device& device;
  const Workload& workload;
  const ComparatorSpec& comparator;
  const TensorLayouts& layouts;
  LoadedPlan& plan;
  JudgeOps& judge;
  ExpectedSource& expected;
  Inputs& inputs;
  TensorBuffers& buffers;
  PlanRunner& runner;
  HostCallbacks& callbacks;
  bool digest = false;  // of the outputs, into the evidence
};

// Red zones, inputs, poison in outputs and workspaces, globals as they were loaded, shared memory without a past.
// @p placed: the inputs are there already; a judged run leaves them so.
Result<void> arm_trial(const TrialParts& parts, std::uint8_t poison, bool placed = false);

// What a trial's further runs on the same inputs need of the first one.
struct JudgedOutputs {
  OutputValues got, expected;
};

// The candidate has finished. Its outputs go to memory that it could not know, before anything is computed that it would have
// liked to see. Fills violations.
Result<OutputValues> take_outputs(const TrialParts& parts, TrialEvidence& trial, Stopwatch& watch);
// Fills outputs. @p first: of an extra run, the trial's first one, whose expected values are used again; @p keep: where to put
// this run's; @p diagnose: look closer at wrong outputs.
Result<void> judge_outputs(const TrialParts& parts, OutputValues got, TrialEvidence& trial, Stopwatch& watch,
                           const JudgedOutputs* first = nullptr, std::optional<JudgedOutputs>* keep = nullptr,
                           bool diagnose = false);
// One for each output, keyed by the trial's seed.
Result<std::vector<OutputDigest>> digest_outputs(JudgeOps& judge, const OutputValues& got, std::uint64_t trial_seed);

// Looks closer at the outputs that are wrong: OutputEvidence::diagnosis. The inputs lie in their buffers as they were placed.
Result<void> diagnose_outputs(const TrialParts& parts, const OutputValues& got, const OutputValues& expected,
                              std::vector<OutputEvidence>& outputs);

}  // namespace ptxbench
