// Integer arithmetic, logic, shifts and bits against plain C++ written from the ISA's text.
#include "straight_line.hpp"

#include <algorithm>

using namespace scalar;

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using S64 = std::int64_t;
using U128 = unsigned __int128;
using S128 = __int128;

constexpr std::size_t kCount = 1024;

struct IntegerType {
  const char* name;
  unsigned bits;
  bool sign;
};
const IntegerType kTypes[] = {{"u16", 16, false}, {"u32", 32, false}, {"u64", 64, false},
                              {"s16", 16, true},  {"s32", 32, true},  {"s64", 64, true}};

U64 low(S128 v, unsigned bits) {
  return bits == 64 ? static_cast<U64>(v) : static_cast<U64>(v) & ((U64{1} << bits) - 1);
}
// The number that the low bits of @p v are.
S128 number(U64 v, unsigned bits, bool sign) {
  v = low(static_cast<S128>(v), bits);
  if (sign && (v >> (bits - 1) & 1) != 0) return static_cast<S128>(v) - (static_cast<S128>(1) << bits);
  return static_cast<S128>(v);
}
char reg(unsigned bits) { return bits == 16 ? 'h' : bits == 32 ? 'r' : 'l'; }
std::string op(const std::string& name, char d, const std::string& sources) {
  std::string text = name + " %" + d + "0";
  std::vector<std::string> names{std::string(1, d) + "0"};
  for (std::size_t k = 0; k < sources.size(); ++k)
    text += std::string(", %") + sources[k] + std::to_string(k + 1);
  return text + ";";
}
// Registers %D0, %A1, %B2, ... of the classes that the letters say.
template <class Check>
void check(const std::string& name, char d, const std::string& sources, Check f) {
  std::vector<std::string> names{std::string(1, d) + "0"};
  std::vector<std::vector<U64>> values;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    names.push_back(std::string(1, sources[k]) + std::to_string(k + 1));
    values.push_back(integers(11 * k + name.size(), kCount));
  }
  each_lane(op(name, d, sources), names, values, [&](U64 a, U64 b, U64 c, U64 e) { return f(a, b, c, e); });
}

}  // namespace

TEST_CASE("integer arithmetic of every type wraps as the ISA says", "[emulator]") {
  for (const IntegerType& t : kTypes) {
    const char r = reg(t.bits);
    const std::string rr(2, r), rrr(3, r), type = std::string(".") + t.name;
    const auto n = [&](U64 v) { return number(v, t.bits, t.sign); };
    const auto cut = [&](S128 v) { return low(v, t.bits); };
    // The whole product of 64-bit operands needs the unsigned type.
    const auto product = [&](U64 a, U64 b) {
      return static_cast<S128>(static_cast<U128>(n(a)) * static_cast<U128>(n(b)));
    };
    const auto upper = [&](U64 a, U64 b) {
      return t.sign ? product(a, b) >> t.bits : static_cast<S128>(static_cast<U128>(product(a, b)) >> t.bits);
    };
    check("add" + type, r, rr, [&](U64 a, U64 b, U64, U64) { return cut(n(a) + n(b)); });
    check("sub" + type, r, rr, [&](U64 a, U64 b, U64, U64) { return cut(n(a) - n(b)); });
    check("mul.lo" + type, r, rr, [&](U64 a, U64 b, U64, U64) { return cut(product(a, b)); });
    check("mul.hi" + type, r, rr, [&](U64 a, U64 b, U64, U64) { return cut(upper(a, b)); });
    check("mad.lo" + type, r, rrr, [&](U64 a, U64 b, U64 c, U64) { return cut(product(a, b) + n(c)); });
    check("mad.hi" + type, r, rrr, [&](U64 a, U64 b, U64 c, U64) { return cut(upper(a, b) + n(c)); });
    check("div" + type, r, rr, [&](U64 a, U64 b, U64, U64) { return cut(n(b) == 0 ? -1 : n(a) / n(b)); });
    check("rem" + type, r, rr, [&](U64 a, U64 b, U64, U64) { return cut(n(b) == 0 ? -1 : n(a) % n(b)); });
    check("min" + type, r, rr, [&](U64 a, U64 b, U64, U64) { return cut(std::min(n(a), n(b))); });
    check("max" + type, r, rr, [&](U64 a, U64 b, U64, U64) { return cut(std::max(n(a), n(b))); });
    check("sad" + type, r, rrr,
          [&](U64 a, U64 b, U64 c, U64) { return cut(n(c) + (n(a) < n(b) ? n(b) - n(a) : n(a) - n(b))); });
    if (t.sign) {
      check("abs" + type, r, std::string(1, r),
            [&](U64 a, U64, U64, U64) { return cut(n(a) < 0 ? -n(a) : n(a)); });
      check("neg" + type, r, std::string(1, r), [&](U64 a, U64, U64, U64) { return cut(-n(a)); });
    }
    if (t.bits < 64) {
      const char wide = reg(2 * t.bits);
      check("mul.wide" + type, wide, rr,
            [&](U64 a, U64 b, U64, U64) { return low(n(a) * n(b), 2 * t.bits); });
      check("mad.wide" + type, wide, rr + wide,
            [&](U64 a, U64 b, U64 c, U64) { return low(n(a) * n(b) + static_cast<S128>(c), 2 * t.bits); });
    }
  }
}

