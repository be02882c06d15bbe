// Shapes of tcgen05.mma and operands of copies, traced back through the probes' code
// (tests/fixtures/probes/descriptors.cu, pipeline.cu, tcgen05.cu, async.cu).
#include "sass/fixtures.hpp"
#include "support/catch.hpp"

#include <ptxbench/sass.hpp>

#include <map>

using namespace ptxbench;
using sass::BulkAccess;

namespace {

struct Fixture {
  std::vector<std::uint8_t> file;
  sass::Cubin cubin;
  explicit Fixture(const std::string& name) : file(cubin_fixture(name)) {
    auto read = sass::read_cubin(file);
    REQUIRE(read);
    cubin = std::move(*read);
  }
  const sass::Kernel& kernel(const std::string& symbol) const {
    for (const sass::Kernel& k : cubin.kernels)
      if (k.symbol == symbol) return k;
    FAIL("no kernel " << symbol);
    return cubin.kernels[0];
  }
  std::vector<sass::Tcgen05Mma> mmas(const std::string& symbol) const {
    const auto found = sass::tcgen05_mmas(file, cubin, kernel(symbol));
    REQUIRE(found);
    return *found;
  }
  std::vector<BulkAccess> accesses(const std::string& symbol) const {
    const auto found = sass::bulk_accesses(file, cubin, kernel(symbol));
    REQUIRE(found);
    return *found;
  }
};

}  // namespace

TEST_CASE("traced: a constant descriptor gives the shape of tcgen05.mma") {
  const Fixture f("descriptors.sm_100a");
  struct Wanted {
    const char* kernel;
    sass::MmaShape shape;
  };
  const Wanted wanted[] = {
      {"k_f16_128x256", {128, 256, 16, false}},    {"k_f16_pair_256x128", {256, 128, 16, false}},
      {"k_tf32_64x8", {64, 8, 8, false}},          {"k_f8_128x64", {128, 64, 32, false}},
      {"k_i8_128x32", {128, 32, 32, false}},       {"k_mxf8_128x128", {128, 128, 32, false}},
      {"k_nvf4_128x128", {128, 128, 64, false}},   {"k_sparse_128x128", {128, 128, 32, true}},
      {"k_everyone_128x16", {128, 16, 16, false}},
  };
  for (const Wanted& w : wanted) {
    INFO(w.kernel);
    const auto mmas = f.mmas(w.kernel);
    REQUIRE(!mmas.empty());
    for (const sass::Tcgen05Mma& mma : mmas) {
      REQUIRE(mma.shape);
      CHECK(mma.shape->m == w.shape.m);
      CHECK(mma.shape->n == w.shape.n);
      CHECK(mma.shape->k == w.shape.k);
      CHECK(mma.shape->sparse == w.shape.sparse);
      CHECK(!mma.guarded);
    }
  }
}

TEST_CASE("traced: a descriptor that is not always the same, or of no mma, is unknown") {
  const Fixture f("descriptors.sm_100a");
  for (const char* kernel : {"k_parameter", "k_either", "k_changing", "k_invalid"}) {
    INFO(kernel);
    const auto mmas = f.mmas(kernel);
    REQUIRE(!mmas.empty());
    for (const sass::Tcgen05Mma& mma : mmas) CHECK(!mma.shape);
  }
  const Fixture parameters("tcgen05.sm_100a");  // all descriptors are parameters there
  int seen = 0;
  for (const sass::Kernel& kernel : parameters.cubin.kernels)
    for (const sass::Tcgen05Mma& mma : parameters.mmas(kernel.symbol)) {
      CHECK(!mma.shape);
      ++seen;
    }
  CHECK(seen == 19);
}

