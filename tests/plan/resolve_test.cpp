#include "plan_support.hpp"

#include <algorithm>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

const ResolvedLaunch& launch(const ResolvedPlan& plan, std::size_t i = 0) {
  return std::get<ResolvedLaunch>(plan.operations.at(i));
}

// A plan that launches `add` with other arguments, and the kernel that takes them.
Result<ResolvedPlan> with_args(const std::string& args, std::vector<std::uint32_t> sizes,
                               const std::string& more = "") {
  std::vector<ModuleInfo> modules = gemm_modules();
  modules[0].kernels[1] = kernel_of("add", std::move(sizes));
  return resolve_text(plan_with(add_step("", args), more), modules);
}

std::vector<std::uint8_t> bytes_of(const std::string& args, std::vector<std::uint32_t> sizes) {
  return launch(must(with_args(args, std::move(sizes)))).parameters;
}

using Bytes = std::vector<std::uint8_t>;

const std::string kMaps =
    R"j("tensor_maps": [{"name": "m", "tensor": "A", "box": [64, 64], "swizzle": "128B"},
                                             {"name": "n", "tensor": "B", "box": [64, 64]}])j";

}  // namespace

TEST_CASE("the reference page's plan resolves to exact values") {
  const ResolvedPlan run = must(resolve_text(kGemmPlan));
  REQUIRE(run.operations.size() == 1);
  const ResolvedLaunch& l = launch(run);
  CHECK(l.step == 0);
  CHECK(l.name == "gemm");
  CHECK(l.module == 0);
  CHECK(l.symbol == "_Z4gemmILi128ELi256EEv");
  CHECK(l.grid == std::array<std::uint32_t, 3>{132, 1, 1});  // 2 * min(66, ceil_div(64 * 28, 2))
  CHECK(l.block == std::array<std::uint32_t, 3>{384, 1, 1});
  CHECK(l.has_cluster);
  CHECK(l.cluster == std::array<std::uint32_t, 3>{2, 1, 1});
  CHECK(l.dynamic_shared_bytes == 197632);
  CHECK_FALSE(l.cooperative);
  CHECK_FALSE(l.pdl);
  CHECK_FALSE(l.carveout);
  Bytes expected(396, 0);
  expected[393] = 0x20;  // 8192
  CHECK(l.parameters == expected);
  REQUIRE(l.patches.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(l.patches[i].offset == 128 * i);
    CHECK(std::get<std::size_t>(l.patches[i].what) == i);
  }
  CHECK(l.patches[3].offset == 384);
  CHECK(std::get<BufferRef>(l.patches[3].what).kind == BufferRef::Kind::workspace);

  REQUIRE(run.maps.size() == 3);
  CHECK(run.maps[0].name == "map_a");
  CHECK(run.maps[0].data_type == 9);  // CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
  CHECK(run.maps[0].dims == std::vector<std::uint64_t>{5120, 8192});
  CHECK(run.maps[0].strides == std::vector<std::uint64_t>{10240});
  CHECK(run.maps[0].box == std::vector<std::uint32_t>{64, 128});
  CHECK(run.maps[0].element_strides == std::vector<std::uint32_t>{1, 1});
  CHECK(run.maps[0].swizzle == 3);
  CHECK(run.maps[0].l2_promotion == 3);
  CHECK(run.maps[0].interleave == 0);
  CHECK(run.maps[0].oob_fill == 0);
  CHECK(run.maps[0].base.kind == BufferRef::Kind::input);
  CHECK(run.maps[0].base.index == 0);
  CHECK(run.maps[1].dims == std::vector<std::uint64_t>{5120, 7168});
  CHECK(run.maps[1].base.index == 1);
  CHECK(run.maps[1].l2_promotion == 0);
  CHECK(run.maps[2].dims == std::vector<std::uint64_t>{7168, 8192});
  CHECK(run.maps[2].base.kind == BufferRef::Kind::output);
  CHECK(run.maps[2].base.index == 0);

  REQUIRE(run.workspaces.size() == 1);
  CHECK(run.workspaces[0].name == "tickets");
  CHECK(run.workspaces[0].shape == std::vector<std::int64_t>{64});
  CHECK(run.workspaces[0].bytes == 256);
  CHECK(run.workspaces[0].initialised);
  CHECK(run.workspaces[0].element_bytes == 4);
  CHECK(run.workspaces[0].pattern == 0);
  CHECK(run.findings.empty());
  CHECK(
      run.evidence ==
      R"j({"steps":[{"step":0,"kernel":"gemm","source":"gemm.cu","symbol":"_Z4gemmILi128ELi256EEv","grid":[132,1,1],)j"
      R"j("block":[384,1,1],"cluster":[2,1,1],"shared_bytes":197632,"args":[{"map":"map_a"},{"map":"map_b"},)j"
      R"j({"map":"map_c"},{"workspace":"tickets"},{"i32":8192}]}],)j"
      R"j("workspaces":[{"name":"tickets","dtype":"uint32","shape":[64],"bytes":256,"initialised":true}],)j"
      R"j("tensor_maps":[)j"
      R"j({"name":"map_a","tensor":"A","byte_offset":0,"data_type":9,"dims":[5120,8192],"strides":[10240],"box":[64,128],)j"
      R"j("element_strides":[1,1],"interleave":0,"swizzle":3,"l2_promotion":3,"oob_fill":0},)j"
      R"j({"name":"map_b","tensor":"B","byte_offset":0,"data_type":9,"dims":[5120,7168],"strides":[10240],"box":[64,256],)j"
      R"j("element_strides":[1,1],"interleave":0,"swizzle":3,"l2_promotion":0,"oob_fill":0},)j"
      R"j({"name":"map_c","tensor":"C","byte_offset":0,"data_type":9,"dims":[7168,8192],"strides":[14336],"box":[64,128],)j"
      R"j("element_strides":[1,1],"interleave":0,"swizzle":3,"l2_promotion":0,"oob_fill":0}],)j"
      R"j("device":[{"function":"max_active_clusters","kernel":"gemm","value":66}]})j");
}

