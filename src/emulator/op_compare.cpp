// setp and set: comparisons of integers, floats and halves into predicates or registers.
#include "emulator/formats.hpp"
#include "emulator/op_lanes.hpp"

#include <array>

namespace ptxbench::emulator {
namespace {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

// The unordered ones hold also where an operand is NaN; num: neither is; nan: one is.
enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
constexpr std::array<std::string_view, 18> kNames = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",
                                                     "equ", "neu", "ltu", "leu", "gtu", "geu",
                                                     "num", "nan", "lo",  "ls",  "hi",  "hs"};

// --- the comparison of 32 lanes
// ------------------------------------------------------------------------------------

template <class T, class F>
PTXBENCH_INLINE Mask test_pair(const Exec& x, unsigned first, F f) {
  const Word<T>* a = words<T>(x.src(first));
  const Word<T>* b = words<T>(x.src(first + 1));
  return test_lanes([=](unsigned i)
                        __attribute__((always_inline)) { return f(from_word<T>(a[i]), from_word<T>(b[i])); });
}
template <class T>
PTXBENCH_INLINE Mask compare_lanes(const Exec& x, unsigned first, Compare how) {
  // The negated ordered comparison is the unordered opposite one.
  switch (how) {
    case Compare::eq:
      return test_pair<T>(x, first, [](T a, T b) { return a == b; });
    case Compare::lt:
      return test_pair<T>(x, first, [](T a, T b) { return a < b; });
    case Compare::le:
      return test_pair<T>(x, first, [](T a, T b) { return a <= b; });
    case Compare::gt:
      return test_pair<T>(x, first, [](T a, T b) { return a > b; });
    case Compare::ge:
      return test_pair<T>(x, first, [](T a, T b) { return a >= b; });
    case Compare::neu:
      return test_pair<T>(x, first, [](T a, T b) { return a != b; });
    case Compare::geu:
      return ~test_pair<T>(x, first, [](T a, T b) { return a < b; });
    case Compare::gtu:
      return ~test_pair<T>(x, first, [](T a, T b) { return a <= b; });
    case Compare::leu:
      return ~test_pair<T>(x, first, [](T a, T b) { return a > b; });
    case Compare::ltu:
      return ~test_pair<T>(x, first, [](T a, T b) { return a >= b; });
    case Compare::ne:
      if constexpr (std::is_integral_v<T>) return test_pair<T>(x, first, [](T a, T b) { return a != b; });
      return test_pair<T>(x, first, [](T a, T b) { return (a < b) | (a > b); });
    case Compare::equ:
      return ~test_pair<T>(x, first, [](T a, T b) { return (a < b) | (a > b); });
    case Compare::num:
      return test_pair<T>(x, first, [](T a, T b) { return (a == a) & (b == b); });
    case Compare::nan:
      return ~test_pair<T>(x, first, [](T a, T b) { return (a == a) & (b == b); });
  }
  return 0;
}

using Comparer = Mask (*)(const Exec&, unsigned first, Compare);
PTXBENCH_CLONES Mask compare_u32(const Exec& x, unsigned first, Compare how) {
  return compare_lanes<U32>(x, first, how);
}
PTXBENCH_CLONES Mask compare_s32(const Exec& x, unsigned first, Compare how) {
  return compare_lanes<std::int32_t>(x, first, how);
}
PTXBENCH_CLONES Mask compare_u64(const Exec& x, unsigned first, Compare how) {
  return compare_lanes<U64>(x, first, how);
}
PTXBENCH_CLONES Mask compare_s64(const Exec& x, unsigned first, Compare how) {
  return compare_lanes<std::int64_t>(x, first, how);
}
PTXBENCH_CLONES Mask compare_f32(const Exec& x, unsigned first, Compare how) {
  return compare_lanes<float>(x, first, how);
}
Mask compare_f64(const Exec& x, unsigned first, Compare how) { return compare_lanes<double>(x, first, how); }
Mask compare_u16(const Exec& x, unsigned first, Compare how) {
  return compare_lanes<std::uint16_t>(x, first, how);
}
Mask compare_s16(const Exec& x, unsigned first, Compare how) {
  return compare_lanes<std::int16_t>(x, first, how);
}

bool compare_floats(float a, float b, Compare how) {
  const bool unordered = a != a || b != b;
  switch (how) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return !unordered && a != b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
    case Compare::equ:
      return unordered || a == b;
    case Compare::neu:
      return a != b;
    case Compare::ltu:
      return unordered || a < b;
    case Compare::leu:
      return unordered || a <= b;
    case Compare::gtu:
      return unordered || a > b;
    case Compare::geu:
      return unordered || a >= b;
    case Compare::num:
      return !unordered;
    case Compare::nan:
      return unordered;
  }
  return false;
}
U32 flush(U32 v, U32 exponent) { return (v & exponent) == 0 ? v & ~(exponent - 1) & ~exponent : v; }

