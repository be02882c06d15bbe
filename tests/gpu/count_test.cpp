// Counts of a small kernel through a count worker: exact numbers.
#include "support/count_case.hpp"
#include "support/gpu.hpp"

#include <ptxbench/compile.hpp>
#include <ptxbench/worker.hpp>

#include <chrono>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// Workers on a GPU for which there is a cubin of probes, or nothing.
struct Bench {
  std::shared_ptr<Workers> workers;
  DeviceInfo device;
  std::vector<std::uint8_t> cubin, judge;

  bool open() {
    {
      const auto gpu = gpu_or_skip();
      if (!gpu) return false;
      device = gpu->info();
    }
    cubin = cubin_fixture("async." + device.arch);
    if (cubin.empty()) {
      WARN("skipped: no probe cubin for " << device.arch);
      return false;
    }
    auto compiled = compile_in_process(judge_compile_request(device.arch));
    if (!compiled) FAIL(compiled.error().to_string());
    if (!compiled->ok) FAIL(compiled->log);
    judge = compiled->modules.at(0).cubin;
    WorkerOptions options;
    options.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
    auto made = Workers::create(options);
    if (!made) FAIL(made.error().to_string());
    workers = std::move(*made);
    auto opened = workers->open_device(device.id, "");
    if (!opened) FAIL(opened.error().to_string());
    return true;
  }

  CountEvidence count(CountJob job, HostCallbacks& callbacks) {
    job.judge_cubin = judge;
    auto evidence = workers->count(device.id, job, callbacks, {});
    if (!evidence) FAIL(evidence.error().to_string());
    return std::move(*evidence);
  }
};

// What was executed how often, by mnemonic.
std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> by_opcode(const Verdict& verdict) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> out;
  for (const OpcodeCount& count : verdict.counts.opcodes) {
    auto& [warps, threads] = out[count.opcode.substr(0, count.opcode.find('.'))];
    warps += count.warp_instructions;
    threads += count.thread_instructions;
  }
  return out;
}

Verdict passed() {
  Verdict verdict;
  verdict.outcome = Outcome::judged;
  verdict.status = Status::passed;
  return verdict;
}

}  // namespace

TEST_CASE("gpu: counts are warps times instructions, and launches add up") {
  Bench bench;
  if (!bench.open()) return;
  OneElected judge;
  LocalCallbacks callbacks(nullptr, &judge, &judge);
  const std::vector<std::string> line = straight_line(bench.cubin, "k_elect");
  REQUIRE(line.back() == "EXIT");
  for (const int launches : {1, 3, 1}) {  // each in a process of its own
    const CountJob job = probe_job(bench.cubin, "k_elect", 2, 64, launches, 64);
    bench.workers->prepare_count(bench.device.id);
    const auto start = std::chrono::steady_clock::now();
    const CountEvidence evidence = bench.count(job, callbacks);
    const auto ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    std::string stages;
    for (const StageTime& stage : evidence.stages)
      stages +=
          " " + stage.stage + " " + std::to_string(static_cast<double>(stage.duration_ns) * 1e-6) + " ms;";
    WARN("count job: " << ms << " ms;" << stages << " " << evidence.versions.at(0).second);
    if (evidence.unavailable) FAIL(evidence.unavailable->reason);
    Verdict verdict = passed();
    compose_counts(evidence, job.candidate.modules, {{"k_elect", "elected"}}, verdict);
    INFO(verdict.counts.reason);
    REQUIRE(verdict.status == Status::passed);
    REQUIRE(verdict.counts.state == Availability::measured);
    std::map<std::string, std::uint64_t> expected;
    const auto warps = static_cast<std::uint64_t>(2 * 2 * launches);  // CTAs times warps
    for (const std::string& opcode : line) expected[opcode] += warps;
    const auto counted = by_opcode(verdict);
    CHECK(counted.size() == expected.size());
    for (const auto& [opcode, executions] : expected) {
      INFO(opcode);
      REQUIRE(counted.count(opcode) == 1);
      CHECK(counted.at(opcode).first == executions);
      CHECK(counted.at(opcode).second == 32 * executions);
    }
  }
}

TEST_CASE("gpu: a wrong result in the counted run fails, a fault there does not") {
  Bench bench;
  if (!bench.open()) return;
  OneElected judge;  // k_fences writes something else
  LocalCallbacks callbacks(nullptr, &judge, &judge);
  const CountJob wrong = probe_job(bench.cubin, "k_fences", 1, 64, 1, 64);
  const CountEvidence evidence = bench.count(wrong, callbacks);
  if (evidence.unavailable) FAIL(evidence.unavailable->reason);
  Verdict verdict = passed();
  compose_counts(evidence, wrong.candidate.modules, {}, verdict);
  CHECK(verdict.status == Status::incorrect_numerical);

  // The kernel is given address 0: whatever comes of it must not be the candidate's status.
  CountJob faulty = probe_job(bench.cubin, "k_elect", 1, 32, 1, 64);
  faulty.candidate.solution.sources[0].content =
      R"({"version":1,"steps":[{"kernel":"k_elect","grid":[1],"block":[32],"args":[{"null":true}]}]})";
  AnyOutput any;
  LocalCallbacks accept(nullptr, &any, &any);
  const CountEvidence bad = bench.count(faulty, accept);
  REQUIRE(bad.unavailable);
  CHECK(bad.unavailable->kind == CountUnavailable::Kind::fault);
  WARN(count_unavailable_name(bad.unavailable->kind) << ": " << bad.unavailable->reason);
  verdict = passed();
  compose_counts(bad, faulty.candidate.modules, {}, verdict);
  CHECK(verdict.status == Status::passed);
  CHECK(verdict.counts.state == Availability::unavailable);

  // The next finds a healthy device.
  const CountEvidence good = bench.count(probe_job(bench.cubin, "k_elect", 2, 64, 1, 64), callbacks);
  CHECK_FALSE(good.unavailable);
}

TEST_CASE("gpu: PTX that the driver assembled is counted by the code that CUPTI shows") {
  Bench bench;
  if (!bench.open()) return;
  CountJob job = probe_job({}, "k_elect", 2, 64, 3, 64);
  job.candidate.solution.sources[1].path = "probe.ptx";
  CompiledModule& module = job.candidate.modules[0];
  module.source = "probe.ptx";
  module.ptx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry k_elect(.param .u64 p)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<2>;
  .reg .f32 %f<2>;
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd2, %rd2, %rd3;
  ld.volatile.global.f32 %f1, [%rd2];
  fma.rn.f32 %f1, %f1, %f1, %f1;
  st.global.f32 [%rd2], %f1;
  ret;
}
)";
  AnyOutput any;
  LocalCallbacks accept(nullptr, &any, &any);
  const CountEvidence evidence = bench.count(job, accept);
  if (evidence.unavailable) FAIL(evidence.unavailable->reason);
  REQUIRE(evidence.driver_code.size() == 1);
  Verdict verdict = passed();
  compose_counts(evidence, job.candidate.modules, {}, verdict);
  INFO(verdict.counts.reason);
  REQUIRE(verdict.counts.state == Availability::measured);
  const auto counted = by_opcode(verdict);
  REQUIRE(counted.count("FFMA") == 1);
  CHECK(counted.at("FFMA").first == 3 * 2 * 2);
  CHECK(counted.at("FFMA").second == 3 * 2 * 64);
  CHECK(counted.at("LDG").first == 3 * 2 * 2);
}
