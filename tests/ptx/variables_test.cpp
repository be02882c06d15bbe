// Variables, parameters, initialisers.
#include "ptx_support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;
using Bytes = std::vector<std::uint8_t>;

namespace {

ptx::Variable last_variable(const std::string& text) { return parse_module(text).variables.back(); }

}  // namespace

TEST_CASE("state spaces, types, alignment, linking") {
  const ptx::Module module = parse_module(
      ".visible .global .align 8 .u32 a;\n.weak .const .f64 b;\n.common .global .b8 c[3];\n"
      ".extern .shared .align 1024 .b8 d[];\n.shared .v4 .f32 e[2];\n.global .attribute(.managed) .s16 f, "
      "g[2][5];\n"
      ".global .b128 h;\n.global .u32 x<3>;");
  REQUIRE(module.variables.size() == 11);
  const auto& v = module.variables;
  CHECK((v[0].name == "a" && v[0].visible && v[0].bytes == 4 && v[0].align == 8));
  CHECK(v[0].where.line == 4);
  CHECK(v[0].where.column == 32);
  CHECK((v[1].space == ptx::Space::constant && v[1].weak && v[1].type == ptx::Type::f64 && v[1].align == 8));
  CHECK((v[2].common && v[2].bytes == 3 && v[2].align == 1));
  CHECK((v[3].external && v[3].unsized && v[3].bytes == 0 && v[3].align == 1024));
  CHECK((v[3].space == ptx::Space::shared));
  CHECK((v[4].vector == 4 && v[4].bytes == 32 && v[4].align == 16));
  CHECK((v[5].name == "f" && v[5].bytes == 2));
  CHECK((v[6].name == "g" && v[6].bytes == 20 && v[6].align == 2));
  CHECK((v[7].bytes == 16 && v[7].align == 16));
  CHECK((v[8].name == "x0" && v[10].name == "x2"));
}

TEST_CASE("scalar and array initialisers") {
  CHECK(last_variable(".global .u32 a = 0x01020304;").init == Bytes{4, 3, 2, 1});
  CHECK(last_variable(".global .u32 a;").init.empty());
  CHECK(last_variable(".global .b8 a[4] = {1, 2};").init == Bytes{1, 2});
  CHECK(last_variable(".global .b8 a[4] = {1, 2};").bytes == 4);
  CHECK(last_variable(".global .b8 a[] = {1, 2, 258};").init == Bytes{1, 2, 2});
  CHECK(last_variable(".global .b8 a[] = {1, 2, 258};").bytes == 3);
  CHECK_FALSE(last_variable(".global .b8 a[] = {1};").unsized);
  CHECK(last_variable(".const .s16 a[2] = {-1, (4+2)*3};").init == Bytes{0xff, 0xff, 18, 0});
  CHECK(last_variable(".global .f32 a[2] = {1.5, 0f3F800000};").init ==
        Bytes{0, 0, 0xc0, 0x3f, 0, 0, 0x80, 0x3f});
  CHECK(last_variable(".global .f64 a = 1.5;").init == Bytes{0, 0, 0, 0, 0, 0, 0xf8, 0x3f});
  CHECK(last_variable(".global .b32 a = 1.5;").init == Bytes{0, 0, 0xc0, 0x3f});
  CHECK(last_variable(".global .b128 a = 1;").init.size() == 16);
  CHECK(last_variable(".global .b8 a[2] = {};").init.empty());
}

TEST_CASE("nested initialisers fill rows") {
  CHECK(last_variable(".global .b8 a[2][3] = {{1, 2}, {3}};").init == Bytes{1, 2, 0, 3});
  const ptx::Variable open = last_variable(".global .b8 a[][2][2] = {{{1}, {2}}, {{3, 4}}, {}};");
  CHECK(open.init == Bytes{1, 0, 2, 0, 3, 4});
  CHECK(open.bytes == 12);
  CHECK(last_variable(".global .v2 .b8 a[2] = {{1, 2}, {3, 4}};").init == Bytes{1, 2, 3, 4});
  CHECK(last_variable(".global .v4 .b8 a = {1, 2, 3, 4};").init == Bytes{1, 2, 3, 4});
}

