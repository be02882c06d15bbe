#include "emulator/tensor_math.hpp"

#include "emulator/float_environment.hpp"
#include "emulator/tensor_operands.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace ptxbench::emulator {

namespace {

constexpr int kMaxParts = 2;
constexpr int kMaxUnits = kMaxTensorM / 8;
constexpr std::uint32_t kNan = 0x7fffffff;

// A value as significand and exponent, the significand with 23 fraction bits and not normalised where the
// format's smallest exponent forbids it.
struct Unpacked {
  bool negative = false, zero = false, infinite = false, nan = false;
  std::int32_t exponent = 0;
  std::uint64_t significand = 0;
};
Unpacked unpack(float value, int min_exponent) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t field = (bits >> 23) & 0xff, mantissa = bits & 0x7fffff;
  Unpacked u;
  u.negative = (bits >> 31) != 0;
  u.zero = (bits << 1) == 0;
  u.infinite = field == 255 && mantissa == 0;
  u.nan = field == 255 && mantissa != 0;
  const std::int32_t own = field == 0 ? -126 : static_cast<std::int32_t>(field) - 127;
  u.exponent = std::max(own, min_exponent);
  const int shift = u.exponent - own;
  u.significand = shift > 24 ? 0 : (field == 0 ? mantissa : mantissa | 0x800000) >> shift;
  return u;
}

// magnitude * 2^exponent to fp32: towards zero with so many mantissa bits, or rounded to odd at 23.
float to_float(bool negative, std::uint64_t magnitude, int exponent, const DotParameters& p) {
  const std::uint32_t sign = negative ? 0x80000000 : 0;
  if (magnitude == 0) return std::bit_cast<float>(std::uint32_t{0});
  const int top = 63 - std::countl_zero(magnitude);
  const int result_exponent = std::max(exponent + top, -126);
  const int last = result_exponent - p.mantissa_bits;  // exponent of the last bit kept
  std::uint64_t kept = magnitude;
  bool lost = false;
  if (last > exponent) {
    const int shift = last - exponent;
    lost = shift > 63 || (magnitude & ((std::uint64_t{1} << shift) - 1)) != 0;
    kept = shift > 63 ? 0 : magnitude >> shift;
  } else {
    kept = magnitude << (exponent - last);
  }
  if (p.round_to_odd && lost) kept |= 1;
  if (kept == 0) return std::bit_cast<float>(std::uint32_t{0});  // +0 of either sign's sum (measured)
  if (result_exponent > 127) return std::bit_cast<float>(sign | 0x7f800000);
  kept <<= 23 - p.mantissa_bits;
  const auto significand = static_cast<std::uint32_t>(kept);
  const std::uint32_t field = significand < 0x800000 ? 0 : static_cast<std::uint32_t>(result_exponent + 127);
  return std::bit_cast<float>(sign | field << 23 | (significand & 0x7fffff));
}

// The rule, term by term.
float exact_dot(const float* a, const float* b, int a_min, int b_min, float addend, const DotParameters& p) {
  struct Term {
    bool negative;
    std::int32_t exponent;
    std::uint64_t significand;  // 46 fraction bits
  };
  Term terms[kMaxTensorK + 1];
  int count = 0;
  bool nan = false, plus = false, minus = false;
  std::int32_t largest = std::numeric_limits<std::int32_t>::min();
  const auto add = [&](bool negative, std::int32_t exponent, std::uint64_t significand) {
    terms[count++] = {negative, exponent, significand};
    largest = std::max(largest, exponent);
  };
  for (int k = 0; k < p.k; ++k) {
    const Unpacked x = unpack(a[k], a_min), y = unpack(b[k], b_min);
    const bool negative = x.negative != y.negative;
    nan = nan || x.nan || y.nan || (x.infinite && y.zero) || (x.zero && y.infinite);
    if (x.infinite || y.infinite) {
      (negative ? minus : plus) = true;
    } else if (!x.zero && !y.zero) {
      add(negative, x.exponent + y.exponent, x.significand * y.significand);
    }
  }
  if (p.accumulate) {
    const Unpacked c = unpack(addend, p.accumulator_min_exponent);
    nan = nan || c.nan;
    if (c.infinite)
      (c.negative ? minus : plus) = true;
    else if (!c.zero)
      add(c.negative, c.exponent, c.significand << 23);
  }
  if (nan || (plus && minus)) return std::bit_cast<float>(kNan);
  if (plus || minus) return std::bit_cast<float>(minus ? 0xff800000U : 0x7f800000U);
  std::int64_t sum = 0;
  for (int i = 0; i < count; ++i) {
    const int shift = 46 - p.fraction_bits + (largest - terms[i].exponent);
    const auto cut = static_cast<std::int64_t>(shift > 63 ? 0 : terms[i].significand >> shift);
    sum += terms[i].negative ? -cut : cut;
  }
  return to_float(sum < 0, static_cast<std::uint64_t>(sum < 0 ? -sum : sum), largest - p.fraction_bits, p);
}

