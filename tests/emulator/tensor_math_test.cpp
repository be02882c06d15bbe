// The tensor-core arithmetic against a slow, literal reading of the rule in wide integers, on every inner
// loop that this machine has.
#include "emulator/tensor_math.hpp"

#include "emulator/tensor_operands.hpp"
#include "support/catch.hpp"
#include "tensor_reference.hpp"

#include <chrono>
#include <cmath>
#include <cstring>
#include <random>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

using namespace ptxbench::emulator;
using namespace ptxbench::testing;

namespace {

struct Form {
  TensorInstruction instruction;
  OperandType a, b;
  AccumulatorType d;
  int k;
};
constexpr auto kMma = TensorInstruction::mma_sync;
constexpr auto kWgmma = TensorInstruction::wgmma;
constexpr auto kWmma = TensorInstruction::wmma;
using enum OperandType;
constexpr auto kF32 = AccumulatorType::f32;
constexpr auto kF16 = AccumulatorType::f16;
constexpr auto kS32 = AccumulatorType::s32;

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {kWgmma, bf16, bf16, kF32, 16}, {kWgmma, f16, f16, kF32, 16},   {kWgmma, f16, f16, kF16, 16},
      {kWgmma, tf32, tf32, kF32, 8},  {kWgmma, e4m3, e4m3, kF32, 32}, {kWgmma, e5m2, e5m2, kF32, 32},
      {kWgmma, e4m3, e5m2, kF32, 32}, {kWgmma, e4m3, e4m3, kF16, 32}, {kWgmma, e5m2, e4m3, kF16, 32},
      {kWgmma, s8, s8, kS32, 32},     {kWgmma, u8, s8, kS32, 32},     {kMma, bf16, bf16, kF32, 16},
      {kMma, f16, f16, kF32, 16},     {kMma, f16, f16, kF16, 16},     {kMma, bf16, bf16, kF32, 8},
      {kMma, f16, f16, kF16, 8},      {kMma, tf32, tf32, kF32, 8},    {kMma, tf32, tf32, kF32, 4},
      {kMma, e4m3, e4m3, kF32, 32},   {kMma, e5m2, e5m2, kF32, 32},   {kMma, e4m3, e5m2, kF32, 16},
      {kMma, e4m3, e4m3, kF16, 32},   {kMma, u8, u8, kS32, 32},       {kMma, s8, u8, kS32, 16},
      {kWmma, bf16, bf16, kF32, 16},  {kWmma, tf32, tf32, kF32, 8},
  };
  return all;
}

TensorRule rule_of(const Form& f) {
  const auto rule = find_tensor_rule(90, f.instruction, f.a, f.b, f.d, f.k);
  REQUIRE(rule);
  return *rule;
}

enum class Distribution { normal, bits, scaled, special, tiny };
constexpr Distribution kDistributions[] = {Distribution::normal, Distribution::bits, Distribution::scaled,
                                           Distribution::special, Distribution::tiny};

using Random = std::mt19937_64;

std::uint32_t draw(OperandType type, Distribution distribution, Random& random) {
  std::normal_distribution<float> gauss;
  if (type == s8 || type == u8) return random() & 0xff;
  const auto arbitrary = [&] {
    auto bits = static_cast<std::uint32_t>(random());
    if (type == bf16 || type == tf32) {  // exponents within 2^-40 to 2^40
      const std::uint32_t field = 87 + bits % 80;
      bits = (bits & 0x807fffff) | field << 23;
      return type == bf16 ? bits >> 16 : bits;
    }
    return operand_bits(type) == 16 ? bits & 0xffff : bits & 0xff;
  };
  switch (distribution) {
    case Distribution::normal:
      return encode(type, gauss(random));
    case Distribution::bits:
      return arbitrary();
    case Distribution::scaled:
      return encode(type, std::ldexp(gauss(random), static_cast<int>(random() % 13) - 6));
    case Distribution::tiny: {  // the whole range of exponents
      const auto bits = static_cast<std::uint32_t>(random());
      return type == tf32 ? bits : operand_bits(type) == 16 ? bits & 0xffff : bits & 0xff;
    }
    case Distribution::special:
      break;
  }
  switch (random() % 40) {
    case 0:
      return specials(type).infinity;
    case 1:
      return specials(type).nan;
    case 2:
      return specials(type).infinity | specials(type).sign;
    case 3:
    case 4:
    case 5:
      return 0;
    case 6:
      return specials(type).sign;
    case 7:
    case 8:
    case 9:
      return specials(type).smallest | (random() & 1 ? specials(type).sign : 0);
    default:
      return encode(type, gauss(random));
  }
}

