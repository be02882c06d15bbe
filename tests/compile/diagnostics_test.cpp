#include "compile/diagnostics.hpp"

#include "compile/ptx_forms.hpp"
#include "compile/resources.hpp"
#include "support.hpp"

using namespace ptxbench;
using namespace ptxbench::test;

TEST_CASE("a log becomes messages with places, once each") {
  const std::vector<Diagnostic> found = parse_compiler_log(
      "/candidate/a (1).cu(12): error: expected a \")\"\n"
      "    p[0]=foo(3;\n"
      "             ^\n"
      "\n"
      "a.cu(14): warning #177-D: variable \"unused\" was declared but never referenced\n"
      "  int unused;\n"
      "      ^\n"
      "\n"
      "Remark: The warnings can be suppressed with \"-diag-suppress <warning-number>\"\n"
      "\n"
      "a.cu(20): error: no instance of function template \"f\" matches the argument list\n"
      "            argument types are: (int)\n"
      "    f(1);\n"
      "    ^\n"
      "          detected during instantiation of \"void k<T>(T *) [with T=int]\" at line 30\n"
      "\n"
      "a.cu(3): catastrophic error: could not open source file \"iostream\" (no directories in search list)\n"
      "  #include <iostream>\n"
      "                     ^\n"
      "\n"
      " and 1 catastrophic error detected in the compilation of \"a.cu\".\n"
      "Compilation terminated.\n"
      "ptxas application ptx input, line 39; error   : Instruction 'setmaxnreg.inc' not supported on .target "
      "'sm_90'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n"
      "ptxas fatal   : Unresolved extern function 'foo'\n"
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 991 by compiler in function "
      "'_Z6serialPfy'\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored\n"
      "ptxas info    : 4 bytes gmem\n"
      "ptxas info    : Used 30 registers, used 0 barriers\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "nvrtc: error: unrecognized option -E found\n"
      "Some internal Error nobody has seen\n");
  REQUIRE(found.size() == 10);
  CHECK(found[0].file == "/candidate/a (1).cu");
  CHECK(found[0].line == 12);
  CHECK(found[0].column == 12);
  CHECK(found[0].message == "expected a \")\"");
  CHECK(found[1].severity == Severity::warning);
  CHECK(found[1].column == 5);
  CHECK(contains(found[2].message, "argument types are: (int)"));
  CHECK(contains(found[2].message, "at line 30"));
  CHECK_FALSE(contains(found[2].message, "f(1);"));
  CHECK(found[3].line == 3);
  CHECK(found[4].ptx_line == 39);
  CHECK(found[4].severity == Severity::error);
  CHECK(contains(found[5].message, "Unresolved extern"));
  CHECK(found[6].code == "C7517");
  CHECK(found[6].ptx_line == 991);
  CHECK(found[6].function == "_Z6serialPfy");
  CHECK(found[6].severity == Severity::note);
  CHECK(found[7].code == "C7508");
  CHECK(found[7].severity == Severity::warning);
  CHECK(contains(found[8].message, "unrecognized option"));
  CHECK(contains(found[9].message, "nobody has seen"));
}

TEST_CASE("resource lines belong to their kernel, not to functions that were not inlined") {
  const std::vector<KernelResources> kernels = parse_resources(
      "ptxas info    : Compiling entry function '_Z5spillPfi' for 'sm_90a'\n"
      "ptxas info    : Function properties for helper\n"
      "ptxas         .     64 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads\n"
      "ptxas info    : Function properties for _Z5spillPfi\n"
      "ptxas         .     1000 bytes stack frame, 2184 bytes spill stores, 2188 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 1000 bytes cumulative stack size, 4096 bytes "
      "smem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Used 8 registers, used 0 barriers\n");
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0].symbol == "_Z5spillPfi");
  CHECK(kernels[0].registers == 32);
  CHECK(kernels[0].stack_bytes == 1000);
  CHECK(kernels[0].spill_store_bytes == 2184);
  CHECK(kernels[0].spill_load_bytes == 2188);
  CHECK(kernels[0].static_shared_bytes == 4096);
  CHECK(kernels[1].registers == 8);
  CHECK(kernels[1].spill_store_bytes == 0);
}

