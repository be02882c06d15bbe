#include "compile/include_closure.hpp"
#include "compile/kernel_names.hpp"
#include "compile/wire.hpp"
#include "support.hpp"

#include <chrono>

using namespace ptxbench;
using namespace ptxbench::test;

TEST_CASE("a kernel compiles to a cubin, PTX and resources") {
  const Compiled compiled = compile_cuda(
      "extern \"C\" __global__ void add(float* p) { __shared__ float s[64]; s[threadIdx.x] = p[threadIdx.x];"
      " __syncthreads(); p[0] = s[63 - threadIdx.x]; }\n",
      {"add"});
  INFO(all_messages(compiled));
  REQUIRE(compiled.ok);
  CHECK_FALSE(compiled.cached);
  CHECK(compiled.arch == "sm_90a");
  CHECK(contains(compiled.compiler, "NVRTC 1"));
  REQUIRE(compiled.modules.size() == 1);
  const CompiledModule& module = compiled.modules[0];
  CHECK(std::string(module.cubin.begin(), module.cubin.begin() + 4) ==
        "\x7f"
        "ELF");
  CHECK(contains(module.ptx, ".target sm_90a"));
  CHECK(contains(module.options, "-lineinfo"));
  REQUIRE(module.kernels.size() == 1);
  CHECK(module.kernels[0].symbol == "add");
  CHECK(module.kernels[0].registers > 0);
  CHECK(module.kernels[0].static_shared_bytes == 256);
  REQUIRE(module.lowered.size() == 1);
  CHECK(module.lowered[0] == std::pair<std::string, std::string>{"add", "add"});
}

TEST_CASE("name expressions: templates, namespaces, constants of the plan, variables with and without &") {
  CompileRequest request =
      request_of("k.cu",
                 "#include <launch_plan.h>\n"
                 "namespace ns { template <int BM, class T> __global__ void gemm(T* p) { p[0] = BM; }\n"
                 "__constant__ int table[4]; }\n"
                 "__device__ float scale;\n"
                 "__global__ void use(float* p) { p[0] = scale + ns::table[1]; }\n");
  request.launch_plan_header = "namespace plan { constexpr int BM = 128; }\n";
  request.sources[0].name_expressions = {"ns::gemm<plan::BM, float>", "scale", "&ns::table", "ns::table",
                                         "use"};
  const Compiled compiled = compile(request);
  INFO(all_messages(compiled));
  REQUIRE(compiled.ok);
  const auto& lowered = compiled.modules[0].lowered;
  REQUIRE(lowered.size() == 5);
  CHECK(lowered[0] ==
        std::pair<std::string, std::string>{"ns::gemm<plan::BM, float>", "_ZN2ns4gemmILi128EfEEvPT0_"});
  CHECK(lowered[1] == std::pair<std::string, std::string>{"scale", "scale"});
  CHECK(lowered[3].second == "_ZN2ns5tableE");
}

TEST_CASE("a kernel that is not there is reported with those that are") {
  const Compiled compiled = compile_cuda(
      "namespace ns { template <int N> __global__ void gemm(float* p) { p[0] = N; } }\n"
      "__global__ void __launch_bounds__(128) softmax(float* p) { p[0] = 1; }\n",
      {"softmac", "ns::gemm<4>"});
  REQUIRE_FALSE(compiled.ok);
  INFO(all_messages(compiled));
  const Finding* found = finding(compiled, "unknown_kernel");
  REQUIRE(found != nullptr);
  CHECK(contains(found->message, "\"softmac\""));
  CHECK(contains(found->message, "nearest is \"softmax\""));
  CHECK(contains(found->evidence, "gemm<...>"));
  CHECK(contains(found->evidence, "\"source\":\"k.cu\""));
  CHECK(compiled.findings.size() == 1);
  CHECK(compiled.diagnostics.empty());
}

TEST_CASE("where the source itself is wrong, its errors are reported and not the names") {
  const Compiled compiled = compile_cuda("__global__ void k(float* p) { p[0] = nope; }\n", {"k", "absent"});
  REQUIRE_FALSE(compiled.ok);
  CHECK(finding(compiled, "unknown_kernel") == nullptr);
  REQUIRE(compiled.diagnostics.size() == 1);
  CHECK(contains(compiled.diagnostics[0].message, "nope"));
}

