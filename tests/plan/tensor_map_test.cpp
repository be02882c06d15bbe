#include "plan/tensor_map.hpp"

#include "plan_support.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

Result<ResolvedPlan> with_map(const std::string& members, const std::string& device = "h200") {
  const std::string text = plan_with(add_step(), R"j("workspaces": [
      {"name": "w", "dtype": "uint8", "shape": [4, 8, 16, 32]}, {"name": "f4", "dtype": "float4_e2m1", "shape": [64, 256]},
      {"name": "odd", "dtype": "bfloat16", "shape": [4, 9]}, {"name": "six", "dtype": "uint8", "shape": [2, 2, 2, 2, 2, 16]},
      {"name": "zero", "dtype": "bfloat16", "shape": [0, 64]}, {"name": "one", "dtype": "float32", "shape": []}],
    "tensor_maps": [{"name": "m", )j" + members + "}]");
  const Workload workload = gemm_workload();
  const BoundPlan bound = must(bind_plan(must(LaunchPlan::parse(text)), gemm_solution(), workload,
                                         {must(device_profile(device)), {}}));
  return resolve_plan(bound, gemm_modules(), scalars_of(workload), gemm_queries());
}

ResolvedTensorMap map_of(const std::string& members, const std::string& device = "h200") {
  return must(with_map(members, device)).maps.at(0);
}

using U64 = std::vector<std::uint64_t>;
using U32 = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("defaults come from the tensor") {
  const ResolvedTensorMap w = map_of(R"j("tensor": "w", "box": [32, 1, 1, 1])j");
  CHECK(w.dims == U64{32, 16, 8, 4});
  CHECK(w.strides == U64{32, 512, 4096});
  CHECK(w.element_strides == U32{1, 1, 1, 1});
  CHECK(w.data_type == 0);
  CHECK(map_of(R"j("tensor": "w", "dims": [64], "box": [64])j").strides.empty());
  CHECK(map_of(R"j("tensor": "one", "box": [4])j").dims == U64{1});
}

TEST_CASE("a view as another type rescales the innermost dimension") {
  const ResolvedTensorMap view = map_of(R"j("tensor": "A", "dtype": "uint32", "box": [32, 8])j");
  CHECK(view.data_type == 2);
  CHECK(view.dims == U64{2560, 8192});
  CHECK(view.strides == U64{10240});
  CHECK(map_of(R"j("tensor": "A", "dtype": "uint8", "box": [16, 8])j").dims == U64{10240, 8192});
  CHECK(map_of(R"j("tensor": "F", "dtype": "tf32", "box": [32, 8])j").data_type == 11);
  check_error(with_map(R"j("tensor": "odd", "dtype": "uint32", "box": [4, 1])j"), "/tensor_maps/0/dtype",
              "tensor_map_rule", "no whole number of uint32");
}

TEST_CASE("strides are bytes and offsets elements of the view") {
  const ResolvedTensorMap m = map_of(
      R"j("tensor": "A", "offset": "64 * K", "dims": [64, 16, 4], "strides": ["2*K", 128], "box": [64, 16, 1], "element_strides": [1, 2, 1], "swizzle": "128B", "oob_fill": "nan")j");
  CHECK(m.base.byte_offset == 64 * 5120 * 2);
  CHECK(m.strides == U64{10240, 128});
  CHECK(m.element_strides == U32{1, 2, 1});
  CHECK(m.oob_fill == 1);
  check_error(with_map(R"j("tensor": "A", "offset": "M*K", "box": [64, 1])j"), "/tensor_maps/0/offset",
              "tensor_map_rule", "is not inside `A`");
  check_error(with_map(R"j("tensor": "A", "offset": -8, "box": [64, 1])j"), "/tensor_maps/0/offset",
              "tensor_map_rule", "is not inside `A`");
}

TEST_CASE("four-bit elements need compute capability 10.0") {
  const std::string f4 = R"j("tensor": "f4", "box": [64, 1])j";
  CHECK(map_of(f4, "b200").data_type == 13);
  CHECK(map_of(f4, "b200").strides == U64{128});
  check_error(with_map(f4), "/tensor_maps/0/dtype", "tensor_map_rule", "type_needs_sm_100");
  check_error(with_map(R"j("tensor": "f4", "box": [16, 1])j", "b200"), "/tensor_maps/0/box",
              "tensor_map_rule", "multiple of 16 bytes");
  check_error(with_map(R"j("tensor": "f4", "dims": [33, 1], "strides": [32], "box": [32, 1])j", "b200"),
              "/tensor_maps/0/dims", "tensor_map_rule", "dims_even");
}

