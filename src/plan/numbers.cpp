#include "plan/numbers.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

namespace ptxbench::plan {
namespace {

Error out_of_range(DType dtype, const Number& value) {
  return make_error(ErrorCode::invalid_argument,
                    expr::to_string(value) + " is out of range for " + std::string(dtype_name(dtype)), {},
                    kPlanInvalid);
}

// Rounds to the nearest integer, ties to even, whatever the thread's rounding mode is. |v| < 2^53.
double round_even(double v) {
  const double low = std::floor(v), rest = v - low;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(low, 2.0) != 0)) return low + 1;
  return low;
}

struct FloatFormat {
  int exponent_bits, mantissa_bits;
  double largest;  // largest finite value
};

// Rounds once, from double, so that there is no double rounding through float.
std::optional<std::uint64_t> encode_float(const FloatFormat& format, double v) {
  const std::uint64_t sign =
      std::signbit(v) ? std::uint64_t{1} << (format.exponent_bits + format.mantissa_bits) : 0;
  const double magnitude = std::fabs(v);
  if (magnitude == 0) return sign;
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
  exponent = std::max(exponent - 1, 1 - bias);
  const double rounded = round_even(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const double value = std::ldexp(rounded, exponent - format.mantissa_bits);
  if (!(value <= format.largest)) return std::nullopt;
  // A carry out of the mantissa moves into the exponent field by itself; subnormals have field zero.
  const auto significand = static_cast<std::uint64_t>(rounded);
  const std::uint64_t hidden = std::uint64_t{1} << format.mantissa_bits;
  const bool subnormal = exponent == 1 - bias && significand < hidden;
  const std::uint64_t field = subnormal ? 0 : static_cast<std::uint64_t>(exponent + bias);
  return sign | (subnormal ? significand : (field << format.mantissa_bits) + (significand - hidden));
}

std::optional<FloatFormat> float_format(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return FloatFormat{5, 10, 65504.0};
    case DType::bfloat16:
      return FloatFormat{8, 7, 0x1.fep127};
    case DType::float8_e4m3fn:
      return FloatFormat{4, 3, 448.0};
    case DType::float8_e5m2:
      return FloatFormat{5, 2, 57344.0};
    case DType::float4_e2m1:
      return FloatFormat{2, 1, 6.0};
    case DType::float32:
    case DType::tfloat32:
      return FloatFormat{8, 23, 0x1.fffffep127};
    default:
      return std::nullopt;
  }
}

bool is_float(DType dtype) { return float_format(dtype).has_value() || dtype == DType::float64; }
bool is_unsigned(DType dtype) {
  return dtype == DType::uint8 || dtype == DType::uint16 || dtype == DType::uint32 || dtype == DType::uint64;
}

}  // namespace

Result<std::uint64_t> encode(DType dtype, const Number& value) {
  if (dtype == DType::boolean) {
    if (const bool* b = std::get_if<bool>(&value)) return std::uint64_t{*b ? 1u : 0u};
    const double v = value.index() == 0 ? static_cast<double>(std::get<0>(value)) : std::get<1>(value);
    if (v != 0 && v != 1) return out_of_range(dtype, value);
    return std::uint64_t{v == 1 ? 1u : 0u};
  }
  if (value.index() == 2)
    return make_error(
        ErrorCode::invalid_argument,
        "the boolean " + expr::to_string(value) + " is no value of " + std::string(dtype_name(dtype)), {},
        kPlanInvalid);
  if (is_float(dtype)) {
    const double v = value.index() == 0 ? static_cast<double>(std::get<0>(value)) : std::get<1>(value);
    if (dtype == DType::float64) return std::bit_cast<std::uint64_t>(v);
    const std::optional<std::uint64_t> bits = encode_float(*float_format(dtype), v);
    if (!bits) return out_of_range(dtype, value);
    return *bits;
  }
  std::int64_t v = 0;
  if (value.index() == 0) {
    v = std::get<0>(value);
  } else {
    const double rounded =
        std::fabs(std::get<1>(value)) < 0x1p52 ? round_even(std::get<1>(value)) : std::get<1>(value);
    if (!(rounded >= -0x1p63 && rounded < 0x1p63)) {
      if (dtype == DType::uint64 && rounded >= 0 && rounded < 0x1p64)
        return static_cast<std::uint64_t>(rounded);
      return out_of_range(dtype, value);
    }
    v = static_cast<std::int64_t>(rounded);
  }
  const int bits = dtype_bits(dtype);
  if (is_unsigned(dtype)) {
    if (v < 0 || (bits < 64 && v >> bits != 0)) return out_of_range(dtype, value);
    return static_cast<std::uint64_t>(v);
  }
  if (bits == 64) return static_cast<std::uint64_t>(v);
  const std::int64_t limit = std::int64_t{1} << (bits - 1);
  if (v < -limit || v >= limit) return out_of_range(dtype, value);
  return static_cast<std::uint64_t>(v) & ((std::uint64_t{1} << bits) - 1);
}

std::string float_literal(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
  std::string out(text, end);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out + "f";
}

DType scalar_dtype(ScalarType type) {
  switch (type) {
    case ScalarType::i32:
      return DType::int32;
    case ScalarType::u32:
      return DType::uint32;
    case ScalarType::i64:
      return DType::int64;
    case ScalarType::u64:
      return DType::uint64;
    case ScalarType::f32:
      return DType::float32;
    case ScalarType::f64:
      return DType::float64;
    case ScalarType::bf16:
      return DType::bfloat16;
    case ScalarType::f16:
      return DType::float16;
    case ScalarType::boolean:
      return DType::boolean;
  }
  return DType::int32;
}

std::string_view scalar_key(ScalarType type) {
  static constexpr std::array<std::string_view, 9> kKeys{"i32", "u32",  "i64", "u64", "f32",
                                                         "f64", "bf16", "f16", "bool"};
  return kKeys[static_cast<std::size_t>(type)];
}

Result<Number> number_of_dtype(DType dtype, const Number& value) {
  const auto wrong = [&] {
    return make_error(ErrorCode::invalid_argument,
                      expr::to_string(value) + " is no value of " + std::string(dtype_name(dtype)), {},
                      kPlanInvalid);
  };
  if (dtype == DType::boolean) {
    if (value.index() == 2) return value;
    if (value.index() == 0 && (std::get<0>(value) == 0 || std::get<0>(value) == 1))
      return Number(std::get<0>(value) == 1);
    return wrong();
  }
  if (value.index() == 2) return wrong();
  if (is_float(dtype)) return value.index() == 1 ? value : Number(static_cast<double>(std::get<0>(value)));
  if (value.index() == 0) return value;
  const double v = std::get<1>(value);
  if (std::trunc(v) != v || !(v >= -0x1p63 && v < 0x1p63)) return wrong();
  return Number(static_cast<std::int64_t>(v));
}

}  // namespace ptxbench::plan
