#include "plan/model.hpp"
#include "plan_support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

struct Bad {
  std::string text, pointer, rule, message;
};

std::string map_with(const std::string& more) {
  return plan_with(add_step(), R"j("tensor_maps": [{"name": "m", "tensor": "A", )j" + more + "}]");
}

}  // namespace

TEST_CASE("the reference page's plan parses") {
  const LaunchPlan plan = must(LaunchPlan::parse(kGemmPlan));
  const auto constants = plan.constants();
  REQUIRE(constants.size() == 4);
  CHECK(constants[0] == std::pair<std::string, PlanNumber>("BM", std::int64_t{128}));
  CHECK(constants[3].first == "STAGES");
  CHECK(plan.impl().steps.size() == 1);
  CHECK(plan.impl().file == "launch.json");
}

TEST_CASE("constants keep the kind that they are written in") {
  const auto constants =
      must(LaunchPlan::parse(plan_with(
               add_step(), R"j("constants": {"a": 1, "b": 1.0, "c": 1e3, "d": true, "e": -5, "g": 0.1})j")))
          .constants();
  CHECK(constants[0].second == PlanNumber(std::int64_t{1}));
  CHECK(constants[1].second == PlanNumber(1.0));
  CHECK(constants[2].second == PlanNumber(1000.0));
  CHECK(constants[3].second == PlanNumber(true));
  CHECK(constants[4].second == PlanNumber(std::int64_t{-5}));
}

