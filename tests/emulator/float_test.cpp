// f32, f32x2 and f64 arithmetic against the host's floating-point unit. (The bits of a card: micro_test.cpp.)
#include "reference_rounding.hpp"
#include "straight_line.hpp"

#include <cmath>
#include <limits>

using namespace scalar;

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
constexpr std::size_t kCount = 2048;
constexpr U64 kQuiet = 0x0008000000000000;  // an f64 NaN keeps its payload and sign (the card's answer)

float f32(U64 v) { return std::bit_cast<float>(static_cast<U32>(v)); }
U32 bits(float v) { return std::isnan(v) ? 0x7fffffff : std::bit_cast<U32>(v); }
double f64(U64 v) { return std::bit_cast<double>(v); }
U64 bits(double v) { return std::bit_cast<U64>(v); }
float flush(float v) { return std::fabs(v) < std::numeric_limits<float>::min() ? std::copysign(0.0f, v) : v; }
float saturate(float v) { return v > 0 ? std::min(v, 1.0f) : 0.0f; }  // NaN too: +0

// Of volatile operands: the compiler must not compute it in its own rounding mode.
float calculate(char op, float a, float b, float c) {
  volatile float x = a, y = b, z = c;
  volatile float r = 0;
  switch (op) {
    case '+':
      r = x + y;
      break;
    case '-':
      r = x - y;
      break;
    case '*':
      r = x * y;
      break;
    case '/':
      r = x / y;
      break;
    case 'f':
      r = std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z));
      break;
    case 'r':
      r = 1.0f / x;
      break;
    default:
      r = std::sqrt(static_cast<float>(x));
  }
  return r;
}
double calculate(char op, double a, double b, double c) {
  volatile double x = a, y = b, z = c;
  volatile double r = 0;
  switch (op) {
    case '+':
      r = x + y;
      break;
    case '-':
      r = x - y;
      break;
    case '*':
      r = x * y;
      break;
    case '/':
      r = x / y;
      break;
    case 'f':
      r = std::fma(static_cast<double>(x), static_cast<double>(y), static_cast<double>(z));
      break;
    case 'r':
      r = 1.0 / x;
      break;
    default:
      r = std::sqrt(static_cast<double>(x));
  }
  return r;
}
struct Operation {
  const char* name;
  char op;
  unsigned sources;
  bool rounds_always, saturates;
};
const Operation kOperations[] = {{"add", '+', 2, false, true}, {"sub", '-', 2, false, true},
                                 {"mul", '*', 2, false, true}, {"fma", 'f', 3, true, true},
                                 {"mad", 'f', 3, true, true},  {"div", '/', 2, true, false},
                                 {"rcp", 'r', 1, true, false}, {"sqrt", 's', 1, true, false}};
const std::pair<const char*, Rounding> kRoundings[] = {{"", Rounding::nearest_even},
                                                       {".rn", Rounding::nearest_even},
                                                       {".rz", Rounding::zero},
                                                       {".rm", Rounding::down},
                                                       {".rp", Rounding::up}};

std::string sources(char reg, unsigned n) {
  std::string text;
  for (unsigned k = 1; k <= n; ++k) text += std::string(", %") + reg + std::to_string(k);
  return text;
}
std::vector<std::string> names(char reg, unsigned n) {
  std::vector<std::string> v;
  for (unsigned k = 0; k <= n; ++k) v.push_back(reg + std::to_string(k));
  return v;
}

}  // namespace

TEST_CASE("f32 arithmetic in every rounding mode", "[emulator]") {
  for (const Operation& o : kOperations) {
    for (const auto& [suffix, rounding] : kRoundings) {
      if (*suffix == 0 && o.rounds_always) continue;
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          if (sat && !o.saturates) continue;
          std::vector<std::vector<U64>> operands;
          for (unsigned k = 0; k < o.sources; ++k) operands.push_back(floats(k + 1, kCount));
          const Rounding mode = rounding;
          each_lane(std::string(o.name) + suffix + (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + ".f32 %r0" +
                        sources('r', o.sources) + ";",
                    names('r', o.sources), operands, [&](U64 a, U64 b, U64 c, U64) -> U64 {
                      float x = f32(a), y = f32(b), z = f32(c);
                      if (ftz) x = flush(x), y = flush(y), z = flush(z);
                      float r = 0;
                      {
                        const reference::HostRounding host(mode);
                        r = calculate(o.op, x, y, z);
                      }
                      if (ftz) r = flush(r);
                      return sat ? bits(saturate(r) + 0.0f) : bits(r);
                    });
        }
      }
    }
  }
}