TEST_CASE("each rule of the driver is named") {
  struct Row {
    std::string members, field, rule;
  };
  const std::vector<Row> rows{
      {R"j("tensor": "six", "box": [16, 1, 1, 1, 1, 1])j", "dims", "rank"},
      {R"j("tensor": "w", "box": [32, 1], "interleave": "16B", "dims": [32, 4])j", "dims", "rank"},
      {R"j("tensor": "A", "box": [64, 1], "dims": [])j", "dims", "rank"},
      {R"j("tensor": "A", "box": [64, 1], "strides": [])j", "strides", "strides_count"},
      {R"j("tensor": "A", "box": [64, 1], "strides": [10240, 16])j", "strides", "strides_count"},
      {R"j("tensor": "A", "box": [64])j", "box", "box_count"},
      {R"j("tensor": "A", "box": [64, 1, 1])j", "box", "box_count"},
      {R"j("tensor": "A", "box": [64, 1], "element_strides": [1])j", "element_strides",
       "element_strides_count"},
      {R"j("tensor": "A", "box": [64, 1], "offset": 4, "dims": [64, 2])j", "offset", "address_alignment"},
      {R"j("tensor": "w", "box": [32, 1, 1, 1], "offset": 16, "dims": [32, 1, 1, 1], "interleave": "32B", "swizzle": "32B")j",
       "offset", "address_alignment"},
      {R"j("tensor": "zero", "box": [64, 1])j", "dims", "dims_range"},
      {R"j("tensor": "A", "box": [64, 1], "dims": [64, 4294967297])j", "dims", "dims_range"},
      {R"j("tensor": "A", "box": [64, 1], "dims": [64, -1])j", "dims", "dims_range"},
      {R"j("tensor": "odd", "box": [8, 1])j", "strides", "strides_multiple"},
      {R"j("tensor": "A", "box": [64, 1], "strides": [10248])j", "strides", "strides_multiple"},
      {R"j("tensor": "w", "box": [32, 1, 1], "dims": [32, 1, 1], "strides": [48, 64], "interleave": "32B", "swizzle": "32B")j",
       "strides", "strides_multiple"},
      {R"j("tensor": "A", "box": [64, 1], "strides": [1099511627776])j", "strides", "strides_range"},
      {R"j("tensor": "A", "box": [64, 257])j", "box", "box_range"},
      {R"j("tensor": "A", "box": [64, 0])j", "box", "box_range"},
      {R"j("tensor": "A", "box": [64, 4294967296])j", "box", "box_range"},
      {R"j("tensor": "A", "box": [64, 1], "element_strides": [1, 9])j", "element_strides",
       "element_strides_range"},
      {R"j("tensor": "A", "box": [64, 1], "element_strides": [0, 1])j", "element_strides",
       "element_strides_range"},
      {R"j("tensor": "A", "box": [12, 1])j", "box", "box_inner_multiple_of_16_bytes"},
      {R"j("tensor": "A", "dtype": "float32", "dims": [64, 256, 8], "strides": [256, 65536], "box": [64, 256, 4])j",
       "box", "box_shared_memory"},
      {R"j("tensor": "A", "box": [128, 1], "swizzle": "128B")j", "box", "box_inner_within_swizzle"},
      {R"j("tensor": "A", "box": [64, 1], "swizzle": "64B")j", "box", "box_inner_within_swizzle"},
      {R"j("tensor": "A", "box": [32, 1], "swizzle": "32B")j", "box", "box_inner_within_swizzle"},
      {R"j("tensor": "w", "box": [32, 1, 1, 1], "interleave": "32B")j", "swizzle", "interleave_swizzle"},
      {R"j("tensor": "A", "box": [64, 1], "swizzle": "128B_atom_32B")j", "swizzle",
       "swizzle_atom_needs_sm_100"},
      {R"j("tensor": "w", "box": [32, 1, 1, 1], "oob_fill": "nan")j", "oob_fill", "oob_fill_nan_needs_float"},
      {R"j("tensor": "A", "box": [64, 1], "offset": 64)j", "dims", "inside_buffer"},
      {R"j("tensor": "A", "box": [64, 1], "dims": ["K", "M + 1"])j", "dims", "inside_buffer"},
      {R"j("tensor": "A", "box": [64, 1], "dims": [64, 4294967296], "strides": [1099511627760])j", "dims",
       "inside_buffer"},
  };
  for (const Row& row : rows) {
    INFO(row.members);
    check_error(with_map(row.members), "/tensor_maps/0/" + row.field, "tensor_map_rule",
                "tensor map `m`: rule " + row.rule + ":");
  }
}

