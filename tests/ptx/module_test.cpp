// Module directives, notes, and the lexer's errors.
#include "ptx_support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

std::string raw_error(std::string_view text) {
  const auto module = ptx::parse(text, "m.ptx");
  return module ? "" : module.error().to_string();
}

}  // namespace

TEST_CASE("the module's head") {
  const auto module =
      ptx::parse("// comment\n.version 8.7\n.target sm_100a, debug\n.address_size 32\n", "m.ptx");
  REQUIRE(module);
  CHECK((module->version_major == 8 && module->version_minor == 7));
  CHECK(module->targets == std::vector<std::string>{"sm_100a", "debug"});
  CHECK(module->address_bits == 32);
  CHECK(ptx::parse(".version 7.8 .target sm_90", "m.ptx")->address_bits == 64);
  CHECK(ptx::parse(".version 9.9 .target sm_90", "m.ptx")->notes ==
        std::vector<std::string>{"PTX 9.9 is newer than this parser, which knows 9.5"});
  CHECK(raw_error("") == "m.ptx:1:1: a PTX module begins with .version, not with the end of the text");
  CHECK(raw_error("int main() {}") == "m.ptx:1:1: a PTX module begins with .version, not with 'int'");
  CHECK(raw_error(".version nine") == "m.ptx:1:10: expected a version behind .version, not 'nine'");
  CHECK(raw_error(".version 9") == "m.ptx:1:10: a version has the form 9.0, not '9'");
  CHECK(raw_error(".version 9.0x") == "m.ptx:1:10: a version has the form 9.0, not '9.0x'");
  CHECK(raw_error(".version 9.0\n") == "m.ptx:2:1: the module has no .target");
  CHECK(raw_error(".version 9.0 .global .u32 a;") ==
        "m.ptx:1:14: expected .target behind .version, not '.global'");
  CHECK(error_of(".version 9.0") == "4:1: a module has one .version, at its beginning");
  CHECK(error_of(".address_size 48") == "4:15: an address size is 32 or 64");
}

TEST_CASE("sections are left out, whatever they hold") {
  const ptx::Module module = parse_module(
      ".section .debug_info\n{\n.b32 .debug_abbrev // {\n.b8 1,2\n{ nested \"}\" } # ` odd\n}\n"
      ".section\t.debug_macinfo\t{\t}\n.global .u32 a;");
  CHECK(module.variables.size() == 1);
  CHECK(module.variables[0].where.line == 11);
  CHECK(error_of(".section .debug {\n.b8 1\n") == "4:17: this '{' is not closed");
  CHECK(error_of(".section .debug") == "4:1: expected '{' behind the name of a .section");
}

TEST_CASE("notes") {
  CHECK(parse_module(".pragma \"nounroll\";\n.pragma \"next knob 1\", \"enable_smem_spilling\";").notes ==
        std::vector<std::string>{"unknown pragma \"next knob 1\" on line 5 is ignored"});
  const std::string with_nul = std::string(kHeader) + std::string("\0\0", 2);
  CHECK(ptx::parse(with_nul, "m.ptx")->notes ==
        std::vector<std::string>{"a NUL at the end of the text is left out"});
  std::string many;
  for (int i = 0; i < 1000; ++i) many += ".pragma \"p" + std::to_string(i) + "\";\n";
  CHECK(parse_module(many).notes.size() == 100);
}

TEST_CASE("unknown directives are named") {
  CHECK(error_of(".frobnicate 4;") == "4:1: unknown directive '.frobnicate'");
  CHECK(error_of(".visible .frobnicate 4;") == "4:10: unknown directive '.frobnicate'");
  CHECK(error_of("add.s32;") == "4:1: expected a directive, not 'add'");
  CHECK(error_of(".loc 1 2 3") == "4:1: .loc belongs in a function");
  CHECK(error_of(".file 1 \"a\"\n.file 1 \"b\"") == "5:1: file 1 is already given");
  CHECK(error_of(".file 1 a") == "4:9: expected a path in quotes behind a file's number, not 'a'");
  CHECK(error_of(".tex .u32 t;") ==
        "4:1: variables of .tex are not supported: textures are declared .texref");
  CHECK(error_of(".pragma nounroll;") == "4:9: expected a string behind .pragma, not 'nounroll'");
}

TEST_CASE("text that is no PTX") {
  CHECK(error_of("/* open") == "4:1: this comment is not closed");
  CHECK(error_of(".file 1 \"open\n\"") == "4:9: this string is not closed on its line");
  CHECK(error_of("#include") == "4:1: no PTX statement has the character '#' here");
  CHECK(error_of(std::string_view("\0.global", 8)) == "4:1: the byte 0x00 is no PTX text");
  CHECK(error_of("\xc3\xa4") == "4:1: the byte 0xc3 is no PTX text");
  CHECK(error_of(".global .u32 " + std::string(100, 'x') + " y;") ==
        "4:115: expected ';' at the end of a declaration of .global, not 'y'");
  CHECK(error_of("\r\n\t\f.bad\r\n") == "5:3: unknown directive '.bad'");
}

TEST_CASE("types") {
  CHECK(ptx::type_bits(ptx::Type::pred) == 1);
  CHECK(ptx::type_bits(ptx::Type::b128) == 128);
  CHECK(ptx::type_bits(ptx::Type::bf16x2) == 32);
  CHECK(ptx::type_bits(ptx::Type::f64) == 64);
  CHECK(ptx::type_name(ptx::Type::s16) == "s16");
  CHECK(ptx::type_name(ptx::Type::f64) == "f64");
}