TEST_CASE("saturating and 24-bit arithmetic", "[emulator]") {
  const auto s = [](U64 v) { return number(v, 32, true); };
  const auto clamp = [](S128 v) { return low(std::clamp<S128>(v, INT32_MIN, INT32_MAX), 32); };
  check("add.sat.s32", 'r', "rr", [&](U64 a, U64 b, U64, U64) { return clamp(s(a) + s(b)); });
  check("sub.sat.s32", 'r', "rr", [&](U64 a, U64 b, U64, U64) { return clamp(s(a) - s(b)); });
  check("mad.hi.sat.s32", 'r', "rrr",
        [&](U64 a, U64 b, U64 c, U64) { return clamp((s(a) * s(b) >> 32) + s(c)); });
  check("min.relu.s32", 'r', "rr",
        [&](U64 a, U64 b, U64, U64) { return low(std::max<S128>(std::min(s(a), s(b)), 0), 32); });
  check("max.relu.s32", 'r', "rr",
        [&](U64 a, U64 b, U64, U64) { return low(std::max<S128>(std::max(s(a), s(b)), 0), 32); });
  for (const bool sign : {false, true}) {
    const std::string type = sign ? ".s32" : ".u32";
    const auto n = [&](U64 v) { return number(v, 24, sign); };
    check("mul24.lo" + type, 'r', "rr", [&](U64 a, U64 b, U64, U64) { return low(n(a) * n(b), 32); });
    check("mul24.hi" + type, 'r', "rr", [&](U64 a, U64 b, U64, U64) { return low(n(a) * n(b) >> 16, 32); });
    check("mad24.lo" + type, 'r', "rrr",
          [&](U64 a, U64 b, U64 c, U64) { return low(n(a) * n(b) + static_cast<S128>(c), 32); });
    check("mad24.hi" + type, 'r', "rrr",
          [&](U64 a, U64 b, U64 c, U64) { return low((n(a) * n(b) >> 16) + static_cast<S128>(c), 32); });
  }
  check("mad24.hi.sat.s32", 'r', "rrr", [&](U64 a, U64 b, U64 c, U64) {
    return clamp(number(low(number(a, 24, true) * number(b, 24, true) >> 16, 32), 32, true) + s(c));
  });
}

TEST_CASE("two 16-bit halves", "[emulator]") {
  const auto both = [](U64 a, U64 b, bool sign, auto f) {
    return low(f(number(a, 16, sign), number(b, 16, sign)), 16) |
           low(f(number(a >> 16, 16, sign), number(b >> 16, 16, sign)), 16) << 16;
  };
  for (const bool sign : {false, true}) {
    const std::string type = sign ? ".s16x2" : ".u16x2";
    check("add" + type, 'r', "rr",
          [&](U64 a, U64 b, U64, U64) { return both(a, b, sign, [](S128 x, S128 y) { return x + y; }); });
    check("sub" + type, 'r', "rr",
          [&](U64 a, U64 b, U64, U64) { return both(a, b, sign, [](S128 x, S128 y) { return x - y; }); });
    check("min" + type, 'r', "rr", [&](U64 a, U64 b, U64, U64) {
      return both(a, b, sign, [](S128 x, S128 y) { return std::min(x, y); });
    });
    check("max" + type, 'r', "rr", [&](U64 a, U64 b, U64, U64) {
      return both(a, b, sign, [](S128 x, S128 y) { return std::max(x, y); });
    });
  }
  check("max.relu.s16x2", 'r', "rr", [&](U64 a, U64 b, U64, U64) {
    return both(a, b, true, [](S128 x, S128 y) { return std::max<S128>(std::max(x, y), 0); });
  });
  check("min.relu.s16x2", 'r', "rr", [&](U64 a, U64 b, U64, U64) {
    return both(a, b, true, [](S128 x, S128 y) { return std::max<S128>(std::min(x, y), 0); });
  });
}

