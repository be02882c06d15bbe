// setp and set.
#include "straight_line.hpp"

#include <functional>

using namespace scalar;

namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;
constexpr std::size_t kCount = 512;

struct Comparison {
  const char* name;
  bool less, equal, greater, unordered;  // where it holds
};
const Comparison kOrdered[] = {{"eq", false, true, false, false}, {"ne", true, false, true, false},
                               {"lt", true, false, false, false}, {"le", true, true, false, false},
                               {"gt", false, false, true, false}, {"ge", false, true, true, false}};
const Comparison kUnordered[] = {{"equ", false, true, false, true}, {"neu", true, false, true, true},
                                 {"ltu", true, false, false, true}, {"leu", true, true, false, true},
                                 {"gtu", false, false, true, true}, {"geu", false, true, true, true},
                                 {"num", true, true, true, false},  {"nan", false, false, false, true}};
template <class T>
bool holds(const Comparison& c, T a, T b) {
  if (a < b) return c.less;
  if (a == b) return c.equal;
  if (a > b) return c.greater;
  return c.unordered;
}
double f16(U64 bits, bool ftz) {
  const std::uint32_t e = bits >> 10 & 31, m = bits & 1023;
  double v = e == 31  ? (m != 0 ? NAN : INFINITY)
             : e != 0 ? std::ldexp(1024.0 + m, static_cast<int>(e) - 25)
                      : std::ldexp(m, -24);
  if (ftz && e == 0) v = 0;
  return (bits & 0x8000) != 0 ? -v : v;
}
double bf16(U64 bits) { return std::bit_cast<float>(static_cast<U32>(bits & 0xffff) << 16); }
double f32(U64 bits, bool ftz) {
  U32 v = static_cast<U32>(bits);
  if (ftz && (v & 0x7f800000) == 0) v &= 0x80000000;
  return std::bit_cast<float>(v);
}

}  // namespace

TEST_CASE("setp on integers", "[emulator]") {
  struct Type {
    const char* name;
    char reg;
    unsigned bits;
    bool sign;
  };
  for (const Type t : {Type{"u16", 'h', 16, false}, Type{"s16", 'h', 16, true}, Type{"u32", 'r', 32, false},
                       Type{"s32", 'r', 32, true}, Type{"u64", 'l', 64, false}, Type{"s64", 'l', 64, true}}) {
    const auto n = [&](U64 v) {
      const unsigned up = 64 - t.bits;
      return t.sign ? static_cast<__int128>(static_cast<std::int64_t>(v << up) >> up)
                    : static_cast<__int128>(v << up >> up);
    };
    const std::string r(1, t.reg);
    for (const Comparison& c : kOrdered) {
      each_lane(std::string("setp.") + c.name + "." + t.name + " %p0, %" + r + "1, %" + r + "2;",
                {"p0", r + "1", r + "2"}, {integers(1, kCount), integers(1 + (t.bits == 16), kCount)},
                [&](U64 a, U64 b, U64, U64) { return U64{holds(c, n(a), n(b))}; });
    }
  }
  const std::pair<const char*, Comparison> unsigned_names[] = {
      {"lo", kOrdered[2]}, {"ls", kOrdered[3]}, {"hi", kOrdered[4]}, {"hs", kOrdered[5]}};
  for (const auto& [name, c] : unsigned_names) {
    const Comparison how = c;
    each_lane(std::string("setp.") + name + ".u32 %p0, %r1, %r2;", {"p0", "r1", "r2"},
              {integers(1, kCount), integers(2, kCount)}, [&](U64 a, U64 b, U64, U64) {
                return U64{holds(how, static_cast<U32>(a), static_cast<U32>(b))};
              });
  }
  each_lane("setp.ne.b64 %p0, %l1, 0;", {"p0", "l1"}, {integers(1, kCount)},
            [](U64 a, U64, U64, U64) { return U64{a != 0}; });
}

TEST_CASE("setp on floats", "[emulator]") {
  std::vector<Comparison> all(std::begin(kOrdered), std::end(kOrdered));
  all.insert(all.end(), std::begin(kUnordered), std::end(kUnordered));
  for (const Comparison& c : all) {
    const std::string name = c.name;
    for (const bool ftz : {false, true}) {
      const std::string mode = ftz ? ".ftz" : "";
      each_lane("setp." + name + mode + ".f32 %p0, %r1, %r2;", {"p0", "r1", "r2"},
                {floats(1, kCount), floats(2, kCount)},
                [&](U64 a, U64 b, U64, U64) { return U64{holds(c, f32(a, ftz), f32(b, ftz))}; });
      each_lane("setp." + name + mode + ".f16 %p0, %h1, %h2;", {"p0", "h1", "h2"},
                {halves(1, kCount), halves(2, kCount)},
                [&](U64 a, U64 b, U64, U64) { return U64{holds(c, f16(a, ftz), f16(b, ftz))}; });
    }
    each_lane("setp." + name + ".f64 %p0, %l1, %l2;", {"p0", "l1", "l2"},
              {doubles(1, kCount), doubles(2, kCount)}, [&](U64 a, U64 b, U64, U64) {
                return U64{holds(c, std::bit_cast<double>(a), std::bit_cast<double>(b))};
              });
    each_lane("setp." + name + ".bf16 %p0, %h1, %h2;", {"p0", "h1", "h2"},
              {halves(1, kCount), halves(2, kCount)},
              [&](U64 a, U64 b, U64, U64) { return U64{holds(c, bf16(a), bf16(b))}; });
    each_lane("setp." + name + ".f16x2 %p0|%p1, %r1, %r2;", {"p0", "r1", "r2"},
              {halves(1, kCount), halves(2, kCount)},
              [&](U64 a, U64 b, U64, U64) { return U64{holds(c, f16(a, false), f16(b, false))}; });
    each_lane("setp." + name + ".bf16x2 %p1|%p0, %r1, %r2;", {"p0", "r1", "r2"},
              {halves(1, kCount), halves(2, kCount)},
              [&](U64 a, U64 b, U64, U64) { return U64{holds(c, bf16(a >> 16), bf16(b >> 16))}; });
  }
}

