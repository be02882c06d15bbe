// The command as a person runs it, without a GPU.
#include "support/catch.hpp"

#include "core/json.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

using namespace ptxbench;

namespace {

struct Ran {
  int code = -1;
  std::string output;  // standard output, then standard error where asked for
};

Ran run(const std::string& arguments, bool errors = false) {
  const std::string command = std::string("cd '" PTXBENCH_SOURCE_DIR "' && '" PTXBENCH_BINARY_DIR "/bin/ptxbench' ") + arguments +
                              (errors ? " 2>&1" : " 2>/dev/null");
  Ran ran;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) ran.output.append(buffer.data(), n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) ran.code = WEXITSTATUS(status);
  return ran;
}

const std::string kTask =
    " --definition examples/data/definitions/gemm/gemm_n7168_k5120.json --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl"
    " --headers knowledge_packs/hopper/include --cache-dir '' ";
const std::string kGemm = kTask + "--device none ";

bool has(const Ran& ran, const std::string& text) { return ran.output.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("cli: help, version, and what is wrong with a call") {
  CHECK(run("--version").output == "ptxbench 0.1.0\n");
  for (const char* command : {"compile", "count", "evaluate", "doctor"}) {
    const Ran help = run(std::string(command) + " --help");
    CHECK(help.code == 0);
    CHECK(has(help, "example:"));
  }
  CHECK(run("").code == 2);
  const Ran unknown = run("complie", true);
  CHECK(unknown.code == 2);
  CHECK(has(unknown, "did you mean compile?"));
  const Ran option = run("compile x --definitoin y", true);
  CHECK(option.code == 2);
  CHECK(has(option, "did you mean --definition?"));
  const Ran missing = run("compile nowhere" + kGemm, true);
  CHECK(missing.code == 2);
  CHECK(has(missing, "nowhere"));
  const Ran workload = run("compile examples/data/candidates/3_slow --workload M=1" + kGemm, true);
  CHECK(workload.code == 2);
  CHECK(has(workload, "M=8192"));
}

TEST_CASE("cli: doctor says what there is, for people and for machines") {
  const Ran text = run("doctor");
  CHECK(text.code == 0);
  CHECK(has(text, "NVRTC"));
  CHECK(has(text, "device used:"));
  const Ran machine = run("doctor --json");
  const auto document = json::parse(machine.output);
  REQUIRE(document);
  const json::Value* items = document->root.find("items");
  REQUIRE(items != nullptr);
  CHECK(items->items.size() == 10);
}

TEST_CASE("cli: the emulator is a device like any other") {
  const Ran text = run("doctor --device emulator");
  CHECK(has(text, "emulator:h200 (132 SMs), emulator:h100 (132 SMs)"));
  CHECK(has(text, "device used: emulator:h200 (asked for)"));
  CHECK(has(run("doctor --device emulator:h100?sm_count=4"), "device used: emulator:h100?sm_count=4"));
  CHECK(has(run("doctor --device emulator:h300"), "device used: none (the emulator has no profile \"h300\"; there are h200 and h100"));
  const Ran none = run("doctor --device none --json");
  CHECK(has(none, "\"device_used\": \"\""));
  for (const char* command : {"compile", "evaluate", "run", "doctor"}) CHECK(has(run(std::string(command) + " --help"), "emulator[:h200|:h100]"));

  const std::string candidate = "evaluate examples/data/candidates/3_slow --workload M=70" + kTask;
  const Ran unknown = run(candidate + "--device emulator:h300", true);
  CHECK(unknown.code == 2);
  CHECK(has(unknown, "h200 and h100"));
}

TEST_CASE("cli: the four candidates compile, or say at which line they do not") {
  const Ran wrong = run("compile examples/data/candidates/1_compile_error --workload M=70" + kGemm);
  CHECK(wrong.code == 1);
  CHECK(has(wrong, "gemm_tma.cu:24:"));
  CHECK(has(wrong, "cp.async.bulk.tensor"));
  const Ran fast = run("compile examples/data/candidates/4_fast --workload M=8192 --json" + kGemm);
  CHECK(fast.code == 0);
  const auto document = json::parse(fast.output);
  REQUIRE(document);
  CHECK(has(fast, "\"wgmma\""));
  CHECK(has(fast, "\"tma_load\""));
}

TEST_CASE("cli: evaluate without a device compiles, and says that nothing was executed and why") {
  const Ran ran = run("evaluate examples/data/candidates/3_slow --workload M=70" + kGemm);
  CHECK(ran.code == 0);
  CHECK(has(ran, "not_run: no device"));
  CHECK(has(ran, "compile: ok"));
  CHECK(has(ran, "mma_sync"));
}

TEST_CASE("cli: a pack's rules, as far as the compiled code tells") {
  const std::string pack =
      " --workload M=70 --device none --cache-dir '' --pack knowledge_packs/hopper"
      " --definition examples/data/definitions/gemm/gemm_n7168_k5120.json"
      " --workloads examples/data/workloads/gemm/gemm_n7168_k5120.jsonl";
  for (const char* command : {"evaluate", "compile"}) {
    const Ran ran = run(std::string(command) + " examples/data/candidates/3_slow" + pack);
    INFO(ran.output);
    CHECK(ran.code == 0);  // a rule fails nothing
    CHECK(has(ran, "contract code.wgmma.instructions >= 1: NOT met (0)\n    There is no wgmma in the code"));
    CHECK(has(ran, "contract spills == 0: met (0 in "));
    CHECK(has(ran, "contract speedup >= 0.6: not checked (timing: "));
  }
  const Ran fast = run("compile examples/data/candidates/4_fast" + pack);
  CHECK(has(fast, "contract code.wgmma.instructions >= 1: met ("));
  CHECK(has(fast, "contract wgmma.serialized == 0: met (0)"));
}

TEST_CASE("cli: an operation of one's own is judged by one's own kernels") {
  const std::string task =
      "evaluate examples/rmsnorm/candidate --definition examples/rmsnorm/definition.json --workloads examples/rmsnorm/workloads.jsonl"
      " --workload rows=37 --cache-dir '' --device emulator --json";
  const Ran right = run(task + " --reference examples/rmsnorm/naive --baseline examples/rmsnorm/incumbent");
  CHECK(right.code == 0);
  CHECK(has(right, "\"PASSED\""));
  const Ran none = run(task, true);
  CHECK(none.code == 2);
  CHECK(has(none, "another Solution"));
}

TEST_CASE("cli: count shows shares with bars, operations, lines, and says why where nothing is counted") {
  const std::string small =
      " --definition examples/data/definitions/gemm/gemm_small.json --workloads examples/data/workloads/gemm/gemm_small.jsonl"
      " --pack knowledge_packs/hopper --cache-dir '' --workload M=128 tests/fixtures/kernels/gemm_wgmma_register_a ";
  const Ran text = run("count --device emulator --opcodes --lines" + small);
  CHECK(text.code == 0);
  INFO(text.output);
  CHECK(has(text, "M=128 N=256 K=1024: PASSED; PTX instructions executed on emulator:h200"));
  CHECK(has(text, "wgmma  "));
  CHECK(has(text, "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16"));
  CHECK(has(text, "kernel.cu:51:7"));
  CHECK(has(text, "100.00%  \u2588"));  // of the FLOPs, on wgmma
  CHECK(has(text, "moved by TMA: in 1048576 bytes, out 0 bytes, 1.231 times what the task needs"));
  CHECK(has(text, "waits for wgmma over wgmma: 1\n"));
  CHECK(has(text, "architecture: published yes, strict yes"));
  const Ran machine = run("count --device emulator --json" + small);
  CHECK(machine.code == 0);
  const auto document = json::parse(machine.output);
  REQUIRE(document);
  const json::Value& verdict = document->root.find("verdicts")->items.at(0);
  CHECK(verdict.find("counts")->find("state")->text == "measured");
  CHECK(verdict.find("timing")->find("state")->text == "not_requested");

  const Ran none = run("count --device none" + small);
  CHECK(none.code == 2);
  CHECK(has(none, "no device"));
  CHECK(has(none, "executed or not: "));  // what is in the code all the same
  const Ran wrong = run("count examples/data/candidates/1_compile_error" + kGemm);
  CHECK(wrong.code == 1);
}
