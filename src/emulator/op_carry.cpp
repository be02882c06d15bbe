// Extended precision: add.cc, addc, sub.cc, subc, mad.cc, madc. CC.CF is a predicate of the kernel's own
// (Decoder::carry): the carry of an addition, the borrow of a subtraction.
#include "emulator/op_lanes.hpp"

namespace ptxbench::emulator {
namespace {

enum Kind : std::uint8_t { kAdd, kSub, kMadLow, kMadHigh };

// Operands: d, a, b[, c], then the condition code. op.a: Kind; op.b: reads it; op.c: writes it; op.d: signed.
template <class W>
Flow run_carry(Exec& x) {
  const unsigned kind = x.op.a;
  const bool reads = x.op.b != 0, writes = x.op.c != 0, is_signed_product = x.op.d != 0;
  const unsigned sources = kind >= kMadLow ? 3 : 2, cc = 1 + sources;
  const Mask in = reads ? x.pred(cc) : 0;
  Mask undefined = reads ? x.pred_undefined(cc) : 0;
  for (unsigned k = 1; k <= sources; ++k) undefined |= x.undefined_of(x.operand(k));
  const W* a = words<W>(x.src(1));
  const W* b = words<W>(x.src(2));
  const W* c = words<W>(x.src(sources));
  Mask out = 0;
  fill_lanes(words<W>(x.dst(0)), x.mask, [&](unsigned i) -> W {
    const W carry = in >> i & 1;
    if (kind == kSub) {
      const W difference = a[i] - b[i];
      const bool borrow = a[i] < b[i] || difference < carry;
      out |= Mask{borrow} << i;
      return difference - carry;
    }
    W left = a[i];
    const W right = kind == kAdd ? b[i] : c[i];
    if (kind == kMadLow) left = a[i] * b[i];
    if (kind == kMadHigh) {
      if (is_signed_product) {
        using S = std::make_signed_t<W>;
        left = static_cast<W>(static_cast<__int128>(static_cast<S>(a[i])) * static_cast<S>(b[i]) >>
                              (8 * sizeof(W)));
      } else {
        left = static_cast<W>(static_cast<unsigned __int128>(a[i]) * b[i] >> (8 * sizeof(W)));
      }
    }
    const W sum = left + right, all = sum + carry;
    out |= Mask{sum < left || all < sum} << i;
    return all;
  });
  x.set_undefined(0, undefined);
  if (writes) x.set_pred(cc, out, undefined);
  return Flow::next;
}

}  // namespace

Result<void> decode_carry(Decoder& d) {
  const std::string& opcode = d.instruction().opcode;
  Modifiers m(d.instruction());
  Emit e;
  e.b = opcode.back() == 'c';
  e.c = m.take("cc");
  const int part = m.take_one({"lo", "hi"});
  PTXBENCH_TRY_ASSIGN(const Ty type, m.type());
  PTXBENCH_TRY(m.finish(d));
  const bool mad = opcode[0] == 'm';
  if (mad != (part >= 0)) return d.bad(mad ? "needs .lo or .hi" : "has neither .lo nor .hi");
  if (type != Ty::u32 && type != Ty::s32 && type != Ty::u64 && type != Ty::s64) {
    return d.bad("the instruction has no such type");
  }
  e.a = opcode[0] == 'a' ? kAdd : opcode[0] == 's' ? kSub : part == 0 ? kMadLow : kMadHigh;
  e.d = is_signed(type);
  if (mad) {
    PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type, type}));
  } else {
    PTXBENCH_TRY(plain_operands(d, e, ty_bits(type), {type, type}));
  }
  e.operands.push_back(d.carry());
  e.flags = kNone;
  e.run = ty_bits(type) == 64 ? &run_carry<std::uint64_t> : &run_carry<std::uint32_t>;
  return d.emit(e, "int");
}

}  // namespace ptxbench::emulator