std::uint32_t draw_c(AccumulatorType type, Distribution distribution, Random& random) {
  if (type == AccumulatorType::s32) return random() % 4 == 0 ? 0x7fffff00 + random() % 256 : random();
  if (type == AccumulatorType::f16) return draw(f16, distribution, random);
  std::normal_distribution<float> gauss;
  std::uint32_t bits = 0;
  switch (distribution) {
    case Distribution::bits:
      return (random() & 0x807fffff) | (87 + random() % 80) << 23;
    case Distribution::tiny:
      return random();
    case Distribution::special:
      return draw(tf32, distribution, random) | (random() % 4 == 0 ? random() & 0x1fff : 0);
    default: {
      const float value = std::ldexp(gauss(random), static_cast<int>(random() % 9) - 4);
      std::memcpy(&bits, &value, 4);
      return bits;
    }
  }
}

struct Tiles {
  std::vector<std::uint8_t> a, b;
  std::vector<std::uint32_t> c;  // an element a word
  int m, n, k;
};
void put(std::vector<std::uint8_t>& bytes, OperandType type, std::uint32_t bits) {
  for (int i = 0; i < operand_bits(type) / 8; ++i)
    bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
}
Tiles make_tiles(const Form& f, int m, int n, Distribution distribution, Random& random) {
  Tiles t{{}, {}, {}, m, n, f.k};
  for (int i = 0; i < m * f.k; ++i) put(t.a, f.a, draw(f.a, distribution, random));
  for (int i = 0; i < n * f.k; ++i) put(t.b, f.b, draw(f.b, distribution, random));
  for (int i = 0; i < m * n; ++i) t.c.push_back(draw_c(f.d, distribution, random));
  return t;
}

std::vector<std::uint32_t> multiply(const TensorRule& rule, const Tiles& t, const MultiplyOptions& options) {
  if (rule.accumulator == AccumulatorType::f16) {
    std::vector<std::uint16_t> d(t.c.begin(), t.c.end());
    tile_multiply(rule, t.a.data(), t.b.data(), d.data(), t.m, t.n, t.k, options);
    return {d.begin(), d.end()};
  }
  std::vector<std::uint32_t> d = t.c;
  tile_multiply(rule, t.a.data(), t.b.data(), d.data(), t.m, t.n, t.k, options);
  return d;
}

std::vector<TensorIsa> isas() {
  std::vector<TensorIsa> found;
  for (const TensorIsa isa : {TensorIsa::portable, TensorIsa::avx2, TensorIsa::avx512})
    if (tensor_isa_available(isa)) found.push_back(isa);
  return found;
}

std::string name(const Form& f) { return to_string(rule_of(f)) + ".k" + std::to_string(f.k); }

}  // namespace

TEST_CASE("tensor math: every form and inner loop gives the rule's bits") {
  Random random(1);
  for (const Form& f : forms()) {
    const TensorRule rule = rule_of(f);
    const int m = f.instruction == kWgmma ? 64 : 16, n = f.instruction == kWgmma ? 40 : 8;
    std::size_t outputs = 0, wrong = 0;
    std::string first;
    while (outputs < 105000) {
      for (const Distribution distribution : kDistributions) {
        const Tiles t = make_tiles(f, m, n, distribution, random);
        MultiplyOptions options;
        options.accumulate = random() % 4 != 0;
        options.negate_a = f.instruction == kWgmma && f.d != kS32 && random() % 4 == 0;
        options.negate_b = f.instruction == kWgmma && f.d != kS32 && random() % 4 == 0;
        options.saturate = f.d == kS32 && random() % 2 == 0;
        const auto expected = reference_multiply(rule, t.a, t.b, t.c, m, n, f.k, options);
        for (const TensorIsa isa : isas()) {
          options.isa = isa;
          const auto got = multiply(rule, t, options);
          for (int i = 0; i < m * n; ++i)
            if (got[i] != expected[i] && ++wrong == 1) {
              std::ostringstream text;
              text << "output " << i << " isa " << static_cast<int>(isa) << " distribution "
                   << static_cast<int>(distribution) << std::hex << " c " << t.c[i] << " got " << got[i]
                   << " expected " << expected[i];
              first = text.str();
            }
        }
        outputs += static_cast<std::size_t>(m) * n;
      }
    }
    INFO(name(f) << ": " << first);
    CHECK(wrong == 0);
  }
}

