// What the PTX asks for and the machine code does not have.
#include "core/json.hpp"
#include "evaluate/requested.hpp"
#include "support/catch.hpp"

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
  remark.message = "Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements";
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
  CHECK(requested_but_absent(module(kPtx), {{"plain", "control", 1}}, {}).empty());  // gemm is not in the cubin
  CompiledModule m = module(kPtx);
  m.cubin.clear();  // only the driver assembles it
  CHECK(requested_but_absent(m, {{"gemm", "wgmma", 4}}, {}).empty());
  for (const char* ptx : {"", ".entry", ".entry gemm", ".entry gemm() { /* setmaxnreg.inc", ".entry gemm() { .file \"setmaxnreg.x",
                          ".entry gemm() { setmaxnreg; // setmaxnreg.inc"})
    CHECK(requested_but_absent(module(ptx), {{"gemm", "wgmma", 4}}, {}).empty());
}