TEST_CASE("the grid follows the workload") {
  const ResolvedPlan run = must(resolve_text(kGemmPlan, gemm_modules(), gemm_queries(), 70));
  CHECK(launch(run).grid[0] == 28);  // one row of tiles: 2 * min(66, 14)
  CHECK(run.workspaces[0].shape == std::vector<std::int64_t>{1});
}

TEST_CASE("the device is asked with the step's own launch, once") {
  int asked = 0;
  OccupancyQuery seen;
  DeviceQueries queries = gemm_queries();
  queries.max_active_clusters = [&](const OccupancyQuery& q) -> Result<std::int64_t> {
    ++asked;
    seen = q;
    return std::int64_t{10};
  };
  const ResolvedPlan run = must(resolve_text(kGemmPlan, gemm_modules(), queries));
  CHECK(launch(run).grid[0] == 20);
  CHECK(asked == 1);
  CHECK(seen.module == 0);
  CHECK(seen.symbol == "_Z4gemmILi128ELi256EEv");
  CHECK(seen.block[0] == 384);
  CHECK(seen.cluster[0] == 2);
  CHECK(seen.dynamic_shared_bytes == 197632);
}

TEST_CASE("the device's own errors keep their code") {
  DeviceQueries queries = gemm_queries();
  queries.max_active_clusters = [](const OccupancyQuery&) -> Result<std::int64_t> {
    return make_error(ErrorCode::driver, "CUDA_ERROR_UNKNOWN");
  };
  CHECK(resolve_text(kGemmPlan, gemm_modules(), queries).error().code == ErrorCode::driver);
  CHECK(resolve_text(kGemmPlan, gemm_modules(), {}).error().code == ErrorCode::state);
}

TEST_CASE("a kernel may be meant by its `as` or its own name; steps may ask each other") {
  const std::string text = plan_with(
      R"j({"kernel": "gemm<plan::BM,plan::BN>", "grid": ["occupancy(add)"], "block": [384], "args": [{"map": "m"}, {"map": "n"}, {"map": "m"}, {"null": true}, {"i32": 1}]},)j"
      R"j({"kernel": "add", "grid": ["max_active_clusters(gemm< plan::BM, plan::BN >)"], "block": [1], "args": [{"tensor": "F"}, {"i32": 1}]
})j",
      kMaps + R"j(, "constants": {"BM": 128, "BN": 256})j");
  const ResolvedPlan run = must(resolve_text(text));
  CHECK(launch(run, 0).grid[0] == 2);
  CHECK(launch(run, 1).grid[0] == 66);
}