TEST_CASE("a front-end error has its line and column") {
  const Compiled compiled = compile_cuda("__global__ void k(float* p) {\n  p[0] = undefined_thing;\n}\n");
  REQUIRE_FALSE(compiled.ok);
  REQUIRE(compiled.diagnostics.size() == 1);
  CHECK(compiled.diagnostics[0].file == "k.cu");
  CHECK(compiled.diagnostics[0].line == 2);
  CHECK(compiled.diagnostics[0].column == 10);
  REQUIRE(finding(compiled, "compile_error") != nullptr);
  CHECK(contains(finding(compiled, "compile_error")->message, "k.cu:2:10"));
}

TEST_CASE(
    "an error in an asm statement names the CUDA line of the instruction, the PTX line and the nearest "
    "form") {
  const Compiled compiled = compile_cuda(
      "__global__ void k(unsigned* p) {\n"
      "  unsigned x;\n"
      "  asm volatile(\n"
      "      \"mov.u32 %0, %%clusterid.x;\\n\\t\"\n"
      "      \"mov.u32 %0, %0;\\n\\t\"\n"
      "      \"cp.async.bulk.comit_group;\\n\\t\"\n"
      "      : \"=r\"(x));\n"
      "  p[0] = x;\n"
      "}\n");
  REQUIRE_FALSE(compiled.ok);
  INFO(all_messages(compiled));
  REQUIRE_FALSE(compiled.diagnostics.empty());
  const Diagnostic& d = compiled.diagnostics[0];
  CHECK(d.file == "k.cu");
  CHECK(d.line == 6);
  CHECK(d.column == 8);
  CHECK(d.ptx_line > 0);
  CHECK(d.function == "_Z1kPj");
  CHECK(contains(d.message, "`cp.async.bulk.comit_group;`"));
  CHECK(contains(d.message, "nearest form is cp.async.bulk.commit_group"));
  // The PTX is there to read although ptxas failed.
  CHECK(contains(compiled.modules[0].ptx, "comit_group"));
}

TEST_CASE("an asm error in a header names the header") {
  CompileRequest request = request_of("k.cu",
                                      "#include \"inc/x.cuh\"\n#include <ptx/y.cuh>\n"
                                      "__global__ void k(int* p) { bad(); worse(); }\n");
  request.files.push_back(
      {"inc/x.cuh", "\n\n__device__ inline void bad() { asm volatile(\"frob.b32;\"); }\n"});
  request.headers.push_back(
      {"ptx/y.cuh", "\n__device__ inline void worse() { asm volatile(\"barf.b64;\"); }\n"});
  const Compiled compiled = compile(request);
  REQUIRE_FALSE(compiled.ok);
  INFO(all_messages(compiled));
  REQUIRE(compiled.diagnostics.size() >= 2);
  CHECK(compiled.diagnostics[0].file == "inc/x.cuh");
  CHECK(compiled.diagnostics[0].line == 3);
  const auto in_y = std::find_if(compiled.diagnostics.begin(), compiled.diagnostics.end(),
                                 [](const Diagnostic& d) { return d.file == "ptx/y.cuh"; });
  REQUIRE(in_y != compiled.diagnostics.end());
  CHECK(in_y->line == 2);
}

TEST_CASE("an instruction of another architecture says which have it") {
  struct Case {
    const char* arch;
    const char* instruction;
    const char* says;
  };
  for (const Case& c : {Case{"sm_90", "wgmma.fence.sync.aligned;", "sm_90a instead of sm_90"},
                        Case{"sm_90", "setmaxnreg.inc.sync.aligned.u32 232;", "sm_90a instead of sm_90"},
                        Case{"sm_100a", "wgmma.fence.sync.aligned;", "tcgen05.mma instead"},
                        Case{"sm_90a", "tcgen05.wait::ld.sync.aligned;", "sm_100a only"}}) {
    CompileRequest request = request_of(
        "k.cu", std::string("__global__ void __launch_bounds__(128) k(int* p) {\n\n  asm volatile(\"") +
                    c.instruction + "\"); p[0] = 1; }\n");
    request.arch = c.arch;
    const Compiled compiled = compile(request);
    INFO(all_messages(compiled));
    REQUIRE_FALSE(compiled.ok);
    const Finding* found = finding(compiled, "architecture_instruction");
    REQUIRE(found != nullptr);
    CHECK(found->severity == Severity::error);
    CHECK(contains(found->message, c.says));
    CHECK(contains(found->message, "k.cu:3"));
    CHECK(contains(found->evidence, "\"line\":3"));
  }
}

