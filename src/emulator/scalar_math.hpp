// Floating-point arithmetic of PTX with the bits of sm_90: PTX ISA 9.0, 9.7.3 (f32, f64), 9.7.4 (f16,
// bf16), 9.7.5 (f32x2). The functions `.approx` are in approx.hpp, conversions in formats.hpp.
//
// Values go in and out as bits. Arrays have 32 lanes, contiguous; the output may be an input. A NaN result is
// 0x7fffffff (f32), 0x7fff (f16, bf16) or 0xfff8000000000000 (f64), whatever the operands' payloads.
//
// All functions are pure and may run on any thread; the thread's floating-point unit must round to nearest
// and keep subnormals (the default).
#pragma once

#include "emulator/formats.hpp"

#include <cstdint>

namespace ptxbench::emulator {

/// Modifiers of f32 arithmetic; a form that PTX does not have is computed all the same.
struct FloatMode {
  Rounding rounding = Rounding::nearest_even;  // not nearest_away
  bool ftz = false;  ///< subnormal inputs and outputs become signed zero; fma's as rounded, others' before
  bool sat = false;  ///< clamp to [0, 1]; NaN gives +0
};

/// {add,sub,mul,fma,div,rcp,sqrt}{.rnd}{.ftz}{.sat}.f32, on 32 lanes.
void add_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, FloatMode mode = {});
void sub_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, FloatMode mode = {});
void mul_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, FloatMode mode = {});
void fma_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
             FloatMode mode = {});
void div_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, FloatMode mode = {});
void rcp_f32(std::uint32_t* d, const std::uint32_t* a, FloatMode mode = {});
void sqrt_f32(std::uint32_t* d, const std::uint32_t* a, FloatMode mode = {});
/// The same of one number.
std::uint32_t add_f32(std::uint32_t a, std::uint32_t b, FloatMode mode = {});
std::uint32_t sub_f32(std::uint32_t a, std::uint32_t b, FloatMode mode = {});
std::uint32_t mul_f32(std::uint32_t a, std::uint32_t b, FloatMode mode = {});
std::uint32_t fma_f32(std::uint32_t a, std::uint32_t b, std::uint32_t c, FloatMode mode = {});
std::uint32_t div_f32(std::uint32_t a, std::uint32_t b, FloatMode mode = {});
std::uint32_t rcp_f32(std::uint32_t a, FloatMode mode = {});
std::uint32_t sqrt_f32(std::uint32_t a, FloatMode mode = {});

/// {add,sub,mul,fma,div,rcp,sqrt}{.rnd}.f64
void add_f64(std::uint64_t* d, const std::uint64_t* a, const std::uint64_t* b, Rounding rounding);
void sub_f64(std::uint64_t* d, const std::uint64_t* a, const std::uint64_t* b, Rounding rounding);
void mul_f64(std::uint64_t* d, const std::uint64_t* a, const std::uint64_t* b, Rounding rounding);
void fma_f64(std::uint64_t* d, const std::uint64_t* a, const std::uint64_t* b, const std::uint64_t* c,
             Rounding rounding);
void div_f64(std::uint64_t* d, const std::uint64_t* a, const std::uint64_t* b, Rounding rounding);
void rcp_f64(std::uint64_t* d, const std::uint64_t* a, Rounding rounding);
void sqrt_f64(std::uint64_t* d, const std::uint64_t* a, Rounding rounding);
std::uint64_t add_f64(std::uint64_t a, std::uint64_t b, Rounding rounding = Rounding::nearest_even);
std::uint64_t sub_f64(std::uint64_t a, std::uint64_t b, Rounding rounding = Rounding::nearest_even);
std::uint64_t mul_f64(std::uint64_t a, std::uint64_t b, Rounding rounding = Rounding::nearest_even);
std::uint64_t fma_f64(std::uint64_t a, std::uint64_t b, std::uint64_t c,
                      Rounding rounding = Rounding::nearest_even);
std::uint64_t div_f64(std::uint64_t a, std::uint64_t b, Rounding rounding = Rounding::nearest_even);
std::uint64_t rcp_f64(std::uint64_t a, Rounding rounding = Rounding::nearest_even);
std::uint64_t sqrt_f64(std::uint64_t a, Rounding rounding = Rounding::nearest_even);

/// Modifiers of half arithmetic (rounding is to nearest).
struct HalfMode {
  bool ftz = false;   ///< f16 only: subnormal inputs and outputs become zero with their sign
  bool sat = false;   ///< clamp to [0, 1]; NaN gives +0
  bool relu = false;  ///< negative results give +0; NaN stays NaN
};

/// {add,sub,mul,fma}.f16x2 and bf16x2, on 32 lanes of two halves. For the scalar forms use the low halves (of
/// operands whose upper halves are zero the results' upper halves are zero).
void add_f16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, HalfMode mode = {});
void sub_f16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, HalfMode mode = {});
void mul_f16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, HalfMode mode = {});
void fma_f16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
               HalfMode mode = {});
void add_bf16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, HalfMode mode = {});
void sub_bf16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, HalfMode mode = {});
void mul_bf16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, HalfMode mode = {});
void fma_bf16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, const std::uint32_t* c,
                HalfMode mode = {});

/// Modifiers of min and max.
struct MinMaxMode {
  bool ftz = false;
  bool nan = false;          ///< `.NaN`: NaN if an operand is; else the operand that is a number
  bool xorsign_abs = false;  ///< of the magnitudes, with the product's sign
};
/// {min,max}{.ftz}{.NaN}{.xorsign.abs}; -0 is less than +0. Halves two a lane.
void min_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, MinMaxMode mode = {});
void max_f32(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, MinMaxMode mode = {});
void min_f64(std::uint64_t* d, const std::uint64_t* a, const std::uint64_t* b);
void max_f64(std::uint64_t* d, const std::uint64_t* a, const std::uint64_t* b);
void min_f16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, MinMaxMode mode = {});
void max_f16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, MinMaxMode mode = {});
void min_bf16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, MinMaxMode mode = {});
void max_bf16x2(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, MinMaxMode mode = {});

/// {abs,neg}{.ftz}
std::uint32_t abs_f32(std::uint32_t a, bool ftz = false);
std::uint32_t neg_f32(std::uint32_t a, bool ftz = false);
std::uint64_t abs_f64(std::uint64_t a);
std::uint64_t neg_f64(std::uint64_t a);
/// Two halves; for scalar forms mask the result to its low half.
std::uint32_t abs_f16x2(std::uint32_t a, bool ftz = false);
std::uint32_t neg_f16x2(std::uint32_t a, bool ftz = false);
std::uint32_t abs_bf16x2(std::uint32_t a);
std::uint32_t neg_bf16x2(std::uint32_t a);

/// copysign d, a, b: b with a's sign.
inline std::uint32_t copysign_f32(std::uint32_t a, std::uint32_t b) {
  return (b & 0x7fffffff) | (a & 0x80000000);
}
inline std::uint64_t copysign_f64(std::uint64_t a, std::uint64_t b) {
  return (b & ~(std::uint64_t{1} << 63)) | (a & std::uint64_t{1} << 63);
}

/// testp.OP. On the card zeros are normal.
enum class FloatTest : std::uint8_t { finite, infinite, number, not_a_number, normal, subnormal };
bool test_f32(FloatTest test, std::uint32_t a);
bool test_f64(FloatTest test, std::uint64_t a);

}  // namespace ptxbench::emulator
