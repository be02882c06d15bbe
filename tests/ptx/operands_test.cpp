#include "ptx_support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;
using Kind = ptx::Operand::Kind;

namespace {

std::string show(const ptx::Function& function, const ptx::Operand& operand) {
  const auto parts = [&](std::string_view open, std::string_view between, std::string_view close) {
    std::string text(open);
    for (std::size_t i = 0; i < operand.parts.size(); ++i)
      text += (i > 0 ? std::string(between) : "") + show(function, operand.parts[i]);
    return text + std::string(close);
  };
  const std::string offset = operand.offset == 0 ? "" : "+" + std::to_string(operand.offset);
  switch (operand.kind) {
    case Kind::reg:
      return (operand.negated ? "!" : "") + function.registers.at(operand.index).name;
    case Kind::integer:
      return std::to_string(static_cast<std::int64_t>(operand.bits));
    case Kind::f32:
      return "f32:" + std::to_string(operand.bits);
    case Kind::f64:
      return "f64:" + std::to_string(operand.bits);
    case Kind::variable:
      return (operand.module_scope ? "module#" + std::to_string(operand.index)
                                   : function.variables.at(operand.index).name) +
             offset;
    case Kind::function:
      return "function#" + std::to_string(operand.index);
    case Kind::special:
      return "special:" + operand.name;
    case Kind::label:
      return "@" + std::to_string(operand.index);
    case Kind::address:
      return parts("[", "?", offset + "]");
    case Kind::vector:
      return parts("{", ",", "}");
    case Kind::tensor:
      return parts("tensor(", ",", ")");
    case Kind::pair:
      return parts("", "|", "");
    case Kind::sink:
      return "_";
    case Kind::list:
      return parts((operand.name.empty() ? "" : operand.name + "#" + std::to_string(operand.index)) + "(",
                   ",", ")");
  }
  return "?";
}

// The operands of the last instruction of a body, separated by blanks.
std::string operands(const std::string& body, const std::string& before = "") {
  const ptx::Module module = parse_module(before + kernel(body));
  const ptx::Function& function = *module.find("k");
  std::string text;
  for (const ptx::Operand& operand : function.body.back().operands)
    text += (text.empty() ? "" : " ") + show(function, operand);
  return text;
}

}  // namespace

TEST_CASE("registers, immediates, sinks, pairs") {
  CHECK(operands("add.s32 %r1, %r2, -3;") == "%r1 %r2 -3");
  CHECK(operands("setp.lt.s32 %p1|%p2, %r1, %r2;") == "%p1|%p2 %r1 %r2");
  CHECK(operands("setp.lt.s32 _|%p2, %r1, %r2;") == "_|%p2 %r1 %r2");
  CHECK(operands("setp.lt.s32 %p2 | _, %r1, %r2;") == "%p2|_ %r1 %r2");
  CHECK(operands("setp.eq.and.s32 %p1, %r1, 0, !%p3;") == "%p1 %r1 0 !%p3");
  CHECK(operands("elect.sync _|%p1, -1;") == "_|%p1 -1");
  CHECK(operands("mov.b64 {_, %r1}, %d1;") == "{_,%r1} %d1");
  CHECK(operands("mov.f32 %f1, 0f3F800000;") == "%f1 f32:1065353216");
  CHECK(operands("wgmma.mma_async.sync {%f0, %f1}, %d1, %d2, %p1, 1, 1, 0, 1;") ==
        "{%f0,%f1} %d1 %d2 %p1 1 1 0 1");
  CHECK(operands("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x1a, !%p2;") == "%r1|%p1 %r2 %r3 %r4 26 !%p2");
}

TEST_CASE("special registers and WARP_SZ") {
  CHECK(operands("mov.u32 %r1, %tid.x;") == "%r1 special:%tid.x");
  CHECK(operands("mov.u32 %r1, %cluster_ctaid.z;") == "%r1 special:%cluster_ctaid.z");
  CHECK(operands("mov.v4.u32 {%r1, %r2, %r3, _}, %tid;") == "{%r1,%r2,%r3,_} special:%tid");
  CHECK(operands("mov.u32 %r1, %laneid;") == "%r1 special:%laneid");
  CHECK(operands("mov.u32 %r1, %lanemask_lt;") == "%r1 special:%lanemask_lt");
  CHECK(operands("mov.u64 %d1, %globaltimer;") == "%d1 special:%globaltimer");
  CHECK(operands("mov.u64 %d1, %pm7_64;") == "%d1 special:%pm7_64");
  CHECK(operands("mov.u32 %r1, %envreg31;") == "%r1 special:%envreg31");
  CHECK(operands("mov.u32 %r1, %reserved_smem_offset_1;") == "%r1 special:%reserved_smem_offset_1");
  CHECK(operands("mov.u32 %r1, WARP_SZ;") == "%r1 special:WARP_SZ");
  CHECK(operands(".reg .b32 %laneid; mov.u32 %r1, %laneid;") == "%r1 %laneid");
  CHECK(body_error("mov.u32 %r1, %envreg32;") == "6:14: register %envreg32 is not declared");
  CHECK(body_error("mov.u32 %r1, %tid.q;") == "6:18: the special register %tid has no component '.q'");
  CHECK(body_error("mov.u32 %r1, %laneid.x;") == "6:21: the special register %laneid has no component '.x'");
}

