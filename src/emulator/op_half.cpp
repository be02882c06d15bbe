// Arithmetic of f16 and bf16, alone or in pairs. A scalar is the low half of its lane; the upper half is zero
// and stays so.
#include "emulator/approx.hpp"
#include "emulator/op_lanes.hpp"
#include "emulator/op_modes.hpp"
#include "emulator/scalar_math.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

using Binary = void (*)(U32*, const U32*, const U32*, HalfMode);
using Ternary = void (*)(U32*, const U32*, const U32*, const U32*, HalfMode);
using Unary = void (*)(U32*, const U32*);

template <Binary F>
Flow run_half_binary(Exec& x) {
  const HalfMode mode = half_mode(x.op.c);
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1), x.src(2), mode); });
}
template <Ternary F>
Flow run_half_ternary(Exec& x) {
  const HalfMode mode = half_mode(x.op.c);
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1), x.src(2), x.src(3), mode); });
}
// Functions that take an upper half of zero elsewhere: op.imm has the bits to keep.
template <Unary F>
Flow run_half_function(Exec& x) {
  const U32 keep = static_cast<U32>(x.op.imm);
  return to_lanes<1>(x, [&](U32* d) {
    F(d, x.src(1));
    for (unsigned i = 0; i < kLanes; ++i) d[i] &= keep;
  });
}
template <class F>
Flow run_half_sign(Exec& x) {
  const U32 keep = static_cast<U32>(x.op.imm);
  const bool ftz = (x.op.c & kFlushMode) != 0;
  return unary<U32, U32>(x, [=](U32 a) { return F{}(a, ftz) & keep; });
}
struct AbsF16 {
  U32 operator()(U32 a, bool ftz) const { return abs_f16x2(a, ftz); }
};
struct NegF16 {
  U32 operator()(U32 a, bool ftz) const { return neg_f16x2(a, ftz); }
};
struct AbsBf16 {
  U32 operator()(U32 a, bool) const { return abs_bf16x2(a); }
};
struct NegBf16 {
  U32 operator()(U32 a, bool) const { return neg_bf16x2(a); }
};

bool is_f16(Ty type) { return type == Ty::f16 || type == Ty::f16x2; }
bool is_half(Ty type) { return is_f16(type) || type == Ty::bf16 || type == Ty::bf16x2; }
bool is_pair(Ty type) { return type == Ty::f16x2 || type == Ty::bf16x2; }
std::int64_t keep_bits(Ty type) { return is_pair(type) ? 0xffffffff : 0xffff; }
// A pair as a source: any 32 bits. A scalar: an immediate is converted to it.
Ty source_type(Ty type) { return is_pair(type) ? Ty::b32 : type; }

