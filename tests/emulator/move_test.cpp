// mov with its packings, selections, prmt.
#include "straight_line.hpp"

using namespace scalar;

namespace {
using U64 = std::uint64_t;
constexpr std::size_t kCount = 512;
}  // namespace

TEST_CASE("mov copies values of every width", "[emulator]") {
  each_lane("mov.b16 %h0, %h1;", {"h0", "h1"}, {integers(1, kCount)},
            [](U64 a, U64, U64, U64) { return a & 0xffff; });
  each_lane("mov.b32 %r0, %r1;", {"r0", "r1"}, {integers(2, kCount)},
            [](U64 a, U64, U64, U64) { return a & 0xffffffff; });
  each_lane("mov.b64 %l0, %l1;", {"l0", "l1"}, {integers(3, kCount)}, [](U64 a, U64, U64, U64) { return a; });
  each_lane("mov.pred %p0, %p1;", {"p0", "p1"}, {integers(4, kCount)},
            [](U64 a, U64, U64, U64) { return a & 1; });
  each_lane("mov.pred %p0, !%p1;", {"p0", "p1"}, {integers(4, kCount)},
            [](U64 a, U64, U64, U64) { return ~a & 1; });
  StraightLine code(
      "mov.u32 %r0, -3; mov.f32 %r1, 0f3F800000; mov.f32 %r2, 0.5; mov.b64 %l0, 0x123456789abcdef0;"
      "mov.b128 %q1, %q0; mov.pred %p0, 1; mov.pred %p1, 0;");
  code.set("q0", 4, 11, 22);
  REQUIRE(code.run() == Flow::next);
  CHECK(code.get("r0", 0) == 0xfffffffd);
  CHECK(code.get("r1", 31) == 0x3f800000);
  CHECK(code.get("r2", 9) == 0x3f000000);
  CHECK(code.get("l0", 5) == 0x123456789abcdef0);
  CHECK(code.get("q1", 4) == 11);
  CHECK(code.high("q1", 4) == 22);
  CHECK(code.pred("p0") == ~0u);
  CHECK(code.pred("p1") == 0);
}

TEST_CASE("mov packs and unpacks, low elements first", "[emulator]") {
  const auto v = integers(5, 5 * 32);
  StraightLine code(
      "mov.b32 %r4, {%h0, %h1}; mov.b64 %l4, {%r0, %r1}; mov.b64 %l5, {%h0, %h1, %h2, %h3}; mov.b128 %q0, "
      "{%l0, %l1};"
      "mov.b32 {%h4, %h5}, %r0; mov.b64 {%r5, %r6}, %l0; mov.b64 {_, %r7}, %l1; mov.b128 {%l6, %l7}, %q0;"
      "mov.b64 {%h6, _, %h7, _}, %l0; mov.b32 %r2, {%h0, %h1};");
  for (unsigned i = 0; i < 32; ++i) {
    code.set("h0", i, v[i]);
    code.set("h1", i, v[i + 32]);
    code.set("h2", i, v[i + 64]);
    code.set("h3", i, v[i + 96]);
    code.set("r0", i, v[i]);
    code.set("r1", i, v[i + 32]);
    code.set("l0", i, v[i]);
    code.set("l1", i, v[i + 32]);
    for (const char* name : {"r5", "r6", "r7", "h4", "l6"}) code.set(name, i, 77);
  }
  code.undefined("h1") = 0xf;
  code.undefined("l0") = 0xf0;
  const Mask mask = 0x7fffffff;
  REQUIRE(code.run(mask) == Flow::next);
  for (unsigned i = 0; i < 31; ++i) {
    const U64 a = v[i], b = v[i + 32], c = v[i + 64], d = v[i + 96];
    const auto h = [](U64 x) { return x & 0xffff; };
    CHECK(code.get("r4", i) == (h(a) | h(b) << 16));
    CHECK(code.get("l4", i) == ((a & 0xffffffff) | b << 32));
    CHECK(code.get("l5", i) == (h(a) | h(b) << 16 | h(c) << 32 | h(d) << 48));
    CHECK(code.get("q0", i) == a);
    CHECK(code.high("q0", i) == b);
    CHECK(code.get("h4", i) == h(a));
    CHECK(code.get("h5", i) == (a >> 16 & 0xffff));
    CHECK(code.get("r5", i) == (a & 0xffffffff));
    CHECK(code.get("r6", i) == a >> 32);
    CHECK(code.get("r7", i) == b >> 32);
    CHECK(code.get("l6", i) == a);
    CHECK(code.get("l7", i) == b);
    CHECK(code.get("h6", i) == h(a));
    CHECK(code.get("h7", i) == h(a >> 32));
  }
  CHECK(code.get("r5", 31) == 77);
  CHECK(code.get("r6", 31) == 77);
  CHECK(code.get("r7", 31) == 77);
  CHECK(code.get("h4", 31) == 77);
  CHECK(code.get("l6", 31) == 77);
  CHECK(code.undefined("r4") == 0xf);
  CHECK(code.undefined("r6") == 0xf0);
  CHECK(code.undefined("q0") == 0xf0);
  CHECK(code.undefined("l6") == 0xf0);
  CHECK(decode_error("mov.b64 {%r0, %r1}, {%r2, %r3};") != "");
}

TEST_CASE("a register is packed into and unpacked onto itself", "[emulator]") {
  StraightLine code("mov.b64 %l0, {%r0, %r1}; mov.b64 {%r1, %r0}, %l0;");
  for (unsigned i = 0; i < 32; ++i) {
    code.set("r0", i, i);
    code.set("r1", i, 100 + i);
  }
  REQUIRE(code.run() == Flow::next);
  for (unsigned i = 0; i < 32; ++i) {
    CHECK(code.get("r1", i) == i);
    CHECK(code.get("r0", i) == 100 + i);
  }
}

