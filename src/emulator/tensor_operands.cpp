#include "emulator/tensor_operands.hpp"

#include "emulator/clones.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ptxbench::emulator {

namespace {

// f16 to f32 without a branch, so that loops of it become vectors.
inline std::uint32_t half_bits_to_float_bits(std::uint32_t half) {
  const std::uint32_t sign = (half & 0x8000) << 16;
  const std::uint32_t shifted = (half & 0x7fff) << 13;
  const std::uint32_t field = shifted & (0x7c00 << 13);
  const std::uint32_t normal = shifted + (112U << 23);
  const std::uint32_t special = shifted + (224U << 23);
  const float difference = std::bit_cast<float>(shifted + (113U << 23)) - std::bit_cast<float>(113U << 23);
  const auto subnormal = std::bit_cast<std::uint32_t>(difference);
  const std::uint32_t magnitude = field == 0 ? subnormal : field == (0x7c00 << 13) ? special : normal;
  return sign | magnitude;
}

// f32 to f16 to nearest even, without a branch. As results of tensor cores: what vanishes is +0, never -0 (measured).
inline std::uint32_t float_bits_to_half_bits(std::uint32_t bits) {
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  // Normal results: round the 13 bits that go, carry into the exponent and the infinity.
  const std::uint32_t rounded = magnitude + 0xfff + ((magnitude >> 13) & 1);
  std::uint32_t normal = (rounded - (112U << 23)) >> 13;
  normal = rounded >= (143U << 23) ? 0x7c00 : normal;
  // Subnormal results: adding 0.5 leaves the mantissa in units of 2^-24, rounded to nearest even.
  const float moved = std::bit_cast<float>(magnitude < (113U << 23) ? magnitude : 0) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(moved) - (126U << 23);
  const std::uint32_t result = magnitude < (113U << 23) ? subnormal : normal;
  return magnitude > 0x7f800000 ? 0x7fff : result == 0 && magnitude != 0 ? 0 : (sign | result);
}

float fp8_value(OperandType type, unsigned bits) {
  const int mantissa_bits = type == OperandType::e4m3 ? 3 : 2, bias = type == OperandType::e4m3 ? 7 : 15;
  const unsigned magnitude = bits & 0x7f;
  const unsigned field = magnitude >> mantissa_bits, mantissa = magnitude & ((1U << mantissa_bits) - 1);
  const std::uint32_t sign = (bits & 0x80) << 24;
  if (type == OperandType::e4m3 ? magnitude == 0x7f : magnitude > 0x7c)
    return std::bit_cast<float>(sign | 0x7fc00000);
  if (type == OperandType::e5m2 && magnitude == 0x7c) return std::bit_cast<float>(sign | 0x7f800000);
  if (field != 0)
    return std::bit_cast<float>(sign |
                                static_cast<std::uint32_t>(static_cast<int>(field) - bias + 127) << 23 |
                                mantissa << (23 - mantissa_bits));
  const float unit = std::bit_cast<float>(static_cast<std::uint32_t>(1 - bias - mantissa_bits + 127) << 23);
  const float value = static_cast<float>(mantissa) * unit;
  return (bits & 0x80) != 0 ? -value : value;
}

std::array<float, 256> byte_table(OperandType type) {
  std::array<float, 256> table{};
  for (unsigned i = 0; i < 256; ++i)
    table[i] = type == OperandType::s8   ? static_cast<float>(static_cast<std::int8_t>(i))
               : type == OperandType::u8 ? static_cast<float>(i)
                                         : fp8_value(type, i);
  return table;
}

const std::array<float, 256>& bytes_of(OperandType type) {
  static const std::array<float, 256> e4m3 = byte_table(OperandType::e4m3),
                                      e5m2 = byte_table(OperandType::e5m2), s8 = byte_table(OperandType::s8),
                                      u8 = byte_table(OperandType::u8);
  return type == OperandType::e4m3   ? e4m3
         : type == OperandType::e5m2 ? e5m2
         : type == OperandType::s8   ? s8
                                     : u8;
}

PTXBENCH_CLONES void bf16_values(const std::uint16_t* raw, int count, std::uint32_t flip,
                                 std::uint32_t* bits) {
  for (int i = 0; i < count; ++i) bits[i] = (std::uint32_t{raw[i]} << 16) ^ flip;
}
PTXBENCH_CLONES void f16_values(const std::uint16_t* raw, int count, std::uint32_t flip,
                                std::uint32_t* bits) {
  for (int i = 0; i < count; ++i) bits[i] = half_bits_to_float_bits(raw[i]) ^ flip;
}
PTXBENCH_CLONES void tf32_values(const std::uint32_t* raw, int count, std::uint32_t flip,
                                 std::uint32_t* bits) {
  for (int i = 0; i < count; ++i) bits[i] = (raw[i] & 0xffffe000) ^ flip;
}
PTXBENCH_CLONES void exponents_of(const std::uint32_t* bits, int count, std::int32_t lowest,
                                  std::int16_t* exponents) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t magnitude = bits[i] & 0x7fffffff;
    const std::int32_t own = static_cast<std::int32_t>(magnitude >> 23) - 127;
    std::int32_t e = own > lowest ? own : lowest;
    e = magnitude >= 0x7f800000 ? kSpecialExponent : e;
    exponents[i] = static_cast<std::int16_t>(magnitude == 0 ? kZeroExponent : e);
  }
}
PTXBENCH_CLONES void widen_halves(const std::uint32_t* words, int shift, std::uint32_t* bits) {
  for (int i = 0; i < 32; ++i) bits[i] = half_bits_to_float_bits((words[i] >> shift) & 0xffff);
}
PTXBENCH_CLONES void narrow_floats(const std::uint32_t* bits, std::uint16_t* halves) {
  for (int i = 0; i < 32; ++i) halves[i] = static_cast<std::uint16_t>(float_bits_to_half_bits(bits[i]));
}

}  // namespace

