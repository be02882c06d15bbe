#include "compile/ptx_text.hpp"
#include "core/base64.hpp"
#include "support.hpp"

using namespace ptxbench;
using namespace ptxbench::test;

namespace {

const std::string kVectorAdd =
    ".version 8.0\n.target sm_90a\n.address_size 64\n"
    ".visible .entry vadd(.param .u64 p, .param .u32 n)\n.maxntid 128, 1, 1\n{\n"
    "  .reg .b64 %rd<3>; .reg .b32 %r<3>;\n"
    "  ld.param.u64 %rd1, [p];\n  cvta.to.global.u64 %rd2, %rd1;\n  mov.u32 %r1, 7;\n  st.global.u32 [%rd2], "
    "%r1;\n  ret;\n}\n";

std::string with_version(const std::string& version) {
  std::string text = kVectorAdd;
  return text.replace(text.find("8.0"), 3, version);
}

std::string base64(const std::vector<std::uint8_t>& bytes) {
  return base64_encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

TEST_CASE("PTX is assembled by ptxas, a trailing NUL stripped") {
  CompileRequest request = request_of("k.ptx", kVectorAdd + std::string(2, '\0'));
  request.sources[0].name_expressions = {"vadd"};
  const Compiled compiled = compile(request);
  INFO(all_messages(compiled));
  REQUIRE(compiled.ok);
  const CompiledModule& module = compiled.modules[0];
  CHECK_FALSE(module.cubin.empty());
  CHECK(module.ptx == kVectorAdd);
  REQUIRE(module.kernels.size() == 1);
  CHECK(module.kernels[0].symbol == "vadd");
  CHECK(module.kernels[0].registers > 0);
  CHECK(module.lowered[0].second == "vadd");
}

TEST_CASE("an error in PTX names its line") {
  std::string text = kVectorAdd;
  text.replace(text.find("st.global"), 9, "st.globl.");
  const Compiled compiled = compile(request_of("k.ptx", text));
  REQUIRE_FALSE(compiled.ok);
  INFO(all_messages(compiled));
  CHECK(compiled.diagnostics[0].file == "k.ptx");
  CHECK(compiled.diagnostics[0].line == 11);
  CHECK(compiled.diagnostics[0].function == "vadd");
  CHECK(finding(compiled, "compile_error") != nullptr);
}

TEST_CASE("a version newer than the assembler's is refused with both, and lowered only on request") {
  CompileRequest request = request_of("k.ptx", with_version("19.7"));
  const Compiled refused = compile(request);
  INFO(all_messages(refused));
  REQUIRE_FALSE(refused.ok);
  const Finding* found = finding(refused, "ptx_version");
  REQUIRE(found != nullptr);
  CHECK(contains(found->message, "19.7"));
  CHECK(contains(found->message, "compile.ptx_version"));
  request.sources[0].options.ptx_version = "8.0";
  const Compiled lowered = compile(request);
  INFO(all_messages(lowered));
  CHECK(lowered.ok);
  CHECK(contains(lowered.modules[0].ptx, ".version 8.0"));
  request.sources[0].options.ptx_version = "nine";
  CHECK(finding(compile(request), "ptx_version") != nullptr);
}

TEST_CASE("a target that does not run on the architecture is refused") {
  CompileRequest request = request_of("k.ptx", kVectorAdd);
  request.arch = "sm_100a";
  const Compiled compiled = compile(request);
  REQUIRE_FALSE(compiled.ok);
  REQUIRE(finding(compiled, "ptx_target") != nullptr);
  CHECK(contains(finding(compiled, "ptx_target")->message, "sm_90a"));
  CHECK(ptx_target_runs_on("sm_80", "sm_90a"));
  CHECK(ptx_target_runs_on("sm_90", "sm_100a"));
  CHECK_FALSE(ptx_target_runs_on("sm_100", "sm_90a"));
  CHECK_FALSE(ptx_target_runs_on("sm_90a", "sm_90"));
  CHECK(ptx_target_runs_on("sm_100f", "sm_103a"));
}

TEST_CASE("symbols that PTX does not have are reported, and the heap is refused") {
  CompileRequest request = request_of("k.ptx", kVectorAdd);
  request.sources[0].name_expressions = {"vaddd"};
  const Compiled missing = compile(request);
  REQUIRE_FALSE(missing.ok);
  CHECK(contains(finding(missing, "unknown_kernel")->message, "nearest is \"vadd\""));

  const std::string heap =
      ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b64 r) malloc (.param .b64 n);\n"
      ".visible .entry k()\n{\n .param .b64 a; .param .b64 b; call.uni (b), malloc, (a); ret;\n}\n";
  CHECK(finding(compile(request_of("k.ptx", heap)), "device_heap") != nullptr);
}

TEST_CASE("where there is no ptxas the driver is left to assemble") {
  TempFolder empty;
  CompileRequest request = request_of("k.ptx", kVectorAdd);
  request.toolkit.cuda_home = empty.path.string();
  request.toolkit.only_cuda_home = true;
  const Compiled compiled = compile(request);
  CHECK(compiled.ok);
  CHECK(compiled.modules[0].cubin.empty());
  REQUIRE(finding(compiled, "ptx_not_assembled") != nullptr);
  CHECK(finding(compiled, "ptx_not_assembled")->severity == Severity::note);
}

TEST_CASE("a cubin passes as it is, as bytes and in base64; another architecture's does not") {
  const std::vector<std::uint8_t> cubin = compile(request_of("k.ptx", kVectorAdd)).modules[0].cubin;
  REQUIRE_FALSE(cubin.empty());
  for (const std::string& content : {std::string(cubin.begin(), cubin.end()), base64(cubin)}) {
    const Compiled compiled = compile(request_of("k.cubin", content));
    INFO(all_messages(compiled));
    CHECK(compiled.ok);
    CHECK(compiled.modules[0].cubin == cubin);
  }
  CompileRequest wrong = request_of("k.cubin", base64(cubin));
  wrong.arch = "sm_100a";
  CHECK(finding(compile(wrong), "cubin_arch") != nullptr);
  for (const char* junk : {"", "not base64!", "AAAA",
                           "\x7f"
                           "ELFxx"}) {
    const Compiled compiled = compile(request_of("k.cubin", junk));
    CHECK_FALSE(compiled.ok);
    CHECK(finding(compiled, "cubin_invalid") != nullptr);
  }
}

TEST_CASE("the header and the symbols of PTX text") {
  const PtxHeader header = read_ptx_header("// .version 1.0\n.version 9.4\n.target sm_90a, debug\n");
  REQUIRE(header.version);
  CHECK(header.version->text() == "9.4");
  CHECK(header.target == "sm_90a");
  CHECK_FALSE(parse_ptx_version("9"));
  CHECK_FALSE(parse_ptx_version("9.x"));
  const PtxSymbols symbols = read_ptx_symbols(
      ".global .align 4 .f32 g;\n.const .align 4 .b8 table[16] = {1, 2};\n.extern .shared .align 16 .b8 "
      "smem[];\n"
      ".visible .entry _Z1kPf(.param .u64 a)\n{ ld.global.f32 %f1, [%rd1]; ret; }\n.entry other() { ret; "
      "}\n");
  CHECK(symbols.kernels == std::vector<std::string>{"_Z1kPf", "other"});
  CHECK(symbols.globals == std::vector<std::string>{"g", "table"});
}