float f32_flushed(U32 v) { return std::bit_cast<float>((v & 0x7f800000) == 0 ? v & 0x80000000 : v); }
Mask compare_f32_ftz(const Exec& x, unsigned first, Compare how) {
  const U32* a = x.src(first);
  const U32* b = x.src(first + 1);
  return test_lanes([=](unsigned i) { return compare_floats(f32_flushed(a[i]), f32_flushed(b[i]), how); });
}
// Halves: of the half whose lowest bit is @p shift.
float from_f16(U32 v, unsigned shift, bool ftz) {
  const U32 h = v >> shift & 0xffff;
  return std::bit_cast<float>(f32_from_f16(static_cast<std::uint16_t>(ftz ? flush(h, 0x7c00) & 0xffff : h)));
}
template <unsigned Shift, bool Ftz>
Mask compare_f16(const Exec& x, unsigned first, Compare how) {
  const U32* a = x.src(first);
  const U32* b = x.src(first + 1);
  return test_lanes([=](unsigned i) {
    return compare_floats(from_f16(a[i], Shift, Ftz), from_f16(b[i], Shift, Ftz), how);
  });
}
template <unsigned Shift>
Mask compare_bf16(const Exec& x, unsigned first, Compare how) {
  const U32* a = x.src(first);
  const U32* b = x.src(first + 1);
  return test_lanes([=](unsigned i) {
    return compare_floats(std::bit_cast<float>(a[i] >> Shift << 16),
                          std::bit_cast<float>(b[i] >> Shift << 16), how);
  });
}

Comparer comparer(Ty type, bool ftz) {
  switch (type) {
    case Ty::u16:
    case Ty::b16:
      return compare_u16;
    case Ty::u32:
    case Ty::b32:
      return compare_u32;
    case Ty::u64:
    case Ty::b64:
      return compare_u64;
    case Ty::s16:
      return compare_s16;
    case Ty::s32:
      return compare_s32;
    case Ty::s64:
      return compare_s64;
    case Ty::f32:
      return ftz ? compare_f32_ftz : compare_f32;
    case Ty::f64:
      return compare_f64;
    case Ty::f16:
    case Ty::f16x2:
      return ftz ? compare_f16<0, true> : compare_f16<0, false>;
    case Ty::bf16:
    case Ty::bf16x2:
      return compare_bf16<0>;
    default:
      return nullptr;
  }
}
// The upper halves' of a pair.
Comparer upper(Ty type, bool ftz) {
  if (type == Ty::bf16x2) return compare_bf16<16>;
  return ftz ? compare_f16<16, true> : compare_f16<16, false>;
}
bool is_pair(Ty type) { return type == Ty::f16x2 || type == Ty::bf16x2; }

// --- what becomes of it
// --------------------------------------------------------------------------------------------

