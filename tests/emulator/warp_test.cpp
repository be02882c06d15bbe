// Collectives of a warp.
#include "straight_line.hpp"

using namespace scalar;

namespace {
using U32 = std::uint32_t;
using U64 = std::uint64_t;

void number_lanes(StraightLine& code) {
  for (unsigned i = 0; i < 32; ++i) code.set("r1", i, 1000 + i);
}
}  // namespace

TEST_CASE("shuffles within segments", "[emulator]") {
  struct Mode {
    const char* name;
    int kind;
  };
  for (const Mode mode : {Mode{"up", 0}, Mode{"down", 1}, Mode{"bfly", 2}, Mode{"idx", 3}}) {
    for (const unsigned width : {2u, 8u, 32u}) {
      for (const unsigned n : {0u, 1u, 3u, 7u, 16u, 31u}) {
        const unsigned c = (32 - width) << 8 | (mode.kind == 0 ? 0 : 31);
        StraightLine code(std::string("shfl.sync.") + mode.name + ".b32 %r0|%p0, %r1, " + std::to_string(n) +
                          ", " + std::to_string(c) + ", -1;");
        number_lanes(code);
        REQUIRE(code.run() == Flow::next);
        for (int lane = 0; lane < 32; ++lane) {
          const int w = static_cast<int>(width), first = lane / w * w, last = first + w - 1,
                    k = static_cast<int>(n);
          int from = 0;
          bool ok = true;
          switch (mode.kind) {
            case 0:
              from = lane - k;
              ok = from >= first;
              break;
            case 1:
              from = lane + k;
              ok = from <= last;
              break;
            case 2:
              from = lane ^ k;
              ok = from <= last;
              break;  // a lower segment may be read
            default:
              from = first + k % w;
              ok = true;
          }
          if (!ok) from = lane;
          CHECK(code.get("r0", static_cast<unsigned>(lane)) == static_cast<U64>(1000 + from));
          CHECK(code.get("p0", static_cast<unsigned>(lane)) == U64{ok});
        }
      }
    }
  }
}

TEST_CASE("a shuffle reads from lanes that execute it, else nothing is known", "[emulator]") {
  StraightLine code("shfl.sync.down.b32 %r0, %r1, 1, 31, %r2;");
  number_lanes(code);
  for (unsigned i = 0; i < 32; ++i) code.set("r2", i, 0xff);
  code.undefined("r1") = 1u << 3;
  REQUIRE(code.run(0xff) == Flow::next);
  for (unsigned i = 0; i < 7; ++i) CHECK(code.get("r0", i) == 1001 + i);
  CHECK((code.undefined("r0") & 0xff) == (1u << 2 | 1u << 7));
  CHECK(code.get("r0", 8) == 0xcdcdcdcd);
}

TEST_CASE("lanes of several masks at one instruction are groups of their own", "[emulator]") {
  StraightLine code("shfl.sync.idx.b32 %r0, %r1, %r3, 31, %r2; redux.sync.add.u32 %r4, %r1, %r2;");
  number_lanes(code);
  for (unsigned i = 0; i < 32; ++i) {
    code.set("r2", i, i < 16 ? 0xffff : 0xffff0000);
    code.set("r3", i, i < 16 ? 5 : 20);
  }
  code.set("r3", 6, 25);  // of the other group
  REQUIRE(code.run() == Flow::next);
  for (unsigned i = 0; i < 32; ++i) {
    if (i != 6) CHECK(code.get("r0", i) == (i < 16 ? 1005u : 1020u));
    CHECK(code.get("r4", i) == (i < 16 ? 16000u + 120 : 16000u + 376));
  }
  CHECK(code.undefined("r0") == 1u << 6);
}

TEST_CASE("a member mask must hold the thread and is waited for", "[emulator]") {
  StraightLine lacks("shfl.sync.idx.b32 %r0, %r1, 0, 31, 0xfffffffe;");
  REQUIRE(lacks.run() == Flow::stop);
  REQUIRE(lacks.fault);
  CHECK(lacks.fault->kind == FaultKind::partial_collective);
  CHECK(lacks.fault->site.lane == 0);
  StraightLine waits("vote.sync.ballot.b32 %r0, %p0, 0xffff;");
  CHECK(waits.run(0xff) == Flow::again);
  StraightLine unknown("redux.sync.or.b32 %r0, %r1, %r2;");
  unknown.undefined("r2") = 4;
  for (unsigned i = 0; i < 32; ++i) unknown.set("r2", i, ~U64{0});
  REQUIRE(unknown.run() == Flow::stop);
  CHECK(unknown.fault->kind == FaultKind::undefined_value);
}

