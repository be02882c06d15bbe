// Arithmetic of f32, f32x2 and f64; the exact operations are in scalar_math.hpp, the approximate functions in
// approx.hpp.
#include "emulator/approx.hpp"
#include "emulator/op_lanes.hpp"
#include "emulator/op_modes.hpp"
#include "emulator/scalar_math.hpp"

#include <cmath>

namespace ptxbench::emulator {
namespace {

// --- handlers: op.c the mode
// ---------------------------------------------------------------------------------------

using Binary32 = void (*)(U32*, const U32*, const U32*, FloatMode);
using Ternary32 = void (*)(U32*, const U32*, const U32*, const U32*, FloatMode);
using Unary32 = void (*)(U32*, const U32*, FloatMode);
using Binary64 = void (*)(U64*, const U64*, const U64*, Rounding);
using Ternary64 = void (*)(U64*, const U64*, const U64*, const U64*, Rounding);
using Unary64 = void (*)(U64*, const U64*, Rounding);

template <Unary32 F>
Flow run_unary32(Exec& x) {
  const FloatMode mode = float_mode(x.op.c);
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1), mode); });
}
template <Binary32 F>
Flow run_binary32(Exec& x) {
  const FloatMode mode = float_mode(x.op.c);
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1), x.src(2), mode); });
}
template <Ternary32 F>
Flow run_ternary32(Exec& x) {
  const FloatMode mode = float_mode(x.op.c);
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1), x.src(2), x.src(3), mode); });
}
// Pairs are 64 numbers that follow each other: the function twice.
template <Binary32 F>
Flow run_binary32x2(Exec& x) {
  const FloatMode mode = float_mode(x.op.c);
  return to_lanes<2>(x, [&](U32* d) {
    const U32 *a = x.src(1), *b = x.src(2);
    F(d, a, b, mode);
    F(d + kLanes, a + kLanes, b + kLanes, mode);
  });
}
template <Ternary32 F>
Flow run_ternary32x2(Exec& x) {
  const FloatMode mode = float_mode(x.op.c);
  return to_lanes<2>(x, [&](U32* d) {
    const U32 *a = x.src(1), *b = x.src(2), *c = x.src(3);
    F(d, a, b, c, mode);
    F(d + kLanes, a + kLanes, b + kLanes, c + kLanes, mode);
  });
}
template <Unary64 F>
Flow run_unary64(Exec& x) {
  return to_lanes<2>(x, [&](U32* d) { F(words<U64>(d), x.src64(1), float_mode(x.op.c).rounding); });
}
template <Binary64 F>
Flow run_binary64(Exec& x) {
  return to_lanes<2>(x,
                     [&](U32* d) { F(words<U64>(d), x.src64(1), x.src64(2), float_mode(x.op.c).rounding); });
}
template <Ternary64 F>
Flow run_ternary64(Exec& x) {
  return to_lanes<2>(
      x, [&](U32* d) { F(words<U64>(d), x.src64(1), x.src64(2), x.src64(3), float_mode(x.op.c).rounding); });
}

// Sources are registers or the constant pool's; ops never write them.
template <Binary32 F32, Binary64 F64>
Result<void> decode_binary(Decoder& d) {
  Modifiers m(d.instruction());
  const FloatForm form = take_float_form(m);
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(check_float_form(d, form, type));
  Emit e;
  e.c = form.mode;
  const unsigned bits = ty_bits(type);
  const Ty source = type == Ty::f32x2 ? Ty::b64 : type;
  PTXBENCH_TRY(plain_operands(d, e, bits, {source, source}));
  e.run = type == Ty::f32 ? &run_binary32<F32> : type == Ty::f64 ? &run_binary64<F64> : &run_binary32x2<F32>;
  return d.emit(e, float_family(type));
}

bool is_constant(const ptx::Operand& o) {
  using Kind = ptx::Operand::Kind;
  return o.kind == Kind::integer || o.kind == Kind::f32 || o.kind == Kind::f64;
}

}  // namespace

Result<void> decode_add_float(Decoder& d) { return decode_binary<Binary32{add_f32}, Binary64{add_f64}>(d); }
Result<void> decode_sub_float(Decoder& d) { return decode_binary<Binary32{sub_f32}, Binary64{sub_f64}>(d); }
Result<void> decode_mul_float(Decoder& d) { return decode_binary<Binary32{mul_f32}, Binary64{mul_f64}>(d); }

// fma, and mad, which is the same.
Result<void> decode_fma_float(Decoder& d) {
  Modifiers m(d.instruction());
  const FloatForm form = take_float_form(m);
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(check_float_form(d, form, type));
  if (!form.rounds) return d.bad("needs .rn, .rz, .rm or .rp");
  Emit e;
  e.c = form.mode;
  const Ty source = type == Ty::f32x2 ? Ty::b64 : type;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {source, source, source}));
  e.run = type == Ty::f32   ? &run_ternary32<Ternary32{fma_f32}>
          : type == Ty::f64 ? &run_ternary64<Ternary64{fma_f64}>
                            : &run_ternary32x2<Ternary32{fma_f32}>;
  return d.emit(e, float_family(type));
}

