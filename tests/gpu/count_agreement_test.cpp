// What the card counts in machine code and what the emulator counts in PTX are the same where the instructions correspond.
#include "evaluate_case.hpp"
#include "support/kernel_cases.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// Instructions of PTX that are one of the machine's: by family, and for mbarriers by operation, executions by warps.
constexpr std::string_view kFamilies[] = {"wgmma",      "tma_load", "tma_multicast", "tma_store", "tma_reduce",
                                     "setmaxnreg", "ldmatrix", "stmatrix"};

using Warps = std::map<std::string, std::uint64_t>;

// The operation of an mbarrier: SYNCS.EXCH.64 is mbarrier.init, SYNCS.ARRIVE.TRANS64.A1T0 mbarrier.arrive. A wait has none: how
// often it asks is the machine's affair.
std::optional<std::string> mbarrier_operation(const OpcodeCount& count) {
  const auto is = [&](std::string_view prefix) { return count.opcode.compare(0, prefix.size(), prefix) == 0; };
  if (is("SYNCS.EXCH.") || is("mbarrier.init.")) return "mbarrier.init";
  if (is("SYNCS.ARRIVE.") || is("mbarrier.arrive.") || is("mbarrier.expect_tx.")) return "mbarrier.arrive";
  return std::nullopt;
}

// Without those of which timing decides a part: setmaxnreg.inc asks for registers until they are free.
Warps corresponding(const Verdict& verdict) {
  Warps out;
  std::set<std::string> varies;
  const auto add = [&](const std::string& what, const auto& count) {
    out[what] += count.warp_instructions;
    if (count.label == "timing_dependent") varies.insert(what);
  };
  for (const FamilyCount& f : verdict.counts.families)
    if (std::find(std::begin(kFamilies), std::end(kFamilies), f.family) != std::end(kFamilies)) add(f.family, f);
  for (const OpcodeCount& o : verdict.counts.opcodes)
    if (const auto operation = mbarrier_operation(o)) add(*operation, o);
  for (const std::string& what : varies) out.erase(what);
  return out;
}

std::string text_of(const Warps& families) {
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
    Warps a = corresponding(card), b = corresponding(ptx);
    for (const char* what : {"setmaxnreg", "mbarrier.arrive"})
      if (a.count(what) == 0 || b.count(what) == 0) a.erase(what), b.erase(what);
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
  CHECK(seen["mbarrier.init"] > 3);
  CHECK(seen["mbarrier.arrive"] > 3);
  CHECK(with_mma_sync >= 3);
}
