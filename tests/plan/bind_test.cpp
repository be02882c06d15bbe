#include "plan_support.hpp"

#include <algorithm>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

std::string define_of(const BoundPlan& bound, const std::string& name) {
  for (const auto& [n, text] : bound.defines)
    if (n == name) return text;
  return "(none)";
}

std::string defines_text(const std::string& expression) {
  return plan_with(add_step(),
                   R"j("constants": {"half": 0.5, "flag": true}, "defines": {"XX": )j" + expression + "}");
}

}  // namespace

TEST_CASE("the reference page's plan binds") {
  const BoundPlan bound = must(bind_text(kGemmPlan));
  CHECK(bound.applicable);
  CHECK(bound.findings.empty());
  CHECK(bound.defines ==
        std::vector<std::pair<std::string, std::string>>{{"PROBLEM_K", "5120"}, {"PROBLEM_N", "7168"}});
  REQUIRE(bound.sources.size() == 1);
  CHECK(bound.sources[0].path == "gemm.cu");
  CHECK(bound.sources[0].name_expressions == std::vector<std::string>{"gemm<plan::BM, plan::BN>"});
  CHECK(bound.sources[0].options.std == "c++17");
  CHECK_FALSE(bound.sources[0].options.fast_math);
  CHECK(bound.sources[0].options.maxrregcount == 168);
  CHECK(
      bound.launch_plan_header ==
      "// Made by ptxbench from the `constants` of launch.json.\n"
      "#ifndef PTXBENCH_LAUNCH_PLAN_H\n#define PTXBENCH_LAUNCH_PLAN_H\nnamespace plan {\n"
      "constexpr int BM = 128;\nconstexpr int BN = 256;\nconstexpr int BK = 64;\nconstexpr int STAGES = 4;\n"
      "}  // namespace plan\n#endif\n");
}

TEST_CASE("constants become constexpr of their kind") {
  const std::string constants =
      R"j("constants": {"a": 2147483647, "b": 2147483648, "c": -2147483648, "d": -2147483649, "e": 0.1, "f": 2.0, "g": 1e30,
         "h": true, "k": -9223372036854775808, "l": false, "m": -0.5})j";
  const std::string header = must(bind_text(plan_with(add_step(), constants))).launch_plan_header;
  for (const char* line :
       {"constexpr int a = 2147483647;", "constexpr long long b = 2147483648LL;",
        "constexpr int c = -2147483647 - 1;", "constexpr long long d = -2147483649LL;",
        "constexpr float e = 0.1f;", "constexpr float f = 2.0f;", "constexpr float g = 1e+30f;",
        "constexpr bool h = true;", "constexpr long long k = -9223372036854775807LL - 1;",
        "constexpr bool l = false;", "constexpr float m = -0.5f;"}) {
    INFO(line);
    CHECK(header.find(line) != std::string::npos);
  }
}

TEST_CASE("macros print as the page says") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"\"N\"", "7168"},
      {"\"-N\"", "-7168"},
      {"\"half\"", "0.5f"},
      {"0.1", "0.1f"},
      {"\"2.0\"", "2.0f"},
      {"1e30", "1e+30f"},
      {"\"1/3.0\"", "0.33333334f"},
      {"\"alpha\"", "2.0f"},
      {"\"count\"", "7"},
      {"\"flag\"", "true"},
      {"\"sm_count\"", "132"},
      {R"j({"token": "__nv_bfloat16"})j", "__nv_bfloat16"},
      {"\"min(M, 70)\"", "70"}};
  for (const auto& [expression, text] : rows) {
    INFO(expression);
    CHECK(define_of(must(bind_text(defines_text(expression))), "XX") == text);
  }
  check_error(bind_text(defines_text("\"1e38*100\"")), "/defines/XX", "expression",
              "does not fit a float literal");
  check_error(bind_text(defines_text("\"occupancy(add)\"")), "/defines/XX", "expression",
              "only after compiling");
  check_error(bind_text(defines_text("\"PROBLEM\"")), "/defines/XX", "unknown_name",
              "unknown name `PROBLEM`");
}