namespace {

// --- division and the functions of one operand
// ----------------------------------------------------------------------

using Approx1 = void (*)(U32*, const U32*);
using ApproxFtz1 = void (*)(U32*, const U32*, bool);
using ApproxFtz2 = void (*)(U32*, const U32*, const U32*, bool);
using Approx64 = void (*)(U64*, const U64*);

template <Approx1 F>
Flow run_approx(Exec& x) {
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1)); });
}
template <ApproxFtz1 F>
Flow run_approx_ftz(Exec& x) {
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1), (x.op.c & kFlushMode) != 0); });
}
template <ApproxFtz2 F>
Flow run_approx_ftz2(Exec& x) {
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1), x.src(2), (x.op.c & kFlushMode) != 0); });
}
template <Approx64 F>
Flow run_approx64(Exec& x) {
  return to_lanes<2>(x, [&](U32* d) { F(words<U64>(d), x.src64(1)); });
}
// rsqrt.approx.f64 without .ftz is a subroutine of ptxas's: RSQ64H and one step of a third-order iteration,
// y + y*e*(1/2 + 3/8 e) with e = 1 - x*y*y; subnormals are scaled, a NaN comes out quiet.
U64 rsqrt_f64(U64 x) {
  const auto real = [](double v) { return std::bit_cast<U64>(v); };
  const U64 magnitude = x & ~(U64{1} << 63);
  constexpr U64 kInfinite = 0x7ff0000000000000;
  if (magnitude > kInfinite) return x | 0x0008000000000000;
  if (x != magnitude && magnitude != 0) return 0xfff8000000000000;
  const bool subnormal = magnitude != 0 && magnitude < 0x0010000000000000;
  if (subnormal) x = mul_f64(x, real(0x1p54));
  U64 y = rsqrt_approx_ftz_f64(x);
  const U64 high = y >> 52 & 0x7ff;
  if (high != 0 && high != 0x7ff) {
    const U64 e = fma_f64(neg_f64(x), mul_f64(y, y), real(1.0));
    const U64 step = fma_f64(e, real(0.375), real(0.5));
    y = fma_f64(step, mul_f64(y, e), y);
  }
  return subnormal ? mul_f64(y, real(0x1p27)) : y;
}
Flow run_rsqrt_f64(Exec& x) {
  return unary<U64, U64>(x, [](U64 a) { return rsqrt_f64(a); });
}

}  // namespace

Result<void> decode_div_float(Decoder& d) {
  Modifiers m(d.instruction());
  const int approximate = m.take_one({"approx", "full"});
  const FloatForm form = take_float_form(m);
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(check_float_form(d, form, type));
  if (type == Ty::f32x2 || form.sat) return d.bad("the instruction has no such form");
  if (form.rounds == (approximate >= 0)) return d.bad("needs one of .approx, .full, .rn, .rz, .rm and .rp");
  if (approximate >= 0 && type != Ty::f32) return d.bad("the instruction has no such type");
  Emit e;
  e.c = form.mode;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type}));
  if (approximate < 0) {
    e.run = type == Ty::f32 ? &run_binary32<Binary32{div_f32}> : &run_binary64<Binary64{div_f64}>;
    return d.emit(e, float_family(type));
  }
  // ptxas multiplies by the reciprocal of a divisor that it knows.
  if (is_constant(d.instruction().operands[2])) e.fidelity = Fidelity::ptxas;
  e.run =
      approximate == 0 ? &run_approx_ftz2<ApproxFtz2{div_approx}> : &run_approx_ftz2<ApproxFtz2{div_full}>;
  return d.emit(e, "sfu");
}

namespace {

// rcp, sqrt: rounded or approximate. rsqrt, ex2, lg2, sin, cos, tanh: approximate only. A null handler: no
// such form.
struct Function {
  Handler rounded32 = nullptr, rounded64 = nullptr, approx = nullptr, approx_ftz64 = nullptr;
};
Result<void> decode_function(Decoder& d, const Function& f) {
  Modifiers m(d.instruction());
  const bool approximate = m.take("approx");
  const FloatForm form = take_float_form(m);
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (form.sat || type == Ty::f32x2 || form.rounds == approximate)
    return d.bad("the instruction has no such form");
  Emit e;
  e.c = form.mode;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type}));
  if (!approximate) {
    PTXBENCH_TRY(check_float_form(d, form, type));
    return emit_typed(d, e,
                      type == Ty::f32   ? f.rounded32
                      : type == Ty::f64 ? f.rounded64
                                        : nullptr,
                      float_family(type));
  }
  if (is_constant(d.instruction().operands[1])) e.fidelity = Fidelity::ptxas;  // folded, to other bits
  Handler run = type == Ty::f32 ? f.approx : nullptr;
  if (type == Ty::f64 && (form.mode & kFlushMode) != 0) run = f.approx_ftz64;
  if (type == Ty::f64 && (form.mode & kFlushMode) == 0 && d.instruction().opcode == "rsqrt") run = run_rsqrt_f64;
  return emit_typed(d, e, run, "sfu");
}