TEST_CASE("options reach the compiler, and only allowed ones reach ptxas") {
  CompileRequest request =
      request_of("k.cu",
                 "__global__ void k(float* p) { p[0] = p[1] / p[2] * PROBLEM_N + TYPE(1);\n"
                 "auto f = []<class T>(T x) { return x; }; p[3] = f(2.f); }\n");
  request.defines = {{"PROBLEM_N", "7168"}, {"TYPE", "float"}};
  request.sources[0].options.std = "c++20";
  request.sources[0].options.fast_math = true;
  request.sources[0].options.maxrregcount = 32;
  request.sources[0].options.ptxas_options = {"-O1", "--def-load-cache=cg"};
  const Compiled fast = compile(request);
  INFO(all_messages(fast));
  REQUIRE(fast.ok);
  CHECK(contains(fast.modules[0].ptx, "div.approx"));
  CHECK(contains(fast.modules[0].options, "--maxrregcount=32"));

  request.sources[0].options.ptxas_options = {"--output-file=/tmp/x"};
  const Compiled refused = compile(request);
  CHECK_FALSE(refused.ok);
  REQUIRE(finding(refused, "ptxas_option") != nullptr);
  CHECK(contains(finding(refused, "ptxas_option")->message, "--output-file=/tmp/x"));
}

TEST_CASE("each source is a module of its own, and one's failure does not hide the other") {
  CompileRequest request = request_of("a.cu", "__global__ void a(float* p) { p[0] = 1; }\n");
  BoundSource second;
  second.path = "b.cu";
  request.sources.push_back(second);
  request.files.push_back({"b.cu", "__global__ void b(float* p) { p[0] = oops; }\n"});
  const Compiled compiled = compile(request);
  CHECK_FALSE(compiled.ok);
  REQUIRE(compiled.modules.size() == 2);
  CHECK_FALSE(compiled.modules[0].cubin.empty());
  CHECK(compiled.modules[1].cubin.empty());
  REQUIRE(compiled.diagnostics.size() == 1);
  CHECK(compiled.diagnostics[0].file == "b.cu");
}

TEST_CASE("sm_100a compiles too, and an unknown architecture is an error") {
  CompileRequest request = request_of(
      "k.cu", "__global__ void k(int* p) { asm volatile(\"tcgen05.wait::ld.sync.aligned;\"); p[0] = 1; }\n");
  request.arch = "sm_100a";
  const Compiled compiled = compile(request);
  INFO(all_messages(compiled));
  CHECK(compiled.ok);
  request.arch = "sm_12345";
  const Result<Compiled> unknown = compile_in_process(request);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::unsupported);
  CHECK(contains(unknown.error().message, "sm_90a"));
}

TEST_CASE("a candidate that NVRTC would not finish ends at the deadline") {
  // An unrolled loop with which NVRTC calls back often enough. There are others with which it does not, for
  // minutes: then a worker is killed (tests/worker).
  CompileRequest request = request_of("k.cu",
                                      "__global__ void k(float* p) {\n#pragma unroll\n"
                                      "  for (int i = 0; i < 2000000; i++)\n"
                                      "    p[i % 97] = p[(i * 7) % 91] * p[i % 83] + p[(i * 13) % 31];\n}\n");
  request.deadline_ns = 500'000'000;
  const Compiled compiled = compile(request);
  CHECK_FALSE(compiled.ok);
  const Finding* found = finding(compiled, "compiler_timeout");
  REQUIRE(found != nullptr);
  CHECK(contains(found->message, "k.cu"));
  // The next one is fine.
  CHECK(compile_cuda("__global__ void k(float* p) { p[0] = 1; }\n").ok);
}

TEST_CASE("no NVRTC is the environment's fault, with the places") {
  TempFolder empty;
  CompileRequest request = request_of("k.cu", "__global__ void k() {}\n");
  request.toolkit.cuda_home = empty.path.string();
  request.toolkit.only_cuda_home = true;
  const Result<Compiled> compiled = compile_in_process(request);
  REQUIRE_FALSE(compiled);
  CHECK(compiled.error().code == ErrorCode::toolkit);
  CHECK(contains(compiled.error().message, empty.path.string()));
}

