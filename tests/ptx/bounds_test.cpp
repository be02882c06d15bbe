// Hostile text: bounded in depth, in memory and in time.
#include "ptx_support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("blocks nest 200 deep and no deeper") {
  CHECK(body_error(repeated("{", 199) + repeated("}", 199)) == "");
  CHECK(body_error(repeated("{", 200)) == "6:200: blocks nest at most 200 deep");
}

TEST_CASE("registers are counted before they are made") {
  CHECK(body_error(".reg .b32 x<4294967295>;") ==
        "6:11: a function has at most 1000000 registers, a module 2000000");
  CHECK(body_error(".reg .v4 .b32 x<4294967295>;") ==
        "6:15: a function has at most 1000000 registers, a module 2000000");
  CHECK(body_error(".reg .b32 x<4294967296>;") ==
        "6:13: the number of registers is an integer from 0 to 4294967295, not '4294967296'");
  CHECK(body_error(".reg .b32 x<999960>; mov.b32 x999959, %r1;") == "");
  CHECK(body_error(".reg .b32 x<999961>;") ==
        "6:11: a function has at most 1000000 registers, a module 2000000");
}

TEST_CASE("declared sizes are not allocated") {
  const ptx::Module module =
      parse_module(".global .b8 a[0x10000000000] = {1, 2};\n.shared .b64 s[0x100000000];");
  CHECK(module.variables[0].bytes == 0x10000000000);
  CHECK(module.variables[0].init.size() == 2);
  CHECK(module.variables[1].bytes == 0x800000000);
  CHECK(error_of(".global .b8 a[2][0x10000000000] = {{1}, {2}};") ==
        "4:42: initialisers leave gaps of more than 64 MiB");
  // Each gap is small, all of them are not.
  std::string gaps;
  for (int i = 0; i < 30; ++i) gaps += ".global .b8 a" + std::to_string(i) + "[2][4000000] = {{1}, {2}};\n";
  CHECK(error_of(gaps).find("initialisers leave gaps of more than 64 MiB") != std::string::npos);
}

TEST_CASE("names that ranges make are bounded") {
  CHECK(error_of(".shared .b8 a<10001>;") ==
        "4:15: the number of names in a range is an integer from 1 to 10000, not '10001'");
  CHECK(error_of(repeated(".shared .b8 a<6000>;\n", 2)) ==
        "5:13: a module has at most 10000 names in ranges of variables and labels");
}

TEST_CASE("long names are not copied without end") {
  const std::string name(65, 'x'), longer(100000, 'x');
  CHECK(body_error(".reg .b32 " + name + "<2>;") ==
        "6:11: the name of a range has at most 64 characters, not 65");
  CHECK(error_of(".shared .b32 " + name + "<2>;") ==
        "4:14: the name of a range has at most 64 characters, not 65");
  CHECK(body_error("mov.b32 %r1, %" + longer + ";") ==
        "6:14: register %" + longer.substr(0, 99) + "... is not declared");
  CHECK(body_error(".reg .b32 " + longer + "; mov.b32 %r1, " + longer + ";") == "");
}

TEST_CASE("tables are not copied without end") {
  std::string body = "t: .branchtargets a" + repeated(", a", 4999) + "; a: ret;\n";
  CHECK(body_error(body + repeated("brx.idx %r1, t;", 100)) == "");
  CHECK(body_error(body + repeated("brx.idx %r1, t;", 1000))
            .find("branch and call tables are used too often") != std::string::npos);
}

TEST_CASE("many names, scopes and labels take no quadratic time") {
  // Some seconds each, were any of it quadratic; the test's own limit would tell.
  std::string body;
  for (int i = 0; i < 40000; ++i) {
    const std::string n = std::to_string(i);
    body += "{ .reg .b32 t" + n + "; .reg .pred q; l" + n + ": mov.b32 t" + n + ", %r1; @q bra l" + n +
            "; @q bra end; }\n";
  }
  CHECK(parse_body(body + "end: ret;").body.size() == 120001);
  std::string names, blocks;
  for (int i = 0; i < 20000; ++i) names += ".reg .b32 x" + std::to_string(i) + "y;\n";
  for (int i = 0; i < 20000; ++i) blocks += "{ .reg .b32 x<1>; mov.b32 x0, x7y; }\n";
  CHECK(parse_body(names + blocks).body.size() == 20000);
}

TEST_CASE("every prefix of a module is an error or a module") {
  const std::string text =
      std::string(kHeader) + ".file 1 \"a.cu\"\n.global .u64 t[2] = {generic(k)+4, 0x1F};\n" +
      kernel(
          "{ .reg .v2 .b32 w; @!%p1 ld.global.v2.b32 {w.x, _}, [%d1+-4]; }\n"
          ".loc 1 2 3, function_name l, inlined_at 1 1 1\nt: .branchtargets l, m; l: m: brx.idx %r1, t;"
          "p: .callprototype (.param .b32 _) _ (); call (%r1), %d1, (), p; mov.f32 %f1, 0f3F800000;");
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const auto module = ptx::parse(std::string_view(text).substr(0, i), "cut.ptx");
    if (!module) CHECK(module.error().where.line > 0);
  }
}
