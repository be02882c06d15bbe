// What the host writes is defined, whatever a kernel left there before.
#include "support/catch.hpp"

#include <ptxbench/emulator.hpp>

using namespace ptxbench;

namespace {

constexpr const char* kText = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry leave(.param .u64 p) {
  .reg .b32 %never;
  .reg .b64 %a;
  ld.param.u64 %a, [p];
  st.global.b32 [%a], %never;
  ret;
}
.visible .entry copy(.param .u64 p, .param .u64 q) {
  .reg .b32 %v;
  .reg .b64 %a, %b;
  ld.param.u64 %a, [p];
  ld.param.u64 %b, [q];
  ld.global.b32 %v, [%a];
  st.global.b32 [%b], %v;
  ret;
}
)";

}  // namespace

TEST_CASE("device memory: what was never written stays so until the host writes") {
  auto opened = open_emulator_device({});
  REQUIRE(opened);
  Device& device = **opened;
  ModuleImage image;
  image.source = "memory.ptx";
  image.ptx = kText;
  const DeviceModule module = device.load(image).value();
  const DeviceBuffer workspace = device.allocate(256).value(), output = device.allocate(256).value();
  MemoryLabel label;
  label.name = "scratch";
  label.role = MemoryLabel::Role::workspace;
  device.label(workspace, label);
  label.name = "C";
  label.role = MemoryLabel::Role::output;
  device.label(output, label);
  const std::uint64_t pointers[2] = {workspace.address, output.address};
  const auto run = [&](const char* kernel, std::size_t parameters) {
    DeviceLaunch launch;
    launch.module = module;
    launch.symbol = kernel;
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(pointers), parameters * 8};
    REQUIRE_FALSE(device.launch(launch).value());
    return device.synchronize(10'000'000'000).value();
  };
  REQUIRE_FALSE(run("leave", 1));  // copying such a value about is fine
  const DeviceOutcome reached = run("copy", 2);
  REQUIRE(reached);
  CHECK(reached->message.find("never written") != std::string::npos);
  SECTION("a write") { REQUIRE(device.write(workspace.address, std::vector<std::uint8_t>(4, 7))); }
  SECTION("a fill") { REQUIRE(device.fill(workspace.address, 7, 4, 1)); }
  SECTION("a copy") { REQUIRE(device.copy(workspace.address, output.address + 64, 4)); }
  CHECK_FALSE(run("copy", 2));
}
