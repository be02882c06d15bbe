// What the card counts in machine code and what the emulator counts in PTX are the same where the instructions correspond.
#include "evaluate_case.hpp"
#include "support/kernel_cases.hpp"

#include <map>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// Instructions of PTX that are one of the machine's: by family, executions by warps. Without those whose number timing decides:
// setmaxnreg.inc asks for registers until they are free.
constexpr const char* kFamilies[] = {"wgmma",      "tma_load", "tma_multicast", "tma_store", "tma_reduce",
                                     "setmaxnreg", "ldmatrix", "stmatrix"};

std::map<std::string, std::uint64_t> by_family(const Verdict& verdict) {
  std::map<std::string, std::uint64_t> out;
  for (const FamilyCount& f : verdict.counts.families)
    if (f.label != "timing_dependent" && std::find_if(std::begin(kFamilies), std::end(kFamilies), [&](const char* k) { return f.family == k; }) !=
        std::end(kFamilies))
      out[f.family] += f.warp_instructions;
  return out;
}

std::string text_of(const std::map<std::string, std::uint64_t>& families) {
  std::string out;
  for (const auto& [family, warps] : families) out += family + " " + std::to_string(warps) + "; ";
  return out;
}

}  // namespace

TEST_CASE("gpu: counts of machine code agree with the emulator's of PTX") {
  if (!gpu_or_skip()) return;
  const auto gpu = gpu_context();
  ContextOptions emulated;
  emulated.worker_path = PTXBENCH_BINARY_DIR "/bin/ptxbench-worker";
  emulated.cache_dir = "";
  emulated.device = "emulator:h200";
  const auto emulator = Context::create(emulated).value();
  EvaluateOptions options;
  options.time = false;
  options.trials = 1;
  options.seed = 7;
  options.headers = KnowledgePack::load(PTXBENCH_SOURCE_DIR "/knowledge_packs/hopper").value()->headers();
  std::map<std::string, int> seen;
  int with_mma_sync = 0, with_bytes = 0;
  for (const std::string& name : kernel_case_names()) {
    INFO(name);
    const KernelCase c = kernel_case(name);
    const Verdict card = judge(*gpu, c.solution, c.workload, c.judging, options);
    const Verdict ptx = judge(*emulator, c.solution, c.workload, c.judging, options);
    INFO(card.counts.reason << ptx.counts.reason);
    REQUIRE(card.counts.state == Availability::measured);
    REQUIRE(ptx.counts.state == Availability::measured);
    REQUIRE(card.counts.method == "cupti_sass");
    REQUIRE(ptx.counts.method == "emulator");
    const auto a = by_family(card);
    auto b = by_family(ptx);
    if (a.count("setmaxnreg") == 0) b.erase("setmaxnreg");
    INFO("card: " << text_of(a) << "\nemulator: " << text_of(b));
    CHECK(a == b);
    for (const auto& [family, warps] : a) ++seen[family];
    // mma.sync and wmma may be several instructions, but their operations are the same.
    const FlopCount &machine = card.counts.flops.total, &text = ptx.counts.flops.total;
    CHECK(machine.arch_mma == text.arch_mma);
    CHECK(machine.mma_sync == text.mma_sync);
    // Bytes by TMA where the card's code shows its maps; the emulator knows what it copied. Both count the box, and TMA's fill.
    if (card.counts.tma_load_bytes) CHECK(card.counts.tma_load_bytes == ptx.counts.tma_load_bytes);
    if (card.counts.tma_load_bytes) ++with_bytes;
    if (machine.mma_sync && *machine.mma_sync > 0) ++with_mma_sync;
    CHECK(card.counts.architecture.published == ptx.counts.architecture.published);
  }
  WARN("kernels with each family: " << [&] {
    std::string out;
    for (const auto& [family, kernels] : seen) out += family + " " + std::to_string(kernels) + "; ";
    return out + "mma_sync " + std::to_string(with_mma_sync) + "; bytes known " + std::to_string(with_bytes);
  }());
  CHECK(seen["wgmma"] > 3);
  CHECK(seen["tma_load"] > 3);
  CHECK(seen["ldmatrix"] > 1);
  CHECK(with_mma_sync >= 3);
}
