// Counts of an emulator: PTX instructions, added up by what a verdict lists.
#include "count/bytes.hpp"
#include "count/flops.hpp"

#include <ptxbench/count.hpp>

#include <algorithm>
#include <map>
#include <tuple>

namespace ptxbench {
namespace {

constexpr int kEmulatedCapability = 90;  // of every profile

// Forms that have no machine instruction of their own: a move is renamed away, generic addresses of this GPU's windows are
// plain numbers, parameters are read from the constant bank by whoever uses them.
bool ptx_only(const EmulatedInstruction& instruction) {
  if (instruction.family == "other") return false;  // special registers are read by an instruction of their own
  const std::string_view text = instruction.text;
  for (const std::string_view start : {"mov.", "cvta.", "ld.param", "st.param", "call", "ret"})
    if (text.substr(0, start.size()) == start) return true;
  return false;
}

struct Sum {
  std::uint64_t warps = 0, threads = 0;
  bool timing = false, only = true;
  void add(const EmulatedInstruction& i) {
    warps += i.warps;
    threads += i.threads;
    timing = timing || i.timing_dependent;
    only = only && ptx_only(i);
  }
  std::string label() const { return only ? "ptx_only" : timing ? "timing_dependent" : "exact"; }
};

template <class Count>
bool before(const Count& a, const Count& b) {
  if (a.kernel != b.kernel) return a.kernel < b.kernel;
  return a.warp_instructions > b.warp_instructions;
}

}  // namespace

void compose_emulated_counts(const EmulatorReport& report, const KernelNames& names, Verdict& verdict,
                             std::optional<double> task_flops, std::optional<std::uint64_t> task_bytes) {
  const auto name_of = [&](const std::string& symbol) {
    for (const auto& [known, name] : names)
      if (known == symbol && !name.empty()) return name;
    return symbol;
  };
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, Sum> opcodes, lines;                         // kernel, opcode or source, family
  std::map<std::pair<std::string, std::string>, Sum> families;
  FlopTally flops;
  std::uint64_t waits = 0, multiplications = 0;
  for (const EmulatedInstruction& i : report.instructions) {
    const std::string kernel = name_of(i.kernel);
    opcodes[{kernel, i.text, i.family}].add(i);
    families[{kernel, i.family}].add(i);
    if (i.family == "wgmma") multiplications += i.warps;
    if (std::string_view(i.text).substr(0, 16) == "wgmma.wait_group") waits += i.warps;
    flops.add(kernel, i.text, flops_of_ptx(i.text, i.family), i.threads);
    lines[{kernel, i.source.empty() ? "ptx:" + std::to_string(i.ptx_line) : i.source, i.family}].add(i);
  }
  CountsBlock& block = verdict.counts;
  block = {};
  block.method = "emulator";
  block.state = Availability::measured;
  for (const auto& [key, sum] : opcodes)
    block.opcodes.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), sum.warps, sum.threads, sum.label()});
  for (const auto& [key, sum] : families)
    block.families.push_back({key.first, key.second, sum.warps, sum.threads, sum.label()});
  for (const auto& [key, sum] : lines)
    block.lines.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), sum.warps, sum.threads, sum.label()});
  std::stable_sort(block.opcodes.begin(), block.opcodes.end(), before<OpcodeCount>);
  std::stable_sort(block.families.begin(), block.families.end(), before<FamilyCount>);
  std::stable_sort(block.lines.begin(), block.lines.end(), before<LineCount>);
  block.tma_load_bytes = report.tma_load_bytes;
  block.tma_store_bytes = report.tma_store_bytes;
  block.bulk_copy_bytes = report.bulk_copy_bytes;
  block.bytes.spill_reason = "the emulator runs PTX, whose registers the assembler has yet to allocate";
  fill_byte_ratio(task_bytes, block);
  if (multiplications != 0) block.waits_per_mma = static_cast<double>(waits) / static_cast<double>(multiplications);
  flops.fill(task_flops, block);
  judge_architecture(kEmulatedCapability, block);
}

}  // namespace ptxbench
