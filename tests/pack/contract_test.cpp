#include "support/catch.hpp"
#include "trace/sample_verdict.hpp"

#include <ptxbench/pack.hpp>
#include <ptxbench/sass.hpp>

#include <fstream>
#include <limits>
#include <set>
#include <sstream>

using namespace ptxbench;

namespace {

Contract rule(const std::string& text) {
  auto contract = Contract::parse(text, "do better");
  INFO(text << (contract ? std::string() : ": " + contract.error().to_string()));
  REQUIRE(contract);
  return *contract;
}

ContractResult check(const std::string& text, const Verdict& verdict) { return rule(text).check(verdict); }
ContractState state(const std::string& text, const Verdict& verdict) { return check(text, verdict).state; }
std::string reason(const std::string& text, const Verdict& verdict) {
  const ContractResult result = check(text, verdict);
  CHECK(result.state == ContractState::not_checked);
  CHECK(result.value.empty());
  return result.reason;
}

// A kernel that passed, with everything that a GPU tells.
Verdict measured() {
  Verdict v;
  v.outcome = Outcome::judged;
  v.status = Status::passed;
  v.compile.state = Availability::measured;
  v.compile.ok = true;
  v.compile.kernels = {{"gemm", "_Z4gemm", 168, 1024, 200000, 0, 0, 0, 1},
                       {"reduce", "_Z6reduce", 40, 0, 4096, 16, 8, 4, 8},
                       {"spare", "_Z5spare", 255, 0, 0, 900, 800, 700, std::nullopt}};  // not launched
  v.compile.static_families = {
      {"gemm", "wgmma", 64}, {"gemm", "int", 900}, {"reduce", "int", 80}, {"spare", "wgmma", 7}};
  v.correctness.state = Availability::measured;
  v.correctness.trials = 3;
  v.timing.state = Availability::measured;
  v.timing.median_ns = 1000000;
  v.timing.speedup = 0.75;
  v.timing.speedup_low = 0.74;
  v.timing.speedup_high = 0.76;
  v.timing.roofline_ns = 500000;
  v.counts.state = Availability::measured;
  v.counts.method = "cupti_sass";
  v.compile.arch = "sm_90a";
  v.counts.flops.total = {"", 800, 100, 60, 0, 40, 0.8};
  v.counts.flops.mma_work_ratio = 1.25;
  v.counts.architecture = {true, false, "arch_flops_share is 0.8"};
  v.counts.families = {{"gemm", "wgmma", 100, 3200},
                       {"gemm", "tma_load", 10, 10},
                       {"gemm", "tma_multicast", 5, 5},
                       {"gemm", "int", 60, 1920},
                       {"reduce", "int", 25, 800}};
  return v;
}

}  // namespace

TEST_CASE("contracts: every operator") {
  const Verdict v = measured();  // 12 bytes of spills, in the kernel reduce
  struct Row {
    const char* rule;
    ContractState state;
  };
  const ContractState met = ContractState::met, not_met = ContractState::not_met;
  const Row rows[] = {
      {"spills == 12", met},      {"spills == 11", not_met},     {"spills != 11", met},
      {"spills != 12", not_met},  {"spills < 13", met},          {"spills < 12", not_met},
      {"spills <= 12", met},      {"spills <= 11", not_met},     {"spills > 11", met},
      {"spills > 12", not_met},   {"spills >= 12", met},         {"spills >= 13", not_met},
      {"spills>=1.2e1", met},     {" spills\t>= 12.0 ", met},    {"spills > -1", met},
      {"status == PASSED", met},  {"status != PASSED", not_met}, {"status == TIMEOUT", not_met},
      {"status != TIMEOUT", met}, {"integrity == clean", met},   {"integrity == violated", not_met},
  };
  for (const Row& row : rows) {
    INFO(row.rule);
    CHECK(state(row.rule, v) == row.state);
  }
  const ContractResult result = check("spills == 0", v);
  CHECK(result.rule == "spills == 0");
  CHECK(result.value == "12");
  CHECK(result.kernel == "reduce");
  CHECK(result.sentence == "do better");
  CHECK(result.reason.empty());
}

