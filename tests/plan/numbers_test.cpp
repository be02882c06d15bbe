#include "plan/numbers.hpp"

#include "support/catch.hpp"

#include <bit>
#include <cmath>
#include <cstring>

using namespace ptxbench;
using expr::Number;
using plan::encode;

namespace {

// The value of a finite pattern, by the definition of the format.
double decode(int exponent_bits, int mantissa_bits, std::uint64_t bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
  const int field = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double scale = std::ldexp(1.0, -mantissa_bits);
  const double v =
      field == 0 ? std::ldexp(mantissa * scale, 1 - bias) : std::ldexp(1 + mantissa * scale, field - bias);
  return (bits >> (exponent_bits + mantissa_bits)) & 1 ? -v : v;
}

struct Format {
  DType dtype;
  int exponent_bits, mantissa_bits;
  std::uint64_t largest;  // pattern of the largest finite value
};
constexpr Format kFormats[] = {{DType::float16, 5, 10, 0x7bff},
                               {DType::bfloat16, 8, 7, 0x7f7f},
                               {DType::float8_e4m3fn, 4, 3, 0x7e},
                               {DType::float8_e5m2, 5, 2, 0x7b},
                               {DType::float4_e2m1, 2, 1, 0x7}};

}  // namespace

TEST_CASE("every value of the small formats is its own encoding, and ties go to even") {
  for (const Format& f : kFormats) {
    INFO(dtype_name(f.dtype));
    const std::uint64_t sign = std::uint64_t{1} << (f.exponent_bits + f.mantissa_bits);
    std::uint64_t wrong = 0;
    for (std::uint64_t bits = 0; bits <= f.largest; ++bits) {
      const double v = decode(f.exponent_bits, f.mantissa_bits, bits);
      wrong += encode(f.dtype, v).value_or(~0ull) != bits;
      wrong += encode(f.dtype, -v).value_or(~0ull) != (bits | sign);
      if (bits == f.largest) break;
      const double next = decode(f.exponent_bits, f.mantissa_bits, bits + 1), middle = v + (next - v) / 2;
      wrong += encode(f.dtype, middle).value_or(~0ull) != (bits % 2 == 0 ? bits : bits + 1);
      wrong += encode(f.dtype, std::nextafter(middle, 0.0)).value_or(~0ull) != bits;
      wrong += encode(f.dtype, std::nextafter(middle, 1e300)).value_or(~0ull) != bits + 1;
    }
    CHECK(wrong == 0);
    const double top = decode(f.exponent_bits, f.mantissa_bits, f.largest);
    const double below = decode(f.exponent_bits, f.mantissa_bits, f.largest - 1);
    CHECK(encode(f.dtype, std::nextafter(top + (top - below) / 2, 0.0)).value_or(0) == f.largest);
    CHECK_FALSE(encode(f.dtype, top + (top - below)));
    CHECK_FALSE(encode(f.dtype, -1e300));
  }
}

TEST_CASE("float32 rounds once, as the hardware does") {
  for (const double v : {0.1, 1.0 / 3, 3.4028234663852886e38, 1e-45, 1.4e-45, 1e-38, -2.5, 16777217.0,
                         16777219.0, 0.0, -0.0, 7e-46, 1.1754943e-38}) {
    INFO(v);
    CHECK(encode(DType::float32, v).value_or(0) == std::bit_cast<std::uint32_t>(static_cast<float>(v)));
  }
  CHECK_FALSE(encode(DType::float32, 3.4028236e38));
  CHECK(*encode(DType::float64, 0.1) == std::bit_cast<std::uint64_t>(0.1));
  CHECK(*encode(DType::float32, std::int64_t{3}) == 0x40400000);
}

TEST_CASE("integers keep to their range; a float rounds to the nearest even") {
  CHECK(*encode(DType::int8, std::int64_t{-128}) == 0x80);
  CHECK(*encode(DType::uint8, std::int64_t{255}) == 0xff);
  CHECK(*encode(DType::int16, std::int64_t{-1}) == 0xffff);
  CHECK(*encode(DType::int64, std::int64_t{-1}) == ~0ull);
  CHECK(*encode(DType::int32, 2.5) == 2);
  CHECK(*encode(DType::int32, 3.5) == 4);
  CHECK(*encode(DType::int32, -2.5) == 0xfffffffe);
  CHECK(*encode(DType::uint64, 18446744073709549568.0) == 18446744073709549568ull);
  for (const auto& [dtype, v] :
       {std::pair{DType::int8, Number(std::int64_t{128})}, std::pair{DType::uint8, Number(std::int64_t{-1})},
        std::pair{DType::uint64, Number(std::int64_t{-1})},
        std::pair{DType::uint64, Number(18446744073709551616.0)},
        std::pair{DType::int64, Number(9223372036854775808.0)}, std::pair{DType::int32, Number(true)},
        std::pair{DType::boolean, Number(std::int64_t{2})}, std::pair{DType::float32, Number(false)}})
    CHECK_FALSE(encode(dtype, v));
  CHECK(*encode(DType::boolean, true) == 1);
  CHECK(*encode(DType::boolean, 1.0) == 1);
}

TEST_CASE("float literals read back the same") {
  CHECK(plan::float_literal(0.1) == "0.1f");
  CHECK(plan::float_literal(2) == "2.0f");
  CHECK(plan::float_literal(1e30) == "1e+30f");
  CHECK(plan::float_literal(16777216) == "16777216.0f");
  CHECK(plan::float_literal(-0.0) == "-0.0f");
  CHECK(plan::float_literal(1.0 / 3) == "0.33333334f");
}