TEST_CASE("f64 arithmetic in every rounding mode", "[emulator]") {
  for (const Operation& o : kOperations) {
    for (const auto& [suffix, rounding] : kRoundings) {
      if (*suffix == 0 && o.rounds_always) continue;
      const std::string body = std::string(o.name) + suffix + ".f64 %l0" + sources('l', o.sources) + ";";
      StraightLine code(body);
      INFO(body);
      REQUIRE(code.error() == "");
      std::vector<std::vector<U64>> operands;
      for (unsigned k = 0; k < 3; ++k) operands.push_back(doubles(k + 1, 512));
      for (std::size_t base = 0; base < 512; base += 32) {
        for (unsigned i = 0; i < 32; ++i) {
          for (unsigned k = 0; k < o.sources; ++k)
            code.set("l" + std::to_string(k + 1), i, operands[k][base + i]);
        }
        REQUIRE(code.run() == Flow::next);
        for (unsigned i = 0; i < 32; ++i) {
          double want = 0;
          {
            const reference::HostRounding host(rounding);
            want = calculate(o.op, f64(operands[0][base + i]), f64(operands[1][base + i]),
                             f64(operands[2][base + i]));
          }
          const double got = f64(code.get("l0", i));
          if (std::isnan(want)) {
            CHECK(std::isnan(got));
          } else {
            CHECK(bits(got) == bits(want));
          }
        }
      }
    }
  }
}

TEST_CASE("pairs of f32 are two of them", "[emulator]") {
  const auto low = floats(1, 3 * kCount), high = floats(2, 3 * kCount);
  std::vector<std::vector<U64>> operands(3);
  for (std::size_t i = 0; i < 3 * kCount; ++i) operands[i % 3].push_back(low[i] | high[i] << 32);
  for (const auto& [name, op, n] : {std::tuple{"add.f32x2", '+', 2u},
                                    {"sub.rn.ftz.f32x2", '-', 2u},
                                    {"mul.f32x2", '*', 2u},
                                    {"fma.rn.f32x2", 'f', 3u}}) {
    const bool ftz = std::string(name).find("ftz") != std::string::npos;
    const char kind = op;
    each_lane(std::string(name) + " %l0" + sources('l', n) + ";", names('l', n),
              {operands.begin(), operands.begin() + n}, [&](U64 a, U64 b, U64 c, U64) {
                U64 d = 0;
                for (const unsigned shift : {0u, 32u}) {
                  float x = f32(a >> shift), y = f32(b >> shift), z = f32(c >> shift);
                  if (ftz) x = flush(x), y = flush(y), z = flush(z);
                  const float r = calculate(kind, x, y, z);
                  d |= U64{bits(ftz ? flush(r) : r)} << shift;
                }
                return d;
              });
  }
}

TEST_CASE("min and max with their modifiers", "[emulator]") {
  for (const bool largest : {false, true}) {
    const std::string name = largest ? "max" : "min";
    const auto pick = [&](auto a, auto b) {  // of numbers; -0 < +0
      if (a == b) return std::signbit(a) != largest ? a : b;
      return (a < b) != largest ? a : b;
    };
    for (const bool ftz : {false, true}) {
      for (const bool nan : {false, true}) {
        const auto two = [&](float a, float b) {
          if (std::isnan(a) || std::isnan(b))
            return nan || (std::isnan(a) && std::isnan(b)) ? NAN : std::isnan(a) ? b : a;
          return pick(a, b);
        };
        const std::string mode = std::string(ftz ? ".ftz" : "") + (nan ? ".NaN" : "");
        const auto value = [&](U64 v) { return ftz ? flush(f32(v)) : f32(v); };
        each_lane(name + mode + ".f32 %r0, %r1, %r2;", names('r', 2), {floats(1, kCount), floats(2, kCount)},
                  [&](U64 a, U64 b, U64, U64) { return U64{bits(two(value(a), value(b)))}; });
        each_lane(name + mode + ".f32 %r0, %r1, %r2, %r3;", names('r', 3),
                  {floats(1, kCount), floats(2, kCount), floats(3, kCount)}, [&](U64 a, U64 b, U64 c, U64) {
                    return U64{bits(two(two(value(a), value(b)), value(c)))};
                  });
        each_lane(name + mode + ".xorsign.abs.f32 %r0, %r1, %r2;", names('r', 2),
                  {floats(1, kCount), floats(2, kCount)}, [&](U64 a, U64 b, U64, U64) -> U64 {
                    const float r = two(std::fabs(value(a)), std::fabs(value(b)));
                    return std::isnan(r) ? 0x7fffffff : bits(r) | ((a ^ b) & 0x80000000);
                  });
      }
    }
    each_lane(name + ".f64 %l0, %l1, %l2;", names('l', 2), {doubles(1, kCount), doubles(2, kCount)},
              [&](U64 a, U64 b, U64, U64) {
                const double x = f64(a), y = f64(b);
                if (std::isnan(x) && std::isnan(y)) return a | kQuiet;
                return bits(std::isnan(x) ? y : std::isnan(y) ? x : pick(x, y));
              });
  }
}

