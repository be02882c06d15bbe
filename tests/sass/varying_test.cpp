// Which instructions vary from run to run: of the probes' loops that wait (tests/fixtures/probes/spins.cu,
// pipeline.cu).
#include "sass/control_flow.hpp"
#include "sass/elf.hpp"
#include "sass/fixtures.hpp"
#include "support/catch.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>
#include <map>
#include <set>

using namespace ptxbench;

namespace {

struct Tally {
  int all = 0, varying = 0;
};
using Tallies = std::map<std::string, Tally>;  // by mnemonic

const sass::Kernel& kernel_of(const sass::Cubin& cubin, const std::string& symbol) {
  for (const sass::Kernel& kernel : cubin.kernels)
    if (kernel.symbol == symbol) return kernel;
  FAIL("no kernel " << symbol);
  return cubin.kernels[0];
}

Tallies tallies(const std::string& fixture, const std::string& symbol) {
  const auto file = cubin_fixture(fixture);
  const auto cubin = sass::read_cubin(file);
  REQUIRE(cubin);
  const sass::Kernel& kernel = kernel_of(*cubin, symbol);
  const auto varying = sass::varying_instructions(file, *cubin, kernel);
  REQUIRE(varying);
  CHECK(std::is_sorted(varying->begin(), varying->end()));
  const std::set<std::uint32_t> offsets(varying->begin(), varying->end());
  CHECK(offsets.size() == varying->size());
  Tallies found;
  for (std::uint32_t at = 0; at < kernel.code_bytes; at += 16) {
    const sass::Word word{sass::elf::read64(file, kernel.code_offset + at),
                          sass::elf::read64(file, kernel.code_offset + at + 8)};
    Tally& tally = found[sass::decode(cubin->sm, word).mnemonic];
    ++tally.all;
    tally.varying += static_cast<int>(offsets.count(at));
  }
  return found;
}

int varying(const Tallies& tallies) {
  int sum = 0;
  for (const auto& [name, tally] : tallies) sum += tally.varying;
  return sum;
}

}  // namespace

TEST_CASE("varying: a wait in a main loop varies, the loop around it does not") {
  for (const std::string arch : {"sm_90a", "sm_100a"})
    for (const std::string kernel :
         {"k_wait", "k_wait_sleep", "k_flag", "k_acquire", "k_shared_flag", "k_clock", "k_watchdog"}) {
      INFO(arch << " " << kernel);
      const Tallies found = tallies("spins." + arch, kernel);
      CHECK(varying(found) > 0);
      CHECK(found.at("BRA").varying > 0);
      CHECK(found.at("HMMA").all > 0);
      CHECK(found.at("HMMA").varying == 0);
      CHECK(found.at("EXIT").varying == 0);
      CHECK(found.at("STG").varying == 0);
    }
}

TEST_CASE("varying: it is what waits that varies") {
  for (const std::string arch : {"sm_90a", "sm_100a"}) {
    INFO(arch);
    CHECK(tallies("spins." + arch, "k_wait").at("SYNCS").varying == 1);
    // The first try is in the main loop, the others are not.
    const Tallies sleeps = tallies("spins." + arch, "k_wait_sleep");
    CHECK(sleeps.at("SYNCS").all == 2);
    CHECK(sleeps.at("SYNCS").varying == 1);
    CHECK(sleeps.at("NANOSLEEP").varying == sleeps.at("NANOSLEEP").all);
    CHECK(tallies("spins." + arch, "k_flag").at("LDG").varying == 1);
    CHECK(tallies("spins." + arch, "k_acquire").at("LDG").varying == 1);
    CHECK(tallies("spins." + arch, "k_shared_flag").at("LDS").varying == 1);
    CHECK(tallies("spins." + arch, "k_clock").at("NANOSLEEP").varying == 1);
    CHECK(tallies("async." + arch, "k_setmaxnreg").at("USETMAXREG").varying ==
          1);  // asks again until it gets them
  }
}

