// A tensor map as the emulator keeps it: in the 128 bytes of a CUtensorMap, in a layout of our own, so that a
// kernel can copy it and `tensormap.replace` can change its fields.
#pragma once

#include "emulator/memory.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace ptxbench::emulator {

struct TensorMap {
  std::uint64_t address = 0;
  std::uint8_t rank = 0, data_type = 0 /* CUtensorMapDataType */, interleave = 0, swizzle = 0, oob_fill = 0,
               l2_promotion = 0;
  std::array<std::uint64_t, 5> dims{};     // innermost first
  std::array<std::uint64_t, 4> strides{};  // bytes, of dimensions 1 up
  std::array<std::uint32_t, 5> box{}, element_strides{};
};

std::array<std::uint8_t, 128> encode(const TensorMap& map);
// Nothing where the bytes are no map of ours (a magic number and a sum say so).
std::optional<TensorMap> decode_tensor_map(const std::uint8_t* bytes);
unsigned element_bits(std::uint8_t data_type);

}  // namespace ptxbench::emulator
