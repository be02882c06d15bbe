// The right kernels of tests/fixtures/kernels give the right result and raise nothing, whatever the schedule.
#include "support/kernel_emulation.hpp"
#include "support/kernel_outputs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

void check_case(Context& context, EmulatedDevice& device, const std::string& name, int random_schedules) {
  const KernelCase c = kernel_case(name);
  const Candidate candidate = compiled_case(context, c);
  std::vector<EmulatorSchedule> schedules{{EmulatorSchedule::Mode::eager, 0},
                                          {EmulatorSchedule::Mode::lazy, 0}};
  for (int seed = 1; seed <= random_schedules; ++seed)
    schedules.push_back({EmulatorSchedule::Mode::random, static_cast<std::uint64_t>(seed)});
  for (const EmulatorSchedule& schedule : schedules) {
    const auto start = std::chrono::steady_clock::now();
    const Emulation run = emulate(device, c, candidate, schedule);
    if (std::getenv("PTXBENCH_SHOW_TIMES") != nullptr)
      std::cerr << name << ' ' << schedule_name(schedule) << ": " << run.report.warp_instructions
                << " warp instructions, "
                << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s\n";
    INFO(name << ", schedule " << schedule_name(schedule));
    INFO(words(run.report));
    INFO((run.verdict.status == Status::passed ? std::string() : to_json(run.verdict).substr(0, 6000)));
    CHECK(run.verdict.status == Status::passed);
    for (const EmulatorFinding& f : run.report.findings) CHECK(f.grade == EmulatorFinding::Grade::note);
    if (!run.report.asynchronous) break;  // other schedules are the same run
  }
}

}  // namespace

TEST_CASE("right kernels are right and raise nothing") {
  const auto context = compile_only_context();
  auto device = open_emulator_device({});
  if (!device) FAIL(device.error().to_string());
  const char* only = std::getenv("PTXBENCH_CASE");
  const char* schedules = std::getenv("PTXBENCH_SCHEDULES");  // how many; 20 were run by hand
  const int random_schedules = schedules == nullptr ? 2 : std::max(0, std::atoi(schedules) - 2);
  for (const std::string& name : kernel_case_names())
    if (only == nullptr || name.find(only) != std::string::npos)
      check_case(*context, **device, name, random_schedules);
}

// The judge poisons outputs, and workspaces without `init`: on the emulator that is memory that nobody wrote.
TEST_CASE("sums into memory that nobody has set to zero are found where they are used") {
  const auto context = compile_only_context();
  auto device = open_emulator_device({});
  if (!device) FAIL(device.error().to_string());
  const KernelCase right = kernel_case("gemm_split_k");
  const auto judged = [&](std::string_view file, std::string_view from, std::string_view to) {
    KernelCase c = right;
    for (SourceFile& source : c.solution.sources) {
      const std::size_t at = source.path == file ? source.content.find(from) : std::string::npos;
      if (at != std::string::npos) source.content.replace(at, from.size(), to);
    }
    return emulate(**device, c, compiled_case(*context, c), {});
  };
  CHECK(judged("", "", "").verdict.status == Status::passed);
  // The workspace: the second kernel rounds what the first one added to poison.
  const Emulation workspace = judged("launch.json", ", \"init\": 0", "");
  INFO(words(workspace.report));
  CHECK(workspace.verdict.status == Status::runtime_error);
  REQUIRE_FALSE(workspace.report.findings.empty());
  CHECK(workspace.report.findings.front().code == "undefined_value");
  CHECK(workspace.report.findings.front().source.find("kernel.cu:23") != std::string::npos);
  CHECK(workspace.report.findings.front().detail.find("kernel.cu:23") != std::string::npos);
  // The output.
  const Emulation output = judged("kernel.cu", "C[i] = __float2bfloat16(sums[i])",
                                  "C[i] = __float2bfloat16(__bfloat162float(C[i]) + sums[i])");
  INFO(words(output.report));
  CHECK(output.verdict.status == Status::runtime_error);
  REQUIRE_FALSE(output.report.findings.empty());
  CHECK(output.report.findings.front().code == "undefined_value");
  CHECK(output.report.findings.front().message.find("the output C[") != std::string::npos);
  CHECK(output.report.findings.front().source.find("kernel.cu:23") != std::string::npos);
  // An output that the kernel sets itself may be added to.
  const Emulation first =
      judged("kernel.cu", "C[i] = __float2bfloat16(sums[i])",
             "C[i] = __float2bfloat16(0.f), C[i] = __float2bfloat16(__bfloat162float(((volatile "
             "__nv_bfloat16*)C)[i]) + sums[i])");
  INFO(words(first.report));
  CHECK(first.verdict.status == Status::passed);
}

