// Every matrix instruction that the emulator executes, as a kernel of its own with inputs that follow from
// its name: the same text runs on a card, which answers, and on the emulator, which must answer the same.
//
// A form multiplies `tiles` tiles, one a CTA. Operands come from the host as register images (words
// [register][thread]) or as an image of shared memory, so that the layouts are those of the code under test.
#pragma once

#include "emulator/fragments.hpp"
#include "emulator/tensor_math.hpp"
#include "emulator/wgmma_descriptor.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace ptxbench::testing {

using emulator::AccumulatorType;
using emulator::OperandType;
using emulator::Swizzle;
using emulator::TensorInstruction;

struct TensorForm {
  TensorInstruction instruction = TensorInstruction::mma_sync;
  OperandType a = OperandType::bf16, b = OperandType::bf16;
  AccumulatorType d = AccumulatorType::f32;
  int m = 16, n = 8, k = 16;
  int tiles = 8;
  bool accumulate = true, negate_a = false, negate_b = false, saturate = false;
  // wgmma
  bool a_in_registers = false, a_mn = false, b_mn = false;
  Swizzle a_swizzle = Swizzle::none, b_swizzle = Swizzle::none;
  int k_step = 0;                    // both operands start that many times 32 bytes into their swizzled rows
  std::uint32_t pattern_offset = 0;  // B's swizzle pattern starts that many times 128 bytes past its boundary

  int threads() const { return instruction == TensorInstruction::wgmma ? 128 : 32; }
  int outputs() const { return m * n; }
  emulator::TensorRule rule() const { return *emulator::find_tensor_rule(90, instruction, a, b, d, k); }
  emulator::MultiplyOptions options() const {
    emulator::MultiplyOptions o;
    o.accumulate = accumulate;
    o.negate_a = negate_a;
    o.negate_b = negate_b;
    o.saturate = saturate;
    return o;
  }
  std::string name() const {
    std::string text = to_string(rule());
    text += ".m" + std::to_string(m) + "n" + std::to_string(n) + "k" + std::to_string(k);
    if (!accumulate) text += ".zero";
    if (negate_a) text += ".nega";
    if (negate_b) text += ".negb";
    if (saturate) text += ".satfinite";
    if (a_in_registers) text += ".ra";
    if (a_mn) text += ".amn";
    if (b_mn) text += ".bmn";
    if (a_swizzle != Swizzle::none) text += ".as" + std::to_string(swizzle_span(a_swizzle));
    if (b_swizzle != Swizzle::none) text += ".bs" + std::to_string(swizzle_span(b_swizzle));
    if (k_step != 0) text += ".step" + std::to_string(k_step);
    if (pattern_offset != 0) text += ".offset" + std::to_string(pattern_offset);
    return text;
  }
};