TEST_CASE("contracts: what each value is") {
  const Verdict v = measured();
  struct Row {
    const char* rule;
    const char* value;
    const char* kernel;
  };
  const Row rows[] = {
      {"status == PASSED", "PASSED", ""},
      {"integrity == clean", "clean", ""},
      {"speedup >= 0.75", "0.75", ""},
      {"speedup_low >= 0.74", "0.74", ""},
      {"median_ns <= 1000000", "1000000", ""},
      {"roofline_share >= 0.5", "0.5", ""},
      {"registers <= 168", "168", "gemm"},
      {"shared_bytes == 201024", "201024", "gemm"},
      {"stack_bytes <= 16", "16", "reduce"},
      {"spills == 12", "12", "reduce"},
      {"occupancy.ctas_per_sm == 1", "1", "gemm"},
      {"wgmma.serialized == 0", "0", ""},
      {"wgmma.injected == 0", "0", ""},
      {"setmaxnreg.ignored == 0", "0", ""},
      {"code.wgmma.instructions == 64", "64", ""},
      {"code.int.instructions == 980", "980", ""},
      {"code.tma_store.instructions == 0", "0", ""},
      {"families.wgmma.warps == 100", "100", ""},
      {"families.int.threads == 2720", "2720", ""},
      {"families.wgmma.share == 0.5", "0.5", ""},
      {"families.mma_sync.warps == 0", "0", ""},
      {"tma.loads == 15", "15", ""},
      {"families.wgmma.flops_share >= 0.8", "0.8", ""},
      {"families.mma_sync.flops_share <= 0.1", "0.1", ""},
      {"families.fp32.flops_share <= 0.06", "0.06", ""},
      {"families.fp64.flops_share == 0", "0", ""},
      {"families.half.flops_share == 0.04", "0.04", ""},
      {"arch_flops_share == 0.8", "0.8", ""},
      {"mma_work_ratio == 1.25", "1.25", ""},
      {"architecture.published == true", "true", ""},
      {"architecture.strict != true", "false", ""},
  };
  for (const Row& row : rows) {
    INFO(row.rule);
    const ContractResult result = check(row.rule, v);
    CHECK(result.state == ContractState::met);
    CHECK(result.value == row.value);
    CHECK(result.kernel == row.kernel);
  }
  Verdict remarks = v;
  remarks.findings = {{"wgmma_serialized", Severity::warning, "in gemm", ""},
                      {"wgmma_serialized", Severity::note, "a wait is injected", ""},
                      {"setmaxnreg_ignored", Severity::warning, "in gemm", ""}};
  CHECK(check("wgmma.serialized == 0", remarks).value == "1");
  CHECK(check("wgmma.injected == 0", remarks).value == "1");
  CHECK(state("setmaxnreg.ignored == 0", remarks) == ContractState::not_met);
  Verdict emulated = v;
  emulated.counts.method = "emulator";
  emulated.counts.tma_load_bytes = 4096;
  emulated.counts.tma_store_bytes = 512;
  emulated.counts.bulk_copy_bytes = 0;
  CHECK(check("tma.load_bytes <= 4096", emulated).value == "4096");
  CHECK(check("tma.store_bytes <= 512", emulated).value == "512");
  CHECK(check("bulk_copy.bytes == 0", emulated).value == "0");
  emulated.counts.bytes.tma_ratio = 1.5;
  emulated.counts.bytes.spill = 96;
  emulated.counts.waits_per_mma = 0.25;
  CHECK(check("tma.ratio <= 1.5", emulated).state == ContractState::met);
  CHECK(check("spill_bytes == 0", emulated).value == "96");
  CHECK(check("spill_bytes == 0", emulated).state == ContractState::not_met);
  CHECK(check("waits_per_mma < 0.5", emulated).value == "0.25");
  CHECK(state("families.wgmma.warps == 100", emulated) == ContractState::met);
}

