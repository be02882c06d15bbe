// PTX decoded: what is refused and how, where variables lie, slots, loops that wait.
#include "emulator/support.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

std::string entry(const std::string& body, const std::string& before = "") {
  return before + "\n.visible .entry k(.param .u64 out) {\n  .reg .pred %p<8>;\n  .reg .b16 %h<8>;\n  .reg .b32 %r<16>;\n"
                  "  .reg .f32 %f<8>;\n  .reg .b64 %rd<8>;\n" + body + "\n  ret;\n}\n";
}

Error refused(const std::string& body, const std::string& before = "") {
  Machine m(entry(body, before));
  auto k = m.decode();
  REQUIRE_FALSE(k.has_value());
  return k.error();
}

}  // namespace

TEST_CASE("what a kernel has that is not known is listed as a whole") {
  const Error e = refused("  multimem.ld_reduce.global.add.f32 %f1, [%rd1];\n  add.s32 %r1, %r1, 1;\n  tex.foo %r1;\n"
                          "  add.s32.quick %r1, %r1, 1;");
  CHECK(e.code == ErrorCode::unsupported);
  CHECK(e.where.line == 11);
  CHECK(e.message.find("kernel k: 3 instructions not supported by the emulator\n") == 0);
  CHECK(e.message.find("\n  PTX line 11: multimem.ld_reduce.global.add.f32: unknown instruction") != std::string::npos);
  CHECK(e.message.find("\n  PTX line 13: tex.foo: unknown instruction") != std::string::npos);
  CHECK(e.message.find("\n  PTX line 14: add.s32.quick: unknown modifier .quick") != std::string::npos);
  std::string many;
  for (int i = 0; i < 30; ++i) many += "  tex.foo %r1;\n";
  CHECK(refused(many).message.find("\n  and 10 more") != std::string::npos);
}

TEST_CASE("registers of a wrong width are refused") {
  const Error e = refused("  add.s32 %r1, %rd1, 1;");
  CHECK(e.code == ErrorCode::parse);
  CHECK(e.message.find("add.s32: register %rd1 is .b64 where the source has 32 bits") != std::string::npos);
  CHECK(refused("  add.s32 %rd1, %r1, 1;").message.find("register %rd1 is .b64 where the destination has 32 bits") !=
        std::string::npos);
  CHECK(refused("  add.s32 %r1, %r1;").code == ErrorCode::parse);
  CHECK(refused("  add.f32 %f1, %f1, 1;").code == ErrorCode::parse);
  CHECK(refused("  ld.global.u32 %r1, [%r1];").code == ErrorCode::parse);
  CHECK(refused("  add.s32 %r1, %p1, 1;").code == ErrorCode::parse);
  // ld, st and cvt may name wider registers.
  Machine m(entry("  ld.param.u8 %r1, [out];\n  ld.param.u32 %rd1, [out];\n  cvt.u16.u32 %r2, %r1;"));
  CHECK(m.decode().has_value());
}

TEST_CASE("calls that cannot be inlined are named") {
  CHECK(refused("  call f;", ".func f() { call f; ret; }").message.find("the recursive function f") != std::string::npos);
  CHECK(refused("  call f;", ".extern .func f();").message.find("the function f has no body") != std::string::npos);
  CHECK(refused("  { .param .b32 a; call f, (a); }", ".func f() { ret; }").code == ErrorCode::parse);
  const Error twice = refused("  call f;\n  call f;", ".func f() { .reg .b32 %r<2>; tex.foo %r1; ret; }");
  CHECK(twice.message.find("1 instruction not supported") != std::string::npos);
}

TEST_CASE("calls that multiply by inlining end in an error") {
  std::string functions = ".func f0() { .reg .b32 %r<2>; add.s32 %r1, 1, 1; ret; }\n";
  for (int i = 1; i < 40; ++i) {
    const std::string callee = "f" + std::to_string(i - 1);
    functions += ".func f" + std::to_string(i) + "() { call " + callee + "; call " + callee + "; ret; }\n";
  }
  const Error e = refused("  call f39;", functions);
  CHECK(e.code == ErrorCode::unsupported);
  CHECK(e.message.find("once all calls are inlined") != std::string::npos);
}

TEST_CASE("shared variables are laid out as they are used, the dynamic ones behind them") {
  Machine m(entry("  .shared .align 16 .b8 own[20];\n  mov.u32 %r1, own;\n  mov.u32 %r2, b;\n  mov.u32 %r3, dyn;\n"
                  "  mov.u64 %rd1, dyn;\n  ld.shared.u32 %r4, [b+4];",
                  ".shared .align 4 .b8 unused[400];\n.shared .align 8 .b64 b[2];\n.extern .shared .align 128 .b8 dyn[];"));
  const auto k = m.kernel();
  REQUIRE(k->placed.size() == 3);
  CHECK(k->placed[0].name == "b");
  CHECK(k->placed[0].address == kSystemShared);
  CHECK(k->placed[1].name == "own");
  CHECK(k->placed[1].address == kSystemShared + 16);
  CHECK(k->placed[2].name == "dyn");
  CHECK(k->placed[2].address == kSystemShared + 128);
  CHECK(k->static_shared_bytes == 128);
  CHECK(k->dynamic_shared_align == 128);
}

TEST_CASE("parameters keep their alignment") {
  Machine m(".visible .entry k(.param .u8 a, .param .u64 b, .param .align 64 .b8 map[128], .param .u32 n) { ret; }");
  const auto k = m.kernel();
  CHECK(k->parameter_offsets == std::vector<std::uint32_t>{0, 8, 64, 192});
  CHECK(k->parameter_bytes == 196);
}

