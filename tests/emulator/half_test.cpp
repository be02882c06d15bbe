// f16 and bf16, alone and in pairs, by the definition of rounding. (The bits of a card: micro_test.cpp.)
#include "reference_rounding.hpp"
#include "straight_line.hpp"

#include <cmath>

using namespace scalar;

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
constexpr std::size_t kCount = 2048;

struct Half {
  const char* name;
  const reference::SmallFormat& format;
  std::uint32_t infinity, one;
  int smallest_normal;
};
const Half kF16{"f16", reference::f16(), 0x7c00, 0x3c00, -14},
    kBf16{"bf16", reference::bf16(), 0x7f80, 0x3f80, -126};

double value(const Half& h, U64 v, bool ftz = false) {
  const U32 magnitude = v & 0x7fff;
  double d = magnitude > h.infinity ? NAN : magnitude == h.infinity ? INFINITY : h.format.value(magnitude);
  if (ftz && d < std::ldexp(1.0, h.smallest_normal)) d = 0;
  return (v & 0x8000) != 0 ? -d : d;
}
// Rounded to nearest; @p error: the sign of what the number lacks.
U64 pattern(const Half& h, double v, int error = 0, bool ftz = false) {
  if (std::isnan(v)) return 0x7fff;
  const U64 sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isinf(v)) return sign | h.infinity;
  U64 magnitude = h.format.round(v, error, Rounding::nearest_even);
  if (ftz && h.format.value(static_cast<U32>(magnitude)) < std::ldexp(1.0, h.smallest_normal)) magnitude = 0;
  return sign | magnitude;
}
// a*b + c and the sign of what the double lacks; products of halves are exact in a double.
double fused(double a, double b, double c, int& error) {
  const double p = a * b, s = p + c;
  error = 0;
  if (std::isfinite(s)) {
    const double t = s - p, e = (p - (s - t)) + (c - t);
    error = (e > 0) - (e < 0);
  }
  return s;
}
U64 both(U64 a, U64 b, U64 c, auto f) {
  const auto half = [](U64 v) { return v & 0xffff; };
  return f(half(a), half(b), half(c)) | f(half(a >> 16), half(b >> 16), half(c >> 16)) << 16;
}

// The scalar form and the pair of @p text ("add.ftz."), with n sources.
void check(const Half& h, const std::string& text, unsigned n, auto f) {
  std::vector<std::vector<U64>> operands;
  for (unsigned k = 0; k < n; ++k) operands.push_back(halves(k + 1, kCount));
  for (const bool pair : {false, true}) {
    const char reg = pair ? 'r' : 'h';
    std::string body = text + h.name + (pair ? "x2 %" : " %") + reg + "0";
    std::vector<std::string> names{std::string(1, reg) + "0"};
    for (unsigned k = 1; k <= n; ++k) {
      names.push_back(reg + std::to_string(k));
      body += ", %" + names.back();
    }
    each_lane(body + ";", names, operands, [&](U64 a, U64 b, U64 c, U64) {
      return pair ? both(a, b, c, f) : f(a & 0xffff, b & 0xffff, c & 0xffff);
    });
  }
}
U64 saturate(const Half& h, double v, int error, bool ftz) {
  if (!(v > 0)) return 0;
  return v >= 1 ? h.one : pattern(h, v, error, ftz);
}

}  // namespace

TEST_CASE("sums, products and fused ones of halves", "[emulator]") {
  for (const Half* h : {&kF16, &kBf16}) {
    const bool f16 = h == &kF16;
    for (const bool ftz : {false, true}) {
      if (ftz && !f16) continue;
      const auto v = [&](U64 a) { return value(*h, a, ftz); };
      for (const int sat : {0, 1}) {
        if (sat != 0 && !f16) continue;
        const std::string mode = std::string(ftz ? ".ftz" : "") + (sat != 0 ? ".sat" : "") + ".";
        const auto end = [&](double s, int error) {
          return sat != 0 ? saturate(*h, s, error, ftz) : pattern(*h, s, error, ftz);
        };
        for (const char* rn : {"", ".rn"}) {
          check(*h, std::string("add") + rn + mode, 2, [&](U64 a, U64 b, U64) {
            int error = 0;
            const double s = fused(v(a), 1, v(b), error);
            return end(s, error);
          });
          check(*h, std::string("sub") + rn + mode, 2, [&](U64 a, U64 b, U64) {
            int error = 0;
            const double s = fused(v(a), 1, -v(b), error);
            return end(s, error);
          });
          check(*h, std::string("mul") + rn + mode, 2,
                [&](U64 a, U64 b, U64) { return end(v(a) * v(b), 0); });
        }
        check(*h, "fma.rn" + mode, 3, [&](U64 a, U64 b, U64 c) {
          int error = 0;
          const double s = fused(v(a), v(b), v(c), error);
          return end(s, error);
        });
      }
      check(*h, std::string("fma.rn") + (ftz ? ".ftz" : "") + ".relu.", 3, [&](U64 a, U64 b, U64 c) {
        int error = 0;
        const double s = fused(v(a), v(b), v(c), error);
        const U64 r = pattern(*h, s, error, ftz);
        return (r & 0x8000) != 0 ? U64{0} : r;
      });
    }
  }
}