inline std::vector<TensorForm> tensor_forms() {
  using enum OperandType;
  constexpr auto kF32 = AccumulatorType::f32;
  constexpr auto kF16 = AccumulatorType::f16;
  constexpr auto kS32 = AccumulatorType::s32;
  std::vector<TensorForm> forms;
  struct Types {
    OperandType a, b;
    AccumulatorType d;
    int k;
  };
  const std::vector<Types> wgmma = {
      {bf16, bf16, kF32, 16}, {f16, f16, kF32, 16},   {f16, f16, kF16, 16},   {tf32, tf32, kF32, 8},
      {e4m3, e4m3, kF32, 32}, {e5m2, e5m2, kF32, 32}, {e4m3, e5m2, kF32, 32}, {e5m2, e4m3, kF32, 32},
      {e4m3, e4m3, kF16, 32}, {e5m2, e5m2, kF16, 32}, {e4m3, e5m2, kF16, 32}, {e5m2, e4m3, kF16, 32},
      {s8, s8, kS32, 32},     {u8, u8, kS32, 32},     {s8, u8, kS32, 32},     {u8, s8, kS32, 32}};
  for (const Types& t : wgmma) {
    TensorForm f;
    f.instruction = TensorInstruction::wgmma;
    f.a = t.a, f.b = t.b, f.d = t.d, f.k = t.k, f.m = 64, f.n = 8;
    f.tiles = 200;  // 102,400 outputs
    forms.push_back(f);
    f.tiles = 10;
    const auto with = [&](auto change) {
      TensorForm g = f;
      change(g);
      forms.push_back(g);
    };
    with([](TensorForm& g) { g.accumulate = false; });
    with([](TensorForm& g) { g.a_in_registers = true; });
    with([](TensorForm& g) { g.n = g.d == AccumulatorType::s32 ? 96 : 88; });
    with([](TensorForm& g) { g.n = 256, g.tiles = 5; });
    if (t.d == kS32) {
      with([](TensorForm& g) { g.saturate = true; });
    } else {
      with([](TensorForm& g) { g.negate_a = true; });
      with([](TensorForm& g) { g.negate_b = true; });
      with([](TensorForm& g) { g.negate_a = g.negate_b = g.a_in_registers = true; });
    }
    const bool layouts = t.a == t.b && (t.a == bf16 || t.a == tf32 || t.a == e4m3) && t.d == kF32;
    for (const Swizzle swizzle : {Swizzle::none, Swizzle::bytes_32, Swizzle::bytes_64, Swizzle::bytes_128}) {
      if (!layouts) break;
      const auto shape = [&](TensorForm& g) {
        g.n = 128, g.tiles = 2;
        g.a_swizzle = g.b_swizzle = swizzle;
      };
      with(shape);
      if (swizzle == Swizzle::bytes_128 || swizzle == Swizzle::bytes_64)
        with([&](TensorForm& g) { shape(g), g.k_step = 1; });
      if (swizzle == Swizzle::bytes_128) {
        with([&](TensorForm& g) { shape(g), g.k_step = 3; });
        with([&](TensorForm& g) { shape(g), g.a_swizzle = Swizzle::bytes_32; });
        with([&](TensorForm& g) { shape(g), g.pattern_offset = 3; });
      }
      if (t.a != bf16) continue;
      with([&](TensorForm& g) { shape(g), g.a_mn = true; });
      with([&](TensorForm& g) { shape(g), g.b_mn = true; });
      with([&](TensorForm& g) { shape(g), g.a_mn = g.b_mn = true; });
      with([&](TensorForm& g) { shape(g), g.b_mn = g.a_in_registers = true; });
    }
  }
  const std::vector<Types> mma = {
      {bf16, bf16, kF32, 16}, {f16, f16, kF32, 16},   {f16, f16, kF16, 16},   {bf16, bf16, kF32, 8},
      {f16, f16, kF32, 8},    {f16, f16, kF16, 8},    {tf32, tf32, kF32, 8},  {tf32, tf32, kF32, 4},
      {e4m3, e4m3, kF32, 32}, {e5m2, e5m2, kF32, 32}, {e4m3, e5m2, kF32, 32}, {e5m2, e4m3, kF32, 32},
      {e4m3, e4m3, kF32, 16}, {e5m2, e5m2, kF32, 16}, {e4m3, e5m2, kF32, 16}, {e4m3, e4m3, kF16, 32},
      {e5m2, e5m2, kF16, 32}, {e4m3, e5m2, kF16, 32}, {e4m3, e4m3, kF16, 16}, {e5m2, e5m2, kF16, 16},
      {s8, s8, kS32, 32},     {u8, u8, kS32, 32},     {s8, u8, kS32, 32},     {u8, s8, kS32, 32},
      {s8, s8, kS32, 16},     {u8, s8, kS32, 16}};
  for (const Types& t : mma) {
    TensorForm f;
    f.a = t.a, f.b = t.b, f.d = t.d, f.k = t.k;
    f.tiles = 800;
    forms.push_back(f);
    if (t.d != kS32) continue;
    f.tiles = 20;
    f.saturate = true;
    forms.push_back(f);
    if (t.k != 16) continue;
    f.m = 8;
    forms.push_back(f);
  }
  for (const Types& t : {Types{bf16, bf16, kF32, 16},
                         {f16, f16, kF32, 16},
                         {f16, f16, kF16, 16},
                         {tf32, tf32, kF32, 8},
                         {s8, s8, kS32, 16},
                         {u8, u8, kS32, 16}})
    for (const int m : {16, 32, 8}) {
      if (t.k == 8 && m != 16) continue;
      TensorForm f;
      f.instruction = TensorInstruction::wmma;
      f.a = t.a, f.b = t.b, f.d = t.d, f.k = t.k, f.m = m, f.n = 256 / m;
      f.tiles = m == 16 ? 400 : 40;
      forms.push_back(f);
    }
  return forms;
}