void operand_values(OperandType type, const void* raw, int count, bool negate, float* values) {
  const std::uint32_t flip = negate ? 0x80000000 : 0;
  auto* bits = reinterpret_cast<std::uint32_t*>(values);
  switch (type) {
    case OperandType::bf16:
      return bf16_values(static_cast<const std::uint16_t*>(raw), count, flip, bits);
    case OperandType::f16:
      return f16_values(static_cast<const std::uint16_t*>(raw), count, flip, bits);
    case OperandType::tf32:
      return tf32_values(static_cast<const std::uint32_t*>(raw), count, flip, bits);
    default:
      break;
  }
  const auto& table = bytes_of(type);
  const auto* bytes = static_cast<const std::uint8_t*>(raw);
  for (int i = 0; i < count; ++i) values[i] = table[bytes[i]];
  if (negate)
    for (int i = 0; i < count; ++i) values[i] = -values[i];
}

float operand_value(OperandType type, const void* raw, int index) {
  const auto* bytes = static_cast<const std::uint8_t*>(raw) + index * (operand_bits(type) / 8);
  float value = 0;
  operand_values(type, bytes, 1, false, &value);
  return value;
}

void operand_exponents(const float* values, int count, int min_exponent, std::int16_t* exponents) {
  exponents_of(reinterpret_cast<const std::uint32_t*>(values), count, min_exponent, exponents);
}

#if defined(__SSE2__)