TEST_CASE("a kernel that is not there is told with those that are") {
  std::vector<ModuleInfo> modules = gemm_modules();
  modules[0].kernels.pop_back();
  check_error(resolve_text(plan_with(add_step()), modules), "/steps/0/kernel", "unknown_name",
              "there is no kernel `add` in gemm.cu; there is _Z4gemmILi128ELi256EEv");
  CHECK(resolve_text(plan_with(add_step()), {}).error().code == ErrorCode::internal);
}

TEST_CASE("scalar arguments are converted and placed") {
  CHECK(bytes_of(R"j([{"i32": -2}])j", {4}) == Bytes{0xfe, 0xff, 0xff, 0xff});
  CHECK(bytes_of(R"j([{"u32": 4294967295}])j", {4}) == Bytes{0xff, 0xff, 0xff, 0xff});
  CHECK(bytes_of(R"j([{"i64": "-M"}])j", {8}) == Bytes{0x00, 0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  CHECK(bytes_of(R"j([{"u64": 1}])j", {8}) == Bytes{1, 0, 0, 0, 0, 0, 0, 0});
  CHECK(bytes_of(R"j([{"f32": "1/2.0"}])j", {4}) == Bytes{0, 0, 0, 0x3f});
  CHECK(bytes_of(R"j([{"f32": 1}])j", {4}) == Bytes{0, 0, 0x80, 0x3f});
  CHECK(bytes_of(R"j([{"f64": 1}])j", {8}) == Bytes{0, 0, 0, 0, 0, 0, 0xf0, 0x3f});
  CHECK(bytes_of(R"j([{"bf16": "1 + 1/256.0"}])j", {2}) == Bytes{0x80, 0x3f});  // a tie, to even
  CHECK(bytes_of(R"j([{"bf16": "1 + 3/256.0"}])j", {2}) == Bytes{0x82, 0x3f});  // a tie, to even
  CHECK(bytes_of(R"j([{"f16": "1 + 1/2048.0"}])j", {2}) == Bytes{0x00, 0x3c});
  CHECK(bytes_of(R"j([{"f16": -65504}])j", {2}) == Bytes{0xff, 0xfb});
  CHECK(bytes_of(R"j([{"bool": "M > 1"}])j", {1}) == Bytes{1});
  CHECK(bytes_of(R"j([{"bool": 0}])j", {1}) == Bytes{0});
  CHECK(bytes_of(R"j([{"scalar": "alpha"}])j", {4}) == Bytes{0, 0, 0, 0x40});
  CHECK(bytes_of(R"j([{"scalar": "count"}])j", {4}) == Bytes{7, 0, 0, 0});
  CHECK(bytes_of(R"j([{"null": true}])j", {8}) == Bytes(8, 0));
  CHECK(bytes_of(R"j([{"bytes": "00 ff_10"}])j", {3}) == Bytes{0x00, 0xff, 0x10});
  CHECK(bytes_of(R"j([{"f32": "rsqrt(4)"
}, {"i64": 3}])j",
                 {4, 8}) == Bytes{0, 0, 0, 0x3f, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0});
  CHECK(bytes_of("[]", {}).empty());
}

