#include "emulator/wgmma_descriptor.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <random>
#include <vector>

using namespace ptxbench::emulator;

namespace {

std::uint64_t encode(std::uint32_t start, std::uint32_t leading, std::uint32_t stride, Swizzle swizzle,
                     std::uint32_t base_offset = 0) {
  const auto field = [](std::uint32_t x) { return std::uint64_t{(x & 0x3ffff) >> 4}; };
  return field(start) | field(leading) << 16 | field(stride) << 32 | std::uint64_t{base_offset} << 49 |
         static_cast<std::uint64_t>(swizzle) << 62;
}

// Where TMA puts byte `x` of row `y` of a box that is one span wide, at `base`.
std::uint32_t tma_address(std::uint32_t base, Swizzle swizzle, std::uint32_t y, std::uint32_t x) {
  const auto span = static_cast<std::uint32_t>(swizzle_span(swizzle));
  const std::uint32_t address = base + y * span + x;
  switch (swizzle) {
    case Swizzle::bytes_128:
      return address ^ (address >> 3 & 0x70);
    case Swizzle::bytes_64:
      return address ^ (address >> 3 & 0x30);
    case Swizzle::bytes_32:
      return address ^ (address >> 3 & 0x10);
    default:
      return address;
  }
}

constexpr Swizzle kSwizzles[] = {Swizzle::bytes_128, Swizzle::bytes_64, Swizzle::bytes_32};

}  // namespace

TEST_CASE("wgmma descriptor: the fields") {
  const WgmmaDescriptor d = decode_descriptor(encode(0x12340, 256, 1024, Swizzle::bytes_128, 5));
  CHECK(d.start == 0x12340);
  CHECK(d.leading_bytes == 256);
  CHECK(d.stride_bytes == 1024);
  CHECK(d.base_offset == 5);
  CHECK(d.swizzle == Swizzle::bytes_128);
  CHECK(decode_descriptor(encode(0, 0, 0, Swizzle::bytes_64)).swizzle == Swizzle::bytes_64);
  CHECK(decode_descriptor(encode(0, 0, 0, Swizzle::bytes_32)).swizzle == Swizzle::bytes_32);
  // As the Hopper pack's wgmma_descriptor makes it.
  const std::uint64_t address = (0x8400 & 0x3FFFF) >> 4;
  const WgmmaDescriptor pack = decode_descriptor(address | (std::uint64_t{1} << 16) |
                                                 (std::uint64_t{1024 >> 4} << 32) | (std::uint64_t{1} << 62));
  CHECK(pack.start == 0x8400);
  CHECK(pack.stride_bytes == 1024);
  CHECK(pack.swizzle == Swizzle::bytes_128);
}

TEST_CASE("wgmma descriptor: what is wrong") {
  CHECK_FALSE(check_descriptor(encode(0x400, 16, 1024, Swizzle::bytes_128)));
  CHECK_FALSE(check_descriptor(encode(0x400, 16, 1024, Swizzle::bytes_128, 3)));
  for (const int bit : {14, 15, 30, 31, 46, 47, 48, 52, 57, 61}) {
    const auto problem =
        check_descriptor(encode(0x400, 16, 1024, Swizzle::bytes_128) | std::uint64_t{1} << bit);
    REQUIRE(problem);
    CHECK(problem->find("bit " + std::to_string(bit)) == 0);
  }
  CHECK(check_descriptor(encode(0x400, 128, 256, Swizzle::none, 1)));
}

TEST_CASE("wgmma descriptor: K-major tiles as TMA writes them") {
  // A box of one span in k and 64 rows; each step in k adds 32 bytes to the start.
  for (const Swizzle swizzle : kSwizzles) {
    const auto span = static_cast<std::uint32_t>(swizzle_span(swizzle));
    for (std::uint32_t step = 0; step < span / 32; ++step)
      for (const int bytes : {1, 2, 4}) {
        const WgmmaDescriptor d = decode_descriptor(encode(0x2400 + 32 * step, 16, 8 * span, swizzle));
        for (int row = 0; row < 64; ++row)
          for (int k = 0; k < 32 / bytes; ++k)
            REQUIRE(element_address(d, false, bytes, row, k) ==
                    tma_address(0x2400, swizzle, static_cast<std::uint32_t>(row),
                                32 * step + static_cast<std::uint32_t>(k * bytes)));
      }
  }
}

