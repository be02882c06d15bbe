// cvt and cvt.pack: forms, widths and plain conversions. (The bits of a card: micro_test.cpp.)
#include "reference_rounding.hpp"
#include "straight_line.hpp"

#include <cmath>

using namespace scalar;

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S128 = __int128;
constexpr std::size_t kCount = 512;

struct Type {
  const char* name;
  unsigned bits;
  bool sign;
};
const Type kTypes[] = {{"u8", 8, false},   {"s8", 8, true},   {"u16", 16, false}, {"s16", 16, true},
                       {"u32", 32, false}, {"s32", 32, true}, {"u64", 64, false}, {"s64", 64, true}};
U64 low(S128 v, unsigned bits) {
  return bits == 64 ? static_cast<U64>(v) : static_cast<U64>(v) & ((U64{1} << bits) - 1);
}
S128 number(U64 v, const Type& t) {
  v = low(static_cast<S128>(v), t.bits);
  return t.sign && (v >> (t.bits - 1) & 1) != 0 ? static_cast<S128>(v) - (static_cast<S128>(1) << t.bits)
                                                : static_cast<S128>(v);
}
S128 least(const Type& t) { return t.sign ? -(static_cast<S128>(1) << (t.bits - 1)) : 0; }
S128 most(const Type& t) { return (static_cast<S128>(1) << (t.bits - (t.sign ? 1 : 0))) - 1; }
char reg(unsigned bits) { return bits <= 16 ? 'h' : bits == 32 ? 'r' : 'l'; }
unsigned reg_bits(char c) { return c == 'h' ? 16 : c == 'r' ? 32 : 64; }
float f32(U64 v) { return std::bit_cast<float>(static_cast<U32>(v)); }

}  // namespace

TEST_CASE("integers of every width, in registers that may be wider", "[emulator]") {
  for (const Type& to : kTypes) {
    for (const Type& from : kTypes) {
      for (const char d : {'h', 'r', 'l'}) {
        for (const char a : {'h', 'r', 'l'}) {
          if (reg_bits(d) < to.bits || reg_bits(a) < from.bits) continue;
          for (const bool sat : {false, true}) {
            each_lane(std::string("cvt") + (sat ? ".sat." : ".") + to.name + "." + from.name + " %" + d +
                          "0, %" + a + "1;",
                      {std::string(1, d) + "0", std::string(1, a) + "1"},
                      {integers(to.bits + from.bits, kCount)}, [&](U64 v, U64, U64, U64) {
                        S128 n = number(v, from);
                        if (sat) n = std::clamp(n, least(to), most(to));
                        return low(number(static_cast<U64>(n), to), reg_bits(d));
                      });
          }
        }
      }
    }
  }
}

TEST_CASE("floats to integers clamp and round", "[emulator]") {
  const std::pair<const char*, double (*)(double)> modes[] = {
      {"rni", [](double v) { return std::nearbyint(v); }},
      {"rzi", [](double v) { return std::trunc(v); }},
      {"rmi", [](double v) { return std::floor(v); }},
      {"rpi", [](double v) { return std::ceil(v); }}};
  for (const Type& to : kTypes) {
    for (const auto& [mode, round] : modes) {
      const auto rounded = round;
      const auto convert = [&](double v, bool wide_nan) {
        if (std::isnan(v)) return wide_nan || to.bits == 64 ? U64{1} << (to.bits - 1) : 0;
        const double r = rounded(v);
        const S128 n = r >= 0x1p65 ? most(to) : r <= -0x1p65 ? least(to) : static_cast<S128>(r);
        return static_cast<U64>(std::clamp(n, least(to), most(to)));
      };
      const char d = reg(to.bits);
      const std::string text = std::string("cvt.") + mode + ".", head = std::string(to.name) + ".";
      const auto cut = [&](U64 v) { return low(number(v, to), reg_bits(d)); };
      const std::string to_register = std::string(1, d) + "0";
      each_lane(text + head + "f32 %" + to_register + ", %r1;", {to_register, "r1"}, {floats(1, kCount)},
                [&](U64 v, U64, U64, U64) { return cut(convert(f32(v), false)); });
      each_lane(text + "sat." + head + "f32 %" + to_register + ", %r1;", {to_register, "r1"},
                {floats(1, kCount)}, [&](U64 v, U64, U64, U64) { return cut(convert(f32(v), false)); });
      each_lane(text + head + "f64 %" + to_register + ", %l1;", {to_register, "l1"}, {doubles(1, kCount)},
                [&](U64 v, U64, U64, U64) { return cut(convert(std::bit_cast<double>(v), true)); });
    }
  }
}

