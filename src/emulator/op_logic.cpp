// Logic and shifts: and, or, xor, not, cnot, shl, shr, shf, lop3.
#include "emulator/op_lanes.hpp"

namespace ptxbench::emulator {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

struct And {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  PTXBENCH_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  PTXBENCH_INLINE T operator()(T a) const {
    return static_cast<T>(~a);
  }
};
struct ConditionalNot {
  template <class T>
  T operator()(T a) const {
    return a == 0 ? 1 : 0;
  }
};
template <class T>
struct ShiftLeft {
  PTXBENCH_INLINE T operator()(T a, U32 n) const {
    return n >= 8 * sizeof(T) ? T{0} : static_cast<T>(a << (n & (8 * sizeof(T) - 1)));
  }
};
template <class T>
struct ShiftRight {
  PTXBENCH_INLINE T operator()(T a, U32 n) const {
    constexpr U32 kTop = 8 * sizeof(T) - 1;
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> (n > kTop ? kTop : n));
    } else {
      return n > kTop ? T{0} : static_cast<T>(a >> (n & kTop));
    }
  }
};

PTXBENCH_CLONES Flow run_and32(Exec& x) { return binary<U32, U32, U32>(x, And{}); }
PTXBENCH_CLONES Flow run_and64(Exec& x) { return binary<U64, U64, U64>(x, And{}); }
PTXBENCH_CLONES Flow run_or32(Exec& x) { return binary<U32, U32, U32>(x, Or{}); }
PTXBENCH_CLONES Flow run_or64(Exec& x) { return binary<U64, U64, U64>(x, Or{}); }
PTXBENCH_CLONES Flow run_xor32(Exec& x) { return binary<U32, U32, U32>(x, Xor{}); }
PTXBENCH_CLONES Flow run_xor64(Exec& x) { return binary<U64, U64, U64>(x, Xor{}); }
PTXBENCH_CLONES Flow run_shl32(Exec& x) { return binary<U32, U32, U32>(x, ShiftLeft<U32>{}); }
PTXBENCH_CLONES Flow run_shl64(Exec& x) { return binary<U64, U64, U32>(x, ShiftLeft<U64>{}); }
PTXBENCH_CLONES Flow run_shr_u32(Exec& x) { return binary<U32, U32, U32>(x, ShiftRight<U32>{}); }
PTXBENCH_CLONES Flow run_shr_u64(Exec& x) { return binary<U64, U64, U32>(x, ShiftRight<U64>{}); }
PTXBENCH_CLONES Flow run_shr_s32(Exec& x) {
  return binary<std::int32_t, std::int32_t, U32>(x, ShiftRight<std::int32_t>{});
}

// Predicates: operands d, a, b. A defined operand that decides the result makes it defined.
Flow run_and_pred(Exec& x) {
  const Mask a = x.pred(1), b = x.pred(2), ua = x.pred_undefined(1), ub = x.pred_undefined(2);
  x.set_pred(0, a & b, (ua | ub) & ~(~a & ~ua) & ~(~b & ~ub));
  return Flow::next;
}
Flow run_or_pred(Exec& x) {
  const Mask a = x.pred(1), b = x.pred(2), ua = x.pred_undefined(1), ub = x.pred_undefined(2);
  x.set_pred(0, a | b, (ua | ub) & ~(a & ~ua) & ~(b & ~ub));
  return Flow::next;
}
Flow run_xor_pred(Exec& x) {
  x.set_pred(0, x.pred(1) ^ x.pred(2), x.pred_undefined(1) | x.pred_undefined(2));
  return Flow::next;
}
Flow run_not_pred(Exec& x) {
  x.set_pred(0, ~x.pred(1), x.pred_undefined(1));
  return Flow::next;
}

Result<Operand> pred_or_constant(Decoder& d, const ptx::Operand& o) {
  if (o.kind == ptx::Operand::Kind::integer) return o.bits != 0 ? kPredTrue : kPredFalse;
  return d.pred_src(o);
}

