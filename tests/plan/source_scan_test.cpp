#include "plan/source_scan.hpp"

#include "plan/reserved_names.hpp"
#include "support/catch.hpp"

using namespace ptxbench::plan;

namespace {
std::string cuda(std::string_view text) {
  std::string out;
  for (const SourceKernel& k : kernels_of_cuda(text))
    out += (out.empty() ? "" : " ") + k.name + (k.extern_c ? ":C" : "");
  return out;
}
}  // namespace

TEST_CASE("kernels of CUDA C++") {
  CHECK(cuda("extern \"C\" __global__ void f(int* p) {}") == "f:C");
  CHECK(cuda("__global__ void f(int* p) {}") == "f");
  CHECK(cuda("extern \"C\" { __global__ void f(); __global__ void g() {} } __global__ void h() {}") ==
        "f:C g:C h");
  CHECK(cuda("extern \"C\" { __device__ int d() { if (1) { return 2; } } __global__ void f(); }") == "f:C");
  CHECK(
      cuda("extern \"C\"\n__global__ void __launch_bounds__(128, 2) __cluster_dims__(2, 1, 1) f(int a) {}") ==
      "f:C");
  CHECK(cuda("__launch_bounds__(128) __global__ void f(int a) {}") == "f");
  CHECK(cuda("template <int BM, typename T = foo<(3 > 2)>> __global__ void gemm(const T* a) {}") == "gemm");
  CHECK(cuda("extern \"C\" void host(); __global__ void f();") == "f");
  CHECK(cuda("namespace n { __global__ void f() {} }") == "f");
  CHECK(
      cuda("// __global__ void a();\n/* __global__ void b(); */ const char* s = \"__global__ void c();\";") ==
      "");
  CHECK(cuda("const char* s = R\"x(__global__ void c(); )\" )x\"; __global__ void d();") == "d");
  CHECK(cuda("#define K extern \"C\" __global__ \\\n void x(\n__global__ void d();") == "d");
  CHECK(cuda("char q = '\"'; __global__ void d(); int n = 1'000; __global__ void e();") == "d e");
  CHECK(cuda("__global__ void f(); extern \"C\" __global__ void f();") == "f:C");
  CHECK(cuda("extern \"C\" __global__ __attribute__((used)) void f() { asm volatile(\"{ __global__ void x(; "
             "}\"); }") == "f:C");
  CHECK(cuda("") == "");
  CHECK(cuda("__global__") == "");
  CHECK(cuda("\"unterminated") == "");
  CHECK(cuda("R\"(unterminated") == "");
  CHECK(cuda("/* unterminated") == "");
  CHECK(cuda("} } } extern \"C\"") == "");
}

TEST_CASE("entries of PTX") {
  CHECK(kernels_of_ptx(".version 9.0\n.visible .entry _Z3addPf(\n .param .u64 a\n)\n{ ret; }\n.entry b() "
                       "{}\n// .entry c\n.func d() {}") == std::vector<std::string>{"_Z3addPf", "b"});
  CHECK(kernels_of_ptx(".file 1 \"/x/.entry e\"\n.extern .func entry;").empty());
}

TEST_CASE("includes of the plan's header") {
  CHECK(includes_header("#include <launch_plan.h>", "launch_plan.h"));
  CHECK(includes_header("int x;\n  #  include   \"launch_plan.h\" // yes", "launch_plan.h"));
  CHECK(includes_header("/* a */ #include <launch_plan.h>", "launch_plan.h"));
  CHECK_FALSE(includes_header("// #include <launch_plan.h>", "launch_plan.h"));
  CHECK_FALSE(includes_header("/*\n#include <launch_plan.h>\n*/", "launch_plan.h"));
  CHECK_FALSE(includes_header("const char* s = \"\\\n#include <launch_plan.h>\";", "launch_plan.h"));
  CHECK_FALSE(includes_header("#include <launch_plan.hpp>", "launch_plan.h"));
}

TEST_CASE("names that macros cannot have") {
  for (const char* name : {"for", "constexpr", "and", "__x", "_X", "a__b"}) CHECK(is_language_name(name));
  for (const char* name : {"T", "x", "min", "printf", "INFINITY", "FLT_MAX", "threadIdx", "uint32_t",
                           "CUtensorMap", "CU_ANY", "cudaAny", "std", "half", "float4"})
    CHECK(is_header_name(name));
  for (const char* name : {"BM", "PROBLEM_N", "HEAD_DIM", "TILE_K", "EPS", "STAGES"}) {
    CHECK_FALSE(is_language_name(name));
    CHECK_FALSE(is_header_name(name));
  }
}
