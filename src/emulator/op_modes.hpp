// Modifiers of floating-point instructions, packed into a byte of the op, and results of functions over whole
// arrays.
#pragma once

#include "emulator/op_lanes.hpp"
#include "emulator/scalar_math.hpp"

namespace ptxbench::emulator {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

// A Rounding in the low three bits, then flags.
inline constexpr std::uint8_t kRoundingMode = 7, kFlushMode = 8, kSaturateMode = 16, kReluMode = 32;
PTXBENCH_INLINE FloatMode float_mode(unsigned c) {
  return {static_cast<Rounding>(c & kRoundingMode), (c & kFlushMode) != 0, (c & kSaturateMode) != 0};
}
PTXBENCH_INLINE HalfMode half_mode(unsigned c) {
  return {(c & kFlushMode) != 0, (c & kSaturateMode) != 0, (c & kReluMode) != 0};
}

struct FloatForm {
  std::uint8_t mode = 0;
  bool rounds = false, sat = false;  // a rounding modifier is there; .sat is
};
inline FloatForm take_float_form(Modifiers& m) {
  static constexpr Rounding kRoundings[] = {Rounding::nearest_even, Rounding::zero, Rounding::down,
                                            Rounding::up};
  FloatForm f;
  const int rounding = m.take_one({"rn", "rz", "rm", "rp"});
  f.rounds = rounding >= 0;
  if (f.rounds) f.mode = static_cast<std::uint8_t>(kRoundings[rounding]);
  if (m.take("ftz")) f.mode |= kFlushMode;
  f.sat = m.take("sat");
  if (f.sat) f.mode |= kSaturateMode;
  return f;
}
inline Result<void> check_float_form(Decoder& d, const FloatForm& f, Ty type) {
  if (type != Ty::f32 && type != Ty::f64 && type != Ty::f32x2)
    return d.bad("the instruction has no such type");
  if (type == Ty::f64 && (f.mode & ~kRoundingMode) != 0) return d.bad(".f64 has neither .ftz nor .sat");
  if (type == Ty::f32x2 && f.sat) return d.bad(".f32x2 has no .sat");
  return {};
}
inline std::string_view float_family(Ty type) { return type == Ty::f64 ? "fp64" : "fp32"; }

// min, max.
inline constexpr std::uint8_t kNanMode = 16, kXorsignMode = 32;
PTXBENCH_INLINE MinMaxMode extremum_mode(unsigned c) {
  return {(c & kFlushMode) != 0, (c & kNanMode) != 0, (c & kXorsignMode) != 0};
}
inline std::uint8_t take_extremum_mode(Modifiers& m) {
  std::uint8_t mode = 0;
  if (m.take("ftz")) mode |= kFlushMode;
  if (m.take("NaN")) mode |= kNanMode;
  if (m.take("xorsign")) {
    m.take("abs");
    mode |= kXorsignMode;
  }
  return mode;
}

// compute(p) writes kLanes values of N words each to p; those of the op's lanes become the destination's.
template <unsigned N, class F>
PTXBENCH_INLINE Flow to_lanes(Exec& x, F compute) {
  using W = std::conditional_t<N == 2, U64, U32>;
  if (x.mask == ~Mask{0}) {
    compute(x.dst(0));
    return Flow::next;
  }
  alignas(64) U32 out[N * kLanes];
  compute(out);
  const W* from = words<W>(out);
  W* d = words<W>(x.dst(0));
  for_lanes(x.mask, [&](int i) { d[i] = from[i]; });
  return Flow::next;
}

// min, max of 32-bit lanes (f32, halves in pairs): op.c an extremum_mode.
using MinMax32 = void (*)(U32*, const U32*, const U32*, MinMaxMode);
template <MinMax32 F>
Flow run_min_max(Exec& x) {
  const MinMaxMode mode = extremum_mode(x.op.c);
  return to_lanes<1>(x, [&](U32* d) { F(d, x.src(1), x.src(2), mode); });
}
template <MinMax32 F>
Flow run_min_max3(Exec& x) {
  const MinMaxMode mode = extremum_mode(x.op.c);
  return to_lanes<1>(x, [&](U32* d) {
    alignas(64) U32 first[kLanes];
    F(first, x.src(1), x.src(2), mode);
    F(d, first, x.src(3), mode);
  });
}

}  // namespace ptxbench::emulator
