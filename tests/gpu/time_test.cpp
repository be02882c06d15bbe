// The time stage on a card: the monitor, the clock's overhead, early stops, both protocols, exchanged roles.
#include "support/gpu.hpp"

#include <ptxbench/bench.hpp>
#include <ptxbench/compile.hpp>
#include <ptxbench/pack.hpp>

#include <chrono>
#include <cmath>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

struct GemmTiming {
  std::unique_ptr<Device> gpu = gpu_or_skip();
  Workload workload;
  std::vector<std::uint8_t> judge;
  std::unique_ptr<GpuMonitor> monitor;

  explicit GemmTiming(std::int64_t m) {
    if (!gpu) return;
    const auto definition =
        load_definition(PTXBENCH_SOURCE_DIR "/examples/data/definitions/gemm/gemm_n7168_k5120.json");
    REQUIRE(definition);
    workload.definition = *definition;
    workload.axes = {{"M", m}};
    workload.uuid = "m-" + std::to_string(m);
    judge = compiled(judge_compile_request(gpu->info().arch)).at(0).cubin;
    auto opened = open_gpu_monitor(gpu->info().id);
    if (opened)
      monitor = std::move(*opened);
    else
      WARN("no monitor: " << opened.error().to_string());
  }

  static std::vector<CompiledModule> compiled(const CompileRequest& request) {
    auto result = compile_in_process(request);
    if (!result) FAIL(result.error().to_string());
    if (!result->ok) FAIL(result->log);
    return result->modules;
  }

  // One of examples/data/candidates.
  Candidate candidate(const std::string& name) const {
    Candidate made;
    auto solution =
        load_solution(PTXBENCH_SOURCE_DIR "/examples/data/candidates/" + name, *workload.definition);
    if (!solution) FAIL(solution.error().to_string());
    made.solution = *solution;
    const auto pack = KnowledgePack::load(PTXBENCH_SOURCE_DIR "/knowledge_packs/hopper");
    if (!pack) FAIL(pack.error().to_string());
    const auto plan = LaunchPlan::parse(made.solution.find_source("launch.json")->content);
    REQUIRE(plan);
    BindOptions options;
    options.limits = gpu->info().limits;
    const auto bound = bind_plan(*plan, made.solution, workload, options);
    if (!bound) FAIL(bound.error().to_string());
    CompileRequest request;
    request.files = made.solution.sources;
    request.sources = bound->sources;
    request.defines = bound->defines;
    request.launch_plan_header = bound->launch_plan_header;
    request.headers = (*pack)->headers();
    request.arch = gpu->info().arch;
    made.modules = compiled(request);
    return made;
  }

  TimeJob job(const std::string& name) const {
    TimeJob made;
    made.workload = workload;
    made.candidate = candidate(name);
    made.judge_cubin = judge;
    made.seed = 11;
    return made;
  }

  Verdict time(const TimeJob& job, LibraryBaseline* library) {
    const auto start = std::chrono::steady_clock::now();
    const auto evidence = run_time(*gpu, job, library, nullptr, monitor.get());
    if (!evidence) FAIL(evidence.error().to_string());
    const double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    Verdict verdict;
    verdict.outcome = Outcome::judged;
    verdict.status = Status::passed;
    compose_timing(*evidence, verdict, std::nullopt,
                   roofline(job.workload, gpu->info(), job.l2, evidence->gpu.max_sm_mhz));
    const TimingBlock& t = verdict.timing;
    std::string stages;
    for (const StageTime& stage : evidence->stages)
      stages += " " + stage.stage + " " + std::to_string(stage.duration_ns / 1000) + " us";
    WARN(job.candidate.solution.name
         << ", " << job.protocol << ", " << t.l2 << ": " << ms << " ms (" << stages << "); " << t.median_ns
         << " ns next to " << t.baseline_median_ns << " (" << t.baseline << "), speedup "
         << t.speedup.value_or(-1) << " [" << t.speedup_low << ", " << t.speedup_high << "], noise "
         << t.noise_floor.value_or(-1) << ", " << t.pairs << " pairs, " << t.pairs_verified << " verified, "
         << t.pairs_discarded << " discarded, by " << t.stop_rule << "; empty " << t.event_overhead_ns
         << " ns, empty kernel " << t.empty_kernel_ns << " ns; roofline " << t.roofline_ns.value_or(0)
         << " ns: " << t.roofline_basis << "; " << t.method << "; gpu " << t.gpu.source << " " << t.gpu.reason
         << " " << t.gpu.sm_mhz_low << " to " << t.gpu.sm_mhz_high << " of " << t.gpu.max_sm_mhz
         << " MHz, memory " << t.gpu.memory_mhz_high << " MHz, " << t.gpu.temperature_c_high << " C, "
         << t.gpu.power_mw_high << " mW, reasons " << evidence->gpu.high.reasons << ", others "
         << t.gpu.other_processes.size());
    for (const Finding& finding : verdict.findings) WARN(finding.code << ": " << finding.message);
    return verdict;
  }
};

}  // namespace

