#include "compile/headers.hpp"

#include "support.hpp"

using namespace ptxbench;
using namespace ptxbench::test;

namespace {

void check_compiles(const std::string& text) {
  const Compiled compiled = compile_cuda(text);
  INFO(text);
  INFO(all_messages(compiled));
  CHECK(compiled.ok);
  CHECK(compiled.diagnostics.empty());
}

}  // namespace

TEST_CASE("every header of the design compiles, alone and in use") {
  const auto kernel = [](const char* header, const char* body) {
    check_compiles(std::string("#include <") + header + ">\n__global__ void k(float* p, int n) {\n" + body +
                   "\n}\n");
  };
  kernel("cuda_bf16.h", "p[0] = __bfloat162float(__float2bfloat16(p[1]));");
  kernel("cuda_fp16.h", "p[0] = __half2float(__float2half(p[1]));");
  kernel("cuda_fp8.h", "p[0] = float(__nv_fp8_e4m3(p[1]));");
  kernel("cuda_runtime.h", "uint32_t x = n; p[0] = x + INFINITY + float(INT_MAX);");
  kernel("mma.h",
         "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> f; "
         "nvcuda::wmma::fill_fragment(f, p[0]);");
  kernel("cstdint", "std::uint32_t a = UINT32_MAX; int64_t b = INT64_MIN; p[0] = a + b + UINT8_C(3);");
  kernel("stdint.h", "uint8_t a = n; p[0] = a + float(SIZE_MAX);");
  kernel(
      "cstddef",
      "std::size_t a = n; std::ptrdiff_t b = n; p[a] = b; std::nullptr_t c = nullptr; p[1] = c == nullptr;");
  kernel(
      "type_traits",
      "static_assert(std::is_same_v<std::decay_t<const int&>, int>); p[0] = std::is_integral<int>::value;");
  kernel("limits", "p[0] = std::numeric_limits<float>::infinity() + std::numeric_limits<int>::max();");
  kernel("cfloat", "p[0] = FLT_MAX; p[1] = DBL_EPSILON;");
  kernel("math.h", "p[0] = INFINITY; p[1] = NAN; p[2] = sqrtf(p[3]) + M_PI;");
  kernel("cmath", "p[0] = std::exp(p[1]) + std::abs(p[2]) + INFINITY;");
  kernel("stdio.h", "printf(\"%d %f\\n\", n, p[0]);");
  kernel("cstdio", "std::printf(\"%d\\n\", n);");
  kernel("assert.h", "assert(n > 0);");
  kernel("string.h", "memcpy(p, p + 4, 16); p[0] = strlen(\"abc\") + memcmp(p, p + 1, 4);");
  kernel("utility",
         "float a = p[0], b = p[1]; std::swap(a, b); p[0] = std::move(a); p[1] = std::exchange(b, 2.f);"
         "p[2] = std::make_index_sequence<7>::size();");
  kernel("algorithm", "p[0] = std::max(p[1], p[2]) + std::min(1, n) + std::clamp(n, 0, 3);");
  kernel("array", "std::array<int, 3> a{1, 2, 3}; int s = 0; for (int x : a) s += x; p[0] = s + a.size();");
  kernel("limits.h", "p[0] = CHAR_BIT; p[1] = float(LONG_MAX);");
  kernel("new", "new (p) float(3);");
  kernel("initializer_list", "auto l = {1, 2, 3}; p[0] = l.size();");
  kernel("cuda_runtime_api.h", "float4 v = make_float4(1, 2, 3, 4); p[0] = v.x;");
}

TEST_CASE("the slow headers of the toolkit compile beside ours") {
  check_compiles(
      "#include <cstdint>\n#include <cooperative_groups.h>\n#include <cuda/std/type_traits>\n#include "
      "<cuda/std/cmath>\n"
      "#include <cmath>\n#include <type_traits>\n"
      "__global__ void k(float* p) { auto b = cooperative_groups::this_thread_block(); b.sync();\n"
      "  static_assert(cuda::std::is_same_v<int, int>); p[b.thread_rank()] = INFINITY; }\n");
}

