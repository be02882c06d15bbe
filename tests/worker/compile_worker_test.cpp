// Candidates that crash NVRTC or hold it for ever, through the public Workers and the real worker; no GPU.
#include "support/catch.hpp"
#include "support/processes.hpp"

#include <ptxbench/worker.hpp>

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

using namespace ptxbench;
using namespace testing;

namespace {

const CancelToken kNever;

std::shared_ptr<Workers> workers(WorkerOptions options = {}) {
  if (options.worker_path.empty())
    options.worker_path = std::string(PTXBENCH_BINARY_DIR) + "/bin/ptxbench-worker";
  auto made = Workers::create(options);
  REQUIRE(made);
  return *made;
}

CompileRequest request(std::string text) {
  CompileRequest r;
  r.toolkit.cuda_home = PTXBENCH_TEST_CUDA_HOME;
  r.files.push_back({"k.cu", std::move(text)});
  BoundSource source;
  source.path = "k.cu";
  r.sources.push_back(source);
  return r;
}

CompileRequest good(int number = 7) {
  return request("extern \"C\" __global__ void k(int* x) { x[threadIdx.x] += " + std::to_string(number) +
                 "; }\n");
}

// NVRTC 13.0 overflows a stack of 64 MiB on this.
CompileRequest crashing() {
  const std::size_t depth = 200'000;
  return request("extern \"C\" __global__ void k(int* x) { *x = " + std::string(depth, '(') + "1" +
                 std::string(depth, ')') + "; }\n");
}

// Four lines that keep the optimiser busy for minutes.
CompileRequest endless() {
  CompileRequest r = request(
      "extern \"C\" __global__ void k(float* x) {\n"
      "  float a = x[0];\n"
      "  _Pragma(\"unroll\") for (int i = 0; i < 1024; ++i)\n"
      "    _Pragma(\"unroll\") for (int j = 0; j < 1024; ++j) a = a * x[i ^ j] + x[i + j];\n"
      "  x[0] = a;\n"
      "}\n");
  r.deadline_ns = 2'000'000'000;
  return r;
}

void compiles(Workers& pool, const CompileRequest& r = good()) {
  const auto compiled = pool.compile(r, kNever);
  if (!compiled) FAIL(compiled.error().to_string());
  INFO(compiled->log << (compiled->findings.empty() ? "" : compiled->findings[0].message));
  REQUIRE(compiled->ok);
  REQUIRE(compiled->modules.size() == 1);
  REQUIRE_FALSE(compiled->modules[0].cubin.empty());
}

Finding fails(Workers& pool, const CompileRequest& r) {
  const auto compiled = pool.compile(r, kNever);
  if (!compiled) FAIL(compiled.error().to_string());
  REQUIRE_FALSE(compiled->ok);
  REQUIRE_FALSE(compiled->findings.empty());
  REQUIRE(compiled->findings[0].severity == Severity::error);
  return compiled->findings[0];
}

std::size_t living_children() {
  std::size_t n = 0;
  for (const ProcessEntry& p : children_of(::getpid())) n += p.state != 'Z';
  return n;
}

}  // namespace

TEST_CASE("a candidate that crashes NVRTC is followed by a good one, 20 times") {
  const auto pool = workers();
  compiles(*pool);
  for (int i = 0; i < 20; ++i) {
    const Finding finding = fails(*pool, crashing());
    INFO(finding.message);
    REQUIRE(finding.code == "compiler_crashed");
    REQUIRE(finding.message.find("killed by signal 11 (SIGSEGV)") != std::string::npos);
    REQUIRE(finding.evidence.find("\"signal\":11") != std::string::npos);
    compiles(*pool, good(i));
  }
}

TEST_CASE("a candidate that compiles for ever is followed by a good one, 20 times") {
  const auto pool = workers();
  for (int i = 0; i < 20; ++i) {
    const Finding finding = fails(*pool, endless());
    INFO(finding.message);
    REQUIRE(finding.code == "compiler_timeout");
    compiles(*pool, good(i));
  }
}

