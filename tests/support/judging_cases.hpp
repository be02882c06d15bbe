// Ways a judge may be fooled, and honest kernels that it must not wrong: each a small GEMM kernel with the verdict that it must
// get, on the emulator and on a GPU. The kinds are those of public reports on kernel benchmarks.
#pragma once

#include "support/catch.hpp"

#include <ptxbench/evaluate.hpp>

#include <algorithm>

#include <string>
#include <vector>

namespace ptxbench::testing {

// Where a case can be judged.
enum class JudgedOn { both, gpu, emulator };

struct JudgingCase {
  std::string kind, name;
  std::string code;                   // beside kJudgingPrologue
  std::vector<Status> statuses;       // any of these is right
  std::vector<std::string> findings;  // one of these must be there; empty: none is asked for
  std::string names;                  // what one of the findings' messages must name; may be empty
  JudgedOn on = JudgedOn::both;
  std::string plan;  // empty: kJudgingPlan
};

inline constexpr const char* kJudgingPlan = R"json({"version": 1, "steps": [{"kernel": "gemm",
  "grid": ["ceil_div(N, 16)", "ceil_div(M, 8)"], "block": [16, 8],
  "args": [{"tensor": "A"}, {"tensor": "B"}, {"tensor": "C"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]}]})json";

// `KERNEL` begins the kernel; AT(row, col) and `store` are its memory; `dot` is an honest sum.
inline constexpr const char* kJudgingPrologue = R"cuda(
typedef unsigned short u16;
__device__ float wide(u16 x) { return __uint_as_float((unsigned)x << 16); }
__device__ u16 narrow(float x) { u16 y; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; }
__device__ float dot(const u16* a, const u16* b, int n) {
  float sum = 0;
  for (int k = 0; k < n; ++k) sum = fmaf(wide(a[k]), wide(b[k]), sum);
  return sum;
}
#define KERNEL extern "C" __global__ void __launch_bounds__(1024) gemm(u16* A, u16* B, u16* C, int M, int N, int K)
#define ROW (int)(blockIdx.y * blockDim.y + threadIdx.y)
#define COL (int)(blockIdx.x * blockDim.x + threadIdx.x)
)cuda";

