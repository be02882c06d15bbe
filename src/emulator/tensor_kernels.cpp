#include "emulator/tensor_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define PTXBENCH_TENSOR_X86 1
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC 12 finds both in its own AVX-512 header
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>
#endif

// How a term is cut. With s = 2^(F - E), trunc(a * b * s) is the term in units of 2^(E - F): the product of
// two fp32 values of at most 11 significant bits is exact, so is the scaling, and the conversion to an
// integer cuts towards zero. A product below 2^-126 may be inexact, but where E >= -100 it is below one unit,
// whatever it becomes. A term is below 2^27 units, 16 products of 11 bits (or 32 of 4) below 2^31: sums of
// products fit 32 bits. Lanes whose E leaves [-100, 110] are left to the caller; infinities and NaN have an
// exponent that leaves it in any company.
namespace ptxbench::emulator {

namespace {

constexpr int kMinExponent = -100;
constexpr int kMaxExponent = 110;
constexpr int kNoTerm = -4000;  // below: every term was a zero

struct Masks {
  std::uint64_t keep;  // of a double's bits, what is left of the mantissa
  std::uint64_t odd;   // the last kept bit, where the result is rounded to odd; else 0
};
Masks masks_of(const DotParameters& p) {
  const int dropped = 52 - p.mantissa_bits;
  return {~((std::uint64_t{1} << dropped) - 1), p.round_to_odd ? std::uint64_t{1} << dropped : 0};
}

void portable_unit(const RowUnit& row, const ColumnUnit& column, const DotParameters& p, const Masks& masks,
                   float* d, std::uint32_t& bad) {
  alignas(64) std::int16_t largest[32];
  std::fill_n(largest, 32, std::int16_t{-12000});
  for (int k = 0; k < p.k; ++k)
    for (int l = 0; l < 32; l += 4)
      for (int q = 0; q < 4; ++q) {
        const auto e = static_cast<std::int16_t>(row.exponent[k][l + q] + column.exponent[k][q]);
        largest[l + q] = largest[l + q] > e ? largest[l + q] : e;
      }
  alignas(64) std::int32_t exponent[32], sum[32], addend[32];
  alignas(64) float scale[32];
  bad = 0;
  for (int l = 0; l < 32; ++l) {
    std::int32_t e = largest[l];
    if (p.accumulate) {
      const auto bits = std::bit_cast<std::uint32_t>(d[l]);
      const std::int32_t own = static_cast<std::int32_t>((bits >> 23) & 0xff) - 127;
      const std::int32_t ec = own > p.accumulator_min_exponent ? own : p.accumulator_min_exponent;
      if ((bits << 1) != 0 && ec > e) e = ec;
    }
    const bool outside = e > kMaxExponent || (e < kMinExponent && e > kNoTerm);
    bad |= std::uint32_t{outside} << l;
    e = std::clamp(e, kMinExponent, kMaxExponent);
    exponent[l] = e;
    scale[l] = std::bit_cast<float>((p.fraction_bits - e + 127) << 23);
    sum[l] = 0;
    addend[l] = 0;
  }
  // Out-of-range lanes must not be converted (undefined in C++): their scale becomes zero.
  for (int l = 0; l < 32; ++l) scale[l] = (bad >> l & 1) != 0 ? 0.0F : scale[l];
  if (bad == 0) {
    for (int k = 0; k < p.k; ++k)
      for (int l = 0; l < 32; l += 4)
        for (int q = 0; q < 4; ++q)
          sum[l + q] += static_cast<std::int32_t>(row.value[k][l + q] * column.value[k][q] * scale[l + q]);
  } else {
    for (int l = 0; l < 32; ++l)
      for (int k = 0; (bad >> l & 1) == 0 && k < p.k; ++k)
        sum[l] += static_cast<std::int32_t>(row.value[k][l] * column.value[k][l & 3] * scale[l]);
  }
  if (p.accumulate)
    for (int l = 0; l < 32; ++l)
      if ((bad >> l & 1) == 0) addend[l] = static_cast<std::int32_t>(d[l] * scale[l]);
  for (int l = 0; l < 32; ++l) {
    const double total = static_cast<double>(sum[l]) + static_cast<double>(addend[l]);
    const auto bits = std::bit_cast<std::uint64_t>(total);
    const std::uint64_t cut = (bits & masks.keep) | ((bits & ~masks.keep) != 0 ? masks.odd : 0);
    const double back =
        std::bit_cast<double>(static_cast<std::uint64_t>(exponent[l] - p.fraction_bits + 1023) << 52);
    const auto result = static_cast<float>(std::bit_cast<double>(cut) * back);
    if ((bad >> l & 1) == 0) d[l] = result;
  }
}

void integer_portable(const RowUnit& row, const ColumnUnit& column, int k, std::int32_t* sums) {
  alignas(64) float sum[32] = {};
  for (int i = 0; i < k; ++i)  // below 2^24: exact
    for (int l = 0; l < 32; l += 4)
      for (int q = 0; q < 4; ++q) sum[l + q] += row.value[i][l + q] * column.value[i][q];
  for (int l = 0; l < 32; ++l) sums[l] = static_cast<std::int32_t>(sum[l]);
}

#if PTXBENCH_TENSOR_X86

#define PTXBENCH_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define PTXBENCH_AVX2 __attribute__((target("avx2")))

template <int K>
PTXBENCH_AVX512 void avx512_units(const RowUnit* rows, int units, const ColumnUnit& column,
                                  const DotParameters& p, const Masks& masks, float* const* d,
                                  std::uint32_t* bad) {
  const __m512i lowest = _mm512_set1_epi32(kMinExponent), highest = _mm512_set1_epi32(kMaxExponent);
  const __m512i none = _mm512_set1_epi32(kNoTerm), one = _mm512_set1_epi32(-12000);
  const __m512i bias = _mm512_set1_epi32(127), c_min = _mm512_set1_epi32(p.accumulator_min_exponent);
  const __m512i to_scale = _mm512_set1_epi32(p.fraction_bits + 127);
  const __m256i to_back = _mm256_set1_epi32(1023 - p.fraction_bits);
  const __m512i keep = _mm512_set1_epi64(static_cast<long long>(masks.keep));
  const __m512i odd = _mm512_set1_epi64(static_cast<long long>(masks.odd));
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512 columns[K];  // in registers, for K up to 16
  for (int k = 0; k < K; ++k) columns[k] = _mm512_broadcast_f32x4(_mm_load_ps(column.value[k]));
  for (int u = 0; u < units; ++u) {
    const RowUnit& row = rows[u];
    __m512i largest = _mm512_set1_epi16(-12000);
    for (int k = 0; k < K; ++k) {
      long long four;
      std::memcpy(&four, column.exponent[k], 8);
      largest = _mm512_max_epi16(
          largest, _mm512_add_epi16(_mm512_load_si512(row.exponent[k]), _mm512_set1_epi64(four)));
    }
    std::uint32_t outside = 0;
    for (int half = 0; half < 2; ++half) {
      float* out = d[u] + 16 * half;
      __m512i e = _mm512_cvtepi16_epi32(half == 0 ? _mm512_castsi512_si256(largest)
                                                  : _mm512_extracti64x4_epi64(largest, 1));
      __m512 c = _mm512_setzero_ps();
      if (p.accumulate) {
        c = _mm512_loadu_ps(out);
        const __m512i bits = _mm512_castps_si512(c);
        const __m512i own = _mm512_sub_epi32(_mm512_srli_epi32(_mm512_and_si512(bits, magnitude), 23), bias);
        const __m512i ec =
            _mm512_mask_mov_epi32(one, _mm512_test_epi32_mask(bits, magnitude), _mm512_max_epi32(own, c_min));
        e = _mm512_max_epi32(e, ec);
      }
      const __mmask16 wrong = _mm512_cmpgt_epi32_mask(e, highest) |
                              (_mm512_cmplt_epi32_mask(e, lowest) & _mm512_cmpgt_epi32_mask(e, none));
      outside |= std::uint32_t{wrong} << (16 * half);
      e = _mm512_min_epi32(_mm512_max_epi32(e, lowest), highest);
      const __m512 scale = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_sub_epi32(to_scale, e), 23));
      __m512i sum = _mm512_setzero_si512(), sum2 = _mm512_setzero_si512();
      for (int k = 0; k < K; k += 2) {
        const __m512 x = _mm512_mul_ps(_mm512_load_ps(row.value[k] + 16 * half), columns[k]);
        const __m512 y = _mm512_mul_ps(_mm512_load_ps(row.value[k + 1] + 16 * half), columns[k + 1]);
        sum = _mm512_add_epi32(sum, _mm512_cvttps_epi32(_mm512_mul_ps(x, scale)));
        sum2 = _mm512_add_epi32(sum2, _mm512_cvttps_epi32(_mm512_mul_ps(y, scale)));
      }
      sum = _mm512_add_epi32(sum, sum2);
      const __m512i addend = _mm512_cvttps_epi32(_mm512_mul_ps(c, scale));
      __m256 parts[2];
      for (int q = 0; q < 2; ++q) {
        const __m256i s = q == 0 ? _mm512_castsi512_si256(sum) : _mm512_extracti64x4_epi64(sum, 1);
        const __m256i t = q == 0 ? _mm512_castsi512_si256(addend) : _mm512_extracti64x4_epi64(addend, 1);
        const __m256i x = q == 0 ? _mm512_castsi512_si256(e) : _mm512_extracti64x4_epi64(e, 1);
        const __m512i total =
            _mm512_castpd_si512(_mm512_add_pd(_mm512_cvtepi32_pd(s), _mm512_cvtepi32_pd(t)));
        __m512i cut = _mm512_and_si512(total, keep);
        cut = _mm512_mask_or_epi64(cut, _mm512_cmpneq_epi64_mask(cut, total), cut, odd);
        const __m512d back =
            _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepi32_epi64(_mm256_add_epi32(x, to_back)), 52));
        parts[q] = _mm512_cvtpd_ps(_mm512_mul_pd(_mm512_castsi512_pd(cut), back));
      }
      const __m512 result = _mm512_insertf32x8(_mm512_castps256_ps512(parts[0]), parts[1], 1);
      _mm512_mask_storeu_ps(out, static_cast<__mmask16>(~wrong), result);
    }
    bad[u] = outside;
  }
}

