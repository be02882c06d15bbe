// Damaged and hostile files: an error or a result whose every offset is inside the file, never a crash.
#include "sass/fixtures.hpp"
#include "support/catch.hpp"

#include <ptxbench/sass.hpp>

#include <cstring>
#include <random>

using namespace ptxbench;

namespace {

// Reads @p bytes from an exact-size allocation, so that a sanitizer sees a read past the end. True if it was
// read.
bool survives(std::span<const std::uint8_t> bytes) {
  const std::vector<std::uint8_t> exact(bytes.begin(), bytes.end());
  const auto cubin = sass::read_cubin(exact);
  if (!cubin) {
    CHECK(!cubin.error().message.empty());
    CHECK(cubin.error().code == ErrorCode::parse);
    return false;
  }
  for (const auto& kernel : cubin->kernels) {
    if (kernel.code_offset + kernel.code_bytes > exact.size()) FAIL("code outside the file");
    for (const auto& parameter : kernel.parameters)
      if (parameter.offset + parameter.size > kernel.parameter_bytes) FAIL("parameter outside the buffer");
    const auto entries = sass::census(exact, *cubin, kernel);
    if (!entries) FAIL(entries.error().message);
    std::uint64_t total = 0;
    for (const auto& entry : *entries) total += entry.instructions;
    if (total != kernel.code_bytes / 16) FAIL("the census does not add up");
  }
  for (const auto& global : cubin->globals)
    if (global.initialised && global.image_offset + global.bytes > exact.size())
      FAIL("image outside the file");
  return true;
}

std::string message_of(std::span<const std::uint8_t> bytes) {
  const auto cubin = sass::read_cubin(bytes);
  return cubin ? "" : cubin.error().message;
}

}  // namespace

TEST_CASE("A cubin cut off at any byte is an error or harmless") {
  for (const std::string name : {"heap.sm_90a", "heap.sm_100a"}) {
    const auto bytes = cubin_fixture(name);
    REQUIRE(survives(bytes));
    for (std::size_t n = 0; n < bytes.size(); ++n) survives(std::span(bytes).first(n));
  }
}

TEST_CASE("A cubin with changed bytes is an error or harmless") {
  std::mt19937_64 random(1);
  for (const auto& path : all_cubin_fixtures()) {
    INFO(path.filename().string());
    const auto original = read_bytes(path);
    for (int round = 0; round < 150; ++round) {
      auto bytes = original;
      const int changes = 1 + static_cast<int>(random() % 8);
      for (int i = 0; i < changes; ++i) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
      survives(bytes);
      // Half of the changes in the headers, where they matter most.
      bytes = original;
      std::uint64_t headers;
      std::memcpy(&headers, bytes.data() + 40, 8);
      REQUIRE(headers < bytes.size());
      for (int i = 0; i < changes; ++i)
        bytes[headers + random() % (bytes.size() - headers)] ^=
            static_cast<std::uint8_t>(1u << (random() % 8));
      survives(bytes);
    }
  }
}

TEST_CASE("What is wrong is said") {
  auto bytes = cubin_fixture("heap.sm_90a");
  CHECK(message_of({}) == "cubin: not an ELF file (it does not begin with 7f 45 4c 46)");
  CHECK(message_of(std::span(bytes).first(20)) ==
        "cubin: the file ends inside the ELF header (20 of 64 bytes)");
  CHECK(message_of(std::span(bytes).first(100)).find("outside the file of 100 bytes") != std::string::npos);
  const std::vector<std::uint8_t> fat = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0};
  CHECK(message_of(fat).find("fat binary") != std::string::npos);

  auto other = bytes;
  other[18] = 62;
  CHECK(message_of(other) == "cubin: the ELF file is for machine 62, not for CUDA (190)");
  other = bytes;
  other[4] = 1;
  CHECK(message_of(other) == "cubin: not a 64-bit ELF file");
  other = bytes;
  other[7] = 3;
  CHECK(message_of(other).find("unknown ELF ABI 3") != std::string::npos);
}

TEST_CASE("A census of a kernel that is not in the file is an error") {
  const auto bytes = cubin_fixture("heap.sm_90a");
  const auto cubin = sass::read_cubin(bytes);
  REQUIRE(cubin);
  auto kernel = cubin->kernels.at(0);
  kernel.code_offset = bytes.size() - 16;
  kernel.code_bytes = 32;
  CHECK(!sass::census(bytes, *cubin, kernel));
  kernel.code_offset = ~std::uint64_t{0};
  kernel.code_bytes = 16;
  CHECK(!sass::census(bytes, *cubin, kernel));
}
