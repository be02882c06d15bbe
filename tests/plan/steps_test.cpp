#include "plan_support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

const std::string kWorkspaces =
    R"j("workspaces": [{"name": "w", "dtype": "float32", "shape": [100]}, {"name": "v", "dtype": "float32", "shape": [50]},
                       {"name": "q", "dtype": "float4_e2m1", "shape": [9]}, {"name": "d", "dtype": "float64", "shape": [4]}])j";

Result<ResolvedPlan> run(const std::string& steps, const std::vector<ModuleInfo>& modules = gemm_modules(),
                         const DeviceQueries& queries = gemm_queries()) {
  return resolve_text(plan_with(steps, kWorkspaces), modules, queries);
}

// `add` with one kernel changed by `change`.
template <class F>
Result<ResolvedPlan> with_kernel(const std::string& step, F change,
                                 const DeviceQueries& queries = gemm_queries()) {
  std::vector<ModuleInfo> modules = gemm_modules();
  change(modules[0].kernels[1]);
  return run(step, modules, queries);
}

std::string launch_of(const std::string& members) {
  return R"j({"kernel": "add", "args": [{"tensor": "F"}, {"i32": "M"}], )j" + members + "}";
}

}  // namespace

TEST_CASE("memset writes typed values to outputs and workspaces") {
  const ResolvedPlan plan = must(run(R"j({"memset": "w", "value": 1.5, "offset": 10, "elements": 5},
    {"memset": "F", "value": 0}, {"memset": "C", "value": -2, "offset": "N"}, {"memset": "q", "value": 1.5, "offset": 2},
    {"memset": "d", "value": 1, "offset": 4}, {"memset": "w", "value": 0, "elements": 0})j"));
  const auto at = [&](std::size_t i) { return std::get<ResolvedMemset>(plan.operations.at(i)); };
  CHECK(at(0).step == 0);
  CHECK(at(0).to.kind == BufferRef::Kind::workspace);
  CHECK(at(0).to.byte_offset == 40);
  CHECK(at(0).elements == 5);
  CHECK(at(0).element_bytes == 4);
  CHECK(at(0).pattern == 0x3fc00000);
  CHECK(at(1).to.kind == BufferRef::Kind::output);
  CHECK(at(1).to.index == 1);
  CHECK(at(1).elements == 8192 * 7168);
  CHECK(at(2).pattern == 0xc000);
  CHECK(at(2).elements == 8191 * 7168);
  CHECK(at(3).to.byte_offset == 1);  // two elements a byte
  CHECK(at(3).elements == 4);        // seven elements to the end
  CHECK(at(3).element_bytes == 1);
  CHECK(at(3).pattern == 0x33);
  CHECK(at(4).elements == 0);
  CHECK(at(5).elements == 0);
  const std::vector<std::tuple<std::string, std::string, std::string>> rows{
      {R"j("memset": "w", "value": 0, "offset": 101)j", "/steps/0", "do not lie inside `w`"},
      {R"j("memset": "w", "value": 0, "offset": 99, "elements": 2)j", "/steps/0",
       "2 elements from 99 do not lie inside `w`, which has 100"},
      {R"j("memset": "w", "value": 0, "offset": -1)j", "/steps/0/offset", "is negative"},
      {R"j("memset": "w", "value": 0, "elements": "-M")j", "/steps/0/elements", "is negative"},
      {R"j("memset": "w", "value": 1e39)j", "/steps/0/value", "out of range for float32"},
      {R"j("memset": "w", "value": true)j", "/steps/0/value", "no value of float32"},
      {R"j("memset": "q", "value": 0, "offset": 1)j", "/steps/0", "must be even"},
      {R"j("memset": "q", "value": 0, "elements": 3)j", "/steps/0", "must be even"},
  };
  for (const auto& [members, pointer, message] : rows) {
    INFO(members);
    check_error(run("{" + members + "}"), pointer, "plan_invalid", message);
  }
}

TEST_CASE("copies move elements between buffers of one type") {
  const ResolvedPlan plan = must(
      run(R"j({"copy": ["v", "w"]}, {"copy": ["w", "v"], "from_offset": 60, "to_offset": 10, "elements": 40},
    {"copy": ["A", "C"], "elements": "K"}, {"copy": ["w", "w"], "to_offset": 50, "elements": 50})j"));
  const auto at = [&](std::size_t i) { return std::get<ResolvedCopy>(plan.operations.at(i)); };
  CHECK(at(0).bytes == 200);
  CHECK(at(1).from.byte_offset == 240);
  CHECK(at(1).to.byte_offset == 40);
  CHECK(at(1).bytes == 160);
  CHECK(at(2).from.kind == BufferRef::Kind::input);
  CHECK(at(2).to.kind == BufferRef::Kind::output);
  CHECK(at(3).step == 3);
  const std::vector<std::tuple<std::string, std::string>> rows{
      {R"j("copy": ["w", "v"])j", "100 elements from 0 do not lie inside `v`"},
      {R"j("copy": ["v", "w"], "to_offset": 51)j", "50 elements from 51 do not lie inside `w`"},
      {R"j("copy": ["w", "v"], "from_offset": 101)j", "do not lie inside `w`"},
      {R"j("copy": ["w", "w"], "to_offset": 49, "elements": 50)j", "overlaps"},
  };
  for (const auto& [members, message] : rows) {
    INFO(members);
    check_error(run("{" + members + "}"), "/steps/0", "plan_invalid", message);
  }
}

TEST_CASE("steps repeat with an index and run on conditions") {
  const ResolvedPlan plan =
      must(run(add_step(R"j("repeat": 4, "when": "i != 2")j",
                        R"j([{"tensor": "F", "offset": "i * 4"}, {"i32": "i"}])j") +
               "," + add_step(R"j("when": "M < 100")j") + "," +
               R"j({"memset": "w", "value": "i", "offset": "10*i", "elements": 1, "repeat": "count - 5"})j"));
  REQUIRE(plan.operations.size() == 5);
  CHECK(std::get<ResolvedLaunch>(plan.operations[2]).parameters[8] == 3);
  CHECK(std::get<BufferRef>(std::get<ResolvedLaunch>(plan.operations[2]).patches[0].what).byte_offset == 48);
  CHECK(std::get<ResolvedMemset>(plan.operations[4]).to.byte_offset == 40);
  CHECK(std::get<ResolvedMemset>(plan.operations[4]).pattern == 0x3f800000);
  CHECK(plan.evidence.find(R"j({"step":0,"i":2,"when":false})j") != std::string::npos);
  CHECK(plan.evidence.find(R"j({"step":1,"when":false})j") != std::string::npos);
  // What does not run is not evaluated.
  CHECK(must(run(add_step(R"j("when": false)j", R"j([{"i32": "M / 0"}])j"))).operations.empty());
  CHECK(must(run(add_step(R"j("repeat": 0)j"))).operations.empty());
  check_error(run(add_step(R"j("repeat": -1)j")), "/steps/0/repeat", "plan_limit", "0 to 512 times");
  check_error(run(add_step(R"j("repeat": 513)j")), "/steps/0/repeat", "plan_limit", "`513` = 513");
  check_error(run(add_step(R"j("repeat": 1.5)j")), "/steps/0/repeat", "expression", "must be an integer");
  CHECK(must(run(add_step(R"j("repeat": 512)j"))).operations.size() == 512);
  check_error(run(add_step(R"j("repeat": 512)j") + "," + add_step()), "/steps/1", "plan_limit",
              "more than 512 operations");
  check_error(run(add_step(R"j("when": "1 / (M - 8192)")j")), "/steps/0/when", "expression",
              "division by zero: 1 / 0");
}

TEST_CASE("pdl needs a kernel directly before it in the run") {
  const ResolvedPlan plan = must(run(add_step() + "," + add_step(R"j("pdl": true, "repeat": 2)j")));
  CHECK_FALSE(std::get<ResolvedLaunch>(plan.operations[0]).pdl);
  CHECK(std::get<ResolvedLaunch>(plan.operations[1]).pdl);
  CHECK(std::get<ResolvedLaunch>(plan.operations[2]).pdl);
  check_error(run(add_step(R"j("when": false)j") + "," + add_step(R"j("pdl": true)j")), "/steps/1/pdl",
              "launch_rule", "in this run there is none");
}

TEST_CASE("launch attributes arrive") {
  const ResolvedPlan plan = must(run(launch_of(
      R"j("grid": [8, 4, 2], "block": [16, 8, 2], "cluster": [2, 2], "cluster_policy": "load_balancing", "carveout": "50", "shared_bytes": 49152)j")));
  const auto& l = std::get<ResolvedLaunch>(plan.operations[0]);
  CHECK(l.grid == std::array<std::uint32_t, 3>{8, 4, 2});
  CHECK(l.block == std::array<std::uint32_t, 3>{16, 8, 2});
  CHECK(l.cluster == std::array<std::uint32_t, 3>{2, 2, 1});
  CHECK(l.cluster_policy == 2);
  CHECK(l.carveout == 50);
  CHECK(l.dynamic_shared_bytes == 49152);
}

TEST_CASE("launch rules that need the code") {
  using K = KernelInfo;
  const std::string plain = launch_of(R"j("grid": [8], "block": [256])j");
  const auto nothing = [](K&) {};
  check_error(with_kernel(launch_of(R"j("grid": [0], "block": [1])j"), nothing), "/steps/0/grid",
              "launch_rule", "grid[0] = 0");
  check_error(with_kernel(launch_of(R"j("grid": ["M - 9000"], "block": [1])j"), nothing), "/steps/0/grid",
              "launch_rule", "grid[0] = -808 (`M - 9000`)");
  check_error(with_kernel(launch_of(R"j("grid": [1, 65536], "block": [1])j"), nothing), "/steps/0/grid",
              "launch_rule", "1 to 65535");
  check_error(with_kernel(launch_of(R"j("grid": [2147483648], "block": [1])j"), nothing), "/steps/0/grid",
              "launch_rule", "1 to 2147483647");
  check_error(with_kernel(launch_of(R"j("grid": [130], "block": [1], "cluster": [4])j"), nothing),
              "/steps/0/grid", "launch_rule",
              "the grid 130 x 1 x 1 is not a multiple of the cluster 4 x 1 x 1");
  check_error(with_kernel(launch_of(R"j("grid": [4], "block": [1], "cluster": [2, 2])j"), nothing),
              "/steps/0/grid", "launch_rule", "not a multiple");
  CHECK(with_kernel(launch_of(R"j("grid": [2147483647], "block": [1])j"), nothing));

  check_error(with_kernel(plain,
                          [](K& k) {
                            k.required_block = {{128, 1, 1}};
                          }),
              "/steps/0/block", "launch_rule",
              "the plan's block is 256 x 1 x 1, but the code requires 128 x 1 x 1 (.reqntid)");
  CHECK(with_kernel(plain, [](K& k) { k.required_block = {{256, 1, 1}}; }));
  check_error(with_kernel(plain,
                          [](K& k) {
                            k.max_block = {{255, 1, 1}};
                          }),
              "/steps/0/block", "launch_rule", "at most 255");
  CHECK(with_kernel(plain, [](K& k) { k.max_block = {{16, 16, 1}}; }));
  check_error(with_kernel(launch_of(R"j("grid": [8], "block": [1], "cluster": [2])j"),
                          [](K& k) {
                            k.required_cluster = {{4, 1, 1}};
                          }),
              "/steps/0/cluster", "launch_rule", "the code requires 4 x 1 x 1");
  check_error(with_kernel(plain, [](K& k) { k.explicit_cluster = true; }), "/steps/0/cluster", "launch_rule",
              ".explicitcluster");
  const ResolvedPlan stated = must(with_kernel(plain, [](K& k) { k.required_cluster = {{2, 1, 1}}; }));
  CHECK(std::get<ResolvedLaunch>(stated.operations[0]).cluster[0] == 2);
  CHECK(with_kernel(plain, [](K& k) { k.required_cluster = {{0, 0, 0}}; }));  // states nothing
  check_error(with_kernel(plain,
                          [](K& k) {
                            k.required_cluster = {{65536, 65536, 65536}};
                          }),
              "/steps/0/cluster", "launch_rule", "at most 16");

  check_error(with_kernel(launch_of(R"j("grid": [1], "block": [1], "shared_bytes": "227*1024")j"),
                          [](K& k) { k.static_shared_bytes = 1; }),
              "/steps/0/shared_bytes", "launch_rule",
              "232448 bytes of dynamic and 1 of static shared memory make 232449");
  CHECK(with_kernel(launch_of(R"j("grid": [1], "block": [1], "shared_bytes": "48*1024")j"),
                    [](K& k) { k.static_shared_bytes = 48 * 1024; }));

  check_error(with_kernel(launch_of(R"j("grid": [1], "block": [1024])j"), [](K& k) { k.registers = 65; }),
              "/steps/0/block", "launch_rule", "1024 threads of 65 registers need 73728 registers");
  CHECK(with_kernel(launch_of(R"j("grid": [1], "block": [1024])j"), [](K& k) { k.registers = 64; }));
  check_error(with_kernel(launch_of(R"j("grid": [1], "block": [416])j"), [](K& k) { k.registers = 168; }),
              "/steps/0/block", "launch_rule", "allocated to 16 warps");
  CHECK(with_kernel(launch_of(R"j("grid": [1], "block": [384])j"), [](K& k) { k.registers = 168; }));
  CHECK(
      with_kernel(launch_of(R"j("grid": [1], "block": [1024])j"), [](K& k) { k.registers = 0; }));  // unknown
}

TEST_CASE("a cooperative grid must be resident at once") {
  const std::string fits = launch_of(R"j("grid": [264], "block": [1], "cooperative": true)j");
  const ResolvedPlan plan = must(run(fits));
  CHECK(std::get<ResolvedLaunch>(plan.operations[0]).cooperative);
  check_error(run(launch_of(R"j("grid": [265], "block": [1], "cooperative": true)j")), "/steps/0/grid",
              "launch_rule", "a cooperative launch of 265 CTAs: the device holds only 264 at a time");
  CHECK(run(launch_of(R"j("grid": [132], "block": [1], "cluster": [2], "cooperative": true)j")));
  check_error(run(launch_of(R"j("grid": [134], "block": [1], "cluster": [2], "cooperative": true)j")),
              "/steps/0/grid", "launch_rule", "only 132");
}

TEST_CASE("a cluster that never fits is refused") {
  DeviceQueries none = gemm_queries();
  none.max_active_clusters = [](const OccupancyQuery&) -> Result<std::int64_t> { return std::int64_t{0}; };
  check_error(run(launch_of(R"j("grid": [16], "block": [1], "cluster": [16])j"), gemm_modules(), none),
              "/steps/0/cluster", "launch_rule", "not one cluster of 16 x 1 x 1");
  CHECK(run(launch_of(R"j("grid": [16], "block": [1], "cluster": [16])j")));
}

TEST_CASE("PTX may state block and cluster in the plan's place") {
  const Solution solution =
      solution_of({{"k.ptx", ".visible .entry add(.param .u64 p, .param .u32 n) .reqntid 128 { ret; }"}});
  ModuleInfo module;
  module.source = "k.ptx";
  module.kernels = {kernel_of("add", {8, 4})};
  module.kernels[0].required_block = {{128, 1, 1}};
  module.kernels[0].required_cluster = {{2, 1, 1}};
  module.kernels[0].explicit_cluster = true;
  const std::string text =
      plan_with(R"j({"kernel": "add", "grid": [6], "args": [{"tensor": "F"}, {"i32": 1}]})j");
  const BoundPlan bound = must(bind_text(text, solution));
  CHECK(bound.sources[0].name_expressions.empty());
  const ResolvedPlan plan = must(resolve_plan(bound, {module}, {}, gemm_queries()));
  const auto& l = std::get<ResolvedLaunch>(plan.operations[0]);
  CHECK(l.block[0] == 128);
  CHECK(l.has_cluster);
  CHECK(l.cluster[0] == 2);
  CHECK(l.grid[0] == 6);  // CTAs, always
  module.kernels[0].required_block = std::nullopt;
  check_error(resolve_plan(bound, {module}, {}, gemm_queries()), "/steps/0/block", "launch_rule",
              "the code does not state it");
}