TEST_CASE("a request that names what it does not have is the caller's fault") {
  CompileRequest request = request_of("k.cu", "");
  request.sources[0].path = "other.cu";
  CHECK(compile_in_process(request).error().code == ErrorCode::invalid_argument);
  request = request_of("k.cpp", "");
  CHECK(compile_in_process(request).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("hostile bytes in a source are messages, not crashes") {
  for (const std::string& text :
       {std::string("\0\0", 2), std::string("__global__ void k() { \xff\xfe \x80 }\n"), std::string(),
        std::string("#include \"k.cu\"\n"), std::string("#include\n#include <\n#include \"\n"),
        std::string("/* never closed"), std::string("\xef\xbb\xbf__global__ void k() {}\n")}) {
    const Result<Compiled> compiled = compile_in_process(request_of("k.cu", text));
    REQUIRE(compiled);
    if (!compiled->ok) CHECK_FALSE(compiled->diagnostics.empty());
    CHECK(compiled_from(to_message(*compiled)));
  }
}

TEST_CASE("includes are found outside of comments and strings") {
  const std::vector<IncludeDirective> found = scan_includes(
      "#include <a.h>\n"
      "// #include <no1.h>\n"
      "/* #include <no2.h>\n#include <no3.h> */ # /* x */ include /* y */ \"b/c.h\" // z\n"
      "const char* s = \"#include <no4.h>\";\n"
      "  #\tinclude \\\n  <d.h>\n"
      "int x; #include <no5.h>\n"
      "#include MACRO(x)\n"
      "#include <unclosed\n"
      "char c = '\"'; \n#include <e.h>");
  REQUIRE(found.size() == 5);
  CHECK(found[0].name == "a.h");
  CHECK(found[1].name == "b/c.h");
  CHECK(found[1].quoted);
  CHECK(found[1].line == 4);
  CHECK(found[2].name == "d.h");
  CHECK(found[3].computed);
  CHECK(found[4].name == "e.h");
}

TEST_CASE("paths are normalised and stay inside") {
  CHECK(normalise_path("a/./b/../c.h") == "a/c.h");
  CHECK(normalise_path("./c.h") == "c.h");
  CHECK_FALSE(normalise_path("../c.h"));
  CHECK_FALSE(normalise_path("/c.h"));
  CHECK_FALSE(normalise_path("a/../.."));
  CHECK_FALSE(normalise_path(""));
}

TEST_CASE("kernels are listed as a plan names them") {
  CHECK(kernel_name_of_symbol("_ZN2ns4gemmILi128EfEEvPT0_") == "ns::gemm<128, float>");
  CHECK(kernel_name_of_symbol("_Z1kPf") == "k");
  CHECK(kernel_name_of_symbol("plain") == "plain");
  CHECK(declared_kernels(
            "template <int N, class T = int>\n__global__ void __launch_bounds__(128, 1) gemm(T* p) {}\n"
            "extern \"C\" __global__ __cluster_dims__(2, 1, 1) void k2(int);\n"
            "// __global__ void no()\n"
            "/* __global__ void no() */ const char* s = \"__global__ void no()\";\n"
            "void __global__ k3 (float* p) {}\n"
            "#define my__global__ x\n") == std::vector<std::string>{"gemm<...>", "k2", "k3"});
}

TEST_CASE("requests and results survive the wire") {
  CompileRequest request = request_of("k.cu", std::string("text\xff\0x", 7));
  request.sources[0].options.fmad = false;
  request.sources[0].options.maxrregcount = 168;
  request.sources[0].options.ptx_version = "9.0";
  request.sources[0].options.ptxas_options = {"-O2"};
  request.sources[0].name_expressions = {"gemm<plan::BM>"};
  request.defines = {{"A", "1"}};
  request.launch_plan_header = "namespace plan {}";
  request.headers = {{"ptx/x.cuh", "y"}};
  request.arch = "sm_100a";
  request.cache_dir = "/c";
  request.deadline_ns = 123;
  const Result<CompileRequest> back = compile_request_from(to_message(request));
  REQUIRE(back);
  CHECK(back->files[0].content == request.files[0].content);
  CHECK(back->sources[0].options.fmad == std::optional<bool>(false));
  CHECK_FALSE(back->sources[0].options.ftz.has_value());
  CHECK(back->sources[0].options.maxrregcount == 168);
  CHECK(back->sources[0].options.ptx_version == "9.0");
  CHECK(back->sources[0].options.ptxas_options == request.sources[0].options.ptxas_options);
  CHECK(back->sources[0].name_expressions == request.sources[0].name_expressions);
  CHECK(back->defines == request.defines);
  CHECK(back->headers[0].path == "ptx/x.cuh");
  CHECK(back->deadline_ns == 123);
  CHECK(back->arch == "sm_100a");

  Compiled compiled = compile_cuda("__global__ void k(float* p) { p[0] = 1; int unused; }\n", {"k"});
  compiled.findings.push_back({"x", Severity::error, "y", "{\"z\":1}"});
  const Result<Compiled> again = compiled_from(to_message(compiled));
  REQUIRE(again);
  CHECK(again->ok == compiled.ok);
  CHECK(again->modules[0].cubin == compiled.modules[0].cubin);
  CHECK(again->modules[0].ptx == compiled.modules[0].ptx);
  CHECK(again->modules[0].lowered == compiled.modules[0].lowered);
  CHECK(again->modules[0].kernels[0].registers == compiled.modules[0].kernels[0].registers);
  CHECK(again->diagnostics.size() == compiled.diagnostics.size());
  CHECK(again->findings[0].evidence == "{\"z\":1}");
  CHECK(again->log == compiled.log);

  Message damaged = to_message(compiled);
  damaged.blobs.pop_back();
  CHECK_FALSE(compiled_from(damaged));
  damaged = to_message(compiled);
  damaged.json = "{}";
  CHECK_FALSE(compiled_from(damaged));
  CHECK_FALSE(compile_request_from(to_message(compiled)));
}
