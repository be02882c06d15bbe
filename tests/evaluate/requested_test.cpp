// What the PTX asks for and the machine code does not have.
#include "evaluate/requested.hpp"

#include "core/json.hpp"
#include "support/catch.hpp"
#include "support/kernel_emulation.hpp"

using namespace ptxbench;

namespace {

constexpr const char* kPtx = R"(.version 9.0
.target sm_90a
// setmaxnreg.dec.sync.aligned.u32 24; in .entry comment
.visible .entry gemm(.param .u64 p)
.maxntid 384
{
	setmaxnreg.dec.sync.aligned.u32 	24; setmaxnreg.inc.sync.aligned.u32 240;
	/* setmaxnreg.inc.sync.aligned.u32 8; */
	ret;
}
.visible .entry plain(.param .u64 p) { ret; }
.func helper() { setmaxnreg.dec.sync.aligned.u32 24; ret; }
)";

CompiledModule module(const std::string& ptx) {
  CompiledModule m;
  m.ptx = ptx;
  m.cubin = {1};
  return m;
}

}  // namespace

TEST_CASE("requested but absent: setmaxnreg in the PTX and none in the machine code") {
  const std::vector<StaticFamily> without{{"gemm", "wgmma", 4}, {"plain", "control", 1}};
  Diagnostic remark;
  remark.message =
      "Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements";
  remark.function = "gemm";
  Diagnostic other = remark;
  other.message = "setmaxnreg of another kernel";
  other.function = "plain";

  const auto found = requested_but_absent(module(kPtx), without, {other, remark});
  REQUIRE(found.size() == 1);
  CHECK(found[0].code == "requested_but_absent");
  CHECK(found[0].severity == Severity::note);
  CHECK(found[0].message.find("gemm has 2 setmaxnreg in its PTX and none in its machine code") == 0);
  CHECK(found[0].message.find(remark.message) != std::string::npos);
  const auto evidence = json::parse(found[0].evidence);
  REQUIRE(evidence);
  const auto silent = requested_but_absent(module(kPtx), without, {other});
  REQUIRE(silent.size() == 1);
  CHECK(silent[0].message.find("ptxas did not say why") != std::string::npos);
  CHECK(silent[0].evidence.find("\"ptxas\":null") != std::string::npos);
}

TEST_CASE("requested but absent: nothing where it is there, was not asked for, or cannot be known") {
  CHECK(requested_but_absent(module(kPtx), {{"gemm", "setmaxnreg", 2}, {"gemm", "wgmma", 4}}, {}).empty());
  CHECK(
      requested_but_absent(module(kPtx), {{"plain", "control", 1}}, {}).empty());  // gemm is not in the cubin
  CompiledModule m = module(kPtx);
  m.cubin.clear();  // only the driver assembles it
  CHECK(requested_but_absent(m, {{"gemm", "wgmma", 4}}, {}).empty());
  for (const char* ptx :
       {"", ".entry", ".entry gemm", ".entry gemm() { /* setmaxnreg.inc",
        ".entry gemm() { .file \"setmaxnreg.x", ".entry gemm() { setmaxnreg; // setmaxnreg.inc"})
    CHECK(requested_but_absent(module(ptx), {{"gemm", "wgmma", 4}}, {}).empty());
}

TEST_CASE(
    "requested but absent: a kernel without launch bounds loses its setmaxnreg, and ptxas's remark is in the "
    "note") {
  const auto context = testing::compile_only_context();
  testing::KernelCase c = testing::kernel_case("gemm_naive");
  EvaluateOptions options;
  options.arch = "sm_90a";
  const auto notes = [&] {
    auto compiled = compile_candidate(*context, c.solution, c.workload, options);
    if (!compiled) FAIL(compiled.error().to_string());
    std::vector<Finding> found;
    for (const Finding& f : compiled->verdict.findings)
      if (f.code == "requested_but_absent") found.push_back(f);
    return found;
  };
  CHECK(notes().empty());
  const auto replace = [&](std::string_view from, std::string_view to) {
    for (SourceFile& source : c.solution.sources)
      if (const std::size_t at = source.content.find(from); at != std::string::npos)
        source.content.replace(at, from.size(), to);
  };
  replace("float sum = 0;", "asm volatile(\"setmaxnreg.inc.sync.aligned.u32 120;\"); float sum = 0;");
  const std::vector<Finding> found = notes();
  REQUIRE(found.size() == 1);
  INFO(found[0].message);
  CHECK(found[0].message.find("gemm has 1 setmaxnreg in its PTX and none in its machine code") == 0);
  CHECK(found[0].message.find("ptxas: ") != std::string::npos);
  replace("__global__ void gemm", "__global__ void __launch_bounds__(256, 1) gemm");
  CHECK(notes().empty());  // now it is there
}