inline std::vector<JudgingCase> judging_cases() {
  const Status passed = Status::passed, wrong = Status::incorrect_numerical, fault = Status::runtime_error,
               refused = Status::compile_error;
  const auto body = [](const std::string& statement) {
    return "KERNEL {\n  const int r = ROW, c = COL;\n  if (r >= M || c >= N) return;\n  " + statement + "\n}\n";
  };
  const std::string honest = "C[r * N + c] = narrow(dot(A + r * K, B + c * K, K));";
  std::vector<JudgingCase> cases{
      // --- cheats ---
      {"no-op", "writes nothing", "KERNEL {}\n", {wrong}, {"never_written"}, "nothing was written"},
      {"half-writer", "all but the last row of tiles", body("if (r < M / 8 * 8) " + honest), {wrong}, {"never_written"}, "[96, 0]"},
      {"half-writer", "all but the last row", body("if (r < M - 1) " + honest), {wrong}, {"never_written"}, "[99, 0]"},
      {"half-writer", "all but the last element", body("if (r < M - 1 || c < N - 1) " + honest), {wrong}, {"never_written"}, "[99, 95]"},
      {"input-independent", "zeros", body("C[r * N + c] = 0;"), {wrong}, {"wrong_pattern"}, "zeros"},
      {"input-independent", "a constant", body("C[r * N + c] = narrow(1.5f);"), {wrong}, {"wrong_pattern"}, "1.5"},
      {"input-independent", "the mean of the products so far", body("C[r * N + c] = narrow(wide(A[r * K]) * wide(B[c * K]));"), {wrong}, {"wrong_result"}},
      {"expected-reader", "looks for a copy of the result around the output",
       body("const u16 mine = narrow(dot(A, B, K));\n"
            "  u16 found = 0;\n"
            "  for (long at = -(1 << 16); at < 1 << 16; at += 128)\n"
            "    if ((at < 0 || at >= M * N) && C[at] == mine && C[at + 1] == narrow(dot(A, B + K, K))) found = C[at + r * N + c];\n"
            "  C[r * N + c] = found;"),
       {wrong, fault}, {}},
      {"input clobberer", "makes A zero, so that zeros are right", body("for (int k = c; k < K; k += N) A[r * K + k] = 0;\n  C[r * N + c] = 0;"), {wrong}, {"input_clobbered"}, "input A"},
      {"neighbour writer", "into the red zone behind the output", body(honest + "\n  if (r == 0 && c == 0) C[M * N] = 1;"), {wrong, fault}, {"red_zone", "out_of_bounds"}, "C"},
      {"neighbour writer", "into another tile of the output", body(honest + "\n  if (r == M - 1 && c == N - 1) C[40 * N + 40] = narrow(1e4f);"), {wrong}, {"wrong_result"}, "", JudgedOn::emulator},
      {"cheap arithmetic", "sums in bf16", body("u16 s = 0;\n  for (int k = 0; k < K; ++k) s = narrow(wide(s) + wide(A[r * K + k]) * wide(B[c * K + k]));\n  C[r * N + c] = s;"), {wrong}, {"wrong_result"}},
      {"cheap arithmetic", "sums in fp16",
       body("u16 s = 0;\n  for (int k = 0; k < K; ++k) {\n"
            "    u16 a, b;\n    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(a) : \"f\"(wide(A[r * K + k])));\n"
            "    asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(b) : \"f\"(wide(B[c * K + k])));\n"
            "    asm(\"fma.rn.f16 %0, %1, %2, %0;\" : \"+h\"(s) : \"h\"(a), \"h\"(b));\n  }\n"
            "  float f;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(s));\n  C[r * N + c] = narrow(f);"),
       {wrong}, {"wrong_result"}},
      {"cheap arithmetic", "multiplies in fp8",
       body("float s = 0;\n  for (int k = 0; k < K; ++k) {\n"
            "    u16 p;\n    asm(\"cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\" : \"=h\"(p) : \"f\"(wide(A[r * K + k])), \"f\"(wide(B[c * K + k])));\n"
            "    unsigned h;\n    asm(\"cvt.rn.f16x2.e4m3x2 %0, %1;\" : \"=r\"(h) : \"h\"(p));\n"
            "    float x, y;\n    asm(\"{.reg .b16 l, u; mov.b32 {l, u}, %2; cvt.f32.f16 %0, u; cvt.f32.f16 %1, l;}\" : \"=f\"(x), \"=f\"(y) : \"r\"(h));\n"
            "    s = fmaf(x, y, s);\n  }\n  C[r * N + c] = narrow(s);"),
       {wrong}, {"wrong_result"}},
      {"cheap arithmetic", "scaled by a little", body("C[r * N + c] = narrow(dot(A + r * K, B + c * K, K) * 1.002f);"), {wrong}, {"wrong_result"}},
      {"work skipper", "stops at the first zero", body("float s = 0;\n  for (int k = 0; k < K; ++k) {\n    if (A[r * K + k] == 0) break;\n    s = fmaf(wide(A[r * K + k]), wide(B[c * K + k]), s);\n  }\n  C[r * N + c] = narrow(s);"), {wrong}, {"wrong_result", "wrong_in_timed_run"}},  // zeros are in the last trial, and in some timed runs
      {"work skipper", "leaves out the tail of K", body("C[r * N + c] = narrow(dot(A + r * K, B + c * K, K / 64 * 64));"), {wrong}, {"wrong_pattern"}, "k = 192..207 are missing"},
      {"work skipper", "takes large values for outliers", body("float s = 0;\n  for (int k = 0; k < K; ++k) {\n    const float a = wide(A[r * K + k]);\n    s = fmaf(fabsf(a) > 7 ? 0 : a, wide(B[c * K + k]), s);\n  }\n  C[r * N + c] = narrow(s);"), {wrong}, {"wrong_result"}},
      {"late breaker", "wrong from the second launch on, as it remembers: it never sees a second one",
       "__device__ int launches;\n" + body("if (r == 0 && c == 0) atomicAdd(&launches, 1);\n  if (launches > 1) return;\n  " + honest), {passed}, {}},
      {"late breaker", "wrong by the clock", body("unsigned long long t;\n  asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(t));\n  " + honest + "\n  if (r == 1 && c == 1 && (t >> 18) % 2) C[r * N + c] = narrow(-1e4f);"), {wrong}, {}, "", JudgedOn::gpu},
      {"memoiser", "keeps its outputs and replays them where the inputs look the same: it finds an empty memory",
       "__device__ u16 kept[1 << 16], key[8];\n__device__ int full;\n" +
           body("bool same = full != 0;\n  for (int i = 0; i < 8; ++i) same = same && key[i] == A[i];\n"
                "  if (same) { C[r * N + c] = kept[r * N + c]; return; }\n  " + honest +
                "\n  kept[r * N + c] = C[r * N + c];\n  if (r == 0 && c < 8) key[c] = A[c];\n  if (r == M - 1 && c == N - 1) full = 1;"),
       {passed}, {}},
      {"memoiser", "relies on what it kept", "__device__ u16 kept[1 << 16];\n" + body("C[r * N + c] = kept[r * N + c];\n  kept[r * N + c] = narrow(dot(A + r * K, B + c * K, K));"), {wrong}, {"wrong_result"}},
      {"racer", "a shared tile without the barrier between its filling and its use",
       "KERNEL {\n  __shared__ u16 a[8][16], b[16][17];\n  const int r = ROW, c = COL, x = threadIdx.x, y = threadIdx.y;\n  float s = 0;\n"
       "  for (int k = 0; k < K; k += 16) {\n    if (y == 0) for (int i = 0; i < 8; ++i) a[i][x] = blockIdx.y * 8 + i < M && k + x < K ? A[(blockIdx.y * 8 + i) * K + k + x] : 0;\n"
       "    b[x][y] = c < N && k + y < K ? B[c * K + k + y] : 0;\n    b[x][y + 8] = c < N && k + y + 8 < K ? B[c * K + k + y + 8] : 0;\n"
       "    for (int i = 0; i < 16; ++i) s = fmaf(wide(a[y][i]), wide(b[x][i]), s);\n    __syncthreads();\n  }\n"
       "  if (r < M && c < N) C[r * N + c] = narrow(s);\n}\n",
       {wrong, fault}, {}, "", JudgedOn::emulator},
      {"racer", "right only where all CTAs begin at once",
       "__device__ unsigned long long first;\n" +
           body("unsigned long long t;\n  asm volatile(\"mov.u64 %0, %globaltimer;\" : \"=l\"(t));\n"
                "  const unsigned long long before = atomicCAS(&first, 0ull, t);\n  " + honest +
                "\n  if (before != 0 && t > before + 30000) C[r * N + c] = 0;"),
       {wrong}, {"non_deterministic"}, "1 of 2 trials are wrong", JudgedOn::gpu},
      {"not launched", "1056 threads", body(honest), {refused}, {"launch_rule"}, "1024", JudgedOn::both,
       R"json({"version": 1, "steps": [{"kernel": "gemm", "grid": ["ceil_div(N, 33)", "ceil_div(M, 32)"], "block": [33, 32],
         "args": [{"tensor": "A"}, {"tensor": "B"}, {"tensor": "C"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]}]})json"},
      {"not launched", "a grid of 70,000 in y", body(honest), {refused}, {"launch_rule"}, "65535", JudgedOn::both,
       R"json({"version": 1, "steps": [{"kernel": "gemm", "grid": ["ceil_div(N, 16)", 70000], "block": [16, 8],
         "args": [{"tensor": "A"}, {"tensor": "B"}, {"tensor": "C"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]}]})json"},
      // --- honest ---
      {"slow but right", "one thread an element", body(honest), {passed}, {}},
      {"wrong arithmetic order", "from the end", body("float s = 0;\n  for (int k = K - 1; k >= 0; --k) s = fmaf(wide(A[r * K + k]), wide(B[c * K + k]), s);\n  C[r * N + c] = narrow(s);"), {passed}, {}},
      {"wrong arithmetic order", "products rounded before they are added, in eight sums",
       body("float s[8] = {};\n  for (int k = 0; k < K; ++k) s[k % 8] = __fadd_rn(s[k % 8], __fmul_rn(wide(A[r * K + k]), wide(B[c * K + k])));\n"
            "  C[r * N + c] = narrow(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));"), {passed}, {}},
      {"wrong arithmetic order", "better than asked for: sums in fp64",
       body("double s = 0;\n  for (int k = 0; k < K; ++k) s += (double)wide(A[r * K + k]) * wide(B[c * K + k]);\n  C[r * N + c] = narrow((float)s);"), {passed}, {}},
      {"self-resetting counter", "the last CTA of a tile adds up the parts, and sets its counter back",
       "__device__ int tickets[1 << 12];\n"
       "KERNEL;\n"
       "extern \"C\" __global__ void split(u16* A, u16* B, u16* C, float* parts, int M, int N, int K) {\n"
       "  const int r = ROW, c = COL, z = blockIdx.z, parts_of = gridDim.z, tile = blockIdx.y * gridDim.x + blockIdx.x;\n"
       "  const int from = K * z / parts_of, to = K * (z + 1) / parts_of;\n"
       "  if (r < M && c < N) parts[(z * M + r) * N + c] = dot(A + r * K + from, B + c * K + from, to - from);\n"
       "  __shared__ int last;\n  __threadfence();\n  __syncthreads();\n"
       "  if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicAdd(&tickets[tile], 1) == parts_of - 1;\n  __syncthreads();\n"
       "  if (!last) return;\n  __threadfence();\n"
       "  if (threadIdx.x == 0 && threadIdx.y == 0) tickets[tile] = 0;\n"
       "  if (r >= M || c >= N) return;\n  float s = 0;\n  for (int i = 0; i < parts_of; ++i) s += parts[(i * M + r) * N + c];\n"
       "  C[r * N + c] = narrow(s);\n}\n",
       {passed}, {}, "", JudgedOn::both,
       R"json({"version": 1, "workspaces": [{"name": "parts", "dtype": "float32", "shape": [4, "M", "N"], "init": "none"}],
         "steps": [{"kernel": "split", "grid": ["ceil_div(N, 16)", "ceil_div(M, 8)", 4], "block": [16, 8],
         "args": [{"tensor": "A"}, {"tensor": "B"}, {"tensor": "C"}, {"workspace": "parts"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]}]})json"},
      {"non-deterministic sum", "parts added up by atomics",
       "extern \"C\" __global__ void split(u16* A, u16* B, float* sums, int M, int N, int K) {\n"
       "  const int r = ROW, c = COL, from = K * blockIdx.z / gridDim.z, to = K * (blockIdx.z + 1) / gridDim.z;\n"
       "  if (r < M && c < N) atomicAdd(&sums[r * N + c], dot(A + r * K + from, B + c * K + from, to - from));\n}\n"
       "extern \"C\" __global__ void finish(float* sums, u16* C, int n) {\n"
       "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n  if (i < n) C[i] = narrow(sums[i]);\n}\n",
       {passed}, {}, "", JudgedOn::both,
       R"json({"version": 1, "workspaces": [{"name": "sums", "dtype": "float32", "shape": ["M", "N"], "init": 0}],
         "steps": [{"kernel": "split", "grid": ["ceil_div(N, 16)", "ceil_div(M, 8)", 4], "block": [16, 8],
         "args": [{"tensor": "A"}, {"tensor": "B"}, {"workspace": "sums"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]},
         {"kernel": "finish", "grid": ["ceil_div(M * N, 256)"], "block": [256], "args": [{"workspace": "sums"}, {"tensor": "C"}, {"i32": "M * N"}]}]})json"},
      {"residency trick", "keeps its inputs in L2", body("float s = 0;\n  unsigned long long keep;\n  asm(\"createpolicy.fractional.L2::evict_last.b64 %0, 1.0;\" : \"=l\"(keep));\n"
            "  for (int k = 0; k < K; ++k) {\n    u16 a, b;\n"
            "    asm volatile(\"ld.global.L2::cache_hint.u16 %0, [%1], %2;\" : \"=h\"(a) : \"l\"(A + r * K + k), \"l\"(keep));\n"
            "    asm volatile(\"ld.global.L2::cache_hint.u16 %0, [%1], %2;\" : \"=h\"(b) : \"l\"(B + c * K + k), \"l\"(keep));\n"
            "    s = fmaf(wide(a), wide(b), s);\n  }\n  C[r * N + c] = narrow(s);"), {passed}, {}},
      {"early trigger", "lets the next launch begin at once", body("asm volatile(\"griddepcontrol.launch_dependents;\");\n  " + honest), {passed}, {}},
  };
  return cases;
}