TEST_CASE("dot products of bytes", "[emulator]") {
  for (const bool sa : {false, true}) {
    for (const bool sb : {false, true}) {
      const std::string types = std::string(sa ? ".s32" : ".u32") + (sb ? ".s32" : ".u32");
      check("dp4a" + types, 'r', "rrr", [&](U64 a, U64 b, U64 c, U64) {
        S128 sum = static_cast<S128>(c);
        for (unsigned k = 0; k < 4; ++k) sum += number(a >> 8 * k, 8, sa) * number(b >> 8 * k, 8, sb);
        return low(sum, 32);
      });
      for (const unsigned part : {0u, 1u}) {
        check(std::string("dp2a.") + (part != 0 ? "hi" : "lo") + types, 'r', "rrr",
              [&](U64 a, U64 b, U64 c, U64) {
                S128 sum = static_cast<S128>(c);
                for (unsigned k = 0; k < 2; ++k) {
                  sum += number(a >> 16 * k, 16, sa) * number(b >> 8 * (k + 2 * part), 8, sb);
                }
                return low(sum, 32);
              });
      }
    }
  }
}

TEST_CASE("logic and shifts", "[emulator]") {
  for (const unsigned bits : {16u, 32u, 64u}) {
    const char r = reg(bits);
    const std::string one(1, r), two(2, r), shift = one + "r", type = ".b" + std::to_string(bits);
    const auto cut = [&](U64 v) { return low(static_cast<S128>(v), bits); };
    check("and" + type, r, two, [&](U64 a, U64 b, U64, U64) { return cut(a & b); });
    check("or" + type, r, two, [&](U64 a, U64 b, U64, U64) { return cut(a | b); });
    check("xor" + type, r, two, [&](U64 a, U64 b, U64, U64) { return cut(a ^ b); });
    check("not" + type, r, one, [&](U64 a, U64, U64, U64) { return cut(~a); });
    check("cnot" + type, r, one, [&](U64 a, U64, U64, U64) { return U64{cut(a) == 0}; });
    const auto amount = [&](U64 n) { return std::min<U64>(low(static_cast<S128>(n), 32), bits); };
    check("shl" + type, r, shift,
          [&](U64 a, U64 n, U64, U64) { return amount(n) == bits ? 0 : cut(a << amount(n)); });
    for (const char* kind : {".b", ".u"}) {
      check(std::string("shr") + kind + std::to_string(bits), r, shift,
            [&](U64 a, U64 n, U64, U64) { return amount(n) == bits ? 0 : cut(a) >> amount(n); });
    }
    check("shr.s" + std::to_string(bits), r, shift,
          [&](U64 a, U64 n, U64, U64) { return low(number(a, bits, true) >> amount(n), bits); });
  }
  for (const bool clamp : {false, true}) {
    const std::string mode = clamp ? ".clamp" : ".wrap";
    const auto n = [&](U64 c) { return clamp ? std::min<U64>(low(static_cast<S128>(c), 32), 32) : c & 31; };
    const auto pair = [](U64 a, U64 b) { return (a & 0xffffffff) | b << 32; };
    check("shf.l" + mode + ".b32", 'r', "rrr", [&](U64 a, U64 b, U64 c, U64) {
      return static_cast<U64>(static_cast<U32>(static_cast<U128>(pair(a, b)) << n(c) >> 32));
    });
    check("shf.r" + mode + ".b32", 'r', "rrr",
          [&](U64 a, U64 b, U64 c, U64) { return U64{static_cast<U32>(pair(a, b) >> n(c))}; });
  }
  for (const unsigned table : {0u, 1u, 0x80u, 0x96u, 0xe8u, 0xcau, 0x3fu, 0xffu, 0x1bu}) {
    const auto values = integers(table, kCount), others = integers(table + 1, kCount),
               thirds = integers(table + 2, kCount);
    each_lane("lop3.b32 %r0, %r1, %r2, %r3, " + std::to_string(table) + ";", {"r0", "r1", "r2", "r3"},
              {values, others, thirds}, [&](U64 a, U64 b, U64 c, U64) {
                U64 r = 0;
                for (unsigned i = 0; i < 32; ++i) {
                  const unsigned row = (a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1);
                  r |= U64{table >> row & 1} << i;
                }
                return r;
              });
  }
}

