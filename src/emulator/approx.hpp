// The approximate functions of PTX with the bits of an H200 (sm_90): PTX ISA 9.0, section 9.7.3 (Floating
// Point Instructions: div, rcp, sqrt, rsqrt, sin, cos, lg2, ex2, tanh with `.approx` or `.full`) and 9.7.4
// (ex2, tanh of halves), as ptxas 13.0 expands them. Every function is checked against the card on all its
// inputs (division: on 2^28 pairs): tests/emulator/approx_test.cpp. What ptxas does instead to operands that
// it knows to be constant (it folds them, to other bits) is not modelled.
//
// Values go in and out as bits. Arrays have 32 lanes, contiguous; the output may be an input. All functions
// are pure and may run on any thread.
#pragma once

#include <cstdint>

namespace ptxbench::emulator {

/// ex2, lg2, rcp, rsqrt, sqrt `.approx{.ftz}.f32`. NaN is 0x7fffffff.
std::uint32_t ex2_approx(std::uint32_t a, bool ftz);
std::uint32_t lg2_approx(std::uint32_t a, bool ftz);
std::uint32_t rcp_approx(std::uint32_t a, bool ftz);
std::uint32_t rsqrt_approx(std::uint32_t a, bool ftz);
std::uint32_t sqrt_approx(std::uint32_t a, bool ftz);
/// sin, cos `.approx{.ftz}.f32`: `.ftz` makes no difference; tanh.approx.f32.
std::uint32_t sin_approx(std::uint32_t a);
std::uint32_t cos_approx(std::uint32_t a);
std::uint32_t tanh_approx(std::uint32_t a);
/// div.approx{.ftz}.f32, div.full{.ftz}.f32.
std::uint32_t div_approx(std::uint32_t a, std::uint32_t b, bool ftz);
std::uint32_t div_full(std::uint32_t a, std::uint32_t b, bool ftz);
/// ex2.approx.f16, ex2.approx.ftz.bf16, tanh.approx.{f16,bf16}. NaN is 0x7fff.
std::uint16_t ex2_approx_f16(std::uint16_t a);
std::uint16_t ex2_approx_bf16(std::uint16_t a);
std::uint16_t tanh_approx_f16(std::uint16_t a);
std::uint16_t tanh_approx_bf16(std::uint16_t a);
/// rcp.approx.ftz.f64, rsqrt.approx.ftz.f64: only the high word counts; the result's low word is 0.
std::uint64_t rcp_approx_ftz_f64(std::uint64_t a);
std::uint64_t rsqrt_approx_ftz_f64(std::uint64_t a);

/// The same on 32 lanes.
void ex2_approx(std::uint32_t* d, const std::uint32_t* a, bool ftz);
void lg2_approx(std::uint32_t* d, const std::uint32_t* a, bool ftz);
void rcp_approx(std::uint32_t* d, const std::uint32_t* a, bool ftz);
void rsqrt_approx(std::uint32_t* d, const std::uint32_t* a, bool ftz);
void sqrt_approx(std::uint32_t* d, const std::uint32_t* a, bool ftz);
void sin_approx(std::uint32_t* d, const std::uint32_t* a);
void cos_approx(std::uint32_t* d, const std::uint32_t* a);
void tanh_approx(std::uint32_t* d, const std::uint32_t* a);
void div_approx(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, bool ftz);
void div_full(std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b, bool ftz);
/// Two halves a lane. For the scalar half forms use the low half and ignore the high one.
void ex2_approx_f16x2(std::uint32_t* d, const std::uint32_t* a);
void ex2_approx_bf16x2(std::uint32_t* d, const std::uint32_t* a);
void tanh_approx_f16x2(std::uint32_t* d, const std::uint32_t* a);
void tanh_approx_bf16x2(std::uint32_t* d, const std::uint32_t* a);
void rcp_approx_ftz_f64(std::uint64_t* d, const std::uint64_t* a);
void rsqrt_approx_ftz_f64(std::uint64_t* d, const std::uint64_t* a);

/// The machine instructions MUFU.SIN and MUFU.COS, whose argument is in turns; MUFU.RCP64H and RSQ64H, on
/// high words.
std::uint32_t mufu_sin(std::uint32_t turns);
std::uint32_t mufu_cos(std::uint32_t turns);
std::uint32_t mufu_rcp64h(std::uint32_t high);
std::uint32_t mufu_rsq64h(std::uint32_t high);

}  // namespace ptxbench::emulator
