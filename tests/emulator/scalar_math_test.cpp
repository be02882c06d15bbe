// Arithmetic against the host's FPU in each rounding mode, and of halves against rounding by the definition.
// What the card itself gives is in card_arithmetic_test.cpp.
#include "emulator/scalar_math.hpp"

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
using u32 = std::uint32_t;
using u64 = std::uint64_t;

constexpr Rounding kDirections[] = {Rounding::nearest_even, Rounding::zero, Rounding::down, Rounding::up};
constexpr u32 kCount = 65536;

float f32_of(u64 bits) { return std::bit_cast<float>(static_cast<u32>(bits)); }
double f64_of(u64 bits) { return std::bit_cast<double>(bits); }
u64 bits_of(float v) { return v != v ? 0x7fffffff : std::bit_cast<u32>(v); }
u64 bits_of(double v) { return v != v ? 0xfff8000000000000 : std::bit_cast<u64>(v); }

// f of volatile operands in that mode, so that nothing is computed beforehand.
template <typename T, typename F>
u64 on_host(Rounding rounding, T a, T b, T c, F f) {
  volatile T x = a, y = b, z = c, r = 0;
  {
    const HostRounding mode(rounding);
    r = f(x, y, z);
  }
  const T out = r;
  return bits_of(out);
}

void same(const char* name, Rounding rounding, const probe::Operands& o, u64 ours, u64 host,
          bool f64 = false) {
  if (ours != host) {
    // Of NaN the host keeps other bits: what the card keeps is in card_arithmetic_test.cpp.
    if (f64 && (ours << 1 >> 1) > 0x7ff0000000000000 && (host << 1 >> 1) > 0x7ff0000000000000) return;
    FAIL(name << " mode " << static_cast<int>(rounding) << std::hex << " of " << o.a << " " << o.b << " "
              << o.c << ": " << ours << ", the host has " << host);
  }
}

}  // namespace

TEST_CASE("f32 arithmetic is IEEE's in every rounding mode") {
  for (const Rounding rounding : kDirections) {
    const FloatMode mode{rounding};
    for (u32 i = 0; i < kCount; ++i) {
      probe::Operands o = probe::operands(probe::Kind::f32, i);
      const float a = f32_of(o.a), b = f32_of(o.b);
      if ((i & 3) == 0) o.c = bits_of(-(a * b));  // cancels all but the product's rounding
      const float c = f32_of(o.c);
      const u32 x = static_cast<u32>(o.a), y = static_cast<u32>(o.b), z = static_cast<u32>(o.c);
      const auto host = [&](auto f) { return on_host(rounding, a, b, c, f); };
      same("add", rounding, o, add_f32(x, y, mode), host([](float p, float q, float) { return p + q; }));
      same("sub", rounding, o, sub_f32(x, y, mode), host([](float p, float q, float) { return p - q; }));
      same("mul", rounding, o, mul_f32(x, y, mode), host([](float p, float q, float) { return p * q; }));
      same("fma", rounding, o, fma_f32(x, y, z, mode),
           host([](float p, float q, float r) { return std::fma(p, q, r); }));
      same("div", rounding, o, div_f32(x, y, mode), host([](float p, float q, float) { return p / q; }));
      same("rcp", rounding, o, rcp_f32(x, mode), host([](float p, float, float) {
             volatile float one = 1.0f;
             return one / p;
           }));
      same("sqrt", rounding, o, sqrt_f32(x, mode), host([](float p, float, float) { return std::sqrt(p); }));
    }
  }
}

TEST_CASE("f64 arithmetic is IEEE's in every rounding mode") {
  for (const Rounding rounding : kDirections) {
    for (u32 i = 0; i < kCount; ++i) {
      probe::Operands o = probe::operands(probe::Kind::f64, i);
      const double a = f64_of(o.a), b = f64_of(o.b);
      if ((i & 3) == 0) o.c = bits_of(-(a * b));
      const double c = f64_of(o.c);
      const auto host = [&](auto f) { return on_host(rounding, a, b, c, f); };
      same("add", rounding, o, add_f64(o.a, o.b, rounding),
           host([](double p, double q, double) { return p + q; }), true);
      same("sub", rounding, o, sub_f64(o.a, o.b, rounding),
           host([](double p, double q, double) { return p - q; }), true);
      same("mul", rounding, o, mul_f64(o.a, o.b, rounding),
           host([](double p, double q, double) { return p * q; }), true);
      same("fma", rounding, o, fma_f64(o.a, o.b, o.c, rounding),
           host([](double p, double q, double r) { return std::fma(p, q, r); }), true);
      same("div", rounding, o, div_f64(o.a, o.b, rounding),
           host([](double p, double q, double) { return p / q; }), true);
      same("sqrt", rounding, o, sqrt_f64(o.a, rounding),
           host([](double p, double, double) { return std::sqrt(p); }), true);
    }
  }
}

