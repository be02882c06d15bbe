// One workload of a request, judged in two halves: what needs no device and can be done ahead, and what needs
// its turn on the device.
#pragma once

#include "evaluate/context.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ptxbench {

// What the request brings, made ready for one workload. References are to what outlives the judgement.
struct Stages {
  ContextImpl& context;
  const Workload& workload;
  const Judging& judging;
  const EvaluateOptions& options;
  const CancelToken& cancel;
  std::uint64_t seed = 0;
  bool count = false;  // this workload's instructions

  int trials(const DeviceInfo& device) const;
  std::uint64_t run_deadline_ns(const DeviceInfo& device) const;
  InputKind inputs() const;
  // A Solution in the part of reference or baseline must compile: one that does not is the request's fault.
  Result<Candidate> other(const SolutionChoice& choice, std::string_view part) const;
  Result<ReferenceSpec> reference() const;
  Result<BaselineSpec> baseline() const;
  LocalCallbacks callbacks() const;
  bool calls_back() const;  // whether a host's code may be called, hooks included
};

// A candidate, compiled and checked, with what its measurement needs.
struct Prepared {
  Verdict verdict;
  bool closed = false;  // nothing is run: the verdict is as it stays
  DeviceInfo device;
  Candidate candidate;
  ReferenceSpec reference;
  std::optional<BaselineSpec> baseline;  // nothing: made when it is needed
  std::vector<std::uint8_t> judge_cubin;
  bool alone = false;                  // it needs so much memory that nothing may run beside it
  std::vector<OutputDigest> verified;  // of the trial that is counted again
};

// `ahead`: everything that has to be compiled is compiled now, also what only a candidate that passes needs.
Result<Prepared> prepare(const Stages& stages, const Solution& solution, bool ahead);
// Verify, time, count. Callbacks and hooks run on the calling thread.
Result<Verdict> measure(const Stages& stages, Prepared prepared);

// An evaluation without its verdicts, after the request has been checked, and the seed of its draws.
struct Begun {
  Evaluation evaluation;
  Judging judging;  // the request's, with the library's own ways of serving it put in where it asks for them
  std::uint64_t seed = 0;
};
Result<Begun> begin_evaluation(const Solution& solution, std::span<const Workload> workloads,
                               const Judging& judging, const EvaluateOptions& options,
                               const CancelToken& cancel);
// Whether the instructions of workload `index` are counted.
bool counts(const EvaluateOptions& options, std::size_t index) noexcept;

}  // namespace ptxbench
