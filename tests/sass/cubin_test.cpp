#include "sass/fixtures.hpp"
#include "support/catch.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>
#include <array>
#include <cstring>

using namespace ptxbench;

namespace {

sass::Cubin read(const std::string& name) {
  const auto bytes = cubin_fixture(name);
  REQUIRE(!bytes.empty());
  auto cubin = sass::read_cubin(bytes);
  if (!cubin) FAIL(cubin.error().message);
  return std::move(cubin).value();
}

const sass::Kernel& kernel(const sass::Cubin& cubin, const std::string& symbol) {
  for (const auto& k : cubin.kernels)
    if (k.symbol == symbol) return k;
  FAIL("no kernel " << symbol);
  std::abort();
}

const sass::Global* global(const sass::Cubin& cubin, const std::string& symbol) {
  for (const auto& g : cubin.globals)
    if (g.symbol == symbol) return &g;
  return nullptr;
}

using Triple = std::array<std::uint32_t, 3>;

const char* const kModules[] = {"module.sm_90a", "module.sm_100a", "module.sm_90a.cuda12",
                                "module.sm_100a.cuda12"};

}  // namespace

TEST_CASE("A cubin tells its architecture under both ABIs") {
  for (const std::string name : kModules) {
    INFO(name);
    const auto cubin = read(name);
    const bool hopper = name.find("sm_90a") != std::string::npos;
    CHECK(cubin.sm == (hopper ? 90 : 100));
    CHECK(cubin.arch == (hopper ? "sm_90a" : "sm_100a"));
  }
}

TEST_CASE("Parameters, with C's alignment and the base of their bank") {
  for (const std::string name : kModules) {
    INFO(name);
    const auto cubin = read(name);
    const auto& k = kernel(cubin, "k_params");
    const std::array<std::array<std::uint32_t, 2>, 6> expected = {
        {{0, 8}, {8, 4}, {12, 1}, {16, 8}, {24, 2800}, {2824, 3}}};
    REQUIRE(k.parameters.size() == expected.size());
    for (std::uint32_t i = 0; i < expected.size(); ++i) {
      CHECK(k.parameters[i].ordinal == i);
      CHECK(k.parameters[i].offset == expected[i][0]);
      CHECK(k.parameters[i].size == expected[i][1]);
    }
    CHECK(k.parameter_bytes == 2827);
    CHECK(k.parameter_base == (cubin.sm == 90 ? 0x210 : 0x380));
    // Over 4352 bytes the compiler uses another record.
    const auto& huge = kernel(cubin, "k_huge");
    REQUIRE(huge.parameters.size() == 2);
    CHECK(huge.parameters[0].size == 4500);
    CHECK(huge.parameters[1].offset == 4504);
    CHECK(huge.parameter_bytes == 4512);
    CHECK(kernel(cubin, "k_none").parameters.empty());
    CHECK(kernel(cubin, "k_none").parameter_bytes == 0);
  }
}

TEST_CASE("Launch bounds and clusters") {
  for (const std::string name : kModules) {
    INFO(name);
    const auto cubin = read(name);
    const auto& plain = kernel(cubin, "k_none");
    CHECK(!plain.max_block);
    CHECK(!plain.required_block);
    CHECK(!plain.required_cluster);
    CHECK(!plain.explicit_cluster);
    CHECK(plain.max_cluster_rank == 0);
    CHECK(kernel(cubin, "k_params").max_block == Triple{256, 1, 1});
    const auto& cluster = kernel(cubin, "k_cluster");
    CHECK(cluster.required_cluster == Triple{2, 1, 1});
    CHECK(cluster.explicit_cluster);
    CHECK(!cluster.blocks_are_clusters);
    CHECK(kernel(cubin, "k_max_cluster").max_cluster_rank == 4);
    CHECK(kernel(cubin, "k_max_cluster").max_block == Triple{128, 1, 1});
  }
  for (const std::string name : {"module.sm_90a", "module.sm_100a"}) {
    const auto cubin = read(name);
    const auto& k = kernel(cubin, "k_block_size");
    CHECK(k.required_block == Triple{128, 1, 1});
    CHECK(k.required_cluster == Triple{2, 2, 1});
    CHECK(k.blocks_are_clusters);
  }
}

TEST_CASE("Registers, shared and local memory") {
  for (const std::string name : kModules) {
    INFO(name);
    const auto cubin = read(name);
    for (const auto& k : cubin.kernels) {
      INFO(k.symbol);
      CHECK(k.registers >= 4);
      CHECK(k.registers <= 255);
      CHECK(k.static_shared_bytes == (k.symbol == "k_static" ? 80 : 0));
      CHECK((k.local_bytes >= 400) == (k.symbol == "k_local"));
      CHECK(k.code_bytes > 0);
      CHECK(k.code_bytes % 128 == 0);
    }
  }
}

