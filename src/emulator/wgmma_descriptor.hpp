/// @file
/// The 64-bit matrix descriptors of wgmma: what they say, what is wrong with them, and where the elements
/// lie.
///
/// An operand of one wgmma is always 32 bytes deep in K. In shared memory it is made of chunks of 16 bytes:
/// - K-major: a row (of m or n) has two chunks;
/// - MN-major (16-bit types only): eight neighbours in m or n at one k are a chunk.
/// Canonical layouts, in bytes, W = swizzle span / 16 (PTX ISA "Shared Memory Matrix Layout", "Strides"):
/// - K-major, no swizzle: row r, chunk c at 16 (r % 8) + SBO (r / 8) + LBO c
/// - K-major, swizzled:   16 W (r % 8) + SBO (r / 8) + 16 c
/// - MN-major, no swizzle: chunk i, k at SBO i + 16 (k % 8) + LBO (k / 8)
/// - MN-major, swizzled:  16 (i % W) + LBO (i / W) + 16 W (k % 8) + SBO (k / 8)
/// counted from the start address; the swizzle then exclusive-ors bits 4 to 6 of the address (4 to 5, 4) with
/// bits 7 to 9 (7 to 8, 7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace ptxbench::emulator {

enum class Swizzle : std::uint8_t { none = 0, bytes_128 = 1, bytes_64 = 2, bytes_32 = 3 };
/// Bytes of the swizzle's span; 16 without one.
constexpr int swizzle_span(Swizzle swizzle) {
  return swizzle == Swizzle::bytes_128  ? 128
         : swizzle == Swizzle::bytes_64 ? 64
         : swizzle == Swizzle::bytes_32 ? 32
                                        : 16;
}

struct WgmmaDescriptor {
  std::uint32_t start = 0;          ///< shared address, bytes; 18 bits
  std::uint32_t leading_bytes = 0;  ///< LBO
  std::uint32_t stride_bytes = 0;   ///< SBO
  std::uint32_t base_offset = 0;    ///< 0 to 7
  Swizzle swizzle = Swizzle::none;
};
WgmmaDescriptor decode_descriptor(std::uint64_t bits) noexcept;

/// What is wrong with a descriptor: reserved bits, a base offset without a swizzle.
std::optional<std::string> check_descriptor(std::uint64_t bits);

/// The address with the swizzle applied.
constexpr std::uint32_t swizzled(const WgmmaDescriptor& d, std::uint32_t address) {
  const auto mask = static_cast<std::uint32_t>(swizzle_span(d.swizzle) / 16 - 1);
  return address ^ ((((address >> 7) - d.base_offset) & mask) << 4);
}
/// Of chunk @p chunk (0, 1) of row @p row of a K-major operand.
std::uint32_t k_major_chunk(const WgmmaDescriptor& d, int row, int chunk) noexcept;
/// Of the eight elements from 8 * @p group on at depth @p k of an MN-major operand.
std::uint32_t mn_major_chunk(const WgmmaDescriptor& d, int group, int k) noexcept;
/// Of one element of @p bytes.
std::uint32_t element_address(const WgmmaDescriptor& d, bool mn_major, int bytes, int row, int k) noexcept;

/// The 2 * @p rows chunks of an operand, in the order in which pack_chunks takes them.
void chunk_addresses(const WgmmaDescriptor& d, bool mn_major, int rows, std::uint32_t* chunks) noexcept;
/// Copies the chunks to rows of 32 bytes, k ascending. @p memory is the CTA's window from address 0 on.
void pack_chunks(bool mn_major, int rows, const std::uint32_t* chunks, const std::uint8_t* memory,
                 std::uint8_t* packed) noexcept;
/// The rows of the operand that chunk number @p index has a part of: from `first`, `count` of them.
struct RowRange {
  int first = 0, count = 0;
};
constexpr RowRange rows_of_chunk(bool mn_major, int index) {
  return mn_major ? RowRange{index / 16 * 8, 8} : RowRange{index / 2, 1};
}

}  // namespace ptxbench::emulator