TEST_CASE("a false requirement makes the plan not applicable, with its values") {
  const BoundPlan bound =
      must(bind_text(kGemmPlan, gemm_solution(), {h200().limits, {{"STAGES", std::int64_t{8}}}}));
  CHECK_FALSE(bound.applicable);
  CHECK(bound.not_applicable_reason ==
        "/require/0: `STAGES*(BM+BN)*BK*2 + 1024 <= smem_optin_bytes` is false with STAGES = 8, BM = 128, BN "
        "= 256, "
        "BK = 64, smem_optin_bytes = 232448");
  CHECK(bound.sources.empty());
  const auto resolved = resolve_plan(bound, gemm_modules(), {}, gemm_queries());
  REQUIRE_FALSE(resolved);
  CHECK(resolved.error().code == ErrorCode::state);
  CHECK_FALSE(
      must(bind_text(plan_with(add_step(), R"j("require": ["M % 128 == 0"])j"), gemm_solution(), h200(), 70))
          .applicable);
  CHECK(must(bind_text(plan_with(add_step(), R"j("require": ["M % 128 == 0", true])j"))).applicable);
  check_error(bind_text(plan_with(add_step(), R"j("require": ["M / (N - 7168) > 1"])j")), "/require/0",
              "expression", "division by zero: 8192 / 0");
  check_error(bind_text(plan_with(add_step(), R"j("require": ["max_active_clusters(add) > 1"])j")),
              "/require/0", "expression", "only after compiling");
}

TEST_CASE("overrides keep the constant's kind") {
  const std::string text = plan_with(add_step(), R"j("constants": {"n": 4, "x": 0.5, "b": true})j");
  const auto with = [&](const std::string& name, PlanNumber value) {
    return bind_text(text, gemm_solution(), {h200().limits, {{name, value}}});
  };
  const auto has = [](const Result<BoundPlan>& bound, const std::string& line) {
    return must(Result<BoundPlan>(bound)).launch_plan_header.find(line) != std::string::npos;
  };
  CHECK(has(with("n", std::int64_t{8}), "int n = 8;"));
  CHECK(has(with("n", 8.0), "int n = 8;"));
  CHECK(has(with("x", std::int64_t{2}), "float x = 2.0f;"));
  CHECK(has(with("b", false), "bool b = false;"));
  check_error(with("n", 8.5), "/constants/n", "plan_invalid", "it is an integer (4), which 8.5 is not");
  check_error(with("n", true), "/constants/n", "plan_invalid", "which true is not");
  check_error(with("x", true), "/constants/x", "plan_invalid", "it is a float (0.5)");
  check_error(with("x", 1e300), "/constants/x", "plan_invalid", "does not fit a float");
  check_error(with("b", std::int64_t{1}), "/constants/b", "plan_invalid", "it is a boolean");
  check_error(with("m", std::int64_t{1}), "/constants", "unknown_name", "no such constant");
}

TEST_CASE("an override that no source can see is a warning") {
  const std::string text =
      plan_with(add_step(), R"j("constants": {"BM": 64, "BN": 64}, "defines": {"TILE_N": "BN"})j");
  const Solution blind =
      solution_of({{"launch.json", "{}"},
                   {"gemm.cu", "// #include <launch_plan.h>\nextern \"C\" __global__ void add() {}"}});
  const BindOptions options{h200().limits, {{"BM", std::int64_t{128}}, {"BN", std::int64_t{128}}}};
  const BoundPlan bound = must(bind_text(text, blind, options));
  REQUIRE(bound.findings.size() == 1);  // BN reaches the sources through a macro
  CHECK(bound.findings[0].code == "override_unused");
  CHECK(bound.findings[0].severity == Severity::warning);
  CHECK(bound.findings[0].evidence == R"j({"constant":"BM","value":"128"})j");
  CHECK(must(bind_text(text, gemm_solution(), options)).findings.empty());
  Solution through_header = blind;
  through_header.sources.push_back({"tile.cuh", "#  include \"launch_plan.h\"\n"});
  CHECK(must(bind_text(text, through_header, options)).findings.empty());
}

