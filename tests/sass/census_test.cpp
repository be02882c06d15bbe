#include "sass/fixtures.hpp"
#include "support/catch.hpp"

#include <ptxbench/sass.hpp>

#include <map>
#include <set>

using namespace ptxbench;

namespace {

using Counts = std::map<std::string, std::uint64_t>;

// Instructions of each kernel of a fixture by family, and of each by opcode.
struct Census {
  std::map<std::string, Counts> families, opcodes;
};

Census census_of(const std::string& name) {
  const auto bytes = cubin_fixture(name);
  const auto cubin = sass::read_cubin(bytes);
  if (!cubin) FAIL(cubin.error().message);
  Census out;
  for (const auto& kernel : cubin->kernels) {
    const auto entries = sass::census(bytes, *cubin, kernel);
    if (!entries) FAIL(entries.error().message);
    std::uint64_t previous = ~std::uint64_t{0}, total = 0;
    for (const auto& entry : *entries) {
      CHECK(entry.instructions <= previous);
      CHECK(entry.instructions > 0);
      previous = entry.instructions;
      total += entry.instructions;
      out.families[kernel.symbol][entry.family] += entry.instructions;
      out.opcodes[kernel.symbol][entry.opcode] += entry.instructions;
      CHECK(entry.opcode.substr(0, 7) != "unknown");
    }
    CHECK(total * 16 == kernel.code_bytes);
  }
  return out;
}

std::uint64_t count(const std::map<std::string, Counts>& by_kernel, const std::string& kernel,
                    const std::string& name) {
  const auto found = by_kernel.find(kernel);
  if (found == by_kernel.end()) FAIL("no kernel " << kernel);
  const auto entry = found->second.find(name);
  return entry == found->second.end() ? 0 : entry->second;
}

}  // namespace

TEST_CASE("Asynchronous instructions are counted in the families that their PTX says") {
  struct Expected {
    const char *kernel, *family;
    std::uint64_t instructions;
  };
  const Expected expected[] = {
      {"k_tma_load", "tma_load", 1},
      {"k_tma_load", "tma_multicast", 0},
      {"k_tma_load_1d", "tma_load", 1},
      {"k_tma_load_5d_hint", "tma_load", 1},
      {"k_tma_load_im2col", "tma_load", 1},
      {"k_tma_multicast", "tma_multicast", 1},
      {"k_tma_multicast", "tma_load", 0},
      {"k_tma_multicast_3d_hint", "tma_multicast", 1},
      {"k_tma_store", "tma_store", 1},
      {"k_tma_store", "tma_control", 1},
      {"k_tma_reduce", "tma_reduce", 2},
      {"k_tma_prefetch", "tma_prefetch", 1},
      {"k_tma_prefetch", "tma_load", 0},
      {"k_bulk_load", "bulk_copy", 2},
      {"k_bulk_store", "bulk_copy", 3},
      {"k_bulk_shared", "bulk_copy", 2},
      {"k_cp_async", "tma_load", 0},
      {"k_distributed_shared", "dsmem", 2},
      {"k_cluster", "cluster_barrier", 4},
      {"k_setmaxnreg", "setmaxnreg", 2},
      {"k_elect", "elect", 1},
      {"k_dependent_launch", "pdl", 2},
      {"k_named_barriers", "cluster_barrier", 0},
  };
  for (const std::string name : {"async.sm_90a", "async.sm_100a"}) {
    const auto census = census_of(name);
    for (const auto& e : expected) {
      INFO(name << " " << e.kernel << " " << e.family);
      CHECK(count(census.families, e.kernel, e.family) == e.instructions);
    }
    INFO(name);
    CHECK(count(census.families, "k_mbarrier", "mbarrier") >= 9);
    CHECK(count(census.families, "k_cp_async", "cp_async") >= 3);
    CHECK(count(census.families, "k_fences", "fence_proxy_async") >= 2);
    CHECK(count(census.families, "k_named_barriers", "barrier") >= 4);
    CHECK(count(census.opcodes, "k_elect", "EXIT") == 1);
  }
}

TEST_CASE("Every wgmma is matrix work of one kind") {
  const auto census = census_of("wgmma.sm_90a");
  const std::map<std::string, std::string> opcode = {
      {"k_bf16_ss", "HGMMA"}, {"k_f16_rs", "HGMMA"},  {"k_tf32_ss", "HGMMA"}, {"k_sparse_bf16", "HGMMA"},
      {"k_e4m3_ss", "QGMMA"}, {"k_e4m3_rs", "QGMMA"}, {"k_s8_ss", "IGMMA"},   {"k_b1_ss", "BGMMA"},
  };
  for (const auto& [kernel, mnemonic] : opcode) {
    INFO(kernel);
    CHECK(count(census.opcodes, kernel, mnemonic) == 1);
  }
  for (const auto& [kernel, counts] : census.families) {
    INFO(kernel);
    CHECK(count(census.families, kernel, "wgmma") == 1);
    CHECK(count(census.families, kernel, "wgmma_sync") >= 2);
    CHECK(count(census.families, kernel, "mma_sync") == 0);
  }
}

TEST_CASE("Tensor memory") {
  const auto census = census_of("tcgen05.sm_100a");
  const std::map<std::string, std::string> opcode = {
      {"k_f16", "UTCHMMA"},     {"k_f16_pair", "UTCHMMA"}, {"k_tf32", "UTCHMMA"}, {"k_f16_tmem", "UTCHMMA"},
      {"k_f8", "UTCQMMA"},      {"k_f8_pair", "UTCQMMA"},  {"k_mxf8", "UTCQMMA"}, {"k_i8", "UTCIMMA"},
      {"k_i8_tmem", "UTCIMMA"}, {"k_mxf4", "UTCOMMA"},     {"k_nvf4", "UTCOMMA"}, {"k_nvf4_pair", "UTCOMMA"},
      {"k_sparse", "UTCHMMA"},
  };
  for (const auto& [kernel, mnemonic] : opcode) {
    INFO(kernel);
    CHECK(count(census.opcodes, kernel, mnemonic) == 1);
    CHECK(count(census.families, kernel, "tcgen05_mma") == 1);
    CHECK(count(census.families, kernel, "wgmma") == 0);
  }
  CHECK(count(census.families, "k_ws", "tcgen05_mma") == 3);
  CHECK(count(census.families, "k_load", "tcgen05_ld") >= 3);
  CHECK(count(census.families, "k_store", "tcgen05_st") == 2);
  CHECK(count(census.families, "k_store", "tcgen05_commit") == 1);
  CHECK(count(census.families, "k_commit", "tcgen05_commit") == 1);
  CHECK(count(census.families, "k_copy", "tcgen05_cp") == 2);
  CHECK(count(census.families, "k_shift", "tcgen05_cp") == 1);
  CHECK(count(census.families, "k_alloc", "tcgen05_alloc") >= 2);
  CHECK(count(census.families, "k_cancel", "cluster_launch") == 2);
  CHECK(count(census.families, "k_packed", "fp32") >= 3);
}