// op.a: Compare; op.b: how it combines with predicate c (kAlone: there is none).
enum Combine : std::uint8_t { kAlone, kAnd, kOr, kXor };
struct Outcome {
  Mask value = 0, undefined = 0;
};
PTXBENCH_INLINE Outcome combine(Outcome t, unsigned how, Mask c, Mask uc) {
  switch (how) {
    case kAnd:
      return {t.value & c, (t.undefined | uc) & ~(~t.value & ~t.undefined) & ~(~c & ~uc)};
    case kOr:
      return {t.value | c, (t.undefined | uc) & ~(t.value & ~t.undefined) & ~(c & ~uc)};
    case kXor:
      return {t.value ^ c, t.undefined | uc};
    default:
      return t;
  }
}
// Operands of setp: a, b, then p, q, c. The second destination is the complement, for pairs the upper halves'
// result.
template <Comparer Test>
Flow run_setp(Exec& x) {
  const Mask undefined = x.undefined_of(x.operand(0)) | x.undefined_of(x.operand(1));
  x.set_pred(2, Test(x, 0, static_cast<Compare>(x.op.a)), undefined);
  return Flow::next;
}
Flow run_setp_any(Exec& x) {
  const Ty type = static_cast<Ty>(x.op.c);
  const bool ftz = x.op.d != 0;
  const Compare how = static_cast<Compare>(x.op.a);
  const Mask undefined = x.undefined_of(x.operand(0)) | x.undefined_of(x.operand(1));
  const Mask c = x.pred(4), uc = x.pred_undefined(4);
  const Mask t = comparer(type, ftz)(x, 0, how);
  const Outcome p = combine({t, undefined}, x.op.b, c, uc);
  const Outcome q = combine({is_pair(type) ? upper(type, ftz)(x, 0, how) : ~t, undefined}, x.op.b, c, uc);
  x.set_pred(2, p.value, p.undefined);
  x.set_pred(3, q.value, q.undefined);
  return Flow::next;
}
// The register destination, the results as patterns for true: op.imm; halves of a pair have theirs each.
Flow run_set(Exec& x) {
  const Ty type = static_cast<Ty>(x.op.c);
  const bool ftz = x.op.d != 0;
  const Compare how = static_cast<Compare>(x.op.a);
  const Mask undefined = x.undefined_of(x.operand(1)) | x.undefined_of(x.operand(2));
  const Mask c = x.pred(3), uc = x.pred_undefined(3);
  const Outcome low = combine({comparer(type, ftz)(x, 1, how), undefined}, x.op.b, c, uc);
  Outcome high;
  U32 high_pattern = 0;
  if (is_pair(type)) {
    high = combine({upper(type, ftz)(x, 1, how), undefined}, x.op.b, c, uc);
    high_pattern = static_cast<U32>(x.op.imm) & 0xffff0000;
  }
  const U32 low_pattern = static_cast<U32>(x.op.imm) & ~high_pattern;
  fill_lanes(x.dst(0), x.mask, [&](unsigned i) {
    return ((low.value >> i & 1) != 0 ? low_pattern : 0) | ((high.value >> i & 1) != 0 ? high_pattern : 0);
  });
  x.set_undefined(0, low.undefined | high.undefined);
  return Flow::next;
}

Handler setp_handler(Ty type, bool ftz) {
  switch (type) {
    case Ty::u32:
    case Ty::b32:
      return &run_setp<compare_u32>;
    case Ty::s32:
      return &run_setp<compare_s32>;
    case Ty::u64:
    case Ty::b64:
      return &run_setp<compare_u64>;
    case Ty::s64:
      return &run_setp<compare_s64>;
    case Ty::f32:
      return ftz ? nullptr : &run_setp<compare_f32>;
    default:
      return nullptr;
  }
}

// --- decoding
// ------------------------------------------------------------------------------------------------------

bool is_real(Ty type) {
  return type == Ty::f32 || type == Ty::f64 || type == Ty::f16 || type == Ty::bf16 || is_pair(type);
}

Result<Compare> take_comparison(Decoder& d, Modifiers& m) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (!m.take(kNames[i])) continue;
    if (i < 14) return static_cast<Compare>(i);
    static constexpr Compare kUnsigned[] = {Compare::lt, Compare::le, Compare::gt,
                                            Compare::ge};  // lo, ls, hi, hs
    return kUnsigned[i - 14];
  }
  return d.bad("needs a comparison");
}
Result<void> check_comparison(Decoder& d, Ty type, Compare how) {
  if (comparer(type, false) == nullptr) return d.bad("the instruction has no such type");
  const bool is_bits = type == Ty::b16 || type == Ty::b32 || type == Ty::b64;
  if (is_bits && how != Compare::eq && how != Compare::ne)
    return d.bad("bits are compared with .eq and .ne only");
  if (!is_real(type) && how >= Compare::equ) return d.bad("this comparison is for floating-point types");
  return {};
}
// The predicate that combines, where a .and, .or or .xor asks for one.
Result<Operand> third_source(Decoder& d, int combined) {
  if (combined < 0) return kPredTrue;
  const ptx::Operand& o = d.instruction().operands[3];
  if (o.kind == ptx::Operand::Kind::integer) return o.bits != 0 ? kPredTrue : kPredFalse;
  return d.pred_src(o);
}
std::string_view family(Ty type) {
  return type == Ty::f32 ? "fp32" : type == Ty::f64 ? "fp64" : is_real(type) ? "half" : "int";
}
Ty source_type(Ty type) { return is_pair(type) ? Ty::b32 : type; }