TEST_CASE("setp combines with a predicate and gives the complement too", "[emulator]") {
  const std::pair<const char*, std::function<bool(bool, bool)>> kinds[] = {
      {"and", [](bool t, bool c) { return t && c; }},
      {"or", [](bool t, bool c) { return t || c; }},
      {"xor", [](bool t, bool c) { return t != c; }}};
  for (const auto& [name, f] : kinds) {
    StraightLine code(std::string("setp.lt.") + name + ".s32 %p0|%p1, %r1, %r2, %p2; setp.ge." + name +
                      ".f32 %p3|_, %r1, %r2, !%p2;");
    for (unsigned i = 0; i < 32; ++i) {
      code.set("r1", i, i % 3);
      code.set("r2", i, 1);
      code.set("p2", i, i / 4 % 2);
    }
    REQUIRE(code.run() == Flow::next);
    for (unsigned i = 0; i < 32; ++i) {
      const bool t = i % 3 < 1, c = i / 4 % 2 != 0;
      CHECK(code.get("p0", i) == U64{f(t, c)});
      CHECK(code.get("p1", i) == U64{f(!t, c)});
      CHECK(code.get("p3", i) == U64{f(!t, !c)});
    }
  }
  // What decides makes it defined.
  StraightLine code("setp.eq.and.s32 %p0, %r1, %r2, %p2;");
  for (unsigned i = 0; i < 32; ++i) {
    code.set("r1", i, i % 2);
    code.set("r2", i, 1);
  }
  code.undefined("r1") = 0x0000ffff;
  code.pred("p2") = 0xff00ff00;
  code.undefined("p2") = 0x00ff0000;
  REQUIRE(code.run() == Flow::next);
  CHECK(code.undefined("p0") == (0x0000ff00u | (0x00ff0000u & 0xaaaaaaaau)));
}

TEST_CASE("set writes patterns", "[emulator]") {
  each_lane("set.lt.u32.s32 %r0, %r1, %r2;", {"r0", "r1", "r2"}, {integers(1, kCount), integers(2, kCount)},
            [](U64 a, U64 b, U64, U64) {
              return U64{static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? 0xffffffff : 0};
            });
  each_lane("set.geu.f32.f32 %r0, %r1, %r2;", {"r0", "r1", "r2"}, {floats(1, kCount), floats(2, kCount)},
            [](U64 a, U64 b, U64, U64) { return U64{!(f32(a, false) < f32(b, false)) ? 0x3f800000u : 0}; });
  each_lane("set.ne.or.s32.u64 %r0, %l1, %l2, %p3;", {"r0", "l1", "l2", "p3"},
            {integers(1, kCount), integers(1, kCount), integers(3, kCount)},
            [](U64 a, U64 b, U64 c, U64) { return U64{a != b || (c & 1) != 0 ? 0xffffffff : 0}; });
  each_lane("set.le.f16.f16 %h0, %h1, %h2;", {"h0", "h1", "h2"}, {halves(1, kCount), halves(2, kCount)},
            [](U64 a, U64 b, U64, U64) { return U64{f16(a, false) <= f16(b, false) ? 0x3c00u : 0}; });
  each_lane("set.gt.ftz.f16x2.f16x2 %r0, %r1, %r2;", {"r0", "r1", "r2"},
            {halves(1, kCount), halves(2, kCount)}, [](U64 a, U64 b, U64, U64) {
              return U64{(f16(a, true) > f16(b, true) ? 0x3c00u : 0) |
                         (f16(a >> 16, true) > f16(b >> 16, true) ? 0x3c000000u : 0)};
            });
  each_lane("set.nan.u32.bf16x2 %r0, %r1, %r2;", {"r0", "r1", "r2"}, {halves(1, kCount), halves(2, kCount)},
            [](U64 a, U64 b, U64, U64) {
              const auto nan = [](U64 v) { return (v & 0x7fff) > 0x7f80; };
              return U64{(nan(a) || nan(b) ? 0xffffu : 0) | (nan(a >> 16) || nan(b >> 16) ? 0xffff0000u : 0)};
            });
}

TEST_CASE("comparisons that do not exist are refused", "[emulator]") {
  CHECK(decode_error("setp.lt.b32 %p0, %r1, %r2;") != "");
  CHECK(decode_error("setp.equ.s32 %p0, %r1, %r2;") != "");
  CHECK(decode_error("setp.s32 %p0, %r1, %r2;") != "");
  CHECK(decode_error("setp.eq.and.s32 %p0, %r1, %r2;") != "");
  CHECK(decode_error("set.eq.u64.s32 %l0, %r1, %r2;") != "");
  CHECK(decode_error("set.eq.f16x2.f16 %r0, %h1, %h2;") != "");
}