TEST_CASE("initialisers with symbols") {
  const ptx::Variable table = last_variable(
      ".global .u32 x;\n.func f() { ret; }\n"
      ".global .u64 t[6] = {x, x+4, generic(x), generic(x)+-8, f, 5};");
  CHECK(table.init == [] {
    Bytes bytes(48);
    bytes[40] = 5;
    return bytes;
  }());
  REQUIRE(table.relocations.size() == 5);
  const auto& r = table.relocations;
  CHECK((r[0].symbol == "x" && r[0].offset == 0 && r[0].addend == 0 && r[0].bytes == 8 && !r[0].generic));
  CHECK((r[1].offset == 8 && r[1].addend == 4));
  CHECK((r[2].generic && r[2].addend == 0));
  CHECK((r[3].generic && r[3].addend == -8 && r[3].offset == 24));
  CHECK((r[4].symbol == "f" && r[4].offset == 32));

  const ptx::Variable bytes = last_variable(
      ".global .u32 x;\n.global .u8 t[3] = {0xff(x), 0xFF00(generic(x)), 0xff00000000000000(x)};");
  REQUIRE(bytes.relocations.size() == 3);
  CHECK((bytes.relocations[0].mask == 0xff && bytes.relocations[0].bytes == 1));
  CHECK((bytes.relocations[1].mask == 0xff00 && bytes.relocations[1].generic &&
         bytes.relocations[1].offset == 1));
  CHECK(bytes.relocations[2].mask == 0xff00000000000000);
  CHECK(last_variable(".global .u32 x;\n.global .u32 y = x;").relocations.at(0).bytes == 4);
}

TEST_CASE(".extern and its definition are one variable") {
  const ptx::Module before = parse_module(".extern .global .u32 a;\n.visible .global .u32 a = 3;");
  REQUIRE(before.variables.size() == 1);
  CHECK_FALSE(before.variables[0].external);
  CHECK(before.variables[0].init.size() == 4);
  const ptx::Module after = parse_module(".global .u32 a = 3;\n.extern .global .u32 a;");
  REQUIRE(after.variables.size() == 1);
  CHECK(after.variables[0].init.size() == 4);
  CHECK(parse_module(".extern .shared .b8 s[];\n.extern .shared .b8 s[];").variables.size() == 1);
}

TEST_CASE("parameters") {
  const ptx::Function k = parse_module(
                              ".entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr b,\n"
                              ".param .u32 .ptr .shared c, .param .align 64 .b8 d[128], .param .f32 e,\n"
                              ".hidden .param .align 64 .b8 h[128], .param .v2 .u32 v) { ret; }")
                              .functions.at(0);
  REQUIRE(k.parameter_count == 7);
  REQUIRE(k.variables.size() == 7);
  const auto& p = k.variables;
  CHECK(p[0].space == ptx::Space::param);
  CHECK(p[0].pointee_space == ptx::Space::global);
  CHECK((p[0].pointee_align == 16 && p[0].bytes == 8 && p[0].align == 8));
  CHECK(p[1].pointee_space == ptx::Space::generic);
  CHECK(p[2].pointee_space == ptx::Space::shared);
  CHECK((p[3].bytes == 128 && p[3].align == 64 && !p[3].pointee_space));
  CHECK((p[4].name == "e" && p[4].type == ptx::Type::f32));
  CHECK((p[6].bytes == 8 && p[6].align == 8));

  const ptx::Module module = parse_module(
      ".extern .func (.param .b32 retval) vprintf (.param .b64 format, .param .b64 values) ;\n"
      ".func (.param .align 8 .b8 r[16]) f(.param .b32 a, .param .b8 rest[]) { .local .b8 l[4]; ret; }");
  CHECK((module.functions[0].declared_only && module.functions[0].return_count == 1));
  const ptx::Function& f = module.functions[1];
  CHECK((f.parameter_count == 2 && f.return_count == 1 && f.variables.size() == 4));
  CHECK((f.variables[0].name == "a" && f.variables[1].unsized && f.variables[2].name == "r"));
  CHECK(f.variables[3].space == ptx::Space::local);
}