// Elements of a row in the order in which operations take them.
int part_count(const TensorRule& rule, int k) {
  return rule.composition == Composition::split_then_add ? 2 : k / rule.operation_k;
}
void order_by_parts(const TensorRule& rule, int k, int rows, const float* values, float* ordered) {
  if (rule.composition != Composition::split_then_add) {
    std::copy_n(values, rows * k, ordered);
    return;
  }
  for (int r = 0; r < rows; ++r)
    for (int i = 0, low = 0, high = k / 2; i < k; ++i)
      ordered[r * k + ((i & 2) == 0 ? low++ : high++)] = values[r * k + i];
}

// Operands of the split composition have been converted to f16.
int exponent_floor(const TensorRule& rule, OperandType type) {
  return rule.composition == Composition::split_then_add ? min_exponent(OperandType::f16)
                                                         : min_exponent(type);
}

DotParameters parameters_of(const TensorRule& rule, bool accumulate) {
  DotParameters p{};
  p.k = rule.operation_k;
  p.fraction_bits = rule.fraction_bits;
  p.accumulator_min_exponent = rule.accumulator == AccumulatorType::f16 ? -14 : -126;
  p.mantissa_bits = rule.rounding == SumRounding::toward_zero_13_bits ? 13 : 23;
  p.round_to_odd = rule.rounding == SumRounding::nearest_even;
  p.accumulate = accumulate;
  return p;
}

float canonical(float value) { return value != value ? std::bit_cast<float>(kNan) : value; }

// A, brought into shape once, against eight columns of B at a time.
class Multiplier {
 public:
  Multiplier(const TensorRule& rule, const void* a, int m, int k, const MultiplyOptions& options)
      : rule_(rule),
        options_(options),
        units_(m / 8),
        k_(k),
        parts_(rule.rounding == SumRounding::integer ? 1 : part_count(rule, k)),
        part_k_(k / parts_) {
    prepare(rule.a, options.negate_a, a, m, a_);
    std::int16_t exponents[kMaxTensorM * kMaxTensorK];
    for (int part = 0; part < parts_; ++part) {
      const float* values = a_ + part * m * part_k_;
      operand_exponents(values, m * part_k_, exponent_floor(rule, rule.a), exponents);
      fill_row_units(values, exponents, m, part_k_, rows_[part]);
    }
  }

  // Eight columns of B as [n][k] raw bits.
  void set_columns(const void* b) {
    prepare(rule_.b, options_.negate_b, b, 8, b_);
    std::int16_t exponents[8 * kMaxTensorK];
    for (int part = 0; part < parts_; ++part) {
      const float* values = b_ + part * 8 * part_k_;
      operand_exponents(values, 8 * part_k_, exponent_floor(rule_, rule_.b), exponents);
      fill_column_units(values, exponents, part_k_, columns_[part]);
    }
  }

  // d[2 * unit + c]: fp32 or s32 lanes of the even (c = 0) or odd columns.
  void multiply_words(std::uint32_t* const* d) {
    for (int c = 0; c < 2; ++c) {
      if (rule_.rounding == SumRounding::integer) {
        integer(c, d);
        continue;
      }
      float* lanes[kMaxUnits];
      for (int u = 0; u < units_; ++u) lanes[u] = reinterpret_cast<float*>(d[2 * u + c]);
      if (rule_.composition == Composition::chained) {
        for (int part = 0; part < parts_; ++part) run(part, c, options_.accumulate || part > 0, lanes);
      } else {
        alignas(64) float partial[kMaxUnits][32];
        split(c, partial);
        for (int u = 0; u < units_; ++u)
          for (int l = 0; l < 32; ++l)
            lanes[u][l] = canonical(options_.accumulate ? lanes[u][l] + partial[u][l] : partial[u][l]);
      }
    }
  }

