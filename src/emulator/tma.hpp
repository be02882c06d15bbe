// The tensor memory accelerator's work: boxes of a tensor in global memory, linear (and swizzled) in shared
// memory. PTX ISA 5.5 (Tensors), 9.7.9.27 (tensor copy); checked against an H200.
#pragma once

#include "emulator/tensor_map.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace ptxbench::emulator {

// A box as it lies in shared memory: `rows` runs of `inner_bytes`, `pitch` apart (seen on an H200: with a
// swizzle a row takes its whole span). Of an interleaved tensor (NC/8HWC8, NC/16HWC16) the elements here are
// its slices of 16 or 32 bytes: dimension 0 counts them, the last but one chooses among the slices of a
// pixel's channels, of which a box has one whatever the map says, and rows are dense (all seen on an H200).
struct BoxShape {
  std::array<std::uint32_t, 5> extent{1, 1, 1, 1, 1};  // elements a dimension, after element strides
  std::array<std::uint32_t, 5> step{1, 1, 1, 1, 1};    // of coordinates
  std::uint32_t element_bytes = 0;                     // or of a slice
  std::uint32_t inner_bytes = 0, rows = 0;
  std::uint32_t bytes = 0;                 // what a copy moves and signals
  std::uint32_t pitch = 0, footprint = 0;  // of rows, and of all: a swizzle's span at least
};
BoxShape box_shape(const TensorMap& map);

// Where the byte that belongs at @p offset of the window goes. Moves chunks of 16 bytes inside lines of 128.
inline std::uint32_t swizzled(std::uint8_t mode, std::uint32_t offset) {
  // 32B: bit 4 ^= bit 7; 64B: bits 4-5 ^= bits 7-8; 128B: bits 4-6 ^= bits 7-9.
  const std::uint32_t bits = (1u << mode) - 1;
  return offset ^ (offset >> 3 & bits << 4);
}

using Coordinates = std::array<std::int32_t, 5>;
std::string coordinates_text(const Coordinates& at, unsigned rank);  // "(0, 128)"

// Reductions of cp.reduce.async.bulk and red.async.
enum class ReduceOp : std::uint8_t { add, min, max, inc, dec, and_, or_, xor_ };
enum class ReduceType : std::uint8_t { u32, s32, u64, s64, f16, bf16, f32, f64, f32_ftz };
std::string_view reduce_name(ReduceOp op);
unsigned reduce_bytes(ReduceType type);
// Whether it exists; @p tensor: for tensors, where s64 has only min and max (seen on an H200).
bool reduce_allowed(ReduceOp op, ReduceType type, bool tensor = false);
// to[i] = op(to[i], from[i]); @p bytes is a multiple of the type's. Any alignment.
void reduce(ReduceOp op, ReduceType type, std::uint8_t* to, const std::uint8_t* from, std::uint64_t bytes);

// Copies of one box, all of it, at once. @p window and @p undefined are the CTA's, @p offset the box's place
// in it (the whole box lies inside). False where a fault was raised.
//
// From the tensor into `out` (shape.bytes, not swizzled), what lies outside filled; a bit a byte of @p
// undefined (of at least shape.bytes bits) is set where the tensor's was never written; it stays empty where
// nothing is.
bool gather_box(Agent& agent, const TensorMap& map, const BoxShape& shape, const Coordinates& at,
                std::vector<std::uint8_t>& out, std::vector<std::uint64_t>& undefined);
// From `out` into shared memory, and back.
void box_to_shared(Cta& cta, std::uint32_t offset, const TensorMap& map, const BoxShape& shape,
                   const std::vector<std::uint8_t>& box, const std::vector<std::uint64_t>& undefined);
void box_from_shared(const Cta& cta, std::uint32_t offset, const TensorMap& map, const BoxShape& shape,
                     std::vector<std::uint8_t>& box, std::vector<std::uint64_t>& undefined);
// Into the tensor, what lies outside dropped; `reduction` instead of a store where not null.
struct Reduction {
  ReduceOp op;
  ReduceType type;
};
bool scatter_box(Agent& agent, const TensorMap& map, const BoxShape& shape, const Coordinates& at,
                 const std::vector<std::uint8_t>& box, const std::vector<std::uint64_t>& undefined,
                 const Reduction* reduction);

}  // namespace ptxbench::emulator