TEST_CASE("integers to floats", "[emulator]") {
  const std::pair<const char*, Rounding> modes[] = {
      {"rn", Rounding::nearest_even}, {"rz", Rounding::zero}, {"rm", Rounding::down}, {"rp", Rounding::up}};
  for (const Type& from : kTypes) {
    for (const auto& [name, rounding] : modes) {
      const Rounding mode = rounding;
      const std::string a = std::string(1, reg(from.bits)) + "1", tail = std::string(".") + from.name;
      // A long double holds 64 bits exactly; the cast rounds as the host does.
      const auto cast = [&](U64 v, auto zero) {
        const reference::HostRounding host(mode);
        volatile long double exact = static_cast<long double>(number(v, from));
        volatile decltype(zero) r = static_cast<decltype(zero)>(exact);
        return static_cast<decltype(zero)>(r);
      };
      each_lane(std::string("cvt.") + name + ".f32" + tail + " %r0, %" + a + ";", {"r0", a},
                {integers(1, kCount)},
                [&](U64 v, U64, U64, U64) { return U64{std::bit_cast<U32>(cast(v, 0.0f))}; });
      each_lane(std::string("cvt.") + name + ".f64" + tail + " %l0, %" + a + ";", {"l0", a},
                {integers(1, kCount)},
                [&](U64 v, U64, U64, U64) { return std::bit_cast<U64>(cast(v, 0.0)); });
    }
  }
}

