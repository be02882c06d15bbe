// The table against nvdisasm: tests/fixtures/sass_samples.csv holds encodings with their disassembly.
#include "sass/opcode_table.hpp"

#include "sass/fixtures.hpp"
#include "support/catch.hpp"

#include <ptxbench/sass.hpp>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

using namespace ptxbench;

namespace {

struct Sample {
  int sm;
  std::string opcode, disassembly;
  sass::Word word;
  std::string base() const { return opcode.substr(0, opcode.find('.')); }
};

std::vector<Sample> samples() {
  std::ifstream in(fixtures() / "sass_samples.csv");
  std::string line;
  std::getline(in, line);
  REQUIRE(line == "arch,opcode,low64,high64,disassembly");
  std::vector<Sample> all;
  while (std::getline(in, line)) {
    std::istringstream fields(line);
    std::string arch, opcode, low, high, text;
    std::getline(fields, arch, ',');
    std::getline(fields, opcode, ',');
    std::getline(fields, low, ',');
    std::getline(fields, high, ',');
    std::getline(fields, text);
    all.push_back({std::stoi(arch.substr(3)),
                   opcode,
                   text,
                   {std::stoull(low, nullptr, 16), std::stoull(high, nullptr, 16)}});
  }
  return all;
}

}  // namespace

TEST_CASE("Every sample decodes to the mnemonic that nvdisasm gives it") {
  const auto all = samples();
  REQUIRE(all.size() > 700);
  for (const auto& sample : all) {
    const auto opcode = sass::decode(sample.sm, sample.word);
    INFO("sm_" << sample.sm << " " << sample.disassembly);
    CHECK(opcode.known);
    CHECK(opcode.mnemonic == sample.base());
  }
}

TEST_CASE("Every row of the table has a sample, and a family that is described") {
  std::set<std::string_view> names;
  for (const auto& family : sass::families()) {
    CHECK(names.insert(family.name).second);
    CHECK(!family.description.empty());
  }
  std::set<const sass::OpcodeRow*> seen;
  for (const auto& sample : samples()) seen.insert(sass::find_row(sample.sm, sample.word));
  for (const auto& row : sass::opcode_rows()) {
    INFO(row.first_sm << " " << row.operation << " " << row.mnemonic);
    CHECK(seen.count(&row) == 1);
    CHECK(names.count(row.family) == 1);
    CHECK((row.value_low & ~row.mask_low) == 0);
    CHECK((row.value_high & ~row.mask_high) == 0);
  }
}

TEST_CASE("Instructions that matter are in the family that they should be in") {
  const std::map<std::string, std::string> expected = {
      {"HGMMA", "wgmma"},
      {"QGMMA", "wgmma"},
      {"IGMMA", "wgmma"},
      {"BGMMA", "wgmma"},
      {"HMMA", "mma_sync"},
      {"IMMA", "mma_sync"},
      {"DMMA", "mma_sync"},
      {"HFMA2", "half"},
      {"UTCHMMA", "tcgen05_mma"},
      {"UTCQMMA", "tcgen05_mma"},
      {"UTCIMMA", "tcgen05_mma"},
      {"UTCOMMA", "tcgen05_mma"},
      {"LDTM", "tcgen05_ld"},
      {"STTM", "tcgen05_st"},
      {"UTCCP", "tcgen05_cp"},
      {"UTCBAR", "tcgen05_commit"},
      {"UTMASTG", "tma_store"},
      {"UTMAREDG", "tma_reduce"},
      {"UTMAPF", "tma_prefetch"},
      {"UBLKCP", "bulk_copy"},
      {"SYNCS", "mbarrier"},
      {"UCGABAR_ARV", "cluster_barrier"},
      {"STAS", "dsmem"},
      {"REDAS", "dsmem"},
      {"USETMAXREG", "setmaxnreg"},
      {"ELECT", "elect"},
      {"ACQBULK", "pdl"},
      {"PREEXIT", "pdl"},
      {"LDSM", "ldmatrix"},
      {"STSM", "stmatrix"},
      {"LDGSTS", "cp_async"},
      {"MUFU", "sfu"},
      {"SHFL", "shuffle"},
      {"VOTE", "vote"},
      {"LDG", "global"},
      {"STS", "shared"},
      {"LDL", "local"},
      {"BAR", "barrier"},
      {"FFMA", "fp32"},
      {"DFMA", "fp64"},
      {"IMAD", "int"},
      {"F2FP", "conversion"},
      {"UIADD3", "uniform"},
      {"BRA", "control"},
      {"REDG", "atomics"},
  };
  std::set<std::string> found;
  for (const auto& sample : samples()) {
    const auto wanted = expected.find(sample.base());
    if (wanted == expected.end()) continue;
    found.insert(sample.base());
    CHECK(sass::decode(sample.sm, sample.word).family == wanted->second);
  }
  CHECK(found.size() == expected.size());
  for (const auto& sample : samples())
    if (sample.base() == "UTMALDG")
      CHECK(sass::decode(sample.sm, sample.word).family ==
            (sample.opcode.find(".MULTICAST") == std::string::npos ? "tma_load" : "tma_multicast"));
}

TEST_CASE("The mnemonics of a family depend on the architecture") {
  using Names = std::vector<std::string>;
  CHECK(sass::family_mnemonics(90, "wgmma") == Names{"BGMMA", "HGMMA", "IGMMA", "QGMMA"});
  CHECK(sass::family_mnemonics(100, "wgmma").empty());
  CHECK(sass::family_mnemonics(100, "tcgen05_mma") == Names{"UTCHMMA", "UTCIMMA", "UTCOMMA", "UTCQMMA"});
  CHECK(sass::family_mnemonics(90, "tcgen05_mma").empty());
  CHECK(sass::family_mnemonics(90, "no such family").empty());
}

TEST_CASE("Unknown operations are named, never dropped") {
  const auto opcode = sass::decode(90, {0x00000000000071ff, 0});
  CHECK(opcode.mnemonic == "unknown:0x1ff");
  CHECK(opcode.family == "other");
  CHECK(!opcode.known);
  // An architecture that the table does not have.
  CHECK(!sass::decode(50, {0x0000000000007918, 0}).known);
  CHECK(sass::decode(50, {0x0000000000007918, 0}).mnemonic == "unknown:0x118");
  CHECK(sass::decode(90, {0x0000000000007918, 0}).mnemonic == "NOP");
  // tcgen05.mma is not on Hopper.
  CHECK(sass::decode(100, {0x00ff040a080075ea, 0x00f9d8000b800006}).mnemonic == "UTCHMMA");
  CHECK(sass::decode(90, {0x00ff040a080075ea, 0x00f9d8000b800006}).mnemonic != "UTCHMMA");
}

TEST_CASE("The compiled table is the one in opcodes.csv") {
  std::ifstream in(fixtures() / "../../src/sass/opcodes.csv");
  std::string line;
  std::getline(in, line);
  for (const auto& row : sass::opcode_rows()) {
    REQUIRE(std::getline(in, line));
    std::ostringstream text;
    const auto hex = [](std::uint64_t value) {
      std::ostringstream out;
      out << "0x" << std::hex << value;
      return out.str();
    };
    std::string operation = hex(row.operation).substr(2);
    operation = "0x" + std::string(3 - operation.size(), '0') + operation;
    text << row.first_sm << ',' << row.last_sm << ',' << operation << ',' << hex(row.mask_low) << ','
         << hex(row.value_low) << ',' << hex(row.mask_high) << ',' << hex(row.value_high) << ','
         << row.mnemonic << ',' << row.family;
    CHECK(line == text.str());
  }
  CHECK(!std::getline(in, line));
}