TEST_CASE("what a plan refers to must exist, and is told before compiling") {
  const std::string workspace = R"j("workspaces": [{"name": "tickets", "dtype": "uint32", "shape": [4]}])j";
  struct Row {
    std::string text, pointer, rule, message;
  };
  const std::vector<Row> rows{
      {plan_with(R"j({"kernel": "add", "grid": ["MM"], "block": [1]})j"), "/steps/0/grid/0", "unknown_name",
       "did you mean `M`?"},
      {plan_with(R"j({"kernel": "add", "grid": ["i"], "block": [1]})j"), "/steps/0/grid/0", "unknown_name",
       "index of a repeated step"},
      {plan_with(R"j({"kernel": "add", "grid": ["i + 1"], "block": ["i"], "repeat": 2})j"),
       "/steps/0/block/0", "unknown_name", "index"},
      {plan_with(R"j({"kernel": "add", "grid": ["occupancy(adds)"], "block": [1]})j"), "/steps/0/grid/0",
       "unknown_name", "did you mean `add`?"},
      {plan_with(R"j({"kernel": "add", "grid": [1], "block": ["occupancy(add)"]})j"), "/steps/0/block/0",
       "expression", "only after compiling"},
      {plan_with(R"j({"kernel": "add", "grid": [1], "block": [1], "shared_bytes": "occupancy(add)"})j"),
       "/steps/0/shared_bytes", "expression", "only after compiling"},
      {plan_with(
           R"j({"kernel": "add", "grid": ["occupancy(add)"], "block": [1]}, {"kernel": "add", "grid": [1], "block": [1]})j"),
       "/steps/0/grid/0", "expression", "several steps (0, 1)"},
      {plan_with(add_step("", R"j([{"tensor": "D"}])j")), "/steps/0/args/0/tensor", "unknown_name",
       "there is no buffer `D`"},
      {plan_with(add_step("", R"j([{"tensor": "alpha"}])j")), "/steps/0/args/0/tensor", "unknown_name",
       "write {\"scalar\""},
      {plan_with(add_step("", R"j([{"tensor": "tickets"}])j"), workspace), "/steps/0/args/0/tensor",
       "unknown_name", "write {\"workspace\""},
      {plan_with(add_step("", R"j([{"workspace": "A"}])j"), workspace), "/steps/0/args/0/workspace",
       "unknown_name", "write {\"tensor\""},
      {plan_with(add_step("", R"j([{"workspace": "ticket"}])j"), workspace), "/steps/0/args/0/workspace",
       "unknown_name", "did you mean `tickets`?"},
      {plan_with(add_step("", R"j([{"map": "m"}])j")), "/steps/0/args/0/map", "unknown_name",
       "no tensor map `m`"},
      {plan_with(add_step("", R"j([{"scalar": "alfa"}])j")), "/steps/0/args/0/scalar", "unknown_name",
       "there is `alpha`, `count`"},
      {plan_with(add_step("", R"j([{"scalar": "A"}])j")), "/steps/0/args/0/scalar", "unknown_name",
       "no scalar input"},
      {plan_with(add_step("", R"j([{"struct": [{"i32": "x"}]}])j")), "/steps/0/args/0/struct/0/i32",
       "unknown_name", "unknown name `x`"},
      {plan_with(R"j({"memset": "A", "value": 0})j"), "/steps/0/memset", "unknown_name",
       "is an input, which is never written"},
      {plan_with(R"j({"memset": "Q", "value": 0})j"), "/steps/0/memset", "unknown_name",
       "there is no buffer"},
      {plan_with(R"j({"copy": ["C", "A"]})j"), "/steps/0/copy/1", "unknown_name", "never written"},
      {plan_with(R"j({"copy": ["A", "F"]})j"), "/steps/0/copy", "plan_invalid",
       "`A` is bfloat16 and `F` is float32"},
      {plan_with(add_step(), R"j("tensor_maps": [{"name": "m", "tensor": "AA", "box": [8]}])j"),
       "/tensor_maps/0/tensor", "unknown_name", "`AA`"},
      {plan_with(add_step(), R"j("tensor_maps": [{"name": "m", "tensor": "A", "box": ["BQ"]}])j"),
       "/tensor_maps/0/box/0", "unknown_name", "`BQ`"},
      {plan_with(add_step(), R"j("globals": [{"symbol": "scale", "map": "m"}])j"), "/globals/0/map",
       "unknown_name", "no tensor map"},
      {plan_with(add_step(), R"j("globals": [{"symbol": "scale", "workspace": "w"}])j"),
       "/globals/0/workspace", "unknown_name", "workspace `w`"},
      {plan_with(add_step(), R"j("globals": [{"symbol": "scale", "values": ["q"], "dtype": "int32"}])j"),
       "/globals/0/values/0", "unknown_name", "`q`"},
      {plan_with(add_step(), R"j("workspaces": [{"name": "A", "dtype": "uint8", "shape": [1]}])j"),
       "/workspaces/0/name", "plan_invalid", "name of its own"},
      {plan_with(add_step(), R"j("constants": {"M": 1})j"), "/constants/M", "plan_invalid", "`M` is an axis"},
      {plan_with(add_step(), R"j("constants": {"alpha": 1})j"), "/constants/alpha", "plan_invalid",
       "`alpha` is a scalar input"},
      {plan_with(add_step(), R"j("compile": {"per_source": {"gem.cu": {"ftz": true}}})j"),
       "/compile/per_source/gem.cu", "unknown_name", "did you mean `gemm.cu`?"},
      {plan_with(add_step(R"j("source": "other.cu")j")), "/steps/0/source", "unknown_name",
       "no .cu, .ptx or .cubin source"},
      {plan_with(R"j({"kernel": "add", "grid": [1]})j"), "/steps/0", "plan_invalid", "`block` is missing"},
      {plan_with(R"j({"kernel": "add", "grid": [1], "block": ["M / 0"]})j"), "/steps/0/block/0", "expression",
       "division by zero"},
      {plan_with(R"j({"kernel": "add", "grid": [1], "block": [1.5]})j"), "/steps/0/block/0", "expression",
       "must be an integer"},
  };
  for (const Row& row : rows) {
    INFO(row.text);
    check_error(bind_text(row.text), row.pointer, row.rule, row.message);
  }
}

