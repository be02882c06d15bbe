// Where ptxas may round once instead of twice, and where it folds a function of a constant.
#include "support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// The fidelity of the first instruction spelled @p text.
Fidelity fidelity(const std::string& body, std::string_view text) {
  Machine machine(
      ".visible .entry k()\n{\n.reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b16 %h<9>; .reg .b32 %r<9>;\n" + body +
      "\nret;\n}\n");
  const auto kernel = machine.kernel();
  for (const OpInfo& info : kernel->info) {
    if (info.text == text && !info.family.empty()) return info.fidelity;
  }
  FAIL("no instruction " << text);
  return Fidelity::exact;
}

}  // namespace

TEST_CASE("an unrounded product that an unrounded sum reads may be fused", "[emulator]") {
  const std::string use = "add.f32 %f3, %f4, %f1;";
  CHECK(fidelity("mul.f32 %f1, %f2, %f2; " + use, "mul.f32") == Fidelity::ptxas);
  CHECK(fidelity("mul.f32 %f1, %f2, %f2; sub.f32 %f3, %f1, %f4;", "mul.f32") == Fidelity::ptxas);
  CHECK(fidelity("mul.ftz.f32 %f1, %f2, %f2; add.ftz.f32 %f3, %f1, %f4;", "mul.ftz.f32") == Fidelity::ptxas);
  CHECK(fidelity("mul.f64 %d1, %d2, %d2; add.f64 %d3, %d1, %d4;", "mul.f64") == Fidelity::ptxas);
  CHECK(fidelity("mul.f16x2 %r1, %r2, %r2; sub.f16x2 %r3, %r4, %r1;", "mul.f16x2") == Fidelity::ptxas);
  CHECK(fidelity("mul.rn.f32 %f1, %f2, %f2; " + use, "mul.rn.f32") == Fidelity::exact);
  CHECK(fidelity("mul.f32 %f1, %f2, %f2; add.rn.f32 %f3, %f4, %f1;", "mul.f32") == Fidelity::exact);
  CHECK(fidelity("mul.f32 %f1, %f2, %f2; add.f32 %f3, %f4, %f2;", "mul.f32") == Fidelity::exact);
  CHECK(fidelity("mul.f32 %f1, %f2, %f2; add.s32 %r3, %r4, %r1;", "mul.f32") == Fidelity::exact);
  CHECK(fidelity("mul.f32 %f1, %f2, %f2; " + use, "add.f32") == Fidelity::exact);
}

TEST_CASE("a function of a constant is folded to other bits", "[emulator]") {
  CHECK(fidelity("ex2.approx.f32 %f1, 0f3F000000;", "ex2.approx.f32") == Fidelity::ptxas);
  CHECK(fidelity("div.full.f32 %f1, %f2, 0f40400000;", "div.full.f32") == Fidelity::ptxas);
  CHECK(fidelity("div.full.f32 %f1, 0f40400000, %f2;", "div.full.f32") == Fidelity::exact);
  CHECK(fidelity("ex2.approx.f32 %f1, %f2;", "ex2.approx.f32") == Fidelity::exact);
  CHECK(fidelity("tanh.approx.f32 %f1, 0f3F000000;", "tanh.approx.f32") == Fidelity::exact);
  CHECK(fidelity("rcp.rn.f32 %f1, 0f40400000;", "rcp.rn.f32") == Fidelity::exact);
  // In a register: as NVRTC writes rsqrtf(128).
  const std::string known = "mov.f32 %f2, 0f43000000; ";
  CHECK(fidelity(known + "rsqrt.approx.f32 %f1, %f2;", "rsqrt.approx.f32") == Fidelity::ptxas);
  CHECK(fidelity(known + "mov.f32 %f3, %f2; lg2.approx.f32 %f1, %f3;", "lg2.approx.f32") == Fidelity::ptxas);
  CHECK(fidelity(known + "div.full.f32 %f1, %f4, %f2;", "div.full.f32") == Fidelity::ptxas);
  CHECK(fidelity(known + "div.full.f32 %f1, %f2, %f4;", "div.full.f32") == Fidelity::exact);
  CHECK(fidelity(known + "div.rn.f32 %f1, %f4, %f2;", "div.rn.f32") == Fidelity::exact);
  CHECK(fidelity(known + "add.f32 %f2, %f2, %f2; ex2.approx.f32 %f1, %f2;", "ex2.approx.f32") ==
        Fidelity::exact);
  CHECK(fidelity(known + "ex2.approx.f32 %f1, %f3;", "ex2.approx.f32") == Fidelity::exact);
}
