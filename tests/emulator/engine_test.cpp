// Warps, fragments and host threads.
#include "emulator/support.hpp"

using namespace ptxbench::testing;

namespace {

const char* const kDivergence = R"(
.visible .entry k(.param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
LOOP:
  add.s32 %r2, %r2, 3;
  add.s32 %r3, %r3, 1;
  setp.le.u32 %p1, %r3, %r1;
  @%p1 bra LOOP;
  and.b32 %r4, %r1, 1;
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra EVEN;
  add.s32 %r2, %r2, 1000;
  bra JOIN;
EVEN:
  sub.s32 %r2, %r2, 1;
JOIN:
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

}  // namespace

TEST_CASE("lanes with different trip counts and branches meet again") {
  Machine m(kDivergence);
  const std::uint64_t out = m.allocate(48 * 4);
  LaunchShape shape;
  shape.block = {48, 1, 1};
  const Run run = m.launch(shape, out);
  REQUIRE_CLEAN(run);
  const auto got = m.read<std::uint32_t>(out, 48);
  for (std::uint32_t t = 0; t < 48; ++t) CHECK(got[t] == 3 * (t + 1) + (t % 2 != 0 ? 1000 : -1u));
  // Two warps: each executes the store once, all of its lanes together.
  CHECK(m.count(run, "st.global.u32").warps == 2);
  CHECK(m.count(run, "st.global.u32").threads == 48);
  CHECK(m.count(run, "setp.le.u32").warps == 32 + 48);
}