template <int K>
PTXBENCH_AVX2 void avx2_units(const RowUnit* rows, int units, const ColumnUnit& column,
                              const DotParameters& p, const Masks& masks, float* const* d,
                              std::uint32_t* bad) {
  const __m256i lowest = _mm256_set1_epi32(kMinExponent), highest = _mm256_set1_epi32(kMaxExponent);
  const __m256i none = _mm256_set1_epi32(kNoTerm), no_addend = _mm256_set1_epi32(-12000);
  const __m256i bias = _mm256_set1_epi32(127), c_min = _mm256_set1_epi32(p.accumulator_min_exponent);
  const __m256i to_scale = _mm256_set1_epi32(p.fraction_bits + 127);
  const __m128i to_back = _mm_set1_epi32(1023 - p.fraction_bits);
  const __m256i keep = _mm256_set1_epi64x(static_cast<long long>(masks.keep));
  const __m256i odd = _mm256_set1_epi64x(static_cast<long long>(masks.odd));
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  for (int u = 0; u < units; ++u) {
    const RowUnit& row = rows[u];
    alignas(32) std::int16_t exponents[32];
    for (int half = 0; half < 2; ++half) {
      __m256i largest = _mm256_set1_epi16(-12000);
      for (int k = 0; k < K; ++k) {
        long long four;
        std::memcpy(&four, column.exponent[k], 8);
        const auto* at = reinterpret_cast<const __m256i*>(row.exponent[k] + 16 * half);
        largest =
            _mm256_max_epi16(largest, _mm256_add_epi16(_mm256_load_si256(at), _mm256_set1_epi64x(four)));
      }
      _mm256_store_si256(reinterpret_cast<__m256i*>(exponents + 16 * half), largest);
    }
    std::uint32_t outside = 0;
    for (int part = 0; part < 4; ++part) {
      float* out = d[u] + 8 * part;
      __m256i e =
          _mm256_cvtepi16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(exponents + 8 * part)));
      const __m256 before = _mm256_loadu_ps(out);
      __m256 c = _mm256_setzero_ps();
      if (p.accumulate) {
        c = before;
        const __m256i absolute = _mm256_and_si256(_mm256_castps_si256(c), magnitude);
        const __m256i own = _mm256_sub_epi32(_mm256_srli_epi32(absolute, 23), bias);
        const __m256i zero = _mm256_cmpeq_epi32(absolute, _mm256_setzero_si256());
        e = _mm256_max_epi32(e, _mm256_blendv_epi8(_mm256_max_epi32(own, c_min), no_addend, zero));
      }
      const __m256i wrong =
          _mm256_or_si256(_mm256_cmpgt_epi32(e, highest),
                          _mm256_and_si256(_mm256_cmpgt_epi32(lowest, e), _mm256_cmpgt_epi32(e, none)));
      outside |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(wrong))) << (8 * part);
      e = _mm256_min_epi32(_mm256_max_epi32(e, lowest), highest);
      const __m256 scale = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(to_scale, e), 23));
      __m256i sum = _mm256_setzero_si256(), sum2 = _mm256_setzero_si256();
      for (int k = 0; k < K; k += 2) {
        const auto* b = reinterpret_cast<const __m128*>(column.value[k]);
        const auto* b2 = reinterpret_cast<const __m128*>(column.value[k + 1]);
        const __m256 x = _mm256_mul_ps(_mm256_load_ps(row.value[k] + 8 * part), _mm256_broadcast_ps(b));
        const __m256 y = _mm256_mul_ps(_mm256_load_ps(row.value[k + 1] + 8 * part), _mm256_broadcast_ps(b2));
        sum = _mm256_add_epi32(sum, _mm256_cvttps_epi32(_mm256_mul_ps(x, scale)));
        sum2 = _mm256_add_epi32(sum2, _mm256_cvttps_epi32(_mm256_mul_ps(y, scale)));
      }
      sum = _mm256_add_epi32(sum, sum2);
      const __m256i addend = _mm256_cvttps_epi32(_mm256_mul_ps(c, scale));
      __m128 parts[2];
      for (int q = 0; q < 2; ++q) {
        const __m128i s = q == 0 ? _mm256_castsi256_si128(sum) : _mm256_extracti128_si256(sum, 1);
        const __m128i t = q == 0 ? _mm256_castsi256_si128(addend) : _mm256_extracti128_si256(addend, 1);
        const __m128i x = q == 0 ? _mm256_castsi256_si128(e) : _mm256_extracti128_si256(e, 1);
        const __m256i total =
            _mm256_castpd_si256(_mm256_add_pd(_mm256_cvtepi32_pd(s), _mm256_cvtepi32_pd(t)));
        __m256i cut = _mm256_and_si256(total, keep);
        cut = _mm256_or_si256(cut, _mm256_andnot_si256(_mm256_cmpeq_epi64(cut, total), odd));
        const __m256d back =
            _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_cvtepi32_epi64(_mm_add_epi32(x, to_back)), 52));
        parts[q] = _mm256_cvtpd_ps(_mm256_mul_pd(_mm256_castsi256_pd(cut), back));
      }
      const __m256 result = _mm256_insertf128_ps(_mm256_castps128_ps256(parts[0]), parts[1], 1);
      _mm256_storeu_ps(out, _mm256_blendv_ps(result, before, _mm256_castsi256_ps(wrong)));
    }
    bad[u] = outside;
  }
}