TEST_CASE("a random scalar is no name before its value is drawn") {
  Workload w = gemm_workload();
  w.inputs = {};
  const auto bound =
      bind_plan(must(LaunchPlan::parse(plan_with(add_step(), R"j("require": ["count > 1"])j"))),
                gemm_solution(), w, h200());
  check_error(bound, "/require/0", "expression", "drawn for each trial");
  // After compiling its value is there.
  const BoundPlan later = must(bind_plan(
      must(LaunchPlan::parse(plan_with(add_step("", R"j([{"tensor": "F"}, {"scalar": "count"}])j")))),
      gemm_solution(), w, h200()));
  const ResolvedPlan run =
      must(resolve_plan(later, gemm_modules(), {{"count", std::int64_t{9}}}, gemm_queries()));
  CHECK(std::get<ResolvedLaunch>(run.operations[0]).parameters[8] == 9);
  check_error(resolve_plan(later, gemm_modules(), {}, gemm_queries()), "/steps/0/args/1", "unknown_name",
              "has no value");
}

TEST_CASE("the Solution must be a launch plan's") {
  Solution s = gemm_solution();
  s.spec.entry_point = "gemm.cu::run";
  check_error(bind_text(kGemmPlan, s), "/spec/entry_point", "plan_invalid", "launch.json::run");
  check_error(bind_text(kGemmPlan, solution_of({{"launch.json", "{}"}})), "/steps/0", "unknown_name",
              "has no .cu");
}