TEST_CASE("selections", "[emulator]") {
  each_lane("selp.b32 %r0, %r1, %r2, %p3;", {"r0", "r1", "r2", "p3"},
            {integers(1, kCount), integers(2, kCount), integers(3, kCount)},
            [](U64 a, U64 b, U64 p, U64) { return ((p & 1) != 0 ? a : b) & 0xffffffff; });
  each_lane("selp.f64 %l0, %l1, %l2, !%p3;", {"l0", "l1", "l2", "p3"},
            {integers(1, kCount), integers(2, kCount), integers(3, kCount)},
            [](U64 a, U64 b, U64 p, U64) { return (p & 1) == 0 ? a : b; });
  each_lane("selp.b16 %h0, %h1, 9, %p3;", {"h0", "h1", "h2", "p3"},
            {integers(1, kCount), integers(2, kCount), integers(3, kCount)},
            [](U64 a, U64, U64 p, U64) { return (p & 1) != 0 ? a & 0xffff : 9; });
  each_lane("slct.b32.s32 %r0, %r1, %r2, %r3;", {"r0", "r1", "r2", "r3"},
            {integers(1, kCount), integers(2, kCount), integers(3, kCount)}, [](U64 a, U64 b, U64 c, U64) {
              return (static_cast<std::int32_t>(c) >= 0 ? a : b) & 0xffffffff;
            });
  for (const bool ftz : {false, true}) {
    each_lane(std::string("slct") + (ftz ? ".ftz" : "") + ".u64.f32 %l0, %l1, %l2, %r3;",
              {"l0", "l1", "l2", "r3"}, {integers(1, kCount), integers(2, kCount), floats(3, kCount)},
              [=](U64 a, U64 b, U64 c, U64) {
                float f = std::bit_cast<float>(static_cast<std::uint32_t>(c));
                if (ftz && f > -0x1p-126f && f < 0x1p-126f) f = 0;
                return f >= 0 ? a : b;
              });
  }
  // Only what is chosen counts.
  StraightLine code("selp.b32 %r0, %r1, %r2, %p0;");
  code.pred("p0") = 0x0000ffff;
  code.undefined("r1") = 0x0ff00ff0;
  code.undefined("r2") = 0x00ff00ff;
  code.undefined("p0") = 0x80000001;
  REQUIRE(code.run() == Flow::next);
  CHECK(code.undefined("r0") == (0x00000ff0u | 0x00ff0000u | 0x80000001u));
}

TEST_CASE("prmt in all its modes", "[emulator]") {
  const auto a = integers(1, kCount), b = integers(2, kCount), c = integers(3, kCount);
  const auto byte = [](U64 x, U64 y, unsigned k) { return (k < 4 ? x >> 8 * k : y >> 8 * (k - 4)) & 0xff; };
  const auto general = [&](U64 x, U64 y, U64 s) {
    U64 d = 0;
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned n = s >> 4 * k & 15;
      U64 v = byte(x, y, n & 7);
      if ((n & 8) != 0) v = v >= 0x80 ? 0xff : 0;
      d |= v << 8 * k;
    }
    return d;
  };
  each_lane("prmt.b32 %r0, %r1, %r2, %r3;", {"r0", "r1", "r2", "r3"}, {a, b, c},
            [&](U64 x, U64 y, U64 s, U64) { return general(x, y, s); });
  for (const unsigned s : {0x3210u, 0x7531u, 0x0123u, 0x5410u, 0x7632u, 0x6543u, 0xb2a1u, 0x8888u}) {
    each_lane("prmt.b32 %r0, %r1, %r2, " + std::to_string(s) + ";", {"r0", "r1", "r2"}, {a, b},
              [&](U64 x, U64 y, U64, U64) { return general(x, y, s); });
  }
  using Select = unsigned (*)(unsigned mode, unsigned k);
  const std::pair<const char*, Select> modes[] = {
      {"f4e", [](unsigned s, unsigned k) { return s + k; }},
      {"b4e", [](unsigned s, unsigned k) { return (s + 8 - k) % 8; }},
      {"rc8", [](unsigned s, unsigned) { return s; }},
      {"ecl", [](unsigned s, unsigned k) { return k > s ? k : s; }},
      {"ecr", [](unsigned s, unsigned k) { return k < s ? k : s; }},
      {"rc16", [](unsigned s, unsigned k) { return 2 * (s & 1) + k % 2; }},
  };
  for (const auto& [name, select] : modes) {
    const Select pick = select;
    each_lane(std::string("prmt.b32.") + name + " %r0, %r1, %r2, %r3;", {"r0", "r1", "r2", "r3"}, {a, b, c},
              [&](U64 x, U64 y, U64 s, U64) {
                U64 d = 0;
                for (unsigned k = 0; k < 4; ++k) d |= byte(x, y, pick(s & 3, k)) << 8 * k;
                return d;
              });
  }
}

TEST_CASE("cache policies are taken in every form", "[emulator]") {
  CHECK(decode_error("createpolicy.fractional.L2::evict_first.b64 %l0, 1.0;") == "");
  CHECK(decode_error("createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %l0;") == "");
  CHECK(decode_error("createpolicy.cvt.L2.b64 %l0, 5;") == "");
  CHECK(decode_error("createpolicy.b64 %l0;") != "");
}
