// Functions, launch directives, registers, scopes, labels.
#include "ptx_support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;
using Kind = ptx::Operand::Kind;

TEST_CASE("launch directives") {
  const ptx::Module module = parse_module(
      ".visible .entry a() .maxntid 128, 2 .minnctapersm 2 .maxnreg 64 { ret; }\n"
      ".weak .entry b .reqntid 4, 5, 6 .reqnctapercluster 2 .explicitcluster .maxclusterrank 8 { ret; }\n"
      ".entry c() .blocksareclusters .reqntid 32 .pragma \"nounroll\"; .language 7 .maxnctapersm 3 { ret; }\n"
      ".func d() .noreturn .abi_preserve 10 .abi_preserve_control 5;\n");
  const auto& f = module.functions;
  REQUIRE(f.size() == 4);
  CHECK((f[0].entry && f[0].visible && !f[0].weak));
  CHECK(f[0].max_block == std::array<std::uint32_t, 3>{128, 2, 1});
  CHECK_FALSE(f[0].required_block);
  CHECK((f[0].min_ctas_per_sm == 2u && f[0].max_registers == 64u));
  CHECK((f[1].weak && f[1].explicit_cluster && f[1].max_cluster_rank == 8u));
  CHECK(f[1].required_block == std::array<std::uint32_t, 3>{4, 5, 6});
  CHECK(f[1].required_cluster == std::array<std::uint32_t, 3>{2, 1, 1});
  CHECK(f[2].blocks_are_clusters);
  CHECK((!f[3].entry && f[3].noreturn && f[3].declared_only));
  CHECK(module.notes == std::vector<std::string>{"the directive .language is ignored",
                                                 "the directive .maxnctapersm is ignored",
                                                 "the directive .abi_preserve is ignored",
                                                 "the directive .abi_preserve_control is ignored"});
  CHECK(module.find("c") == &f[2]);
  CHECK(module.find("e") == nullptr);
}

TEST_CASE("instructions keep opcode, modifiers, guard and place") {
  const ptx::Function k = parse_body(
      "\n  @!%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], %r2, "
      "[%r3];\n"
      "@%p1\tbra.uni end;\n/* a\ncomment */ mul .wide .u32 %d1, %r1, 4; end: ret;");
  REQUIRE(k.body.size() == 4);
  CHECK(k.body[0].text() == "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes");
  CHECK(k.body[0].opcode == "cp");
  CHECK(k.body[0].modifiers.size() == 5);
  CHECK(k.body[0].modifiers[4] == "mbarrier::complete_tx::bytes");
  REQUIRE(k.body[0].guard);
  CHECK((k.body[0].guard->negated && k.registers[k.body[0].guard->reg].name == "%p3"));
  CHECK((k.body[0].where.line == 7 && k.body[0].where.column == 9));
  CHECK((k.body[1].guard && !k.body[1].guard->negated));
  CHECK((k.body[2].where.line == 10 && k.body[2].where.column == 12 && k.body[2].text() == "mul.wide.u32"));
  CHECK(k.body[1].operands[0].index == 3);
  CHECK_FALSE(k.body[3].guard);
}

TEST_CASE("registers: ranges, lists, types") {
  const ptx::Function k =
      parse_body(".reg .pred a, %b; .reg .b128 %q<2>, c; .reg .v2 .f32 v; .reg .f16x2 h; ret;");
  REQUIRE(k.registers.size() == 40 + 8);
  CHECK((k.registers[0].name == "%r0" && k.registers[9].name == "%r9" && k.registers[10].name == "%d0"));
  CHECK((k.registers[40].name == "a" && k.registers[40].type == ptx::Type::pred));
  CHECK((k.registers[42].name == "%q0" && k.registers[42].type == ptx::Type::b128));
  CHECK((k.registers[44].name == "c" && k.registers[45].name == "v.x" && k.registers[46].name == "v.y"));
  CHECK(k.registers[47].type == ptx::Type::f16x2);
}