TEST_CASE("which source a kernel is in") {
  const SourceFile a{
      "a.cu",
      "extern \"C\" __global__ void first(int* p) {}\n template <class T> __global__ void both(T* p) {}"};
  const SourceFile b{"b.cu",
                     "extern \"C\" { __global__ void second(int* p) {} __global__ void both(int* p) {} }"};
  const SourceFile p{"k.ptx", ".version 9.0\n.visible .entry fromptx(.param .u64 x) { ret; }"};
  const SourceFile c{"k.cubin", "AAAA"};
  const auto step = [](const std::string& kernel, const std::string& more = "") {
    return R"j({"kernel": ")j" + kernel + R"j(", "grid": [1], "block": [1])j" + more + "}";
  };
  const Solution both = solution_of({a, b, p});
  const BoundPlan bound =
      must(bind_text(plan_with(step("first") + "," + step("second") + "," + step("fromptx") + "," +
                               step("both<int>", R"j(, "source": "a.cu")j")),
                     both));
  REQUIRE(bound.sources.size() == 3);
  CHECK(bound.sources[0].path == "a.cu");
  CHECK(bound.sources[0].name_expressions == std::vector<std::string>{"both<int>"});
  CHECK(bound.sources[1].path == "b.cu");
  CHECK(bound.sources[1].name_expressions.empty());
  CHECK(bound.sources[2].path == "k.ptx");
  // Only what is used is compiled.
  CHECK(must(bind_text(plan_with(step("second")), both)).sources.size() == 1);
  check_error(bind_text(plan_with(step("both<int>")), both), "/steps/0/kernel", "plan_invalid",
              "say which with `source`");
  check_error(bind_text(plan_with(step("third")), both), "/steps/0/kernel", "plan_invalid",
              "not declared extern \"C\"");
  Solution twice = both;
  twice.sources.push_back({"c.cu", "extern \"C\" __global__ void first();"});
  check_error(bind_text(plan_with(step("first")), twice), "/steps/0/kernel", "plan_invalid",
              "several sources (a.cu, c.cu)");
  // One .cu takes every name that is nobody else's; a cubin's names cannot be read here.
  CHECK(must(bind_text(plan_with(step("both<int>")), solution_of({a, p}))).sources[0].path == "a.cu");
  CHECK(must(bind_text(plan_with(step("whatever")), solution_of({c}))).sources[0].path == "k.cubin");
  // PTX and cubins may leave the block out.
  CHECK(must(bind_text(plan_with(R"j({"kernel": "fromptx", "grid": [1]})j"), solution_of({p}))).applicable);
}

TEST_CASE("globals go by name expressions in a .cu and by symbols elsewhere") {
  const std::string text =
      plan_with(add_step(), R"j("globals": [{"symbol": "scale", "values": [1], "dtype": "float32"}])j");
  CHECK(must(bind_text(text)).sources[0].name_expressions == std::vector<std::string>{"&scale"});
  const Solution two = solution_of({{"a.cu", "extern \"C\" __global__ void add();"}, {"b.cu", ""}});
  check_error(bind_text(text, two), "/globals/0", "plan_invalid", "say it with `source`");
}

TEST_CASE("per_source overrides single fields") {
  const SourceFile a{"a.cu", "extern \"C\" __global__ void add();"},
      b{"b.cu", "extern \"C\" __global__ void sub();"};
  const BoundPlan bound = must(bind_text(
      plan_with(
          add_step() + R"j(, {"kernel": "sub", "grid": [1], "block": [1]})j",
          R"j("compile": {"std": "c++20", "fast_math": true, "ptxas_options": ["-O2"], "per_source": {"b.cu": {"fast_math": false, "maxrregcount": 64}}})j"),
      solution_of({a, b})));
  CHECK(bound.sources[0].options.fast_math);
  CHECK_FALSE(bound.sources[0].options.maxrregcount);
  CHECK_FALSE(bound.sources[1].options.fast_math);
  CHECK(bound.sources[1].options.std == "c++20");
  CHECK(bound.sources[1].options.maxrregcount == 64);
  CHECK(bound.sources[1].options.ptxas_options == std::vector<std::string>{"-O2"});
}