template <class F, Handler Fast32, Handler Fast64, Handler Pred>
Result<void> decode_logic(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  if (type == Ty::pred) {
    PTXBENCH_TRY(d.expect_operands(3));
    const auto& operands = d.instruction().operands;
    PTXBENCH_TRY_ASSIGN(const Operand a, pred_or_constant(d, operands[1]));
    PTXBENCH_TRY_ASSIGN(const Operand b, pred_or_constant(d, operands[2]));
    PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(operands[0]));
    e.operands = {p, a, b};
    e.flags = kNone;
    return emit_typed(d, e, Pred, "int");
  }
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type}));
  return emit_typed(d, e,
                    type == Ty::b32   ? Fast32
                    : type == Ty::b64 ? Fast64
                    : type == Ty::b16 ? Same2<F, std::uint16_t>::run
                                      : nullptr,
                    "int");
}
template <class F>
Result<void> decode_one(Decoder& d) {  // not, cnot
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  if (type == Ty::pred && std::is_same_v<F, Not>) {
    PTXBENCH_TRY(d.expect_operands(2));
    PTXBENCH_TRY_ASSIGN(const Operand a, pred_or_constant(d, d.instruction().operands[1]));
    PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(d.instruction().operands[0]));
    e.operands = {p, a};
    e.flags = kNone;
    return emit_typed(d, e, run_not_pred, "int");
  }
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type}));
  const bool bits = type == Ty::b16 || type == Ty::b32 || type == Ty::b64;
  return emit_typed(d, e, bits ? by_integer<F, Same1>(type) : nullptr, "int");
}

Result<void> decode_shl(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, Ty::u32}));
  Handler run = nullptr;
  if (ty_bits(type) == 16) run = &run_binary<ShiftLeft<std::uint16_t>, std::uint16_t, std::uint16_t, U32>;
  if (ty_bits(type) == 32) run = run_shl32;
  if (ty_bits(type) == 64) run = run_shl64;
  return emit_typed(d, e, run, "int");
}
Result<void> decode_shr(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, Ty::u32}));
  Handler run = nullptr;
  switch (type) {
    case Ty::b16:
    case Ty::u16:
      run = &run_binary<ShiftRight<std::uint16_t>, std::uint16_t, std::uint16_t, U32>;
      break;
    case Ty::s16:
      run = &run_binary<ShiftRight<std::int16_t>, std::int16_t, std::int16_t, U32>;
      break;
    case Ty::b32:
    case Ty::u32:
      run = run_shr_u32;
      break;
    case Ty::s32:
      run = run_shr_s32;
      break;
    case Ty::b64:
    case Ty::u64:
      run = run_shr_u64;
      break;
    case Ty::s64:
      run = &run_binary<ShiftRight<std::int64_t>, std::int64_t, std::int64_t, U32>;
      break;
    default:
      break;
  }
  return emit_typed(d, e, run, "int");
}

// Funnel shifts of b:a. op.a: right; op.b: clamp.
PTXBENCH_CLONES Flow run_shf(Exec& x) {
  const bool right = x.op.a != 0, clamp = x.op.b != 0;
  return ternary<U32, U32, U32, U32>(x, [=](U32 a, U32 b, U32 c) {
    const U32 n = clamp ? (c > 32 ? 32 : c) : c & 31;
    const U64 pair = a | U64{b} << 32;
    return static_cast<U32>(right ? pair >> n : pair << n >> 32);
  });
}
Result<void> decode_shf(Decoder& d) {
  Modifiers m(d.instruction());
  const int side = m.take_one({"l", "r"}), mode = m.take_one({"wrap", "clamp"});
  if (!m.take("b32")) return d.bad("needs .b32");
  PTXBENCH_TRY(m.finish(d));
  if (side < 0 || mode < 0) return d.bad("needs .l or .r, and .wrap or .clamp");
  Emit e;
  e.a = static_cast<std::uint8_t>(side);
  e.b = static_cast<std::uint8_t>(mode);
  PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::b32, Ty::b32, Ty::u32}));
  e.run = run_shf;
  return d.emit(e, "int");
}