TEST_CASE("a faulty plan is refused with its place and rule") {
  const std::vector<Bad> rows{
      {"", "", "plan_invalid", ""},
      {"{", "", "plan_invalid", ""},
      {"[]", "", "plan_invalid", "JSON object"},
      {R"j({"version": 1})j", "", "plan_invalid", "\"steps\" is missing"},
      {R"j({"steps": []})j", "", "plan_invalid", "\"version\" is missing"},
      {R"j({"version": 2, "steps": []})j", "/version", "plan_invalid", "version 2 is not known"},
      {R"j({"version": "1", "steps": []})j", "/version", "plan_invalid", "expected an integer"},
      {R"j({"version": 1, "steps": []})j", "/steps", "plan_invalid", "at least one step"},
      {R"j({"version": 1, "steps": {}})j", "/steps", "plan_invalid", "expected an array"},
      {R"j({"version": 1, "version": 1, "steps": []})j", "/version", "plan_invalid", "more than once"},
      {plan_with(add_step(), R"j("constant": {})j"), "/constant", "plan_invalid",
       "did you mean `constants`?"},
      {plan_with(add_step(), R"j("zzzzzz": {})j"), "/zzzzzz", "plan_invalid", "unknown member"},
      // constants
      {plan_with(add_step(), R"j("constants": [1])j"), "/constants", "plan_invalid", "expected an object"},
      {plan_with(add_step(), R"j("constants": {"a": "M"})j"), "/constants/a", "plan_invalid",
       "a number or a boolean"},
      {plan_with(add_step(), R"j("constants": {"a b": 1})j"), "/constants/a b", "plan_invalid",
       "no identifier"},
      {plan_with(add_step(), R"j("constants": {"a": 1, "a": 2})j"), "/constants/a", "plan_invalid",
       "more than once"},
      {plan_with(add_step(), R"j("constants": {"min": 1})j"), "/constants/min", "plan_invalid",
       "expressions have a meaning"},
      {plan_with(add_step(), R"j("constants": {"sm_count": 1})j"), "/constants/sm_count", "plan_invalid",
       "meaning"},
      {plan_with(add_step(), R"j("constants": {"i": 1})j"), "/constants/i", "plan_invalid", "meaning"},
      {plan_with(add_step(), R"j("constants": {"int": 1})j"), "/constants/int", "plan_invalid",
       "C++ language"},
      {plan_with(add_step(), R"j("constants": {"__x": 1})j"), "/constants/__x", "plan_invalid",
       "C++ language"},
      {plan_with(add_step(), R"j("constants": {"a": 9223372036854775808})j"), "/constants/a", "expression",
       "64 bits"},
      {plan_with(add_step(), R"j("constants": {"a": 1e39})j"), "/constants/a", "plan_invalid",
       "does not fit a float"},
      // require, defines
      {plan_with(add_step(), R"j("require": "M > 1")j"), "/require", "plan_invalid", "expected an array"},
      {plan_with(add_step(), R"j("require": ["M >"])j"), "/require/0", "expression", "expected a value"},
      {plan_with(add_step(), R"j("require": [null])j"), "/require/0", "plan_invalid", "a number or a string"},
      {plan_with(add_step(), R"j("defines": {"for": 1})j"), "/defines/for", "plan_invalid", "C++ language"},
      {plan_with(add_step(), R"j("defines": {"_X": 1})j"), "/defines/_X", "plan_invalid", "C++ language"},
      {plan_with(add_step(), R"j("defines": {"T": 1})j"), "/defines/T", "plan_invalid",
       "headers use that name"},
      {plan_with(add_step(), R"j("defines": {"INFINITY": 1})j"), "/defines/INFINITY", "plan_invalid",
       "headers use"},
      {plan_with(add_step(), R"j("defines": {"CU_X": 1})j"), "/defines/CU_X", "plan_invalid", "headers use"},
      {plan_with(add_step(), R"j("defines": {"threadIdx": 1})j"), "/defines/threadIdx", "plan_invalid",
       "headers use"},
      {plan_with(add_step(), R"j("defines": {"A-B": 1})j"), "/defines/A-B", "plan_invalid",
       "name of a macro"},
      {plan_with(add_step(), R"j("defines": {"TY": {"tokens": "int"}})j"), "/defines/TY/tokens",
       "plan_invalid", "did you mean `token`"},
      {plan_with(add_step(), R"j("defines": {"TY": {"token": ""}})j"), "/defines/TY/token", "plan_invalid",
       "not empty"},
      {plan_with(add_step(), R"j("defines": {"TY": {"token": "a\nb"}})j"), "/defines/TY/token",
       "plan_invalid", "one line"},
      {plan_with(add_step(), R"j("defines": {"TY": {"token": "a /* b"}})j"), "/defines/TY/token",
       "plan_invalid", "comments"},
      // compile
      {plan_with(add_step(), R"j("compile": {"std": "c++14"})j"), "/compile/std", "plan_invalid", "c++17"},
      {plan_with(add_step(), R"j("compile": {"fastmath": true})j"), "/compile/fastmath", "plan_invalid",
       "did you mean `fast_math`"},
      {plan_with(add_step(), R"j("compile": {"fmad": 1})j"), "/compile/fmad", "plan_invalid",
       "true or false"},
      {plan_with(add_step(), R"j("compile": {"maxrregcount": 256})j"), "/compile/maxrregcount",
       "plan_invalid", "1 to 255"},
      {plan_with(add_step(), R"j("compile": {"maxrregcount": 0})j"), "/compile/maxrregcount", "plan_invalid",
       "1 to 255"},
      {plan_with(add_step(), R"j("compile": {"ptx_version": "9"})j"), "/compile/ptx_version", "plan_invalid",
       "written like"},
      {plan_with(add_step(), R"j("compile": {"ptx_version": 9.0})j"), "/compile/ptx_version", "plan_invalid",
       "string"},
      {plan_with(add_step(), R"j("compile": {"ptxas_options": ["-o"]})j"), "/compile/ptxas_options/0",
       "plan_invalid", "not among those"},
      {plan_with(add_step(), R"j("compile": {"ptxas_options": ["--output-file=x"]})j"),
       "/compile/ptxas_options/0", "plan_invalid", "not among"},
      {plan_with(add_step(), R"j("compile": {"ptxas_options": ["-O3=1"]})j"), "/compile/ptxas_options/0",
       "plan_invalid", "takes no value"},
      {plan_with(add_step(), R"j("compile": {"ptxas_options": ["--register-usage-level=11"]})j"),
       "/compile/ptxas_options/0", "plan_invalid", "0..10"},
      {plan_with(add_step(), R"j("compile": {"ptxas_options": ["--def-load-cache"]})j"),
       "/compile/ptxas_options/0", "plan_invalid", "ca|cg"},
      {plan_with(add_step(), R"j("compile": {"per_source": {"a.cu": {"std": 1}}})j"),
       "/compile/per_source/a.cu/std", "plan_invalid", "string"},
      {plan_with(add_step(), R"j("compile": {"per_source": {"a.cu": {"per_source": {}}}})j"),
       "/compile/per_source/a.cu/per_source", "plan_invalid", "unknown member"},
      // tensor maps
      {map_with(R"j("boxes": [1])j"), "/tensor_maps/0/boxes", "plan_invalid", "did you mean `box`"},
      {map_with(R"j("swizzle": "128B")j"), "/tensor_maps/0", "plan_invalid", "\"box\" is missing"},
      {map_with(R"j("box": [64], "swizzle": "128")j"), "/tensor_maps/0/swizzle", "plan_invalid",
       "unknown word"},
      {map_with(R"j("box": [64], "dtype": "fp16")j"), "/tensor_maps/0/dtype", "plan_invalid",
       "unknown dtype"},
      {map_with(R"j("box": [64], "mode": "im2col")j"), "/tensor_maps/0/box", "plan_invalid", "tiled"},
      {map_with(R"j("mode": "im2col")j"), "/tensor_maps/0", "plan_invalid", "needs pixel_box_lower_corner"},
      {map_with(R"j("box": [64], "channels_per_pixel": 8)j"), "/tensor_maps/0", "plan_invalid", "im2col"},
      {plan_with(
           add_step(),
           R"j("tensor_maps": [{"name": "m", "tensor": "A", "box": [8]}, {"name": "m", "tensor": "B", "box": [8]}])j"),
       "/tensor_maps/1/name", "plan_invalid", "two tensor maps are named `m`"},
      // workspaces
      {plan_with(add_step(), R"j("workspaces": [{"name": "w", "dtype": "uint32"}])j"), "/workspaces/0",
       "plan_invalid", "\"shape\" is missing"},
      {plan_with(add_step(), R"j("workspaces": [{"name": "w", "dtype": "tf32", "shape": [1]}])j"),
       "/workspaces/0/dtype", "plan_invalid", "tensor maps only"},
      {plan_with(add_step(), R"j("workspaces": [{"name": "w w", "dtype": "uint8", "shape": [1]}])j"),
       "/workspaces/0/name", "plan_invalid", "no identifier"},
      {plan_with(add_step(),
                 R"j("workspaces": [{"name": "w", "dtype": "uint8", "shape": [1,1,1,1,1,1,1,1,1]}])j"),
       "/workspaces/0/shape", "plan_invalid", "0 to 8"},
      {plan_with(
           add_step(),
           R"j("workspaces": [{"name": "w", "dtype": "uint8", "shape": [1]}, {"name": "w", "dtype": "uint8", "shape": [1]}])j"),
       "/workspaces/1/name", "plan_invalid", "two workspaces"},
      // globals
      {plan_with(add_step(), R"j("globals": [{"symbol": "s"}])j"), "/globals/0", "plan_invalid",
       "exactly one of"},
      {plan_with(add_step(),
                 R"j("globals": [{"symbol": "s", "values": [1], "map": "m", "dtype": "float32"}])j"),
       "/globals/0", "plan_invalid", "found 2"},
      {plan_with(add_step(), R"j("globals": [{"symbol": "s", "values": [1]}])j"), "/globals/0",
       "plan_invalid", "\"dtype\" is missing"},
      {plan_with(add_step(), R"j("globals": [{"symbol": "s", "values": [], "dtype": "int8"}])j"),
       "/globals/0/values", "plan_invalid", "1 to"},
      {plan_with(add_step(), R"j("globals": [{"symbol": "s", "tensor": "A", "offset": 1}])j"),
       "/globals/0/offset", "plan_invalid", "go with \"values\""},
      {plan_with(add_step(), R"j("globals": [{"symbol": "s", "values": [1], "dtype": "float4_e2m1"}])j"),
       "/globals/0/dtype", "plan_invalid", "no address"},
      // steps
      {plan_with("1"), "/steps/0", "plan_invalid", "a step is an object"},
      {plan_with("{}"), "/steps/0", "plan_invalid", "kernel"},
      {plan_with(R"j({"kernl": "a"})j"), "/steps/0", "plan_invalid", "did you mean \"kernel\"?"},
      {plan_with(R"j({"kernel": "a", "memset": "C"})j"), "/steps/0", "plan_invalid", "exactly one of"},
      {plan_with(R"j({"kernel": "a"})j"), "/steps/0", "plan_invalid", "\"grid\" is missing"},
      {plan_with(R"j({"kernel": "", "grid": [1]})j"), "/steps/0/kernel", "plan_invalid", "not empty"},
      {plan_with(R"j({"kernel": "a", "grid": []})j"), "/steps/0/grid", "plan_invalid", "1 to 3"},
      {plan_with(R"j({"kernel": "a", "grid": [1,1,1,1]})j"), "/steps/0/grid", "plan_invalid", "1 to 3"},
      {plan_with(R"j({"kernel": "a", "grid": 1})j"), "/steps/0/grid", "plan_invalid", "expected an array"},
      {plan_with(R"j({"kernel": "a", "grid": ["M +"]})j"), "/steps/0/grid/0", "expression", "column 4"},
      {plan_with(add_step(R"j("shared": 1)j")), "/steps/0/shared", "plan_invalid", "did you mean"},
      {plan_with(add_step(R"j("as": "a b")j")), "/steps/0/as", "plan_invalid", "no identifier"},
      {plan_with(add_step(R"j("as": "x")j") + "," + add_step(R"j("as": "x")j")), "/steps/1/as",
       "plan_invalid", "exactly one step"},
      {plan_with(add_step(R"j("pdl": true)j")), "/steps/0/pdl", "plan_invalid", "first step"},
      {plan_with(R"j({"memset": "F", "value": 0},)j" + add_step(R"j("pdl": true)j")), "/steps/1/pdl",
       "plan_invalid", "step 0 is no kernel"},
      {plan_with(add_step(R"j("cooperative": 1)j")), "/steps/0/cooperative", "plan_invalid", "true or false"},
      {plan_with(add_step(R"j("cluster_policy": "load")j")), "/steps/0/cluster_policy", "plan_invalid",
       "unknown word"},
      {plan_with(R"j({"memset": "F"})j"), "/steps/0", "plan_invalid", "\"value\" is missing"},
      {plan_with(R"j({"memset": "F", "value": 0, "bytes": 4})j"), "/steps/0/bytes", "plan_invalid",
       "unknown member"},
      {plan_with(R"j({"copy": ["A"]})j"), "/steps/0/copy", "plan_invalid", "[FROM, TO]"},
      {plan_with(R"j({"copy": ["A", "B"], "offset": 1})j"), "/steps/0/offset", "plan_invalid",
       "unknown member"},
      // arguments
      {plan_with(add_step("", "{}")), "/steps/0/args", "plan_invalid", "expected an array"},
      {plan_with(add_step("", "[1]")), "/steps/0/args/0", "plan_invalid", "an argument is an object"},
      {plan_with(add_step("", "[{}]")), "/steps/0/args/0", "plan_invalid", "does not say what it is"},
      {plan_with(add_step("", R"j([{"i32": 1, "u32": 1}])j")), "/steps/0/args/0", "plan_invalid",
       "exactly one thing"},
      {plan_with(add_step("", R"j([{"int": 1}])j")), "/steps/0/args/0/int", "plan_invalid", "unknown member"},
      {plan_with(add_step("", R"j([{"i32": 1, "offset": 1}])j")), "/steps/0/args/0", "plan_invalid",
       "\"offset\" goes with"},
      {plan_with(add_step("", R"j([{"null": false}])j")), "/steps/0/args/0/null", "plan_invalid", "null"},
      {plan_with(add_step("", R"j([{"bytes": "0"}])j")), "/steps/0/args/0/bytes", "plan_invalid",
       "odd number"},
      {plan_with(add_step("", R"j([{"bytes": "0g"}])j")), "/steps/0/args/0/bytes", "plan_invalid",
       "hexadecimal"},
      {plan_with(add_step("", R"j([{"struct": [{"x": 1}]}])j")), "/steps/0/args/0/struct/0/x", "plan_invalid",
       "unknown member"},
      {plan_with(add_step("", R"j([{"i32": {}}])j")), "/steps/0/args/0/i32", "plan_invalid", "expression"},
  };
  for (const Bad& row : rows) {
    INFO(row.text);
    check_error(LaunchPlan::parse(row.text), row.pointer, row.rule, row.message, ErrorCode::parse);
    CHECK(LaunchPlan::parse(row.text, "x/launch.json").error().where.file == "x/launch.json");
  }
}

TEST_CASE("each hole of a drafted plan is named") {
  const auto plan = LaunchPlan::parse(R"j({"version": 1, "constants": {"BM": {"hole": "tile"}},
    "steps": [{"kernel": "a", "grid": [{"hole": "see launcher"}], "block": [1], "args": [{"i32": {"hole": "n/a"}}]}]})j");
  check_error(plan, "/constants/BM", "plan_hole", "3 holes", ErrorCode::parse);
  for (const char* hole :
       {"/constants/BM (tile)", "/steps/0/grid/0 (see launcher)", "/steps/0/args/0/i32 (n/a)"})
    CHECK(plan.error().message.find(hole) != std::string::npos);
  check_error(LaunchPlan::parse(R"j({"hole": "all of it"})j"), "", "plan_hole", "1 hole", ErrorCode::parse);
}

TEST_CASE("tables of pointers and maps say that they come later") {
  for (const char* init :
       {R"j("pointers")j", R"j("maps")j", R"j({"pointers": ["A"]})j", R"j({"maps": ["m"]})j"}) {
    const auto plan = LaunchPlan::parse(
        plan_with(add_step(), R"j("workspaces": [{"name": "w", "dtype": "uint64", "shape": [1], "init": )j" +
                                  std::string(init) + "}]"));
    check_error(plan, "/workspaces/0/init", "plan_invalid", "later version", ErrorCode::unsupported);
  }
}

TEST_CASE("sizes of a plan are bounded") {
  check_error(LaunchPlan::parse(std::string((1 << 20) + 1, ' ')), "", "plan_limit", "at most",
              ErrorCode::parse);
  std::string steps = add_step();
  for (int i = 0; i < 512; ++i) steps += "," + add_step();
  check_error(LaunchPlan::parse(plan_with(steps)), "/steps", "plan_limit", "at most 512", ErrorCode::parse);
  std::string deep = R"j({"i32": 1})j";
  for (int i = 0; i < 9; ++i) deep = R"j({"struct": [)j" + deep + "]}";
  check_error(
      LaunchPlan::parse(plan_with(add_step("", "[" + deep + "]"))),
      "/steps/0/args/0/struct/0/struct/0/struct/0/struct/0/struct/0/struct/0/struct/0/struct/0/struct",
      "plan_limit", "at most 8 deep", ErrorCode::parse);
  std::string many;
  for (int i = 0; i < 1025; ++i) many += (i ? "," : "") + std::string(R"j({"i32": 1})j");
  check_error(LaunchPlan::parse(plan_with(add_step("", "[" + many + "]"))), "/steps/0/args/1024",
              "plan_limit", "1024", ErrorCode::parse);
  CHECK_FALSE(LaunchPlan::parse(std::string(100000, '[')));
}
