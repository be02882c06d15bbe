#include "count/wire.hpp"

#include "verify/wire_fields.hpp"

namespace ptxbench {
namespace wire {

template <class F>
void fields(F&& f, CountJob& v) {
  f("workload", v.workload), f("candidate", v.candidate), f("seed", v.seed), f("trial", v.trial);
  f("run_deadline_ns", v.run_deadline_ns), f("inputs", v.inputs), f("reference", v.reference);
  f("comparator", v.comparator), f("judge", Blob{v.judge_cubin}), f("verified", v.verified);
}
template <class F>
void fields(F&& f, CountRequest& v) {
  f("device", v.device), f("cuda_home", v.cuda_home), f("job", v.job);
}
template <class F>
void fields(F&& f, CountRecord& v) {
  f("pc", v.pc_offset), f("warps", v.warp_executions), f("threads", v.threads_predicated_on);
}
template <class F>
void fields(F&& f, KernelRecords& v) {
  f("module", v.module), f("symbol", v.symbol), f("crc", v.cubin_crc), f("records", v.records);
}
template <class F>
void fields(F&& f, CountUnavailable& v) {
  f("kind", v.kind), f("reason", v.reason);
}
template <class F>
void fields(F&& f, DriverCode& v) {
  f("module", v.module), f("cubin", Blob{v.cubin});
}
template <class F>
void fields(F&& f, CountedMap& v) {
  f("module", v.module), f("symbol", v.symbol), f("offset", v.offset), f("box", v.box_bytes);
}
template <class F>
void fields(F&& f, CountEvidence& v) {
  f("unavailable", v.unavailable), f("method", v.method), f("kernels", v.kernels);
  f("driver_code", v.driver_code), f("maps", v.maps), f("other_functions", v.other_functions), f("trial", v.trial), f("as_verified", v.as_verified);
  f("versions", v.versions), f("stages", v.stages);
}

}  // namespace wire

Message to_message(const CountRequest& request) { return wire::write("count", request); }
Result<CountRequest> count_request_from(const Message& message) {
  return wire::read<CountRequest>("count", message);
}

Message to_message(const CountEvidence& evidence) { return wire::write("counted", evidence); }
Result<CountEvidence> count_evidence_from(const Message& message) {
  return wire::read<CountEvidence>("counted", message);
}

}  // namespace ptxbench