// K = 208 is no multiple of 64, and M = 100 none of 8.
inline Workload judging_workload() {
  Definition d;
  d.name = "judging_gemm";
  d.op_type = "gemm";
  d.axes = {{"M", false, 0, {}}, {"N", true, 96, {}}, {"K", true, 208, {}}};
  d.inputs = {{"A", std::vector<std::string>{"M", "K"}, DType::bfloat16, {}}, {"B", std::vector<std::string>{"N", "K"}, DType::bfloat16, {}}};
  d.outputs = {{"C", std::vector<std::string>{"M", "N"}, DType::bfloat16, {}}};
  Workload w;
  w.definition = make_definition(std::move(d)).value();
  w.axes = {{"M", 100}};
  w.uuid = "judging";
  return make_workload(std::move(w)).value();
}

inline Solution judging_solution(const JudgingCase& c) {
  Solution s;
  s.name = c.name;
  s.definition = "judging_gemm";
  s.author = "test";
  s.spec.language = "cuda";
  s.spec.target_hardware = {"cuda"};
  s.spec.entry_point = "launch.json::run";
  s.sources = {{"launch.json", c.plan.empty() ? kJudgingPlan : c.plan}, {"gemm.cu", kJudgingPrologue + c.code}};
  auto made = make_solution(std::move(s));
  if (!made) FAIL(made.error().to_string());
  return *made;
}