TEST_CASE("kernels give the card's bytes") {
  std::ifstream file(PTXBENCH_SOURCE_DIR "/tests/fixtures/kernel_outputs/h200.bin", std::ios::binary);
  REQUIRE(file);
  const auto context = compile_only_context();
  auto device = open_emulator_device({});
  if (!device) FAIL(device.error().to_string());
  std::string name;
  std::size_t size = 0, cases = 0;
  for (; file >> name >> size; ++cases) {
    file.get();
    std::vector<std::uint8_t> expected(size);
    file.read(reinterpret_cast<char*>(expected.data()), static_cast<std::streamsize>(size));
    INFO(name);
    const KernelCase c = kernel_case(name);
    Capture capture;
    const Emulation run = emulate(**device, c, compiled_case(*context, c), {}, &capture);
    INFO(words(run.report));
    REQUIRE(capture.bytes.size() == size);
    std::size_t different = 0, first = size;
    for (std::size_t i = 0; i < size; ++i)
      if (capture.bytes[i] != expected[i] && different++ == 0) first = i;
    INFO("fidelity " << fidelity_name(run.report.fidelity) << "; " << different << " bytes differ, first at "
                     << first);
    if (run.report.fidelity == EmulatorFidelity::exact) CHECK(different == 0);
    if (different != 0)
      WARN(name << ": " << different << " of " << size << " bytes differ, fidelity "
                << fidelity_name(run.report.fidelity));
  }
  CHECK(cases == recorded_kernels().size());
}

// Every variant of the fast candidate, ragged in M, N and K: rings wrap more than twice, and on few SMs there
// are more tiles than CTAs.
TEST_CASE("the fast candidate is right on small shapes, on many SMs and on few") {
  const std::string data = PTXBENCH_SOURCE_DIR "/examples/data/";
  auto definition = load_definition(data + "definitions/gemm/gemm_small.json");
  REQUIRE(definition);
  auto workloads = load_workloads(*definition, data + "workloads/gemm/gemm_small.jsonl");
  REQUIRE(workloads);
  auto solution = load_solution(data + "candidates/4_fast", **definition);
  REQUIRE(solution);
  const auto context = compile_only_context();
  auto device = open_emulator_device({});
  if (!device) FAIL(device.error().to_string());
  for (const Workload& workload : *workloads) {
    KernelCase c{"4_fast", *solution, workload, {}};
    const Candidate candidate = compiled_case(*context, c);
    for (const int sms : {0, 8})
      for (const EmulatorSchedule& schedule :
           {EmulatorSchedule{}, EmulatorSchedule{EmulatorSchedule::Mode::lazy, 0},
            EmulatorSchedule{EmulatorSchedule::Mode::random, 5}}) {
        (*device)->set_sm_count(sms);
        const Emulation run = emulate(**device, c, candidate, schedule);
        INFO(to_json(workload) << ", " << sms << " SMs, " << schedule_name(schedule) << "\n"
                               << words(run.report));
        CHECK(run.verdict.status == Status::passed);
        for (const EmulatorFinding& f : run.report.findings) CHECK(f.grade == EmulatorFinding::Grade::note);
      }
  }
}