struct HalfForm {
  Ty type = Ty::none;
  std::uint8_t mode = 0;
};
Result<HalfForm> read_form(Decoder& d, bool fused) {
  Modifiers m(d.instruction());
  const bool rounds = m.take("rn");
  HalfForm f;
  if (m.take("ftz")) f.mode |= kFlushMode;
  if (m.take("sat")) f.mode |= kSaturateMode;
  if (fused && m.take("relu")) f.mode |= kReluMode;
  if (fused && m.take("oob")) return d.unsupported("fma with .oob");
  PTXBENCH_TRY_ASSIGN(f.type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (!is_half(f.type)) return d.bad("the instruction has no such type");
  if (!is_f16(f.type) && (f.mode & (kFlushMode | kSaturateMode)) != 0)
    return d.bad(".bf16 has neither .ftz nor .sat");
  if ((f.mode & kSaturateMode) != 0 && (f.mode & kReluMode) != 0)
    return d.bad(".sat and .relu exclude each other");
  if (fused && !rounds) return d.bad("needs .rn");
  return f;
}
template <Binary F16, Binary Bf16>
Result<void> decode_binary(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const HalfForm f, read_form(d, false));
  Emit e;
  e.c = f.mode;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(f.type), {source_type(f.type), source_type(f.type)}));
  return emit_typed(d, e, is_f16(f.type) ? &run_half_binary<F16> : &run_half_binary<Bf16>, "half");
}
template <MinMax32 F16, MinMax32 Bf16>
Result<void> decode_min_max(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.c = take_extremum_mode(m);
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (!is_half(type)) return d.bad("the instruction has no such type");
  if (!is_f16(type) && (e.c & kFlushMode) != 0) return d.bad(".bf16 has no .ftz");
  const Ty source = source_type(type);
  if (d.instruction().operands.size() == 4) {
    PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {source, source, source}));
    return emit_typed(d, e, is_f16(type) ? &run_min_max3<F16> : &run_min_max3<Bf16>, "half");
  }
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {source, source}));
  return emit_typed(d, e, is_f16(type) ? &run_min_max<F16> : &run_min_max<Bf16>, "half");
}
template <class F16, class Bf16>
Result<void> decode_sign(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.c = m.take("ftz") ? kFlushMode : 0;
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (!is_half(type)) return d.bad("the instruction has no such type");
  if (!is_f16(type) && e.c != 0) return d.bad(".bf16 has no .ftz");
  e.imm = keep_bits(type);
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {source_type(type)}));
  return emit_typed(d, e, is_f16(type) ? &run_half_sign<F16> : &run_half_sign<Bf16>, "half");
}
template <Unary F16, Unary Bf16>
Result<void> decode_function(Decoder& d, bool bf16_flushes) {
  Modifiers m(d.instruction());
  if (!m.take("approx")) return d.bad("needs .approx");
  const bool ftz = m.take("ftz");
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (!is_half(type)) return d.bad("the instruction has no such type");
  if (ftz != (bf16_flushes && !is_f16(type))) return d.bad(ftz ? "the form has no .ftz" : "needs .ftz");
  Emit e;
  e.imm = keep_bits(type);
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {source_type(type)}));
  return emit_typed(d, e, is_f16(type) ? &run_half_function<F16> : &run_half_function<Bf16>, "sfu");
}

}  // namespace

Result<void> decode_add_half(Decoder& d) { return decode_binary<add_f16x2, add_bf16x2>(d); }
Result<void> decode_sub_half(Decoder& d) { return decode_binary<sub_f16x2, sub_bf16x2>(d); }
Result<void> decode_mul_half(Decoder& d) { return decode_binary<mul_f16x2, mul_bf16x2>(d); }
Result<void> decode_fma_half(Decoder& d) {
  PTXBENCH_TRY_ASSIGN(const HalfForm f, read_form(d, true));
  Emit e;
  e.c = f.mode;
  const Ty source = source_type(f.type);
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(f.type), {source, source, source}));
  return emit_typed(d, e, is_f16(f.type) ? &run_half_ternary<fma_f16x2> : &run_half_ternary<fma_bf16x2>,
                    "half");
}
Result<void> decode_min_half(Decoder& d) { return decode_min_max<min_f16x2, min_bf16x2>(d); }
Result<void> decode_max_half(Decoder& d) { return decode_min_max<max_f16x2, max_bf16x2>(d); }
Result<void> decode_abs_half(Decoder& d) { return decode_sign<AbsF16, AbsBf16>(d); }
Result<void> decode_neg_half(Decoder& d) { return decode_sign<NegF16, NegBf16>(d); }
Result<void> decode_ex2_half(Decoder& d) {
  return decode_function<ex2_approx_f16x2, ex2_approx_bf16x2>(d, true);
}
Result<void> decode_tanh_half(Decoder& d) {
  return decode_function<tanh_approx_f16x2, tanh_approx_bf16x2>(d, false);
}

void register_half(InstructionTable&) {}  // their opcodes are shared: op_arithmetic.cpp

}  // namespace ptxbench::emulator
