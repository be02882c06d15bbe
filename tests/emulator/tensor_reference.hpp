// The rule of the tensor cores read literally, in 128-bit integers: shares no code with the library.
#pragma once

#include "emulator/tensor_math.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace ptxbench::testing {

using emulator::AccumulatorType;
using emulator::OperandType;

struct Format {
  int exponent_bits, mantissa_bits, bias;
};
inline Format format_of(OperandType type) {
  switch (type) {
    case OperandType::f16:
      return {5, 10, 15};
    case OperandType::bf16:
      return {8, 7, 127};
    case OperandType::tf32:
      return {8, 10, 127};  // of the upper 19 bits
    case OperandType::e4m3:
      return {4, 3, 7};
    default:
      return {5, 2, 15};
  }
}

struct Number {
  bool negative = false, nan = false, infinite = false;
  std::uint64_t significand = 0;  // value = significand * 2^(exponent - fraction)
  int exponent = 0, fraction = 0;
};
inline Number decode(int exponent_bits, int mantissa_bits, int bias, std::uint32_t bits,
                     bool only_nan_on_top) {
  Number n;
  const std::uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
  const std::uint32_t field = bits >> mantissa_bits & ((1U << exponent_bits) - 1);
  n.negative = (bits >> (mantissa_bits + exponent_bits) & 1) != 0;
  n.fraction = mantissa_bits;
  const std::uint32_t top = (1U << exponent_bits) - 1;
  if (field == top && only_nan_on_top) {
    n.nan = mantissa == (1U << mantissa_bits) - 1;
  } else if (field == top) {
    n.nan = mantissa != 0;
    n.infinite = mantissa == 0;
  }
  n.significand = field == 0 ? mantissa : mantissa | 1U << mantissa_bits;
  n.exponent = (field == 0 ? 1 : static_cast<int>(field)) - bias;
  return n;
}
inline Number decode(OperandType type, std::uint32_t bits) {
  const Format f = format_of(type);
  return decode(f.exponent_bits, f.mantissa_bits, f.bias, type == OperandType::tf32 ? bits >> 13 : bits,
                type == OperandType::e4m3);
}
inline float reference_value(OperandType type, std::uint32_t bits) {
  const Number n = decode(type, bits);
  const float magnitude =
      n.infinite ? INFINITY : std::ldexp(static_cast<float>(n.significand), n.exponent - n.fraction);
  return n.negative ? -magnitude : magnitude;
}

// S * 2^scale to a format, towards zero or to nearest even; `kept` mantissa bits of those of the format.
inline std::uint32_t round_to(__int128 sum, int scale, int exponent_bits, int mantissa_bits, int kept,
                              bool nearest) {
  if (sum == 0) return 0;
  const bool negative = sum < 0;
  unsigned __int128 magnitude =
      negative ? static_cast<unsigned __int128>(-sum) : static_cast<unsigned __int128>(sum);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  int top = 0;
  while ((magnitude >> top) > 1) ++top;
  int exponent = top + scale < 1 - bias ? 1 - bias : top + scale;
  // In units of the last kept bit.
  const int unit = exponent - kept;
  unsigned __int128 whole = 0, rest = 0, half = 0;
  if (unit <= scale) {
    whole = magnitude << (scale - unit);
  } else if (unit - scale < 127) {
    whole = magnitude >> (unit - scale);
    rest = magnitude - (whole << (unit - scale));
    half = static_cast<unsigned __int128>(1) << (unit - scale - 1);
  } else {
    rest = magnitude;
    half = ~static_cast<unsigned __int128>(0);
  }
  if (nearest && (rest > half || (rest == half && half != 0 && (whole & 1) != 0))) ++whole;
  if (whole >> (kept + 1) != 0) {
    whole >>= 1;
    ++exponent;
  }
  const std::uint32_t sign = negative ? 1U << (exponent_bits + mantissa_bits) : 0;
  if (exponent > bias) return sign | ((1U << exponent_bits) - 1) << mantissa_bits;
  const auto significand = static_cast<std::uint32_t>(whole) << (mantissa_bits - kept);
  if (significand == 0) return 0;  // what vanishes is +0
  const bool normal = (significand >> mantissa_bits) != 0;
  return sign | (normal ? static_cast<std::uint32_t>(exponent + bias) : 0U) << mantissa_bits |
         (significand & ((1U << mantissa_bits) - 1));
}