TEST_CASE("f32 lanes are the scalar functions, with every modifier") {
  std::array<u32, 32> a, b, c, d;
  for (u32 i = 0; i < 1 << 14; i += 32) {
    for (u32 lane = 0; lane < 32; ++lane) {
      const probe::Operands o = probe::operands(probe::Kind::f32, i + lane);
      a[lane] = static_cast<u32>(o.a), b[lane] = static_cast<u32>(o.b), c[lane] = static_cast<u32>(o.c);
    }
    for (const Rounding rounding : kDirections) {
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          const FloatMode mode{rounding, ftz, sat};
          const auto check = [&](const char* name, auto scalar) {
            for (u32 lane = 0; lane < 32; ++lane) {
              const u32 expected = scalar(a[lane], b[lane], c[lane]);
              if (d[lane] != expected)
                FAIL(name << std::hex << " " << a[lane] << " " << b[lane] << " " << c[lane]);
            }
          };
          add_f32(d.data(), a.data(), b.data(), mode);
          check("add", [&](u32 x, u32 y, u32) { return add_f32(x, y, mode); });
          sub_f32(d.data(), a.data(), b.data(), mode);
          check("sub", [&](u32 x, u32 y, u32) { return sub_f32(x, y, mode); });
          mul_f32(d.data(), a.data(), b.data(), mode);
          check("mul", [&](u32 x, u32 y, u32) { return mul_f32(x, y, mode); });
          fma_f32(d.data(), a.data(), b.data(), c.data(), mode);
          check("fma", [&](u32 x, u32 y, u32 z) { return fma_f32(x, y, z, mode); });
          div_f32(d.data(), a.data(), b.data(), mode);
          check("div", [&](u32 x, u32 y, u32) { return div_f32(x, y, mode); });
          sqrt_f32(d.data(), a.data(), mode);
          check("sqrt", [&](u32 x, u32, u32) { return sqrt_f32(x, mode); });
        }
      }
    }
  }
}

namespace {

struct HalfKind {
  probe::Kind kind;
  FloatFormat format;
  const reference::SmallFormat& values;
  void (*add)(u32*, const u32*, const u32*, HalfMode);
  void (*mul)(u32*, const u32*, const u32*, HalfMode);
  void (*fma)(u32*, const u32*, const u32*, const u32*, HalfMode);
};

// a*b + c by the definition: the product is exact in f64 and the sum in two f64.
u32 reference_fma(const HalfKind& half, double a, double b, double c) {
  const double p = a * b, s = p + c, t = s - p, error = (p - (s - t)) + (c - t);
  if (std::isnan(s)) return 0x7fff;
  const u32 sign = std::signbit(s) ? 0x8000 : 0;
  if (std::isinf(s)) return half.values.end() | sign;
  return half.values.round(s, error > 0 ? 1 : error < 0 ? -1 : 0, Rounding::nearest_even) | sign;
}

}  // namespace

TEST_CASE("half arithmetic is rounded once") {
  const HalfKind kinds[] = {
      {probe::Kind::f16, FloatFormat::f16, reference::f16(), add_f16x2, mul_f16x2, fma_f16x2},
      {probe::Kind::bf16, FloatFormat::bf16, reference::bf16(), add_bf16x2, mul_bf16x2, fma_bf16x2}};
  for (const HalfKind& half : kinds) {
    std::array<u32, 32> a, b, c, sum, product, fused;
    for (u32 i = 0; i < kCount; i += 32) {
      for (u32 lane = 0; lane < 32; ++lane) {
        const probe::Operands o = probe::operands(half.kind, i + lane);
        a[lane] = static_cast<u32>(o.a), b[lane] = static_cast<u32>(o.b), c[lane] = static_cast<u32>(o.c);
      }
      half.add(sum.data(), a.data(), b.data(), {});
      half.mul(product.data(), a.data(), b.data(), {});
      half.fma(fused.data(), a.data(), b.data(), c.data(), {});
      for (u32 lane = 0; lane < 32; ++lane) {
        for (u32 shift = 0; shift < 32; shift += 16) {
          const auto value = [&](u32 v) { return f64_of(widen_to_f64(half.format, v >> shift & 0xffff)); };
          const double x = value(a[lane]), y = value(b[lane]), z = value(c[lane]);
          INFO(std::hex << a[lane] << " " << b[lane] << " " << c[lane] << " shift " << shift);
          if ((sum[lane] >> shift & 0xffff) != reference_fma(half, x, 1.0, y)) FAIL("sum");
          if ((product[lane] >> shift & 0xffff) != reference_fma(half, x, y, -0.0)) FAIL("product");
          if ((fused[lane] >> shift & 0xffff) != reference_fma(half, x, y, z)) FAIL("fma");
        }
      }
    }
  }
}

