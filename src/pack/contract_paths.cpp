#include "pack/contract_paths.hpp"

#include "core/json.hpp"
#include "trace/launched.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>

namespace ptxbench {
namespace {

ContractValue unknown(std::string reason) {
  ContractValue value;
  value.reason = std::move(reason);
  return value;
}
ContractValue integer(std::uint64_t number, std::string kernel = {}) {
  return {true, static_cast<double>(number), std::to_string(number), std::move(kernel), {}};
}
ContractValue real(double number) {
  if (!std::isfinite(number)) return unknown("the value is no finite number");
  return {true, number, json::format_double(number), {}, {}};
}
ContractValue word(std::string_view text) { return {true, 0, std::string(text), {}, {}}; }

// Why a block has no numbers; nothing where it has them.
std::optional<std::string> missing(const char* block, Availability state, const std::string& reason) {
  if (state == Availability::measured) return std::nullopt;
  std::string text = std::string(block) + ": " + std::string(availability_name(state));
  if (!reason.empty()) text += ", " + reason;
  return text;
}

// ---- the whole verdict ---------------------------------------------------------------------------

constexpr std::array<std::string_view, 7> kStatusWords{
    "PASSED",        "INCORRECT_SHAPE", "INCORRECT_NUMERICAL", "INCORRECT_DTYPE", "RUNTIME_ERROR",
    "COMPILE_ERROR", "TIMEOUT"};
constexpr std::array<std::string_view, 2> kIntegrityWords{"clean", "violated"};

ContractValue status(const Verdict& v, std::string_view) {
  if (!v.status)
    return unknown("not judged" + (v.outcome_reason.empty() ? std::string() : ": " + v.outcome_reason));
  return word(status_name(*v.status));
}
ContractValue integrity(const Verdict& v, std::string_view) {
  // Nobody has looked before something has run.
  if (v.correctness.trials == 0 && v.integrity == Integrity::clean)
    return unknown("nothing was run to its end");
  return word(kIntegrityWords[v.integrity == Integrity::clean ? 0 : 1]);
}

// ---- timing ------------------------------------------------------------------------------------

template <class Get>
ContractValue timed(const Verdict& v, Get get) {
  if (auto reason = missing("timing", v.timing.state, v.timing.reason)) return unknown(std::move(*reason));
  return get(v.timing);
}
ContractValue speedup(const Verdict& v, std::string_view) {
  return timed(
      v, [](const TimingBlock& t) { return t.speedup ? real(*t.speedup) : unknown("there is no baseline"); });
}
ContractValue speedup_low(const Verdict& v, std::string_view) {
  return timed(v, [](const TimingBlock& t) {
    if (!t.speedup) return unknown("there is no baseline");
    return std::isfinite(t.speedup_low) ? real(t.speedup_low) : unknown("the speedup has no interval");
  });
}
ContractValue median_ns(const Verdict& v, std::string_view) {
  return timed(v, [](const TimingBlock& t) { return integer(t.median_ns); });
}
ContractValue roofline_share(const Verdict& v, std::string_view) {
  return timed(v, [](const TimingBlock& t) {
    if (!t.roofline_ns) return unknown("no roofline is known");
    if (t.median_ns == 0) return unknown("the median is 0 ns");
    return real(static_cast<double>(*t.roofline_ns) / static_cast<double>(t.median_ns));
  });
}

// ---- the compiled code -----------------------------------------------------------------------------

// Why it is not known what the assembler said about every kernel that is launched.
std::optional<std::string> unassembled(const Verdict& v) {
  const CompileBlock& block = v.compile;
  if (auto reason = missing("compile", block.state, block.reason)) return reason;
  if (!block.ok) return "the candidate does not compile";
  if (v.find_finding("ptx_not_assembled") != nullptr)
    return "the driver assembles the PTX when it is loaded, and tells nothing about it";
  for (const StaticFamily& f : block.static_families) {
    const bool told = std::any_of(block.kernels.begin(), block.kernels.end(), [&](const KernelResources& k) {
      return k.kernel == f.kernel || k.symbol == f.kernel;
    });
    if (!told)
      return "the machine code of " + f.kernel + " came ready made, so no assembler has told about it";
  }
  if (block.kernels.empty()) return "the assembler has told about no kernel";
  return std::nullopt;
}

// The worst of the launched kernels: the largest of what `get` gives.
template <class Get>
ContractValue largest(const Verdict& v, Get get) {
  if (auto reason = unassembled(v)) return unknown(std::move(*reason));
  ContractValue worst = unknown("no kernel is launched");
  for (const KernelResources& k : v.compile.kernels) {
    if (!launched(v.compile, k.kernel)) continue;
    const std::uint64_t value = get(k);
    if (!worst.known || static_cast<double>(value) > worst.number) worst = integer(value, k.kernel);
  }
  return worst;
}
ContractValue registers(const Verdict& v, std::string_view) {
  return largest(
      v, [](const KernelResources& k) { return static_cast<std::uint64_t>(std::max(k.registers, 0)); });
}
ContractValue shared_bytes(const Verdict& v, std::string_view) {
  return largest(v, [](const KernelResources& k) { return k.static_shared_bytes + k.dynamic_shared_bytes; });
}
ContractValue stack_bytes(const Verdict& v, std::string_view) {
  return largest(v, [](const KernelResources& k) { return k.stack_bytes; });
}
ContractValue spills(const Verdict& v, std::string_view) {
  return largest(v, [](const KernelResources& k) { return k.spill_store_bytes + k.spill_load_bytes; });
}

ContractValue occupancy(const Verdict& v, std::string_view) {
  if (auto reason = missing("compile", v.compile.state, v.compile.reason)) return unknown(std::move(*reason));
  ContractValue worst = unknown("the occupancy of no launched kernel is known");
  for (const KernelResources& k : v.compile.kernels) {
    if (!k.occupancy_ctas_per_sm) continue;
    const auto ctas = static_cast<std::uint64_t>(std::max(*k.occupancy_ctas_per_sm, 0));
    if (!worst.known || static_cast<double>(ctas) < worst.number) worst = integer(ctas, k.kernel);
  }
  return worst;
}

// How often the assembler said something: findings of this code and severity.
ContractValue remarks(const Verdict& v, std::string_view code, Severity severity) {
  if (auto reason = unassembled(v)) return unknown(std::move(*reason));
  return integer(
      static_cast<std::uint64_t>(std::count_if(v.findings.begin(), v.findings.end(), [&](const Finding& f) {
        return f.code == code && f.severity == severity;
      })));
}
ContractValue wgmma_serialized(const Verdict& v, std::string_view) {
  return remarks(v, "wgmma_serialized", Severity::warning);
}
ContractValue wgmma_injected(const Verdict& v, std::string_view) {
  return remarks(v, "wgmma_serialized", Severity::note);
}
ContractValue setmaxnreg_ignored(const Verdict& v, std::string_view) {
  return remarks(v, "setmaxnreg_ignored", Severity::warning);
}

ContractValue code_instructions(const Verdict& v, std::string_view family) {
  if (auto reason = missing("compile", v.compile.state, v.compile.reason)) return unknown(std::move(*reason));
  if (!v.compile.ok) return unknown("the candidate does not compile");
  // Every kernel has an EXIT: no families means that no machine code was read.
  if (v.find_finding("ptx_not_assembled") != nullptr || v.compile.static_families.empty())
    return unknown("there is no machine code to look into");
  std::uint64_t sum = 0;
  for (const StaticFamily& f : v.compile.static_families)
    if (f.family == family && launched(v.compile, f.kernel)) sum += f.instructions;
  return integer(sum);
}

// ---- executed instructions -------------------------------------------------------------------------

struct FamilySum {
  std::uint64_t warps = 0, threads = 0;
  bool no_machine_code = false;  // some of it stands for nothing in machine code
};
FamilySum sum_of(const CountsBlock& block, std::string_view family) {
  FamilySum sum;
  for (const FamilyCount& f : block.families) {
    if (f.family != family) continue;
    sum.warps += f.warp_instructions;
    sum.threads += f.thread_instructions;
    sum.no_machine_code = sum.no_machine_code || f.label == "ptx_only";
  }
  return sum;
}
template <class Get>
ContractValue counted(const Verdict& v, Get get) {
  if (auto reason = missing("counts", v.counts.state, v.counts.reason)) return unknown(std::move(*reason));
  return get(v.counts);
}
template <class Get>
ContractValue family_sum(const Verdict& v, std::string_view family, Get get) {
  return counted(v, [&](const CountsBlock& block) {
    const FamilySum sum = sum_of(block, family);
    if (sum.no_machine_code)
      return unknown("the emulator counted PTX of this family that machine code does not have");
    return integer(get(sum));
  });
}
ContractValue family_warps(const Verdict& v, std::string_view family) {
  return family_sum(v, family, [](const FamilySum& s) { return s.warps; });
}
ContractValue family_threads(const Verdict& v, std::string_view family) {
  return family_sum(v, family, [](const FamilySum& s) { return s.threads; });
}
ContractValue family_share(const Verdict& v, std::string_view family) {
  return counted(v, [&](const CountsBlock& block) {
    if (block.method == "emulator")
      return unknown("the emulator counts PTX; of the machine code's instructions it knows no share");
    std::uint64_t all = 0;
    for (const FamilyCount& f : block.families) all += f.warp_instructions;
    if (all == 0) return unknown("no instruction was executed");
    return real(static_cast<double>(sum_of(block, family).warps) / static_cast<double>(all));
  });
}
ContractValue tma_loads(const Verdict& v, std::string_view) {
  return counted(v, [](const CountsBlock& block) {
    return integer(sum_of(block, "tma_load").warps + sum_of(block, "tma_multicast").warps);
  });
}
template <class Member>
ContractValue bytes(const Verdict& v, Member member, std::string BytesBlock::*reason) {
  return counted(v, [&](const CountsBlock& block) {
    if (block.*member) return integer(*(block.*member));
    return unknown((block.bytes.*reason).empty() ? "these bytes were not counted" : block.bytes.*reason);
  });
}
ContractValue tma_load_bytes(const Verdict& v, std::string_view) {
  return bytes(v, &CountsBlock::tma_load_bytes, &BytesBlock::tma_reason);
}
ContractValue tma_store_bytes(const Verdict& v, std::string_view) {
  return bytes(v, &CountsBlock::tma_store_bytes, &BytesBlock::tma_reason);
}
ContractValue bulk_copy_bytes(const Verdict& v, std::string_view) {
  return bytes(v, &CountsBlock::bulk_copy_bytes, &BytesBlock::bulk_copy_reason);
}

ContractValue spill_bytes(const Verdict& v, std::string_view) {
  return counted(v, [](const CountsBlock& block) {
    if (block.bytes.spill) return integer(*block.bytes.spill);
    return unknown(block.bytes.spill_reason.empty() ? "spills were not counted" : block.bytes.spill_reason);
  });
}

constexpr const char* kNoFlops = "FLOPs were not counted";
ContractValue or_reason(const std::optional<double>& value, const std::string& reason,
                        const char* otherwise) {
  return value ? real(*value) : unknown(reason.empty() ? otherwise : reason);
}
ContractValue tma_ratio(const Verdict& v, std::string_view) {
  return counted(v, [](const CountsBlock& block) {
    return or_reason(block.bytes.tma_ratio, block.bytes.tma_ratio_reason, "bytes were not counted");
  });
}
ContractValue waits_per_mma(const Verdict& v, std::string_view) {
  return counted(v, [](const CountsBlock& block) {
    return or_reason(block.waits_per_mma, {}, "no wgmma was executed");
  });
}
ContractValue arch_flops_share(const Verdict& v, std::string_view) {
  return counted(v, [](const CountsBlock& block) {
    return or_reason(block.flops.total.arch_flops_share, block.flops.arch_flops_share_reason, kNoFlops);
  });
}
ContractValue mma_work_ratio(const Verdict& v, std::string_view) {
  return counted(v, [](const CountsBlock& block) {
    return or_reason(block.flops.mma_work_ratio, block.flops.mma_work_ratio_reason, kNoFlops);
  });
}
ContractValue family_flops_share(const Verdict& v, std::string_view family) {
  return counted(v, [&](const CountsBlock& block) {
    const FlopCount& total = block.flops.total;
    // Where the share of the architecture's own is known, all parts of the sum are, and the sum is not zero.
    if (!total.arch_flops_share || !total.arch_mma || !total.mma_sync)
      return or_reason({}, block.flops.arch_flops_share_reason, kNoFlops);
    const double all = static_cast<double>(*total.arch_mma) + static_cast<double>(*total.mma_sync) +
                       static_cast<double>(total.fp32) + static_cast<double>(total.fp64) +
                       static_cast<double>(total.half);
    const auto share = [&](std::uint64_t part) { return real(static_cast<double>(part) / all); };
    const bool hopper = v.compile.arch.starts_with("sm_9"), blackwell = v.compile.arch.starts_with("sm_10");
    if ((family == "wgmma" && hopper) || (family == "tcgen05_mma" && blackwell))
      return real(*total.arch_flops_share);
    if (family == "mma_sync") return share(*total.mma_sync);
    if (family == "fp32") return share(total.fp32);
    if (family == "fp64") return share(total.fp64);
    if (family == "half") return share(total.half);
    return unknown("FLOPs of " + std::string(family) + " are not counted on " +
                   (v.compile.arch.empty() ? "an unknown architecture" : v.compile.arch));
  });
}

constexpr std::array<std::string_view, 2> kBooleanWords{"true", "false"};
ContractValue architecture(const Verdict& v, std::optional<bool> ArchitectureVerdict::*definition) {
  return counted(v, [&](const CountsBlock& block) {
    const std::optional<bool> is = block.architecture.*definition;
    if (is) return word(kBooleanWords[*is ? 0 : 1]);
    return unknown(block.architecture.reason.empty() ? "it is not known" : block.architecture.reason);
  });
}
ContractValue architecture_published(const Verdict& v, std::string_view) {
  return architecture(v, &ArchitectureVerdict::published);
}
ContractValue architecture_strict(const Verdict& v, std::string_view) {
  return architecture(v, &ArchitectureVerdict::strict);
}

// ---- the table ---------------------------------------------------------------------------------

constexpr std::span<const std::string_view> kNumber;

// A value that is added needs a row here and one in docs/packs.md.
constexpr ContractPathRow kRows[] = {
    {{"status", "word", "The status of the workload", "status"}, kStatusWords, status},
    {{"integrity", "word", "Whether the candidate kept to its own memory and did the work", "integrity"},
     kIntegrityWords,
     integrity},
    {{"speedup", "1", "The baseline's time divided by the candidate's", "timing.speedup"}, kNumber, speedup},
    {{"speedup_low", "1", "The lower end of its 95% interval", "timing.speedup_low"}, kNumber, speedup_low},
    {{"median_ns", "ns", "The candidate's time", "timing.median_ns"}, kNumber, median_ns},
    {{"roofline_share", "1", "The least time that the work can take, divided by the candidate's time",
      "timing.roofline_ns / timing.median_ns"},
     kNumber,
     roofline_share},
    {{"registers", "1", "Registers of a thread; the launched kernel that has most",
      "compile.kernels.registers"},
     kNumber,
     registers},
    {{"shared_bytes", "bytes", "Shared memory of a CTA; the launched kernel that has most",
      "compile.kernels.static_shared_bytes + dynamic_shared_bytes"},
     kNumber,
     shared_bytes},
    {{"stack_bytes", "bytes", "Stack of a thread; the launched kernel that has most",
      "compile.kernels.stack_bytes"},
     kNumber,
     stack_bytes},
    {{"spills", "bytes",
      "Spilled registers of a thread, stored and loaded; the launched kernel that has most",
      "compile.kernels.spill_store_bytes + spill_load_bytes"},
     kNumber,
     spills},
    {{"occupancy.ctas_per_sm", "1", "CTAs that fit on an SM; the launched kernel that has fewest",
      "compile.kernels.occupancy_ctas_per_sm"},
     kNumber,
     occupancy},
    {{"wgmma.serialized", "1", "Remarks of ptxas that it serialises wgmma (C7509 to C7519)",
      "findings wgmma_serialized, the warnings"},
     kNumber,
     wgmma_serialized},
    {{"wgmma.injected", "1", "Remarks of ptxas that it adds a wait or an arrive to wgmma",
      "findings wgmma_serialized, the notes"},
     kNumber,
     wgmma_injected},
    {{"setmaxnreg.ignored", "1", "Kernels in which ptxas dropped setmaxnreg", "findings setmaxnreg_ignored"},
     kNumber,
     setmaxnreg_ignored},
    {{"code.<family>.instructions", "1",
      "Instructions of the family in the launched kernels' code, not executions",
      "compile.static_families.instructions"},
     kNumber,
     code_instructions},
    {{"families.<family>.warps", "1", "Executions of the family's instructions by warps",
      "counts.families.warp_instructions"},
     kNumber,
     family_warps},
    {{"families.<family>.threads", "1", "Executions by threads whose predicate was on",
      "counts.families.thread_instructions"},
     kNumber,
     family_threads},
    {{"families.<family>.share", "1", "The family's part of all executions by warps; on a GPU only",
      "counts.families.warp_instructions"},
     kNumber,
     family_share},
    {{"families.<family>.flops_share", "1",
      "The part of the executed FLOPs that ran on the family: the architecture's own mma, mma_sync, fp32, "
      "fp64, half",
      "counts.flops.total"},
     kNumber,
     family_flops_share},
    {{"arch_flops_share", "1", "The part of the executed FLOPs that ran on the architecture's own mma",
      "counts.flops.total.arch_flops_share"},
     kNumber,
     arch_flops_share},
    {{"mma_work_ratio", "1",
      "FLOPs of matrix instructions over those that the task needs; above 1 where work is done twice",
      "counts.flops.mma_work_ratio"},
     kNumber,
     mma_work_ratio},
    {{"architecture.published", "word", "Whether any wgmma or TMA copy was executed (on 10.x: any tcgen05)",
      "counts.architecture.published"},
     kBooleanWords,
     architecture_published},
    {{"architecture.strict", "word", "Whether arch_flops_share and mma_work_ratio are both at least 0.9",
      "counts.architecture.strict"},
     kBooleanWords,
     architecture_strict},
    {{"tma.loads", "1", "Executions of TMA loads by warps, to one CTA or to several",
      "counts.families tma_load + tma_multicast"},
     kNumber,
     tma_loads},
    {{"tma.load_bytes", "bytes", "Moved to shared memory by tensor copies", "counts.tma_load_bytes"},
     kNumber,
     tma_load_bytes},
    {{"tma.store_bytes", "bytes", "Moved from shared memory by tensor copies", "counts.tma_store_bytes"},
     kNumber,
     tma_store_bytes},
    {{"bulk_copy.bytes", "bytes", "Moved by bulk copies", "counts.bulk_copy_bytes"},
     kNumber,
     bulk_copy_bytes},
    {{"tma.ratio", "1", "What tensor copies moved both ways over what the task needs moved once",
      "counts.bytes.tma_ratio"},
     kNumber,
     tma_ratio},
    {{"spill_bytes", "bytes", "Moved to and from local memory by kernels that spill registers",
      "counts.bytes.spill"},
     kNumber,
     spill_bytes},
    {{"waits_per_mma", "1", "Waits for wgmma groups over wgmma, both by executions", "counts.waits_per_mma"},
     kNumber,
     waits_per_mma},
};

constexpr auto kPaths = [] {
  std::array<ContractPath, std::size(kRows)> paths{};
  for (std::size_t i = 0; i < paths.size(); ++i) paths[i] = kRows[i].path;
  return paths;
}();

}  // namespace

std::span<const ContractPathRow> contract_path_rows() noexcept { return kRows; }
std::span<const ContractPath> contract_paths() noexcept { return kPaths; }

}  // namespace ptxbench