TEST_CASE("addresses") {
  CHECK(operands("ld.global.u32 %r1, [%d1];") == "%r1 [%d1]");
  CHECK(operands("@%p1 ld.global.b32 { %r1 }, [ %d1 + 0 ];") == "{%r1} [%d1]");
  CHECK(operands("ld.global.u32 %r1, [%d1+4];") == "%r1 [%d1+4]");
  CHECK(operands("ld.global.u32 %r1, [%d1+-4];") == "%r1 [%d1+-4]");
  CHECK(operands("ld.global.u32 %r1, [%d1+4*2-1];") == "%r1 [%d1+7]");
  CHECK(operands("ld.param.u32 %r1, [q+4];") == "%r1 [q+4]");
  CHECK(operands("ld.local.u32 %r1, [4];") == "%r1 [4]");
  CHECK(operands("ld.local.u32 %r1, [4+8];") == "%r1 [12]");
  CHECK(operands("ld.global.u32 %r1, [g+4];", ".global .u32 g[4];\n") == "%r1 [module#0+4]");
  CHECK(operands(".shared .b8 s[64]; st.shared.u32 [s+8], %r1;") == "[s+8] %r1");
  CHECK(operands("mov.u64 %d1, g+8;", ".global .u32 g[4];\n") == "%d1 module#0+8");
  CHECK(operands("mov.b32 %r1, q;") == "%r1 q");
  CHECK(operands("mov.u64 %d1, g[2];", ".global .u16 g[4];\n") == "%d1 module#0+4");
  CHECK(operands("ld.global.u16 %r1, g[1+2];", ".global .u16 g[4];\n") == "%r1 [module#0+6]");
  CHECK(body_error("ld.global.u32 %r1, [%d1-4];") == "6:24: an offset is added: write +-4 for -4");
  CHECK(body_error("ld.global.u32 %r1, [%d1+4;") == "6:26: expected ']' at the end of an address, not ';'");
  CHECK(body_error("ld.global.u32 %r1, [k];") == "6:21: the function k is no place in memory");
  CHECK(body_error("ld.global.u32 %r1, [nowhere];") ==
        "6:21: nowhere is not declared: no register or variable of that name is in scope here");
  CHECK(body_error("ld.global.u32 %r1, [1.5];") == "6:21: an address is an integer");
  CHECK(body_error("ld.global.u32 %r1, [];") == "6:21: expected an address behind '[', not ']'");
}

TEST_CASE("tensor operands") {
  CHECK(operands("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%r1], [%d1, {%r2, %r3}], [%r4];") == "[%r1] tensor([%d1],{%r2,%r3}) [%r4]");
  CHECK(operands("cp.async.bulk.tensor.3d.x [%r1], [%d1, {%r2, %r3, 0} ], [%r4], {%r5};") ==
        "[%r1] tensor([%d1],{%r2,%r3,0}) [%r4] {%r5}");
  CHECK(operands("cp.async.bulk.prefetch.tensor.3d.x [%d1, {%r2, %r3, %r4}, {%r5}];") ==
        "tensor([%d1],{%r2,%r3,%r4},{%r5})");
  CHECK(operands("prefetch.tensormap [q];") == "[q]");
}

TEST_CASE("vector registers are their components") {
  const std::string declared = ".reg .v4 .b32 v; .reg .v2 .f32 w<2>; ";
  CHECK(operands(declared + "add.u32 %r1, v.x, v.w;") == "%r1 v.x v.w");
  CHECK(operands(declared + "ld.global.v4.u32 v, [%d1];") == "{v.x,v.y,v.z,v.w} [%d1]");
  CHECK(operands(declared + "mov.f32 %f1, w1.y;") == "%f1 w1.y");
  CHECK(operands(declared + "mov.f32 %f1, v.g;") == "%f1 v.y");
  CHECK(body_error(declared + "mov.f32 %f1, w1.z;").find("w1 has no component '.z'") != std::string::npos);
  CHECK(body_error("mov.f32 %f1, %r1.x;") == "6:17: %r1 is no vector, so it has no component '.x'");
}