TEST_CASE("contracts: a value that is not there is never met") {
  // Each rule would be met by a zero, an empty word, or by any number at all.
  std::vector<std::string> rules;
  for (const ContractPath& path : contract_paths()) {
    std::string name(path.path);
    if (const std::size_t at = name.find("<family>"); at != name.npos) name.replace(at, 8, "wgmma");
    if (path.unit == "word") {
      rules.push_back(name + (name == "status"      ? " != TIMEOUT"
                              : name == "integrity" ? " == clean"
                                                    : " != true"));
      continue;
    }
    for (const char* op : {" == 0", " != 1", " < 1", " <= 0", " >= 0", " > -1"}) rules.push_back(name + op);
  }
  Verdict failed;
  failed.outcome = Outcome::judged;
  failed.status = Status::compile_error;
  failed.compile.state = Availability::measured;
  failed.compile.kernels = {{"gemm", "gemm", 32, 0, 0, 0, 0, 0, std::nullopt}};
  for (const std::string& text : rules) {
    INFO(text);
    const ContractResult result = check(text, Verdict{});
    CHECK(result.state == ContractState::not_checked);
    CHECK_FALSE(result.reason.empty());
    CHECK(result.value.empty());
    if (!text.starts_with("status")) CHECK(state(text, failed) == ContractState::not_checked);
  }

  Verdict v = measured();
  SECTION("blocks say why") {
    v.timing.state = Availability::inconclusive;
    v.timing.reason = "another process computed";
    v.counts.state = Availability::unavailable;
    v.counts.reason = "counters are not permitted";
    CHECK(reason("speedup >= 0", v) == "timing: inconclusive, another process computed");
    CHECK(reason("median_ns > 0", v) == "timing: inconclusive, another process computed");
    CHECK(reason("families.wgmma.warps >= 0", v) == "counts: unavailable, counters are not permitted");
    CHECK(reason("families.wgmma.flops_share >= 0", v) == "counts: unavailable, counters are not permitted");
    CHECK(state("spills == 12", v) == ContractState::met);
  }
  SECTION("no baseline, no roofline, numbers that are none") {
    v.timing.speedup.reset();
    v.timing.roofline_ns.reset();
    CHECK(reason("speedup >= 0", v) == "there is no baseline");
    CHECK(reason("speedup_low >= 0", v) == "there is no baseline");
    CHECK(reason("roofline_share >= 0", v) == "no roofline is known");
    v.timing.speedup = std::numeric_limits<double>::quiet_NaN();
    v.timing.speedup_low = std::numeric_limits<double>::quiet_NaN();
    CHECK_FALSE(reason("speedup != 1", v).empty());
    CHECK_FALSE(reason("speedup_low != 1", v).empty());
    v.timing.roofline_ns = 1;
    v.timing.median_ns = 0;
    CHECK_FALSE(reason("roofline_share >= 0", v).empty());
  }
  SECTION("code that no assembler of ours has seen") {
    Verdict ready = v;  // a cubin: it has instructions, and nobody told about its kernels
    ready.compile.kernels.clear();
    CHECK(reason("spills == 0", ready).find("came ready made") != std::string::npos);
    CHECK(reason("wgmma.serialized == 0", ready).find("came ready made") != std::string::npos);
    CHECK(state("code.wgmma.instructions >= 1", ready) == ContractState::met);
    ready.compile.static_families.clear();
    CHECK(reason("registers == 0", ready).find("no kernel") != std::string::npos);
    CHECK(reason("code.wgmma.instructions == 0", ready).find("no machine code") != std::string::npos);
    Verdict one = v;  // one of two
    one.compile.static_families.push_back({"_Z5extra", "int", 5});
    CHECK(reason("spills == 0", one).find("_Z5extra") != std::string::npos);
    Verdict late = v;
    late.findings = {{"ptx_not_assembled", Severity::note, "no ptxas", ""}};
    CHECK(reason("setmaxnreg.ignored == 0", late).find("driver assembles") != std::string::npos);
    CHECK_FALSE(reason("code.wgmma.instructions == 0", late).empty());
  }
  SECTION("what only one device can tell") {
    CHECK(reason("tma.load_bytes >= 0", v) == "these bytes were not counted");
    v.counts.bytes.tma_ratio_reason = "how many bytes this task moves is not known";
    v.counts.bytes.spill_reason = "whether gemm spills is not known";
    CHECK(reason("tma.ratio >= 0", v) == "how many bytes this task moves is not known");
    CHECK(reason("spill_bytes >= 0", v) == "whether gemm spills is not known");
    CHECK(reason("waits_per_mma >= 0", v) == "no wgmma was executed");
    v.counts.method = "emulator";
    CHECK(reason("families.wgmma.share >= 0", v).find("emulator") != std::string::npos);
    v.counts.families.push_back({"gemm", "int", 5, 5, "ptx_only"});
    CHECK(reason("families.int.warps >= 0", v).find("machine code does not have") != std::string::npos);
  }
  SECTION("shares of FLOPs") {
    CHECK(reason("families.sfu.flops_share >= 0", v) == "FLOPs of sfu are not counted on sm_90a");
    CHECK(reason("families.tcgen05_mma.flops_share >= 0", v) ==
          "FLOPs of tcgen05_mma are not counted on sm_90a");
    v.compile.arch = "sm_100a";
    CHECK(check("families.tcgen05_mma.flops_share == 0.8", v).state == ContractState::met);
    CHECK_FALSE(reason("families.wgmma.flops_share >= 0", v).empty());
    v.counts.flops.total.arch_mma.reset();
    v.counts.flops.total.arch_flops_share.reset();
    v.counts.flops.arch_flops_share_reason = "the shape of a tcgen05.mma is not known";
    v.counts.flops.mma_work_ratio.reset();
    v.counts.flops.mma_work_ratio_reason = "the task's work is not known";
    v.counts.architecture = {std::nullopt, std::nullopt, "nothing is known"};
    for (const char* text :
         {"arch_flops_share >= 0", "families.tcgen05_mma.flops_share >= 0", "families.fp32.flops_share >= 0"})
      CHECK(reason(text, v) == "the shape of a tcgen05.mma is not known");
    CHECK(reason("mma_work_ratio >= 0", v) == "the task's work is not known");
    CHECK(reason("architecture.strict != true", v) == "nothing is known");
    CHECK(reason("architecture.published != true", v) == "nothing is known");
  }
  SECTION("nothing that is launched") {
    for (KernelResources& k : v.compile.kernels) k.occupancy_ctas_per_sm.reset();
    CHECK_FALSE(reason("occupancy.ctas_per_sm >= 0", v).empty());
    CHECK(check("registers <= 255", v).value == "255");  // launched or not: nobody knows
  }
}

