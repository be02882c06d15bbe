#include "agent/support.hpp"
#include "support/catch.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  INFO("wanted: " + part);
  return text.find(part) != std::string::npos;
}

Verdict wrong(std::int64_t m) {
  Verdict v = verdict(m, Status::incorrect_numerical);
  v.correctness.state = Availability::measured;
  v.correctness.trials = 3;
  v.correctness.trials_failed = 2;
  OutputCorrectness o;
  o.output = "Y";
  o.elements = o.elements_checked = 512;
  o.elements_wrong = 256;
  o.first_wrong_index = std::vector<std::int64_t>{0, 1};
  o.first_wrong_expected = 1.5;
  o.first_wrong_got = -2;
  o.rms_error = 0.7;
  o.rms_limit = 0.01;
  o.max_absolute_error = 3.25;
  o.max_limit = 0.05;
  v.correctness.outputs = {o};
  v.findings = {{"wrong_result", Severity::error, "wrong from Y[0, 1] on", ""}};
  return v;
}

}  // namespace

TEST_CASE("a compile error: each message once, with its lines") {
  Verdict v = verdict(8, Status::compile_error);
  v.compile.diagnostics = {{Severity::warning, "unused", "k.cu", 1, 1, 0, "", ""},
                           {Severity::error, "Unknown modifier", "k.cu", 5, 3, 98, "", ""},
                           {Severity::error, "Unknown modifier", "k.cu", 5, 3, 140, "", ""},
                           {Severity::error, "another", "k.cu", 5, 3, 141, "C7000", ""}};
  v.findings = {{"compile_error", Severity::error, "does not compile", ""}};
  Verdict w = v;
  w.axes = {{"M", 3}};
  Solution s;
  s.sources = {
      {"k.cu", "#include <cuda.h>\nint x;\n  asm volatile(\n      \"bad;\"\n      : : \"r\"(1));\n"}};
  const std::string text = feedback_text(evaluation({v, w}), &s, {1, 4});
  CHECK(has(text, "Turn 1 of 4: COMPILE_ERROR."));
  CHECK(has(text, "## M=8; M=3\n"));  // the same for both, said once
  CHECK(has(text,
            "k.cu:5:3: error: Unknown modifier\n  3 |   asm volatile(\n  4 |       \"bad;\"\n  5 |       : : "
            "\"r\"(1));\n"));
  CHECK(has(text, "error C7000: another"));
  CHECK(text.find("Unknown modifier") == text.rfind("Unknown modifier"));
  CHECK(text.find("Unknown modifier") < text.find("unused"));  // errors first
  CHECK(text.find("does not compile") == std::string::npos);
  CHECK(has(text, "Reply with a whole candidate"));
  // Without the sources there are no lines, and a line that is not there is no trouble.
  CHECK_FALSE(feedback_text(evaluation({v}), nullptr).empty());
  s.sources[0].content = "";
  CHECK_FALSE(feedback_text(evaluation({v}), &s).empty());
}

TEST_CASE("an emulator's verdict: orders, exactness, counts that depend on timing, and no time") {
  Verdict v = verdict(8, Status::passed);
  v.timing.state = Availability::unavailable;
  v.timing.reason = "the emulator does not measure time";
  v.counts = {};
  v.counts.state = Availability::measured;
  v.counts.method = "emulator";
  v.counts.families = {{"gemm", "mbarrier", 70, 700, "timing_dependent"}, {"gemm", "wgmma", 64, 2048, "exact"}};
  v.counts.tma_load_bytes = 4096;
  v.counts.tma_store_bytes = 512;
  v.counts.bulk_copy_bytes = 0;
  v.emulation = {Availability::measured, "", "exact", {}, {"eager", "lazy"}, 1000};
  std::string text = feedback_text(evaluation({v}), nullptr);
  CHECK(has(text, "Run on an emulator, with asynchronous operations completing eager, lazy. Every executed instruction gives"));
  CHECK(has(text, "Timing: unavailable. the emulator does not measure time"));
  CHECK(has(text, "- gemm: mbarrier 70 (some in loops that wait: depends on timing)\n- gemm: wgmma 64\n"));
  CHECK(has(text, "- moved by TMA: 4096 bytes in, 512 bytes out\n"));
  CHECK_FALSE(has(text, "Of all floating-point operations"));  // it is not known
  v.counts.flops.total.arch_flops_share = 0.25;
  v.counts.flops.mma_work_ratio = 1.5;
  text = feedback_text(evaluation({v}), nullptr);
  CHECK(has(text, "Of all floating-point operations executed, 25.0% ran on the architecture's own matrix instructions.\n"
                  "Matrix instructions did 1.500 times the work that the task needs.\n"));
  v.emulation.fidelity = "ptxas";
  v.emulation.schedules = {"eager"};
  v.emulation.inexact = {"a: 1", "b: 2", "c: 3", "d: 4"};
  text = feedback_text(evaluation({v}), nullptr);
  CHECK(has(text, "Run on an emulator. Not known to give the hardware's bits:\n- a: 1\n- b: 2\n- c: 3\n- and 1 more\n"));
}