TEST_CASE("a GEMM next to its library: measured, bounded, monitored", "[time]") {
  for (const std::int64_t m : {8192, 70}) {
    GemmTiming s(m);
    if (!s.gpu) return;
    auto library = find_library_baseline(s.workload);
    if (!library) {
      WARN("no library: " << library.error().to_string());
      return;
    }
    TimeJob job = s.job("4_fast");
    job.noise = true;
    const Verdict verdict = s.time(job, library->get());
    CHECK(verdict.status == Status::passed);
    CHECK(verdict.integrity == Integrity::clean);
    CHECK(verdict.timing.speedup.has_value());
    REQUIRE(verdict.timing.roofline_ns);
    CHECK(verdict.timing.median_ns > *verdict.timing.roofline_ns);
    CHECK(verdict.timing.baseline_median_ns > *verdict.timing.roofline_ns);
    CHECK(verdict.timing.event_overhead_ns < 20'000);
    if (s.monitor) {
      CHECK(verdict.timing.gpu.state == Availability::measured);
      CHECK(verdict.timing.gpu.max_sm_mhz >= verdict.timing.gpu.sm_mhz_high);
    }
  }
}

TEST_CASE("a slower candidate is let go early; warm and published timings say what they are", "[time]") {
  GemmTiming s(8192);
  if (!s.gpu) return;
  auto library = find_library_baseline(s.workload);
  if (!library) return;
  TimeJob slow = s.job("3_slow");
  slow.stop_if_slower_than = 0.9;
  const Verdict early = s.time(slow, library->get());
  CHECK(early.timing.stop_rule == "slower");
  CHECK(early.timing.pairs < 10);

  auto again = find_library_baseline(s.workload);
  TimeJob warm = s.job("4_fast");
  warm.l2 = L2State::warm;
  CHECK(s.time(warm, again->get()).timing.l2 == "warm");

  auto third = find_library_baseline(s.workload);
  TimeJob published = s.job("4_fast");
  published.protocol = kPublished;
  published.comparator = protocol_comparator(kPublished, {});
  const Verdict trials = s.time(published, third->get());
  CHECK(trials.status == Status::passed);
  CHECK(trials.timing.trials == 3);
  CHECK(trials.timing.speedup.has_value());
}

TEST_CASE("candidate and baseline exchanged: reciprocal ratios; one against itself: one", "[time]") {
  GemmTiming s(8192);
  if (!s.gpu) return;
  TimeJob job = s.job("4_fast");
  TimeJob other = s.job("4_fast");
  other.candidate = s.candidate("3_slow");
  job.baseline.kind = other.baseline.kind = BaselineKind::solution;
  job.baseline.solution = other.candidate;
  other.baseline.solution = job.candidate;
  const Verdict forth = s.time(job, nullptr), back = s.time(other, nullptr);
  REQUIRE(forth.timing.speedup);
  REQUIRE(back.timing.speedup);
  CHECK(std::abs(*forth.timing.speedup * *back.timing.speedup - 1) < 0.02);
  TimeJob same = job;
  same.baseline.solution = job.candidate;
  const Verdict one = s.time(same, nullptr);
  CHECK(std::abs(*one.timing.speedup - 1) < 0.01);
}

// What the monitor's questions cost: test_gpu "[measure][time]".
TEST_CASE("what asking the monitor and resetting the L2 costs", "[.][measure][time]") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const auto took = [](const char* what, int times, const auto& f) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) f();
    const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
    WARN(what << ": " << spent.count() / times << " us");
  };
  std::unique_ptr<GpuMonitor> monitor;
  took("opening NVML", 1, [&] {
    auto opened = open_gpu_monitor(gpu->info().id);
    if (opened)
      monitor = std::move(*opened);
    else
      WARN(opened.error().to_string());
  });
  took("resetting persisting lines of the L2", 20, [&] { REQUIRE(gpu->reset_persisting_l2()); });
  if (!monitor) return;
  took("state", 20, [&] { REQUIRE(monitor->state()); });
  took("reasons", 20, [&] { REQUIRE(monitor->reasons()); });
  monitor->watch_others();
  took("other processes", 3, [&] {
    const auto others = monitor->others();
    if (!others)
      WARN(others.error().message);
    else
      WARN(others->size() << " others");
  });
}
