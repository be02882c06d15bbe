// The approximate functions against sums of the card's outputs (tests/fixtures/mufu/README.md): a sample of
// blocks here, all inputs of every function under [.slow].
#include "emulator/approx.hpp"

#include "support/catch.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace ptxbench::emulator;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using Lanes = std::array<u32, 32>;

constexpr u32 kBlocks = 4096;

struct Function {
  const char* name;
  const char* sums;
  void (*run)(u32* d, const u32* a);
};

void high_words(u32* d, const u32* a, void (*run)(u64*, const u64*)) {
  std::array<u64, 32> wide{}, out{};
  for (u32 i = 0; i < 32; ++i)
    wide[i] = static_cast<u64>(a[i]) << 32 | (a[i] * 2654435761u);  // the low word is ignored
  run(out.data(), wide.data());
  u32 low = 0;
  for (u32 i = 0; i < 32; ++i) {
    d[i] = static_cast<u32>(out[i] >> 32);
    low |= static_cast<u32>(out[i]);
  }
  if (low != 0) d[0] = ~d[0];  // it must be zero
}

template <u32 (*F)(u32)>
void each(u32* d, const u32* a) {
  for (int i = 0; i < 32; ++i) d[i] = F(a[i]);
}

const Function kFunctions[] = {
    {"ex2.approx.f32", "ex2", [](u32* d, const u32* a) { ex2_approx(d, a, false); }},
    {"ex2.approx.ftz.f32", "ex2_ftz", [](u32* d, const u32* a) { ex2_approx(d, a, true); }},
    {"lg2.approx.f32", "lg2", [](u32* d, const u32* a) { lg2_approx(d, a, false); }},
    {"lg2.approx.ftz.f32", "lg2_ftz", [](u32* d, const u32* a) { lg2_approx(d, a, true); }},
    {"rcp.approx.f32", "rcp", [](u32* d, const u32* a) { rcp_approx(d, a, false); }},
    {"rcp.approx.ftz.f32", "rcp_ftz", [](u32* d, const u32* a) { rcp_approx(d, a, true); }},
    {"rsqrt.approx.f32", "rsqrt", [](u32* d, const u32* a) { rsqrt_approx(d, a, false); }},
    {"rsqrt.approx.ftz.f32", "rsqrt_ftz", [](u32* d, const u32* a) { rsqrt_approx(d, a, true); }},
    {"sqrt.approx.f32", "sqrt", [](u32* d, const u32* a) { sqrt_approx(d, a, false); }},
    {"sqrt.approx.ftz.f32", "sqrt_ftz", [](u32* d, const u32* a) { sqrt_approx(d, a, true); }},
    {"sin.approx.f32", "sin", [](u32* d, const u32* a) { sin_approx(d, a); }},
    {"cos.approx.f32", "cos", [](u32* d, const u32* a) { cos_approx(d, a); }},
    {"tanh.approx.f32", "tanh", [](u32* d, const u32* a) { tanh_approx(d, a); }},
    {"ex2.approx.f16x2", "ex2_f16x2", [](u32* d, const u32* a) { ex2_approx_f16x2(d, a); }},
    {"ex2.approx.ftz.bf16x2", "ex2_ftz_bf16x2", [](u32* d, const u32* a) { ex2_approx_bf16x2(d, a); }},
    {"tanh.approx.f16x2", "tanh_f16x2", [](u32* d, const u32* a) { tanh_approx_f16x2(d, a); }},
    {"tanh.approx.bf16x2", "tanh_bf16x2", [](u32* d, const u32* a) { tanh_approx_bf16x2(d, a); }},
    {"rcp.approx.ftz.f64", "mufu_rcp64h",
     [](u32* d, const u32* a) { high_words(d, a, [](u64* x, const u64* y) { rcp_approx_ftz_f64(x, y); }); }},
    {"rsqrt.approx.ftz.f64", "mufu_rsq64h",
     [](u32* d, const u32* a) {
       high_words(d, a, [](u64* x, const u64* y) { rsqrt_approx_ftz_f64(x, y); });
     }},
    {"MUFU.SIN", "mufu_sin", each<mufu_sin>},
    {"MUFU.COS", "mufu_cos", each<mufu_cos>},
};

struct Division {
  const char* name;
  const char* sums;
  void (*run)(u32* d, const u32* a, const u32* b);
};

const Division kDivisions[] = {
    {"div.approx.f32", "div_approx", [](u32* d, const u32* a, const u32* b) { div_approx(d, a, b, false); }},
    {"div.approx.ftz.f32", "div_approx_ftz",
     [](u32* d, const u32* a, const u32* b) { div_approx(d, a, b, true); }},
    {"div.full.f32", "div_full", [](u32* d, const u32* a, const u32* b) { div_full(d, a, b, false); }},
    {"div.full.ftz.f32", "div_full_ftz", [](u32* d, const u32* a, const u32* b) { div_full(d, a, b, true); }},
};