TEST_CASE("a plan that is refused says where") {
  Verdict v = verdict(8, Status::compile_error);
  v.compile.state = Availability::unavailable;
  v.compile.reason = "the launch plan was refused before compiling";
  v.findings = {{"plan_invalid", Severity::error, "launch.json:/steps/0/grid: is missing", ""}};
  const std::string text = feedback_text(evaluation({v}), nullptr);
  CHECK(has(text, "plan_invalid: launch.json:/steps/0/grid: is missing"));
}

TEST_CASE("a wrong result: where, and by how much against the limits") {
  const std::string text = feedback_text(evaluation({wrong(8), passed(3, 0.5)}), nullptr, {2, 4});
  CHECK(has(text, "Turn 2 of 4: INCORRECT_NUMERICAL."));
  CHECK(has(text, "- M=8: INCORRECT_NUMERICAL\n- M=3: PASSED, 0.500x\n"));
  CHECK(has(text, "Trials: 3, wrong: 2."));
  CHECK(has(text, "256 of 512 elements wrong"));
  CHECK(has(text, "first wrong: Y[0, 1], expected 1.5, got -2"));
  CHECK(has(text, "RMS error 0.7 (limit 0.01), largest error 3.25 (limit 0.05)"));
}

TEST_CASE("a pass: time, speedup with its interval, counts, resources") {
  Verdict v = passed(8, 0.993);
  v.compile.kernels = {{"wide", "_Z4gemm", 168, 0, 230464, 0, 8, 4, 1},
                       {"_Z5other", "_Z5other", 32, 0, 0, 0, 0, 0, std::nullopt}};
  v.compile.static_families = {{"wide", "wgmma", 4}};
  v.counts.state = Availability::measured;
  v.counts.families = {{"wide", "wgmma", 1146880, 36700160}, {"wide", "int", 5, 5}};
  const std::string text = feedback_text(evaluation({v}), nullptr, {4, 4});
  CHECK(has(text, "PASSED, speedup 0.993x over all workloads"));
  CHECK(has(text, "Time: 1.0000 ms; cuBLASLt: 0.9930 ms. Speedup 0.993x (95%: 0.983 to 1.003)."));
  CHECK(has(text, "wide: wgmma 1146880"));
  CHECK(has(text, "168 registers, 0 + 230464 bytes of shared memory"));
  CHECK(has(text, "spills 8 bytes of stores, 4 of loads"));
  CHECK(text.find("_Z5other") == std::string::npos);  // this workload does not launch it
  CHECK(text.find(": int ") == std::string::npos);
  CHECK(text.find("static") ==
        text.find("static + dynamic"));                 // executions are there, so static ones are not
  CHECK(text.find("Reply with") == std::string::npos);  // there is no further turn
}

TEST_CASE("each status has its word, and findings are told") {
  for (const Status status :
       {Status::runtime_error, Status::timeout, Status::incorrect_shape, Status::incorrect_dtype}) {
    Verdict v = verdict(8, status);
    v.findings = {{"illegal_address", Severity::error, "at step 0", ""},
                  {"unread_parameters", Severity::note, "one", ""}};
    const std::string text = feedback_text(evaluation({v}), nullptr);
    CHECK(has(text, std::string(status_name(status))));
    CHECK(has(text, "- error illegal_address: at step 0\n- note unread_parameters: one\n"));
  }
}