TEST_CASE("lop3 with a predicate", "[emulator]") {
  for (const bool conjunction : {false, true}) {
    StraightLine code(std::string("lop3.") + (conjunction ? "and" : "or") +
                      ".b32 %r0|%p0, %r1, %r2, %r3, 0x80, %p1;");
    for (unsigned i = 0; i < 32; ++i) {
      code.set("r1", i, i % 2);
      code.set("r2", i, ~U64{0});
      code.set("r3", i, ~U64{0});
      code.set("p1", i, i / 2 % 2);
    }
    code.undefined("r1") = 0x0000ff00;
    code.undefined("p1") = 0x00ff0000;
    REQUIRE(code.run() == Flow::next);
    for (unsigned i = 0; i < 32; ++i) {
      const bool some = i % 2 != 0, q = i / 2 % 2 != 0;
      CHECK(code.get("r0", i) == i % 2);
      CHECK(code.get("p0", i) == U64{conjunction ? some && q : some || q});
      const bool us = i >= 8 && i < 16, uq = i >= 16 && i < 24;
      const bool decides = conjunction ? (!us && !some) || (!uq && !q) : (!us && some) || (!uq && q);
      CHECK((code.undefined("p0") >> i & 1) == unsigned{(us || uq) && !decides});
    }
    CHECK(code.undefined("r0") == 0x0000ff00);
  }
  StraightLine sink("lop3.or.b32 _|%p0, %r1, %r2, %r3, 0xfe, %p1;");
  sink.set("r1", 3, 1);
  REQUIRE(sink.run() == Flow::next);
  CHECK(sink.get("p0", 3) == 1);
}

