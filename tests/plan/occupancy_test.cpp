#include "plan/occupancy.hpp"

#include "support/catch.hpp"

using namespace ptxbench;

namespace {
DeviceLimits hopper() {
  DeviceLimits limits;
  limits.sm_count = 132;
  limits.smem_optin_bytes = 232448;
  limits.smem_per_sm_bytes = 233472;
  limits.regs_per_sm = 65536;
  return limits;
}
}  // namespace

TEST_CASE("occupancy is bounded by threads, registers, shared memory and the CTA limit") {
  KernelInfo kernel;
  kernel.registers = 32;
  REQUIRE(static_occupancy(hopper(), kernel, 256, 0) == 8);  // 2048 threads
  REQUIRE(static_occupancy(hopper(), kernel, 32, 0) == 32);  // 32 CTAs
  kernel.registers = 168;
  REQUIRE(static_occupancy(hopper(), kernel, 384, 0) == 1);  // 168 * 384 > 65536 / 2
  kernel.registers = 64;
  REQUIRE(static_occupancy(hopper(), kernel, 128, 100 * 1024) == 2);
  REQUIRE(static_occupancy(hopper(), kernel, 128, 232448) == 1);
  REQUIRE(static_occupancy(hopper(), kernel, 128, 232449) == 0);  // more than can be opted into
  REQUIRE(static_occupancy(hopper(), kernel, 1025, 0) == 0);
  kernel.registers = 255;
  REQUIRE(static_occupancy(hopper(), kernel, 1024, 0) == 0);  // cannot be launched at all
}

TEST_CASE("static queries answer for the module's kernel and name one that is not there") {
  ModuleInfo module;
  module.kernels.push_back(KernelInfo{});
  module.kernels[0].symbol = "gemm";
  module.kernels[0].registers = 168;
  const DeviceQueries queries = static_queries(hopper(), {module});
  OccupancyQuery query{0, "gemm", {384, 1, 1}, {2, 1, 1}, 200 * 1024};
  REQUIRE(queries.occupancy(query).value() == 1);
  REQUIRE(queries.max_active_clusters(query).value() == 66);
  query.symbol = "other";
  REQUIRE(queries.occupancy(query).error().code == ErrorCode::not_found);
}