TEST_CASE("launch rules that need no code") {
  struct Row {
    std::string members, pointer, message;
  };
  const std::vector<Row> rows{
      {R"j("block": [1025])j", "/steps/0/block", "block[0] = 1025, but at most 1024"},
      {R"j("block": [33, 32])j", "/steps/0/block", "1056 threads; at most 1024"},
      {R"j("block": [1, 1, 65])j", "/steps/0/block", "block[2] = 65, but at most 64"},
      {R"j("block": [0])j", "/steps/0/block/0", "`0` = 0; it must be at least 1"},
      {R"j("block": ["-M"])j", "/steps/0/block/0", "= -8192"},
      {R"j("block": [32], "cluster": [17])j", "/steps/0/cluster", "17 CTAs; h200 takes at most 16"},
      {R"j("block": [32], "cluster": [4, 5])j", "/steps/0/cluster", "20 CTAs"},
      {R"j("block": [32], "cluster": [65536, 65536])j", "/steps/0/cluster", "at most 16"},
      {R"j("block": [32], "shared_bytes": "228*1024")j", "/steps/0/shared_bytes",
       "233472 bytes of dynamic shared memory are more than the 232448"},
      {R"j("block": [32], "shared_bytes": -1)j", "/steps/0/shared_bytes", "negative"},
      {R"j("block": [32], "carveout": 101)j", "/steps/0/carveout", "0 to 100 percent"},
      {R"j("block": [32], "preferred_cluster": [4])j", "/steps/0/preferred_cluster", "only beside `cluster`"},
      {R"j("block": [32], "cluster": [2], "preferred_cluster": [3])j", "/steps/0/preferred_cluster",
       "not a multiple"},
      {R"j("block": [32], "cluster": [2], "preferred_cluster": [4])j", "/steps/0/preferred_cluster",
       "compute capability 10.0"},
  };
  for (const Row& row : rows) {
    INFO(row.members);
    check_error(bind_text(plan_with(R"j({"kernel": "add", "grid": [1], )j" + row.members + "}")), row.pointer,
                "launch_rule", row.message);
  }
  for (const char* good :
       {R"j("block": [1024])j", R"j("block": [32], "cluster": [16])j",
        R"j("block": [32], "shared_bytes": 49153)j", R"j("block": [32], "shared_bytes": "227*1024")j",
        R"j("block": [32, 32], "carveout": 100)j"}) {
    INFO(good);
    CHECK(bind_text(plan_with(R"j({"kernel": "add", "grid": [16], )j" + std::string(good) + "}")));
  }
  const BindOptions b200{must(device_profile("b200")), {}};
  CHECK(bind_text(
      plan_with(
          R"j({"kernel": "add", "grid": [16], "block": [32], "cluster": [2], "preferred_cluster": [4]})j"),
      gemm_solution(), b200));
}

TEST_CASE("scalars take the kind of their dtype") {
  const ScalarValues scalars = scalars_of(gemm_workload());
  REQUIRE(scalars.size() == 2);
  CHECK(scalars[0].first == "alpha");
  // alpha is float32 and 2 in the record: alpha / 4 is no integer division.
  CHECK(define_of(must(bind_text(defines_text("\"alpha / 4\""))), "XX") == "0.5f");
}

TEST_CASE("device profiles") {
  const DeviceLimits h = must(device_profile("h200"));
  CHECK(h.sm_count == 132);
  CHECK(h.smem_optin_bytes == 232448);
  CHECK(h.l2_bytes == 62914560);
  CHECK(must(device_profile("b200")).sm_count == 148);
  CHECK(must(profile_for_arch("sm_90a")).name == "h200");
  CHECK(must(profile_for_arch("sm_100a")).compute_major == 10);
  const auto unknown = device_profile("a100");
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::not_found);
  CHECK(unknown.error().message.find("h100, h200 and b200") != std::string::npos);
  CHECK_FALSE(profile_for_arch("sm_80"));
}
