// How fast the emulator runs whole kernels: PTXBENCH_THREADS=2 PTXBENCH_REPEATS=5 emulator_benchmark.
// Compiling, inputs and judging are not counted, only the runs of the grid; the smallest of the repeats is
// the figure. Each repeat runs with the detector of races in shared memory, as by default, and without it,
// one behind the other, so that a busy machine does the same to both. Asserts no time.
#include "emulator/device.hpp"
#include "support/kernel_emulation.hpp"

#include <chrono>
#include <cstdio>
#include <cstdlib>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

struct Figure {
  double seconds = 1e9, without_races = 1e9;
  EmulatorReport report;
};

// The plan's run, as the judge makes it, `repeats` times.
Figure measure(Context& context, EmulatedDevice& device, const KernelCase& c, int repeats) {
  const Candidate candidate = compiled_case(context, c);
  Figure figure;
  for (int i = 0; i < 2 * repeats; ++i) {
    // Which of the two is first changes from repeat to repeat.
    const bool races = i % 4 == 0 || i % 4 == 3;
    static_cast<emulator::Emulator&>(device).find_races(races);
    const Emulation run = emulate(device, c, candidate, {});
    INFO(c.name << ": " << words(run.report));
    REQUIRE(run.verdict.status == Status::passed);
    double& least = races ? figure.seconds : figure.without_races;
    for (const StageTime& stage : run.evidence.stages)
      if (stage.stage == "run") least = std::min(least, static_cast<double>(stage.duration_ns) * 1e-9);
    figure.report = run.report;
  }
  return figure;
}

void show(const char* what, const Figure& f, double bar) {
  std::uint64_t warps = 0, threads = 0;
  for (const EmulatedInstruction& i : f.report.instructions) warps += i.warps, threads += i.threads;
  std::printf(
      "%-58s %8.4f s (bar %.2f), %.2f times the %.4f s without races  %9llu warp instructions, %6.1f ns "
      "each, %7.1f M thread instructions/s\n",
      what, f.seconds, bar, f.seconds / f.without_races, f.without_races,
      static_cast<unsigned long long>(warps), f.seconds * 1e9 / static_cast<double>(warps),
      static_cast<double>(threads) / f.seconds * 1e-6);
}

KernelCase resized(KernelCase c, std::vector<std::pair<std::string, std::int64_t>> axes) {
  c.workload.axes = std::move(axes);
  auto workload = make_workload(c.workload);
  if (!workload) FAIL(workload.error().to_string());
  c.workload = *workload;
  return c;
}

int number_of(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

}  // namespace

TEST_CASE("speed of the emulator") {
  EmulatorOptions options;
  options.threads = static_cast<std::uint32_t>(number_of("PTXBENCH_THREADS", 2));
  const int repeats = number_of("PTXBENCH_REPEATS", 5);
  auto device = open_emulator_device(options);
  if (!device) FAIL(device.error().to_string());
  const auto context = compile_only_context();

  KernelCase fast = resized(kernel_case("gemm_naive"), {{"M", 512}, {"N", 512}, {"K", 512}});
  const KernelCase naive = fast;
  fast.name = "4_fast";
  fast.solution =
      load_solution(PTXBENCH_SOURCE_DIR "/examples/data/candidates/4_fast", *fast.workload.definition)
          .value();
  show("GEMM 512^3, warp-specialised TMA and wgmma", measure(*context, **device, fast, repeats), 0.15);
  show("attention forward B=1 H=2 S=512 D=128, mma.sync",
       measure(*context, **device,
               resized(kernel_case("attention_mma"), {{"B", 1}, {"H", 2}, {"S", 512}, {"D", 128}}), repeats),
       0.3);
  show("attention forward B=1 H=2 S=512 D=128, TMA and wgmma",
       measure(*context, **device, kernel_case("attention_wgmma_128"), repeats), 0.3);
  show("scalar: GEMM 128^3, a thread an element",
       measure(*context, **device, resized(naive, {{"M", 128}, {"N", 128}, {"K", 128}}), repeats), 0);
  show("scalar: GEMM 256^3 through shared memory",
       measure(*context, **device,
               resized(kernel_case("gemm_shared_tile"), {{"M", 256}, {"N", 256}, {"K", 256}}), repeats),
       0);
}