TEST_CASE("names of ranges split in more than one way") {
  const ptx::Function k = parse_body(
      ".reg .b32 a<20>; { .reg .b32 a1<3>; mov.b32 a12, a13; mov.b32 a010, a0; } mov.b32 a12, a19;");
  const auto at = [&](int instruction, int operand) {
    return k.body.at(instruction).operands.at(operand).index - 40;
  };
  CHECK(at(0, 0) == 22);  // a1<3> has a12 and is the inner one
  CHECK(at(0, 1) == 13);
  CHECK(at(1, 0) == 10);
  CHECK(at(2, 0) == 12);
  CHECK(at(2, 1) == 19);
}

TEST_CASE("blocks have names of their own") {
  const ptx::Function k = parse_body(
      "{ .reg .pred p; .reg .b32 %r<2>; wait: mov.b32 %r1, %r5; @p bra done; bra wait; done: }\n"
      "{ .reg .pred p; wait: mov.b32 %r1, 2; @p bra done; bra wait; done: }\n"
      "{ { bra out; } }\nout: mov.b32 %r1, 3; bra out;");
  REQUIRE(k.body.size() == 9);
  CHECK(k.registers[k.body[0].operands[0].index].name == "%r1");
  CHECK(k.body[0].operands[0].index == 42);
  CHECK(k.body[0].operands[1].index == 5);
  CHECK(k.body[3].operands[0].index == 1);
  CHECK(k.body[1].operands[0].index == 3);
  CHECK(k.body[2].operands[0].index == 0);
  CHECK(k.body[4].operands[0].index == 6);
  CHECK(k.body[5].operands[0].index == 3);
  CHECK(k.body[6].operands[0].index == 7);
  CHECK(k.body[8].operands[0].index == 7);
  CHECK(k.labels == std::vector<std::pair<std::string, std::uint32_t>>{
                        {"wait", 0}, {"done", 3}, {"wait", 3}, {"done", 6}, {"out", 7}});
}

TEST_CASE("labels at the end, several at one place, named like opcodes") {
  const ptx::Function k =
      parse_body("bra end; add: two: bra add; $L__BB0_1: bra $L__BB0_1; %x: bra %x; end:");
  REQUIRE(k.body.size() == 4);
  CHECK(k.body[0].operands[0].index == 4);
  CHECK(k.body[1].operands[0].index == 1);
  CHECK(k.body[2].operands[0].index == 2);
  CHECK(k.body[3].operands[0].index == 3);
}

TEST_CASE("functions: declared, defined, calling themselves, aliased") {
  const ptx::Module module = parse_module(
      ".func (.param .b32 r) f(.param .b32 a);\n.func h();\n.func g() { ret; }\n"
      ".func (.param .b32 r) f(.param .b32 a) { .reg .b32 x; call (x), f, (x); ret; }\n"
      ".alias h, g;\n.func (.param .b32 r) f(.param .b32 a);\n.visible .entry k() { call h; ret; }\n");
  REQUIRE(module.functions.size() == 4);
  const ptx::Function& f = module.functions[0];
  CHECK((f.name == "f" && !f.declared_only && f.body.size() == 2));
  CHECK((f.body[0].operands[1].kind == Kind::function && f.body[0].operands[1].index == 0));
  CHECK(module.functions[1].declared_only);
  CHECK(module.find("k")->body[0].operands[0].index == 2);
  CHECK(error_of(".func h();\n.func g();\n.alias h, g;") ==
        "6:1: an alias stands for one function that is defined before it");
  CHECK(error_of(".func g() { ret; }\n.alias h, g;") == "5:8: h is not a function of this module");
  CHECK(error_of(".func g() { ret; }\n.func h() { ret; }\n.alias h, g;") ==
        "6:8: h has a body, so it is no alias");
}

