// A GEMM with its candidate, its compiled form and a device that answers, for the tests of launch plans.
#pragma once

#include "support/catch.hpp"

#include <ptxbench/plan.hpp>

#include <string>
#include <vector>

namespace ptxbench::testing {

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().to_string() + " [" + result.error().rule + "]");
  return std::move(result).value();
}

// C = A B^T with a float and an integer scalar, and an empty dimension Z.
inline DefinitionPtr gemm_definition() {
  Definition d;
  d.name = "gemm";
  d.op_type = "gemm";
  d.axes = {{"M", false, 0, {}}, {"N", true, 7168, {}}, {"K", true, 5120, {}}};
  d.inputs = {{"A", std::vector<std::string>{"M", "K"}, DType::bfloat16, {}},
              {"B", std::vector<std::string>{"N", "K"}, DType::bfloat16, {}},
              {"alpha", std::nullopt, DType::float32, {}},
              {"count", std::nullopt, DType::int32, {}}};
  d.outputs = {{"C", std::vector<std::string>{"M", "N"}, DType::bfloat16, {}},
               {"F", std::vector<std::string>{"M", "N"}, DType::float32, {}}};
  return must(make_definition(std::move(d)));
}

inline Workload gemm_workload(std::int64_t m = 8192) {
  Workload w;
  w.definition = gemm_definition();
  w.axes = {{"M", m}};
  w.inputs = {{"alpha", ScalarInput{std::int64_t{2}}}, {"count", ScalarInput{std::int64_t{7}}}};
  w.uuid = "00000000-0000-4000-8000-000000000000";
  return must(make_workload(std::move(w)));
}

inline constexpr char kGemmSource[] =
    "#include <cuda.h>\n#include <launch_plan.h>\n"
    "template <int BM, int BN>\n__global__ void __launch_bounds__(384) gemm(const __grid_constant__ "
    "CUtensorMap a) {}\n"
    "extern \"C\" __global__ void add(float* x, int n) {}\n"
    "__constant__ float scale[4];\n";

inline Solution solution_of(std::vector<SourceFile> sources) {
  Solution s;
  s.name = "candidate";
  s.definition = "gemm";
  s.author = "test";
  s.spec.language = "cuda";
  s.spec.target_hardware = {"cuda"};
  s.spec.entry_point = "launch.json::run";
  s.sources = std::move(sources);
  return s;
}
inline Solution gemm_solution() { return solution_of({{"launch.json", "{}"}, {"gemm.cu", kGemmSource}}); }

inline BindOptions h200() { return {must(device_profile("h200")), {}}; }

inline KernelInfo kernel_of(std::string symbol, std::vector<std::uint32_t> sizes) {
  KernelInfo out;
  out.symbol = std::move(symbol);
  std::uint32_t at = 0;
  for (const std::uint32_t size : sizes) {
    const std::uint32_t alignment = size >= 128 ? 64 : size >= 8 ? 8 : size;
    at = (at + alignment - 1) / alignment * alignment;
    out.parameters.push_back({at, size, true});
    at += size;
  }
  out.parameter_bytes = at;
  out.registers = 168;
  return out;
}

// What gemm.cu compiles to.
inline std::vector<ModuleInfo> gemm_modules() {
  ModuleInfo m;
  m.source = "gemm.cu";
  m.kernels = {kernel_of("_Z4gemmILi128ELi256EEv", {128, 128, 128, 8, 4}), kernel_of("add", {8, 4})};
  m.kernels[1].registers = 16;
  m.lowered = {{"gemm<plan::BM, plan::BN>", "_Z4gemmILi128ELi256EEv"}, {"&scale", "scale"}};
  m.globals = {{"scale", 16}};
  return {m};
}

// 2 CTAs an SM, 66 clusters.
inline DeviceQueries gemm_queries() {
  DeviceQueries q;
  q.occupancy = [](const OccupancyQuery&) -> Result<std::int64_t> { return std::int64_t{2}; };
  q.max_active_clusters = [](const OccupancyQuery&) -> Result<std::int64_t> { return std::int64_t{66}; };
  return q;
}

// The first plan of LAUNCH_PLAN.md.
inline constexpr char kGemmPlan[] = R"j({
  "version": 1,
  "constants": {"BM": 128, "BN": 256, "BK": 64, "STAGES": 4},
  "require":   ["STAGES*(BM+BN)*BK*2 + 1024 <= smem_optin_bytes"],
  "defines":   {"PROBLEM_N": "N", "PROBLEM_K": "K"},
  "compile":   {"fast_math": false, "maxrregcount": 168},
  "tensor_maps": [
    {"name": "map_a", "tensor": "A", "box": ["BK", "BM"], "swizzle": "128B", "l2_promotion": "256B"},
    {"name": "map_b", "tensor": "B", "box": ["BK", "BN"], "swizzle": "128B"},
    {"name": "map_c", "tensor": "C", "box": [64, "BM"], "swizzle": "128B"}
  ],
  "workspaces": [{"name": "tickets", "dtype": "uint32", "shape": ["ceil_div(M,BM)"], "init": 0}],
  "steps": [
    {"kernel": "gemm<plan::BM, plan::BN>", "as": "gemm",
     "grid": ["2*min(max_active_clusters(gemm), ceil_div(ceil_div(M,BM)*ceil_div(N,BN), 2))"],
     "block": [384], "cluster": [2], "shared_bytes": "STAGES*(BM+BN)*BK*2 + 1024",
     "args": [{"map": "map_a"}, {"map": "map_b"}, {"map": "map_c"}, {"workspace": "tickets"}, {"i32": "M"}]}
  ]
})j";

// A plan with the steps, and whatever else of the top level, given as JSON text.
inline std::string plan_with(const std::string& steps, const std::string& more = "") {
  return R"j({"version": 1, )j" + more + (more.empty() ? "" : ", ") + R"j("steps": [)j" + steps + "]}";
}
// A launch of `add`, which takes a pointer and an int, with members added.
inline std::string add_step(const std::string& more = "",
                            const std::string& args = R"j([{"tensor": "F"}, {"i32": "M"}])j") {
  return R"j({"kernel": "add", "grid": [8], "block": [256], "args": )j" + args + (more.empty() ? "" : ", ") +
         more + "}";
}

inline Result<BoundPlan> bind_text(const std::string& text, const Solution& solution = gemm_solution(),
                                   const BindOptions& options = h200(), std::int64_t m = 8192) {
  return bind_plan(must(LaunchPlan::parse(text)), solution, gemm_workload(m), options);
}
inline Result<ResolvedPlan> resolve_text(const std::string& text,
                                         const std::vector<ModuleInfo>& modules = gemm_modules(),
                                         const DeviceQueries& queries = gemm_queries(),
                                         std::int64_t m = 8192) {
  const Workload workload = gemm_workload(m);
  const BoundPlan bound = must(bind_plan(must(LaunchPlan::parse(text)), gemm_solution(), workload, h200()));
  return resolve_plan(bound, modules, scalars_of(workload), queries);
}

template <class T>
void check_error(const Result<T>& result, const std::string& pointer, const std::string& rule,
                 const std::string& message, ErrorCode code = ErrorCode::invalid_argument) {
  REQUIRE_FALSE(result.has_value());
  INFO(result.error().to_string());
  CHECK(result.error().code == code);
  CHECK(result.error().where.pointer == pointer);
  CHECK(result.error().rule == rule);
  CHECK(result.error().message.find(message) != std::string::npos);
}

}  // namespace ptxbench::testing
