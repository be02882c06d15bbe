// What the judge's kernels are passed, and the arithmetic that the GPU's and the CPU's form of it share.
// Every kernel takes one of the `...Args` by value, so that its parameter buffer is the struct.
#pragma once

#include "random.h"

namespace ptxbench::judge {

struct DrawArgs {
  DrawSpec spec;
  u64 at;      // where the tensor is
  u64 result;  // Mismatch: only checking
};

// How many places differ, and the first one.
struct Mismatch {
  u64 count;
  u64 first;  // ~0 where none
};

struct CompareArgs {
  u64 a, b, bytes, result;
};

// Two sums over the words of some memory, each word mixed with its place: equal where the memory is equal, and by chance with a
// probability of about 2^-128 where it is not, for who does not know the key.
struct Digest {
  u64 low, high;
};
struct DigestArgs {
  u64 at, bytes, key, result;  // Digest
};
PTXBENCH_JUDGE_FN u64 mixed(u64 x) {  // the finaliser of splitmix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
PTXBENCH_JUDGE_FN void add_word(Digest& digest, u64 key, u64 place, u64 word) {
  const u64 salt = mixed(key + place * 0x9e3779b97f4a7c15ull);
  digest.low += mixed(word ^ salt);
  digest.high += mixed(word + mixed(salt ^ 0xd1b54a32d192ed03ull));
}
// The bytes behind the last whole word, as a word of their own.
PTXBENCH_JUDGE_FN u64 last_word(const u8* at, u64 bytes) {
  u64 word = 0;
  for (u64 i = bytes / 8 * 8; i < bytes; ++i) word |= static_cast<u64>(at[i]) << (8 * (i % 8));
  return word;
}

struct PoisonArgs {
  u64 at, elements, result;  // Mismatch: elements that are all poison
  u32 element_bytes, byte;
};

// C[m,n] = sum over k of A[m,k] * B[n,k], all row-major.
struct GemmArgs {
  u64 a, b, out;
  u32 m, n, k;
  u32 out_type;  // of the model's output; the reference's is float64
};

// Rows of `width` elements, some of each group (of an attention's [head, row, d]: some rows of each head). Row i of group g
// is row `list[g * rows_of_group + i]` of it.
struct Sample {
  u64 list;  // u32; 0: all there are
  u32 rows_of_group, group, width, unused;
};

// Where element i of a sample lies in the whole.
PTXBENCH_JUDGE_FN u64 sampled_element(const Sample& sample, u64 i) {
  if (sample.list == 0) return i;
  const u64 row = i / sample.width;
  return (row / sample.rows_of_group * sample.group + reinterpret_cast<const u32*>(sample.list)[row]) * sample.width +
         i % sample.width;
}

struct StatisticsArgs {
  u64 got, reference, model;  // model 0: none (its type is got's)
  u64 elements, partials;     // one Partial a block
  Sample sample;              // of got and reference: the model has these elements only
  u32 got_type, reference_type;
};

struct Partial {
  u64 elements, nonfinite_wrong;
  double sum_squared_error, max_absolute_error, max_relative_error;
  double sum_got_times_reference, sum_squared_reference, sum_fourth_reference, largest_reference;
  double model_sum_squared_error, model_max_error, model_times_reference;
};

struct WrongArgs {
  u64 got, reference, elements, result;
  double atol, rtol;  // wrong: |got - reference| > atol + rtol * |reference|
  u32 got_type, reference_type;
};

// Wrong elements by tile of a matrix: one counter (u32) a tile, row-major.
struct WrongTilesArgs {
  WrongArgs wrong;  // result: the counters
  u64 columns, tile_rows, tile_columns, grid_columns;
};

// A neighbour that takes room on the SMs for up to `nanoseconds`.
struct NeighbourArgs {
  u64 seed, nanoseconds;
};

struct FlushArgs {
  u64 at, words, sink;  // words of 16 bytes
  u32 tag, unused;
};

constexpr u32 kStatisticsBlocks = 1056;  // a fixed number, so that sums do not depend on the device

PTXBENCH_JUDGE_FN bool is_nan(double v) { return v != v; }
PTXBENCH_JUDGE_FN bool is_finite(double v) { return v - v == 0; }
PTXBENCH_JUDGE_FN double magnitude_of(double v) { return v < 0 ? -v : v; }

// Whether `got` may stand for `reference` where either is not finite. NaN where NaN is due, the same
// infinity, and an infinity of `type` where the reference is past its largest finite value.
PTXBENCH_JUDGE_FN bool nonfinite_right(double got, double reference, double largest) {
  if (is_nan(reference)) return is_nan(got);
  if (is_nan(got)) return false;
  if (got == reference) return true;
  return !is_finite(got) && magnitude_of(reference) >= largest && (got > 0) == (reference > 0);
}

PTXBENCH_JUDGE_FN double largest_finite(u32 type) {
  return type_is_float(type) ? decode(type, float_format(type).max_code) : 1.7e308;
}

PTXBENCH_JUDGE_FN void add_element(Partial& p, double got, double reference, bool has_model, double model,
                                   double largest) {
  p.elements += 1;
  if (!is_finite(got) || !is_finite(reference)) {
    if (!nonfinite_right(got, reference, largest)) p.nonfinite_wrong += 1;
    return;
  }
  const double error = magnitude_of(got - reference), size = magnitude_of(reference);
  p.sum_squared_error += error * error;
  if (size > p.largest_reference) p.largest_reference = size;
  if (error > p.max_absolute_error) p.max_absolute_error = error;
  if (size > 0 && error > p.max_relative_error * size) p.max_relative_error = error / size;
  p.sum_got_times_reference += got * reference;
  p.sum_squared_reference += reference * reference;
  p.sum_fourth_reference += reference * reference * reference * reference;
  if (has_model && is_finite(model)) {
    const double off = magnitude_of(model - reference);
    p.model_sum_squared_error += off * off;
    p.model_times_reference += model * reference;
    if (off > p.model_max_error) p.model_max_error = off;
  }
}

PTXBENCH_JUDGE_FN void merge(Partial& into, const Partial& p) {
  into.elements += p.elements;
  into.nonfinite_wrong += p.nonfinite_wrong;
  into.sum_squared_error += p.sum_squared_error;
  if (p.max_absolute_error > into.max_absolute_error) into.max_absolute_error = p.max_absolute_error;
  if (p.largest_reference > into.largest_reference) into.largest_reference = p.largest_reference;
  if (p.max_relative_error > into.max_relative_error) into.max_relative_error = p.max_relative_error;
  into.sum_got_times_reference += p.sum_got_times_reference;
  into.sum_squared_reference += p.sum_squared_reference;
  into.sum_fourth_reference += p.sum_fourth_reference;
  into.model_sum_squared_error += p.model_sum_squared_error;
  into.model_times_reference += p.model_times_reference;
  if (p.model_max_error > into.model_max_error) into.model_max_error = p.model_max_error;
}

// A negative rtol is another rule: wrong only beyond atol and beyond -rtol * (|reference| + 1e-8).
PTXBENCH_JUDGE_FN bool element_wrong(double got, double reference, double atol, double rtol, double largest) {
  if (!is_finite(got) || !is_finite(reference)) return !nonfinite_right(got, reference, largest);
  const double error = magnitude_of(got - reference), size = magnitude_of(reference);
  if (rtol < 0) return error > atol && error > -rtol * (size + 1e-8);
  return error > atol + rtol * size;
}

}  // namespace ptxbench::judge