TEST_CASE("floats to floats", "[emulator]") {
  // Widened and narrowed NaNs keep what fits of their payload (the card's answer), f32 results of other forms
  // are one NaN.
  const auto nan32 = [](float v) { return std::isnan(v) ? U64{0x7fffffff} : U64{std::bit_cast<U32>(v)}; };
  each_lane("cvt.rn.f32.f64 %r0, %l1;", {"r0", "l1"}, {doubles(1, kCount)}, [&](U64 v, U64, U64, U64) {
    return U64{std::bit_cast<U32>(static_cast<float>(std::bit_cast<double>(v)))};
  });
  each_lane("cvt.sat.f32.f32 %r0, %r1;", {"r0", "r1"}, {floats(1, kCount)},
            [&](U64 v, U64, U64, U64) { return nan32(f32(v) > 0 ? std::min(f32(v), 1.0f) : 0.0f); });
  each_lane("cvt.rmi.f32.f32 %r0, %r1;", {"r0", "r1"}, {floats(1, kCount)},
            [&](U64 v, U64, U64, U64) { return nan32(std::floor(f32(v))); });
  each_lane("cvt.f32.bf16 %r0, %h1;", {"r0", "h1"}, {halves(1, kCount)},
            [&](U64 v, U64, U64, U64) { return (v & 0xffff) << 16; });
  const auto bf16 = [](U64 v) -> U64 {
    if (std::isnan(f32(v))) return 0x7fff;
    return (static_cast<U32>(v) + 0x7fff + (v >> 16 & 1)) >> 16 & 0xffff;
  };
  each_lane("cvt.rn.bf16.f32 %h0, %r1;", {"h0", "r1"}, {floats(1, kCount)},
            [&](U64 v, U64, U64, U64) { return bf16(v); });
  each_lane("cvt.rn.bf16x2.f32 %r0, %r1, %r2;", {"r0", "r1", "r2"}, {floats(1, kCount), floats(2, kCount)},
            [&](U64 a, U64 b, U64, U64) { return bf16(a) << 16 | bf16(b); });
  each_lane("cvt.rn.relu.bf16x2.f32 %r0, %r1, %r2;", {"r0", "r1", "r2"},
            {floats(1, kCount), floats(2, kCount)}, [&](U64 a, U64 b, U64, U64) {
              const auto relu = [&](U64 v) { return bf16(v) >= 0x8000 ? 0 : bf16(v); };
              return relu(a) << 16 | relu(b);
            });
  const auto f16 = [](U64 v) -> U64 {
    const float x = f32(v);
    if (std::isnan(x)) return 0x7fff;
    const U64 sign = std::signbit(x) ? 0x8000 : 0;
    return sign | (std::isinf(x) ? 0x7c00 : reference::f16().round(x, 0, Rounding::nearest_even));
  };
  each_lane("cvt.rn.f16.f32 %h0, %r1;", {"h0", "r1"}, {floats(1, kCount)},
            [&](U64 v, U64, U64, U64) { return f16(v); });
  each_lane("cvt.rn.f16x2.f32 %r0, %r1, %r2;", {"r0", "r1", "r2"}, {floats(1, kCount), floats(2, kCount)},
            [&](U64 a, U64 b, U64, U64) { return f16(a) << 16 | f16(b); });
  each_lane("cvt.f32.f16 %r0, %h1;", {"r0", "h1"}, {halves(1, kCount)}, [&](U64 v, U64, U64, U64) {
    const U32 magnitude = v & 0x7fff;
    const double x = magnitude > 0x7c00    ? NAN
                     : magnitude == 0x7c00 ? INFINITY
                                           : reference::f16().value(magnitude);
    return nan32(static_cast<float>((v & 0x8000) != 0 ? -x : x));
  });
}

TEST_CASE("eight-bit floats and tf32", "[emulator]") {
  for (const bool e4m3 : {true, false}) {
    const auto& format = e4m3 ? reference::e4m3() : reference::e5m2();
    const std::string name = e4m3 ? "e4m3x2" : "e5m2x2";
    const auto f8 = [&](float x, bool relu) -> U64 {
      if (std::isnan(x)) return 0x7f;
      if (relu && std::signbit(x)) return 0;
      const U64 sign = std::signbit(x) ? 0x80 : 0;
      return sign | std::min<U64>(std::isinf(x) ? 255 : format.round(x, 0, Rounding::nearest_even),
                                  format.end() - 1);
    };
    for (const bool relu : {false, true}) {
      each_lane("cvt.rn.satfinite" + std::string(relu ? ".relu." : ".") + name + ".f32 %h0, %r1, %r2;",
                {"h0", "r1", "r2"}, {floats(1, kCount), floats(2, kCount)},
                [&](U64 a, U64 b, U64, U64) { return f8(f32(a), relu) << 8 | f8(f32(b), relu); });
    }
    StraightLine up("cvt.rn.f16x2." + name + " %r0, %h1;");
    for (unsigned v = 0; v < 256; v += 32) {
      for (unsigned i = 0; i < 32; ++i) up.set("h1", i, v + i);
      REQUIRE(up.run() == Flow::next);
      for (unsigned i = 0; i < 32; ++i) {
        const U32 magnitude = (v + i) & 0x7f;
        if (e4m3 ? magnitude == 0x7f : magnitude > 0x7c) {
          CHECK((up.get("r0", i) & 0x7fff) > 0x7c00);
        } else {
          const U64 want = !e4m3 && magnitude == 0x7c
                               ? 0x7c00
                               : reference::f16().round(format.value(magnitude), 0, Rounding::nearest_even);
          CHECK(up.get("r0", i) == (want | ((v + i) & 0x80) << 8));
        }
      }
    }
  }
  each_lane(
      "cvt.rna.tf32.f32 %r0, %r1;", {"r0", "r1"}, {[] {
        auto v = floats(1, kCount);
        for (auto& x : v) {
          if ((x & 0x7f800000) == 0x7f800000) x &= 0xff800000;  // NaN: the card's bits elsewhere
        }
        return v;
      }()},
      [](U64 v, U64, U64, U64) { return (v & 0x7f800000) == 0x7f800000 ? v : (v + 0x1000) & 0xffffe000; });
}