TEST_CASE("bits counted, found and moved", "[emulator]") {
  for (const unsigned bits : {32u, 64u}) {
    const char r = reg(bits);
    const std::string one(1, r), n = std::to_string(bits);
    const auto bit = [](U64 v, unsigned i) { return v >> i & 1; };
    check("popc.b" + n, 'r', one, [&](U64 a, U64, U64, U64) {
      U64 count = 0;
      for (unsigned i = 0; i < bits; ++i) count += bit(a, i);
      return count;
    });
    check("clz.b" + n, 'r', one, [&](U64 a, U64, U64, U64) {
      U64 count = 0;
      while (count < bits && bit(a, static_cast<unsigned>(bits - 1 - count)) == 0) ++count;
      return count;
    });
    check("brev.b" + n, r, one, [&](U64 a, U64, U64, U64) {
      U64 d = 0;
      for (unsigned i = 0; i < bits; ++i) d |= bit(a, bits - 1 - i) << i;
      return d;
    });
    for (const bool sign : {false, true}) {
      const std::string type = std::string(sign ? ".s" : ".u") + n;
      for (const bool shift : {false, true}) {
        check(std::string("bfind") + (shift ? ".shiftamt" : "") + type, 'r', one,
              [&](U64 a, U64, U64, U64) -> U64 {
                if (sign && bit(a, bits - 1) != 0) a = ~a;
                for (unsigned i = bits; i-- > 0;) {
                  if (bit(a, i) != 0) return shift ? bits - 1 - i : i;
                }
                return 0xffffffff;
              });
      }
      check("bfe" + type, r, one + "rr", [&](U64 a, U64 b, U64 c, U64) {
        const unsigned pos = b & 0xff, len = c & 0xff;
        const U64 fill = !sign || len == 0 ? 0 : bit(a, std::min(pos + len - 1, bits - 1));
        U64 d = 0;
        for (unsigned i = 0; i < bits; ++i) d |= (i < len && pos + i < bits ? bit(a, pos + i) : fill) << i;
        return d;
      });
    }
    check("bfi.b" + n, r, one + one + "rr", [&](U64 a, U64 b, U64 c, U64 e) {
      const unsigned pos = c & 0xff, len = e & 0xff;
      U64 f = low(static_cast<S128>(b), bits);
      for (unsigned i = 0; i < len && pos + i < bits; ++i)
        f = (f & ~(U64{1} << (pos + i))) | bit(a, i) << (pos + i);
      return f;
    });
  }
  for (const bool clamp : {false, true}) {
    const std::string mode = clamp ? ".clamp" : ".wrap";
    check("bmsk" + mode + ".b32", 'r', "rr", [&](U64 a, U64 b, U64, U64) {
      const U64 from = low(static_cast<S128>(a), 32), n = low(static_cast<S128>(b), 32);
      U64 d = 0;
      for (U64 i = 0; i < 32; ++i) {
        const bool inside =
            clamp ? i >= from && i - from < n : i >= (from & 31) && i - (from & 31) < (n & 31);
        d |= U64{inside} << i;
      }
      return d;
    });
    for (const bool sign : {false, true}) {
      check("szext" + mode + (sign ? ".s32" : ".u32"), 'r', "rr", [&](U64 a, U64 b, U64, U64) {
        const U64 n = low(static_cast<S128>(b), 32);
        if (clamp && n >= 32) return low(static_cast<S128>(a), 32);
        const unsigned width = n & 31;
        return width == 0 ? 0 : low(number(a, width, sign), 32);
      });
    }
  }
  each_lane("fns.b32 %r0, %r1, %r2, %r3;", {"r0", "r1", "r2", "r3"},
            {integers(1, kCount),
             [] {
               auto v = integers(2, kCount);
               for (auto& x : v) x &= 31;
               return v;
             }(),
             [] {
               auto v = integers(3, kCount);
               for (auto& x : v) x = x % 9 - 4;
               return v;
             }()},
            [](U64 mask, U64 base, U64 offset, U64) -> U64 {
              const int n = static_cast<int>(offset);
              if (n == 0) return (mask >> base & 1) != 0 ? base : 0xffffffff;
              int left = std::abs(n);
              for (int i = static_cast<int>(base); i >= 0 && i<32; i += n> 0 ? 1 : -1) {
                if ((mask >> i & 1) != 0 && --left == 0) return static_cast<U64>(i);
              }
              return 0xffffffff;
            });
}

TEST_CASE("carries chain through the condition code", "[emulator]") {
  // 128-bit sums, differences and products out of 32- and 64-bit pieces.
  const auto a = integers(5, 256), b = integers(6, 256), c = integers(7, 256), e = integers(8, 256);
  StraightLine code(
      "add.cc.u64 %l4, %l0, %l2; addc.u64 %l5, %l1, %l3;"
      "sub.cc.s64 %l6, %l0, %l2; subc.s64 %l7, %l1, %l3;"
      "mad.lo.cc.u32 %r4, %r0, %r1, %r2; madc.hi.u32 %r5, %r0, %r1, %r3;"
      "add.cc.u32 %r6, %r0, %r1; addc.cc.u32 %r7, %r2, %r3; addc.u32 %r0, 0, 0;");
  for (std::size_t base = 0; base < a.size(); base += 32) {
    for (unsigned i = 0; i < 32; ++i) {
      code.set("l0", i, a[base + i]);
      code.set("l1", i, b[base + i]);
      code.set("l2", i, c[base + i]);
      code.set("l3", i, e[base + i]);
      code.set("r0", i, a[base + i]);
      code.set("r1", i, b[base + i]);
      code.set("r2", i, c[base + i]);
      code.set("r3", i, e[base + i]);
    }
    REQUIRE(code.run() == Flow::next);
    for (unsigned i = 0; i < 32; ++i) {
      const U64 x = a[base + i], y = b[base + i], z = c[base + i], w = e[base + i];
      const U128 left = x | static_cast<U128>(y) << 64, right = z | static_cast<U128>(w) << 64;
      CHECK((code.get("l4", i) | static_cast<U128>(code.get("l5", i)) << 64) == left + right);
      CHECK((code.get("l6", i) | static_cast<U128>(code.get("l7", i)) << 64) == left - right);
      const U64 wide = U64{static_cast<U32>(x)} * static_cast<U32>(y) + (U64{static_cast<U32>(z)} | w << 32);
      CHECK((code.get("r4", i) | code.get("r5", i) << 32) == wide);
      const U128 sum = U128{static_cast<U32>(x) | z << 32} + (static_cast<U32>(y) | w << 32);
      CHECK((code.get("r6", i) | code.get("r7", i) << 32) == static_cast<U64>(sum));
      CHECK(code.get("r0", i) == static_cast<U64>(sum >> 64));
    }
  }
}