TEST_CASE("tensor math: one output by itself is the tile's") {
  Random random(2);
  for (const Form& f : forms()) {
    const TensorRule rule = rule_of(f);
    for (const Distribution distribution : kDistributions) {
      const Tiles t = make_tiles(f, 8, 8, distribution, random);
      MultiplyOptions options;
      options.accumulate = distribution != Distribution::scaled;
      const auto d = multiply(rule, t, options);
      int wrong = 0;
      for (int i = 0; i < 64; ++i) {
        const auto* a = t.a.data() + static_cast<std::size_t>(i / 8 * f.k) * operand_bits(f.a) / 8;
        const auto* b = t.b.data() + static_cast<std::size_t>(i % 8 * f.k) * operand_bits(f.b) / 8;
        wrong += dot_product(rule, a, b, t.c[i], f.k, options) != d[i];
      }
      INFO(name(f));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("tensor math: fragments and tiles hold the same numbers") {
  Random random(3);
  for (const Form& f : forms()) {
    const TensorRule rule = rule_of(f);
    const int m = 16, n = 24;
    const Tiles t = make_tiles(f, m, n, Distribution::normal, random);
    const auto expected = multiply(rule, t, {});
    const bool half = rule.accumulator == AccumulatorType::f16;
    std::vector<std::array<std::uint32_t, 32>> lanes(
        static_cast<std::size_t>(m / 8 * (n / 8) * (half ? 1 : 2)));
    std::vector<std::uint32_t*> pointers;
    for (auto& l : lanes) pointers.push_back(l.data());
    const auto at = [&](int row, int column) -> std::pair<std::uint32_t*, int> {
      const int block = row / 8 * (n / 8) + column / 8, lane = row % 8 * 4 + column % 8 / 2, c = column % 2;
      return half ? std::pair{&lanes[block][lane], 16 * c} : std::pair{&lanes[2 * block + c][lane], 0};
    };
    for (auto& l : lanes) l.fill(0);
    for (int i = 0; i < m * n; ++i) {
      const auto [word, shift] = at(i / n, i % n);
      *word |= t.c[i] << shift;
    }
    fragment_multiply(rule, t.a.data(), t.b.data(), pointers.data(), m, n, f.k, {});
    int wrong = 0;
    for (int i = 0; i < m * n; ++i) {
      const auto [word, shift] = at(i / n, i % n);
      wrong += (half ? *word >> shift & 0xffff : *word) != expected[i];
    }
    INFO(name(f));
    CHECK(wrong == 0);
  }
}

TEST_CASE("tensor math: values that are known by hand") {
  const TensorRule rule = *find_tensor_rule(90, kWgmma, bf16, bf16, kF32, 16);
  const auto one = [&](std::vector<float> a, std::vector<float> b, float c) {
    std::uint16_t x[16] = {}, y[16] = {};
    for (std::size_t i = 0; i < a.size(); ++i) x[i] = static_cast<std::uint16_t>(encode(bf16, a[i]));
    for (std::size_t i = 0; i < b.size(); ++i) y[i] = static_cast<std::uint16_t>(encode(bf16, b[i]));
    std::uint32_t bits;
    std::memcpy(&bits, &c, 4);
    bits = dot_product(rule, x, y, bits, 16, {});
    float result;
    std::memcpy(&result, &bits, 4);
    return result;
  };
  CHECK(one({1, 2, 3}, {4, 5, 6}, 0.5F) == 32.5F);
  // 2^-25 is the last bit kept beside 1, and 2^-26 is cut, once or many times.
  CHECK(one({1, 0x1p-13F}, {1, 0x1p-12F}, 0) == 1.0F);
  CHECK(one({1, -0x1p-13F}, {1, 0x1p-12F}, 0) == 1 - 0x1p-24F);
  CHECK(one({1, -0x1p-13F}, {1, 0x1p-13F}, 0) == 1.0F);
  CHECK(one({1, -1, 0x1p-13F}, {1, 1, 0x1p-12F}, 0) == 0x1p-25F);
  CHECK(one({1, -1, 0x1p-13F}, {1, 1, 0x1p-13F}, 0) == 0.0F);
  CHECK_FALSE(std::signbit(one({-0.0F}, {1}, -0.0F)));
  CHECK(std::isinf(one({0x1p100F, 0x1p100F}, {0x1.8p27F, 0x1p27F}, 0)));
}

TEST_CASE("tensor math: the host's floating-point state does not matter") {
#if defined(__x86_64__)
  Random random(4);
  for (const Form& f : forms()) {
    const TensorRule rule = rule_of(f);
    for (const Distribution distribution : {Distribution::special, Distribution::tiny}) {
      const Tiles t = make_tiles(f, 16, 16, distribution, random);
      const auto expected = multiply(rule, t, {});
      const unsigned saved = _mm_getcsr();
      for (const unsigned state :
           {0x9fc0U, 0x3f80U, 0xffc0U}) {  // flushing both ways; down; towards zero and flushing
        _mm_setcsr(state);
        const auto got = multiply(rule, t, {});
        const unsigned after = _mm_getcsr();
        _mm_setcsr(saved);
        CHECK((after & ~0x3fU) == state);
        CHECK(got == expected);
      }
    }
  }
#endif
}

TEST_CASE("tensor math: the table says what is measured, and what there is not") {
  CHECK(find_tensor_rule(90, kMma, bf16, bf16, kF32, 16)->fidelity == RuleFidelity::exact);
  CHECK(find_tensor_rule(90, kMma, e4m3, e5m2, kF16, 16)->fidelity == RuleFidelity::unmeasured);
  CHECK(find_tensor_rule(90, kMma, e4m3, e4m3, kF32, 32)->composition == Composition::split_then_add);
  CHECK(find_tensor_rule(90, kWgmma, e4m3, e4m3, kF32, 32)->fraction_bits == 13);
  CHECK_FALSE(find_tensor_rule(90, kWgmma, bf16, f16, kF32, 16));
  CHECK_FALSE(find_tensor_rule(90, kWgmma, bf16, bf16, kF16, 16));
  CHECK_FALSE(find_tensor_rule(100, kWgmma, bf16, bf16, kF32, 16));
}

TEST_CASE("tensor math: halves convert as they should, all of them") {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<std::uint16_t>(i);
    const float value = half_to_float(half);
    if ((i & 0x7fff) > 0x7c00) {
      CHECK(std::isnan(value));
      REQUIRE(float_to_half(value) == 0x7fff);
    } else {
      REQUIRE(value == reference_value(f16, i));
      REQUIRE(float_to_half(value) == half);
    }
  }
  Random random(5);
  for (int i = 0; i < 300000; ++i) {
    auto bits = static_cast<std::uint32_t>(random());
    if (i % 2 == 0) bits = (bits & 0x807fffff) | (100 + bits % 45) << 23;
    float value;
    std::memcpy(&value, &bits, 4);
    if (std::isnan(value)) continue;
    const std::uint32_t expected = encode(f16, value);
    // A result that vanishes is +0.
    REQUIRE(float_to_half(value) == ((expected & 0x7fff) == 0 && value != 0 ? 0 : expected));
  }
}

// Run by hand: test_emulator "[.speed]".
TEST_CASE("tensor math: speed", "[.speed]") {
  Random random(6);
  const auto clock = [] { return std::chrono::steady_clock::now(); };
  for (const Form& f : forms()) {
    const TensorRule rule = rule_of(f);
    const int m = f.instruction == kWgmma ? 64 : 16, n = f.instruction == kWgmma ? 256 : 8;
    const Tiles t = make_tiles(f, m, n, Distribution::normal, random);
    const bool half = rule.accumulator == AccumulatorType::f16;
    std::vector<std::array<std::uint32_t, 32>> lanes(
        static_cast<std::size_t>(m / 8 * (n / 8) * (half ? 1 : 2)));
    std::vector<std::uint32_t*> pointers;
    for (auto& l : lanes) pointers.push_back(l.data());
    std::string line = name(f) + " m" + std::to_string(m) + "n" + std::to_string(n) + ", us:";
    for (const TensorIsa isa : isas()) {
      MultiplyOptions options;
      options.isa = isa;
      double best = 1e9;
      for (int repeat = 0; repeat < 200; ++repeat) {
        for (auto& l : lanes) l.fill(0);
        const auto start = clock();
        fragment_multiply(rule, t.a.data(), t.b.data(), pointers.data(), m, n, f.k, options);
        best = std::min(best, std::chrono::duration<double, std::micro>(clock() - start).count());
      }
      line += " " + std::to_string(best);
    }
    WARN(line);
  }
}
