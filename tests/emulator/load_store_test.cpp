// Loads and stores of every width, vector and space, and what is refused.
#include "emulator/support.hpp"

#include <numeric>

using namespace ptxbench::testing;
using ptxbench::DType;
using ptxbench::MemoryLabel;

namespace {

// A kernel of parameters in and out; %rd1 is in + 64 * tid, %rd2 out + 64 * tid, %r1 the thread.
std::string body_of(const std::string& body, const std::string& declarations = {}) {
  return declarations + R"(
.visible .entry k(.param .u64 in, .param .u64 out) {
  .reg .pred %p<8>;
  .reg .b16 %h<16>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<32>;
  .reg .f32 %f<16>;
  .reg .b128 %q<4>;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 64;
  ld.param.u64 %rd4, [in];
  ld.param.u64 %rd5, [out];
  add.s64 %rd1, %rd4, %rd3;
  add.s64 %rd2, %rd5, %rd3;
)" + body +
         "\n  ret;\n}\n";
}

std::vector<std::uint8_t> bytes_up(std::size_t n, unsigned seed = 1) {
  std::vector<std::uint8_t> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<std::uint8_t>((i * 37 + i / 64 * 11 + seed) ^ (i >> 3));
  return v;
}

struct Case {
  Machine m;
  std::vector<std::uint8_t> data = bytes_up(64 * 64);
  std::uint64_t in, out;
  explicit Case(const std::string& text) : m(text), in(m.upload(data)), out(m.allocate(64 * 64)) {}
  Run run(std::uint32_t threads = 32) {
    LaunchShape shape;
    shape.block = {threads, 1, 1};
    return m.launch(shape, in, out);
  }
  template <class T>
  T source(unsigned thread, unsigned at = 0) const {
    T v;
    std::memcpy(&v, data.data() + thread * 64 + at, sizeof v);
    return v;
  }
  template <class T>
  T result(unsigned thread, unsigned at = 0) {
    T v;
    std::memcpy(&v, m.memory.host(out + thread * 64 + at, sizeof v), sizeof v);
    return v;
  }
};

std::string raised(const Run& run) { return run.fault ? std::string(fault_name(run.fault->kind)) : "none"; }
bool has(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("ld extends into wider registers") {
  Case c(body_of(R"(
  ld.global.u8 %r2, [%rd1];
  ld.global.s8 %r3, [%rd1+1];
  ld.global.u8 %rd6, [%rd1+2];
  ld.global.s8 %rd7, [%rd1+3];
  ld.global.s8 %h1, [%rd1+4];
  ld.global.u8 %h2, [%rd1+5];
  ld.global.u16 %r4, [%rd1+6];
  ld.global.s16 %r5, [%rd1+8];
  ld.global.u16 %rd8, [%rd1+10];
  ld.global.s16 %rd9, [%rd1+12];
  ld.global.u32 %rd10, [%rd1+16];
  ld.global.s32 %rd11, [%rd1+20];
  ld.global.b16 %h3, [%rd1+24];
  st.global.u32 [%rd2], %r2;
  st.global.u32 [%rd2+4], %r3;
  st.global.u64 [%rd2+8], %rd6;
  st.global.u64 [%rd2+16], %rd7;
  st.global.u16 [%rd2+24], %h1;
  st.global.u16 [%rd2+26], %h2;
  st.global.u32 [%rd2+28], %r4;
  st.global.u32 [%rd2+32], %r5;
  st.global.u64 [%rd2+40], %rd8;
  st.global.u64 [%rd2+48], %rd9;
  xor.b64 %rd12, %rd10, %rd11;
  st.global.u64 [%rd2+56], %rd12;
  st.global.u16 [%rd2+36], %h3;
)"));
  const Run run = c.run(40);
  REQUIRE_CLEAN(run);
  for (unsigned t = 0; t < 40; ++t) {
    CHECK(c.result<std::uint32_t>(t) == c.source<std::uint8_t>(t));
    CHECK(c.result<std::int32_t>(t, 4) == c.source<std::int8_t>(t, 1));
    CHECK(c.result<std::uint64_t>(t, 8) == c.source<std::uint8_t>(t, 2));
    CHECK(c.result<std::int64_t>(t, 16) == c.source<std::int8_t>(t, 3));
    CHECK(c.result<std::int16_t>(t, 24) == c.source<std::int8_t>(t, 4));
    CHECK(c.result<std::uint16_t>(t, 26) == c.source<std::uint8_t>(t, 5));
    CHECK(c.result<std::uint32_t>(t, 28) == c.source<std::uint16_t>(t, 6));
    CHECK(c.result<std::int32_t>(t, 32) == c.source<std::int16_t>(t, 8));
    CHECK(c.result<std::uint64_t>(t, 40) == c.source<std::uint16_t>(t, 10));
    CHECK(c.result<std::int64_t>(t, 48) == c.source<std::int16_t>(t, 12));
    CHECK(c.result<std::uint64_t>(t, 56) ==
          (std::uint64_t{c.source<std::uint32_t>(t, 16)} ^
           static_cast<std::uint64_t>(std::int64_t{c.source<std::int32_t>(t, 20)})));
    CHECK(c.result<std::uint16_t>(t, 36) == c.source<std::uint16_t>(t, 24));
  }
}

TEST_CASE("st takes the low bytes of wider registers") {
  Case c(body_of(R"(
  ld.global.u64 %rd6, [%rd1];
  ld.global.u32 %r2, [%rd1+8];
  st.global.u8 [%rd2], %rd6;
  st.global.s8 [%rd2+1], %r2;
  st.global.u16 [%rd2+2], %rd6;
  st.global.b16 [%rd2+4], %r2;
  st.global.u32 [%rd2+8], %rd6;
  st.global.b8 [%rd2+12], -3;
  st.global.f32 [%rd2+16], 0f3f800000;
  st.global.v2.u32 [%rd2+24], {7, %r2};
)"));
  REQUIRE_CLEAN(c.run());
  for (unsigned t = 0; t < 32; ++t) {
    CHECK(c.result<std::uint8_t>(t) == c.source<std::uint8_t>(t));
    CHECK(c.result<std::uint8_t>(t, 1) == c.source<std::uint8_t>(t, 8));
    CHECK(c.result<std::uint16_t>(t, 2) == c.source<std::uint16_t>(t));
    CHECK(c.result<std::uint16_t>(t, 4) == c.source<std::uint16_t>(t, 8));
    CHECK(c.result<std::uint16_t>(t, 6) == 0);
    CHECK(c.result<std::uint32_t>(t, 8) == c.source<std::uint32_t>(t));
    CHECK(c.result<std::uint8_t>(t, 12) == 0xfd);
    CHECK(c.result<std::uint8_t>(t, 13) == 0);
    CHECK(c.result<float>(t, 16) == 1.0F);
    CHECK(c.result<std::uint32_t>(t, 24) == 7);
    CHECK(c.result<std::uint32_t>(t, 28) == c.source<std::uint32_t>(t, 8));
  }
}

TEST_CASE("vectors of every width, spread and side by side") {
  // Loads of 64 bytes apart go lane by lane; the stores of `packed` lie side by side.
  const auto packed = GENERATE(false, true);
  struct Form {
    const char* load;
    const char* store;
    unsigned bytes;
  };
  const Form f =
      GENERATE(Form{"v2.b8 {%r2, %r3}", "v2.b8 [%rd2], {%r2, %r3}", 2},
               Form{"v4.u8 {%r2, %r3, %r4, %r5}", "v4.u8 [%rd2], {%r2, %r3, %r4, %r5}", 4},
               Form{"v2.b16 {%h2, %h3}", "v2.b16 [%rd2], {%h2, %h3}", 4},
               Form{"v4.u16 {%h2, %h3, %h4, %h5}", "v4.u16 [%rd2], {%h2, %h3, %h4, %h5}", 8},
               Form{"b32 %r2", "b32 [%rd2], %r2", 4}, Form{"b64 %rd6", "b64 [%rd2], %rd6", 8},
               Form{"v2.f32 {%f1, %f2}", "v2.f32 [%rd2], {%f1, %f2}", 8},
               Form{"v4.b32 {%r2, %r3, %r4, %r5}", "v4.b32 [%rd2], {%r2, %r3, %r4, %r5}", 16},
               Form{"v2.u64 {%rd6, %rd7}", "v2.u64 [%rd2], {%rd6, %rd7}", 16},
               Form{"b128 %q1", "b128 [%rd2], %q1", 16},
               Form{"v4.b64 {%rd6, %rd7, %rd8, %rd9}", "v4.b64 [%rd2], {%rd6, %rd7, %rd8, %rd9}", 32},
               Form{"v8.b32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}",
                    "v8.b32 [%rd2], {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}", 32});
  CAPTURE(f.load, packed);
  const std::string n = std::to_string(f.bytes);
  std::string body;
  if (packed) {
    body += "mul.wide.u32 %rd20, %r1, " + n + ";\n add.s64 %rd1, %rd4, %rd20;\n add.s64 %rd2, %rd5, %rd20;\n";
  }
  body += "ld.global." + std::string(f.load) + ", [%rd1];\n st.global." + f.store + ";\n";
  Case c(body_of(body));
  REQUIRE_CLEAN(c.run(45));
  const unsigned stride = packed ? f.bytes : 64;
  for (unsigned t = 0; t < 45; ++t) {
    CHECK(std::memcmp(c.m.memory.host(c.out + t * stride, f.bytes), c.data.data() + t * stride, f.bytes) ==
          0);
  }
  const unsigned end = 45 * stride;
  CHECK(c.m.memory.host(c.out + end)[0] == 0);
}

TEST_CASE("a sink in a vector is not written, and elements may name the address") {
  Case c(body_of(R"(
  ld.global.v4.b32 {_, %r2, _, %r3}, [%rd1];
  ld.global.v2.b64 {%rd1, %rd6}, [%rd1+16];
  st.global.v2.b32 [%rd2], {%r2, %r3};
  st.global.v2.b64 [%rd2+16], {%rd1, %rd6};
)"));
  REQUIRE_CLEAN(c.run());
  for (unsigned t = 0; t < 32; ++t) {
    CHECK(c.result<std::uint32_t>(t) == c.source<std::uint32_t>(t, 4));
    CHECK(c.result<std::uint32_t>(t, 4) == c.source<std::uint32_t>(t, 12));
    CHECK(c.result<std::uint64_t>(t, 16) == c.source<std::uint64_t>(t, 16));
    CHECK(c.result<std::uint64_t>(t, 24) == c.source<std::uint64_t>(t, 24));
  }
}

TEST_CASE("modifiers that change no value") {
  for (const char* form : {"ld.global.nc",
                           "ld.global.ca",
                           "ld.global.cg",
                           "ld.global.cs",
                           "ld.global.lu",
                           "ld.global.cv",
                           "ld.weak.global",
                           "ld.volatile.global",
                           "ld.relaxed.gpu.global",
                           "ld.acquire.sys.global",
                           "ld.relaxed.cta.global",
                           "ld.acquire.cluster.global",
                           "ld.global.nc.L1::no_allocate.L2::128B",
                           "ld.global.L1::evict_last",
                           "ld.global.nc.L2::256B",
                           "ldu.global",
                           "ld.mmio.relaxed.sys.global",
                           "ld",
                           "ld.volatile",
                           "ld.global.L2::cache_hint",
                           "ld.global.nc.L1::evict_first.L2::cache_hint"}) {
    CAPTURE(form);
    const std::string hint = std::string(form).find("cache_hint") == std::string::npos ? "" : ", %rd20";
    Case c(body_of("mov.b64 %rd20, 5;\n" + std::string(form) + ".b32 %r2, [%rd1+8]" + hint +
                   ";\n st.global.b32 [%rd2], %r2;\n"));
    REQUIRE_CLEAN(c.run());
    for (unsigned t = 0; t < 32; ++t) CHECK(c.result<std::uint32_t>(t) == c.source<std::uint32_t>(t, 8));
  }
  for (const char* form : {"st.global.wb", "st.global.cg", "st.global.cs", "st.global.wt", "st.weak.global",
                           "st.volatile.global", "st.relaxed.gpu.global", "st.release.sys.global", "st",
                           "st.global.L1::no_allocate", "st.release.gpu", "st.global.L2::cache_hint"}) {
    CAPTURE(form);
    const std::string hint = std::string(form).find("cache_hint") == std::string::npos ? "" : ", %rd20";
    Case c(body_of("mov.b64 %rd20, 5;\n ld.global.b32 %r2, [%rd1+8];\n" + std::string(form) +
                   ".b32 [%rd2], %r2" + hint + ";\n"));
    REQUIRE_CLEAN(c.run());
    for (unsigned t = 0; t < 32; ++t) CHECK(c.result<std::uint32_t>(t) == c.source<std::uint32_t>(t, 8));
  }
}

TEST_CASE("what speaks to caches only") {
  Case c(body_of(R"(
  prefetch.global.L1 [%rd1];
  prefetch.global.L2 [%rd1];
  prefetch.L1 [%rd1];
  prefetch.global.L2::evict_last [%rd1];
  prefetchu.L1 [%rd1];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra DONE;
  applypriority.global.L2::evict_normal [%rd4], 128;
  applypriority.L2::evict_normal [%rd4], 128;
  discard.global.L2 [%rd5], 128;
DONE:
)"));
  REQUIRE_CLEAN(c.run());
  Case bad(body_of("discard.global.L2 [%rd5+4096], 128;"));
  CHECK(raised(bad.run()) == "out_of_bounds");
  // A prefetch of nothing faults on no machine.
  Case nothing(body_of("mov.b64 %rd6, 0;\n prefetch.global.L1 [%rd6];"));
  REQUIRE_CLEAN(nothing.run());
}

TEST_CASE("who communicates through global memory") {
  const auto communicates = [](const std::string& body) {
    return Machine(body_of(body)).kernel()->communicates;
  };
  CHECK(!communicates("ld.global.u32 %r2, [%rd1];"));
  CHECK(!communicates("st.global.u32 [%rd1], %r1;"));
  CHECK(communicates("ld.volatile.global.u32 %r2, [%rd1];"));
  CHECK(communicates("ld.acquire.gpu.global.u32 %r2, [%rd1];"));
  CHECK(communicates("ld.relaxed.sys.u32 %r2, [%rd1];"));
  CHECK(!communicates("ld.acquire.cta.global.u32 %r2, [%rd1];"));
  CHECK(communicates("st.release.gpu.global.u32 [%rd1], %r1;"));
  CHECK(!communicates("fence.acq_rel.gpu;"));
}

TEST_CASE("shared memory: static, dynamic, side by side, spread, part of a warp") {
  Case c(body_of(R"(
  mov.u32 %r2, tile;
  shl.b32 %r3, %r1, 2;
  add.u32 %r4, %r2, %r3;
  mul.lo.u32 %r5, %r1, 3;
  st.shared.u32 [%r4], %r5;
  bar.sync 0;
  xor.b32 %r6, %r3, 12;
  add.u32 %r7, %r2, %r6;
  ld.shared.u32 %r8, [%r7];
  ld.shared::cta.u32 %r9, [tile+4];
  st.global.u32 [%rd2], %r8;
  st.global.u32 [%rd2+4], %r9;
  setp.lt.u32 %p1, %r1, 5;
  @%p1 st.shared.u8 [%r4], 255;
  bar.sync 0;
  ld.shared.u32 %r10, [%r4];
  st.global.u32 [%rd2+8], %r10;
)",
                 ".shared .align 16 .b8 tile[256];\n"));
  REQUIRE_CLEAN(c.run(48));
  for (unsigned t = 0; t < 48; ++t) {
    CHECK(c.result<std::uint32_t>(t) == (t ^ 3) * 3);
    CHECK(c.result<std::uint32_t>(t, 4) == 3);
    CHECK(c.result<std::uint32_t>(t, 8) == (t < 5 ? 255 : t * 3));
  }
}

TEST_CASE("local memory, constants and generic addresses of every space at once") {
  Case c(body_of(R"(
  .local .align 8 .b8 frame[32];
  mov.u64 %rd6, frame;
  cvta.local.u64 %rd7, %rd6;
  mad.lo.u32 %r2, %r1, 7, 100;
  st.local.u32 [frame+8], %r2;
  ld.u32 %r3, [%rd7+8];
  st.global.u32 [%rd2], %r3;
  mov.u64 %rd8, tile;
  cvta.shared.u64 %rd9, %rd8;
  mul.wide.u32 %rd10, %r1, 4;
  add.s64 %rd9, %rd9, %rd10;
  st.u32 [%rd9], %r1;
  bar.sync 0;
  and.b32 %r4, %r1, 3;
  setp.eq.u32 %p1, %r4, 0;
  setp.eq.u32 %p2, %r4, 1;
  setp.eq.u32 %p3, %r4, 2;
  add.s64 %rd11, %rd7, 8;
  selp.b64 %rd12, %rd9, %rd1, %p1;
  selp.b64 %rd12, %rd11, %rd12, %p2;
  ld.b32 %r5, [%rd12];
  st.global.u32 [%rd2+4], %r5;
  ld.const.u32 %r6, [table+4];
  st.global.u32 [%rd2+8], %r6;
)",
                 ".const .align 4 .u32 table[3] = {5, 66, 7};\n.shared .align 4 .b8 tile[128];\n"));
  REQUIRE_CLEAN(c.run());
  for (unsigned t = 0; t < 32; ++t) {
    CHECK(c.result<std::uint32_t>(t) == 100 + 7 * t);
    const std::uint32_t expected = t % 4 == 0 ? t : t % 4 == 1 ? 100 + 7 * t : c.source<std::uint32_t>(t);
    CHECK(c.result<std::uint32_t>(t, 4) == expected);
    CHECK(c.result<std::uint32_t>(t, 8) == 66);
  }
}

TEST_CASE("kernel parameters: scalars, vectors, a struct, through an address") {
  Machine m(R"(
.visible .entry k(.param .u64 out, .param .align 16 .b8 s[32], .param .u8 small) {
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.v4.u32 {%r1, %r2, %r3, %r4}, [s+16];
  st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
  mov.b64 %rd2, s;
  cvta.param.u64 %rd3, %rd2;
  ld.u32 %r5, [%rd3+4];
  st.global.u32 [%rd1+16], %r5;
  ld.param.u8 %r6, [small];
  st.global.u32 [%rd1+20], %r6;
  ld.param.u32 %r7, [%rd2+8];
  st.global.u32 [%rd1+24], %r7;
  ret;
}
)");
  const std::uint64_t out = m.allocate(64);
  const std::array<std::uint32_t, 8> s{1, 2, 3, 4, 5, 6, 7, 8};
  REQUIRE_CLEAN(m.launch({}, out, s, std::uint8_t{200}));
  CHECK(m.read<std::uint32_t>(out, 7) == std::vector<std::uint32_t>{5, 6, 7, 8, 2, 200, 3});
}

TEST_CASE("faults of global memory name tensor, index, line and lane") {
  Case c(body_of("\n st.global.u32 [%rd2], %r1;\n"));
  MemoryLabel label{MemoryLabel::Role::output, "C", DType::float32, {31, 16}};
  c.m.memory.name(c.out, 31 * 64, label);
  const Run run = c.run();
  REQUIRE(raised(run) == "out_of_bounds");
  CHECK(run.fault->site.lane == 31);
  CHECK(has(run.fault->message, "0 bytes behind the end of C[31, 16] (float32)"));
  CHECK(has(run.fault->message, "writes 4 bytes"));
  CHECK(c.m.last->info[c.m.last->ops[run.fault->site.op].info].text == "st.global.u32");
}

TEST_CASE("faults: misaligned, null, constant, other spaces") {
  const auto kind = [](const std::string& body, const std::string& declarations = {}) {
    Case c(body_of(body, declarations));
    return raised(c.run());
  };
  CHECK(kind("ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%rd1+8];") == "misaligned");
  CHECK(kind("ld.global.b64 %rd6, [%rd1+4];") == "misaligned");
  CHECK(kind("ld.global.v2.b32 {%r2, %r3}, [%rd1+4];") == "misaligned");
  CHECK(kind("mov.b64 %rd6, 0; ld.global.b32 %r2, [%rd6];") == "out_of_bounds");
  CHECK(kind("mov.b64 %rd6, t; st.global.b32 [%rd6], %r1;", ".const .u32 t = 3;\n") == "out_of_bounds");
  CHECK(kind("ld.shared.b32 %r2, [tile+128];", ".shared .align 4 .b8 tile[128];\n") == "out_of_bounds");
  CHECK(kind("mov.u32 %r2, 512; ld.shared.b32 %r2, [%r2];", ".shared .align 4 .b8 tile[128];\n") ==
        "out_of_bounds");
  CHECK(kind("ld.shared.b32 %r2, [tile+2];", ".shared .align 4 .b8 tile[128];\n") == "misaligned");
  CHECK(kind("cvta.shared.u64 %rd6, %rd3; ld.shared.b32 %r2, [%rd6];") == "out_of_bounds");
  CHECK(kind(".local .align 4 .b8 f[16]; st.local.b32 [f+16], %r1;") == "out_of_bounds");
  CHECK(kind(".local .align 4 .b8 f[16]; st.local.b32 [f+2], %r1;") == "misaligned");
}

TEST_CASE("a value never written: faults where it is an address or goes to an output, copied elsewhere") {
  SECTION("as an address") {
    Case c(body_of("ld.global.u32 %r2, [%rd9];"));
    const Run run = c.run();
    CHECK(raised(run) == "undefined_value");
  }
  const std::string tile = ".shared .align 4 .b8 tile[256];\n";
  const std::string load = "mov.u32 %r2, tile; shl.b32 %r3, %r1, 2; add.u32 %r2, %r2, %r3;\n";
  SECTION("from shared memory to an output") {
    Case c(body_of(load + "ld.shared.u32 %r4, [%r2]; st.global.u32 [%rd2], %r4;", tile));
    c.m.memory.name(c.out, 64 * 64, {MemoryLabel::Role::output, "C", DType::float32, {32, 16}});
    const Run run = c.run();
    CHECK(raised(run) == "undefined_value");
    CHECK(has(run.fault->message, "C[0, 0]"));
  }
  SECTION("one byte is enough, and the lane is named") {
    Case c(body_of(load + R"(
      setp.ne.u32 %p1, %r1, 9;
      @%p1 st.shared.u8 [%r2+3], 1;
      st.shared.u16 [%r2], 1;
      st.shared.u8 [%r2+2], 1;
      ld.shared.u32 %r4, [%r2];
      st.global.u32 [%rd2], %r4;)",
                   tile));
    c.m.memory.name(c.out, 64 * 64, {MemoryLabel::Role::output, "C", DType::float32, {32, 16}});
    const Run run = c.run();
    CHECK(raised(run) == "undefined_value");
    CHECK(run.fault->site.lane == 9);
    CHECK(has(run.fault->message, "C[9, 0] (float32)"));
  }
  SECTION("copied through a workspace, written over there, and back") {
    Case c(body_of(load + R"(
      ld.shared.u32 %r4, [%r2];
      st.global.u32 [%rd2], %r4;
      ld.global.u32 %r5, [%rd2];
      st.shared.u32 [%r2], %r5;
      st.shared.u32 [%r2], %r1;
      ld.shared.u32 %r6, [%r2];
      st.global.u32 [%rd2], %r6;)",
                   tile));
    REQUIRE_CLEAN(c.run());
    CHECK(c.result<std::uint32_t>(7) == 7);
    CHECK(!c.m.memory.global_undefined(c.out, 64 * 64));
  }
  SECTION("it stays undefined behind a workspace") {
    Case c(body_of(load + "ld.shared.u32 %r4, [%r2]; st.global.u32 [%rd2], %r4; ld.global.u32 %rd6, [%rd2];"
                          "ld.global.u32 %r7, [%rd6];",
                   tile));
    CHECK(raised(c.run()) == "undefined_value");
  }
  SECTION("local memory begins undefined for each thread") {
    Case c(body_of(
        ".local .align 8 .b8 f[16];\n setp.lt.u32 %p1, %r1, 20; @%p1 st.local.v2.b32 [f], {%r1, %r1};\n"
        "ld.local.b64 %rd6, [f]; and.b64 %rd6, %rd6, 0; add.s64 %rd6, %rd6, %rd1; ld.global.u32 %r2, "
        "[%rd6];"));
    const Run run = c.run();
    CHECK(raised(run) == "undefined_value");
    CHECK(run.fault->site.lane == 20);
  }
}

TEST_CASE("forms that are refused before anything runs") {
  const auto error = [](const std::string& body) {
    Machine m(body_of(body));
    const auto kernel = m.decode();
    return kernel ? std::string("none") : kernel.error().to_string();
  };
  CHECK(has(error("ld.global.frob.u32 %r2, [%rd1];"), "frob"));
  CHECK(error("ld.global.u64 %r2, [%rd1];") != "none");
  CHECK(error("ld.global.v2.u32 {%r2, %r3, %r4}, [%rd1];") != "none");
  CHECK(error("st.const.u32 [%rd1], %r2;") != "none");
  CHECK(error("st.global.v2.u32 [%rd1], %r2;") != "none");
}
