// A Verdict with every block filled and every optional there.
#pragma once

#include "trace/edit.hpp"

#include <ptxbench/trace/verdict.hpp>

#include <limits>

namespace ptxbench::test {

inline Verdict filled_verdict() {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  Verdict v;
  v.workload_uuid = "w-1";
  v.axes = {{"M", 8192}, {"a/b", std::numeric_limits<std::int64_t>::max()}};
  v.outcome = Outcome::judged;
  v.outcome_reason = "why";
  v.status = Status::incorrect_numerical;
  v.integrity = Integrity::violated;
  v.compile.state = Availability::measured;
  v.compile.reason = "r";
  v.compile.ok = v.compile.cached = true;
  v.compile.arch = "sm_90a";
  v.compile.compiler = "NVRTC 13.0.88";
  v.compile.duration_ns = 123456789;
  v.compile.diagnostics = {{Severity::warning, "text \"quoted\"\n", "gemm.cu", 12, 3, 456, "C7510", "gemm"}};
  v.compile.kernels = {{"gemm", "_Z4gemmv", 168, 1024, 200000, 16, 8, 4, 1},
                       {"other", "other", 32, 0, 0, 0, 0, 0, std::nullopt}};
  v.compile.static_families = {{"gemm", "wgmma", 64}};
  OutputCorrectness o;
  o.output = "C";
  o.dtype = DType::bfloat16;
  o.elements = 100;
  o.elements_checked = 99;
  o.elements_wrong = 7;
  o.elements_unwritten = 1;
  o.first_wrong_index = std::vector<std::int64_t>{3, 17};
  o.first_wrong_expected = 0.1;
  o.first_wrong_got = kNaN;
  o.rms_error = 1e-300;
  o.max_absolute_error = 2.5;
  o.max_relative_error = std::numeric_limits<double>::infinity();
  o.scale = -0.5;
  o.model_rms_error = 1e-3;
  o.model_max_error = 2e-3;
  o.rms_limit = 3e-3;
  o.max_limit = 4e-3;
  o.comparator = "model_error";
  o.ok = true;
  v.correctness = {Availability::measured, "r", 3, 1, {o}};
  v.timing.state = Availability::inconclusive;
  v.timing.reason = "noisy";
  v.timing.median_ns = 1000;
  v.timing.baseline_median_ns = 2000;
  v.timing.baseline = "cuBLASLt";
  v.timing.speedup = 1.0 / 3;
  v.timing.speedup_low = 0.25;
  v.timing.speedup_high = 0.5;
  v.timing.noise_floor = 0.003;
  v.timing.tie = true;
  v.timing.pairs = 2;
  v.timing.pairs_verified = 1;
  v.timing.pairs_discarded = 3;
  v.timing.trials = 4;
  v.timing.stop_rule = "budget";
  v.timing.l2 = "warm";
  v.timing.event_overhead_ns = 1500;
  v.timing.empty_kernel_ns = 2500;
  v.timing.roofline_ns = 900;
  v.timing.roofline_basis = "2 MB at 4 TB/s";
  v.timing.gpu = {Availability::measured, "r", "NVML", 5, 1980, 1700, 1755, 3201, 3202, 40, 61, 650'000,
                  {"sw_power_cap"}, {4711}};
  v.timing.method = "events";
  v.timing.samples_ns = {999, 1001};
  v.timing.baseline_samples_ns = {1999, 2001};
  v.counts.state = Availability::unavailable;
  v.counts.reason = "not permitted";
  v.counts.method = "cupti_sass";
  v.counts.families = {{"gemm", "wgmma", 10, 320}};
  v.counts.opcodes = {{"gemm", "HGMMA.64x256x16.F32.BF16", "wgmma", 10, 320}};
  v.counts.lines = {{"gemm", "gemm.cu:120", "wgmma", 10, 320, "timing_dependent"}};
  v.counts.tma_load_bytes = 1 << 20;
  v.counts.tma_store_bytes = 0;
  v.counts.bulk_copy_bytes = 16;
  v.counts.bytes = {"a map", "a size", 1 << 30, 1.5, "t", 4096, "s"};
  v.counts.waits_per_mma = 0.25;
  v.counts.flops.kernels = {{"gemm", 1'000'000'007, 0, 5, 6, 7, 0.25}, {"reduce", std::nullopt, std::nullopt, 1, 2, 3, {}}};
  v.counts.flops.total = {"", std::nullopt, 0, 6, 8, 10, std::nullopt};
  v.counts.flops.arch_flops_share_reason = "a descriptor";
  v.counts.flops.task_flops = 601'295'421'440;
  v.counts.flops.mma_work_ratio = 1.0625;
  v.counts.flops.mma_work_ratio_reason = "w";
  v.counts.architecture = {true, std::nullopt, "published: HGMMA was executed"};
  v.emulation = {Availability::measured, "r", "ptxas", {"mul.f32: may be fused"}, {"eager", "random:17"}, 4711};
  v.findings = {{"red_zone", Severity::error, "wrote beside C", R"({"offset": 4096, "bytes": [0, 255]})"},
                {"wgmma_serialized", Severity::note, "n", ""}};
  v.contracts = {{"spills == 0", ContractState::not_met, "12", "gemm", "", "No registers must be spilled."},
                 {"speedup >= 0.6", ContractState::not_checked, "", "", "timing: inconclusive", "Be faster."},
                 {"status != TIMEOUT", ContractState::met, "INCORRECT_NUMERICAL", "", "", "Come to an end."}};
  v.resolved_plan = R"({"steps":[{"grid":[1,1,1]}]})";
  v.output_log = "line\n";
  v.provenance.ptxbench_version = "0.1.0";
  v.provenance.protocol = "rigorous";
  v.provenance.device = "cuda:GPU-1";
  v.provenance.device_name = "NVIDIA H200";
  v.provenance.seed = std::numeric_limits<std::uint64_t>::max();
  v.provenance.versions = {{"driver", "580.1"}, {"nvrtc", "13.0"}};
  v.provenance.stages = {{"compile", 5}, {"verify", 6}};
  return v;
}

}  // namespace ptxbench::test