std::vector<u32> read_sums(const std::string& name) {
  std::ifstream file(std::string(PTXBENCH_SOURCE_DIR "/tests/fixtures/mufu/") + name + ".sums",
                     std::ios::binary);
  std::vector<u32> sums(kBlocks + 1);
  file.read(reinterpret_cast<char*>(sums.data()), static_cast<std::streamsize>(sums.size() * sizeof(u32)));
  REQUIRE(file.gcount() == static_cast<std::streamsize>(kBlocks * sizeof(u32)));
  sums.pop_back();
  return sums;
}

constexpr u64 kGolden = 0x9E3779B97F4A7C15;
u32 weight(u32 x) {
  const u64 m = (u64{x} + 1) * kGolden;
  return (static_cast<u32>(m) ^ static_cast<u32>(m >> 32)) | 1u;
}

u32 block_sum(const Function& function, u32 block) {
  alignas(64) Lanes a, d;
  u32 sum = 0;
  for (u32 i = 0; i < 1u << 20; i += 32) {
    for (u32 lane = 0; lane < 32; ++lane) a[lane] = (block << 20) + i + lane;
    function.run(d.data(), a.data());
    for (u32 lane = 0; lane < 32; ++lane) sum += d[lane] * weight(a[lane]);
  }
  return sum;
}

// The pairs that the card divided: random bits, with runs of divisors near the ends of the range, of small
// dividends, of ordinary quotients, and of special values.
void division_pair(u32 number, u32& a, u32& b) {
  u64 z = (u64{number} + 1) * kGolden;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  z ^= z >> 31;
  a = static_cast<u32>(z);
  b = static_cast<u32>(z >> 32);
  const u32 r = (number >> 2) * 2654435761u >> 8;
  const auto set_exponent = [](u32& v, u32 exponent) { v = (v & 0x807fffff) | exponent << 23; };
  switch (number & 3) {
    case 0:
      if ((r & 15) == 0) {
        constexpr u32 kDividends[6] = {0, 0x7f800000, 0x7fc00001, 1, 0x00800000, 0x7e800000};
        constexpr u32 kDivisors[6] = {0, 0x7f800000, 0x7f800001, 0x007fffff, 0x7e800000, 0x7e800001};
        const u32 s = r >> 4 & 7, t = r >> 7 & 7;
        if (s < 6) a = (a & 0x80000000) | kDividends[s];
        if (t < 6) b = (b & 0x80000000) | kDivisors[t];
      }
      break;
    case 1:
      set_exponent(b, (r & 7) < 4 ? (r & 7) : 248 + (r & 7));
      break;
    case 2:
      set_exponent(a, r & 7);
      set_exponent(b, 120 + (r >> 3 & 15));
      break;
    default:
      set_exponent(a, 100 + (r & 63));
      set_exponent(b, 100 + (r >> 6 & 63));
  }
}

u32 block_sum(const Division& division, u32 block) {
  alignas(64) Lanes a, b, d;
  u32 sum = 0;
  for (u32 i = 0; i < 1u << 16; i += 32) {
    for (u32 lane = 0; lane < 32; ++lane) division_pair((block << 16) + i + lane, a[lane], b[lane]);
    division.run(d.data(), a.data(), b.data());
    for (u32 lane = 0; lane < 32; ++lane) sum += d[lane] * weight((block << 16) + i + lane);
  }
  return sum;
}

template <typename F>
void check_blocks(const F& function, const std::vector<u32>& blocks) {
  const std::vector<u32> sums = read_sums(function.sums);
  for (u32 block : blocks) {
    INFO(function.name << ", block " << block);
    CHECK(block_sum(function, block) == sums[block]);
  }
}

std::vector<u32> all_blocks() {
  std::vector<u32> blocks(kBlocks);
  for (u32 i = 0; i < kBlocks; ++i) blocks[i] = i;
  return blocks;
}

}  // namespace

TEST_CASE("approximate functions have the card's bits on a sample of their inputs") {
  // Zero and subnormals; around 1, 2^-8 (tanh) and 126 to 150 (ex2); the largest numbers, infinity and NaN;
  // both signs.
  for (const Function& function : kFunctions) {
    check_blocks(function, {0x000, 0x3b8, 0x3f8, 0x42f, 0x7f8, 0x800, 0xc2f});
  }
}

TEST_CASE("approximate divisions have the card's bits on a sample of pairs") {
  for (const Division& division : kDivisions) check_blocks(division, {0, 1, 1000, 2048, 3333, 4095});
}

TEST_CASE("a block's sum shows one wrong output") {
  static bool broken = false;
  const Function function = {"", "ex2", [](u32* d, const u32* a) {
                               ex2_approx(d, a, false);
                               if (broken && a[0] == 0x3f812340) d[7] ^= 1;
                             }};
  const u32 right = block_sum(function, 0x3f8);
  broken = true;
  CHECK(block_sum(function, 0x3f8) != right);
}

