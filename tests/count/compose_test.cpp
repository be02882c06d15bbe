// From records to the verdict's counts.
#include "support/catch.hpp"
#include "support/count_case.hpp"

#include <map>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

std::vector<CompiledModule> modules_of(const std::string& fixture) {
  CompiledModule module;
  module.source = fixture + ".cubin";
  module.cubin = cubin_fixture(fixture);
  return {module};
}

TrialEvidence right_trial(bool ok = true) {
  TrialEvidence trial;
  trial.distribution = "gaussian";
  OutputEvidence output;
  output.output = "o";
  output.dtype = DType::int32;
  output.shape = {4};
  output.comparator = ComparatorKind::callback;
  OutputCorrectness said;
  said.ok = ok;
  said.elements_wrong = ok ? 0 : 3;
  output.callback = said;
  trial.outputs = {output};
  return trial;
}

CountEvidence counted(const std::string& symbol, std::vector<CountRecord> records) {
  CountEvidence evidence;
  evidence.method = "cupti_sass";
  evidence.trial = right_trial();
  evidence.kernels = {{0, symbol, 7, std::move(records)}};
  evidence.versions = {{"cupti", "API 130001, chip GH100"}};
  evidence.stages = {{"run", 5}};
  return evidence;
}

Verdict passed() {
  Verdict verdict;
  verdict.outcome = Outcome::judged;
  verdict.status = Status::passed;
  verdict.correctness.state = Availability::measured;
  verdict.correctness.trials = 3;
  OutputCorrectness output;
  output.output = "o";
  output.ok = true;
  verdict.correctness.outputs = {output};
  return verdict;
}

// Every instruction of the kernel, executed by `warps` warps.
std::vector<CountRecord> all_of(const std::vector<std::uint8_t>& file, const std::string& symbol,
                                std::uint64_t warps) {
  const sass::Kernel kernel = kernel_of(sass::read_cubin(file).value(), symbol);
  std::vector<CountRecord> records;
  for (std::uint32_t pc = 0; pc < kernel.code_bytes; pc += 16) records.push_back({pc, warps, 32 * warps});
  return records;
}

}  // namespace

TEST_CASE("counts: every instruction once is the census, times the warps") {
  for (const std::string fixture : {"async.sm_90a", "async.sm_100a", "module.sm_90a"}) {
    const auto modules = modules_of(fixture);
    const sass::Cubin cubin = sass::read_cubin(modules[0].cubin).value();
    for (const sass::Kernel& kernel : cubin.kernels) {
      Verdict verdict = passed();
      compose_counts(counted(kernel.symbol, all_of(modules[0].cubin, kernel.symbol, 12)), modules,
                     {{kernel.symbol, "named"}}, verdict);
      INFO(fixture << " " << kernel.symbol << " " << verdict.counts.reason);
      REQUIRE(verdict.counts.state == Availability::measured);
      CHECK(verdict.status == Status::passed);
      std::map<std::pair<std::string, std::string>, std::uint64_t> census;
      const auto entries = sass::census(modules[0].cubin, cubin, kernel);
      for (const sass::CensusEntry& entry : *entries)
        census[{entry.opcode, entry.family}] += entry.instructions;
      // The census is by mnemonic, the counts by the whole name.
      std::map<std::pair<std::string, std::string>, std::uint64_t> mnemonics;
      std::map<std::string, std::uint64_t> families;
      for (const OpcodeCount& opcode : verdict.counts.opcodes) {
        CHECK(opcode.kernel == "named");
        mnemonics[{opcode.opcode.substr(0, opcode.opcode.find('.')), opcode.family}] += opcode.warp_instructions;
        CHECK(opcode.thread_instructions == 32 * opcode.warp_instructions);
        families[opcode.family] += opcode.warp_instructions;
      }
      for (auto& [mnemonic, instructions] : census) instructions *= 12;
      CHECK(mnemonics == census);
      CHECK(verdict.counts.families.size() == families.size());
      for (const FamilyCount& family : verdict.counts.families)
        CHECK(family.warp_instructions == families[family.family]);
    }
  }
}