  // d[unit]: 32 lanes of two halves.
  void multiply_halves(std::uint32_t* const* d) {
    std::uint16_t results[2][kMaxUnits][32];
    for (int c = 0; c < 2; ++c) {
      alignas(64) float values[kMaxUnits][32];
      float* lanes[kMaxUnits];
      for (int u = 0; u < units_; ++u) {
        lanes[u] = values[u];
        halves_to_floats(d[u], 16 * c, values[u]);
      }
      if (rule_.composition == Composition::chained) {
        for (int part = 0; part < parts_; ++part) {
          run(part, c, options_.accumulate || part > 0, lanes);
          if (part + 1 < parts_) through_half(values);
        }
      } else {
        alignas(64) float partial[kMaxUnits][32];
        split(c, partial);
        through_half(partial);
        // 24 bits are enough that rounding the fp32 sum again to fp16 rounds as once.
        for (int u = 0; u < units_; ++u)
          for (int l = 0; l < 32; ++l) {
            const float sum = values[u][l] + partial[u][l];
            values[u][l] = options_.accumulate ? sum : partial[u][l];
          }
      }
      for (int u = 0; u < units_; ++u) floats_to_halves(values[u], results[c][u]);
    }
    for (int u = 0; u < units_; ++u)
      for (int l = 0; l < 32; ++l) d[u][l] = results[0][u][l] | std::uint32_t{results[1][u][l]} << 16;
  }

  int units() const { return units_; }

 private:
  void prepare(OperandType type, bool negate, const void* raw, int rows, float* ordered) const {
    float values[kMaxTensorM * kMaxTensorK];
    if (parts_ == 1) return operand_values(type, raw, rows * k_, negate, ordered);
    operand_values(type, raw, rows * k_, negate, values);
    float moved[kMaxTensorM * kMaxTensorK];
    order_by_parts(rule_, k_, rows, values, moved);
    for (int part = 0; part < parts_; ++part)
      for (int r = 0; r < rows; ++r)
        std::copy_n(moved + r * k_ + part * part_k_, part_k_, ordered + (part * rows + r) * part_k_);
  }

  // One operation for all units, the lanes beyond the fast arithmetic by the slow one.
  void run(int part, int c, bool accumulate, float* const* lanes) const {
    const DotParameters p = parameters_of(rule_, accumulate);
    std::uint32_t bad[kMaxUnits];
    dot_units(options_.isa, rows_[part], units_, columns_[part][c], p, lanes, bad);
    for (int u = 0; u < units_; ++u)
      for (std::uint32_t rest = bad[u]; rest != 0; rest &= rest - 1) {
        const int l = std::countr_zero(rest);
        const float* a = a_ + (part * 8 * units_ + 8 * u + l / 4) * part_k_;
        const float* b = b_ + (part * 8 + 2 * (l % 4) + c) * part_k_;
        lanes[u][l] =
            exact_dot(a, b, exponent_floor(rule_, rule_.a), exponent_floor(rule_, rule_.b), lanes[u][l], p);
      }
  }

  void split(int c, float (*partial)[32]) const {
    float* lanes[kMaxUnits];
    for (int u = 0; u < units_; ++u) lanes[u] = partial[u];
    run(0, c, false, lanes);
    if (rule_.accumulator == AccumulatorType::f16) through_half(partial);
    run(1, c, true, lanes);
  }

  void through_half(float (*values)[32]) const {
    for (int u = 0; u < units_; ++u) {
      std::uint16_t halves[32];
      floats_to_halves(values[u], halves);
      std::uint32_t words[32];
      std::copy_n(halves, 32, words);
      halves_to_floats(words, 0, values[u]);
    }
  }

  void integer(int c, std::uint32_t* const* d) const {
    std::int32_t sums[kMaxUnits][32];
    integer_dot_units(options_.isa, rows_[0], units_, columns_[0][c], k_, sums);
    for (int u = 0; u < units_; ++u)
      for (int l = 0; l < 32; ++l) {
        const std::int64_t before = options_.accumulate ? static_cast<std::int32_t>(d[2 * u + c][l]) : 0;
        std::int64_t total = before + sums[u][l];
        if (options_.saturate)
          total = std::clamp<std::int64_t>(total, std::numeric_limits<std::int32_t>::min(),
                                           std::numeric_limits<std::int32_t>::max());
        d[2 * u + c][l] = static_cast<std::uint32_t>(total);
      }
  }

  const TensorRule& rule_;
  const MultiplyOptions& options_;
  int units_, k_, parts_, part_k_;
  float a_[kMaxTensorM * kMaxTensorK];  // [part][m][part_k]
  float b_[8 * kMaxTensorK];
  RowUnit rows_[kMaxParts][kMaxUnits];
  ColumnUnit columns_[kMaxParts][2];
};

}  // namespace