TEST_CASE("scalar forms of approximate functions are the lane forms") {
  Lanes a, b, d;
  u32 state = 1;
  for (int round = 0; round < 2000; ++round) {
    for (u32 lane = 0; lane < 32; ++lane) {
      state = state * 1664525u + 1013904223u;
      a[lane] = state ^ state >> 16;
      state = state * 1664525u + 1013904223u;
      b[lane] = state ^ state >> 15;
    }
    const auto same = [&](const char* name, auto&& scalar) {
      for (u32 lane = 0; lane < 32; ++lane) {
        if (d[lane] != scalar(a[lane], b[lane])) FAIL(name << " of " << a[lane] << ", " << b[lane]);
      }
    };
    for (const bool ftz : {false, true}) {
      ex2_approx(d.data(), a.data(), ftz);
      same("ex2", [&](u32 v, u32) { return ex2_approx(v, ftz); });
      lg2_approx(d.data(), a.data(), ftz);
      same("lg2", [&](u32 v, u32) { return lg2_approx(v, ftz); });
      rcp_approx(d.data(), a.data(), ftz);
      same("rcp", [&](u32 v, u32) { return rcp_approx(v, ftz); });
      rsqrt_approx(d.data(), a.data(), ftz);
      same("rsqrt", [&](u32 v, u32) { return rsqrt_approx(v, ftz); });
      sqrt_approx(d.data(), a.data(), ftz);
      same("sqrt", [&](u32 v, u32) { return sqrt_approx(v, ftz); });
      div_approx(d.data(), a.data(), b.data(), ftz);
      same("div.approx", [&](u32 v, u32 w) { return div_approx(v, w, ftz); });
      div_full(d.data(), a.data(), b.data(), ftz);
      same("div.full", [&](u32 v, u32 w) { return div_full(v, w, ftz); });
    }
    sin_approx(d.data(), a.data());
    same("sin", [](u32 v, u32) { return sin_approx(v); });
    cos_approx(d.data(), a.data());
    same("cos", [](u32 v, u32) { return cos_approx(v); });
    tanh_approx(d.data(), a.data());
    same("tanh", [](u32 v, u32) { return tanh_approx(v); });
    const auto pairwise = [](std::uint16_t (*f)(std::uint16_t)) {
      return [f](u32 v, u32) {
        return u32{f(static_cast<std::uint16_t>(v))} | u32{f(static_cast<std::uint16_t>(v >> 16))} << 16;
      };
    };
    ex2_approx_f16x2(d.data(), a.data());
    same("ex2.f16", pairwise(ex2_approx_f16));
    ex2_approx_bf16x2(d.data(), a.data());
    same("ex2.bf16", pairwise(ex2_approx_bf16));
    tanh_approx_f16x2(d.data(), a.data());
    same("tanh.f16", pairwise(tanh_approx_f16));
    tanh_approx_bf16x2(d.data(), a.data());
    same("tanh.bf16", pairwise(tanh_approx_bf16));
  }
}

TEST_CASE("the output of an approximate function may be its input") {
  Lanes a, d;
  for (u32 lane = 0; lane < 32; ++lane) a[lane] = std::bit_cast<u32>(0.37f * static_cast<float>(lane) - 4.0f);
  ex2_approx(d.data(), a.data(), false);
  ex2_approx(a.data(), a.data(), false);
  CHECK(a == d);
}

TEST_CASE("special values of approximate functions") {
  constexpr u32 kInf = 0x7f800000, kNan = 0x7fffffff, kOne = 0x3f800000;
  CHECK(ex2_approx(std::bit_cast<u32>(3.0f), true) == std::bit_cast<u32>(8.0f));
  CHECK(ex2_approx(0xff800000, false) == 0);
  CHECK(ex2_approx(0xffc12345, false) == kNan);
  CHECK(lg2_approx(kOne, true) == 0);
  CHECK(lg2_approx(0x80000000, true) == 0xff800000);
  CHECK(lg2_approx(0xbf800000, true) == kNan);
  CHECK(rcp_approx(0x80000000, true) == 0xff800000);
  CHECK(rcp_approx(0x00000001, true) == kInf);         // flushed
  CHECK(rcp_approx(0x7f7fffff, false) == 0x00200000);  // 2^-128, subnormal
  CHECK(rcp_approx(0x7f7fffff, true) == 0);
  CHECK(rsqrt_approx(std::bit_cast<u32>(4.0f), true) == std::bit_cast<u32>(0.5f));
  CHECK(sqrt_approx(0x80000000, true) == 0x80000000);
  CHECK(tanh_approx(0x00000001) == 1);
  CHECK(tanh_approx(kInf) == kOne);
  CHECK(sin_approx(kInf) == kNan);
  CHECK(div_full(kOne, 0, false) == kInf);
  CHECK(ex2_approx_f16(0x4c00) == 0x7c00);  // 2^16 is too large
  CHECK(ex2_approx_f16(0xcc00) == 0x0100);  // 2^-16 is subnormal
  CHECK(rcp_approx_ftz_f64(0x4000000012345678) == u64{0x3fe00000} << 32);
}

TEST_CASE("approximate functions have the card's bits on all inputs", "[.slow]") {
  for (const Function& function : kFunctions) {
    check_blocks(function, all_blocks());
    WARN(function.name << " checked");  // minutes go by
  }
  for (const Division& division : kDivisions) {
    check_blocks(division, all_blocks());
    WARN(division.name << " checked");
  }
}