TEST_CASE("setmaxnreg that ptxas ignores, and wgmma that it serialises, are findings") {
  const Compiled compiled = compile_cuda(
      "__global__ void ignored(float* p) { asm volatile(\"setmaxnreg.inc.sync.aligned.u32 232;\"); "
      "p[threadIdx.x] = 1; }\n"
      "__global__ void serial(float* p, unsigned long long d) {\n"
      "  float a[4] = {p[0], p[1], p[2], p[3]};\n"
      "  for (int i = 0; i < 4; i++) {\n"
      "    asm volatile(\"wgmma.fence.sync.aligned;\");\n"
      "    asm volatile(\"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, 1, 1, "
      "1, 0, 0;\"\n"
      "      : \"+f\"(a[0]), \"+f\"(a[1]), \"+f\"(a[2]), \"+f\"(a[3]) : \"l\"(d), \"l\"(d));\n"
      "    asm volatile(\"wgmma.commit_group.sync.aligned;\");\n"
      "    a[0] += 1;\n"
      "  }\n"
      "  asm volatile(\"wgmma.wait_group.sync.aligned 0;\");\n"
      "  p[0] = a[0] + a[1] + a[2] + a[3];\n"
      "}\n");
  INFO(all_messages(compiled));
  CHECK(compiled.ok);
  const Finding* ignored = finding(compiled, "setmaxnreg_ignored");
  REQUIRE(ignored != nullptr);
  CHECK(ignored->severity == Severity::warning);
  CHECK(contains(ignored->message, "__launch_bounds__"));
  const Finding* serial = finding(compiled, "wgmma_serialized");
  REQUIRE(serial != nullptr);
  CHECK(contains(serial->message, "serial"));
}

TEST_CASE("spills are data") {
  const Compiled compiled = compile_cuda(
      "__global__ void __launch_bounds__(1024) spill(float* p, int n) { float a[200];\n"
      "#pragma unroll\n for (int i = 0; i < 200; i++) a[i] = p[i * n];\n"
      " for (int j = 0; j < n; j++) {\n#pragma unroll\n for (int i = 0; i < 200; i++) a[i] = a[i] * a[(i + "
      "7) % 200] + j; }\n"
      "#pragma unroll\n for (int i = 0; i < 200; i++) p[i] = a[i]; }\n");
  REQUIRE(compiled.ok);
  REQUIRE(compiled.modules[0].kernels.size() == 1);
  CHECK(compiled.modules[0].kernels[0].spill_store_bytes > 0);
  CHECK(compiled.modules[0].kernels[0].registers <= 64);
}

TEST_CASE("device malloc, new and free are refused") {
  for (const char* body :
       {"p[0] = (float*)malloc(16);", "p[0] = new float[4];", "free(p[0]);", "delete[] p[0];"}) {
    const Compiled compiled = compile_cuda(std::string("__global__ void k(float** p) { ") + body + " }\n");
    INFO(body);
    CHECK_FALSE(compiled.ok);
    CHECK(finding(compiled, "device_heap") != nullptr);
  }
  const Compiled fine =
      compile_cuda("__global__ void k(float* p) { int free = 1; p[free] = 1; printf(\"malloc\"); }\n");
  CHECK(fine.ok);
  CHECK(finding(fine, "device_heap") == nullptr);
}

TEST_CASE("the nearest form of an instruction") {
  CHECK(nearest_ptx_form("cp.async.bulk.comit_group") == "cp.async.bulk.commit_group");
  CHECK(nearest_ptx_form("wgmma.fense.sync.aligned") == "wgmma.fence.sync.aligned");
  CHECK(nearest_ptx_form("wgmma.fence.sync.aligned").empty());  // it exists
  CHECK(nearest_ptx_form("xyzzy").empty());
  CHECK(nearest_ptx_form("").empty());
}
