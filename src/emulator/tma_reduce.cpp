// The element-wise reductions of asynchronous copies, as the memory system does them: sums of f16 and bf16
// rounded to nearest even with subnormal values kept, sums of f32 with subnormal values flushed (PTX
// ISA 9.7.9.25, 9.7.13.7).
#include "emulator/tma.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace ptxbench::emulator {
namespace {

float from_bf16(std::uint16_t v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16); }
std::uint16_t to_bf16(float f) {
  const auto v = std::bit_cast<std::uint32_t>(f);
  if ((v & 0x7fff'ffff) > 0x7f80'0000) return 0x7fff;
  return static_cast<std::uint16_t>((v + 0x7fff + (v >> 16 & 1)) >> 16);
}

float from_f16(std::uint16_t v) {
  const std::uint32_t sign = static_cast<std::uint32_t>(v & 0x8000) << 16, magnitude = v & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f80'0000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  const float f = static_cast<float>(magnitude) * 0x1p-24f;
  return sign != 0 ? -f : f;
}
std::uint16_t to_f16(float f) {
  const auto v = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>(v >> 16 & 0x8000);
  const std::uint32_t magnitude = v & 0x7fff'ffff;
  if (magnitude > 0x7f80'0000) return 0x7fff;
  if (magnitude >= 0x477f'f000) return sign | 0x7c00;  // from 65520 on
  if (magnitude < 0x3880'0000) {                       // below the least normal number: whole steps of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;  // exact, below 1024
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyintf(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

float flush(float f) {
  return (std::bit_cast<std::uint32_t>(f) & 0x7f80'0000) == 0
             ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(f) & 0x8000'0000)
             : f;
}
float add_f32(float a, float b) {
  const float r = a + b;
  return std::isnan(r) ? std::bit_cast<float>(0x7fff'ffffu) : r;
}
float add_f32_ftz(float a, float b) { return flush(add_f32(flush(a), flush(b))); }
double add_f64(double a, double b) {
  constexpr std::uint64_t kQuiet = std::uint64_t{1} << 51;
  for (const double nan : {b, a})
    if (std::isnan(nan)) return std::bit_cast<double>(std::bit_cast<std::uint64_t>(nan) | kQuiet);
  const double r = a + b;
  return std::isnan(r) ? std::bit_cast<double>(std::uint64_t{0xfff8} << 48) : r;
}

// Of two floating-point values of 16 bits: the number where one is NaN, -0 below +0.
template <float (*From)(std::uint16_t)>
std::uint16_t extreme(std::uint16_t a, std::uint16_t b, bool least) {
  const float x = From(a), y = From(b);
  if (std::isnan(x)) return std::isnan(y) ? 0x7fff : b;
  if (std::isnan(y)) return a;
  if (x == y) return (std::signbit(x) == least) ? a : b;
  return (x < y) == least ? a : b;
}

template <class T, class F>
void each(std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes, F&& f) {
  for (std::uint64_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, to + i, sizeof(T));
    std::memcpy(&b, from + i, sizeof(T));
    a = f(a, b);
    std::memcpy(to + i, &a, sizeof(T));
  }
}

template <class T>
void integers(ReduceOp op, std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes) {
  using U = std::make_unsigned_t<T>;
  switch (op) {
    case ReduceOp::add:
      return each<U>(to, from, bytes, [](U a, U b) { return static_cast<U>(a + b); });
    case ReduceOp::min:
      return each<T>(to, from, bytes, [](T a, T b) { return b < a ? b : a; });
    case ReduceOp::max:
      return each<T>(to, from, bytes, [](T a, T b) { return b > a ? b : a; });
    case ReduceOp::inc:
      return each<U>(to, from, bytes, [](U a, U b) { return a >= b ? U{0} : static_cast<U>(a + 1); });
    case ReduceOp::dec:
      return each<U>(to, from, bytes, [](U a, U b) { return a == 0 || a > b ? b : static_cast<U>(a - 1); });
    case ReduceOp::and_:
      return each<U>(to, from, bytes, [](U a, U b) { return static_cast<U>(a & b); });
    case ReduceOp::or_:
      return each<U>(to, from, bytes, [](U a, U b) { return static_cast<U>(a | b); });
    case ReduceOp::xor_:
      return each<U>(to, from, bytes, [](U a, U b) { return static_cast<U>(a ^ b); });
  }
}

template <float (*From)(std::uint16_t), std::uint16_t (*To)(float)>
void halves(ReduceOp op, std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes) {
  using U = std::uint16_t;
  // The sum in f32 has more than twice the bits: rounding it again gives the correctly rounded sum.
  if (op == ReduceOp::add) return each<U>(to, from, bytes, [](U a, U b) { return To(From(a) + From(b)); });
  return each<U>(to, from, bytes, [op](U a, U b) { return extreme<From>(a, b, op == ReduceOp::min); });
}

}  // namespace

std::string_view reduce_name(ReduceOp op) {
  constexpr std::string_view kNames[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return kNames[static_cast<unsigned>(op)];
}

unsigned reduce_bytes(ReduceType type) {
  switch (type) {
    case ReduceType::f16:
    case ReduceType::bf16:
      return 2;
    case ReduceType::u32:
    case ReduceType::s32:
    case ReduceType::f32:
    case ReduceType::f32_ftz:
      return 4;
    default:
      return 8;
  }
}

bool reduce_allowed(ReduceOp op, ReduceType type, bool tensor) {
  const bool half = type == ReduceType::f16 || type == ReduceType::bf16;
  const bool real = half || type == ReduceType::f32 || type == ReduceType::f64 || type == ReduceType::f32_ftz;
  if (tensor && type == ReduceType::s64) return op == ReduceOp::min || op == ReduceOp::max;
  switch (op) {
    case ReduceOp::add:
      return type != ReduceType::s64;
    case ReduceOp::min:
    case ReduceOp::max:
      return half || !real;
    case ReduceOp::inc:
    case ReduceOp::dec:
      return type == ReduceType::u32;
    default:
      return !real;
  }
}

void reduce(ReduceOp op, ReduceType type, std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes) {
  switch (type) {
    case ReduceType::u32:
      return integers<std::uint32_t>(op, to, from, bytes);
    case ReduceType::s32:
      return integers<std::int32_t>(op, to, from, bytes);
    case ReduceType::u64:
      return integers<std::uint64_t>(op, to, from, bytes);
    case ReduceType::s64:
      return integers<std::int64_t>(op, to, from, bytes);
    case ReduceType::f16:
      return halves<from_f16, to_f16>(op, to, from, bytes);
    case ReduceType::bf16:
      return halves<from_bf16, to_bf16>(op, to, from, bytes);
    case ReduceType::f32:
      return each<float>(to, from, bytes, add_f32);
    case ReduceType::f32_ftz:
      return each<float>(to, from, bytes, add_f32_ftz);
    case ReduceType::f64:
      return each<double>(to, from, bytes, add_f64);
  }
}

}  // namespace ptxbench::emulator