TEST_CASE("counts: what was counted, where, and with what is in the verdict") {
  const auto modules = modules_of("async.sm_90a");
  const std::vector<std::string> opcodes = straight_line(modules[0].cubin, "k_elect");
  REQUIRE(std::find(opcodes.begin(), opcodes.end(), "EXIT") != opcodes.end());
  std::vector<CountRecord> records;
  for (std::uint32_t i = 0; i < opcodes.size(); ++i) records.push_back({16 * i, 4, i == 0 ? 100u : 128u});
  Verdict verdict = passed();
  compose_counts(counted("k_elect", records), modules, {}, verdict);
  REQUIRE(verdict.counts.state == Availability::measured);
  CHECK(verdict.counts.method == "cupti_sass");
  CHECK(verdict.counts.reason.empty());
  CHECK(verdict.correctness.trials == 4);
  CHECK(verdict.correctness.trials_failed == 0);
  REQUIRE(verdict.provenance.versions.size() == 1);
  CHECK(verdict.provenance.versions[0].first == "cupti");
  REQUIRE(verdict.provenance.stages.size() == 1);
  CHECK(verdict.provenance.stages[0].stage == "count.run");
  std::uint64_t warps = 0, threads = 0;
  bool elect = false;
  for (const OpcodeCount& count : verdict.counts.opcodes) {
    CHECK(count.kernel == "k_elect");  // no name: the symbol
    warps += count.warp_instructions;
    threads += count.thread_instructions;
    elect = elect || count.family == "elect";
  }
  CHECK(warps == 4 * opcodes.size());
  CHECK(threads == 128 * opcodes.size() - 28);
  CHECK(elect);
  // The record survives its JSON form.
  verdict.workload_uuid = "w";
  const auto again = parse_verdict(to_json(verdict));
  REQUIRE(again);
  CHECK(again->counts.opcodes.size() == verdict.counts.opcodes.size());
}

TEST_CASE("counts: an operation that is not in the table is kept by its number") {
  auto modules = modules_of("async.sm_90a");
  std::vector<std::uint8_t>& file = modules[0].cubin;
  const sass::Cubin cubin = sass::read_cubin(file).value();
  const sass::Kernel kernel = kernel_of(cubin, "k_elect");
  for (std::uint64_t operation = 0; operation < 512; ++operation) {
    if (sass::decode(cubin.sm, {operation, 0}).known) continue;
    const std::uint64_t low = operation;
    std::memcpy(file.data() + kernel.code_offset, &low, 8);
    std::memset(file.data() + kernel.code_offset + 8, 0, 8);
    break;
  }
  Verdict verdict = passed();
  compose_counts(counted("k_elect", {{0, 4, 128}}), modules, {}, verdict);
  REQUIRE(verdict.counts.state == Availability::measured);
  REQUIRE(verdict.counts.opcodes.size() == 1);
  CHECK(verdict.counts.opcodes[0].opcode.rfind("unknown:0x", 0) == 0);
  CHECK(verdict.counts.opcodes[0].warp_instructions == 4);
}

TEST_CASE("counts: records that do not fit the code are no counts") {
  const auto modules = modules_of("async.sm_90a");
  const auto reason = [&](CountEvidence evidence, const std::vector<CompiledModule>& with) {
    Verdict verdict = passed();
    compose_counts(evidence, with, {}, verdict);
    CHECK(verdict.counts.state == Availability::unavailable);
    CHECK(verdict.counts.opcodes.empty());
    CHECK(verdict.counts.families.empty());
    CHECK(verdict.status == Status::passed);
    return verdict.counts.reason;
  };
  CHECK(contains(reason(counted("k_elect", {{0, 4, 128}, {8, 4, 128}}), modules), "offset 8"));
  CHECK(contains(reason(counted("k_elect", {{1u << 30, 4, 128}}), modules), "no instruction there"));
  CHECK(contains(reason(counted("k_elect", {{0xfffffff0u, 4, 128}}), modules), "no instruction there"));
  CHECK(contains(reason(counted("k_other", {{0, 4, 128}}), modules), "k_other"));
  CHECK(contains(reason(counted("k_elect", {{0, 4, 128}}), {}), "module 0"));
  auto broken = modules;
  broken[0].cubin.resize(100);
  reason(counted("k_elect", {{0, 4, 128}}), broken);
  CountEvidence unverified = counted("k_elect", {{0, 4, 128}});
  unverified.trial.reset();
  CHECK(contains(reason(unverified, modules), "not verified"));
}