Result<void> decode_rcp(Decoder& d) {
  return decode_function(
      d, {&run_unary32<Unary32{rcp_f32}>, &run_unary64<Unary64{rcp_f64}>,
          &run_approx_ftz<ApproxFtz1{rcp_approx}>, &run_approx64<Approx64{rcp_approx_ftz_f64}>});
}
Result<void> decode_sqrt(Decoder& d) {
  return decode_function(d, {&run_unary32<Unary32{sqrt_f32}>, &run_unary64<Unary64{sqrt_f64}>,
                             &run_approx_ftz<ApproxFtz1{sqrt_approx}>, nullptr});
}
Result<void> decode_rsqrt(Decoder& d) {
  return decode_function(d, {nullptr, nullptr, &run_approx_ftz<ApproxFtz1{rsqrt_approx}>,
                             &run_approx64<Approx64{rsqrt_approx_ftz_f64}>});
}
Result<void> decode_lg2(Decoder& d) {
  return decode_function(d, {nullptr, nullptr, &run_approx_ftz<ApproxFtz1{lg2_approx}>, nullptr});
}
Result<void> decode_sin(Decoder& d) {
  return decode_function(d, {nullptr, nullptr, &run_approx<Approx1{sin_approx}>, nullptr});
}
Result<void> decode_cos(Decoder& d) {
  return decode_function(d, {nullptr, nullptr, &run_approx<Approx1{cos_approx}>, nullptr});
}

}  // namespace

Result<void> decode_ex2_float(Decoder& d) {
  return decode_function(d, {nullptr, nullptr, &run_approx_ftz<ApproxFtz1{ex2_approx}>, nullptr});
}
// Never folded: exact with a constant too.
Result<void> decode_tanh_float(Decoder& d) {
  Modifiers m(d.instruction());
  if (!m.take("approx") || !m.take("f32")) return d.bad("needs .approx.f32");
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, 32, {Ty::f32}));
  return emit_typed(d, e, &run_approx<Approx1{tanh_approx}>, "sfu");
}

namespace {

// --- min, max: op.c an extremum_mode
// ---------------------------------------------------------------------------------

using MinMax64 = void (*)(U64*, const U64*, const U64*);

template <MinMax64 F>
Flow run_min_max64(Exec& x) {
  return to_lanes<2>(x, [&](U32* d) { F(words<U64>(d), x.src64(1), x.src64(2)); });
}
// Without modifiers, in 32-bit integers: with the magnitude of negative ones complemented they have the
// numbers' order.
struct Extreme {
  bool larger;
  PTXBENCH_INLINE U32 operator()(U32 a, U32 b) const {
    const auto key = [](U32 v) {
      return static_cast<std::int32_t>(v ^ (static_cast<U32>(static_cast<std::int32_t>(v) >> 31) >> 1));
    };
    const bool a_nan = (a & 0x7fffffff) > 0x7f800000, b_nan = (b & 0x7fffffff) > 0x7f800000;
    const U32 r = (key(a) > key(b)) == larger ? a : b;
    const U32 other = a_nan ? kNanF32 : a;
    return b_nan ? other : a_nan ? b : r;
  }
};
PTXBENCH_CLONES Flow run_plain_min(Exec& x) { return binary<U32, U32, U32>(x, Extreme{false}); }
PTXBENCH_CLONES Flow run_plain_max(Exec& x) { return binary<U32, U32, U32>(x, Extreme{true}); }

template <MinMax32 F32, Handler Plain32, MinMax64 F64>
Result<void> decode_min_max(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.c = take_extremum_mode(m);
  const bool three = d.instruction().operands.size() == 4;
  if (three && m.take("abs")) return d.unsupported("three operands with .abs (it needs sm_100)");
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (type == Ty::f64) {
    if (e.c != 0) return d.bad(".f64 has no modifiers");
    PTXBENCH_TRY(plain_operands(d, e, 64, {type, type}));
    return emit_typed(d, e, &run_min_max64<F64>, "fp64");
  }
  if (type != Ty::f32) return d.bad("the instruction has no such type");
  if (three) {
    PTXBENCH_TRY(plain_operands(d, e, 32, {type, type, type}));
    return emit_typed(d, e, &run_min_max3<F32>, "fp32");
  }
  PTXBENCH_TRY(plain_operands(d, e, 32, {type, type}));
  return emit_typed(d, e, e.c == 0 ? Plain32 : &run_min_max<F32>, "fp32");
}

// --- signs and tests
// -------------------------------------------------------------------------------------------------

PTXBENCH_CLONES Flow run_abs32(Exec& x) {
  return unary<U32, U32>(
      x, [](U32 a) __attribute__((always_inline)) {
        const U32 magnitude = a & 0x7fffffff;
        return magnitude > 0x7f800000 ? kNanF32 : magnitude;
      });
}
PTXBENCH_CLONES Flow run_neg32(Exec& x) {
  return unary<U32, U32>(
      x, [](U32 a) __attribute__((always_inline)) {
        return (a & 0x7fffffff) > 0x7f800000 ? kNanF32 : a ^ 0x80000000;
      });
}
template <U32 (*F)(U32, bool)>
Flow run_sign32(Exec& x) {
  const bool ftz = (x.op.c & kFlushMode) != 0;
  return unary<U32, U32>(x, [=](U32 a) { return F(a, ftz); });
}
template <U64 (*F)(U64)>
Flow run_sign64(Exec& x) {
  return unary<U64, U64>(x, [](U64 a) { return F(a); });
}
template <U32 (*F32)(U32, bool), Handler Fast32, U64 (*F64)(U64)>
Result<void> decode_sign(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.c = m.take("ftz") ? kFlushMode : 0;
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (e.c != 0 && type != Ty::f32) return d.bad(".ftz is for .f32 only");
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type}));
  Handler run = type == Ty::f32 ? (e.c != 0 ? &run_sign32<F32> : Fast32) : nullptr;
  if (type == Ty::f64) run = &run_sign64<F64>;
  return emit_typed(d, e, run, float_family(type));
}