TEST_CASE("signs and tests of floats", "[emulator]") {
  for (const bool ftz : {false, true}) {
    const std::string mode = ftz ? ".ftz.f32" : ".f32";
    const auto value = [&](U64 v) { return ftz ? flush(f32(v)) : f32(v); };
    each_lane("neg" + mode + " %r0, %r1;", names('r', 1), {floats(1, kCount)},
              [&](U64 a, U64, U64, U64) { return U64{bits(-value(a))}; });
    each_lane("abs" + mode + " %r0, %r1;", names('r', 1), {floats(1, kCount)},
              [&](U64 a, U64, U64, U64) { return U64{bits(std::fabs(value(a)))}; });
  }
  constexpr U64 kTop = U64{1} << 63;
  each_lane("neg.f64 %l0, %l1;", names('l', 1), {doubles(1, kCount)},
            [&](U64 a, U64, U64, U64) { return std::isnan(f64(a)) ? a | kQuiet : a ^ kTop; });
  each_lane("abs.f64 %l0, %l1;", names('l', 1), {doubles(1, kCount)},
            [&](U64 a, U64, U64, U64) { return std::isnan(f64(a)) ? a | kQuiet : a & ~kTop; });
  each_lane("copysign.f32 %r0, %r1, %r2;", names('r', 2), {floats(1, kCount), floats(2, kCount)},
            [](U64 a, U64 b, U64, U64) { return (b & 0x7fffffff) | (a & 0x80000000); });
  each_lane("copysign.f64 %l0, %l1, %l2;", names('l', 2), {doubles(1, kCount), doubles(2, kCount)},
            [](U64 a, U64 b, U64, U64) { return (b & ~kTop) | (a & kTop); });
  const std::pair<const char*, bool (*)(int)> tests[] = {
      {"finite", [](int c) { return c != FP_NAN && c != FP_INFINITE; }},
      {"infinite", [](int c) { return c == FP_INFINITE; }},
      {"number", [](int c) { return c != FP_NAN; }},
      {"notanumber", [](int c) { return c == FP_NAN; }},
      {"normal", [](int c) { return c == FP_NORMAL || c == FP_ZERO; }},
      {"subnormal", [](int c) { return c == FP_SUBNORMAL; }}};
  for (const auto& [name, test] : tests) {
    const auto holds = test;
    each_lane(std::string("testp.") + name + ".f32 %p0, %r1;", {"p0", "r1"}, {floats(1, kCount)},
              [&](U64 a, U64, U64, U64) { return U64{holds(std::fpclassify(f32(a)))}; });
    each_lane(std::string("testp.") + name + ".f64 %p0, %l1;", {"p0", "l1"}, {doubles(1, kCount)},
              [&](U64 a, U64, U64, U64) { return U64{holds(std::fpclassify(f64(a)))}; });
  }
}

