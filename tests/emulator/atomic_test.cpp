// atom and red: values, results in the order of lanes, spaces.
#include "emulator/support.hpp"

#include <bit>

using namespace ptxbench::testing;

namespace {

// Every lane does `body` on the word at %rd1 (shared: %r2); %r1 is the thread, %r9, %rd9, %h9, %f9 its
// operand read from in[tid] (8 bytes each).
std::string kernel_of(const std::string& body) {
  return R"(
.shared .align 16 .b8 cell[64];
.visible .entry k(.param .u64 at, .param .u64 in, .param .u64 out) {
  .reg .pred %p<4>;
  .reg .b16 %h<16>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  .reg .f32 %f<16>;
  .reg .f64 %fd<16>;
  .reg .b128 %q<8>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %rd1, [at];
  ld.param.u64 %rd2, [in];
  ld.param.u64 %rd3, [out];
  mul.wide.u32 %rd4, %r1, 16;
  add.s64 %rd2, %rd2, %rd4;
  add.s64 %rd3, %rd3, %rd4;
  mov.u32 %r2, cell;
  ld.global.b16 %h9, [%rd2];
  ld.global.b32 %r9, [%rd2];
  ld.global.b64 %rd9, [%rd2];
  ld.global.f32 %f9, [%rd2];
  ld.global.f64 %fd9, [%rd2];
)" + body +
         "\n  ret;\n}\n";
}

struct Outcome {
  std::vector<std::uint64_t> cell;     // two words
  std::vector<std::uint64_t> results;  // two words a lane
  Run run;
};

// `in`: what each of 32 lanes brings.
Outcome run_on(const std::string& body, std::vector<std::uint64_t> cell, const std::vector<std::uint64_t>& in,
               std::uint32_t threads = 32) {
  Machine m(kernel_of(body));
  cell.resize(4);
  std::vector<std::uint64_t> spread(64);
  for (std::size_t i = 0; i < 32; ++i)
    spread[2 * i] = in[i % in.size()], spread[2 * i + 1] = ~in[i % in.size()];
  const std::uint64_t at = m.upload(cell), from = m.upload(spread), out = m.allocate(512);
  LaunchShape shape;
  shape.block = {threads, 1, 1};
  Run run = m.launch(shape, at, from, out);
  return {m.read<std::uint64_t>(at, 4), m.read<std::uint64_t>(out, 64), std::move(run)};
}

std::vector<std::uint64_t> counted(std::size_t n = 32) {
  std::vector<std::uint64_t> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = (i * 2654435761U) ^ (i << 29);
  return v;
}

std::uint32_t f32(float f) { return std::bit_cast<std::uint32_t>(f); }

template <class T, class F>
void check(const std::string& op, const std::string& type, F&& apply) {
  CAPTURE(op, type);
  const auto in = counted();
  const bool wide = sizeof(T) == 8;
  const std::string reg = wide ? "%rd" : "%r";
  const std::string tail = op + "." + type + " " + reg + "10, ";
  const std::uint64_t start = 0x8123'4567'1234'5678;
  // Global, generic, shared.
  for (const int where : {0, 1, 2}) {
    CAPTURE(where);
    const std::string body =
        where == 2
            ? "ld.global.b64 %rd11, [%rd1]; st.shared.b64 [%r2], %rd11; bar.warp.sync -1;\n atom.shared." +
                  tail + "[%r2], " + reg + "9;\n st.global.b" + (wide ? "64" : "32") + " [%rd3], " + reg +
                  "10; bar.warp.sync -1; ld.shared.b64 %rd11, [%r2]; st.global.b64 [%rd1], %rd11;"
            : std::string("atom.") + (where == 0 ? "global." : "relaxed.gpu.") + tail + "[%rd1], " + reg +
                  "9;\n st.global.b" + (wide ? "64" : "32") + " [%rd3], " + reg + "10;";
    const Outcome o = run_on(body, {start}, in);
    REQUIRE_CLEAN(o.run);
    T now = static_cast<T>(start);
    for (std::size_t i = 0; i < 32; ++i) {
      CHECK(static_cast<T>(o.results[2 * i]) == now);
      now = apply(now, static_cast<T>(in[i]));
    }
    CHECK(static_cast<T>(o.cell[0]) == now);
    if (!wide) CHECK(o.cell[0] >> 32 == start >> 32);
  }
  if (op == "exch") return;
  const Outcome o = run_on("red.global." + op + "." + type + " [%rd1], " + reg + "9;", {start}, in);
  REQUIRE_CLEAN(o.run);
  T now = static_cast<T>(start);
  for (const std::uint64_t v : in) now = apply(now, static_cast<T>(v));
  CHECK(static_cast<T>(o.cell[0]) == now);
}

}  // namespace