Result<void> decode_setp(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Compare how, take_comparison(d, m));
  const int combined = m.take_one({"and", "or", "xor"});
  const bool ftz = m.take("ftz");
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(check_comparison(d, type, how));
  PTXBENCH_TRY(d.expect_operands(combined < 0 ? 3 : 4));
  const ptx::Operand& to = d.instruction().operands[0];
  const bool two = to.kind == ptx::Operand::Kind::pair;
  Emit e;
  PTXBENCH_TRY(d.src(e, 1, source_type(type)));
  PTXBENCH_TRY(d.src(e, 2, source_type(type)));
  PTXBENCH_TRY_ASSIGN(const Operand c, third_source(d, combined));
  PTXBENCH_TRY_ASSIGN(const Operand p, d.pred_dst(two ? to.parts[0] : to));
  Operand q = kNoOperand;
  if (two) {
    PTXBENCH_TRY_ASSIGN(q, d.pred_dst(to.parts[1]));
  }
  e.operands.insert(e.operands.end(), {p, q, c});
  e.flags = kNone;
  e.a = static_cast<std::uint8_t>(how);
  e.b = static_cast<std::uint8_t>(combined + 1);
  e.c = static_cast<std::uint8_t>(type);
  e.d = ftz;
  if (!two && combined < 0) e.run = setp_handler(type, ftz);
  if (e.run == nullptr) e.run = run_setp_any;
  return d.emit(e, family(type));
}

Result<void> decode_set(Decoder& d) {
  Modifiers m(d.instruction());
  PTXBENCH_TRY_ASSIGN(const Compare how, take_comparison(d, m));
  const int combined = m.take_one({"and", "or", "xor"});
  const bool ftz = m.take("ftz");
  const std::vector<Ty> types = m.types();
  PTXBENCH_TRY(m.finish(d));
  if (types.size() != 2) return d.bad("needs the types of the result and of the sources");
  const Ty to = types[0], type = types[1];
  PTXBENCH_TRY(check_comparison(d, type, how));
  Emit e;
  switch (to) {
    case Ty::u32:
    case Ty::s32:
      e.imm = 0xffffffff;
      break;
    case Ty::u16:
    case Ty::s16:
      e.imm = 0xffff;
      break;
    case Ty::f32:
      e.imm = 0x3f800000;
      break;
    case Ty::f16:
      e.imm = 0x3c00;
      break;
    case Ty::bf16:
      e.imm = 0x3f80;
      break;
    case Ty::f16x2:
      e.imm = 0x3c003c00;
      break;
    case Ty::bf16x2:
      e.imm = 0x3f803f80;
      break;
    default:
      return d.bad("the result has no such type");
  }
  if (is_pair(to) && !is_pair(type)) return d.bad("a pair of results needs a pair of sources");
  if (is_pair(type) && ty_bits(to) != 32) return d.bad("a pair of sources needs a result of 32 bits");
  if (is_pair(type) && !is_pair(to) && to == Ty::f32) return d.bad("the result has no such type");
  PTXBENCH_TRY(d.expect_operands(combined < 0 ? 3 : 4));
  PTXBENCH_TRY(d.dst(e, 0, ty_bits(to)));
  PTXBENCH_TRY(d.src(e, 1, source_type(type)));
  PTXBENCH_TRY(d.src(e, 2, source_type(type)));
  PTXBENCH_TRY_ASSIGN(const Operand c, third_source(d, combined));
  e.operands.push_back(c);
  e.flags = kNone;
  e.a = static_cast<std::uint8_t>(how);
  e.b = static_cast<std::uint8_t>(combined + 1);
  e.c = static_cast<std::uint8_t>(type);
  e.d = ftz;
  e.run = run_set;
  return d.emit(e, family(type));
}

}  // namespace

void register_compare(InstructionTable& table) {
  table.add("setp", decode_setp);
  table.add("set", decode_set);
}

}  // namespace ptxbench::emulator
