// Element types as bits: shared by the host compiler and NVRTC, integer operations only, so that both make
// the same bits. Self-contained: NVRTC compiles it without any standard header.
#pragma once

#ifdef __CUDACC__
#define PTXBENCH_JUDGE_FN static __device__ __forceinline__
#else
#define PTXBENCH_JUDGE_FN [[maybe_unused]] static inline
#endif

namespace ptxbench::judge {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i32 = int;
using i64 = long long;

// The numbers of ptxbench::DType (asserted on the host).
enum Type : u32 {
  kFloat32 = 0,
  kFloat16,
  kBfloat16,
  kFloat8E4m3,
  kFloat8E5m2,
  kFloat4E2m1,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kBool,
  kFloat64,
  kUint64,
  kUint32,
  kUint16,
  kUint8,
  kTfloat32
};

PTXBENCH_JUDGE_FN u32 type_bits(u32 type) {
  switch (type) {
    case kFloat64:
    case kInt64:
    case kUint64:
      return 64;
    case kFloat32:
    case kInt32:
    case kUint32:
    case kTfloat32:
      return 32;
    case kFloat16:
    case kBfloat16:
    case kInt16:
    case kUint16:
      return 16;
    case kFloat4E2m1:
      return 4;
    default:
      return 8;
  }
}

struct FloatFormat {
  u32 mantissa, exponent;  // bits
  i32 bias;
  u64 max_code;     // of the largest finite value
  bool infinities;  // all-ones exponent: infinity and NaN as in IEEE 754
};

PTXBENCH_JUDGE_FN FloatFormat float_format(u32 type) {
  switch (type) {
    case kFloat64:
      return {52, 11, 1023, 0x7fefffffffffffffull, true};
    case kFloat16:
      return {10, 5, 15, 0x7bff, true};
    case kBfloat16:
      return {7, 8, 127, 0x7f7f, true};
    case kFloat8E4m3:
      return {3, 4, 7, 0x7e, false};
    case kFloat8E5m2:
      return {2, 5, 15, 0x7b, true};
    case kFloat4E2m1:
      return {1, 2, 1, 0x7, false};
    default:
      return {23, 8, 127, 0x7f7fffff, true};
  }
}

PTXBENCH_JUDGE_FN bool type_is_float(u32 type) {
  return type <= kFloat4E2m1 || type == kFloat64 || type == kTfloat32;
}

PTXBENCH_JUDGE_FN i32 top_bit(u64 v) {  // of v != 0
  i32 p = 0;
  if (v >> 32) {
    v >>= 32;
    p += 32;
  }
  if (v >> 16) {
    v >>= 16;
    p += 16;
  }
  if (v >> 8) {
    v >>= 8;
    p += 8;
  }
  if (v >> 4) {
    v >>= 4;
    p += 4;
  }
  if (v >> 2) {
    v >>= 2;
    p += 2;
  }
  if (v >> 1) p += 1;
  return p;
}

// v / 2^shift, to nearest, ties to even.
PTXBENCH_JUDGE_FN u64 round_shift(u64 v, i32 shift) {
  if (shift <= 0) return v << -shift;
  if (shift > 63) return 0;
  const u64 kept = v >> shift, rest = v & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  return kept + ((rest > half || (rest == half && (kept & 1))) ? 1 : 0);
}

// The code of sign * magnitude * 2^scale in a float format: to nearest even, subnormals kept, saturating.
PTXBENCH_JUDGE_FN u64 encode_float(u32 type, bool negative, u64 magnitude, i32 scale) {
  const FloatFormat f = float_format(type);
  const u64 sign = negative ? 1ull << (f.mantissa + f.exponent) : 0;
  if (magnitude == 0) return 0;
  const i32 top = top_bit(magnitude), exponent = top + scale;
  u64 code;
  if (exponent < 1 - f.bias) {
    code = round_shift(magnitude, (1 - f.bias - static_cast<i32>(f.mantissa)) - scale);
  } else {
    const u64 q = round_shift(magnitude, top - static_cast<i32>(f.mantissa));
    code = (static_cast<u64>(exponent + f.bias) << f.mantissa) + (q - (1ull << f.mantissa));
  }
  if (code > f.max_code) code = f.max_code;
  return sign | code;
}

// A fixed-point value (n * 2^-16) as an element. Integer types take it times 2^3 (`integers`: as it is),
// saturated; unsigned ones its magnitude; bool whether it is positive.
PTXBENCH_JUDGE_FN u64 encode_fixed(u32 type, i32 n, bool integers) {
  const bool negative = n < 0;
  const u64 magnitude = static_cast<u64>(negative ? -static_cast<i64>(n) : static_cast<i64>(n));
  if (type_is_float(type)) return encode_float(type, negative, magnitude, -16);
  if (type == kBool) return n > 0 ? 1 : 0;
  const bool is_unsigned = type >= kUint64 && type <= kUint8;
  const u32 bits = type_bits(type);
  u64 m = round_shift(magnitude, integers ? 16 : 13);
  const u64 most = bits == 64 ? ~0ull >> 1 : (1ull << (bits - 1)) - 1;
  if (m > most) m = most;
  const u64 mask = bits == 64 ? ~0ull : (1ull << bits) - 1;
  return (negative && !is_unsigned ? 0 - m : m) & mask;
}

PTXBENCH_JUDGE_FN double double_of_bits(u64 bits) {
#ifdef __CUDACC__
  return __longlong_as_double(static_cast<i64>(bits));
#else
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
#endif
}
PTXBENCH_JUDGE_FN float float_of_bits(u32 bits) {
#ifdef __CUDACC__
  return __uint_as_float(bits);
#else
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
#endif
}
PTXBENCH_JUDGE_FN u32 bits_of_float(float value) {
#ifdef __CUDACC__
  return __float_as_uint(value);
#else
  u32 bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
#endif
}

// An element as a double; exact but for 64-bit integers beyond 2^53.
PTXBENCH_JUDGE_FN double decode(u32 type, u64 code) {
  switch (type) {
    case kFloat64:
      return double_of_bits(code);
    case kFloat32:
    case kTfloat32:
      return static_cast<double>(float_of_bits(static_cast<u32>(code)));
    case kBfloat16:
      return static_cast<double>(float_of_bits(static_cast<u32>(code) << 16));
    case kInt64:
      return static_cast<double>(static_cast<i64>(code));
    case kInt32:
      return static_cast<double>(static_cast<i32>(static_cast<u32>(code)));
    case kInt16:
      return static_cast<double>(static_cast<short>(static_cast<u16>(code)));
    case kInt8:
      return static_cast<double>(static_cast<signed char>(static_cast<u8>(code)));
    case kBool:
    case kUint64:
    case kUint32:
    case kUint16:
    case kUint8:
      return static_cast<double>(code);
    default:
      break;
  }
  const FloatFormat f = float_format(type);
  const u64 magnitude = code & ((1ull << (f.mantissa + f.exponent)) - 1);
  const u64 sign = (code >> (f.mantissa + f.exponent)) & 1;
  const u64 exponent = magnitude >> f.mantissa, fraction = magnitude & ((1ull << f.mantissa) - 1);
  if (magnitude > f.max_code) {
    const bool infinite = f.infinities && fraction == 0;
    return double_of_bits((sign << 63) | 0x7ff0000000000000ull | (infinite ? 0 : 1ull << 51));
  }
  if (exponent == 0) {
    const double quantum =
        double_of_bits(static_cast<u64>(1 - f.bias - static_cast<i32>(f.mantissa) + 1023) << 52);
    const double value = static_cast<double>(fraction) * quantum;
    return sign ? -value : value;
  }
  return double_of_bits((sign << 63) | (static_cast<u64>(static_cast<i64>(exponent) - f.bias + 1023) << 52) |
                        (fraction << (52 - f.mantissa)));
}

// A float rounded to bfloat16 or float16 (to nearest even, overflow to infinity) or left as it is.
PTXBENCH_JUDGE_FN u64 encode_from_float(u32 type, float value) {
  const u32 bits = bits_of_float(value), magnitude = bits & 0x7fffffff;
  if (type == kBfloat16) {
    if (magnitude > 0x7f800000) return (bits >> 16) | 0x40;
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  }
  if (type == kFloat16) {
    const u32 sign = (bits >> 16) & 0x8000;
    if (magnitude > 0x7f800000) return sign | 0x7e00;
    if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and beyond round to infinity
    const u32 exponent = magnitude >> 23;
    const u64 significand = exponent ? (magnitude & 0x7fffff) | 0x800000 : magnitude;
    const i32 scale = static_cast<i32>(exponent ? exponent : 1) - 127 - 23;
    return sign | (encode_float(kFloat16, false, significand, scale) & 0x7fff);
  }
  return bits;
}

// One element of a packed array.
PTXBENCH_JUDGE_FN u64 load_element(const void* base, u32 type, u64 index) {
  switch (type_bits(type)) {
    case 64:
      return static_cast<const u64*>(base)[index];
    case 32:
      return static_cast<const u32*>(base)[index];
    case 16:
      return static_cast<const u16*>(base)[index];
    case 4:
      return (static_cast<const u8*>(base)[index >> 1] >> ((index & 1) * 4)) & 15;
    default:
      return static_cast<const u8*>(base)[index];
  }
}

}  // namespace ptxbench::judge