void fill_row_units(const float* values, const std::int16_t* exponents, int m, int k, RowUnit* units) {
  for (int u = 0; u < m / 8; ++u) {
    RowUnit& unit = units[u];
    for (int r = 0; r < 8; ++r) {
      const float* v = values + (8 * u + r) * k;
      const std::int16_t* e = exponents + (8 * u + r) * k;
      for (int i = 0; i < k; i += 4) {
        const __m128 four = _mm_loadu_ps(v + i);
        _mm_store_ps(unit.value[i] + 4 * r, _mm_shuffle_ps(four, four, 0x00));
        _mm_store_ps(unit.value[i + 1] + 4 * r, _mm_shuffle_ps(four, four, 0x55));
        _mm_store_ps(unit.value[i + 2] + 4 * r, _mm_shuffle_ps(four, four, 0xaa));
        _mm_store_ps(unit.value[i + 3] + 4 * r, _mm_shuffle_ps(four, four, 0xff));
        __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(e + i));
        pairs = _mm_unpacklo_epi16(pairs, pairs);
        const __m128i low = _mm_unpacklo_epi32(pairs, pairs), high = _mm_unpackhi_epi32(pairs, pairs);
        const auto store = [&](int at, __m128i two) {
          _mm_storel_epi64(reinterpret_cast<__m128i*>(unit.exponent[at] + 4 * r), two);
          _mm_storel_epi64(reinterpret_cast<__m128i*>(unit.exponent[at + 1] + 4 * r),
                           _mm_unpackhi_epi64(two, two));
        };
        store(i, low);
        store(i + 2, high);
      }
    }
  }
}

void fill_column_units(const float* values, const std::int16_t* exponents, int k, ColumnUnit* units) {
  for (int c = 0; c < 2; ++c) {
    ColumnUnit& unit = units[c];
    const float* v = values + c * k;
    const std::int16_t* e = exponents + c * k;
    const auto load = [](const std::int16_t* at) {
      return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
    };
    for (int i = 0; i < k; i += 4) {
      __m128 q0 = _mm_loadu_ps(v + i), q1 = _mm_loadu_ps(v + 2 * k + i);
      __m128 q2 = _mm_loadu_ps(v + 4 * k + i), q3 = _mm_loadu_ps(v + 6 * k + i);
      _MM_TRANSPOSE4_PS(q0, q1, q2, q3);
      _mm_store_ps(unit.value[i], q0);
      _mm_store_ps(unit.value[i + 1], q1);
      _mm_store_ps(unit.value[i + 2], q2);
      _mm_store_ps(unit.value[i + 3], q3);
      const __m128i low = _mm_unpacklo_epi16(load(e + i), load(e + 2 * k + i));
      const __m128i high = _mm_unpacklo_epi16(load(e + 4 * k + i), load(e + 6 * k + i));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(unit.exponent[i]), _mm_unpacklo_epi32(low, high));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(unit.exponent[i + 2]), _mm_unpackhi_epi32(low, high));
    }
  }
}

#else

void fill_row_units(const float* values, const std::int16_t* exponents, int m, int k, RowUnit* units) {
  for (int u = 0; u < m / 8; ++u) {
    RowUnit& unit = units[u];
    for (int r = 0; r < 8; ++r) {
      const float* v = values + (8 * u + r) * k;
      const std::int16_t* e = exponents + (8 * u + r) * k;
      for (int i = 0; i < k; ++i)
        for (int q = 0; q < 4; ++q) {
          unit.value[i][4 * r + q] = v[i];
          unit.exponent[i][4 * r + q] = e[i];
        }
    }
  }
}

void fill_column_units(const float* values, const std::int16_t* exponents, int k, ColumnUnit* units) {
  for (int c = 0; c < 2; ++c)
    for (int q = 0; q < 4; ++q) {
      const float* v = values + (2 * q + c) * k;
      const std::int16_t* e = exponents + (2 * q + c) * k;
      for (int i = 0; i < k; ++i) {
        units[c].value[i][q] = v[i];
        units[c].exponent[i][q] = e[i];
      }
    }
}

#endif

float half_to_float(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(half_bits_to_float_bits(bits));
}
std::uint16_t float_to_half(float value) noexcept {
  return static_cast<std::uint16_t>(float_bits_to_half_bits(std::bit_cast<std::uint32_t>(value)));
}
void halves_to_floats(const std::uint32_t* words, int shift, float* values) {
  widen_halves(words, shift, reinterpret_cast<std::uint32_t*>(values));
}
void floats_to_halves(const float* values, std::uint16_t* halves) {
  narrow_floats(reinterpret_cast<const std::uint32_t*>(values), halves);
}

}  // namespace ptxbench::emulator
