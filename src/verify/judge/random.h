// The judge's random numbers: counter-based (Philox4x32-10), a normal made by integer operations, the same
// bits on every device and CPU. Element i of a tensor depends on (key, i) only.
#pragma once

#include "values.h"

namespace ptxbench::judge {

struct Philox {
  u32 v[4];
};

// J. K. Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3 (SC11).
PTXBENCH_JUDGE_FN Philox philox(u64 key, u32 c0, u32 c1, u32 c2, u32 c3) {
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const u64 p0 = static_cast<u64>(0xD2511F53u) * c0, p1 = static_cast<u64>(0xCD9E8D57u) * c2;
    const u32 n0 = static_cast<u32>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<u32>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<u32>(p1);
    c3 = static_cast<u32>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

enum Distribution : u32 { kGaussian = 0, kSpiky = 1, kIntegers = 2 };

// How a tensor is drawn. A kernel parameter: plain members, the same layout everywhere.
struct DrawSpec {
  u64 key;
  u64 elements;
  u64 columns;                    // innermost dimension
  u32 type;                       // Type
  u32 distribution;               // Distribution
  u32 block_rows, block_columns;  // kIntegers: half of such blocks are zero
};

// Irwin-Hall: the sum of twelve 16-bit uniforms less its mean has variance 2^32 - 1, so n * 2^-16 is normal
// within 0.01 below 3 sigma, and bounded by 6.
PTXBENCH_JUDGE_FN i32 normal_fixed(u64 key, u64 index, u32 stream, u32* spare) {
  const Philox a = philox(key, static_cast<u32>(index), static_cast<u32>(index >> 32), stream, 0);
  const Philox b = philox(key, static_cast<u32>(index), static_cast<u32>(index >> 32), stream, 1);
  i32 sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<i32>(a.v[i] & 0xffff) + static_cast<i32>(a.v[i] >> 16);
  for (int i = 0; i < 2; ++i) sum += static_cast<i32>(b.v[i] & 0xffff) + static_cast<i32>(b.v[i] >> 16);
  *spare = b.v[2];
  return sum - 393210;  // 12 * 65535 / 2
}

// Element @p index as fixed point, n * 2^-16; |n| < 2^23.
PTXBENCH_JUDGE_FN i32 draw_fixed(const DrawSpec& spec, u64 index) {
  if (spec.distribution == kIntegers) {  // -1, 0, 0, 1; whole blocks of zeros, but for the first block
    const u64 row = index / spec.columns, column = index % spec.columns;
    const u64 block_row = row / spec.block_rows, block_column = column / spec.block_columns;
    if (block_row != 0 || block_column != 0) {
      const Philox block = philox(spec.key, static_cast<u32>(block_row), static_cast<u32>(block_row >> 32),
                                  static_cast<u32>(block_column), 0xB10C0000u);
      if (block.v[0] & 1) return 0;
    }
    const Philox r = philox(spec.key, static_cast<u32>(index), static_cast<u32>(index >> 32), 0, 0);
    return r.v[0] & 1 ? 0 : (r.v[0] & 2 ? 65536 : -65536);
  }
  u32 spare;
  i32 n = normal_fixed(spec.key, index, 0, &spare);
  // N(0,1) + N(0,100) * Bernoulli(0.001): the second has a standard deviation of ten.
  if (spec.distribution == kSpiky && spare < 4294967u) n += 10 * normal_fixed(spec.key, index, 1, &spare);
  return n;
}

PTXBENCH_JUDGE_FN u64 draw_element(const DrawSpec& spec, u64 index) {
  return encode_fixed(spec.type, draw_fixed(spec, index), spec.distribution == kIntegers);
}

// The unit that one thread makes: an element, or two where they share a byte.
PTXBENCH_JUDGE_FN u64 draw_units(const DrawSpec& spec) {
  return type_bits(spec.type) == 4 ? (spec.elements + 1) / 2 : spec.elements;
}
PTXBENCH_JUDGE_FN u64 draw_unit(const DrawSpec& spec, u64 unit) {
  if (type_bits(spec.type) != 4) return draw_element(spec, unit);
  const u64 low = draw_element(spec, 2 * unit);
  return low | (2 * unit + 1 < spec.elements ? draw_element(spec, 2 * unit + 1) << 4 : 0);
}

}  // namespace ptxbench::judge