TEST_CASE("Globals with their images, writable or constant") {
  for (const std::string name : kModules) {
    INFO(name);
    const auto cubin = read(name);
    const auto bytes = cubin_fixture(name);
    const auto* zero = global(cubin, "g_zero");
    REQUIRE(zero != nullptr);
    CHECK(zero->bytes == 40);
    CHECK(zero->writable);
    CHECK(!zero->initialised);
    const auto* init = global(cubin, "g_init");
    REQUIRE(init != nullptr);
    CHECK(init->bytes == 16);
    CHECK(init->writable);
    REQUIRE(init->initialised);
    std::array<std::int32_t, 4> image;
    std::memcpy(image.data(), bytes.data() + init->image_offset, 16);
    CHECK(image == std::array<std::int32_t, 4>{1, 2, 3, 4});
    const auto* constant = global(cubin, "c_init");
    REQUIRE(constant != nullptr);
    CHECK(constant->bytes == 32);
    CHECK(!constant->writable);
    REQUIRE(constant->initialised);
    float first[2];
    std::memcpy(first, bytes.data() + constant->image_offset, 8);
    CHECK(first[0] == 1.f);
    CHECK(first[1] == 2.f);
    REQUIRE(global(cubin, "c_zero") != nullptr);
    CHECK(cubin.globals.size() == 4);
    CHECK(cubin.undefined.empty());
    CHECK(!cubin.uses_device_heap);
  }
}

TEST_CASE("Symbols that the driver resolves, and the device heap") {
  for (const std::string name : {"heap.sm_90a", "heap.sm_100a"}) {
    INFO(name);
    const auto cubin = read(name);
    CHECK(cubin.uses_device_heap);
    auto undefined = cubin.undefined;
    std::sort(undefined.begin(), undefined.end());
    CHECK(undefined == std::vector<std::string>{"free", "malloc", "vprintf"});
    CHECK(global(cubin, "$str") != nullptr);  // printf's format
  }
}

TEST_CASE("Kernels are named by their symbols and their code is where the file has it") {
  const auto cubin = read("module.sm_90a");
  const auto bytes = cubin_fixture("module.sm_90a");
  CHECK(cubin.kernels.size() == 12);
  kernel(cubin, "_Z10k_templateIfEvPT_");
  for (const auto& k : cubin.kernels) {
    REQUIRE(k.code_offset + k.code_bytes <= bytes.size());
    // Every kernel of this file begins by loading the stack pointer: LDC R1, c[0x0][0x28].
    std::uint64_t first;
    std::memcpy(&first, bytes.data() + k.code_offset, 8);
    CHECK((first & 0x1ff) == 0x182);
  }
}

TEST_CASE("Which parameters the code reads") {
  for (const std::string name : kModules) {
    INFO(name);
    const auto cubin = read(name);
    const auto& k = kernel(cubin, "k_unread");
    REQUIRE(k.parameters.size() == 4);
    CHECK(k.parameters[0].read == true);
    CHECK(k.parameters[1].read == true);
    CHECK(k.parameters[2].read == false);
    CHECK(k.parameters[3].read == false);
    for (const auto& parameter : kernel(cubin, "k_params").parameters) CHECK(parameter.read == true);
    for (const auto& parameter : kernel(cubin, "k_huge").parameters) CHECK(parameter.read == true);
    CHECK(kernel(cubin, "k_max_cluster").parameters[0].read == true);
    // Indexing into a parameter may reach any of them, as far as the words show.
    const auto& indexed = kernel(cubin, "k_indexed");
    REQUIRE(indexed.parameters.size() == 3);
    CHECK(!indexed.parameters[0].read);
    CHECK(indexed.parameters[1].read == true);
    CHECK(!indexed.parameters[2].read);
  }
  // A tensor map is read through its address.
  for (const std::string name : {"async.sm_90a", "async.sm_100a"}) {
    INFO(name);
    const auto cubin = read(name);
    const auto& load = kernel(cubin, "k_tma_load");
    REQUIRE(load.parameters.size() == 3);
    CHECK(load.parameters[0].size == 128);
    CHECK(!load.parameters[0].read);
    CHECK(load.parameters[1].read == true);
    CHECK(load.parameters[2].read == true);
  }
}

TEST_CASE("Kernels that cannot run without dynamic shared memory") {
  for (const std::string name : kModules) {
    INFO(name);
    for (const auto& k : read(name).kernels) {
      INFO(k.symbol);
      CHECK(k.uses_dynamic_shared == (k.symbol == "k_dynamic"));
    }
  }
}