TEST_CASE("a candidate that needs too much memory is told so and followed by a good one") {
  WorkerOptions options;
  options.memory_limit_bytes = std::uint64_t{300} << 20;
  const auto pool = workers(options);
  for (const char* greedy : {
           // The code generator aborts: 800 MB of initialised data.
           "__device__ int a[200000000] = {1};\n"
           "extern \"C\" __global__ void k(int* x) { *x = a[*x]; }\n",
           // The front end gives up: four million instantiations.
           "template <int A, int B> struct S { static const int v = S<A - 1, B * 2>::v ^ S<A - 1, B * 2 + "
           "1>::v; };\n"
           "template <int B> struct S<0, B> { static const int v = B; };\n"
           "extern \"C\" __global__ void k(int* x) { *x = S<21, 1>::v; }\n",
       }) {
    const Finding finding = fails(*pool, request(greedy));
    INFO(greedy << finding.message << finding.evidence);
    CHECK(finding.code == "compiler_memory");
    compiles(*pool);
  }
}

TEST_CASE("measure the compile worker", "[.measure]") {
  // Printed, not asserted: docs/process_model.md quotes it.
  const auto pool = workers();
  const auto timed = [&](const char* what, auto work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const auto took = std::chrono::steady_clock::now() - start;
    std::printf("%-40s %8.2f ms\n", what, std::chrono::duration<double, std::milli>(took).count());
  };
  for (int i = 0; i < 5; ++i)
    std::printf("%-40s %8.2f ms\n", "spawn to hello", static_cast<double>(pool->check().start_ns) * 1e-6);
  timed("first compile, worker started for it", [&] { compiles(*pool); });
  timed("second compile, same worker", [&] { compiles(*pool); });
  for (int i = 0; i < 3; ++i) {
    timed("crash, seen twice (old and fresh worker)", [&] { fails(*pool, crashing()); });
    timed("good one after the crash", [&] { compiles(*pool); });
  }
}

TEST_CASE("compile jobs of many threads get their own answers") {
  WorkerOptions options;
  options.compile_workers = 2;
  const auto pool = workers(options);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3; ++i) {
        // The number is in the PTX.
        const int number = 1000 * (t + 1) + i;
        const auto compiled = pool->compile(good(number), kNever);
        if (!compiled || !compiled->ok ||
            compiled->modules.at(0).ptx.find(std::to_string(number)) == std::string::npos)
          ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  REQUIRE(wrong == 0);
  REQUIRE(living_children() <= 2);
}

TEST_CASE("a compile job can be cancelled") {
  const auto pool = workers();
  CompileRequest long_one = endless();
  long_one.deadline_ns = 600'000'000'000;
  CancelToken cancel;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    cancel.trigger();
  });
  const auto result = pool->compile(long_one, cancel);
  later.join();
  REQUIRE_FALSE(result);
  REQUIRE(result.error().code == ErrorCode::cancelled);
  compiles(*pool);
}

TEST_CASE("a worker that is missing, or is none, is an error that says where") {
  WorkerOptions options;
  options.worker_path = "/no/such/ptxbench-worker";
  auto pool = workers(options);
  auto result = pool->compile(good(), kNever);
  REQUIRE_FALSE(result);
  REQUIRE(result.error().code == ErrorCode::worker);
  REQUIRE(result.error().message.find("/no/such/ptxbench-worker") != std::string::npos);
  REQUIRE_FALSE(pool->check().found);

  options.worker_path = "/bin/true";
  pool = workers(options);
  result = pool->compile(good(), kNever);
  REQUIRE_FALSE(result);
  REQUIRE(result.error().code == ErrorCode::worker);
  const Workers::Check check = pool->check();
  REQUIRE(check.found);
  REQUIRE_FALSE(check.matches);
  REQUIRE(check.message.find("/bin/true") != std::string::npos);

  options.worker_path.clear();
  options.compile_workers = -1;
  REQUIRE_FALSE(Workers::create(options));
}

TEST_CASE("the worker is found beside the program, and checked") {
  auto made = Workers::create({});  // tests/../bin
  REQUIRE(made);
  const Workers::Check check = (*made)->check();
  INFO(check.message);
  REQUIRE(check.found);
  REQUIRE(check.matches);
  REQUIRE(check.version == version_string());
  REQUIRE(check.start_ns > 0);
}