TEST_CASE("what the rules allow goes through") {
  for (const char* members :
       {R"j("tensor": "A", "box": [64, 256], "swizzle": "128B")j", R"j("tensor": "A", "box": [256, 256])j",
        R"j("tensor": "A", "box": [32, 8], "swizzle": "64B", "element_strides": [8, 8])j",
        R"j("tensor": "A", "box": [16, 8], "swizzle": "32B")j",
        R"j("tensor": "w", "box": [32, 1, 1, 1], "interleave": "16B")j",
        R"j("tensor": "w", "box": [32, 1, 1, 1], "interleave": "32B", "swizzle": "32B")j",
        R"j("tensor": "A", "box": [64, 1], "dims": [64, "M*K/64"], "strides": [128])j",
        R"j("tensor": "A", "box": [64, 1], "offset": 64, "dims": [5056, "M"], "strides": ["2*K"])j",
        R"j("tensor": "A", "box": [64, 1, 1], "dims": [64, 2, 1], "strides": [0, 16])j"}) {
    INFO(members);
    CHECK(with_map(members));
  }
  CHECK(with_map(R"j("tensor": "A", "box": [64, 1], "swizzle": "128B_atom_64B")j", "b200"));
  CHECK(map_of(R"j("tensor": "A", "box": [64, 1], "swizzle": "128B_atom_32B_flip_8B")j", "b200").swizzle ==
        5);
}

TEST_CASE("im2col has rules of its own") {
  const auto im2col = [](const std::string& lower, const std::string& upper,
                         const std::string& channels = "64", const std::string& pixels = "128") {
    return R"j("tensor": "A", "mode": "im2col", "dims": [64, 32, 16, 8], "pixel_box_lower_corner": )j" +
           lower + R"j(, "pixel_box_upper_corner": )j" + upper + R"j(, "channels_per_pixel": )j" + channels +
           R"j(, "pixels_per_column": )j" + pixels;
  };
  const ResolvedTensorMap m = map_of(im2col("[-1, -1]", "[-1, -1]") + R"j(, "swizzle": "128B")j");
  CHECK(m.im2col);
  CHECK(m.pixel_box_lower == std::vector<std::int32_t>{-1, -1});
  CHECK(m.channels_per_pixel == 64);
  CHECK(m.pixels_per_column == 128);
  CHECK(m.strides == U64{128, 4096, 65536});
  const std::vector<std::tuple<std::string, std::string, std::string>> rows{
      {im2col("[-1]", "[-1, -1]"), "pixel_box_lower_corner", "pixel_box_count"},
      {im2col("[-129, 0]", "[0, 0]"), "pixel_box_lower_corner", "pixel_box_range"},
      {im2col("[0, 0]", "[0, 128]"), "pixel_box_upper_corner", "pixel_box_range"},
      {im2col("[100, 0]", "[0, 0]"), "pixel_box_upper_corner", "pixel_box_empty"},
      {im2col("[0, 0]", "[0, 0]", "257"), "channels_per_pixel", "channels_range"},
      {im2col("[0, 0]", "[0, 0]", "0"), "channels_per_pixel", "channels_range"},
      {im2col("[0, 0]", "[0, 0]", "4"), "channels_per_pixel", "box_inner_multiple_of_16_bytes"},
      {im2col("[0, 0]", "[0, 0]", "128") + R"j(, "swizzle": "128B")j", "channels_per_pixel",
       "box_inner_within_swizzle"},
      {im2col("[0, 0]", "[0, 0]", "64", "1025"), "pixels_per_column", "pixels_range"},
      {R"j("tensor": "A", "mode": "im2col", "pixel_box_lower_corner": [0], "pixel_box_upper_corner": [0], "channels_per_pixel": 8, "pixels_per_column": 8)j",
       "dims", "rank"},
  };
  for (const auto& [members, field, rule] : rows) {
    INFO(members);
    check_error(with_map(members), "/tensor_maps/0/" + field, "tensor_map_rule", "rule " + rule + ":");
  }
}