TEST_CASE("traced: the tensor maps of copies are the kernel's parameters") {
  const Fixture f("pipeline.sm_90a");
  std::map<std::pair<BulkAccess::Direction, std::uint32_t>, int> seen;
  for (const BulkAccess& access : f.accesses("k_pipeline")) {
    CHECK(access.tensor);
    CHECK(access.tiled);
    REQUIRE(access.parameter);
    REQUIRE(access.map_offset);
    CHECK(*access.map_offset == f.kernel("k_pipeline").parameters.at(*access.parameter).offset);
    ++seen[{access.direction, *access.parameter}];
  }
  CHECK(seen.size() == 3);
  CHECK(seen[{BulkAccess::Direction::load, 0}] > 0);
  CHECK(seen[{BulkAccess::Direction::load, 1}] == seen[{BulkAccess::Direction::load, 0}]);
  CHECK(seen[{BulkAccess::Direction::store, 2}] == 1);
  for (const BulkAccess& access : f.accesses("k_chosen"))
    CHECK(!access.parameter);  // one of two; in global memory

  for (const std::string arch : {"sm_90a", "sm_100a"}) {
    const Fixture async("async." + arch);
    for (const char* kernel : {"k_tma_load", "k_tma_load_1d", "k_tma_load_5d_hint", "k_tma_multicast",
                               "k_tma_store", "k_tma_reduce"}) {
      INFO(arch << " " << kernel);
      const auto accesses = async.accesses(kernel);
      REQUIRE(!accesses.empty());
      const std::string name = kernel;
      const bool store = name == "k_tma_store" || name == "k_tma_reduce";
      for (const BulkAccess& access : accesses) {
        CHECK(access.parameter == 0u);
        CHECK(access.tiled);
        CHECK(access.direction == (store ? BulkAccess::Direction::store : BulkAccess::Direction::load));
      }
    }
    const auto im2col = async.accesses("k_tma_load_im2col");
    REQUIRE(im2col.size() == 1);
    CHECK(!im2col[0].tiled);
    CHECK(async.accesses("k_cluster").empty());
  }
}

TEST_CASE("traced: the size of a bulk copy, where it is a constant") {
  const Fixture f("pipeline.sm_90a");
  const auto bulk = f.accesses("k_bulk");
  REQUIRE(bulk.size() == 2);
  CHECK(!bulk[0].tensor);
  CHECK(bulk[0].direction == BulkAccess::Direction::load);
  CHECK(bulk[0].bytes == 2048u);
  CHECK(!bulk[1].bytes);
  for (const std::string arch : {"sm_90a", "sm_100a"}) {
    const Fixture async("async." + arch);
    CHECK(async.accesses("k_bulk_load").at(0).direction == BulkAccess::Direction::load);
    CHECK(async.accesses("k_bulk_store").at(0).direction == BulkAccess::Direction::store);
    CHECK(async.accesses("k_bulk_shared").at(0).direction == BulkAccess::Direction::shared);
  }
}

TEST_CASE("traced: a kernel of another file is refused, and no code crashes it") {
  const Fixture f("descriptors.sm_100a"), p("pipeline.sm_90a");
  sass::Kernel kernel = f.cubin.kernels[0];
  kernel.code_offset = f.file.size();
  CHECK(!sass::tcgen05_mmas(f.file, f.cubin, kernel));
  CHECK(!sass::bulk_accesses(f.file, f.cubin, kernel));
  std::uint64_t state = 1;
  for (int round = 0; round < 200; ++round)
    for (const Fixture* fixture : {&f, &p}) {
      std::vector<std::uint8_t> hostile = fixture->file;
      for (const sass::Kernel& k : fixture->cubin.kernels)
        for (std::uint64_t i = 0; i < k.code_bytes; ++i) {
          state = state * 6364136223846793005u + 1442695040888963407u;
          if ((state >> 33) % 60 == 0) hostile[k.code_offset + i] = static_cast<std::uint8_t>(state >> 50);
        }
      for (const sass::Kernel& k : fixture->cubin.kernels) {
        CHECK(sass::tcgen05_mmas(hostile, fixture->cubin, k));
        CHECK(sass::bulk_accesses(hostile, fixture->cubin, k));
      }
    }
}