TEST_CASE("min and max of halves", "[emulator]") {
  for (const Half* h : {&kF16, &kBf16}) {
    for (const bool largest : {false, true}) {
      for (const bool nan : {false, true}) {
        const std::string name = std::string(largest ? "max" : "min") + (nan ? ".NaN" : "");
        const auto two = [&](U64 a, U64 b) -> U64 {
          const double x = value(*h, a), y = value(*h, b);
          if (std::isnan(x) || std::isnan(y)) {
            return nan || (std::isnan(x) && std::isnan(y)) ? 0x7fff : std::isnan(x) ? b : a;
          }
          if (x == y) return ((a & 0x8000) != 0) != largest ? a : b;
          return (x < y) != largest ? a : b;
        };
        check(*h, name + ".", 2, [&](U64 a, U64 b, U64) { return two(a, b); });
        check(*h, name + ".", 3, [&](U64 a, U64 b, U64 c) { return two(two(a, b), c); });
        check(*h, name + ".xorsign.abs.", 2, [&](U64 a, U64 b, U64) -> U64 {
          const U64 r = two(a & 0x7fff, b & 0x7fff);
          return r > h->infinity ? 0x7fff : r | ((a ^ b) & 0x8000);
        });
      }
    }
  }
  check(kF16, "max.ftz.", 2, [&](U64 a, U64 b, U64) -> U64 {
    const double x = value(kF16, a, true), y = value(kF16, b, true);
    if (std::isnan(x)) return std::isnan(y) ? 0x7fff : pattern(kF16, y);
    if (std::isnan(y)) return pattern(kF16, x);
    return pattern(kF16, x == y ? (std::signbit(x) ? y : x) : std::max(x, y));
  });
}

TEST_CASE("signs and functions of halves", "[emulator]") {
  for (const Half* h : {&kF16, &kBf16}) {
    const auto is_nan = [&](U64 a) { return (a & 0x7fff) > h->infinity; };
    check(*h, "neg.", 1, [&](U64 a, U64, U64) { return is_nan(a) ? U64{0x7fff} : a ^ 0x8000; });
    check(*h, "abs.", 1, [&](U64 a, U64, U64) { return is_nan(a) ? U64{0x7fff} : a & 0x7fff; });
    // Near the true function; the upper half of a scalar stays zero.
    for (const char* name : {"ex2", "tanh"}) {
      const bool ex2 = *name == 'e', bf16 = h == &kBf16;
      const std::string text = std::string(name) + ".approx" + (ex2 && bf16 ? ".ftz." : ".") + h->name;
      StraightLine code(text + " %h0, %h1; " + text + "x2 %r0, %r1;");
      INFO(text);
      REQUIRE(code.error() == "");
      for (unsigned i = 0; i < 32; ++i) {
        code.set("h1", i, pattern(*h, 0.1 * i - 1.5));
        code.set("r1", i, pattern(*h, 0.1 * i - 1.5) | pattern(*h, 0.05 * i) << 16);
      }
      REQUIRE(code.run() == Flow::next);
      const auto near = [&](U64 got, double x) {
        const double want = ex2 ? std::exp2(x) : std::tanh(x);
        return got <= 0xffff &&
               std::fabs(value(*h, got) - want) <= (bf16 ? 0.02 : 0.003) * std::max(1.0, want);
      };
      for (unsigned i = 0; i < 32; ++i) {
        CHECK(near(code.get("h0", i), value(*h, code.get("h1", i))));
        CHECK(near(code.get("r0", i) & 0xffff, value(*h, code.get("r1", i))));
        CHECK(near(code.get("r0", i) >> 16, value(*h, code.get("r1", i) >> 16)));
      }
    }
  }
  check(kF16, "neg.ftz.", 1, [](U64 a, U64, U64) {
    return (a & 0x7fff) > 0x7c00 ? U64{0x7fff} : pattern(kF16, -value(kF16, a, true));
  });
}

TEST_CASE("half forms that do not exist are refused", "[emulator]") {
  for (const char* body :
       {"fma.f16 %h0, %h1, %h2, %h3;", "add.rz.f16 %h0, %h1, %h2;", "add.ftz.bf16 %h0, %h1, %h2;",
        "fma.rn.sat.relu.f16 %h0, %h1, %h2, %h3;", "mul.sat.bf16x2 %r0, %r1, %r2;",
        "ex2.approx.bf16 %h0, %h1;", "ex2.approx.ftz.f16 %h0, %h1;", "tanh.f16 %h0, %h1;",
        "add.f16x2 %h0, %h1, %h2;", "neg.ftz.bf16 %h0, %h1;", "max.ftz.bf16x2 %r0, %r1, %r2;",
        "fma.rn.oob.f16 %h0, %h1, %h2, %h3;"}) {
    INFO(body);
    CHECK(decode_error(body) != "");
  }
}