PTXBENCH_AVX2 void integer_avx2(const RowUnit& row, const ColumnUnit& column, int k, std::int32_t* sums) {
  for (int part = 0; part < 4; ++part) {
    __m256 sum = _mm256_setzero_ps();
    for (int i = 0; i < k; ++i)
      sum = _mm256_add_ps(
          sum, _mm256_mul_ps(_mm256_load_ps(row.value[i] + 8 * part),
                             _mm256_broadcast_ps(reinterpret_cast<const __m128*>(column.value[i]))));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 8 * part), _mm256_cvttps_epi32(sum));
  }
}

#endif

}  // namespace

bool tensor_isa_available(TensorIsa isa) {
  switch (isa) {
    case TensorIsa::automatic:
    case TensorIsa::portable:
      return true;
#if PTXBENCH_TENSOR_X86
    case TensorIsa::avx2:
      return __builtin_cpu_supports("avx2") != 0;
    case TensorIsa::avx512:
      return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
             __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
#endif
    default:
      return false;
  }
}

TensorIsa best_tensor_isa() {
  static const TensorIsa best = tensor_isa_available(TensorIsa::avx512) ? TensorIsa::avx512
                                : tensor_isa_available(TensorIsa::avx2) ? TensorIsa::avx2
                                                                        : TensorIsa::portable;
  return best;
}