// The bits of the value nearest to a float.
inline std::uint32_t encode(OperandType type, float value) {
  if (type == OperandType::s8 || type == OperandType::u8)
    return static_cast<std::uint32_t>(static_cast<int>(value)) & 0xff;
  const Format f = format_of(type);
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);
  std::uint32_t bits = 0;
  if (std::isinf(value))
    bits = ((1U << f.exponent_bits) - 1) << f.mantissa_bits |
           (value < 0 ? 1U << (f.exponent_bits + f.mantissa_bits) : 0);
  else
    bits = round_to(static_cast<__int128>(std::ldexp(fraction, 24)), exponent - 24, f.exponent_bits,
                    f.mantissa_bits, f.mantissa_bits, true);
  if (value == 0 && std::signbit(value)) bits = 1U << (f.exponent_bits + f.mantissa_bits);
  if (std::signbit(value) && bits == 0) bits = 1U << (f.exponent_bits + f.mantissa_bits);
  return type == OperandType::tf32 ? bits << 13 : bits;
}

struct Specials {
  std::uint32_t infinity, nan, sign, smallest;
};
inline Specials specials(OperandType type) {
  switch (type) {
    case OperandType::f16:
      return {0x7c00, 0x7e01, 0x8000, 1};
    case OperandType::bf16:
      return {0x7f80, 0x7fc1, 0x8000, 1};
    case OperandType::tf32:
      return {0x7f800000, 0x7fc00000, 0x80000000, 0x2000};
    case OperandType::e4m3:
      return {0x7e, 0x7f, 0x80, 1};  // no infinity: the largest number
    default:
      return {0x7c, 0x7d, 0x80, 1};
  }
}

struct Operation {
  int fraction_bits, kept;
  bool half;          // accumulator and result are fp16
  bool through_half;  // operands were converted to fp16 first
};

// D = C + sum a * b as bits of fp32 or fp16.
inline std::uint32_t reference_operation(OperandType ta, OperandType tb, const std::vector<std::uint32_t>& a,
                                         const std::vector<std::uint32_t>& b, std::uint32_t c,
                                         bool accumulate, const Operation& op) {
  struct Term {
    __int128 significand;
    int exponent, fraction;
    bool negative;
  };
  std::vector<Term> terms;
  bool nan = false, plus = false, minus = false;
  const auto as_half = [](Number n) {  // fp8 to fp16 is exact: only the form of e4m3's subnormals changes
    while (n.significand != 0 && n.exponent > -14 && (n.significand >> n.fraction) == 0) {
      n.significand <<= 1;
      --n.exponent;
    }
    return n;
  };
  for (std::size_t k = 0; k < a.size(); ++k) {
    Number x = decode(ta, a[k]), y = decode(tb, b[k]);
    if (op.through_half) x = as_half(x), y = as_half(y);
    const bool negative = x.negative != y.negative;
    const bool zero =
        (x.significand == 0 && !x.infinite && !x.nan) || (y.significand == 0 && !y.infinite && !y.nan);
    if (x.nan || y.nan || ((x.infinite || y.infinite) && zero)) {
      nan = true;
    } else if (x.infinite || y.infinite) {
      (negative ? minus : plus) = true;
    } else if (!zero) {
      terms.push_back({static_cast<__int128>(x.significand) * y.significand, x.exponent + y.exponent,
                       x.fraction + y.fraction, negative});
    }
  }
  if (accumulate) {
    const Number n = op.half ? decode(5, 10, 15, c, false) : decode(8, 23, 127, c, false);
    if (n.nan)
      nan = true;
    else if (n.infinite)
      (n.negative ? minus : plus) = true;
    else if (n.significand != 0)
      terms.push_back({static_cast<__int128>(n.significand), n.exponent, n.fraction, n.negative});
  }
  if (nan || (plus && minus)) return op.half ? 0x7fff : 0x7fffffff;
  if (plus || minus) return op.half ? (minus ? 0xfc00 : 0x7c00) : (minus ? 0xff800000 : 0x7f800000);
  if (terms.empty()) return 0;
  int largest = terms[0].exponent;
  for (const Term& t : terms) largest = t.exponent > largest ? t.exponent : largest;
  __int128 sum = 0;
  for (const Term& t : terms) {
    const int shift = (t.exponent - t.fraction) - (largest - op.fraction_bits);
    const __int128 cut = shift >= 0 ? t.significand << shift : shift < -120 ? 0 : t.significand >> -shift;
    sum += t.negative ? -cut : cut;
  }
  return op.half ? round_to(sum, largest - op.fraction_bits, 5, 10, 10, true)
                 : round_to(sum, largest - op.fraction_bits, 8, 23, op.kept, false);
}