// ---- inputs
// ---------------------------------------------------------------------------------------------------

// Operands of one tile: raw bits, A [m][k], B [n][k], C [m][n] (two bytes an element of fp16, else four).
struct TensorTile {
  std::vector<std::uint8_t> a, b, c;
};

class TensorInputs {
 public:
  TensorInputs(const TensorForm& form, int tile) : form_(form), kind_(tile % 5) {
    std::uint64_t seed = 0xcbf29ce484222325;
    for (const char c : form.name()) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    random_.seed(seed + static_cast<std::uint64_t>(tile));
  }
  TensorTile tile() {
    TensorTile t;
    for (int i = 0; i < form_.m * form_.k; ++i) put(t.a, operand_bits(form_.a) / 8, operand(form_.a));
    for (int i = 0; i < form_.n * form_.k; ++i) put(t.b, operand_bits(form_.b) / 8, operand(form_.b));
    for (int i = 0; i < form_.m * form_.n; ++i) put(t.c, accumulator_bytes(form_.d), accumulator());
    return t;
  }

 private:
  static void put(std::vector<std::uint8_t>& bytes, int size, std::uint32_t bits) {
    for (int i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(bits >> (8 * i)));
  }
  std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }
  // Nearly normal, of standard deviation 0.8, exact in fp32.
  float gauss() {
    std::int32_t sum = -8 * 32768;
    for (int i = 0; i < 8; ++i) sum += static_cast<std::int32_t>(word() & 0xffff);
    return static_cast<float>(sum) * 0x1p-16F;
  }
  struct Layout {
    int exponent_bits, mantissa_bits, shift;
  };
  static Layout layout(OperandType type) {
    switch (type) {
      case OperandType::f16:
        return {5, 10, 0};
      case OperandType::bf16:
        return {8, 7, 0};
      case OperandType::tf32:
        return {8, 23, 0};
      case OperandType::e4m3:
        return {4, 3, 0};
      default:
        return {5, 2, 0};
    }
  }
  // A value cut to the format; what is too small becomes zero.
  static std::uint32_t cut(Layout f, float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const std::uint32_t sign = bits >> 31 << (f.exponent_bits + f.mantissa_bits);
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    const int exponent = static_cast<int>(bits >> 23 & 0xff) - 127 + bias;
    if (exponent <= 0) return sign;
    if (exponent >= 2 * bias) return sign | static_cast<std::uint32_t>(2 * bias) << f.mantissa_bits;
    return sign | static_cast<std::uint32_t>(exponent) << f.mantissa_bits |
           (bits & 0x7fffff) >> (23 - f.mantissa_bits);
  }
  std::uint32_t any(Layout f) {
    std::uint32_t bits = word();
    if (f.exponent_bits == 8) {  // within 2^-40 to 2^40
      const std::uint32_t sign = bits >> 31 << (8 + f.mantissa_bits), field = 87 + (bits >> 8) % 80;
      return sign | field << f.mantissa_bits | (word() & ((1U << f.mantissa_bits) - 1));
    }
    return bits & ((1U << (1 + f.exponent_bits + f.mantissa_bits)) - 1);
  }
  std::uint32_t special(Layout f, bool e4m3) {
    const std::uint32_t sign = (word() & 1) << (f.exponent_bits + f.mantissa_bits);
    const std::uint32_t top = ((1U << f.exponent_bits) - 1) << f.mantissa_bits;
    const std::uint32_t mantissa = word() & ((1U << f.mantissa_bits) - 1);
    switch (word() % 24) {
      case 0:
        return sign | (e4m3 ? top | ((1U << f.mantissa_bits) - 1) : top);  // infinity (e4m3: NaN)
      case 1:
        return word() % 4 == 0 ? sign | top | mantissa : sign;
      case 2:
      case 3:
      case 4:
        return sign;
      case 5:
      case 6:
        return sign | mantissa;  // subnormal
      case 7:
        return sign | 1U << f.mantissa_bits | mantissa;
      default:
        return cut(f, gauss());
    }
  }
  // Sums of few, tiny or zero products.
  std::uint32_t sparse(Layout f) {
    const std::uint32_t sign = (word() & 1) << (f.exponent_bits + f.mantissa_bits);
    const std::uint32_t mantissa = word() & ((1U << f.mantissa_bits) - 1);
    if (word() % 3 != 0) return sign;
    if (f.exponent_bits < 8) return word() % 2 == 0 ? sign | mantissa : cut(f, gauss());
    const std::uint32_t field =
        word() % 2 == 0 ? word() % 4 : 50 + word() % 30;  // products about 2^-126 to 2^-150
    return sign | field << f.mantissa_bits | mantissa;
  }
  std::uint32_t value(Layout f, bool e4m3) {
    switch (kind_) {
      case 0:
        return cut(f, gauss());
      case 1:
        return any(f);
      case 2:
        return cut(f, std::ldexp(gauss(), static_cast<int>(word() % 13) - 6));
      case 3:
        return special(f, e4m3);
      default:
        return sparse(f);
    }
  }
  std::uint32_t operand(OperandType type) {
    if (type == OperandType::s8 || type == OperandType::u8)
      return kind_ == 3 ? (word() & 1 ? 0x80 : 0x7f) : word() & 0xff;
    return value(layout(type), type == OperandType::e4m3);
  }
  std::uint32_t accumulator() {
    if (form_.d == AccumulatorType::s32) return kind_ == 3 ? 0x7fffffffU + (word() & 1) : word();
    if (form_.d == AccumulatorType::f16) return value({5, 10, 0}, false);
    return value({8, 23, 0}, false);
  }

  const TensorForm& form_;
  int kind_;
  std::mt19937_64 random_;
};