// Bit a*4 + b*2 + c of @p table: choose by a between two functions of b and c, each of those by b between two
// of c.
struct Lop3 {
  U32 low[4], flip[4];  // of c, by (a, b): its value where c is 0, and whether c flips it
  explicit Lop3(unsigned table) {
    for (unsigned k = 0; k < 4; ++k) {
      const unsigned bit0 = table >> (2 * k) & 1, bit1 = table >> (2 * k + 1) & 1;
      low[k] = bit0 != 0 ? ~U32{0} : 0;
      flip[k] = bit0 != bit1 ? ~U32{0} : 0;
    }
  }
  PTXBENCH_INLINE U32 operator()(U32 a, U32 b, U32 c) const {
    const U32 f0 = low[0] ^ (flip[0] & c), f1 = low[1] ^ (flip[1] & c);
    const U32 f2 = low[2] ^ (flip[2] & c), f3 = low[3] ^ (flip[3] & c);
    const U32 g0 = (b & f1) | (~b & f0), g1 = (b & f3) | (~b & f2);
    return (a & g1) | (~a & g0);
  }
};
PTXBENCH_CLONES Flow run_lop3(Exec& x) { return ternary<U32, U32, U32, U32>(x, Lop3(x.op.a)); }
// Operands: d, a, b, c, then p and q. op.b: and instead of or.
Flow run_lop3_pred(Exec& x) {
  const Mask undefined =
      x.undefined_of(x.operand(1)) | x.undefined_of(x.operand(2)) | x.undefined_of(x.operand(3));
  run_lop3(x);
  const U32* d = x.dst(0);
  const Mask some = test_lanes([&](unsigned i) { return d[i] != 0; });
  const Mask q = x.pred(5), uq = x.pred_undefined(5);
  if (x.op.b != 0) {
    x.set_pred(4, some & q, (undefined | uq) & ~(~some & ~undefined) & ~(~q & ~uq));
  } else {
    x.set_pred(4, some | q, (undefined | uq) & ~(some & ~undefined) & ~(q & ~uq));
  }
  return Flow::next;
}
Result<void> decode_lop3(Decoder& d) {
  Modifiers m(d.instruction());
  const int combine = m.take_one({"or", "and"});
  if (!m.take("b32")) return d.bad("needs .b32");
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(combine < 0 ? 5 : 6));
  PTXBENCH_TRY_ASSIGN(const std::int64_t table, d.immediate(4));
  if (table < 0 || table > 255) return d.bad("the table is a number of 8 bits");
  const auto& operands = d.instruction().operands;
  Emit e;
  e.a = static_cast<std::uint8_t>(table);
  if (combine < 0) {
    PTXBENCH_TRY(d.dst(e, 0, 32));
    for (std::size_t i = 1; i <= 3; ++i) PTXBENCH_TRY(d.src(e, i, Ty::b32));
    return emit_typed(d, e, run_lop3, "int");
  }
  if (operands[0].kind != ptx::Operand::Kind::pair) return d.bad("needs a destination d|p");
  const ptx::Operand& result = operands[0].parts[0];
  if (result.kind == ptx::Operand::Kind::sink) {
    e.operands.push_back(d.temporary(32));
    e.destinations = 1;
  } else {
    PTXBENCH_TRY(d.dst(e, result, 32));
  }
  for (std::size_t i = 1; i <= 3; ++i) PTXBENCH_TRY(d.src(e, i, Ty::b32));
  PTXBENCH_TRY_ASSIGN(const Operand q, pred_or_constant(d, operands[5]));
  PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(operands[0].parts[1]));
  e.operands.push_back(p);
  e.operands.push_back(q);
  e.b = combine == 1;
  return emit_typed(d, e, run_lop3_pred, "int");
}

}  // namespace

void register_logic(InstructionTable& table) {
  table.add("and", decode_logic<And, run_and32, run_and64, run_and_pred>);
  table.add("or", decode_logic<Or, run_or32, run_or64, run_or_pred>);
  table.add("xor", decode_logic<Xor, run_xor32, run_xor64, run_xor_pred>);
  table.add("not", decode_one<Not>);
  table.add("cnot", decode_one<ConditionalNot>);
  table.add("shl", decode_shl);
  table.add("shr", decode_shr);
  table.add("shf", decode_shf);
  table.add("lop3", decode_lop3);
}

}  // namespace ptxbench::emulator
