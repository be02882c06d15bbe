// wmma.load, wmma.mma, wmma.store: matrix fragments whose layout is the implementation's own (fragments.hpp:
// wmma_index). PTX ISA 9.7.14.4.
#include "emulator/access.hpp"
#include "emulator/fragments.hpp"
#include "emulator/op_tensor.hpp"
#include "emulator/races.hpp"

#include <cstring>
#include <string>
#include <vector>

namespace ptxbench::emulator {

namespace {

// Op::a: m (the shape follows from m and k), b: k.
WmmaShape shape_of(const Op& op) {
  const int m = op.a;
  return {m, m == 16 ? 16 : m == 32 ? 8 : 32, op.b};
}
bool known(const TensorShape& s) {
  return (s.k == 16 && ((s.m == 16 && s.n == 16) || (s.m == 32 && s.n == 8) || (s.m == 8 && s.n == 32))) ||
         (s.k == 8 && s.m == 16 && s.n == 16);
}

// Op::c: which matrix; bit 4: column-major. Op::d: bits of an element / 8; bit 3: f16 operand (two copies);
// bit 4: the address has 64 bits; bits 5 to 7: Where.
struct Form {
  WmmaMatrix matrix;
  bool by_columns, copies;
  unsigned bytes;
  Where where;
};
Form form_of(const Op& op) {
  return {static_cast<WmmaMatrix>(op.c & 15), (op.c & 16) != 0, (op.d & 8) != 0, op.d & 7U,
          static_cast<Where>(op.d >> 5)};
}

// Visits every element of the fragment: f(register, shift, lane, place, undefined allowed?). False where a
// fault was raised.
template <class F>
bool visit(const Exec& x, unsigned base, Access access, F&& f) {
  const Form form = form_of(x.op);
  const WmmaShape shape = shape_of(x.op);
  const Operand address = x.operand(base), stride_operand = x.operand(base + 1);
  if (const Mask u = (x.undefined_of(address) | x.undefined_of(stride_operand)) & x.mask; u != 0) {
    x.fault(FaultKind::undefined_value, __builtin_ctz(u),
            "the address or stride of " + x.kernel.info[x.op.info].text + " was never written");
    return false;
  }
  std::uint64_t addresses_of_lanes[kLanes];
  addresses(x, address, (x.op.d & 16) != 0, addresses_of_lanes);
  const std::uint32_t* strides = x.lanes(stride_operand);
  const int bits = static_cast<int>(8 * form.bytes);
  const int packed = 32 / bits;
  int elements = wmma_registers(shape, form.matrix, bits, form.copies) * packed;
  if (form.copies && access == Access::read)
    elements = (form.matrix == WmmaMatrix::a ? shape.m : shape.n) * shape.k / 32;
  if (x.cluster.races != nullptr) x.cluster.races->one_by_one(x);
  Span span;
  for (int l = 0; l < 32; ++l) {
    if ((x.mask >> l & 1) == 0) continue;
    for (int e = 0; e < elements; ++e) {
      const MatrixIndex at = wmma_index(shape, form.matrix, bits, e, l);
      const auto outer = static_cast<std::uint64_t>(form.by_columns ? at.column : at.row);
      const auto inner = static_cast<std::uint64_t>(form.by_columns ? at.row : at.column);
      const std::uint64_t where = addresses_of_lanes[l] + (outer * strides[l] + inner) * form.bytes;
      Place place;
      if (!resolve(x, form.where, where, l, form.bytes, form.bytes, access, span, place)) return false;
      if (x.cluster.races != nullptr) x.cluster.races->one(x, l, place, form.bytes, access);
      if (!f(e / packed, e % packed * bits, l, place)) return false;
    }
  }
  return true;
}

Flow run_load(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  const Form form = form_of(x.op);
  const auto registers = static_cast<unsigned>(
      wmma_registers(shape_of(x.op), form.matrix, static_cast<int>(8 * form.bytes), form.copies));
  std::uint32_t words[8][kLanes] = {};
  Mask undefined[8] = {};
  const bool done = visit(x, registers, Access::read, [&](int r, int shift, int lane, const Place& place) {
    std::uint32_t value = 0;
    std::memcpy(&value, place.data, form.bytes);
    words[r][lane] |= value << shift;
    if (undefined_at(x, place, form.bytes) != 0) {
      undefined[r] |= Mask{1} << lane;
      x.run.read_undefined(x.site());
    }
    return true;
  });
  if (!done) return Flow::stop;
  if (form.copies) {
    const WmmaShape shape = shape_of(x.op);
    const int own = (form.matrix == WmmaMatrix::a ? shape.m : shape.n) * shape.k / 64;
    for (int r = own; r < 8; ++r) {
      std::memcpy(words[r], words[r % own], sizeof words[r]);
      undefined[r] = undefined[r % own];
    }
  }
  for (unsigned r = 0; r < registers; ++r) {
    if (x.operand(r) == kNoOperand) continue;
    std::memcpy(x.dst(r), words[r], sizeof words[r]);
    x.set_undefined(r, undefined[r]);
  }
  return Flow::next;
}

// Operands: registers, base, stride.
Flow run_store(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  const Form form = form_of(x.op);
  const auto registers = static_cast<unsigned>(
      wmma_registers(shape_of(x.op), form.matrix, static_cast<int>(8 * form.bytes), false));
  const bool done = visit(x, registers, Access::write, [&](int r, int shift, int lane, const Place& place) {
    const auto number = static_cast<unsigned>(r);
    const std::uint32_t value = x.src(number)[lane] >> shift;
    std::memcpy(place.data, &value, form.bytes);
    const bool undefined = (x.undefined_of(x.operand(number)) >> lane & 1) != 0;
    return now_holds(x, place, lane, form.bytes, undefined ? (std::uint64_t{1} << form.bytes) - 1 : 0);
  });
  return done ? Flow::next : Flow::stop;
}

// Op::c: the rule's number, d: bit 0 .satfinite. Operands: D, A, B, C.
Flow run_mma(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  const TensorRule& rule = tensor_rule(x.op.c);
  const WmmaShape shape = shape_of(x.op);
  const int bits = operand_bits(rule.a), bytes = bits / 8, sum_bytes = accumulator_bytes(rule.accumulator);
  const bool f16 = rule.a == OperandType::f16;
  const int a_registers = wmma_registers(shape, WmmaMatrix::a, bits, f16);
  const int b_registers = wmma_registers(shape, WmmaMatrix::b, bits, f16);
  const int d_registers = wmma_registers(shape, WmmaMatrix::accumulator, 8 * sum_bytes, false);
  const int a = d_registers, b = a + a_registers, c = b + b_registers;

  alignas(64) std::uint8_t rows[32 * 32];
  alignas(64) std::uint8_t columns[32 * 32];
  alignas(64) std::uint8_t sums[256 * 4];
  std::uint32_t row_bits = 0, column_bits = 0;
  // Registers `first` to the packed operand: element (row, k), columns of B as rows.
  const auto gather = [&](WmmaMatrix matrix, int first, int elements, std::uint8_t* packed,
                          std::uint32_t& undefined_rows) {
    const int each = 32 / bits;
    for (int e = 0; e < elements; ++e) {
      const auto number = static_cast<unsigned>(first + e / each);
      const std::uint32_t* words = x.src(number);
      const Mask undefined = x.undefined_of(x.operand(number));
      for (int l = 0; l < 32; ++l) {
        const MatrixIndex at = wmma_index(shape, matrix, bits, e, l);
        const int row = matrix == WmmaMatrix::b ? at.column : at.row,
                  k = matrix == WmmaMatrix::b ? at.row : at.column;
        const std::uint32_t value = words[l] >> (e % each * bits);
        std::memcpy(packed + (row * shape.k + k) * bytes, &value, static_cast<std::size_t>(bytes));
        if ((undefined >> l & 1) != 0) undefined_rows |= 1U << row;
      }
    }
  };
  gather(WmmaMatrix::a, a, shape.m * shape.k / 32, rows, row_bits);
  gather(WmmaMatrix::b, b, shape.n * shape.k / 32, columns, column_bits);
  const int each = 4 / sum_bytes;
  for (int e = 0; e < d_registers * each; ++e) {
    const std::uint32_t* words = x.src(static_cast<unsigned>(c + e / each));
    for (int l = 0; l < 32; ++l) {
      const MatrixIndex at = wmma_index(shape, WmmaMatrix::accumulator, 8 * sum_bytes, e, l);
      const std::uint32_t value = words[l] >> (e % each * 16);
      std::memcpy(sums + (at.row * shape.n + at.column) * sum_bytes, &value,
                  static_cast<std::size_t>(sum_bytes));
    }
  }
  MultiplyOptions options;
  options.saturate = (x.op.d & 1) != 0;
  tile_multiply(rule, rows, columns, sums, shape.m, shape.n, shape.k, options);

  std::uint32_t words[8][kLanes] = {};
  Mask undefined[8] = {};
  for (int r = 0; r < d_registers; ++r)
    undefined[r] = x.undefined_of(x.operand(static_cast<unsigned>(c + r)));
  for (int e = 0; e < d_registers * each; ++e)
    for (int l = 0; l < 32; ++l) {
      const MatrixIndex at = wmma_index(shape, WmmaMatrix::accumulator, 8 * sum_bytes, e, l);
      std::uint32_t value = 0;
      std::memcpy(&value, sums + (at.row * shape.n + at.column) * sum_bytes,
                  static_cast<std::size_t>(sum_bytes));
      words[e / each][l] |= value << (e % each * 16);
      if ((row_bits >> at.row & 1) != 0 || (column_bits >> at.column & 1) != 0)
        undefined[e / each] |= Mask{1} << l;
    }
  for (int r = 0; r < d_registers; ++r) {
    const auto number = static_cast<unsigned>(r);
    if (x.operand(number) == kNoOperand) continue;
    std::memcpy(x.dst(number), words[r], sizeof words[r]);
    x.set_undefined(number, undefined[r]);
  }
  return Flow::next;
}

constexpr const char* kUnknown = "is a form that the emulator does not know";

struct Memory {
  Form form{};
  TensorShape shape;
  ptx::Space space = ptx::Space::generic;
  unsigned registers = 0;
};
Result<Memory> decode_memory(Decoder& d, bool store) {
  Modifiers m(d.instruction());
  Memory memory;
  m.take(store ? "store" : "load");
  m.take("sync");
  m.take("aligned");
  const int matrix = m.take_one({"a", "b", store ? "d" : "c"});
  const auto shape = take_shape(m);
  if (matrix < 0 || !shape || !known(*shape) || (store && matrix != 2)) return d.unsupported(kUnknown);
  memory.shape = *shape;
  memory.form.matrix = static_cast<WmmaMatrix>(matrix);
  const bool row = m.take("row"), column = m.take("col");
  if (row == column) return d.bad("needs .row or .col");
  memory.form.by_columns = column;
  memory.form.where = take_where(m, memory.space);
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (matrix == 2) {
    if (!accumulator_named(ty_name(type))) return d.unsupported(kUnknown);
  } else if (const auto operand = operand_type_named(ty_name(type));
             !operand || *operand == OperandType::e4m3 || *operand == OperandType::e5m2 ||
             (*operand == OperandType::tf32) != (shape->k == 8)) {
    return d.unsupported(kUnknown);
  }
  memory.form.bytes = ty_bits(type) / 8;
  memory.form.copies = matrix != 2 && type == Ty::f16;
  memory.registers =
      static_cast<unsigned>(wmma_registers({shape->m, shape->n, shape->k}, memory.form.matrix,
                                           static_cast<int>(ty_bits(type)), memory.form.copies));
  return memory;
}

// Base and stride; a stride that is not given is the matrix's own.
Result<void> finish_memory(Decoder& d, Emit& e, const Memory& memory, std::size_t address_operand,
                           std::size_t stride) {
  PTXBENCH_TRY_ASSIGN(const Address address,
                      d.address(e, d.instruction().operands[address_operand], memory.space));
  if (stride < d.instruction().operands.size()) {
    PTXBENCH_TRY(d.src(e, stride, Ty::u32));
  } else {
    const Form& f = memory.form;
    const TensorShape& s = memory.shape;
    const int rows = f.matrix == WmmaMatrix::b ? s.k : s.m, columns = f.matrix == WmmaMatrix::a ? s.k : s.n;
    e.operands.push_back(d.constant(static_cast<std::uint64_t>(f.by_columns ? rows : columns), 32));
    ++e.sources;
  }
  e.a = static_cast<std::uint8_t>(memory.shape.m);
  e.b = static_cast<std::uint8_t>(memory.shape.k);
  e.c = static_cast<std::uint8_t>(static_cast<unsigned>(memory.form.matrix) |
                                  (memory.form.by_columns ? 16U : 0U));
  e.d = static_cast<std::uint8_t>(memory.form.bytes | (memory.form.copies ? 8U : 0U) |
                                  (address.wide ? 16U : 0U) | static_cast<unsigned>(memory.form.where) << 5);
  e.flags = kAligned;
  return {};
}

Result<void> decode_load(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const Memory memory, decode_memory(d, false));
  PTXBENCH_TRY(d.expect_operands(2, 3));
  Emit e;
  PTXBENCH_TRY_ASSIGN(const std::size_t registers, d.dst_vector(e, 0, 32));
  if (registers != memory.registers) return d.bad("takes " + std::to_string(memory.registers) + " registers");
  PTXBENCH_TRY(finish_memory(d, e, memory, 1, 2));
  e.run = run_load;
  return d.emit(e, memory.space == ptx::Space::shared ? "shared" : "global");
}

Result<void> decode_store(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const Memory memory, decode_memory(d, true));
  PTXBENCH_TRY(d.expect_operands(2, 3));
  Emit e;
  PTXBENCH_TRY_ASSIGN(const std::size_t registers, d.src_vector(e, 1, Ty::b32));
  if (registers != memory.registers) return d.bad("takes " + std::to_string(memory.registers) + " registers");
  PTXBENCH_TRY(finish_memory(d, e, memory, 0, 2));
  e.flags |= kSideEffect;
  e.run = run_store;
  return d.emit(e, memory.space == ptx::Space::shared ? "shared" : "global");
}