TEST_CASE("what was never written spreads through arithmetic, the condition code and predicates",
          "[emulator]") {
  StraightLine code("add.cc.u32 %r2, %r0, %r1; addc.u32 %r3, 1, 1; add.u32 %r4, %r1, %r1;");
  code.undefined("r0") = 0xf0;
  code.undefined("r4") = ~0u;
  REQUIRE(code.run(0xff) == Flow::next);
  CHECK(code.undefined("r2") == 0xf0);
  CHECK(code.undefined("r3") == 0xf0);
  CHECK(code.undefined("r4") == 0xffffff00);

  StraightLine logic(
      "and.pred %p2, %p0, %p1; or.pred %p3, %p0, %p1; xor.pred %p4, %p0, %p1; not.pred %p5, %p0;");
  logic.pred("p0") = 0b0011;
  logic.undefined("p0") = 0b1111;
  logic.pred("p1") = 0b0101;
  REQUIRE(logic.run(0xff) == Flow::next);
  CHECK((logic.undefined("p2") & 0xf) == 0b0101);  // defined false decides
  CHECK((logic.undefined("p3") & 0xf) == 0b1010);  // defined true decides
  CHECK((logic.undefined("p4") & 0xf) == 0b1111);
  CHECK((logic.undefined("p5") & 0xf) == 0b1111);
  CHECK((logic.pred("p3") & 0xf) == 0b0111);
  CHECK((logic.pred("p4") & 0xf) == 0b0110);
  CHECK((logic.pred("p5") & 0xff) == 0b11111100);
}

TEST_CASE("guards and immediates", "[emulator]") {
  StraightLine code(
      "mov.b32 %r0, 7; @%p0 add.s32 %r0, %r1, -5; @!%p0 mul.lo.u32 %r0, %r1, 3; shl.b64 %l0, %l1, 40;");
  for (unsigned i = 0; i < 32; ++i) {
    code.set("r1", i, i);
    code.set("l1", i, i);
  }
  code.pred("p0") = 0x00ff00ff;
  REQUIRE(code.run() == Flow::next);
  for (unsigned i = 0; i < 32; ++i) {
    CHECK(code.get("r0", i) == ((0x00ff00ffu >> i & 1) != 0 ? static_cast<U32>(i - 5) : 3 * i));
    CHECK(code.get("l0", i) == U64{i} << 40);
  }
}

TEST_CASE("forms that do not exist are refused", "[emulator]") {
  CHECK(decode_error("add.sat.u32 %r0, %r1, %r2;") != "");
  CHECK(decode_error("mul.u32 %r0, %r1, %r2;") != "");
  CHECK(decode_error("mul.wide.u64 %l0, %l1, %l2;") != "");
  CHECK(decode_error("mad.lo.sat.s32 %r0, %r1, %r2, %r3;") != "");
  CHECK(decode_error("neg.u32 %r0, %r1;") != "");
  CHECK(decode_error("and.u32 %r0, %r1, %r2;") != "");
  CHECK(decode_error("popc.b16 %r0, %h1;") != "");
  CHECK(decode_error("lop3.b32 %r0, %r1, %r2, %r3, 256;") != "");
  CHECK(decode_error("add.foo.s32 %r0, %r1, %r2;") != "");
  CHECK(decode_error("add.s32 %r0, %r1;") != "");
  CHECK(decode_error("addc.lo.u32 %r0, %r1, %r2;") != "");
}
