// The members of every block of a Verdict, once: the writer and the reader both walk these lists, so that
// they cannot disagree. Names and order are those of docs/verdict.md.
#pragma once

#include <ptxbench/trace/verdict.hpp>

namespace ptxbench {

// JSON text kept in a string: an object, or null where the string is empty.
template <class S>
struct JsonText {
  S& text;
};
template <class S>
JsonText(S&) -> JsonText<S>;

// In each: `T` is the block or const block, `f(name, member)` is called for every member in order.
template <class F>
void fields(F&& f, auto& v, const Diagnostic*) {
  f("severity", v.severity);
  f("message", v.message);
  f("file", v.file);
  f("line", v.line);
  f("column", v.column);
  f("ptx_line", v.ptx_line);
  f("code", v.code);
  f("function", v.function);
}
template <class F>
void fields(F&& f, auto& v, const KernelResources*) {
  f("kernel", v.kernel);
  f("symbol", v.symbol);
  f("registers", v.registers);
  f("static_shared_bytes", v.static_shared_bytes);
  f("dynamic_shared_bytes", v.dynamic_shared_bytes);
  f("stack_bytes", v.stack_bytes);
  f("spill_store_bytes", v.spill_store_bytes);
  f("spill_load_bytes", v.spill_load_bytes);
  f("occupancy_ctas_per_sm", v.occupancy_ctas_per_sm);
}
template <class F>
void fields(F&& f, auto& v, const StaticFamily*) {
  f("kernel", v.kernel);
  f("family", v.family);
  f("instructions", v.instructions);
}
template <class F>
void fields(F&& f, auto& v, const CompileBlock*) {
  f("state", v.state);
  f("reason", v.reason);
  f("ok", v.ok);
  f("cached", v.cached);
  f("arch", v.arch);
  f("compiler", v.compiler);
  f("duration_ns", v.duration_ns);
  f("diagnostics", v.diagnostics);
  f("kernels", v.kernels);
  f("static_families", v.static_families);
}
template <class F>
void fields(F&& f, auto& v, const OutputCorrectness*) {
  f("output", v.output);
  f("dtype", v.dtype);
  f("elements", v.elements);
  f("elements_checked", v.elements_checked);
  f("elements_wrong", v.elements_wrong);
  f("elements_unwritten", v.elements_unwritten);
  f("first_wrong_index", v.first_wrong_index);
  f("first_wrong_expected", v.first_wrong_expected);
  f("first_wrong_got", v.first_wrong_got);
  f("rms_error", v.rms_error);
  f("max_absolute_error", v.max_absolute_error);
  f("max_relative_error", v.max_relative_error);
  f("scale", v.scale);
  f("model_rms_error", v.model_rms_error);
  f("model_max_error", v.model_max_error);
  f("rms_limit", v.rms_limit);
  f("max_limit", v.max_limit);
  f("comparator", v.comparator);
  f("ok", v.ok);
}
template <class F>
void fields(F&& f, auto& v, const CorrectnessBlock*) {
  f("state", v.state);
  f("reason", v.reason);
  f("trials", v.trials);
  f("trials_failed", v.trials_failed);
  f("outputs", v.outputs);
}
template <class F>
void fields(F&& f, auto& v, const GpuClocks*) {
  f("state", v.state);
  f("reason", v.reason);
  f("source", v.source);
  f("samples", v.samples);
  f("max_sm_mhz", v.max_sm_mhz);
  f("sm_mhz_low", v.sm_mhz_low);
  f("sm_mhz_high", v.sm_mhz_high);
  f("memory_mhz_low", v.memory_mhz_low);
  f("memory_mhz_high", v.memory_mhz_high);
  f("temperature_c_low", v.temperature_c_low);
  f("temperature_c_high", v.temperature_c_high);
  f("power_mw_high", v.power_mw_high);
  f("limited_by", v.limited_by);
  f("other_processes", v.other_processes);
}
template <class F>
void fields(F&& f, auto& v, const TimingBlock*) {
  f("state", v.state);
  f("reason", v.reason);
  f("median_ns", v.median_ns);
  f("baseline_median_ns", v.baseline_median_ns);
  f("baseline", v.baseline);
  f("speedup", v.speedup);
  f("speedup_low", v.speedup_low);
  f("speedup_high", v.speedup_high);
  f("noise_floor", v.noise_floor);
  f("tie", v.tie);
  f("pairs", v.pairs);
  f("pairs_verified", v.pairs_verified);
  f("pairs_discarded", v.pairs_discarded);
  f("trials", v.trials);
  f("stop_rule", v.stop_rule);
  f("l2", v.l2);
  f("method", v.method);
  f("event_overhead_ns", v.event_overhead_ns);
  f("empty_kernel_ns", v.empty_kernel_ns);
  f("roofline_ns", v.roofline_ns);
  f("roofline_basis", v.roofline_basis);
  f("gpu", v.gpu);
  f("samples_ns", v.samples_ns);
  f("baseline_samples_ns", v.baseline_samples_ns);
}
template <class F>
void fields(F&& f, auto& v, const FamilyCount*) {
  f("kernel", v.kernel);
  f("family", v.family);
  f("warp_instructions", v.warp_instructions);
  f("thread_instructions", v.thread_instructions);
  f("label", v.label);
}
template <class F>
void fields(F&& f, auto& v, const OpcodeCount*) {
  f("kernel", v.kernel);
  f("opcode", v.opcode);
  f("family", v.family);
  f("warp_instructions", v.warp_instructions);
  f("thread_instructions", v.thread_instructions);
  f("label", v.label);
}
template <class F>
void fields(F&& f, auto& v, const LineCount*) {
  f("kernel", v.kernel);
  f("source", v.source);
  f("family", v.family);
  f("warp_instructions", v.warp_instructions);
  f("thread_instructions", v.thread_instructions);
  f("label", v.label);
}
template <class F>
void fields(F&& f, auto& v, const FlopCount*) {
  f("kernel", v.kernel);
  f("arch_mma", v.arch_mma);
  f("mma_sync", v.mma_sync);
  f("fp32", v.fp32);
  f("fp64", v.fp64);
  f("half", v.half);
  f("arch_flops_share", v.arch_flops_share);
}
template <class F>
void fields(F&& f, auto& v, const FlopsBlock*) {
  f("kernels", v.kernels);
  f("total", v.total);
  f("arch_flops_share_reason", v.arch_flops_share_reason);
  f("task_flops", v.task_flops);
  f("mma_work_ratio", v.mma_work_ratio);
  f("mma_work_ratio_reason", v.mma_work_ratio_reason);
}
template <class F>
void fields(F&& f, auto& v, const ArchitectureVerdict*) {
  f("published", v.published);
  f("strict", v.strict);
  f("reason", v.reason);
}
template <class F>
void fields(F&& f, auto& v, const BytesBlock*) {
  f("tma_reason", v.tma_reason);
  f("bulk_copy_reason", v.bulk_copy_reason);
  f("task", v.task);
  f("tma_ratio", v.tma_ratio);
  f("tma_ratio_reason", v.tma_ratio_reason);
  f("spill", v.spill);
  f("spill_reason", v.spill_reason);
}
template <class F>
void fields(F&& f, auto& v, const CountsBlock*) {
  f("state", v.state);
  f("reason", v.reason);
  f("method", v.method);
  f("families", v.families);
  f("opcodes", v.opcodes);
  f("lines", v.lines);
  f("tma_load_bytes", v.tma_load_bytes);
  f("tma_store_bytes", v.tma_store_bytes);
  f("bulk_copy_bytes", v.bulk_copy_bytes);
  f("bytes", v.bytes);
  f("waits_per_mma", v.waits_per_mma);
  f("flops", v.flops);
  f("architecture", v.architecture);
}
template <class F>
void fields(F&& f, auto& v, const EmulationBlock*) {
  f("state", v.state);
  f("reason", v.reason);
  f("fidelity", v.fidelity);
  f("inexact", v.inexact);
  f("schedules", v.schedules);
  f("warp_instructions", v.warp_instructions);
}
template <class F>
void fields(F&& f, auto& v, const Finding*) {
  f("code", v.code);
  f("severity", v.severity);
  f("message", v.message);
  f("evidence", JsonText{v.evidence});
}
template <class F>
void fields(F&& f, auto& v, const ContractResult*) {
  f("rule", v.rule);
  f("state", v.state);
  f("value", v.value);
  f("kernel", v.kernel);
  f("reason", v.reason);
  f("sentence", v.sentence);
}
template <class F>
void fields(F&& f, auto& v, const StageTime*) {
  f("stage", v.stage);
  f("duration_ns", v.duration_ns);
}
template <class F>
void fields(F&& f, auto& v, const Provenance*) {
  f("ptxbench_version", v.ptxbench_version);
  f("protocol", v.protocol);
  f("device", v.device);
  f("device_name", v.device_name);
  f("seed", v.seed);
  f("versions", v.versions);
  f("stages", v.stages);
}
template <class F>
void fields(F&& f, auto& v, const Verdict*) {
  f("workload_uuid", v.workload_uuid);
  f("axes", v.axes);
  f("outcome", v.outcome);
  f("outcome_reason", v.outcome_reason);
  f("status", v.status);
  f("integrity", v.integrity);
  f("compile", v.compile);
  f("correctness", v.correctness);
  f("timing", v.timing);
  f("counts", v.counts);
  f("emulation", v.emulation);
  f("findings", v.findings);
  f("contracts", v.contracts);
  f("resolved_plan", JsonText{v.resolved_plan});
  f("output_log", v.output_log);
  f("provenance", v.provenance);
}

// A block: a type that has a list above.
template <class T>
concept VerdictBlock = requires(T& v) {
  fields([](const char*, auto&&) {}, v, static_cast<const T*>(nullptr));
};

}  // namespace ptxbench