TEST_CASE("modifiers of half arithmetic") {
  std::array<u32, 32> a{}, b{}, d{};
  a[0] = 0xbc003c00, b[0] = 0x00003c00;  // -1 + 0, 1 + 1
  add_f16x2(d.data(), a.data(), b.data(), {.sat = true});
  CHECK(d[0] == 0x00003c00);
  add_f16x2(d.data(), a.data(), b.data(), {.relu = true});
  CHECK(d[0] == 0x00004000);
  a[0] = 0x80017e00, b[0] = 0;
  add_f16x2(d.data(), a.data(), b.data(), {.relu = true});
  CHECK(d[0] == 0x00007fff);
  add_f16x2(d.data(), a.data(), b.data(), {.sat = true});
  CHECK(d[0] == 0);
  a[0] = 0x00018001, b[0] = 0x80000000 | 0x8000;
  add_f16x2(d.data(), a.data(), b.data(), {.ftz = true});
  CHECK(d[0] == 0x00008000);
}

TEST_CASE("min and max order zeros and treat NaN as told") {
  std::array<u32, 32> a{}, b{}, d{};
  a[0] = 0x80000000, b[0] = 0;
  a[1] = 0x7fc00000, b[1] = 0x3f800000;
  a[2] = 0xbf800000, b[2] = 0xc0000000;
  a[3] = 0x00000001, b[3] = 0x80000001;
  a[4] = 0xff800001, b[4] = 0xffffffff;
  min_f32(d.data(), a.data(), b.data());
  CHECK(d[0] == 0x80000000);
  CHECK(d[1] == 0x3f800000);
  CHECK(d[2] == 0xc0000000);
  CHECK(d[3] == 0x80000001);
  CHECK(d[4] == 0x7fffffff);
  max_f32(d.data(), a.data(), b.data(), {.nan = true});
  CHECK(d[0] == 0);
  CHECK(d[1] == 0x7fffffff);
  CHECK(d[2] == 0xbf800000);
  max_f32(d.data(), a.data(), b.data(), {.ftz = true});
  CHECK(d[3] == 0);
  max_f32(d.data(), a.data(), b.data(), {.xorsign_abs = true});
  CHECK(d[2] == 0x40000000);
  CHECK(d[3] == 0x80000001);
  a[0] = 0x3f80bf80, b[0] = 0x7fc03f80;
  min_bf16x2(d.data(), a.data(), b.data());
  CHECK(d[0] == 0x3f80bf80);
}

TEST_CASE("signs and tests of numbers") {
  CHECK(abs_f32(0x80000001) == 1);
  CHECK(abs_f32(0x80000001, true) == 0);
  CHECK(neg_f32(0x00000001, true) == 0x80000000);
  CHECK(neg_f32(0x3f800000) == 0xbf800000);
  CHECK(neg_f16x2(0x3c008000) == 0xbc000000);
  CHECK(abs_bf16x2(0xbf808000) == 0x3f800000);
  CHECK(copysign_f32(0x80000000, 0x3f800000) == 0xbf800000);
  CHECK(copysign_f64(0, 0xbff0000000000000) == 0x3ff0000000000000);
  CHECK(test_f32(FloatTest::subnormal, 0x80000001));
  CHECK_FALSE(test_f32(FloatTest::subnormal, 0));
  CHECK(test_f32(FloatTest::normal, 0));
  CHECK_FALSE(test_f32(FloatTest::normal, 1));
  CHECK(test_f32(FloatTest::not_a_number, 0xffc00000));
  CHECK(test_f64(FloatTest::infinite, 0xfff0000000000000));
  CHECK(test_f64(FloatTest::number, 0));
}