TEST_CASE("votes", "[emulator]") {
  StraightLine code(
      "vote.sync.all.pred %p1, %p0, -1; vote.sync.any.pred %p2, %p0, -1; vote.sync.uni.pred %p3, %p0, -1;"
      "vote.sync.ballot.b32 %r0, %p0, -1; vote.sync.ballot.b32 %r1, !%p0, -1; activemask.b32 %r2;");
  for (const Mask p : {0u, ~0u, 1u, 0x80000000u, 0x12345678u}) {
    code.pred("p0") = p;
    REQUIRE(code.run() == Flow::next);
    CHECK(code.pred("p1") == (p == ~0u ? ~0u : 0));
    CHECK(code.pred("p2") == (p != 0 ? ~0u : 0));
    CHECK(code.pred("p3") == (p == 0 || p == ~0u ? ~0u : 0));
    CHECK(code.get("r0", 7) == p);
    CHECK(code.get("r1", 7) == static_cast<Mask>(~p));
    CHECK(code.get("r2", 7) == ~0u);
  }
  // A lane that decides makes the outcome known.
  StraightLine part(
      "vote.sync.all.pred %p1, %p0, 0xff; vote.sync.any.pred %p2, %p0, 0xff; vote.sync.ballot.b32 %r0, %p0, "
      "0xff;"
      "activemask.b32 %r2;");
  part.pred("p0") = 0x0f;
  part.undefined("p0") = 0x11;
  REQUIRE(part.run(0xff) == Flow::next);
  CHECK(part.undefined("p1") == 0);
  CHECK(part.undefined("p2") == 0);
  CHECK(part.undefined("r0") == 0xff);
  CHECK(part.get("r0", 0) == 0x0f);
  CHECK(part.get("r2", 0) == 0xff);
  part.undefined("p0") = 0xff;
  REQUIRE(part.run(0xff) == Flow::next);
  CHECK(part.undefined("p1") == 0xff);
  CHECK(part.undefined("p2") == 0xff);
}

TEST_CASE("matches", "[emulator]") {
  StraightLine code(
      "match.any.sync.b32 %r0, %r1, -1; match.all.sync.b32 %r2|%p0, %r1, -1; match.all.sync.b64 %r3|%p1, "
      "%l0, -1;"
      "match.any.sync.b64 %r4, %l1, -1;");
  for (unsigned i = 0; i < 32; ++i) {
    code.set("r1", i, i % 3);
    code.set("l0", i, 0x100000005);
    code.set("l1", i, (i < 5 ? U64{1} << 40 : 0) | 7);
  }
  REQUIRE(code.run() == Flow::next);
  for (unsigned i = 0; i < 32; ++i) {
    Mask same = 0;
    for (unsigned j = 0; j < 32; ++j) same |= Mask{j % 3 == i % 3} << j;
    CHECK(code.get("r0", i) == same);
    CHECK(code.get("r2", i) == 0);
    CHECK(code.get("r3", i) == ~0u);
    CHECK(code.get("r4", i) == (i < 5 ? 0x1fu : ~0x1fu));
  }
  CHECK(code.pred("p0") == 0);
  CHECK(code.pred("p1") == ~0u);
}

TEST_CASE("reductions over a warp", "[emulator]") {
  StraightLine code(
      "redux.sync.add.s32 %r0, %r1, -1; redux.sync.min.s32 %r2, %r1, -1; redux.sync.max.s32 %r3, %r1, -1;"
      "redux.sync.min.u32 %r4, %r1, -1; redux.sync.max.u32 %r5, %r1, -1; redux.sync.xor.b32 %r6, %r1, -1;"
      "redux.sync.and.b32 %r7, %r1, -1;");
  const auto v = integers(3, 32 * 20);
  for (std::size_t base = 0; base < v.size(); base += 32) {
    U32 sum = 0, low = ~0u, high = 0, bits = 0, common = ~0u;
    std::int32_t least = INT32_MAX, most = INT32_MIN;
    for (unsigned i = 0; i < 32; ++i) {
      const U32 x = static_cast<U32>(v[base + i]);
      code.set("r1", i, x);
      sum += x;
      low = std::min(low, x);
      high = std::max(high, x);
      least = std::min(least, static_cast<std::int32_t>(x));
      most = std::max(most, static_cast<std::int32_t>(x));
      bits ^= x;
      common &= x;
    }
    REQUIRE(code.run() == Flow::next);
    CHECK(code.get("r0", 9) == sum);
    CHECK(code.get("r2", 9) == static_cast<U32>(least));
    CHECK(code.get("r3", 9) == static_cast<U32>(most));
    CHECK(code.get("r4", 9) == low);
    CHECK(code.get("r5", 9) == high);
    CHECK(code.get("r6", 31) == bits);
    CHECK(code.get("r7", 0) == common);
  }
}

TEST_CASE("collectives that this architecture lacks are named", "[emulator]") {
  CHECK(decode_error("shfl.down.b32 %r0, %r1, 1, 31;").find("unsupported") != std::string::npos);
  CHECK(decode_error("vote.all.pred %p0, %p1;").find("unsupported") != std::string::npos);
  CHECK(decode_error("redux.sync.max.f32 %r0, %r1, -1;").find("unsupported") != std::string::npos);
  CHECK(decode_error("redux.sync.add.b32 %r0, %r1, -1;") != "");
  CHECK(decode_error("match.any.sync.b32 %r0|%p0, %r1, -1;") != "");
}