TEST_CASE("functions of the special unit are near the true ones, in every lane that executes", "[emulator]") {
  const std::pair<const char*, double (*)(double)> functions[] = {
      {"ex2.approx.f32", [](double x) { return std::exp2(x); }},
      {"ex2.approx.ftz.f32", [](double x) { return std::exp2(x); }},
      {"lg2.approx.f32", [](double x) { return std::log2(x); }},
      {"rcp.approx.f32", [](double x) { return 1 / x; }},
      {"rcp.approx.ftz.f32", [](double x) { return 1 / x; }},
      {"sqrt.approx.f32", [](double x) { return std::sqrt(x); }},
      {"rsqrt.approx.ftz.f32", [](double x) { return 1 / std::sqrt(x); }},
      {"sin.approx.f32", [](double x) { return std::sin(x); }},
      {"cos.approx.ftz.f32", [](double x) { return std::cos(x); }},
      {"tanh.approx.f32", [](double x) { return std::tanh(x); }}};
  for (const auto& [name, function] : functions) {
    StraightLine code(std::string(name) + " %r0, %r1;");
    for (unsigned i = 0; i < 32; ++i) code.set("r1", i, bits(0.1f + 0.09f * static_cast<float>(i)));
    REQUIRE(code.run(0x7ffffffe) == Flow::next);
    for (unsigned i = 1; i < 31; ++i)
      CHECK(std::fabs(f32(code.get("r0", i)) - function(f32(code.get("r1", i)))) < 2e-3);
    CHECK(code.get("r0", 0) == 0xcdcdcdcd);
    CHECK(code.kernel().info[0].family == "sfu");
  }
  StraightLine quotients(
      "div.approx.f32 %r0, %r3, %r4; div.full.ftz.f32 %r1, %r3, %r4; rcp.approx.ftz.f64 %l0, %l2;"
      "rsqrt.approx.ftz.f64 %l1, %l2; rsqrt.approx.f64 %l3, %l2;");
  for (unsigned i = 0; i < 32; ++i) {
    quotients.set("r3", i, bits(1.0f + static_cast<float>(i)));
    quotients.set("r4", i, bits(7.0f - 0.3f * static_cast<float>(i)));
    quotients.set("l2", i, bits(3.0 + i));
  }
  REQUIRE(quotients.run() == Flow::next);
  for (unsigned i = 0; i < 32; ++i) {
    const float want = f32(quotients.get("r3", i)) / f32(quotients.get("r4", i));
    CHECK(std::fabs(f32(quotients.get("r0", i)) / want - 1) < 1e-6);
    CHECK(std::fabs(f32(quotients.get("r1", i)) / want - 1) < 1e-6);
    CHECK(std::fabs(f64(quotients.get("l0", i)) * (3.0 + i) - 1) < 1e-5);
    CHECK(std::fabs(f64(quotients.get("l1", i)) * std::sqrt(3.0 + i) - 1) < 1e-5);
    CHECK(std::fabs(f64(quotients.get("l3", i)) * std::sqrt(3.0 + i) - 1) < 1e-15);
  }
}

TEST_CASE("immediates of floats", "[emulator]") {
  StraightLine code(
      "fma.rn.f32 %r0, %r1, 0f40000000, 0.25; add.f64 %l0, %l1, 0d3FF0000000000000; mul.f32 %r2, 3.0, %r1;");
  for (unsigned i = 0; i < 32; ++i) {
    code.set("r1", i, bits(static_cast<float>(i)));
    code.set("l1", i, bits(0.5 * i));
  }
  REQUIRE(code.run() == Flow::next);
  CHECK(f32(code.get("r0", 5)) == 10.25f);
  CHECK(f64(code.get("l0", 5)) == 3.5);
  CHECK(f32(code.get("r2", 5)) == 15.0f);
}

TEST_CASE("float forms that do not exist are refused", "[emulator]") {
  for (const char* body :
       {"fma.f32 %r0, %r1, %r2, %r3;", "add.sat.f64 %l0, %l1, %l2;", "add.ftz.f64 %l0, %l1, %l2;",
        "div.f32 %r0, %r1, %r2;", "div.approx.f64 %l0, %l1, %l2;", "div.full.rn.f32 %r0, %r1, %r2;",
        "sqrt.approx.f64 %l0, %l1;", "ex2.f32 %r0, %r1;", "sin.rn.f32 %r0, %r1;",
        "max.NaN.f64 %l0, %l1, %l2;", "neg.ftz.f64 %l0, %l1;", "add.rni.f32 %r0, %r1, %r2;",
        "testp.f32 %p0, %r1;", "rcp.approx.f64 %l0, %l1;", "mul.lo.f32 %r0, %r1, %r2;",
        "add.f32 %r0, %l1, %r2;", "add.f32.f16 %r0, %h1, %r2;", "tanh.f32 %r0, %r1;",
        "div.rn.f16 %h0, %h1, %h2;"}) {
    INFO(body);
    CHECK(decode_error(body) != "");
  }
}