void dot_units(TensorIsa isa, const RowUnit* rows, int units, const ColumnUnit& columns,
               const DotParameters& p, float* const* d, std::uint32_t* bad) {
  const Masks masks = masks_of(p);
  if (isa == TensorIsa::automatic) isa = best_tensor_isa();
#if PTXBENCH_TENSOR_X86
  if (isa == TensorIsa::avx512) {
    switch (p.k) {
      case 4:
        return avx512_units<4>(rows, units, columns, p, masks, d, bad);
      case 8:
        return avx512_units<8>(rows, units, columns, p, masks, d, bad);
      case 16:
        return avx512_units<16>(rows, units, columns, p, masks, d, bad);
      case 32:
        return avx512_units<32>(rows, units, columns, p, masks, d, bad);
      default:
        break;
    }
  }
  if (isa == TensorIsa::avx2 || isa == TensorIsa::avx512) {
    switch (p.k) {
      case 4:
        return avx2_units<4>(rows, units, columns, p, masks, d, bad);
      case 8:
        return avx2_units<8>(rows, units, columns, p, masks, d, bad);
      case 16:
        return avx2_units<16>(rows, units, columns, p, masks, d, bad);
      case 32:
        return avx2_units<32>(rows, units, columns, p, masks, d, bad);
      default:
        break;
    }
  }
#endif
  for (int u = 0; u < units; ++u) portable_unit(rows[u], columns, p, masks, d[u], bad[u]);
}

void integer_dot_units(TensorIsa isa, const RowUnit* rows, int units, const ColumnUnit& columns, int k,
                       std::int32_t (*sums)[32]) {
  if (isa == TensorIsa::automatic) isa = best_tensor_isa();
  for (int u = 0; u < units; ++u) {
#if PTXBENCH_TENSOR_X86
    if (isa != TensorIsa::portable) {
      integer_avx2(rows[u], columns, k, sums[u]);
      continue;
    }
#endif
    integer_portable(rows[u], columns, k, sums[u]);
  }
}

}  // namespace ptxbench::emulator