TEST_CASE("varying: what timing decides is followed through counts, atomics and shared memory") {
  for (const std::string arch : {"sm_90a", "sm_100a"}) {
    INFO(arch);
    CHECK(tallies("spins." + arch, "k_counted").at("HMMA").varying == 1);
    const Tallies tickets = tallies("spins." + arch, "k_tickets");
    CHECK(tickets.at("HMMA").varying == tickets.at("HMMA").all);
    CHECK(tickets.at("EXIT").varying == 0);
  }
}

TEST_CASE("varying: loops that do not wait do not vary") {
  for (const std::string arch : {"sm_90a", "sm_100a"})
    for (const std::string kernel : {"k_plain", "k_elected"}) {
      INFO(arch << " " << kernel);
      CHECK(varying(tallies("spins." + arch, kernel)) == 0);
    }
  for (const auto& path :
       {std::string("wgmma.sm_90a"), std::string("module.sm_90a"), std::string("module.sm_100a")}) {
    const auto file = cubin_fixture(path);
    const auto cubin = sass::read_cubin(file);
    REQUIRE(cubin);
    for (const sass::Kernel& kernel : cubin->kernels) {
      INFO(path << " " << kernel.symbol);
      const auto varying = sass::varying_instructions(file, *cubin, kernel);
      REQUIRE(varying);
      if (path[0] == 'w') CHECK(varying->empty());
    }
  }
}

TEST_CASE("varying: a pipeline's copies and multiplications do not vary, its waits do") {
  const Tallies found = tallies("pipeline.sm_90a", "k_pipeline");
  CHECK(found.at("HGMMA").all > 0);
  CHECK(found.at("HGMMA").varying == 0);
  CHECK(found.at("UTMALDG").varying == 0);
  CHECK(found.at("UTMASTG").varying == 0);
  CHECK(found.at("WARPGROUP").varying == 0);
  CHECK(found.at("SYNCS").varying > 0);
  CHECK(found.at("SYNCS").varying < found.at("SYNCS").all);
}

TEST_CASE("varying: a kernel of another file is refused, and no code crashes it") {
  auto file = cubin_fixture("spins.sm_90a");
  const auto cubin = sass::read_cubin(file);
  REQUIRE(cubin);
  sass::Kernel kernel = cubin->kernels[0];
  kernel.code_offset = file.size();
  CHECK(!sass::varying_instructions(file, *cubin, kernel));
  kernel = cubin->kernels[0];
  kernel.code_bytes = 24;
  CHECK(!sass::varying_instructions(file, *cubin, kernel));
  kernel.code_bytes = 0;
  const auto none = sass::varying_instructions(file, *cubin, kernel);
  REQUIRE(none);
  CHECK(none->empty());
  // Branches that go anywhere, operations that nobody knows.
  std::uint64_t state = 1;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint8_t> hostile = file;
    for (const sass::Kernel& k : cubin->kernels)
      for (std::uint64_t i = 0; i < k.code_bytes; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        if ((state >> 33) % 40 == 0) hostile[k.code_offset + i] = static_cast<std::uint8_t>(state >> 50);
      }
    for (const sass::Kernel& k : cubin->kernels) CHECK(sass::varying_instructions(hostile, *cubin, k));
  }
}

TEST_CASE("varying: a jump through a uniform register may go to what nothing else reaches") {
  // BRXU UR16 -0x8d10; NOP; EXIT
  const std::uint64_t words[] = {0xffffff7010bc7958, 0x000fec000b83ffff, 0x0000000000007918, 0x000fc00000000000,
                                 0x000000000000794d, 0x000fea0003800000};
  const auto flow = sass::ControlFlow::build(100, {reinterpret_cast<const std::uint8_t*>(words), sizeof words});
  REQUIRE(flow);
  REQUIRE(flow->blocks().size() == 2);
  CHECK(flow->blocks()[0].last == 0);
  CHECK(flow->blocks()[0].successors == std::vector<std::size_t>{1});
  CHECK(flow->instructions()[0].operands.reads.any());
}