TEST_CASE("integer atomics, lane after lane") {
  using std::max, std::min;
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  using s32 = std::int32_t;
  using s64 = std::int64_t;
  check<u32>("add", "u32", [](u32 a, u32 b) { return a + b; });
  check<u32>("add", "s32", [](u32 a, u32 b) { return a + b; });
  check<u64>("add", "u64", [](u64 a, u64 b) { return a + b; });
  check<u32>("and", "b32", [](u32 a, u32 b) { return a & b; });
  check<u32>("or", "b32", [](u32 a, u32 b) { return a | b; });
  check<u32>("xor", "b32", [](u32 a, u32 b) { return a ^ b; });
  check<u64>("and", "b64", [](u64 a, u64 b) { return a & b; });
  check<u64>("or", "b64", [](u64 a, u64 b) { return a | b; });
  check<u64>("xor", "b64", [](u64 a, u64 b) { return a ^ b; });
  check<u32>("exch", "b32", [](u32, u32 b) { return b; });
  check<u64>("exch", "b64", [](u64, u64 b) { return b; });
  check<u32>("min", "u32", [](u32 a, u32 b) { return min(a, b); });
  check<u32>("max", "u32", [](u32 a, u32 b) { return max(a, b); });
  check<s32>("min", "s32", [](s32 a, s32 b) { return min(a, b); });
  check<s32>("max", "s32", [](s32 a, s32 b) { return max(a, b); });
  check<u64>("min", "u64", [](u64 a, u64 b) { return min(a, b); });
  check<u64>("max", "u64", [](u64 a, u64 b) { return max(a, b); });
  check<s64>("min", "s64", [](s64 a, s64 b) { return min(a, b); });
  check<s64>("max", "s64", [](s64 a, s64 b) { return max(a, b); });
  check<u32>("inc", "u32", [](u32 a, u32 b) { return a >= b ? 0 : a + 1; });
  check<u32>("dec", "u32", [](u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; });
}

TEST_CASE("inc and dec wrap at their operand") {
  const Outcome inc = run_on("atom.global.inc.u32 %r10, [%rd1], 4; st.global.u32 [%rd3], %r10;", {3}, {0});
  CHECK(inc.results[0] == 3);
  CHECK(inc.results[2] == 4);
  CHECK(inc.results[4] == 0);
  CHECK(inc.results[6] == 1);
  const Outcome dec = run_on("atom.global.dec.u32 %r10, [%rd1], 4; st.global.u32 [%rd3], %r10;", {1}, {0});
  CHECK(dec.results[2] == 0);
  CHECK(dec.results[4] == 4);
  CHECK(run_on("red.global.dec.u32 [%rd1], 4;", {9}, {0}, 1).cell[0] == 4);
}

TEST_CASE("compare and swap in all widths") {
  // Lane 3 brings the value that is there; it puts in its own number plus 100.
  const std::string number = "add.u32 %r3, %r1, 100; cvt.u64.u32 %rd5, %r3; cvt.u16.u32 %h3, %r3;";
  std::vector<std::uint64_t> in(32, 1);
  in[3] = 77;
  in[5] = 103;  // then what lane 3 left
  Outcome o =
      run_on(number + "atom.global.cas.b32 %r10, [%rd1], %r9, %r3; st.global.u32 [%rd3], %r10;", {77}, in);
  REQUIRE_CLEAN(o.run);
  CHECK(o.cell[0] == 105);
  CHECK(o.results[2 * 3] == 77);
  CHECK(o.results[2 * 4] == 103);
  CHECK(o.results[2 * 6] == 105);
  o = run_on(number + "atom.cas.acq_rel.sys.b64 %rd10, [%rd1], %rd9, %rd5;", {77}, in);
  REQUIRE_CLEAN(o.run);
  CHECK(o.cell[0] == 105);
  o = run_on(number + "atom.global.cas.b16 %h10, [%rd1+2], %h9, %h3;", {0x5555004d5555}, in);
  REQUIRE_CLEAN(o.run);
  CHECK(o.cell[0] == 0x555500695555);
  o = run_on(number + R"(
    ld.global.b128 %q1, [%rd2];
    mov.b128 %q2, {%rd5, %rd5};
    atom.global.cas.b128 %q3, [%rd1], %q1, %q2;
    st.global.b128 [%rd3], %q3;)",
             {77, ~std::uint64_t{77}}, in);
  REQUIRE_CLEAN(o.run);
  CHECK(o.cell[0] == 103);  // lane 5 brings 103 and ~103, and 103, 103 is there
  CHECK(o.cell[1] == 103);
  CHECK(o.results[6] == 77);
  CHECK(o.results[7] == ~std::uint64_t{77});
  o = run_on("ld.global.b128 %q1, [%rd2]; atom.global.exch.b128 %q3, [%rd1], %q1;", {1, 2}, counted());
  REQUIRE_CLEAN(o.run);
  CHECK(o.cell[0] == counted()[31]);
  CHECK(o.cell[1] == ~counted()[31]);
}