Result<void> decode_mma(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("mma");
  m.take("sync");
  m.take("aligned");
  const auto shape = take_shape(m);
  if (!shape || !known(*shape)) return d.unsupported(kUnknown);
  while (m.take("row") || m.take("col")) {
  }
  const bool saturate = m.take("satfinite");
  const std::vector<Ty> types = m.types();
  PTXBENCH_TRY(m.finish(d));
  if (types.size() != 2 && types.size() != 4) return d.unsupported(kUnknown);
  const auto to = accumulator_named(ty_name(types.front())), from = accumulator_named(ty_name(types.back()));
  const auto ta = types.size() == 2 ? OperandType::f16 : operand_type_named(ty_name(types[1]));
  const auto tb = types.size() == 2 ? OperandType::f16 : operand_type_named(ty_name(types[2]));
  if (!to || !from || *to != *from || !ta || !tb) return d.unsupported(kUnknown);
  const int number = tensor_rule_number(90, TensorInstruction::wmma, *ta, *tb, *to, shape->k);
  if (number < 0) return d.unsupported(kUnknown);
  const TensorRule& rule = tensor_rule(number);
  const WmmaShape whole{shape->m, shape->n, shape->k};
  const bool f16 = rule.a == OperandType::f16;
  const auto count = [&](WmmaMatrix matrix, int bits, bool copies) {
    return static_cast<std::size_t>(wmma_registers(whole, matrix, bits, copies));
  };
  const std::size_t sums = count(WmmaMatrix::accumulator, 8 * accumulator_bytes(rule.accumulator), false);
  PTXBENCH_TRY(d.expect_operands(4));
  Emit e;
  PTXBENCH_TRY_ASSIGN(const std::size_t got_d, d.dst_vector(e, 0, 32));
  PTXBENCH_TRY_ASSIGN(const std::size_t got_a, d.src_vector(e, 1, Ty::b32));
  PTXBENCH_TRY_ASSIGN(const std::size_t got_b, d.src_vector(e, 2, Ty::b32));
  PTXBENCH_TRY_ASSIGN(const std::size_t got_c,
                      d.src_vector(e, 3, rule.accumulator == AccumulatorType::f32 ? Ty::f32 : Ty::b32));
  if (got_d != sums || got_c != sums || got_a != count(WmmaMatrix::a, operand_bits(*ta), f16) ||
      got_b != count(WmmaMatrix::b, operand_bits(*tb), f16))
    return d.bad("has fragments of other sizes than its shape and types");
  e.run = run_mma;
  e.flags = kAligned;
  e.a = static_cast<std::uint8_t>(shape->m);
  e.b = static_cast<std::uint8_t>(shape->k);
  e.c = static_cast<std::uint8_t>(number);
  e.d = saturate ? 1 : 0;
  e.fidelity = fidelity_of(rule);
  return d.emit(e, "mma_sync");
}

}  // namespace

void register_wmma(InstructionTable& table) {
  table.add("wmma.load", decode_load);
  table.add("wmma.store", decode_store);
  table.add("wmma.mma", decode_mma);
}

}  // namespace ptxbench::emulator