TEST_CASE("cuda.h has a CUtensorMap with the alignment of the toolkit in use") {
  const Compiled compiled = compile_cuda(
      "#include <cuda.h>\n"
      "static_assert(sizeof(CUtensorMap) == 128);\n"
      "static_assert(alignof(CUtensorMap) == (__CUDACC_VER_MAJOR__ >= 13 ? 128 : 64));\n"
      "extern \"C\" __global__ void k(const __grid_constant__ CUtensorMap map, unsigned* p) {\n"
      "  asm volatile(\"prefetch.tensormap [%0];\" :: \"l\"(&map)); p[0] = CU_TENSOR_MAP_SWIZZLE_128B; }\n");
  INFO(all_messages(compiled));
  REQUIRE(compiled.ok);
  CHECK(contains(compiled.modules[0].ptx, ".b8 k_param_0[128]"));
}

TEST_CASE("launch_plan.h, the pack's headers and the candidate's own are found") {
  CompileRequest request =
      request_of("src/gemm.cu",
                 "#include <launch_plan.h>\n#include <ptx/tma.cuh>\n#include \"util/x.cuh\"\n"
                 "#include \"../common.cuh\"\n"
                 "__global__ void k(float* p) { p[0] = plan::BM + kTma + kX + kCommon + BARRIER; }\n");
  request.launch_plan_header = "#pragma once\nnamespace plan { constexpr int BM = 128; }\n";
  request.headers = {{"ptx/tma.cuh", "#pragma once\n#include \"barrier.cuh\"\nconstexpr int kTma = 1;\n"},
                     {"ptx/barrier.cuh", "#pragma once\n#define BARRIER 2\nconstexpr int kOnce = 3;\n"}};
  request.files.push_back(
      {"src/util/x.cuh",
       "#include <ptx/barrier.cuh>\n#include \"../../common.cuh\"\nconstexpr int kX = kOnce;\n"});
  request.files.push_back({"common.cuh", "#pragma once\nconstexpr int kCommon = 4;\n"});
  const Compiled compiled = compile(request);
  INFO(all_messages(compiled));
  CHECK(compiled.ok);
}

TEST_CASE("a header that cannot work is named, with what to do instead") {
  struct Case {
    const char* header;
    const char* advice;
  };
  for (const Case& c :
       {Case{"iostream", "printf"}, Case{"vector", "workspace"}, Case{"cutlass/cutlass.h", "CUTLASS"},
        Case{"torch/extension.h", "launch.json"}, Case{"cstdimt", "cstdint"}}) {
    const Compiled compiled =
        compile_cuda(std::string("\n#include <") + c.header + ">\n__global__ void k() {}\n");
    REQUIRE_FALSE(compiled.ok);
    REQUIRE(compiled.diagnostics.size() == 1);
    INFO(all_messages(compiled));
    CHECK(compiled.diagnostics[0].file == "k.cu");
    CHECK(compiled.diagnostics[0].line == 2);
    CHECK(contains(compiled.diagnostics[0].message, c.header));
    CHECK(contains(compiled.diagnostics[0].message, c.advice));
    CHECK(finding(compiled, "compile_error") != nullptr);
  }
}

TEST_CASE("files of the machine cannot be included") {
  for (const char* path : {"/etc/hostname", "../outside.h"}) {
    const Compiled compiled =
        compile_cuda(std::string("#include \"") + path + "\"\n__global__ void k() {}\n");
    REQUIRE_FALSE(compiled.ok);
    CHECK(compiled.diagnostics[0].line == 1);
    CHECK(contains(compiled.diagnostics[0].message, path));
  }
}

TEST_CASE("headers are sorted by name and found by it") {
  CHECK(virtual_headers().size() > 20);
  REQUIRE(find_virtual_header("cuda.h") != nullptr);
  CHECK(contains(std::string(find_virtual_header("cuda.h")->text), "CUtensorMap"));
  CHECK(find_virtual_header("nothing.h") == nullptr);
}