TEST_CASE("sums of floats: rounding, and subnormals that only global memory flushes") {
  const auto sum = [](float a, float b, bool shared) {
    const std::string body =
        shared ? "ld.global.b32 %r3, [%rd1]; st.shared.b32 [%r2], %r3;"
                 "red.shared.add.f32 [%r2], %f9; ld.shared.b32 %r3, [%r2]; st.global.b32 [%rd1], %r3;"
               : "red.global.add.f32 [%rd1], %f9;";
    const Outcome o = run_on(body, {f32(a)}, {f32(b)}, 1);
    REQUIRE_CLEAN(o.run);
    return static_cast<std::uint32_t>(o.cell[0]);
  };
  CHECK(sum(1.0F, 0x1p-24F, false) == f32(1.0F));  // a tie: to even
  CHECK(sum(1.0F + 0x1p-23F, 0x1p-24F, false) == f32(1.0F + 0x1p-22F));
  CHECK(sum(0x1p-130F, 0x1p-130F, true) == f32(0x1p-129F));
  CHECK(sum(0x1p-130F, 0x1p-130F, false) == 0);
  CHECK(sum(-0x1p-130F, -0.0F, false) == 0x80000000);
  CHECK(sum(0x1.8p-126F, -0x1p-126F, false) == 0);  // the result is flushed
  CHECK(sum(0x1.8p-126F, -0x1p-126F, true) == f32(0x1p-127F));
  CHECK(sum(std::bit_cast<float>(0x7f800000), -std::bit_cast<float>(0x7f800000), false) == 0x7fffffff);

  const Outcome d = run_on("atom.global.add.f64 %fd10, [%rd1], %fd9; st.global.f64 [%rd3], %fd10;",
                           {std::bit_cast<std::uint64_t>(0.5)}, {std::bit_cast<std::uint64_t>(0x1p-60)});
  CHECK(d.cell[0] == std::bit_cast<std::uint64_t>(0.5));
}