TEST_CASE("values out of range are refused") {
  const std::vector<std::tuple<std::string, std::uint32_t, std::string>> rows{
      {R"j([{"i32": 2147483648}])j", 4, "`2147483648` = 2147483648 is out of range for i32"},
      {R"j([{"u32": -1}])j", 4, "out of range for u32"},
      {R"j([{"u64": -1}])j", 8, "out of range for u64"},
      {R"j([{"f32": 1e39}])j", 4, "out of range for f32"},
      {R"j([{"f16": 65520}])j", 2, "out of range for f16"},
      {R"j([{"bf16": 3.4e38}])j", 2, "out of range for bf16"}};
  for (const auto& [args, size, message] : rows) {
    INFO(args);
    check_error(with_args(args, {size}), "/steps/0/args/0", "expression", message);
  }
  check_error(with_args(R"j([{"i32": 1.5}])j", {4}), "/steps/0/args/0/i32", "expression",
              "must be an integer");
  check_error(with_args(R"j([{"i32": true}])j", {4}), "/steps/0/args/0/i32", "expression",
              "must be an integer");
  check_error(with_args(R"j([{"i32": "M / (M - M)"
}])j",
                        {4}),
              "/steps/0/args/0/i32", "expression", "division by zero: 8192 / 0");
  CHECK(must(with_args(R"j([{"f16": 65519}])j", {2})).operations.size() == 1);  // rounds down to the largest
}

TEST_CASE("tensors and workspaces with an offset point inside") {
  const ResolvedPlan run =
      must(with_args(R"j([{"tensor": "A", "offset": "K"}, {"tensor": "F", "offset": 3}])j", {8, 8}));
  const auto& patches = launch(run).patches;
  REQUIRE(patches.size() == 2);
  CHECK(std::get<BufferRef>(patches[0].what).byte_offset == 10240);
  CHECK(std::get<BufferRef>(patches[1].what).kind == BufferRef::Kind::output);
  CHECK(std::get<BufferRef>(patches[1].what).index == 1);
  CHECK(std::get<BufferRef>(patches[1].what).byte_offset == 12);
  CHECK(patches[1].offset == 8);
  check_error(with_args(R"j([{"tensor": "A", "offset": "M*K"}])j", {8}), "/steps/0/args/0/offset",
              "plan_invalid", "is not inside `A`");
  check_error(with_args(R"j([{"tensor": "A", "offset": -1}])j", {8}), "/steps/0/args/0/offset",
              "plan_invalid", "is not inside `A`");
}

TEST_CASE("structs follow C's layout") {
  CHECK(bytes_of(R"j([{"struct": [{"bool": 1}, {"i32": 2}, {"bf16": 1}]}])j", {12}) ==
        Bytes{1, 0, 0, 0, 2, 0, 0, 0, 0x80, 0x3f, 0, 0});
  CHECK(bytes_of(R"j([{"struct": [{"i32": 1}, {"struct": [{"bool": 1}, {"i64": 2}]}, {"bytes": "07"}]}])j",
                 {32}) == Bytes{1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                                2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0});
  CHECK(bytes_of(R"j([{"struct": []}])j", {1}) == Bytes{0});
  const ResolvedPlan run = must(with_args(R"j([{"struct": [{"tensor": "F"}, {"i32": "M"}]}])j", {16}));
  CHECK(launch(run).patches[0].offset == 0);
  CHECK(launch(run).parameters[9] == 0x20);
  CHECK(run.evidence.find(R"j("args":[{"struct":[{"tensor":"F"},{"i32":8192}]}])j") != std::string::npos);
}

TEST_CASE("a struct's size tells which CUtensorMap it was compiled with") {
  const std::string args = R"j([{"struct": [{"i32": 1}, {"map": "m"}, {"i32": 2}]}])j";
  const ResolvedPlan cuda13 =
      must(with_args(args, {384}, kMaps));  // aligned to 128: 0, 128..256, 256, padded to 384
  CHECK(launch(cuda13).patches[0].offset == 128);
  CHECK(launch(cuda13).parameters[256] == 2);
  const ResolvedPlan before =
      must(with_args(args, {256}, kMaps));  // aligned to 64: 0, 64..192, 192, padded to 256
  CHECK(launch(before).patches[0].offset == 64);
  CHECK(launch(before).parameters[192] == 2);
  const ResolvedPlan three =
      must(with_args(R"j([{"struct": [{"map": "m"}, {"map": "n"}, {"map": "m"}]}])j", {384}, kMaps));
  REQUIRE(launch(three).patches.size() == 3);
  CHECK(launch(three).patches[2].offset == 256);
  CHECK(std::get<std::size_t>(launch(three).patches[1].what) == 1);
}

