// mma.sync: a warp multiplies A (m x k) by B (k x n), all of it in registers. PTX ISA 9.7.14.5.
#include "emulator/op_tensor.hpp"

#include <bit>
#include <cstdlib>
#include <string>

namespace ptxbench::emulator {

bool whole_warp(const Exec& x) {
  const Mask live = x.warp.live;
  if ((x.mask & live) == live) return true;
  x.fault(FaultKind::partial_collective, std::countr_zero(live & ~x.mask),
          x.kernel.info[x.op.info].text + " is executed by " + std::to_string(std::popcount(x.mask & live)) +
              " of the " + std::to_string(std::popcount(live)) +
              " threads of the warp; all must execute it together");
  return false;
}

Mask lanes_of(std::uint32_t rows, std::uint32_t columns, int r, bool halves) {
  Mask lanes = 0;
  const int block = halves ? r % 2 : r / 2 % 2;
  for (int l = 0; l < 32; ++l) {
    const int row = l / 4 + 8 * block, column = 2 * (l % 4);
    const std::uint32_t own = halves ? columns >> column & 3 : columns >> (column + r % 2) & 1;
    if ((rows >> row & 1) != 0 || own != 0) lanes |= Mask{1} << l;
  }
  return lanes;
}

std::optional<TensorShape> take_shape(Modifiers& m) {
  for (const std::string_view name : m.rest()) {
    TensorShape shape;
    const char* at = name.data();
    const char* end = at + name.size();
    const auto number = [&](char letter, int& value) {
      if (at == end || *at != letter) return false;
      const char* digits = ++at;
      while (at != end && *at >= '0' && *at <= '9' && at - digits < 4) value = 10 * value + (*at++ - '0');
      return at != digits;
    };
    if (!number('m', shape.m) || !number('n', shape.n) || !number('k', shape.k) || at != end) continue;
    m.take(name);
    return shape;
  }
  return std::nullopt;
}

std::optional<AccumulatorType> accumulator_named(std::string_view name) {
  if (name == "f16") return AccumulatorType::f16;
  if (name == "f32") return AccumulatorType::f32;
  if (name == "s32") return AccumulatorType::s32;
  return std::nullopt;
}

Fidelity fidelity_of(const TensorRule& rule) {
  return rule.fidelity == RuleFidelity::exact ? Fidelity::exact : Fidelity::unmeasured;
}

namespace {

// Op::a: the rule's number; b: registers of A, of B << 4; c: k; d: bit 0 .satfinite, bit 1 m = 8.
// Operands: D, A, B, C.
Flow run_mma(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  const TensorRule& rule = tensor_rule(x.op.a);
  const bool half = rule.accumulator == AccumulatorType::f16;
  const int m = (x.op.d & 2) != 0 ? 8 : 16, k = x.op.c;
  const unsigned d_registers = static_cast<unsigned>(half ? m / 8 : m / 4);
  const unsigned a_registers = x.op.b & 15, b_registers = x.op.b >> 4;
  const unsigned a = d_registers, b = a + a_registers, c = b + b_registers;

  alignas(64) std::uint8_t rows[16 * 32];
  alignas(64) std::uint8_t columns[8 * 32];
  alignas(64) std::uint32_t sums[4][32];
  const auto a_lanes = [&](int r) { return x.src(a + static_cast<unsigned>(r)); };
  if (m == 16)
    gather_a(static_cast<int>(a_registers), a_lanes, rows);
  else
    gather_b(static_cast<int>(a_registers), a_lanes, rows);
  gather_b(
      static_cast<int>(b_registers), [&](int r) { return x.src(b + static_cast<unsigned>(r)); }, columns);
  std::uint32_t* lanes[4];
  for (unsigned r = 0; r < d_registers; ++r) {
    lanes[r] = sums[r];
    std::memcpy(sums[r], x.src(c + r), sizeof sums[r]);
  }
  MultiplyOptions options;
  options.saturate = (x.op.d & 1) != 0;
  fragment_multiply(rule, rows, columns, lanes, m, 8, k, options);

  std::uint32_t row_bits = 0, column_bits = 0;
  for (unsigned r = 0; r < a_registers; ++r)
    if (const Mask u = x.undefined_of(x.operand(a + r)); u != 0)
      row_bits |= lanes_to_rows(u) << (m == 16 ? 8 * (r % 2) : 0);
  for (unsigned r = 0; r < b_registers; ++r)
    if (const Mask u = x.undefined_of(x.operand(b + r)); u != 0) column_bits |= lanes_to_rows(u);
  Mask undefined[4];
  for (unsigned r = 0; r < d_registers; ++r) {
    undefined[r] = x.undefined_of(x.operand(c + r));
    if ((row_bits | column_bits) != 0)
      undefined[r] |= lanes_of(row_bits, column_bits, static_cast<int>(r), half);
  }
  for (unsigned r = 0; r < d_registers; ++r) {
    if (x.operand(r) == kNoOperand) continue;
    std::memcpy(x.dst(r), sums[r], sizeof sums[r]);
    x.set_undefined(r, undefined[r]);
  }
  return Flow::next;
}

Result<void> decode_mma(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("sync");
  m.take("aligned");
  const auto shape = take_shape(m);
  if (!shape) return d.unsupported("names no shape");
  const bool row = m.take("row"), column = m.take("col");
  const bool saturate = m.take("satfinite");
  m.take("kind::f8f6f4");
  const std::vector<Ty> types = m.types();
  PTXBENCH_TRY(m.finish(d));
  if (types.size() != 4) return d.unsupported("needs four types");
  const auto to = accumulator_named(ty_name(types[0])), from = accumulator_named(ty_name(types[3]));
  const auto ta = operand_type_named(ty_name(types[1])), tb = operand_type_named(ty_name(types[2]));
  if (!to || !from || !ta || !tb) return d.unsupported("has types that the emulator does not multiply");
  if (!row || !column || *to != *from || shape->n != 8 || (shape->m != 16 && shape->m != 8))
    return d.unsupported("is a form that the emulator does not know");
  const int number = tensor_rule_number(90, TensorInstruction::mma_sync, *ta, *tb, *to, shape->k);
  if (number < 0 || (shape->m == 8 && !(*to == AccumulatorType::s32 && shape->k == 16)))
    return d.unsupported("is a form that the emulator does not know");
  const TensorRule& rule = tensor_rule(number);
  if (saturate && rule.accumulator != AccumulatorType::s32) return d.bad(".satfinite is for integers");

  PTXBENCH_TRY(d.expect_operands(4));
  const bool half = rule.accumulator == AccumulatorType::f16;
  const Ty accumulators = half ? Ty::b32 : rule.accumulator == AccumulatorType::f32 ? Ty::f32 : Ty::s32;
  const auto d_registers = static_cast<std::size_t>(half ? shape->m / 8 : shape->m / 4);
  const auto a_registers = static_cast<std::size_t>(shape->m * shape->k * operand_bits(*ta) / 1024);
  const auto b_registers = static_cast<std::size_t>(8 * shape->k * operand_bits(*tb) / 1024);
  Emit e;
  PTXBENCH_TRY_ASSIGN(const std::size_t got_d, d.dst_vector(e, 0, 32));
  PTXBENCH_TRY_ASSIGN(const std::size_t got_a, d.src_vector(e, 1, Ty::b32));
  PTXBENCH_TRY_ASSIGN(const std::size_t got_b, d.src_vector(e, 2, Ty::b32));
  PTXBENCH_TRY_ASSIGN(const std::size_t got_c, d.src_vector(e, 3, accumulators));
  if (got_d != d_registers || got_c != d_registers || got_a != a_registers || got_b != b_registers)
    return d.bad("takes " + std::to_string(d_registers) + " registers for d and c, " +
                 std::to_string(a_registers) + " for a, " + std::to_string(b_registers) + " for b");
  e.run = run_mma;
  e.flags = kAligned;
  e.a = static_cast<std::uint8_t>(number);
  e.b = static_cast<std::uint8_t>(a_registers | b_registers << 4);
  e.c = static_cast<std::uint8_t>(shape->k);
  e.d = static_cast<std::uint8_t>((saturate ? 1 : 0) | (shape->m == 8 ? 2 : 0));
  e.fidelity = fidelity_of(rule);
  return d.emit(e, "mma_sync");
}

}  // namespace

void register_mma(InstructionTable& table) {
  table.add("mma", decode_mma);
  register_matrix_moves(table);
  register_wmma(table);
}

}  // namespace ptxbench::emulator