TEST_CASE("contracts: an error is at its column, and names what is near") {
  struct Row {
    const char* rule;
    int column;
    const char* message;
  };
  const Row rows[] = {
      {"spils == 0", 1, "did you mean \"spills\""},
      {"  spils == 0", 3, "did you mean \"spills\""},
      {"families.wgma.warps > 0", 1, "did you mean \"families.wgmma.warps\""},
      {"families.wgmma.flop_share > 0", 1, "did you mean \"families.wgmma.flops_share\""},
      {"families.<family>.warps > 0", 1, "no value"},
      {"families..warps > 0", 1, "no value"},
      {"families > 0", 1, "no value"},
      {"completely.elsewhere.indeed == 0", 1, "there are status, integrity, speedup"},
      {"Spills == 0", 1, "does not begin with a value's name"},
      {"0 == spills", 1, "no value"},
      {"", 1, "does not begin"},
      {"   ", 4, "does not begin"},
      {"spills", 7, "an operator is missing"},
      {"spills = 0", 8, "equality is =="},
      {"spills =< 0", 8, "\"=<\" is no operator"},
      {"spills === 0", 8, "no operator"},
      {"spills ~ 0", 8, "an operator is missing"},
      {"spills ==", 10, "a number is missing"},
      {"spills == ", 11, "a number is missing"},
      {"spills == zero", 11, "\"zero\" is no number"},
      {"spills == 0x10", 11, "no number"},
      {"spills == NaN", 11, "no number"},
      {"spills == -Infinity", 11, "no number"},
      {"spills == 1e999", 11, "no number"},
      {"spills == 0,5", 11, "no number"},
      {"spills == 0 && speedup > 1", 13, "one comparison"},
      {"spills == 0 bytes", 13, "one comparison"},
      {"spills == 0\n", 11, "no number"},
      {"speedup >= 60%", 12, "no number"},
      {"status == passed", 11, "is none of the words of status"},
      {"status == PASED", 11, "did you mean PASSED"},
      {"status >= PASSED", 8, "it is compared by == or !="},
      {"status == 0", 11, "PASSED, INCORRECT_SHAPE"},
      {"status == ", 11, "is none of the words"},
      {"speedup >= PASSED", 12, "no number"},
  };
  for (const Row& row : rows) {
    INFO(row.rule);
    const auto contract = Contract::parse(row.rule, "s", {}, {"pack.json", "/contracts/3/rule", 0, 0});
    REQUIRE_FALSE(contract);
    const Error& error = contract.error();
    INFO(error.to_string());
    CHECK(error.code == ErrorCode::parse);
    CHECK(error.rule == "contract");
    CHECK(error.where.file == "pack.json");
    CHECK(error.where.pointer == "/contracts/3/rule");
    CHECK(error.where.column == row.column);
    CHECK(error.message.starts_with("column " + std::to_string(row.column) + ": "));
    CHECK(error.message.find(row.message) != std::string::npos);
  }
  CHECK_FALSE(Contract::parse(std::string(100000, 'a') + " == 0", "s"));
  CHECK_FALSE(Contract::parse("spills == 0", ""));
  CHECK_FALSE(Contract::parse("spills == 0", std::string(1001, 's')));
}

