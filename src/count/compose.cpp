// What counts mean: pure functions from a counter's records and the code to what the verdict says.
#include "compile/include_closure.hpp"
#include "count/bytes.hpp"
#include "count/flops.hpp"
#include "emulator/text.hpp"

#include <ptxbench/count.hpp>
#include <ptxbench/sass.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace ptxbench {
namespace {

constexpr std::uint32_t kInstructionBytes = 16;

std::uint64_t read64(const std::vector<std::uint8_t>& bytes, std::uint64_t at) {
  std::uint64_t value = 0;
  for (int i = 7; i >= 0; --i) value = value << 8 | bytes[at + static_cast<std::uint64_t>(i)];
  return value;
}

struct Sum {
  std::uint64_t warps = 0, threads = 0;
  bool timing = false;
  void add(const CountRecord& record, bool varies) {
    warps += record.warp_executions;
    threads += record.threads_predicated_on;
    timing = timing || varies;
  }
  std::string label() const { return timing ? "timing_dependent" : "counted"; }
};
struct Sums {
  std::map<std::tuple<std::string, std::string, std::string>, Sum> opcodes;  // by kernel, opcode, family
  std::map<std::pair<std::string, std::string>, Sum> families;               // by kernel, family
  std::map<std::tuple<std::string, std::string, std::string>, Sum> lines;    // by kernel, source, family
  FlopTally flops;
  ByteTally bytes;
  std::uint64_t waits = 0, multiplications = 0;  // of wgmma
  int sm = 0;
};

// What the analysis of a kernel's code says about the instructions that were executed.
struct CodeFacts {
  std::set<std::uint32_t> varying;
  std::map<std::uint32_t, sass::Tcgen05Mma> mmas;
  std::map<std::uint32_t, sass::BulkAccess> copies;
};

// Code that cannot be analysed has no facts; it is counted all the same.
CodeFacts facts_of(const std::vector<std::uint8_t>& file, const sass::Cubin& cubin,
                   const sass::Kernel& kernel) {
  CodeFacts facts;
  if (const auto varying = sass::varying_instructions(file, cubin, kernel))
    facts.varying.insert(varying->begin(), varying->end());
  if (const auto mmas = sass::tcgen05_mmas(file, cubin, kernel))
    for (const sass::Tcgen05Mma& mma : *mmas) facts.mmas[mma.pc_offset] = mma;
  if (const auto copies = sass::bulk_accesses(file, cubin, kernel))
    for (const sass::BulkAccess& copy : *copies) facts.copies[copy.pc_offset] = copy;
  return facts;
}

// FLOPs of one execution, by one thread for all; unknown where the shape or the number of executions is.
sass::Flops tcgen05_flops(const sass::Tcgen05Mma& mma, std::optional<std::uint64_t> executions) {
  sass::Flops flops{sass::FlopPipe::arch_mma, std::nullopt};
  if (!mma.shape || !executions) return flops;
  const std::uint32_t products = std::uint32_t{mma.shape->m} * mma.shape->n * mma.shape->k;
  flops.per_thread = mma.shape->sparse ? products : 2 * products;
  return flops;
}

bool is_wgmma_wait(std::string_view name) {  // not WARPGROUP.ARRIVE
  return name.starts_with("WARPGROUP.DEPBAR");
}

std::string name_of(const std::string& symbol, const KernelNames& names) {
  for (const auto& [known, name] : names)
    if (known == symbol && !name.empty()) return name;
  return symbol;
}

// "gemm.cu:120 (inlined at gemm.cu:88)"
std::string source_text(const sass::SourceLine& line) {
  const auto text = [](const sass::SourcePlace& place) {
    return (place.file.empty() ? "?" : user_path(place.file)) + ":" + std::to_string(place.line);
  };
  std::string out = text(line.places[0]);
  if (line.places.size() > 1) out += " (inlined at " + text(line.places[1]) + ")";
  return out;
}

Result<void> add_kernel(const KernelRecords& records, const std::vector<CompiledModule>& modules,
                        const std::vector<DriverCode>& driver_code, const std::vector<CountedMap>& maps,
                        const KernelNames& names, const CompileBlock& compile, Sums& sums) {
  if (records.module >= modules.size())
    return make_error(ErrorCode::invalid_argument, "records of module " + std::to_string(records.module) +
                                                       " of " + std::to_string(modules.size()));
  const auto assembled = std::find_if(driver_code.begin(), driver_code.end(),
                                      [&](const DriverCode& code) { return code.module == records.module; });
  const std::vector<std::uint8_t>& file =
      assembled != driver_code.end() ? assembled->cubin : modules[records.module].cubin;
  PTXBENCH_TRY_ASSIGN(const sass::Cubin cubin, sass::read_cubin(file));
  const auto kernel = std::find_if(cubin.kernels.begin(), cubin.kernels.end(),
                                   [&](const sass::Kernel& k) { return k.symbol == records.symbol; });
  if (kernel == cubin.kernels.end())
    return make_error(ErrorCode::not_found, modules[records.module].source + " has no kernel \"" +
                                                records.symbol + "\", which has records");
  const std::string name = name_of(records.symbol, names);
  sums.sm = cubin.sm;
  const CodeFacts facts = facts_of(file, cubin, *kernel);
  std::optional<bool> spills;
  for (const KernelResources& k : compile.kernels)
    if (k.symbol == records.symbol) spills = k.spill_store_bytes + k.spill_load_bytes != 0;
  // Code without them, or with some that cannot be read, is counted all the same.
  std::vector<sass::SourceLine> lines;
  if (Result<std::vector<sass::SourceLine>> table = sass::source_lines(file, *kernel))
    lines = std::move(*table);
  for (const CountRecord& record : records.records) {
    if (record.pc_offset % kInstructionBytes != 0 || kernel->code_bytes < kInstructionBytes ||
        record.pc_offset > kernel->code_bytes - kInstructionBytes || kernel->code_offset > file.size() ||
        kernel->code_bytes > file.size() - kernel->code_offset)
      return make_error(ErrorCode::invalid_argument,
                        "kernel \"" + records.symbol + "\" has a record at offset " +
                            std::to_string(record.pc_offset) + ", but its code of " +
                            std::to_string(kernel->code_bytes) + " bytes has no instruction there");
    const std::uint64_t at = kernel->code_offset + record.pc_offset;
    const sass::Word word{read64(file, at), read64(file, at + 8)};
    const sass::Opcode opcode = sass::decode(cubin.sm, word);
    const std::string operation = sass::operation_name(cubin.sm, word);
    const bool varies = facts.varying.count(record.pc_offset) != 0;
    sums.opcodes[{name, operation, opcode.family}].add(record, varies);
    sums.families[{name, opcode.family}].add(record, varies);
    if (const sass::SourceLine* line = sass::line_at(lines, record.pc_offset))
      sums.lines[{name, source_text(*line), opcode.family}].add(record, varies);
    if (opcode.family == "wgmma") sums.multiplications += record.warp_executions;
    if (is_wgmma_wait(operation)) sums.waits += record.warp_executions;
    if (opcode.family == "local" && opcode.mnemonic != "CCTLL")
      sums.bytes.add_local(name, sass::access_bytes(cubin.sm, word), record, spills);
    if (const auto copy = facts.copies.find(record.pc_offset); copy != facts.copies.end()) {
      std::optional<std::uint64_t> box;
      for (const CountedMap& map : maps)
        if (map.module == records.module && map.symbol == records.symbol &&
            copy->second.map_offset == map.offset)
          box = map.box_bytes;
      sums.bytes.add(opcode.mnemonic + " at " + emulator::hex(record.pc_offset) + " of " + name, copy->second,
                     record, box);
    }
    if (const auto mma = facts.mmas.find(record.pc_offset); mma != facts.mmas.end()) {
      const auto executions = uniform_executions(record, mma->second.guarded);
      sums.flops.add(name, opcode.mnemonic, tcgen05_flops(mma->second, executions), executions.value_or(0));
    } else {
      sums.flops.add(name, opcode.mnemonic, sass::flops_of(cubin.sm, word), record.threads_predicated_on);
    }
  }
  return {};
}

// Kernels in the order of their names, in each the most frequent first.
template <class Count>
bool before(const Count& a, const Count& b) {
  if (a.kernel != b.kernel) return a.kernel < b.kernel;
  return a.warp_instructions > b.warp_instructions;
}

void fill(const Sums& sums, CountsBlock& block) {
  for (const auto& [key, sum] : sums.opcodes)
    block.opcodes.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), sum.warps, sum.threads, sum.label()});
  for (const auto& [key, sum] : sums.families)
    block.families.push_back({key.first, key.second, sum.warps, sum.threads, sum.label()});
  for (const auto& [key, sum] : sums.lines)
    block.lines.push_back(
        {std::get<0>(key), std::get<1>(key), std::get<2>(key), sum.warps, sum.threads, sum.label()});
  std::stable_sort(block.lines.begin(), block.lines.end(), before<LineCount>);
  std::stable_sort(block.opcodes.begin(), block.opcodes.end(), before<OpcodeCount>);
  std::stable_sort(block.families.begin(), block.families.end(), before<FamilyCount>);
}

}  // namespace