// ---- operands as the kernels take them
// ----------------------------------------------------------------------------

// Element (row, column) of a packed matrix of `bits` elements.
inline std::uint32_t matrix_bits(const std::vector<std::uint8_t>& bytes, int bits, int columns, int row,
                                 int column) {
  const auto size = static_cast<std::size_t>(bits / 8);
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + static_cast<std::size_t>(row * columns + column) * size, size);
  return value;
}

// Words [register][thread] of a matrix, element e of a thread at index(e, thread).
template <class F>
std::vector<std::uint32_t> register_image(int registers, int threads, int bits, F&& element) {
  std::vector<std::uint32_t> words(static_cast<std::size_t>(registers * threads));
  for (int t = 0; t < threads; ++t)
    for (int e = 0; e < registers * 32 / bits; ++e)
      words[static_cast<std::size_t>(e * bits / 32 * threads + t)] |= element(e, t) << (e * bits % 32);
  return words;
}

struct OperandPlace {
  std::uint64_t descriptor = 0;  // relative to the start of shared memory
  std::uint32_t bytes = 0;       // of the image
};
// How an operand of wgmma lies in shared memory from `start` (a multiple of 1024) on.
inline OperandPlace place_operand(bool mn_major, Swizzle swizzle, int rows, std::uint32_t start, int k_step,
                                  std::uint32_t pattern_offset) {
  const auto span = static_cast<std::uint32_t>(swizzle_span(swizzle)), r = static_cast<std::uint32_t>(rows);
  std::uint32_t leading = 16, stride = 8 * span, bytes = r * span;
  if (!mn_major && swizzle == Swizzle::none) leading = 128, stride = 256, bytes = r * 32;
  if (mn_major && swizzle == Swizzle::none) leading = r * 16, stride = 128, bytes = r * 32;
  if (mn_major && swizzle != Swizzle::none)
    leading = 16 * span, bytes = (r * 2 + span - 1) / span * 16 * span;
  const std::uint32_t shift = pattern_offset * 128;
  const std::uint32_t at = start + shift + static_cast<std::uint32_t>(k_step) * 32;
  OperandPlace place;
  place.descriptor = std::uint64_t{at >> 4} | std::uint64_t{leading >> 4} << 16 |
                     std::uint64_t{stride >> 4} << 32 | std::uint64_t{pattern_offset & 7} << 49 |
                     static_cast<std::uint64_t>(swizzle) << 62;
  place.bytes = (bytes + shift + 1023) / 1024 * 1024;
  return place;
}