TEST_CASE("contracts: those of an operation, in their order") {
  const std::vector<Contract> contracts = {
      Contract::parse("spills == 0", "a").value(),
      Contract::parse("tma.loads >= 1", "b", {"gemm", "attention"}).value(),
      Contract::parse("speedup >= 0.6", "c", {"norm"}).value(),
      Contract::parse("registers <= 255", "d").value()};
  const auto rules = [&](std::string_view op_type) {
    std::string out;
    for (const ContractResult& result : check_contracts(contracts, op_type, measured()))
      out += result.sentence;
    return out;
  };
  CHECK(rules("gemm") == "abd");
  CHECK(rules("norm") == "acd");
  CHECK(rules("softmax") == "ad");
}

TEST_CASE("contracts: the table of values is the documentation's") {
  std::ifstream in(std::string(PTXBENCH_SOURCE_DIR) + "/docs/packs.md");
  std::stringstream text;
  text << in.rdbuf();
  std::set<std::string_view> seen;
  for (const ContractPath& path : contract_paths()) {
    INFO(path.path);
    CHECK(seen.insert(path.path).second);
    CHECK_FALSE(path.meaning.empty());
    CHECK_FALSE(path.source.empty());
    CHECK(text.str().find("| `" + std::string(path.path) + "` | " + std::string(path.unit) + " | ") !=
          std::string::npos);
  }
  for (const sass::Family& family : sass::families())
    CHECK(Contract::parse("families." + std::string(family.name) + ".flops_share >= 0.9", "s"));
}
