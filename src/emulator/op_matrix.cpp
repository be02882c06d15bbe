// ldmatrix, stmatrix, movmatrix: 8 x 8 matrices of 16-bit elements between shared memory and a warp's
// registers. PTX ISA 9.7.14.5.15 to 9.7.14.5.17.
#include "emulator/access.hpp"
#include "emulator/fragments.hpp"
#include "emulator/op_tensor.hpp"

#include <cstring>
#include <string>

namespace ptxbench::emulator {

namespace {

// One bit for each of the two halves of a row's words, from one for each byte.
bool half_undefined(std::uint64_t bytes, int column) { return (bytes >> (2 * column) & 3) != 0; }

// Where the rows lie: lane 8 j + r gives the address of row r of matrix j. False where a fault was raised.
bool place_rows(const Exec& x, unsigned base, int matrices, Access access, Place* places) {
  const Operand operand = x.operand(base);
  const auto used = static_cast<Mask>((std::uint64_t{1} << (8 * matrices)) - 1);
  if (const Mask undefined = x.undefined_of(operand) & used; undefined != 0) {
    x.fault(FaultKind::undefined_value, __builtin_ctz(undefined),
            "the address of a row of " + x.kernel.info[x.op.info].text + " was never written");
    return false;
  }
  std::uint64_t address[kLanes];
  addresses(x, operand, (x.op.d & 1) != 0, address);
  const Where where = static_cast<Where>(x.op.c);
  Span span;
  for (int i = 0; i < 8 * matrices; ++i) {
    if (!resolve(x, where, address[i], i, 16, 16, access, span, places[i])) return false;
    if (places[i].kind != Place::Kind::shared) {
      x.fault(FaultKind::out_of_bounds, i,
              x.kernel.info[x.op.info].text + " reaches an address that lies not in shared memory");
      return false;
    }
  }
  return true;
}

// Op::a: matrices, b: transposed, c: Where, d: the address has 64 bits. Operands: registers, base.
Flow run_ldmatrix(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  const int matrices = x.op.a;
  const bool transposed = x.op.b != 0;
  Place places[kLanes];
  if (!place_rows(x, static_cast<unsigned>(matrices), matrices, Access::read, places)) return Flow::stop;
  alignas(16) std::uint16_t elements[kLanes][8];
  std::uint64_t undefined[kLanes];
  std::uint64_t any = 0;
  for (int i = 0; i < 8 * matrices; ++i) {
    std::memcpy(elements[i], places[i].data, 16);
    undefined[i] = undefined_at(x, places[i], 16);
    any |= undefined[i];
  }
  if (any != 0) [[unlikely]] {
    x.run.read_undefined(x.site(), [&] {
      for (int i = 0; i < 8 * matrices; ++i)
        if (undefined[i] != 0 && places[i].kind == Place::Kind::shared)
          return hole_text(x.grid, *places[i].cta, static_cast<std::uint32_t>(places[i].at), 16);
      return std::string();
    });
  }
  for (int j = 0; j < matrices; ++j) {
    if (x.operand(static_cast<unsigned>(j)) == kNoOperand) continue;
    std::uint32_t* d = x.dst(static_cast<unsigned>(j));
    if (!transposed) {  // row by row, just as it lies
      for (int r = 0; r < 8; ++r) std::memcpy(d + 4 * r, elements[8 * j + r], 16);
    } else {
      for (int l = 0; l < 32; ++l) {
        const std::uint16_t(*rows)[8] = elements + 8 * j + 2 * (l % 4);
        d[l] = rows[0][l / 4] | std::uint32_t{rows[1][l / 4]} << 16;
      }
    }
    Mask lanes = 0;
    if (any != 0)
      for (int l = 0; l < 32; ++l)
        for (int e = 0; e < 2; ++e) {
          const MatrixIndex at = matrix_index(e, l, transposed);
          if (half_undefined(undefined[8 * j + at.row], at.column)) lanes |= Mask{1} << l;
        }
    x.set_undefined(static_cast<unsigned>(j), lanes);
  }
  return Flow::next;
}

// The same, but operands: base, registers.
Flow run_stmatrix(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  const int matrices = x.op.a;
  const bool transposed = x.op.b != 0;
  Place places[kLanes];
  if (!place_rows(x, 0, matrices, Access::write, places)) return Flow::stop;
  for (int j = 0; j < matrices; ++j) {
    const auto number = static_cast<unsigned>(j) + 1;
    const std::uint32_t* s = x.src(number);
    const Mask undefined = x.undefined_of(x.operand(number));
    std::uint16_t elements[8][8];
    std::uint64_t bytes[8] = {};
    for (int l = 0; l < 32; ++l)
      for (int e = 0; e < 2; ++e) {
        const MatrixIndex at = matrix_index(e, l, transposed);
        elements[at.row][at.column] = static_cast<std::uint16_t>(s[l] >> (16 * e));
        if ((undefined >> l & 1) != 0) bytes[at.row] |= std::uint64_t{3} << (2 * at.column);
      }
    for (int r = 0; r < 8; ++r) {
      const Place& place = places[8 * j + r];
      std::memcpy(place.data, elements[r], 16);
      if (!now_holds(x, place, 8 * j + r, 16, bytes[r])) return Flow::stop;
    }
  }
  return Flow::next;
}

Flow run_movmatrix(Exec& x) {
  if (!whole_warp(x)) return Flow::stop;
  std::uint16_t elements[8][8];
  const std::uint32_t* s = x.src(1);
  const Mask from = x.undefined_of(x.operand(1));
  std::uint32_t words[32];
  Mask undefined = 0;
  for (int l = 0; l < 32; ++l)
    for (int e = 0; e < 2; ++e) {
      const MatrixIndex at = matrix_index(e, l, false);
      elements[at.row][at.column] = static_cast<std::uint16_t>(s[l] >> (16 * e));
    }
  for (int l = 0; l < 32; ++l) {
    words[l] = elements[2 * (l % 4)][l / 4] | std::uint32_t{elements[2 * (l % 4) + 1][l / 4]} << 16;
    for (int e = 0; e < 2; ++e) {
      const int source = 4 * (2 * (l % 4) + e) + l / 4 / 2;
      undefined |= (from >> source & 1) << l;
    }
  }
  std::memcpy(x.dst(0), words, sizeof words);
  x.set_undefined(0, undefined);
  return Flow::next;
}

struct MatrixForm {
  int matrices = 0;
  bool transposed = false;
  Where where = Where::generic;
  ptx::Space space = ptx::Space::generic;
};
Result<MatrixForm> decode_form(Decoder& d) {
  Modifiers m(d.instruction());
  MatrixForm form;
  m.take("sync");
  m.take("aligned");
  if (!m.take("m8n8")) return d.unsupported("has a shape that the emulator does not know (m8n8 is)");
  const int number = m.take_one({"x1", "x2", "x4"});
  if (number < 0) return d.bad("needs .x1, .x2 or .x4");
  form.matrices = 1 << number;
  form.transposed = m.take("trans");
  form.where = take_where(m, form.space);
  if (!m.take("b16")) return d.unsupported("has a type that the emulator does not know (b16 is)");
  PTXBENCH_TRY(m.finish(d));
  if (form.where != Where::generic && form.where != Where::shared_cta)
    return d.bad("reaches shared memory of the thread's own CTA only");
  return form;
}

void finish(Emit& e, const MatrixForm& form, const Address& address) {
  e.a = static_cast<std::uint8_t>(form.matrices);
  e.b = form.transposed ? 1 : 0;
  e.c = static_cast<std::uint8_t>(form.where);
  e.d = address.wide ? 1 : 0;
  e.flags = kAligned;
}

Result<void> decode_ldmatrix(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const MatrixForm form, decode_form(d));
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  PTXBENCH_TRY_ASSIGN(const std::size_t registers, d.dst_vector(e, 0, 32));
  if (registers != static_cast<std::size_t>(form.matrices))
    return d.bad("takes " + std::to_string(form.matrices) + " registers");
  PTXBENCH_TRY_ASSIGN(const Address address, d.address(e, d.instruction().operands[1], form.space));
  finish(e, form, address);
  e.run = run_ldmatrix;
  return d.emit(e, "ldmatrix");
}

Result<void> decode_stmatrix(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const MatrixForm form, decode_form(d));
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  PTXBENCH_TRY_ASSIGN(const Address address, d.address(e, d.instruction().operands[0], form.space));
  PTXBENCH_TRY_ASSIGN(const std::size_t registers, d.src_vector(e, 1, Ty::b32));
  if (registers != static_cast<std::size_t>(form.matrices))
    return d.bad("takes " + std::to_string(form.matrices) + " registers");
  finish(e, form, address);
  e.flags |= kSideEffect;
  e.run = run_stmatrix;
  return d.emit(e, "stmatrix");
}

Result<void> decode_movmatrix(Decoder& d) {
  Modifiers m(d.instruction());
  m.take("sync");
  m.take("aligned");
  if (!m.take("m8n8") || !m.take("trans") || !m.take("b16"))
    return d.unsupported("is a form that the emulator does not know");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  PTXBENCH_TRY(d.dst(e, 0, 32));
  PTXBENCH_TRY(d.src(e, 1, Ty::b32));
  e.flags = kAligned;
  e.run = run_movmatrix;
  return d.emit(e, "int");
}

}  // namespace

void register_matrix_moves(InstructionTable& table) {
  table.add("ldmatrix", decode_ldmatrix);
  table.add("stmatrix", decode_stmatrix);
  table.add("movmatrix", decode_movmatrix);
}

}  // namespace ptxbench::emulator