TEST_CASE("sums of halves and bfloat16, alone and in pairs") {
  const auto red = [](const std::string& form, const std::string& reg, std::uint64_t cell, std::uint64_t in) {
    const Outcome o = run_on("red.global.add.noftz." + form + " [%rd1], " + reg + ";", {cell}, {in}, 1);
    REQUIRE_CLEAN(o.run);
    return o.cell[0];
  };
  CHECK(red("f16", "%h9", 0x3c00, 0x4000) == 0x4200);  // 1 + 2
  CHECK(red("f16", "%h9", 0x0001, 0x0001) == 0x0002);  // subnormals stay
  CHECK(red("f16", "%h9", 0x03ff, 0x0001) == 0x0400);
  CHECK(red("f16", "%h9", 0x7bff, 0x7bff) == 0x7c00);
  CHECK(red("f16", "%h9", 0x7bff, 0x4c00) == 0x7c00);  // 65504 + 16: a tie, to even: infinity
  CHECK(red("f16", "%h9", 0x7bff, 0x4b80) == 0x7bff);  // + 15
  CHECK(red("f16", "%h9", 0x6800, 0x3800) == 0x6800);  // 2048 + 0.5
  CHECK(red("f16", "%h9", 0x7c00, 0xfc00) == 0x7fff);
  CHECK(red("bf16", "%h9", 0x3f80, 0x3b80) == 0x3f80);  // 1 + 2^-8: a tie
  CHECK(red("bf16", "%h9", 0x3f81, 0x3b80) == 0x3f82);
  CHECK(red("bf16", "%h9", 0x0001, 0x0001) == 0x0002);
  CHECK(red("f16x2", "%r9", 0x3c00'0001, 0x4000'0001) == 0x4200'0002);
  CHECK(red("bf16x2", "%r9", 0x3f80'3f80, 0x3f80'bf80) == 0x4000'0000);
}

TEST_CASE("vector reductions of global memory") {
  Outcome o = run_on("red.global.v4.f32.add [%rd1], {%f9, 0f40000000, %f9, 0f3f800000};", {}, {f32(0.5F)});
  // The ISA spells the operation before the vector.
  o = run_on("red.global.add.v4.f32 [%rd1], {%f9, 0f40000000, %f9, 0f3f800000};", {}, {f32(0.5F)});
  REQUIRE_CLEAN(o.run);
  CHECK(static_cast<std::uint32_t>(o.cell[0]) == f32(16));
  CHECK(o.cell[0] >> 32 == f32(64));
  CHECK(o.cell[1] >> 32 == f32(32));
  o = run_on(
      "atom.global.add.v2.f32 {%f10, %f11}, [%rd1], {%f9, %f9}; st.global.v2.f32 [%rd3], {%f10, %f11};", {},
      {f32(1)});
  REQUIRE_CLEAN(o.run);
  CHECK(o.results[2 * 31] == (std::uint64_t{f32(31)} << 32 | f32(31)));
  o = run_on("red.relaxed.gpu.global.add.noftz.v4.bf16x2 [%rd1], {%r9, %r9, %r9, %r9};", {}, {0x3f80'4000},
             2);
  REQUIRE_CLEAN(o.run);
  CHECK(o.cell[1] == 0x4000'4080'4000'4080);
  o = run_on("red.global.max.noftz.v2.f16 [%rd1], {%h9, %h9};", {0xbc00'4500}, {0x4000});
  REQUIRE_CLEAN(o.run);
  CHECK(o.cell[0] == 0x4000'4500);
  o = run_on("red.global.min.noftz.v2.f16 [%rd1], {%h9, %h9};", {0x0000'7e00}, {0x8000});
  REQUIRE_CLEAN(o.run);
  CHECK(o.cell[0] == 0x8000'8000);
}

TEST_CASE("atomics: what is refused") {
  const auto error = [](const std::string& body) {
    Machine m(kernel_of(body));
    const auto kernel = m.decode();
    return kernel ? std::string() : kernel.error().to_string();
  };
  CHECK(!error("atom.global.frob.b32 %r10, [%rd1], %r9;").empty());
  CHECK(!error("red.global.exch.b32 [%rd1], %r9;").empty());
  CHECK(!error("red.shared.add.v2.f32 [%r2], {%f9, %f9};").empty());
  CHECK(!error("atom.local.add.u32 %r10, [%rd1], %r9;").empty());
  CHECK(!error("atom.global.inc.s32 %r10, [%rd1], %r9;").empty());
  CHECK(!error("atom.global.add.f16 %h10, [%rd1], %r9;").empty());
  const auto fault = [](const std::string& body) {
    const Outcome o = run_on(body, {}, {1});
    return o.run.fault ? std::string(fault_name(o.run.fault->kind)) : "none";
  };
  CHECK(fault("red.global.add.u32 [%rd1+2], 1;") == "misaligned");
  CHECK(fault("red.global.add.u32 [%rd1+32], 1;") == "out_of_bounds");
  CHECK(fault("red.shared.add.u32 [%r2+4096], 1;") == "out_of_bounds");
  CHECK(
      fault(".local .align 4 .b8 f[8]; mov.u64 %rd5, f; cvta.local.u64 %rd5, %rd5; red.add.u32 [%rd5], 1;") ==
      "out_of_bounds");
  // What was never written makes the sum so; exchanging it for something else is fine.
  CHECK(fault("red.shared.add.u32 [%r2], 1; ld.shared.u32 %r3, [%r2]; ld.shared.u32 %r4, [%r3];") ==
        "undefined_value");
  CHECK(fault("atom.shared.exch.b32 %r5, [%r2], 1; ld.shared.u32 %r3, [%r2]; st.global.u32 [%rd1], %r3;") ==
        "none");
}

TEST_CASE("atomics with scope beyond the cluster make CTAs communicate") {
  const auto communicates = [](const std::string& body) {
    return Machine(kernel_of(body)).kernel()->communicates;
  };
  CHECK(communicates("red.global.add.u32 [%rd1], 1;"));
  CHECK(communicates("red.add.u32 [%rd1], 1;"));
  CHECK(!communicates("red.shared.add.u32 [%r2], 1;"));
  CHECK(!communicates("red.relaxed.cta.global.add.u32 [%rd1], 1;"));
}