TEST_CASE("cvt.pack saturates and packs", "[emulator]") {
  for (const unsigned bits : {16u, 8u, 4u, 2u}) {
    for (const bool sign : {false, true}) {
      const Type to{"", bits, sign}, s32{"", 32, true};
      const std::string type = (sign ? "s" : "u") + std::to_string(bits);
      const auto clamped = [&](U64 v) { return low(std::clamp(number(v, s32), least(to), most(to)), bits); };
      if (bits == 16) {
        each_lane("cvt.pack.sat." + type + ".s32 %r0, %r1, %r2;", {"r0", "r1", "r2"},
                  {integers(1, kCount), integers(2, kCount)},
                  [&](U64 a, U64 b, U64, U64) { return clamped(a) << 16 | clamped(b); });
      } else {
        each_lane("cvt.pack.sat." + type + ".s32.b32 %r0, %r1, %r2, %r3;", {"r0", "r1", "r2", "r3"},
                  {integers(1, kCount), integers(2, kCount), integers(3, kCount)},
                  [&](U64 a, U64 b, U64 c, U64) {
                    return low(static_cast<S128>(c << (2 * bits) | clamped(a) << bits | clamped(b)), 32);
                  });
      }
    }
  }
}

TEST_CASE("what a conversion reads undefined stays so, in wider registers too", "[emulator]") {
  StraightLine code("cvt.s64.s8 %l0, %r1; cvt.u16.u32 %r2, %l1; cvt.rzi.s32.f32 %l2, %r3;");
  code.undefined("r1") = 0x5;
  code.undefined("l1") = 0x9;
  code.undefined("r3") = 0x3;
  REQUIRE(code.run() == Flow::next);
  CHECK(code.undefined("l0") == 0x5);
  CHECK(code.undefined("r2") == 0x9);
  CHECK(code.undefined("l2") == 0x3);
}

TEST_CASE("conversions that do not exist are refused", "[emulator]") {
  for (const char* body :
       {"cvt.f32.s32 %r0, %r1;", "cvt.rni.f32.s32 %r0, %r1;", "cvt.s32.f32 %r0, %r1;",
        "cvt.rn.s32.f32 %r0, %r1;", "cvt.f32.f64 %r0, %l1;", "cvt.rzi.f32.f64 %r0, %l1;",
        "cvt.rn.u16.u32 %h0, %r1;", "cvt.bf16x2.f32 %r0, %r1, %r2;", "cvt.rm.f16x2.f32 %r0, %r1, %r2;",
        "cvt.rn.e4m3x2.f32 %h0, %r1, %r2;", "cvt.u64.u32 %r0, %r1;", "cvt.u32.u64 %r0, %r1;",
        "cvt.u32 %r0, %r1;", "cvt.pack.sat.u8.s32 %r0, %r1, %r2;",
        "cvt.pack.sat.u16.s32.b32 %r0, %r1, %r2, %r3;"}) {
    INFO(body);
    CHECK(decode_error(body) != "");
  }
  CHECK(decode_error("cvt.rs.f16x2.f32 %r0, %r1, %r2, %r3;").find("unsupported") != std::string::npos);
  CHECK(decode_error("cvt.rn.satfinite.e2m1x2.f32 %h0, %r1, %r2;") != "");
}