TEST_CASE("calls") {
  const std::string f = ".func (.param .b32 r) f(.param .b32 a) { ret; }\n.func g() { ret; }\n";
  CHECK(operands("call.uni (%r1), f, (%r2);", f) == "(%r1) function#0 (%r2)");
  CHECK(operands("call g;", f) == "function#1 ()");
  CHECK(operands("call g, ();", f) == "function#1 ()");
  CHECK(operands("call (%r1), f, (5);", f) == "(%r1) function#0 (5)");
  CHECK(operands("{ .param .b32 a0; .param .b32 r0; call.uni (r0), f, (a0); }", f) == "(r0) function#0 (a0)");
  CHECK(operands("t: .calltargets f, g; call (%r1), %d1, (%r2), t;", f) ==
        "(%r1) %d1 (%r2) t#0(function#0,function#1)");
  CHECK(operands(
            "p1 : .callprototype ()_ (.param .b64 _);"
            "p2: .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn; call (%r1), %d1, (%r2), p2;") ==
        "(%r1) %d1 (%r2) p2#1()");
  CHECK(operands("p: .callprototype _; call %d1, p;") == "%d1 () p#0()");
  CHECK(operands("mov.u64 %d1, f;", f) == "%d1 function#0");

  const ptx::Function indirect = parse_body(
      "p: .callprototype (.param .align 8 .b8 _[16]) _ (.param .b64 _, .param .f32 _);"
      "call (q), %d1, (q, n), p;");
  REQUIRE(indirect.prototypes.size() == 1);
  CHECK(indirect.prototypes[0].name == "p");
  REQUIRE(indirect.prototypes[0].returns.size() == 1);
  CHECK(indirect.prototypes[0].returns[0].bytes == 16);
  REQUIRE(indirect.prototypes[0].parameters.size() == 2);
  CHECK(indirect.prototypes[0].parameters[1].type == ptx::Type::f32);

  CHECK(body_error("call (%r1);") == "6:1: a call names a function or a register");
  CHECK(
      body_error("call nobody;") ==
      "6:6: nobody is not declared: no register, variable, function or label of that name is in scope here");
  CHECK(body_error("t: .calltargets nobody;") == "6:17: nobody is not a function of this module");
}

TEST_CASE("branch tables") {
  CHECK(operands("t: .branchtargets a, b, a; a: ret; b: brx.idx %r1, t;") == "%r1 t#0(@0,@1,@0)");
  CHECK(operands("brx.idx %r1, t; t: .branchtargets l<2>; l0: ret; l1: bra l1;") == "@2");
  CHECK(operands("l0: ret; l1: t: .branchtargets l<2>; brx.idx %r1, t;") == "%r1 t#0(@0,@1)");
  CHECK(body_error("t: .branchtargets a; ret;") == "6:19: label a is not defined in this scope");
  CHECK(body_error("t: .branchtargets t; brx.idx %r1, t;") == "6:19: t is a table, not a label");
}

TEST_CASE("operands that are none") {
  CHECK(body_error("mov.u32 %r1, %r99;") == "6:14: register %r99 is not declared");
  CHECK(body_error("mov.u32 %r1, x;") ==
        "6:14: x is not declared: no register, variable, function or label of that name is in scope here");
  CHECK(body_error("mov.u32 %r1, -%r2;") == "6:15: expected a constant, not '%r2'");
  CHECK(body_error("mov.u32 %r1, ;") == "6:14: expected an operand of the instruction mov, not ';'");
  CHECK(body_error("mov.u32 %r1 %r2;") == "6:13: expected ',' or ';' in the instruction mov.u32, not '%r2'");
  CHECK(body_error("mov.u32 %r1, %r2\nret;") ==
        "7:1: expected ',' or ';' in the instruction mov.u32, not 'ret'");
  CHECK(body_error("mov.b64 {}, %d1;") == "6:10: a vector has at least one element");
  CHECK(body_error("mov.b64 {%r1, %d1;") == "6:18: expected '}' or ',' in a list of operands, not ';'");
  CHECK(body_error("setp.eq.s32 %p1|!%p2, %r1, 0;") == "6:17: a register or _ stands behind |, not '!'");
  CHECK(body_error("setp.eq.s32 %p1|4, %r1, 0;") == "6:17: a register or _ stands behind |, not '4'");
  CHECK(body_error("selp.b32 %r1, 1, 2, !q;") ==
        "6:22: only a predicate is negated with !, and q is no register");
  CHECK(body_error("@%p77 ret;") == "6:2: predicate %p77 is not declared");
  CHECK(body_error("@q ret;") == "6:2: q is not a register, so it cannot guard an instruction");
  CHECK(body_error("@%p1 { ret; }") == "6:6: a guard stands before one instruction, not before a block");
  CHECK(body_error("mov.u64 %d1, k+4;") == "6:15: expected ',' or ';' in the instruction mov.u64, not '+'");
  std::string deep = "mov.b64 ";
  for (int i = 0; i < 100000; ++i) deep += "{";
  CHECK(body_error(deep) == "6:17: operands nest at most 8 deep");
  deep = "mov.b64 ";
  for (int i = 0; i < 100000; ++i) deep += "[%d1,";
  CHECK(body_error(deep) == "6:49: operands nest at most 8 deep");
}
