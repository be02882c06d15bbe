#include "emulator/wgmma_descriptor.hpp"

#include <cstring>

namespace ptxbench::emulator {

namespace {

constexpr std::uint32_t kAddressMask = 0x3ffff;
constexpr std::uint64_t kReserved =
    std::uint64_t{3} << 14 | std::uint64_t{3} << 30 | std::uint64_t{7} << 46 | std::uint64_t{0x3ff} << 52;

}  // namespace

WgmmaDescriptor decode_descriptor(std::uint64_t bits) noexcept {
  const auto field = [bits](int at) { return static_cast<std::uint32_t>(bits >> at & 0x3fff) << 4; };
  WgmmaDescriptor d;
  d.start = field(0);
  d.leading_bytes = field(16);
  d.stride_bytes = field(32);
  d.base_offset = static_cast<std::uint32_t>(bits >> 49 & 7);
  d.swizzle = static_cast<Swizzle>(bits >> 62);
  return d;
}

std::optional<std::string> check_descriptor(std::uint64_t bits) {
  if ((bits & kReserved) != 0) {
    const int bit = __builtin_ctzll(bits & kReserved);
    return "bit " + std::to_string(bit) +
           " of the matrix descriptor is set, which no field has (fields are bits 0-13, " +
           "16-29, 32-45, 49-51 and 62-63)";
  }
  const WgmmaDescriptor d = decode_descriptor(bits);
  if (d.swizzle == Swizzle::none && d.base_offset != 0)
    return "the matrix descriptor has base offset " + std::to_string(d.base_offset) + " without a swizzle";
  return std::nullopt;
}

std::uint32_t k_major_chunk(const WgmmaDescriptor& d, int row, int chunk) noexcept {
  const auto r = static_cast<std::uint32_t>(row), c = static_cast<std::uint32_t>(chunk);
  const auto span = static_cast<std::uint32_t>(swizzle_span(d.swizzle));
  const std::uint32_t column = d.swizzle == Swizzle::none ? d.leading_bytes * c : 16 * c;
  return swizzled(d, (d.start + span * (r % 8) + d.stride_bytes * (r / 8) + column) & kAddressMask);
}

std::uint32_t mn_major_chunk(const WgmmaDescriptor& d, int group, int k) noexcept {
  const auto i = static_cast<std::uint32_t>(group), depth = static_cast<std::uint32_t>(k);
  const auto span = static_cast<std::uint32_t>(swizzle_span(d.swizzle)), width = span / 16;
  const std::uint32_t offset = d.swizzle == Swizzle::none
                                   ? d.stride_bytes * i + 16 * (depth % 8) + d.leading_bytes * (depth / 8)
                                   : 16 * (i % width) + d.leading_bytes * (i / width) + span * (depth % 8) +
                                         d.stride_bytes * (depth / 8);
  return swizzled(d, (d.start + offset) & kAddressMask);
}

std::uint32_t element_address(const WgmmaDescriptor& d, bool mn_major, int bytes, int row, int k) noexcept {
  if (mn_major) return mn_major_chunk(d, row / 8, k) + static_cast<std::uint32_t>(row % 8 * bytes);
  const int at = k * bytes;
  return k_major_chunk(d, row, at / 16) + static_cast<std::uint32_t>(at % 16);
}

void chunk_addresses(const WgmmaDescriptor& d, bool mn_major, int rows, std::uint32_t* chunks) noexcept {
  if (mn_major) {
    for (int i = 0; i < rows / 8; ++i)
      for (int k = 0; k < 16; ++k) *chunks++ = mn_major_chunk(d, i, k);
  } else {
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < 2; ++c) *chunks++ = k_major_chunk(d, r, c);
  }
}

void pack_chunks(bool mn_major, int rows, const std::uint32_t* chunks, const std::uint8_t* memory,
                 std::uint8_t* packed) noexcept {
  if (!mn_major) {
    for (int i = 0; i < 2 * rows; ++i) std::memcpy(packed + 16 * i, memory + chunks[i], 16);
    return;
  }
  for (int i = 0; i < rows / 8; ++i) {
    std::uint16_t block[16][8], turned[8][16];
    for (int k = 0; k < 16; ++k) std::memcpy(block[k], memory + chunks[16 * i + k], 16);
    for (int k = 0; k < 16; ++k)
      for (int r = 0; r < 8; ++r) turned[r][k] = block[k][r];
    std::memcpy(packed + static_cast<std::size_t>(256) * static_cast<std::size_t>(i), turned, sizeof turned);
  }
}

}  // namespace ptxbench::emulator
