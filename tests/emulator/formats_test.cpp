// Conversions against rounding by the definition (reference_rounding.hpp), the host's FPU and long double.
#include "emulator/formats.hpp"

#include "emulator/convert_lanes.hpp"
#include "fixtures/arithmetic/operands.hpp"
#include "reference_rounding.hpp"
#include "support/catch.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace {

using namespace ptxbench::emulator;
using reference::HostRounding;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr Rounding kDirections[] = {Rounding::nearest_even, Rounding::zero, Rounding::down, Rounding::up};
constexpr Rounding kAll[] = {Rounding::nearest_even, Rounding::zero, Rounding::down, Rounding::up,
                             Rounding::nearest_away};

struct Small {
  FloatFormat format;
  const reference::SmallFormat& values;
  u32 sign, nan;
  bool has_infinity;
};
std::array<Small, 4> small_formats() {
  return {{{FloatFormat::f16, reference::f16(), 0x8000, 0x7fff, true},
           {FloatFormat::bf16, reference::bf16(), 0x8000, 0x7fff, true},
           {FloatFormat::e4m3, reference::e4m3(), 0x80, 0x7f, false},
           {FloatFormat::e5m2, reference::e5m2(), 0x80, 0x7f, true}}};
}

// What the lane forms must agree with, by the general conversion.
u32 f8x2_of_f32(FloatFormat f8, u32 a, u32 b, bool relu) {
  const ConvertMode mode{.relu = relu};
  return static_cast<u32>(convert_float(f8, FloatFormat::f32, a, mode) << 8 |
                          convert_float(f8, FloatFormat::f32, b, mode));
}
u32 f8x2_of_f16x2(FloatFormat f8, u32 a, bool relu) {
  const ConvertMode mode{.relu = relu};
  return static_cast<u32>(convert_float(f8, FloatFormat::f16, a >> 16, mode) << 8 |
                          convert_float(f8, FloatFormat::f16, a & 0xffff, mode));
}
u32 f16x2_of_f8x2(FloatFormat f8, u32 a, bool relu) {
  const ConvertMode mode{.relu = relu};
  return static_cast<u32>(convert_float(FloatFormat::f16, f8, a >> 8 & 0xff, mode) << 16 |
                          convert_float(FloatFormat::f16, f8, a & 0xff, mode));
}

// Lane forms of one value; every lane must give the same.
template <class F>
u32 of_lanes(F&& convert, u32 a, u32 b = 0) {
  std::array<u32, 32> x, y, d{};
  x.fill(a), y.fill(b);
  convert(d.data(), x.data(), y.data());
  for (const u32 v : d) REQUIRE(v == d[0]);
  return d[0];
}
u32 lanes_tf32(u32 a, ConvertMode mode) {
  return of_lanes([&](u32* d, const u32* x, const u32*) { tf32_from_f32(d, x, mode); }, a);
}

u64 bits_of(double v) { return std::bit_cast<u64>(v); }
u32 bits_of(float v) { return std::bit_cast<u32>(v); }

}  // namespace

TEST_CASE("every number of a small format widens to its value") {
  for (const Small& small : small_formats()) {
    for (u32 bits = 0; bits < small.sign; ++bits) {
      for (const u32 sign : {u32{0}, small.sign}) {
        const double widened = std::bit_cast<double>(widen_to_f64(small.format, bits | sign));
        INFO(static_cast<int>(small.format) << " " << (bits | sign));
        if (bits < small.values.end()) {
          REQUIRE(widened == (sign != 0 ? -1 : 1) * small.values.value(bits));
          REQUIRE(std::signbit(widened) == (sign != 0));
        } else if (small.has_infinity && bits == small.values.end()) {
          REQUIRE(widened == (sign != 0 ? -INFINITY : INFINITY));
        } else {
          REQUIRE(std::isnan(widened));
        }
      }
    }
  }
}