TEST_CASE("declarations that are none") {
  CHECK(error_of(".global .u32 a[];") ==
        "4:14: the array 'a' has no size: only .extern arrays and initialised ones may leave it open");
  CHECK(error_of(".global .u32 a[2] = {1, 2, 3};") ==
        "4:28: the initialiser has more elements than its array");
  CHECK(error_of(".global .u32 a[2] = {1, 2,};") == "4:27: the initialiser has more elements than its array");
  CHECK(error_of(".global .u32 a[3] = {1, 2,};") == "4:27: expected a constant, not '}'");
  CHECK(error_of(".global .u32 a = {1};") == "4:18: a single value's initialiser has no braces");
  CHECK(error_of(".global .u32 a[2] = 1;") == "4:21: an array's initialiser is a list in braces, not '1'");
  CHECK(error_of(".global .u32 a[2][2] = {1, 2};") ==
        "4:25: each row of an array has its own list in braces, not '1'");
  CHECK(error_of(".global .u32 a[2] = {{1}};") == "4:22: an initialiser nests deeper than its array");
  CHECK(error_of(".global .f32 a = 1;") ==
        "4:18: an element of type .f32 takes a number with point or exponent, 0f... or 0d..., not '1'");
  CHECK(error_of(".global .u32 a = 1.5;") == "4:18: an element of type .u32 takes an integer, not '1.5'");
  CHECK(error_of(".global .u64 a = b;") ==
        "4:18: b is not declared: no variable or function of that name stands before");
  CHECK(error_of(".global .u64 a = a;") ==
        "4:18: a is not declared: no variable or function of that name stands before");
  CHECK(error_of(".global .u16 x;\n.global .u16 a = x;") ==
        "5:18: the address of x takes 8 or 4 bytes, an element here has 2");
  CHECK(error_of(".global .u16 x;\n.global .u8 a = 0xf0(x);") ==
        "5:17: the mask of an address is 0xff, 0xff00, ... up to 0xff00000000000000");
  CHECK(error_of(".global .u16 x;\n.global .u64 a = x-4;") == "5:19: an offset is added: write +-4 for -4");
  CHECK(error_of(".shared .u32 a = 1;") == "4:16: a variable of .shared has no initialiser");
  CHECK(error_of(".global .b8 a[6] = \"hello\";") ==
        "4:20: an array's initialiser is a list in braces, not \"hello\"");
  CHECK(error_of(".global .align 3 .u32 a;") == "4:16: an alignment is a power of two, not 3");
  CHECK(error_of(".global .u32 a;\n.global .u32 a;") ==
        "5:14: 'a' is already declared in this module, on line 4");
  CHECK(error_of(".global .pred a;") == "4:1: only registers have the type .pred");
  CHECK(error_of(".global a;") == "4:9: expected a type in a declaration of .global, not 'a'");
  CHECK(error_of(".global .u32 .u64 a;") == "4:14: this declaration has a type already");
  CHECK(error_of(".global .texref a;") == "4:9: opaque variables of type .texref are not supported");
  CHECK(error_of(".global .ptr .u32 a;") == "4:9: .ptr is an attribute of parameters only");
  CHECK(error_of(".global .fancy .u32 a;") ==
        "4:9: unknown type or attribute '.fancy' in a declaration of .global");
  CHECK(error_of(".global .u32 a[2][] = {{1}};") ==
        "4:18: only the first extent of an array may be left open");
  CHECK(error_of(".global .u32 a") ==
        "4:15: expected ';' at the end of a declaration of .global, not the end of the text");
  CHECK(error_of(".local .u32 a;") == "4:1: a variable of .local belongs in a function");
  CHECK(error_of(".reg .u32 a;") == "4:1: registers are declared in functions");
  CHECK(error_of(".global .u32 a[-1];") == "4:16: the extent of array 'a' is an integer from 0 to 2^48");
  CHECK(error_of(".global .u32 a[0xffffffffff][0xffffffffff];") ==
        "4:14: the variable 'a' is larger than 2^48 bytes");
  CHECK(error_of(".global .u32 a[0][0xffffffffff][0xffffffffff];") ==
        "4:14: the variable 'a' is larger than 2^48 bytes");
  CHECK(error_of(".global .b8 a[][0] = {{}};") == "4:22: an array with an extent of 0 has no initialiser");
  CHECK(error_of(".global .b8 a[] = {};") == "4:13: an array without a size needs at least one element");
  CHECK(error_of(".entry k(.reg .u32 a) { ret; }") ==
        "4:10: formal parameters in registers are not supported: declare them .param");
  CHECK(error_of(".entry k(.param .u32 a, .param .u32 a) { ret; }") ==
        "4:37: two parameters of k are named a");
  CHECK(error_of(".entry k(.param .u32 _) { ret; }") == "4:22: a parameter of a function has a name");
}