TEST_CASE("a map must lie where the hardware can read it") {
  std::vector<ModuleInfo> modules = gemm_modules();
  KernelInfo& kernel = modules[0].kernels[1];
  kernel = kernel_of("add", {4, 128});
  const std::string text = plan_with(add_step("", R"j([{"i32": 1}, {"map": "m"}])j"), kMaps);
  // Parameters begin at 0x210 of the constant bank on sm_90: 0x70 behind it is 0x280.
  kernel.parameter_base = 0x210;
  kernel.parameters[1].offset = 0x70;
  CHECK(launch(must(resolve_text(text, modules))).patches[0].offset == 0x70);
  kernel.parameters[1].offset = 64;
  check_error(resolve_text(text, modules), "/steps/0/args/1", "tensor_map_rule", "map_storage_alignment");
  kernel.parameter_base = 0;  // not known: only its place within the parameter counts
  CHECK(resolve_text(text, modules));
  check_error(
      with_args(R"j([{"struct": [{"bytes": "00000000"}, {"struct": [{"bytes": "00"}]}, {"map": "m"}]}])j",
                {200}, kMaps),
      "/steps/0/args/0", "argument_mismatch", "256 bytes");
}

TEST_CASE("arguments that do not fit are shown beside the parameters") {
  const auto wrong = with_args(R"j([{"tensor": "F"}, {"i64": "M"}])j", {8, 4});
  check_error(wrong, "/steps/0/args/1", "argument_mismatch",
              "argument 1 (i64 M) has 8 bytes, but parameter 1 has 4");
  for (const char* line :
       {"0: tensor F, 8 bytes", "1: i64 M, 8 bytes", "0: offset 0, 8 bytes", "1: offset 8, 4 bytes"})
    CHECK(wrong.error().message.find(line) != std::string::npos);
  check_error(with_args(R"j([{"tensor": "F"}])j", {8, 4}), "/steps/0/args", "argument_mismatch",
              "the plan gives 1 arguments, but the kernel has 2 parameters and reads parameter 1");
  check_error(with_args(R"j([{"tensor": "F"}, {"i32": 1}, {"i32": 1}])j", {8, 4}), "/steps/0/args",
              "argument_mismatch", "the plan gives 3 arguments, but the kernel has 2 parameters");
  check_error(with_args(R"j([{"map": "m"}])j", {8}, kMaps), "/steps/0/args/0", "argument_mismatch",
              "has 128 bytes");
  check_error(with_args("[]", {8}), "/steps/0/args", "argument_mismatch", "the plan's arguments: none");
}

TEST_CASE("trailing parameters that no code reads may be left out") {
  std::vector<ModuleInfo> modules = gemm_modules();
  modules[0].kernels[1] = kernel_of("add", {8, 4, 8, 8});
  const std::string text = plan_with(add_step());
  auto& parameters = modules[0].kernels[1].parameters;
  check_error(resolve_text(text, modules), "/steps/0/args", "argument_mismatch", "reads parameter 2");
  parameters[2].read = std::nullopt;
  parameters[3].read = false;
  check_error(resolve_text(text, modules), "/steps/0/args", "argument_mismatch",
              "it is not known that parameter 2 is never read");
  parameters[2].read = false;
  const ResolvedPlan run = must(resolve_text(text, modules));
  CHECK(launch(run).parameters.size() == 32);
  REQUIRE(run.findings.size() == 1);
  CHECK(run.findings[0].code == "unread_parameters");
  CHECK(run.findings[0].severity == Severity::note);
}