TEST_CASE("a small format's numbers, and those halfway between and beside them, round by the definition") {
  for (const Small& small : small_formats()) {
    const bool f8 = small.sign == 0x80;
    for (const Rounding rounding : kAll) {
      for (u32 bits = 0; bits < small.values.end(); ++bits) {
        const double low = small.values.value(bits), middle = low + (small.values.value(bits + 1) - low) / 2;
        for (double v :
             {low, std::nextafter(low, INFINITY), std::nextafter(middle, 0.0), middle,
              std::nextafter(middle, INFINITY), std::nextafter(small.values.value(bits + 1), 0.0)}) {
          for (const double x : {v, -v}) {
            u32 expected = small.values.round(x, 0, rounding);
            if (f8 && expected >= small.values.end())
              expected = small.values.end() - 1;  // f8 always saturates
            if (std::signbit(x)) expected |= small.sign;
            const u64 out = convert_float(small.format, FloatFormat::f64, bits_of(x), {.rounding = rounding});
            if (out != expected) {
              FAIL(x << " to format " << static_cast<int>(small.format) << ", rounding "
                     << static_cast<int>(rounding) << ": " << out << ", not " << expected);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("f64 to f32 is the host's conversion in every mode") {
  for (const Rounding rounding : kDirections) {
    for (u32 i = 0; i < 200000; ++i) {
      const u64 bits = probe::operands(probe::Kind::f64, i).a;
      volatile double v = std::bit_cast<double>(bits);
      // Half of them into f32's range.
      if ((i & 1) != 0)
        v = std::ldexp(v, -static_cast<int>(bits >> 52 & 2047) + 1023 - 160 + static_cast<int>(i % 320));
      const double input = v;
      volatile float host = 0;
      {
        const HostRounding mode(rounding);
        host = static_cast<float>(v);
      }
      const float h = host;
      if (h != h) continue;
      const u32 expected = bits_of(h);
      const u64 out =
          convert_float(FloatFormat::f32, FloatFormat::f64, bits_of(input), {.rounding = rounding});
      if (out != expected)
        FAIL(input << " mode " << static_cast<int>(rounding) << ": " << out << " " << expected);
    }
  }
}

TEST_CASE("lane conversions of halves are the general conversion") {
  std::array<u32, 32> a, b, d;
  for (u32 i = 0; i < 1u << 17; i += 32) {
    for (u32 lane = 0; lane < 32; ++lane) {
      const probe::Operands o = probe::operands(probe::Kind::f32, i + lane);
      a[lane] = static_cast<u32>(o.a), b[lane] = static_cast<u32>(o.b);
    }
    f16x2_from_f32(d.data(), a.data(), b.data());
    for (u32 lane = 0; lane < 32; ++lane)
      REQUIRE(d[lane] == pair_from_f32(FloatFormat::f16, a[lane], b[lane], {}));
    bf16x2_from_f32(d.data(), a.data(), b.data());
    for (u32 lane = 0; lane < 32; ++lane)
      REQUIRE(d[lane] == pair_from_f32(FloatFormat::bf16, a[lane], b[lane], {}));
    f16_from_f32(d.data(), a.data());
    for (u32 lane = 0; lane < 32; ++lane) REQUIRE(d[lane] == f16_from_f32(a[lane]));
    bf16_from_f32(d.data(), a.data());
    for (u32 lane = 0; lane < 32; ++lane) REQUIRE(d[lane] == bf16_from_f32(a[lane]));
  }
  for (u32 h = 0; h < 0x10000; h += 32) {
    for (u32 lane = 0; lane < 32; ++lane) a[lane] = h + lane;
    f32_from_f16(d.data(), a.data());
    for (u32 lane = 0; lane < 32; ++lane) {
      REQUIRE(d[lane] == convert_float(FloatFormat::f32, FloatFormat::f16, a[lane]));
      REQUIRE(f16_from_f32(d[lane]) == ((a[lane] & 0x7fff) > 0x7c00 ? 0x7fff : a[lane]));  // there and back
    }
    f32_from_bf16(d.data(), a.data());
    for (u32 lane = 0; lane < 32; ++lane)
      REQUIRE(d[lane] == convert_float(FloatFormat::f32, FloatFormat::bf16, a[lane]));
  }
}

TEST_CASE("conversions of all lanes at once are the general ones") {
  constexpr auto kF32 = FloatFormat::f32;
  std::array<u32, 32> a, b, d;
  std::array<u64, 32> wide, out;
  const auto same = [&](auto&& expected) {
    for (u32 lane = 0; lane < 32; ++lane)
      if (d[lane] != expected(lane))
        FAIL(std::hex << a[lane] << " " << b[lane] << " " << wide[lane] << ": " << d[lane] << ", not "
                      << expected(lane));
  };
  for (u32 i = 0; i < 1u << 16; i += 32) {
    for (u32 lane = 0; lane < 32; ++lane) {
      const probe::Operands o = probe::operands(probe::Kind::f32, i + lane);
      a[lane] = static_cast<u32>(o.a), b[lane] = static_cast<u32>(o.b);
      if (i % 64 == 0)
        a[lane] = (a[lane] & 0x80ffffff) | (0x3a + (a[lane] >> 24) % 20) << 24;  // not far from 1
      wide[lane] = probe::operands(probe::Kind::f64, i + lane).a;
      if (i % 64 == 0)
        wide[lane] = widen_to_f64(kF32, b[lane]) ^ (u64{a[lane]} & 0x3fffffff);  // f32s and beside them
    }
    for (const bool flag : {false, true}) {
      for (const Rounding r : {Rounding::nearest_even, Rounding::zero, Rounding::down, Rounding::up}) {
        for (const IntegerFormat to :
             {IntegerFormat{8, true}, {8, false}, {16, true}, {16, false}, {32, true}}) {
          const auto top = std::int64_t{1} << (to.bits - 1);
          s32_from_f32(d.data(), a.data(), r, flag, static_cast<std::int32_t>(to.is_signed ? -top : 0),
                       static_cast<std::int32_t>(to.is_signed ? top - 1 : 2 * top - 1));
          same([&](u32 lane) { return static_cast<u32>(integer_from_float(to, kF32, a[lane], r, flag)); });
        }
        u32_from_f32(d.data(), a.data(), r, flag);
        same([&](u32 lane) {
          return static_cast<u32>(integer_from_float({32, false}, kF32, a[lane], r, flag));
        });
        integral_f32(d.data(), a.data(), r, flag);
        same([&](u32 lane) { return static_cast<u32>(round_to_integral(kF32, a[lane], r, flag)); });
      }
      f64_from_f32(out.data(), a.data(), flag);
      for (u32 lane = 0; lane < 32; ++lane)
        REQUIRE(out[lane] == convert_float(FloatFormat::f64, kF32, a[lane], {.ftz = flag}));
      for (const bool relu : {false, true}) {
        for (const Rounding r : {Rounding::nearest_away, Rounding::nearest_even, Rounding::zero}) {
          const ConvertMode mode{.rounding = r, .satfinite = flag, .relu = relu};
          tf32_from_f32(d.data(), a.data(), mode);
          same([&](u32 lane) {
            return static_cast<u32>(convert_float(FloatFormat::tf32, kF32, a[lane], mode));
          });
        }
        for (const FloatFormat half : {FloatFormat::f16, FloatFormat::bf16}) {
          pairs_from_f32(half, d.data(), a.data(), b.data(), relu, flag);
          same([&](u32 lane) {
            return pair_from_f32(half, a[lane], b[lane], {.satfinite = flag, .relu = relu});
          });
        }
        for (const FloatFormat f8 : {FloatFormat::e4m3, FloatFormat::e5m2}) {
          f8x2_from_f32(f8, d.data(), a.data(), b.data(), relu);
          same([&](u32 lane) { return f8x2_of_f32(f8, a[lane], b[lane], relu); });
          f8x2_from_f16x2(f8, d.data(), a.data(), relu);
          same([&](u32 lane) { return f8x2_of_f16x2(f8, a[lane], relu); });
          f16x2_from_f8x2(f8, d.data(), b.data(), relu);
          same([&](u32 lane) { return f16x2_of_f8x2(f8, b[lane], relu); });
        }
      }
    }
    f32_from_f64(d.data(), wide.data());
    same([&](u32 lane) { return static_cast<u32>(convert_float(kF32, FloatFormat::f64, wide[lane])); });
  }
  for (u32 h = 0; h < 0x10000; h += 32) {  // every half and every pair of bytes
    for (u32 lane = 0; lane < 32; ++lane) a[lane] = b[lane] = h + lane;
    for (const FloatFormat f8 : {FloatFormat::e4m3, FloatFormat::e5m2}) {
      f8x2_from_f16x2(f8, d.data(), a.data(), false);
      same([&](u32 lane) { return f8x2_of_f16x2(f8, a[lane], false); });
      f16x2_from_f8x2(f8, d.data(), a.data(), false);
      same([&](u32 lane) { return f16x2_of_f8x2(f8, a[lane], false); });
    }
  }
}

TEST_CASE("rounding to integers is long double's, clamped") {
  for (const FloatFormat format : {FloatFormat::f16, FloatFormat::bf16, FloatFormat::f32, FloatFormat::f64}) {
    const probe::Kind kind = format == FloatFormat::f16    ? probe::Kind::f16
                             : format == FloatFormat::bf16 ? probe::Kind::bf16
                             : format == FloatFormat::f32  ? probe::Kind::f32
                                                           : probe::Kind::f64;
    for (const Rounding rounding : kDirections) {
      for (u32 i = 0; i < 65536; ++i) {
        u64 bits = probe::operands(kind, i).a;
        if (format == FloatFormat::f16 || format == FloatFormat::bf16) bits &= 0xffff;
        const double v = std::bit_cast<double>(widen_to_f64(format, bits));
        if (std::isnan(v)) continue;
        volatile long double wide = v;
        const long double x = wide;
        const long double integral = rounding == Rounding::zero   ? std::trunc(x)
                                     : rounding == Rounding::down ? std::floor(x)
                                     : rounding == Rounding::up   ? std::ceil(x)
                                                                  : std::nearbyint(x);
        const u64 rounded = round_to_integral(format, bits, rounding);
        REQUIRE(std::bit_cast<double>(widen_to_f64(format, rounded)) == static_cast<double>(integral));
        REQUIRE(std::signbit(std::bit_cast<double>(widen_to_f64(format, rounded))) == std::signbit(v));
        for (const unsigned width : {8u, 16u, 32u, 64u}) {
          const long double end = std::ldexp(1.0L, static_cast<int>(width));
          u64 expected = integral <= 0     ? 0
                         : integral >= end ? ~u64{0} >> (64 - width)
                                           : static_cast<u64>(integral);
          REQUIRE(integer_from_float({width, false}, format, bits, rounding) == expected);
          const auto top = static_cast<std::int64_t>(~u64{0} >> (65 - width));
          expected = static_cast<u64>(integral >= end / 2    ? top
                                      : integral <= -end / 2 ? -top - 1
                                                             : static_cast<std::int64_t>(integral));
          REQUIRE(integer_from_float({width, true}, format, bits, rounding) == expected);
        }
      }
    }
  }
}

TEST_CASE("NaN becomes an integer as PTX says") {
  for (const unsigned width : {8u, 16u, 32u}) {
    CHECK(integer_from_float({width, true}, FloatFormat::f32, 0x7fc00000, Rounding::zero) == 0);
    CHECK(integer_from_float({width, false}, FloatFormat::f16, 0xfe00, Rounding::zero) == 0);
  }
  CHECK(integer_from_float({64, true}, FloatFormat::f32, 0x7fc00000, Rounding::zero) == 0x8000000000000000);
  CHECK(integer_from_float({64, false}, FloatFormat::f32, 0x7fc00000, Rounding::zero) == 0x8000000000000000);
  CHECK(integer_from_float({32, true}, FloatFormat::f64, 0x7ff8000000000000, Rounding::zero) ==
        0xffffffff80000000);
  CHECK(integer_from_float({32, false}, FloatFormat::f64, 0x7ff8000000000000, Rounding::zero) == 0x80000000);
}

TEST_CASE("integers become floats as on the host, in every mode") {
  for (const Rounding rounding : kDirections) {
    for (u32 i = 0; i < 65536; ++i) {
      const u64 bits = probe::operands(probe::Kind::integer, i).a;
      volatile std::int64_t s = static_cast<std::int64_t>(bits);
      volatile u64 u = bits;
      volatile float sf = 0, uf = 0;
      volatile double sd = 0, ud = 0;
      {
        const HostRounding mode(rounding);
        sf = static_cast<float>(s);
        sd = static_cast<double>(s);
        // The host's own conversion of large unsigned numbers takes two steps; long double holds them all.
        volatile long double wide = static_cast<long double>(u);
        uf = static_cast<float>(wide);
        ud = static_cast<double>(wide);
      }
      const float a = sf, b = uf;
      const double c = sd, d = ud;
      REQUIRE(float_from_integer(FloatFormat::f32, {64, true}, bits, rounding) == bits_of(a));
      REQUIRE(float_from_integer(FloatFormat::f64, {64, true}, bits, rounding) == bits_of(c));
      REQUIRE(float_from_integer(FloatFormat::f32, {64, false}, bits, rounding) == bits_of(b));
      REQUIRE(float_from_integer(FloatFormat::f64, {64, false}, bits, rounding) == bits_of(d));
      const long double v = static_cast<long double>(static_cast<std::int64_t>(bits));
      const u32 sign = v < 0 ? 0x8000 : 0;
      REQUIRE(float_from_integer(FloatFormat::f16, {64, true}, bits, rounding) ==
              (reference::f16().round(v, 0, rounding) | sign));
      REQUIRE(float_from_integer(FloatFormat::bf16, {64, true}, bits, rounding) ==
              (reference::bf16().round(v, 0, rounding) | sign));
      const auto narrow = static_cast<std::int16_t>(bits);
      REQUIRE(float_from_integer(FloatFormat::f32, {16, true}, bits, rounding) ==
              bits_of(static_cast<float>(narrow)));
    }
  }
}

TEST_CASE("conversions between integers") {
  CHECK(integer_from_integer({8, true}, {32, true}, 300) == 44);
  CHECK(integer_from_integer({8, true}, {32, true}, 200) == static_cast<u64>(-56));
  CHECK(integer_from_integer({8, true}, {32, true}, 200, true) == 127);
  CHECK(integer_from_integer({8, false}, {32, true}, 0xffffff00, true) == 0);
  CHECK(integer_from_integer({64, false}, {32, true}, 0xffffffff) == ~u64{0});
  CHECK(integer_from_integer({64, true}, {32, false}, 0xffffffff) == 0xffffffff);
  CHECK(integer_from_integer({16, true}, {32, false}, 0xffffffff, true) == 0x7fff);
  CHECK(integer_from_integer({32, false}, {64, true}, u64{1} << 40, true) == 0xffffffff);
  CHECK(integer_from_integer({32, true}, {64, true}, u64{0} - (u64{1} << 40), true) == 0xffffffff80000000);
  CHECK(pack_saturated({16, true}, {32, true}, 0x00012345, 0xfffffffe) == 0x7ffffffe);
  CHECK(pack_saturated({8, false}, {32, true}, 300, 0xffffffff, 0x1234abcd) == 0xabcdff00);
  CHECK(pack_saturated({4, true}, {32, true}, 7, static_cast<u32>(-9), 0x123456) == 0x12345678);
}

TEST_CASE("modifiers of conversions") {
  const auto to_f16 = [](float v, ConvertMode mode) {
    return convert_float(FloatFormat::f16, FloatFormat::f32, bits_of(v), mode);
  };
  CHECK(to_f16(1e6f, {}) == 0x7c00);
  CHECK(to_f16(1e6f, {.satfinite = true}) == 0x7bff);
  CHECK(to_f16(-INFINITY, {.satfinite = true}) == 0xfbff);
  CHECK(to_f16(65519.0f, {}) == 0x7bff);
  CHECK(to_f16(65520.0f, {}) == 0x7c00);
  CHECK(to_f16(-2.0f, {.relu = true}) == 0);
  CHECK(to_f16(-0.0f, {.relu = true}) == 0);
  CHECK(to_f16(NAN, {.relu = true}) == 0x7fff);
  CHECK(to_f16(NAN, {.satfinite = true}) == 0x7fff);
  CHECK(to_f16(NAN, {.sat = true}) == 0);
  CHECK(to_f16(3.0f, {.sat = true}) == 0x3c00);
  CHECK(to_f16(0x1p-149f, {.rounding = Rounding::up}) == 1);
  CHECK(to_f16(0x1p-149f, {.rounding = Rounding::up, .ftz = true}) == 1);  // as the card
  CHECK(convert_float(FloatFormat::f64, FloatFormat::f32, 0x80000001, {.ftz = true}) == 0x8000000000000000);
  CHECK(convert_float(FloatFormat::f32, FloatFormat::f64, bits_of(0x1p-130), {.ftz = true}) == 0);
  const auto to_f8x2 = [](FloatFormat f8, float high, float low) {
    return of_lanes([&](u32* d, const u32* a, const u32* b) { f8x2_from_f32(f8, d, a, b, false); },
                    bits_of(high), bits_of(low));
  };
  CHECK(to_f8x2(FloatFormat::e4m3, 1000.0f, -1.0f) == 0x7eb8);
  CHECK(to_f8x2(FloatFormat::e5m2, INFINITY, NAN) == 0x7b7f);
  CHECK(of_lanes([](u32* d, const u32* a, const u32*) { f16x2_from_f8x2(FloatFormat::e5m2, d, a, false); },
                 0x7cff) == 0x7c007fff);
  CHECK(lanes_tf32(0x3f801000, {.rounding = Rounding::nearest_away}) == 0x3f802000);
  CHECK(lanes_tf32(0x3f801000, {}) == 0x3f800000);
  CHECK(lanes_tf32(0x7f7fffff, {.rounding = Rounding::nearest_away}) == 0x7f800000);
  CHECK(lanes_tf32(0x7f7fffff, {.rounding = Rounding::nearest_away, .satfinite = true}) == 0x7f7fe000);
  CHECK(lanes_tf32(0xffc00000, {}) == 0x7fffe000);
}