// ---- the kernel
// ---------------------------------------------------------------------------------------------------

inline std::string join_registers(const std::string& prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + ("%" + prefix) + std::to_string(i);
  return text + "}";
}

// Registers that hold D of a tile, and A and B from registers.
struct TensorRegisters {
  int d, a, b;
};
inline TensorRegisters tensor_registers(const TensorForm& f) {
  const int half = f.d == AccumulatorType::f16 ? 2 : 1;
  const int lanes = f.threads();
  return {f.m * f.n / lanes / half, f.m * f.k * operand_bits(f.a) / 32 / lanes,
          f.n * f.k * operand_bits(f.b) / 32 / lanes};
}

inline std::string tensor_kernel(const TensorForm& f) {
  const TensorRegisters r = tensor_registers(f);
  const std::string types = std::string(".") + to_string(f.d) + "." + to_string(f.a) + "." + to_string(f.b);
  const std::string shape =
      ".m" + std::to_string(f.m) + "n" + std::to_string(f.n) + "k" + std::to_string(f.k);
  const std::string threads = std::to_string(f.threads());
  const char* d_type = f.d == AccumulatorType::f32 ? ".f32" : ".b32";
  std::string s =
      ".version 8.8\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 memory[];\n"
      ".visible .entry tensor(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd, "
      ".param .u64 da, .param .u64 db, .param .u32 bytes, .param .u32 scale)\n{\n"
      ".reg .b64 %x<16>;\n.reg .b32 %t<16>;\n.reg .pred %p<4>;\n.reg " +
      std::string(d_type) + " %d<" + std::to_string(r.d + 1) + ">;\n.reg .b32 %a<16>;\n.reg .b32 %b<16>;\n" +
      "ld.param.u64 %x0, [pa];\nld.param.u64 %x1, [pb];\nld.param.u64 %x2, [pc];\nld.param.u64 %x3, [pd];\n"
      "ld.param.u64 %x4, [da];\nld.param.u64 %x5, [db];\nld.param.u32 %t0, [bytes];\n"
      "ld.param.u32 %t1, [scale];\nmov.u32 %t2, %tid.x;\nmov.u32 %t3, %ctaid.x;\nsetp.ne.u32 %p0, %t1, 0;\n";
  // %x: the tile's image of `registers` words a thread, this thread's first word.
  const auto image = [&](const char* x, int registers) {
    return "mad.lo.u32 %t4, %t3, " + std::to_string(registers * f.threads()) + ", %t2;\nmad.wide.u32 " + x +
           ", %t4, 4, " + x + ";\n";
  };
  const auto load = [&](const char* prefix, const char* type, const char* x, int registers) {
    std::string text;
    for (int i = 0; i < registers; ++i)
      text += std::string("ld.global") + type + " %" + prefix + std::to_string(i) + ", [" + x + "+" +
              std::to_string(i * f.threads() * 4) + "];\n";
    return text;
  };
  const auto store = [&](const char* x) {
    std::string text;
    for (int i = 0; i < r.d; ++i)
      text += std::string("st.global") + d_type + " [" + x + "+" + std::to_string(i * f.threads() * 4) +
              "], %d" + std::to_string(i) + ";\n";
    return text;
  };
  const std::string saturate = f.saturate ? ".satfinite" : "";
  if (f.instruction == TensorInstruction::mma_sync) {
    s += image("%x0", r.a) + image("%x1", r.b) + image("%x2", r.d) + image("%x3", r.d);
    s += load("a", ".b32", "%x0", r.a) + load("b", ".b32", "%x1", r.b) + load("d", d_type, "%x2", r.d);
    s += "mma.sync.aligned" + shape + ".row.col" + saturate + types + "." + to_string(f.d) + " " +
         join_registers("d", r.d) + ", " + join_registers("a", r.a) + ", " + join_registers("b", r.b) + ", " +
         join_registers("d", r.d) + ";\n" + store("%x3");
  } else if (f.instruction == TensorInstruction::wmma) {
    const bool f16 = f.a == OperandType::f16;
    const int a = f16 ? 8 : r.a, b = f16 ? 8 : r.b;
    const auto tile = [&](const char* x, int bytes) {
      return "mad.wide.u32 " + std::string(x) + ", %t3, " + std::to_string(bytes) + ", " + x + ";\n";
    };
    s += tile("%x0", f.m * f.k * operand_bits(f.a) / 8) + tile("%x1", f.n * f.k * operand_bits(f.b) / 8);
    s += tile("%x2", f.m * f.n * accumulator_bytes(f.d)) + tile("%x3", f.m * f.n * accumulator_bytes(f.d));
    const std::string k = std::to_string(f.k), n = std::to_string(f.n);
    s += "wmma.load.a.sync.aligned.row" + shape + ".global." + to_string(f.a) + " " + join_registers("a", a) +
         ", [%x0], " + k + ";\n";
    s += "wmma.load.b.sync.aligned.col" + shape + ".global." + to_string(f.b) + " " + join_registers("b", b) +
         ", [%x1], " + k + ";\n";
    s += "wmma.load.c.sync.aligned.row" + shape + ".global." + to_string(f.d) + " " +
         join_registers("d", r.d) + ", [%x2], " + n + ";\n";
    const std::string suffix =
        f16 ? std::string(".") + to_string(f.d) + "." + to_string(f.d) : types + "." + to_string(f.d);
    s += "wmma.mma.sync.aligned.row.col" + shape + suffix + " " + join_registers("d", r.d) + ", " +
         join_registers("a", a) + ", " + join_registers("b", b) + ", " + join_registers("d", r.d) + ";\n";
    s += "wmma.store.d.sync.aligned.row" + shape + ".global." + to_string(f.d) + " [%x3], " +
         join_registers("d", r.d) + ", " + n + ";\n";
  } else {
    // Shared memory comes from the tile's image at pb.
    s += image("%x2", r.d) + image("%x3", r.d);
    if (f.a_in_registers) s += image("%x0", r.a) + load("a", ".b32", "%x0", 4);
    s +=
        "mad.wide.u32 %x1, %t3, %t0, %x1;\nmov.u32 %t5, memory;\nshl.b32 %t6, %t2, 4;\n"
        "copy:\nsetp.ge.u32 %p1, %t6, %t0;\n@%p1 bra copied;\ncvt.u64.u32 %x6, %t6;\nadd.u64 %x6, %x6, %x1;\n"
        "ld.global.v4.b32 {%t8, %t9, %t10, %t11}, [%x6];\nadd.u32 %t7, %t5, %t6;\n"
        "st.shared.v4.b32 [%t7], {%t8, %t9, %t10, %t11};\nadd.u32 %t6, %t6, 2048;\nbra copy;\ncopied:\n"
        "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
        "shr.u32 %t7, %t5, 4;\ncvt.u64.u32 %x6, %t7;\nadd.u64 %x4, %x4, %x6;\nadd.u64 %x5, %x5, %x6;\n";
    s += load("d", d_type, "%x2", r.d);
    s += "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned" + shape + types + saturate + " " +
         join_registers("d", r.d) + ", " + (f.a_in_registers ? join_registers("a", 4) : std::string("%x4")) +
         ", %x5, %p0";
    if (f.d != AccumulatorType::s32) {
      s += std::string(f.negate_a ? ", -1" : ", 1") + (f.negate_b ? ", -1" : ", 1");
      if (operand_bits(f.a) == 16) {
        if (!f.a_in_registers) s += f.a_mn ? ", 1" : ", 0";
        s += f.b_mn ? ", 1" : ", 0";
      }
    }
    s += ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" + store("%x3");
  }
  return s + "ret;\n}\n";
}

}  // namespace ptxbench::testing