struct CopySign32 {
  U32 operator()(U32 a, U32 b) const { return copysign_f32(a, b); }
};
struct CopySign64 {
  U64 operator()(U64 a, U64 b) const { return copysign_f64(a, b); }
};
Result<void> decode_copysign(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  Emit e;
  PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type}));
  return emit_typed(d, e,
                    type == Ty::f32   ? Same2<CopySign32, U32>::run
                    : type == Ty::f64 ? Same2<CopySign64, U64>::run
                                      : nullptr,
                    float_family(type));
}

// Operands: a, then p. op.a: the FloatTest; op.b: f64.
Flow run_testp(Exec& x) {
  const FloatTest test = static_cast<FloatTest>(x.op.a);
  Mask holds = 0;
  for_lanes(x.mask, [&](int i) {
    const bool t = x.op.b != 0 ? test_f64(test, x.src64(0)[i]) : test_f32(test, x.src(0)[i]);
    holds |= Mask{t} << i;
  });
  x.set_pred(1, holds, x.undefined_of(x.operand(0)));
  return Flow::next;
}
Result<void> decode_testp(Decoder& d) {
  Modifiers m(d.instruction());
  const int test = m.take_one({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  static constexpr FloatTest kTests[] = {FloatTest::finite,       FloatTest::infinite, FloatTest::number,
                                         FloatTest::not_a_number, FloatTest::normal,   FloatTest::subnormal};
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  if (test < 0) return d.bad("needs a test");
  if (type != Ty::f32 && type != Ty::f64) return d.bad("the instruction has no such type");
  PTXBENCH_TRY(d.expect_operands(2));
  Emit e;
  e.a = static_cast<std::uint8_t>(kTests[test]);
  e.b = type == Ty::f64;
  PTXBENCH_TRY(d.src(e, 1, type));
  PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(d.instruction().operands[0]));
  e.operands.push_back(p);
  e.flags = kNone;
  e.run = run_testp;
  return d.emit(e, float_family(type));
}

}  // namespace

Result<void> decode_min_float(Decoder& d) {
  return decode_min_max<MinMax32{min_f32}, run_plain_min, MinMax64{min_f64}>(d);
}
Result<void> decode_max_float(Decoder& d) {
  return decode_min_max<MinMax32{max_f32}, run_plain_max, MinMax64{max_f64}>(d);
}
Result<void> decode_abs_float(Decoder& d) { return decode_sign<abs_f32, run_abs32, abs_f64>(d); }
Result<void> decode_neg_float(Decoder& d) { return decode_sign<neg_f32, run_neg32, neg_f64>(d); }

void register_float(InstructionTable& table) {
  table.add("rcp", decode_rcp);
  table.add("sqrt", decode_sqrt);
  table.add("rsqrt", decode_rsqrt);
  table.add("lg2", decode_lg2);
  table.add("sin", decode_sin);
  table.add("cos", decode_cos);
  table.add("copysign", decode_copysign);
  table.add("testp", decode_testp);
}

}  // namespace ptxbench::emulator
