// Conversions of 32 lanes at a time, for the forms that kernels use most; formats.hpp has the general ones,
// one lane at a time, which they agree with to the bit. A destination may be one of the sources.
#pragma once

#include "emulator/formats.hpp"

#include <cstdint>

namespace ptxbench::emulator {

/// cvt.{rni,rzi,rmi,rpi}{.ftz}.s32.f32, then clamped to [@p low, @p high], and the same to u32.
void s32_from_f32(std::uint32_t* d, const std::uint32_t* a, Rounding rounding, bool ftz, std::int32_t low,
                  std::int32_t high);
void u32_from_f32(std::uint32_t* d, const std::uint32_t* a, Rounding rounding, bool ftz);
/// cvt.{rni,rzi,rmi,rpi}{.ftz}.f32.f32
void integral_f32(std::uint32_t* d, const std::uint32_t* a, Rounding rounding, bool ftz);
/// cvt{.ftz}.f64.f32, cvt.rn.f32.f64
void f64_from_f32(std::uint64_t* d, const std::uint32_t* a, bool ftz);
void f32_from_f64(std::uint32_t* d, const std::uint64_t* a);
/// cvt.{rna,rn,rz}{.satfinite}{.relu}.tf32.f32
void tf32_from_f32(std::uint32_t* d, const std::uint32_t* a, ConvertMode mode);
/// cvt.rn{.relu}{.satfinite}.{f16x2,bf16x2}.f32 d, a, b: a is the upper half.
void pairs_from_f32(FloatFormat half, std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b,
                    bool relu, bool satfinite);
/// cvt.rn.satfinite{.relu}.{e4m3x2,e5m2x2} d, a, b of f32 (a is the upper byte), or of f16x2.
void f8x2_from_f32(FloatFormat f8, std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b,
                   bool relu);
void f8x2_from_f16x2(FloatFormat f8, std::uint32_t* d, const std::uint32_t* a, bool relu);
/// cvt.rn{.relu}.f16x2.{e4m3x2,e5m2x2} of the low half of each lane.
void f16x2_from_f8x2(FloatFormat f8, std::uint32_t* d, const std::uint32_t* a, bool relu);

}  // namespace ptxbench::emulator