TEST_CASE(".loc") {
  const ptx::Module module = parse_module(
      ".file 1 \"a.cu\"\n.entry k() {\nret;\n.loc 1 5 2\nret;\nret;\n.loc 2 7 3, function_name $L__s0, "
      "inlined_at 1 9 4\n"
      "ret;\n.loc 1 5 2\nret;\n.loc 2 8 1, function_name $L__s0 + 4, inlined_at 1 9 4\nret;\n}\n"
      ".entry j() { ret; }\n.file 2 \"dir\\b.cuh\", 12, 34\n");
  const auto& body = module.functions[0].body;
  CHECK(module.source_line(body[0].location) == "");
  CHECK(module.source_line(body[1].location) == "a.cu:5:2");
  CHECK(body[2].location == body[1].location);
  CHECK(module.source_line(body[3].location) == "dir\\b.cuh:7:3 (inlined at a.cu:9)");
  CHECK(body[4].location == body[1].location);
  CHECK(module.functions[1].body[0].location == -1);
  CHECK(module.locations.size() == 4);
  CHECK(module.source_line(99) == "");
  CHECK(parse_module(".entry k() { .loc 7 1 1\nret; }").notes ==
        std::vector<std::string>{".loc names file 7, which no .file gives"});
}

TEST_CASE("statements that are none") {
  CHECK(body_error("bra nowhere;") == "6:5: label nowhere is not defined in this scope");
  CHECK(body_error("{ in: ret; }\nbra in;") == "7:5: label in is not defined in this scope");
  CHECK(body_error("{ bra LAB_2; } { LAB_2: ret; }") == "6:7: label LAB_2 is not defined in this scope");
  CHECK(body_error("a: ret; a: ret;") == "6:9: label a is already declared in this scope, on line 6");
  CHECK(body_error("a: ret; .reg .b32 a;") == "6:19: a is already declared in this scope, on line 6");
  CHECK(body_error(".reg .b32 %r5;") == "6:11: %r5 is already declared in this scope, on line 5");
  CHECK(body_error(".reg .b32 x3; .reg .b32 x<4>;") ==
        "6:25: x<4> is already declared in this scope, on line 6");
  CHECK(body_error(".reg .b32 x<4>; .reg .b32 x<2>;") ==
        "6:27: x<2> is already declared in this scope, on line 6");
  CHECK(body_error(".reg .b32 n;") == "6:11: n is already declared in this scope, on line 4");
  CHECK(body_error(".reg .b33 x;") == "6:6: unknown type '.b33' in a declaration of .reg");
  CHECK(body_error(".reg x;") == "6:6: expected a type behind .reg, not 'x'");
  CHECK(body_error(".reg .b32 x<;") == "6:13: expected a number for the number of registers, not ';'");
  CHECK(body_error(";") == "6:1: expected an instruction or a label, not ';'");
  CHECK(body_error("@%p1 ;") == "6:6: expected an instruction behind a guard, not ';'");
  CHECK(body_error(".frob 4;") == "6:1: unknown directive '.frob' in function k");
  CHECK(body_error(".extern .shared .b8 s[];") == "6:1: what is .extern is declared outside of functions");
  CHECK(body_error(".branchtargets a;") == "6:1: .branchtargets stands behind a label");
  CHECK(body_error("} }") == "6:3: expected a directive, not '}'");
  CHECK(body_error("{ ret;") == "4:49: this '{' is not closed: the text ends in function k");
  CHECK(body_error("ret }") == "6:5: expected an operand of the instruction ret, not '}'");
  CHECK(error_of(".entry k() .maxntid 1,2,3,4 { ret; }") ==
        "4:26: expected ';' or '{' behind the header of function k, not ','");
  CHECK(error_of(".entry k() .maxntid 0 { ret; }") ==
        "4:21: .maxntid is an integer from 1 to 2147483647, not '0'");
  CHECK(error_of(".entry k() .frob { ret; }") == "4:12: unknown directive '.frob' of function k");
  CHECK(error_of(".entry k() { ret; }\n.entry k() { ret; }") ==
        "5:8: function k is already defined, on line 4");
  CHECK(error_of(".func k();\n.entry k() { ret; }") ==
        "5:8: k is an .entry here and a .func there, or the reverse: see line 4");
  CHECK(error_of(".func k(.param .b32 a);\n.func k(.param .b64 a) { ret; }") ==
        "5:7: function k has other parameters or returns than on line 4");
  CHECK(error_of(".global .u32 k;\n.entry k() { ret; }") ==
        "5:8: k is already declared as a variable, on line 4");
  CHECK(error_of(".entry () { ret; }") == "4:8: expected a name behind .entry, not '('");
}