void compose_counts(const CountEvidence& evidence, const std::vector<CompiledModule>& modules,
                    const KernelNames& names, Verdict& verdict, std::optional<double> task_flops,
                    std::optional<std::uint64_t> task_bytes) {
  for (const StageTime& stage : evidence.stages)
    verdict.provenance.stages.push_back({"count." + stage.stage, stage.duration_ns});
  for (const auto& version : evidence.versions) {
    auto& known = verdict.provenance.versions;
    const bool there =
        std::any_of(known.begin(), known.end(), [&](const auto& v) { return v.first == version.first; });
    if (!there) known.push_back(version);
  }
  if (evidence.as_verified)
    verdict.correctness.trials += 1;  // and a right one
  else if (evidence.trial && !evidence.trial->fault)
    add_trial(*evidence.trial, "in the run that was counted", verdict);

  CountsBlock& block = verdict.counts;
  block = {};
  block.method = evidence.method;
  const auto unavailable = [&](std::string reason) {
    block.state = Availability::unavailable;
    block.reason = std::move(reason);
  };
  if (evidence.unavailable) return unavailable(evidence.unavailable->reason);
  if (!evidence.trial || evidence.trial->fault) return unavailable("the counted run was not verified");
  Sums sums;
  for (const KernelRecords& kernel : evidence.kernels)
    if (const Result<void> added =
            add_kernel(kernel, modules, evidence.driver_code, evidence.maps, names, verdict.compile, sums);
        !added)
      return unavailable("the counter's records do not fit the code: " + added.error().to_string());
  if (sums.sm == 0 && !modules.empty())  // nothing was executed
    if (const Result<sass::Cubin> cubin = sass::read_cubin(modules[0].cubin)) sums.sm = cubin->sm;
  block.state = Availability::measured;
  fill(sums, block);
  sums.flops.fill(task_flops, block);
  sums.bytes.fill(task_bytes, block);
  if (sums.multiplications != 0)
    block.waits_per_mma = static_cast<double>(sums.waits) / static_cast<double>(sums.multiplications);
  judge_architecture(sums.sm, block);
}

}  // namespace ptxbench