inline std::uint32_t element(const std::vector<std::uint8_t>& bytes, OperandType type, std::size_t index) {
  const std::size_t size = static_cast<std::size_t>(emulator::operand_bits(type)) / 8;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < size; ++i) bits |= std::uint32_t{bytes[index * size + i]} << (8 * i);
  return bits;
}

inline std::vector<std::uint32_t> reference_multiply(const emulator::TensorRule& rule,
                                                     const std::vector<std::uint8_t>& a,
                                                     const std::vector<std::uint8_t>& b,
                                                     const std::vector<std::uint32_t>& c, int m, int n, int k,
                                                     const emulator::MultiplyOptions& options) {
  std::vector<std::uint32_t> d;
  const bool half = rule.accumulator == AccumulatorType::f16;
  const Operation op{rule.fraction_bits,
                     rule.rounding == emulator::SumRounding::toward_zero_13_bits ? 13 : 23, half,
                     rule.composition == emulator::Composition::split_then_add};
  for (int i = 0; i < m * n; ++i) {
    std::vector<std::uint32_t> x, y;
    for (int j = 0; j < k; ++j) {
      x.push_back(element(a, rule.a, static_cast<std::size_t>(i / n * k + j)));
      y.push_back(element(b, rule.b, static_cast<std::size_t>(i % n * k + j)));
    }
    const auto bits = static_cast<std::size_t>(i);
    if (rule.accumulator == AccumulatorType::s32) {
      std::int64_t sum = options.accumulate ? static_cast<std::int32_t>(c[bits]) : 0;
      for (int j = 0; j < k; ++j) {
        const auto value = [](OperandType type, std::uint32_t byte) {
          return type == OperandType::s8 ? static_cast<std::int8_t>(byte) : static_cast<int>(byte);
        };
        sum += value(rule.a, x[static_cast<std::size_t>(j)]) * value(rule.b, y[static_cast<std::size_t>(j)]);
      }
      if (options.saturate) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
      d.push_back(static_cast<std::uint32_t>(sum));
      continue;
    }
    const auto negate = [](OperandType type, std::vector<std::uint32_t>& values) {
      for (auto& v : values) v ^= specials(type).sign;
    };
    if (options.negate_a) negate(rule.a, x);
    if (options.negate_b) negate(rule.b, y);
    if (!op.through_half) {
      std::uint32_t sum = c[bits];
      for (int from = 0; from < k; from += rule.operation_k) {
        const auto part = [&](const std::vector<std::uint32_t>& all) {
          return std::vector<std::uint32_t>(all.begin() + from, all.begin() + from + rule.operation_k);
        };
        sum = reference_operation(rule.a, rule.b, part(x), part(y), sum, options.accumulate || from > 0, op);
      }
      d.push_back(sum);
      continue;
    }
    std::vector<std::uint32_t> parts[2][2];
    for (int j = 0; j < k; ++j) {
      parts[j % 4 / 2][0].push_back(x[static_cast<std::size_t>(j)]);
      parts[j % 4 / 2][1].push_back(y[static_cast<std::size_t>(j)]);
    }
    std::uint32_t sum = reference_operation(rule.a, rule.b, parts[0][0], parts[0][1], 0, false, op);
    sum = reference_operation(rule.a, rule.b, parts[1][0], parts[1][1], sum, true, op);
    const auto as_double = [&](std::uint32_t word) {
      const Number v = half ? decode(5, 10, 15, word, false) : decode(8, 23, 127, word, false);
      if (v.nan) return static_cast<double>(NAN);
      const double magnitude =
          v.infinite ? INFINITY : std::ldexp(static_cast<double>(v.significand), v.exponent - v.fraction);
      return v.negative ? -magnitude : magnitude;
    };
    if (options.accumulate) {
      const double x0 = as_double(sum), y0 = as_double(c[bits]);
      if (half) {
        const double total = x0 + y0;  // exact
        sum = std::isnan(total) ? 0x7fff : encode(OperandType::f16, static_cast<float>(total));
      } else {
        const float total = static_cast<float>(x0) + static_cast<float>(y0);
        __builtin_memcpy(&sum, &total, 4);
        if (std::isnan(total)) sum = 0x7fffffff;
      }
    }
    d.push_back(sum);
  }
  return d;
}

}  // namespace ptxbench::testing
