// A tensor map as the emulator keeps it: in the 128 bytes of a CUtensorMap, in a layout of our own, so that a
// kernel can copy it and `tensormap.replace` can change its fields.
#pragma once

#include "emulator/memory.hpp"

#include <ptxbench/plan.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace ptxbench::emulator {

// CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle
enum : std::uint8_t {
  kMapU8,
  kMapU16,
  kMapU32,
  kMapS32,
  kMapU64,
  kMapS64,
  kMapF16,
  kMapF32,
  kMapF64,
  kMapBF16,
  kMapF32Ftz,
  kMapTF32,
  kMapTF32Ftz
};
enum : std::uint8_t { kInterleaveNone, kInterleave16B, kInterleave32B };
enum : std::uint8_t { kSwizzleNone, kSwizzle32B, kSwizzle64B, kSwizzle128B };

struct TensorMap {
  std::uint64_t address = 0;
  std::uint8_t rank = 0, data_type = 0 /* CUtensorMapDataType */, interleave = 0, swizzle = 0, oob_fill = 0,
               l2_promotion = 0;
  bool im2col = false;  // made by cuTensorMapEncodeIm2col: no copy of this emulator can use it
  std::array<std::uint64_t, 5> dims{};     // innermost first; of dimensions past the rank 1
  std::array<std::uint64_t, 4> strides{};  // bytes, of dimensions 1 up
  std::array<std::uint32_t, 5> box{}, element_strides{};
};

// The map that a plan resolved, of the tensor at @p address.
TensorMap tensor_map_of(const ResolvedTensorMap& map, std::uint64_t address);
std::array<std::uint8_t, 128> encode(const TensorMap& map);
// Nothing where the bytes are no map of ours (a magic number and a sum say so).
std::optional<TensorMap> decode_tensor_map(const std::uint8_t* bytes);
unsigned element_bits(std::uint8_t data_type);
std::string_view element_name(std::uint8_t data_type);  // "bf16"

// The first rule that a map breaks for use by a copy, in words; empty where it is fine. tensormap.replace and
// the kernel's own bytes can break what the driver has checked.
std::string tensor_map_problem(const TensorMap& map);

}  // namespace ptxbench::emulator