TEST_CASE("counts: a hang or a fault leaves the verdict, a wrong result does not") {
  const auto modules = modules_of("async.sm_90a");
  Verdict hung = passed();
  CountEvidence evidence;
  evidence.method = "cupti_sass";
  evidence.unavailable = {CountUnavailable::Kind::hang, "did not end"};
  evidence.trial = right_trial();
  evidence.trial->outputs.clear();
  evidence.trial->fault = DeviceFault{};
  evidence.trial->fault->kind = DeviceFault::Kind::timeout;
  compose_counts(evidence, modules, {}, hung);
  CHECK(hung.status == Status::passed);
  CHECK(hung.findings.empty());
  CHECK(hung.correctness.trials == 3);
  CHECK(hung.counts.state == Availability::unavailable);
  CHECK(hung.counts.reason == "did not end");

  Verdict wrong = passed();
  evidence = counted("k_elect", {{0, 4, 128}});
  evidence.trial = right_trial(false);
  compose_counts(evidence, modules, {}, wrong);
  CHECK(wrong.status == Status::incorrect_numerical);
  CHECK(wrong.integrity == Integrity::clean);
  CHECK(wrong.correctness.trials == 4);
  CHECK(wrong.correctness.trials_failed == 1);
  REQUIRE(wrong.correctness.outputs.size() == 1);
  CHECK_FALSE(wrong.correctness.outputs[0].ok);
  CHECK(wrong.correctness.outputs[0].elements_wrong == 3);
  const Finding* finding = wrong.find_finding("wrong_result");
  REQUIRE(finding != nullptr);
  CHECK(contains(finding->message, "in the run that was counted"));
  CHECK(wrong.counts.state == Availability::measured);

  Verdict beside = passed();
  evidence.trial = right_trial();
  evidence.trial->violations = {{IntegrityViolation::Kind::red_zone, "o", -4, 4}};
  compose_counts(evidence, modules, {}, beside);
  CHECK(beside.status == Status::incorrect_numerical);
  CHECK(beside.integrity == Integrity::violated);
  CHECK(beside.find_finding("red_zone") != nullptr);
}

TEST_CASE("counts: what waits is marked as varying, what it waits for is not") {
  const std::vector<CompiledModule> modules = modules_of("pipeline.sm_90a");
  const std::string symbol = "k_pipeline";
  Verdict verdict = passed();
  compose_counts(counted(symbol, all_of(modules[0].cubin, symbol, 4)), modules, {}, verdict);
  REQUIRE(verdict.counts.state == Availability::measured);
  std::map<std::string, std::string> labels;
  for (const OpcodeCount& opcode : verdict.counts.opcodes) {
    labels[opcode.opcode] = opcode.label;
    if (opcode.family == "wgmma" || opcode.family == "tma_load") CHECK(opcode.label == "counted");
  }
  // The operations of an mbarrier have names of their own: what waits varies, what arrives does not.
  CHECK(labels.at("SYNCS.PHASECHK.TRANS64.TRYWAIT") == "timing_dependent");
  CHECK(labels.at("SYNCS.EXCH.64") == "counted");
  for (const FamilyCount& family : verdict.counts.families) {
    if (family.family == "wgmma") CHECK(family.label == "counted");
    if (family.family == "mbarrier") CHECK(family.label == "timing_dependent");
  }
}