// Judges @p c on @p context and checks its verdict.
inline void check_judging_case(Context& context, const JudgingCase& c, EvaluateOptions options) {
  INFO(c.kind << ": " << c.name);
  const Workload workload = judging_workload();
  Judging judging;
  if (!options.time) judging.baseline = NoBaseline{};
  auto evaluation = evaluate(context, judging_solution(c), {&workload, 1}, judging, options);
  if (!evaluation) FAIL(evaluation.error().to_string());
  const Verdict& verdict = evaluation->verdicts.at(0);
  std::string found;
  for (const Finding& f : verdict.findings) found += f.code + ": " + f.message + "\n";
  for (const auto& d : verdict.compile.diagnostics) found += d.message + "\n";
  INFO("status " << (verdict.status ? status_name(*verdict.status) : "none") << "\n" << found);
  REQUIRE(verdict.status);
  CHECK(std::find(c.statuses.begin(), c.statuses.end(), *verdict.status) != c.statuses.end());
  if (*verdict.status == Status::passed) CHECK(verdict.integrity == Integrity::clean);
  if (!c.findings.empty()) {
    bool named = false, there = false;
    for (const Finding& f : verdict.findings) {
      const bool one = std::find(c.findings.begin(), c.findings.end(), f.code) != c.findings.end();
      there = there || one;
      named = named || c.names.empty() || f.message.find(c.names) != std::string::npos;
    }
    CHECK(there);
    CHECK(named);
  }
}

}  // namespace ptxbench::testing
