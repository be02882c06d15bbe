// Conversions between the number formats of PTX, as `cvt` defines them (PTX ISA 9.0, 9.7.9.22 cvt, 9.7.9.23
// cvt.pack), with the bits of sm_90. Values go in and out as bits, in the low end of the word; a format's NaN
// is one pattern (f16 and bf16 0x7fff, f32 and tf32 0x7fffffff, e4m3 and e5m2 0x7f).
//
// All functions are pure and may run on any thread, whose floating-point unit must round to nearest (the
// default). Arrays have 32 lanes, contiguous; the output may be an input.
#pragma once

#include <cstdint>

namespace ptxbench::emulator {

/// rn (and rni), rz, rm, rp, rna.
enum class Rounding : std::uint8_t { nearest_even, zero, down, up, nearest_away };

/// tf32 is kept as an f32 whose low 13 bits are zero.
enum class FloatFormat : std::uint8_t { f16, bf16, tf32, f32, f64, e4m3, e5m2 };

struct IntegerFormat {
  unsigned bits;  // 2 to 64
  bool is_signed;
};

inline constexpr std::uint32_t kNanF32 = 0x7fffffff;
inline constexpr std::uint16_t kNanHalf = 0x7fff;  // of f16 and of bf16
inline constexpr std::uint8_t kNanF8 = 0x7f;       // of e4m3 and of e5m2

/// Modifiers of a conversion between floating-point formats.
struct ConvertMode {
  Rounding rounding = Rounding::nearest_even;
  bool ftz = false;  ///< subnormal f32 inputs and outputs become zero with their sign
  bool sat = false;  ///< clamp to [0, 1]; NaN gives +0
  bool satfinite =
      false;  ///< what overflows, infinity included, gives the largest finite number (e4m3, e5m2: always)
  bool relu = false;  ///< negative numbers and -0 give +0
};

/// The value of @p bits as an f64, exactly. A NaN gives the f64's default NaN.
std::uint64_t widen_to_f64(FloatFormat from, std::uint64_t bits);
/// cvt.frnd.to.from. Widening conversions ignore the rounding.
std::uint64_t convert_float(FloatFormat to, FloatFormat from, std::uint64_t bits, ConvertMode mode = {});
/// cvt.{rni,rzi,rmi,rpi}.F.F: the nearest integral value, of the same format.
std::uint64_t round_to_integral(FloatFormat format, std::uint64_t bits, Rounding rounding, bool ftz = false,
                                bool sat = false);
/// cvt.{rni,rzi,rmi,rpi}.integer.float: clamped to the range of @p to. NaN gives 0, or for an f64 source or a
/// 64-bit destination 2^(bits-1). Signed results are sign-extended to 64 bits, unsigned ones zero-extended.
std::uint64_t integer_from_float(IntegerFormat to, FloatFormat from, std::uint64_t bits, Rounding rounding,
                                 bool ftz = false);
/// cvt.frnd.float.integer. @p bits beyond the integer's width are ignored.
std::uint64_t float_from_integer(FloatFormat to, IntegerFormat from, std::uint64_t bits,
                                 Rounding rounding = Rounding::nearest_even, bool sat = false);
/// cvt{.sat}.integer.integer, extended like integer_from_float's result.
std::uint64_t integer_from_integer(IntegerFormat to, IntegerFormat from, std::uint64_t bits,
                                   bool sat = false);
/// cvt.pack.sat.convertType.abType d, a, b{, c}: b lowest, a above it, then the low bits of c (of 16-bit
/// results none).
std::uint32_t pack_saturated(IntegerFormat to, IntegerFormat from, std::uint32_t a, std::uint32_t b,
                             std::uint32_t c = 0);

/// Scalars of the common conversions, without the generality.
std::uint32_t f32_from_f16(std::uint16_t a);
std::uint32_t f32_from_bf16(std::uint16_t a);
std::uint16_t f16_from_f32(std::uint32_t a);   // rn
std::uint16_t bf16_from_f32(std::uint32_t a);  // rn
std::uint16_t f16_from_e4m3(std::uint8_t a);
std::uint16_t f16_from_e5m2(std::uint8_t a);
std::uint8_t e4m3_from_f32(std::uint32_t a, bool relu = false);  // rn.satfinite
std::uint8_t e5m2_from_f32(std::uint32_t a, bool relu = false);

/// cvt.f32.f16, cvt.f32.bf16 of the low half of each lane.
void f32_from_f16(std::uint32_t* d, const std::uint32_t* a);
void f32_from_bf16(std::uint32_t* d, const std::uint32_t* a);
/// cvt.rn.f16.f32, cvt.rn.bf16.f32: a lane's upper half is 0.
void f16_from_f32(std::uint32_t* d, const std::uint32_t* a);
void bf16_from_f32(std::uint32_t* d, const std::uint32_t* a);
/// cvt.rn.f16x2.f32 d, a, b and cvt.rn.bf16x2.f32: a is the upper half, b the lower.
void f16x2_from_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b);
void bf16x2_from_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b);
/// The same with modifiers, one lane: cvt.frnd2{.relu}{.satfinite}.{f16x2,bf16x2}.f32.
std::uint32_t pair_from_f32(FloatFormat half, std::uint32_t a, std::uint32_t b, ConvertMode mode);

}  // namespace ptxbench::emulator
