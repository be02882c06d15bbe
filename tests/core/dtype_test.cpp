#include "support/catch.hpp"

#include <ptxbench/core.hpp>

using namespace ptxbench;

TEST_CASE("every dtype reads back from its own name") {
  for (int i = 0; i <= static_cast<int>(DType::tfloat32); ++i) {
    const auto dtype = static_cast<DType>(i);
    REQUIRE(dtype_from_name(dtype_name(dtype)) == dtype);
    REQUIRE(dtype_bits(dtype) >= 4);
  }
  REQUIRE_FALSE(dtype_from_name("fp16"));
  REQUIRE_FALSE(dtype_from_name("FLOAT32"));
}

TEST_CASE("sub-byte elements round up to whole bytes") {
  REQUIRE(dtype_bytes(DType::float4_e2m1, 3) == 2);
  REQUIRE(dtype_bytes(DType::bfloat16, 3) == 6);
}

TEST_CASE("an error names its place") {
  REQUIRE(make_error(ErrorCode::parse, "bad", {"launch.json", "/steps/0/grid", 0, 0}).to_string() ==
          "launch.json:/steps/0/grid: bad");
  REQUIRE(make_error(ErrorCode::parse, "bad", {"a.cu", "", 12, 3}).to_string() == "a.cu:12:3: bad");
  REQUIRE(make_error(ErrorCode::parse, "bad").to_string() == "bad");
}