void fragment_multiply(const TensorRule& rule, const void* a, const void* b, std::uint32_t* const* d, int m,
                       int n, int k, const MultiplyOptions& options) {
  const StandardFloats floats;
  Multiplier multiplier(rule, a, m, k, options);
  const int column_bytes = 8 * k * operand_bits(rule.b) / 8;
  for (int j = 0; j < n / 8; ++j) {
    multiplier.set_columns(static_cast<const std::uint8_t*>(b) + j * column_bytes);
    std::uint32_t* lanes[2 * kMaxUnits];
    if (rule.accumulator == AccumulatorType::f16) {
      for (int i = 0; i < multiplier.units(); ++i) lanes[i] = d[i * (n / 8) + j];
      multiplier.multiply_halves(lanes);
    } else {
      for (int i = 0; i < 2 * multiplier.units(); ++i) lanes[i] = d[(i / 2 * (n / 8) + j) * 2 + i % 2];
      multiplier.multiply_words(lanes);
    }
  }
}

void tile_multiply(const TensorRule& rule, const void* a, const void* b, void* d, int m, int n, int k,
                   const MultiplyOptions& options) {
  const StandardFloats floats;
  Multiplier multiplier(rule, a, m, k, options);
  const int column_bytes = 8 * k * operand_bits(rule.b) / 8;
  const int element = accumulator_bytes(rule.accumulator);
  alignas(64) std::uint32_t words[2 * kMaxUnits][32];
  std::uint32_t* lanes[2 * kMaxUnits];
  for (int i = 0; i < 2 * kMaxUnits; ++i) lanes[i] = words[i];
  for (int j = 0; j < n / 8; ++j) {
    multiplier.set_columns(static_cast<const std::uint8_t*>(b) + j * column_bytes);
    auto* columns = static_cast<std::uint8_t*>(d) + 8 * j * element;
    // Two neighbours of a row are a pair of fp32 or s32, or one word of halves.
    for (int u = 0; u < multiplier.units(); ++u)
      for (int l = 0; l < 32; ++l) {
        const std::uint8_t* at = columns + ((8 * u + l / 4) * n + 2 * (l % 4)) * element;
        if (element == 2) {
          std::memcpy(&words[u][l], at, 4);
        } else {
          std::memcpy(&words[2 * u][l], at, 4);
          std::memcpy(&words[2 * u + 1][l], at + 4, 4);
        }
      }
    if (element == 2)
      multiplier.multiply_halves(lanes);
    else
      multiplier.multiply_words(lanes);
    for (int u = 0; u < multiplier.units(); ++u)
      for (int l = 0; l < 32; ++l) {
        std::uint8_t* at = columns + ((8 * u + l / 4) * n + 2 * (l % 4)) * element;
        if (element == 2) {
          std::memcpy(at, &words[u][l], 4);
        } else {
          std::memcpy(at, &words[2 * u][l], 4);
          std::memcpy(at + 4, &words[2 * u + 1][l], 4);
        }
      }
  }
}

std::uint32_t dot_product(const TensorRule& rule, const void* a, const void* b, std::uint32_t c, int k,
                          const MultiplyOptions& options) {
  const StandardFloats floats;
  if (rule.rounding == SumRounding::integer) {
    std::int64_t total = options.accumulate ? static_cast<std::int32_t>(c) : 0;
    for (int i = 0; i < k; ++i)
      total += static_cast<std::int64_t>(operand_value(rule.a, a, i)) *
               static_cast<std::int64_t>(operand_value(rule.b, b, i));
    if (options.saturate)
      total = std::clamp<std::int64_t>(total, std::numeric_limits<std::int32_t>::min(),
                                       std::numeric_limits<std::int32_t>::max());
    return static_cast<std::uint32_t>(total);
  }
  float raw_a[kMaxTensorK], raw_b[kMaxTensorK], values_a[kMaxTensorK], values_b[kMaxTensorK];
  operand_values(rule.a, a, k, options.negate_a, raw_a);
  operand_values(rule.b, b, k, options.negate_b, raw_b);
  order_by_parts(rule, k, 1, raw_a, values_a);
  order_by_parts(rule, k, 1, raw_b, values_b);
  const bool half = rule.accumulator == AccumulatorType::f16;
  const bool split = rule.composition == Composition::split_then_add;
  const float addend = half ? half_to_float(static_cast<std::uint16_t>(c)) : std::bit_cast<float>(c);
  float sum = split ? 0 : addend;
  const int parts = part_count(rule, k), part_k = k / parts;
  for (int part = 0; part < parts; ++part) {
    DotParameters p = parameters_of(rule, part > 0 || (options.accumulate && !split));
    p.k = part_k;
    sum = exact_dot(values_a + part * part_k, values_b + part * part_k, exponent_floor(rule, rule.a),
                    exponent_floor(rule, rule.b), sum, p);
    if (half) sum = half_to_float(float_to_half(sum));
  }
  if (split && options.accumulate) sum = canonical(sum + addend);
  return half ? float_to_half(sum) : std::bit_cast<std::uint32_t>(sum);
}

}  // namespace ptxbench::emulator