TEST_CASE("globals are written as typed values, addresses or maps") {
  const auto run = [](const std::string& globals) {
    return resolve_text(plan_with(add_step(), kMaps + R"j(, "globals": [)j" + globals + "]"));
  };
  const ResolvedPlan values =
      must(run(R"j({"symbol": "scale", "values": ["alpha", 0.5], "dtype": "float32", "offset": 2})j"));
  REQUIRE(values.globals.size() == 1);
  CHECK(values.globals[0].symbol == "scale");
  CHECK(values.globals[0].byte_offset == 8);
  CHECK(values.globals[0].bytes == Bytes{0, 0, 0, 0x40, 0, 0, 0, 0x3f});
  const ResolvedPlan address = must(run(R"j({"symbol": "scale", "tensor": "B"})j"));
  CHECK(std::get<BufferRef>(address.globals[0].patches[0].what).index == 1);
  check_error(run(R"j({"symbol": "scale", "values": [1, 2, 3, 4, 5], "dtype": "float32"})j"), "/globals/0",
              "plan_invalid", "20 bytes at byte 0 do not fit");
  check_error(run(R"j({"symbol": "scale", "values": [1], "dtype": "float32", "offset": 4})j"), "/globals/0",
              "plan_invalid", "do not fit");
  check_error(run(R"j({"symbol": "scale", "values": [1], "dtype": "float32", "offset": -1})j"),
              "/globals/0/offset", "plan_invalid", "is not inside");
  check_error(run(R"j({"symbol": "scale", "values": [300], "dtype": "int8"})j"), "/globals/0/values/0",
              "plan_invalid", "out of range for int8");
  check_error(run(R"j({"symbol": "scale", "map": "m"})j"), "/globals/0", "plan_invalid",
              "128 bytes at byte 0 do not fit `scale`");
  check_error(run(R"j({"symbol": "scales", "tensor": "A"})j"), "/globals/0/symbol", "unknown_name",
              "there is scale");
}

TEST_CASE("workspaces are typed, bounded and may ask the device") {
  const auto run = [](const std::string& members) {
    return resolve_text(plan_with(add_step(), R"j("workspaces": [{"name": "w", )j" + members + "}]"));
  };
  const auto w = [&](const std::string& members) { return must(run(members)).workspaces[0]; };
  CHECK(w(R"j("dtype": "float32", "shape": ["occupancy(add)", "M"])j").bytes == 65536);
  CHECK_FALSE(w(R"j("dtype": "float32", "shape": [1])j").initialised);
  CHECK_FALSE(w(R"j("dtype": "float32", "shape": [1], "init": "none")j").initialised);
  CHECK(w(R"j("dtype": "float32", "shape": [1], "init": -1)j").pattern == 0xbf800000);
  CHECK(w(R"j("dtype": "bfloat16", "shape": [1], "init": 1e-3)j").pattern == 0x3a83);
  CHECK(w(R"j("dtype": "int64", "shape": [1], "init": -1)j").pattern == 0xffffffffffffffff);
  CHECK(w(R"j("dtype": "float4_e2m1", "shape": [3], "init": 6)j").pattern == 0x77);
  CHECK(w(R"j("dtype": "float4_e2m1", "shape": [3], "init": 6)j").bytes == 2);
  CHECK(w(R"j("dtype": "bool", "shape": [2], "init": true)j").pattern == 1);
  CHECK(w(R"j("dtype": "uint8", "shape": [])j").bytes == 1);
  CHECK(w(R"j("dtype": "uint8", "shape": [0])j").bytes == 0);
  check_error(run(R"j("dtype": "uint8", "shape": [1], "init": 256)j"), "/workspaces/0/init", "plan_invalid",
              "256 is out of range for uint8");
  check_error(run(R"j("dtype": "float16", "shape": [1], "init": 1e6)j"), "/workspaces/0/init", "plan_invalid",
              "out of range for float16");
  check_error(run(R"j("dtype": "uint8", "shape": ["M - 8193"])j"), "/workspaces/0/shape/0", "workspace_limit",
              "is negative");
  check_error(run(R"j("dtype": "uint8", "shape": [141000000000])j"), "/workspaces/0", "workspace_limit",
              "does not fit");
  check_error(run(R"j("dtype": "uint8", "shape": [1099511627777])j"), "/workspaces/0/shape",
              "workspace_limit", "2^40 elements");
  check_error(run(R"j("dtype": "uint8", "shape": [4294967296, 4294967296, 4294967296, 4294967296])j"),
              "/workspaces/0/shape", "workspace_limit", "2^40");
  check_error(run(R"j("dtype": "uint8", "shape": ["occupancy(add)*9223372036854775807"])j"),
              "/workspaces/0/shape/0", "expression", "integer overflow");
}