TEST_CASE("nothing executed: says so once and why, and what the code holds") {
  Verdict v = verdict(8, std::nullopt), w = verdict(3, std::nullopt);
  for (Verdict* one : {&v, &w}) {
    one->compile.kernels = {{"k", "k", 64, 0, 0, 0, 0, 0, 2}};
    one->compile.static_families = {{"k", "wgmma", 4}, {"k", "int", 100}};
  }
  const std::string text = feedback_text(evaluation({v, w}), nullptr, {1, 2});
  CHECK(has(text, "Turn 1 of 2: not judged, nothing was executed."));
  CHECK(has(text, "Nothing was executed: no device: the CUDA driver not found (libcuda.so.1).\n"));
  CHECK(text.find("Nothing was executed") == text.rfind("Nothing was executed"));
  CHECK(text.find("searched") == std::string::npos);
  CHECK(has(text, "static, not executions):\n- k: wgmma 4\n"));
  CHECK(has(text, "64 registers"));
  CHECK(text.find("PASSED") == std::string::npos);
}

TEST_CASE("a workload that does not apply counts as failed") {
  Verdict v = verdict(8, std::nullopt);
  v.outcome = Outcome::not_applicable;
  v.outcome_reason = "N % BN == 0 is false";
  const std::string text = feedback_text(evaluation({passed(3, 2), v}), nullptr);
  CHECK(has(text, "COMPILE_ERROR"));
  CHECK(has(text, "not applicable (counts as failed)"));
  CHECK(has(text, "N % BN == 0 is false"));
}

TEST_CASE("a reply without a candidate gets the form of one") {
  ParsedReply reply;
  reply.notes = {"the source is missing"};
  const std::string text = feedback_text(reply, {1, 3});
  CHECK(has(text, "no candidate was found"));
  CHECK(has(text, "- the source is missing\n"));
  CHECK(has(text, "**launch.json**"));
}

TEST_CASE("long feedback is cut between characters") {
  Verdict v = verdict(8, Status::compile_error);
  for (int i = 0; i < 100; ++i)
    v.compile.diagnostics.push_back(
        {Severity::error, "\xc3\xa9" + std::string(3000, 'x') + std::to_string(i), "k.cu", i, 1, 0, "", ""});
  const std::string text = feedback_text(evaluation({v}), nullptr, {1, 2, 2000});
  CHECK(text.size() < 2200);
  CHECK(has(text, "(cut here)"));
  CHECK(has(text, "Reply with a whole candidate"));
  CHECK(has(feedback_text(evaluation({v}), nullptr, {1, 2, 100000}), "and 88 more"));
}

TEST_CASE("rules that are not met: their sentences, and no others") {
  Verdict v = passed(8, 0.5);
  v.contracts = {{"spills == 0", ContractState::not_met, "24", "gemm", "", "Make the tile smaller."},
                 {"registers <= 255", ContractState::met, "168", "gemm", "", "Use fewer registers."},
                 {"speedup >= 0.6", ContractState::not_met, "0.5", "", "", "Overlap loads with wgmma."},
                 {"tma.loads >= 1", ContractState::not_checked, "", "", "counts: unavailable", "Load by TMA."}};
  Verdict w = passed(3, 0.7);
  w.contracts = {{"spills == 0", ContractState::met, "0", "gemm", "", "Make the tile smaller."}};
  const std::string text = feedback_text(evaluation({v, w}), nullptr);
  CHECK(has(text, "Rules that are not met:\n- `spills == 0`, and it is 24 in gemm: Make the tile smaller.\n"
                  "- `speedup >= 0.6`, and it is 0.5: Overlap loads with wgmma.\n"));
  CHECK(text.find("Use fewer registers") == std::string::npos);
  CHECK(text.find("Load by TMA") == std::string::npos);
  CHECK(text.find("Rules that") == text.rfind("Rules that"));
  CHECK(text.find("Rules that") < text.find("## M=3"));
  // Where nothing was executed the compiled code can still break a rule.
  Verdict code = verdict(8, std::nullopt);
  code.contracts = v.contracts;
  code.contracts.pop_back();
  CHECK(has(feedback_text(evaluation({code}), nullptr), "Make the tile smaller."));
}
