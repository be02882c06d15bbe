#include "bench/wire.hpp"

#include "verify/wire_fields.hpp"

namespace ptxbench {
namespace wire {

template <class F>
void fields(F&& f, BaselineSpec& v) {
  f("kind", v.kind), f("solution", v.solution), f("fixed_ns", v.fixed_ns);
}
template <class F>
void fields(F&& f, TimeJob& v) {
  f("workload", v.workload), f("candidate", v.candidate), f("baseline", v.baseline), f("seed", v.seed);
  f("pairs", v.pairs), f("warmup_pairs", v.warmup_pairs), f("budget_ns", v.budget_ns);
  f("stop_if_slower_than", v.stop_if_slower_than), f("noise", v.noise), f("noise_pairs", v.noise_pairs);
  f("target_width", v.target_width), f("l2", v.l2);
  f("protocol", v.protocol), f("run_deadline_ns", v.run_deadline_ns), f("inputs", v.inputs);
  f("reference", v.reference), f("comparator", v.comparator), f("judge", Blob{v.judge_cubin});
}
template <class F>
void fields(F&& f, TimedPair& v) {
  f("candidate_ns", v.candidate_ns), f("baseline_ns", v.baseline_ns), f("baseline_first", v.baseline_first);
}
template <class F>
void fields(F&& f, TimedFailure& v) {
  f("pair", v.pair), f("outputs", v.outputs), f("violations", v.violations);
}
template <class F>
void fields(F&& f, TimedTrial& v) {
  f("candidate_ns", v.candidate_ns), f("baseline_ns", v.baseline_ns);
}
template <class F>
void fields(F&& f, GpuState& v) {
  f("sm_mhz", v.sm_mhz), f("memory_mhz", v.memory_mhz), f("temperature_c", v.temperature_c);
  f("power_mw", v.power_mw), f("reasons", v.reasons);
}
template <class F>
void fields(F&& f, OtherProcess& v) {
  f("pid", v.pid), f("sm_percent", v.sm_percent);
}
template <class F>
void fields(F&& f, GpuConditions& v) {
  f("source", v.source), f("missing", v.missing), f("max_sm_mhz", v.max_sm_mhz), f("samples", v.samples);
  f("low", v.low), f("high", v.high), f("others", v.others);
}
template <class F>
void fields(F&& f, TimeEvidence& v) {
  f("plan_error", v.plan_error), f("fault", v.fault), f("fault_pair", v.fault_pair), f("failure", v.failure);
  f("pairs", v.pairs), f("noise", v.noise), f("baseline", v.baseline), f("fixed_ns", v.fixed_ns);
  f("baseline_description", v.baseline_description), f("baseline_missing", v.baseline_missing);
  f("protocol", v.protocol), f("method", v.method), f("stop_reason", v.stop_reason);
  f("trials", v.trials), f("trials_wanted", v.trials_wanted), f("pairs_verified", v.pairs_verified);
  f("pairs_discarded", v.pairs_discarded), f("l2", v.l2), f("event_overhead_ns", v.event_overhead_ns);
  f("empty_kernel_ns", v.empty_kernel_ns), f("gpu", v.gpu);
  f("unavailable", v.unavailable), f("device_lost", v.device_lost), f("stages", v.stages);
}

}  // namespace wire

Message to_message(const TimeJob& job) { return wire::write("time", job); }
Result<TimeJob> time_job_from(const Message& message) { return wire::read<TimeJob>("time", message); }

Message to_message(const TimeEvidence& evidence) { return wire::write("timed", evidence); }
Result<TimeEvidence> time_evidence_from(const Message& message) {
  return wire::read<TimeEvidence>("timed", message);
}

}  // namespace ptxbench