TEST_CASE("wgmma descriptor: MN-major tiles as TMA writes them") {
  // A tensor with m contiguous: boxes of one span in m and 16 rows of k, side by side in m.
  for (const Swizzle swizzle : kSwizzles) {
    const auto span = static_cast<std::uint32_t>(swizzle_span(swizzle));
    const std::uint32_t box = 16 * span;
    const WgmmaDescriptor d = decode_descriptor(encode(0x4000, box, 8 * span, swizzle));
    const int per_box = static_cast<int>(span) / 2;
    for (int m = 0; m < 128; ++m)
      for (int k = 0; k < 16; ++k)
        REQUIRE(element_address(d, true, 2, m, k) ==
                tma_address(0x4000 + box * static_cast<std::uint32_t>(m / per_box), swizzle,
                            static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(m % per_box * 2)));
  }
}

TEST_CASE("wgmma descriptor: core matrices without a swizzle") {
  const WgmmaDescriptor k_major = decode_descriptor(encode(0x1000, 128, 256, Swizzle::none));
  CHECK(element_address(k_major, false, 2, 0, 0) == 0x1000);
  CHECK(element_address(k_major, false, 2, 3, 5) == 0x1000 + 3 * 16 + 10);
  CHECK(element_address(k_major, false, 2, 3, 8) == 0x1000 + 3 * 16 + 128);
  CHECK(element_address(k_major, false, 2, 9, 8) == 0x1000 + 256 + 16 + 128);
  CHECK(element_address(k_major, false, 1, 9, 17) == 0x1000 + 256 + 16 + 128 + 1);
  const WgmmaDescriptor mn_major = decode_descriptor(encode(0x1000, 2048, 128, Swizzle::none));
  CHECK(element_address(mn_major, true, 2, 3, 0) == 0x1000 + 6);
  CHECK(element_address(mn_major, true, 2, 3, 5) == 0x1000 + 6 + 80);
  CHECK(element_address(mn_major, true, 2, 8, 0) == 0x1000 + 128);
  CHECK(element_address(mn_major, true, 2, 8, 8) == 0x1000 + 128 + 2048);
}

TEST_CASE("wgmma descriptor: a base offset moves the pattern") {
  // The pattern starts 128 * 3 bytes past a boundary of 1024.
  const WgmmaDescriptor d = decode_descriptor(encode(0x2580, 16, 1024, Swizzle::bytes_128, 3));
  CHECK(element_address(d, false, 2, 0, 0) == 0x2580);
  CHECK(element_address(d, false, 2, 1, 0) == (0x2600U ^ 0x10U));
  CHECK(element_address(d, false, 2, 5, 0) == (0x2800U ^ 0x50U));
}

TEST_CASE("wgmma descriptor: a gathered operand is what element_address says") {
  std::vector<std::uint8_t> memory(1 << 18);
  std::mt19937 random(1);
  for (auto& byte : memory) byte = static_cast<std::uint8_t>(random());
  for (int round = 0; round < 100; ++round) {
    const bool mn_major = round % 2 == 1;
    const WgmmaDescriptor d =
        decode_descriptor(encode(random() & 0x3fff0, random() & 0x3fff0, random() & 0x3fff0,
                                 static_cast<Swizzle>(random() % 4), random() % 8));
    const int rows = 8 * (1 + static_cast<int>(random() % 32));
    std::vector<std::uint8_t> packed(static_cast<std::size_t>(rows) * 32);
    std::vector<std::uint32_t> chunks(static_cast<std::size_t>(rows) * 2);
    chunk_addresses(d, mn_major, rows, chunks.data());
    pack_chunks(mn_major, rows, chunks.data(), memory.data(), packed.data());
    int wrong = 0;
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < 16; ++k) {
        const std::uint32_t address = element_address(d, mn_major, 2, row, k);
        bool covered = false;
        for (int i = 0; i < 2 * rows; ++i) {
          const RowRange range = rows_of_chunk(mn_major, i);
          covered = covered || (chunks[static_cast<std::size_t>(i)] == (address & ~15U) &&
                                row >= range.first && row < range.first + range.count);
        }
        wrong += !covered;
        wrong += !std::equal(packed.begin() + row * 32 + k * 2, packed.begin() + row * 32 + k * 2 + 2,
                             memory.begin() + address);
      }
    CHECK(wrong == 0);
  }
}