TEST_CASE("registers whose lives do not overlap share slots") {
  std::string body = "  mov.u32 %a0, %tid.x;\n";
  std::string registers = "  .reg .b32 %a<2001>;\n";
  for (int i = 0; i < 2000; ++i) body += "  add.s32 %a" + std::to_string(i + 1) + ", %a" + std::to_string(i) + ", 1;\n";
  body += "  ld.param.u64 %rd1, [out];\n  st.global.u32 [%rd1], %a2000;\n";
  Machine m(entry(registers + body));
  const auto k = m.kernel();
  CHECK(k->slot_words / kLanes <= 8);
  const std::uint64_t out = m.allocate(4);
  REQUIRE_CLEAN(m.launch({}, out));
  CHECK(m.read<std::uint32_t>(out, 1)[0] >= 2000);
}

TEST_CASE("values that live across a loop keep their slots") {
  Machine m(entry(R"(
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, 7;
  mov.u32 %r2, 0;
LOOP:
  mov.u32 %r3, 100;
  add.u32 %r4, %r3, %r2;
  mov.u32 %r5, %r4;
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p1, %r2, 5;
  @%p1 bra LOOP;
  add.u32 %r6, %r1, %r5;
  st.global.u32 [%rd1], %r6;
)"));
  const std::uint64_t out = m.allocate(4);
  REQUIRE_CLEAN(m.launch({}, out));
  CHECK(m.read<std::uint32_t>(out, 1)[0] == 111);
}

TEST_CASE("lanes that left a loop come behind those in it") {
  Machine m(entry(R"(
  mov.u32 %r1, %tid.x;
HEAD:
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra OUT;
  sub.u32 %r1, %r1, 1;
  bra HEAD;
OUT:
  mov.u32 %r2, 1;
)"));
  const auto k = m.kernel();
  const auto rank_of = [&](std::string_view text, std::uint32_t line) {
    for (std::size_t i = 0; i < k->ops.size(); ++i)
      if (k->info[k->ops[i].info].text == text && k->info[k->ops[i].info].where.line == line) return k->rank[i];
    FAIL("no such op");
    return 0u;
  };
  CHECK(rank_of("mov.u32", 19) > rank_of("bra", 17));
  CHECK(rank_of("bra", 17) > rank_of("setp.eq.u32", 14));
}

TEST_CASE("loops that only wait are told from others") {
  const auto spins = [](const std::string& body) {
    Machine m(entry(body));
    const auto k = m.kernel();
    return std::any_of(k->info.begin(), k->info.end(), [](const OpInfo& i) { return i.in_spin_loop; });
  };
  const std::string begin = "  ld.param.u64 %rd1, [out];\n  mov.u32 %r2, 0;\nL:\n";
  const std::string end = "  setp.eq.u32 %p1, %r1, 0;\n  @%p1 bra L;\n";
  CHECK(spins(begin + "  ld.volatile.global.u32 %r1, [%rd1];\n" + end));
  CHECK(spins(begin + "  ld.acquire.gpu.global.u32 %r1, [%rd1];\n  nanosleep.u32 9;\n" + end));
  CHECK(spins(begin + "  atom.global.add.u32 %r1, [%rd1], 0;\n" + end));
  CHECK(spins(begin + "  atom.global.cas.b32 %r1, [%rd1], 1, 2;\n" + end));
  CHECK_FALSE(spins(begin + "  atom.global.add.u32 %r1, [%rd1], 1;\n" + end));
  CHECK_FALSE(spins(begin + "  ld.global.u32 %r1, [%rd1];\n" + end));
  CHECK_FALSE(spins(begin + "  ld.volatile.global.u32 %r1, [%rd1];\n  st.global.u32 [%rd1+4], %r1;\n" + end));
  // A second way out, by a count.
  CHECK_FALSE(spins(begin + "  ld.volatile.global.u32 %r1, [%rd1];\n  add.u32 %r2, %r2, 1;\n  setp.gt.u32 %p2, %r2, 9;\n"
                            "  @%p2 bra OUT;\n" + end + "OUT:\n"));
}

TEST_CASE("hostile graphs decode in time") {
  std::string nested, close;
  for (int i = 0; i < 2000; ++i) {
    nested += "L" + std::to_string(i) + ": add.u32 %r1, %r1, 1;\n";
    close = "  setp.lt.u32 %p1, %r1, 5;\n  @%p1 bra L" + std::to_string(i) + ";\n" + close;
  }
  Machine deep(entry(nested + close));
  CHECK(deep.decode().has_value());
  // Every block branches to many others.
  std::string dense;
  for (int i = 0; i < 3000; ++i)
    dense += "L" + std::to_string(i) + ": setp.lt.u32 %p1, %r1, 5;\n  @%p1 bra L" + std::to_string((i * 7919 + 13) % 3000) +
             ";\n";
  Machine irreducible(entry(dense));
  CHECK(irreducible.decode().has_value());
}

TEST_CASE("every sm_90 file of other compilers decodes") {
  namespace fs = std::filesystem;
  std::size_t kernels = 0;
  for (const fs::directory_entry& file : fs::directory_iterator(PTXBENCH_SOURCE_DIR "/tests/fixtures/compiler_ptx")) {
    const std::string name = file.path().filename().string();
    if (file.path().extension() != ".ptx" || name.find("sm90") == std::string::npos) continue;
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    INFO(name);
    Machine m(text.str());
    for (const KernelInfo& k : m.module->info().kernels) {
      const auto decoded = m.decode(k.symbol);
      INFO((decoded ? std::string() : decoded.error().to_string()));
      CHECK(decoded.has_value());
      ++kernels;
    }
  }
  CHECK(kernels >= 30);
}
