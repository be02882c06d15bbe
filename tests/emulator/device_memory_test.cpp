// What the host writes is defined, whatever a kernel left there before; what it poisons was never written.
#include "support/catch.hpp"

#include <ptxbench/emulator.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

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
.visible .entry accumulate(.param .u64 p) {
  .reg .f32 %v;
  .reg .b64 %a;
  ld.param.u64 %a, [p];
  ld.global.f32 %v, [%a];
  add.f32 %v, %v, 0f3F800000;
  st.global.f32 [%a], %v;
  ret;
}
.visible .entry reduce(.param .u64 p, .param .u64 q) {
  .reg .b64 %b;
  ld.param.u64 %b, [q];
  red.global.add.f32 [%b], 0f3F800000;
  ret;
}
.visible .entry put_and_add(.param .u64 p, .param .u64 q) {
  .reg .f32 %v;
  .reg .b64 %b;
  ld.param.u64 %b, [q];
  st.global.f32 [%b], 0f3F800000;
  red.global.add.f32 [%b], 0f3F800000;
  ld.global.f32 %v, [%b];
  add.f32 %v, %v, %v;
  st.global.f32 [%b], %v;
  ret;
}
)";

struct Fixture {
  std::unique_ptr<EmulatedDevice> device = open_emulator_device({}).value();
  DeviceModule module = 0;
  DeviceBuffer workspace, output;

  Fixture() {
    ModuleImage image;
    image.source = "memory.ptx";
    image.ptx = kText;
    module = device->load(image).value();
    workspace = device->allocate(256).value(), output = device->allocate(256).value();
    MemoryLabel label;
    label.name = "scratch";
    label.role = MemoryLabel::Role::workspace;
    device->label(workspace, label);
    label.name = "C";
    label.role = MemoryLabel::Role::output;
    device->label(output, label);
  }
  // The kernels' parameters: the workspace, the output.
  DeviceOutcome run(const char* kernel, std::size_t parameters) {
    const std::uint64_t pointers[2] = {workspace.address, output.address};
    return run_on(kernel, {pointers, parameters});
  }
  DeviceOutcome run_on(const char* kernel, std::span<const std::uint64_t> pointers) {
    DeviceLaunch launch;
    launch.module = module;
    launch.symbol = kernel;
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(pointers.data()), pointers.size_bytes()};
    REQUIRE_FALSE(device->launch(launch).value());
    return device->synchronize(10'000'000'000).value();
  }
};

}  // namespace

TEST_CASE("device memory: what was never written stays so until the host writes") {
  Fixture f;
  REQUIRE_FALSE(f.run("leave", 1));  // copying such a value about is fine
  const DeviceOutcome reached = f.run("copy", 2);
  REQUIRE(reached);
  CHECK(reached->message.find("never written") != std::string::npos);
  SECTION("a write") { REQUIRE(f.device->write(f.workspace.address, std::vector<std::uint8_t>(4, 7))); }
  SECTION("a fill") { REQUIRE(f.device->fill(f.workspace.address, 7, 4, 1)); }
  SECTION("a copy") { REQUIRE(f.device->copy(f.workspace.address, f.output.address + 64, 4)); }
  CHECK_FALSE(f.run("copy", 2));
}

TEST_CASE("device memory: poison counts as never written") {
  Fixture f;
  const auto poison = [&](const DeviceBuffer& buffer) {
    REQUIRE(f.device->poison(buffer.address, 0x5b, buffer.bytes));
  };
  const auto never_written = [&](const DeviceOutcome& outcome, const char* line) {
    REQUIRE(outcome);
    INFO(outcome->message);
    CHECK(outcome->name == "undefined_value");
    CHECK(outcome->message.find("never written to the output byte 0 of C") != std::string::npos);
    CHECK(outcome->message.find(line) != std::string::npos);
  };
  CHECK_FALSE(f.run("copy", 2));  // fresh memory is zero, and known to be
  poison(f.workspace);
  poison(f.output);
  std::vector<std::uint8_t> bytes(f.output.bytes);
  REQUIRE(f.device->read(f.output.address, bytes));
  CHECK(bytes == std::vector<std::uint8_t>(f.output.bytes, 0x5b));
  SECTION("a workspace that reaches an output") { never_written(f.run("copy", 2), "st.global.b32"); }
  SECTION("an output that is added to") {
    const std::uint64_t output[] = {f.output.address};
    never_written(f.run_on("accumulate", output), "st.global.f32");
  }
  SECTION("an output that is reduced to") { never_written(f.run("reduce", 2), "red.global.add.f32"); }
  SECTION("a copy carries it along") {
    REQUIRE(f.device->write(f.workspace.address, std::vector<std::uint8_t>(16, 1)));
    REQUIRE(
        f.device->copy(f.workspace.address + 2, f.output.address + 100, 70));  // across words of the record
    REQUIRE(f.device->copy(f.workspace.address, f.workspace.address + 1, 100));
    never_written(f.run("copy", 2), "st.global.b32");
    REQUIRE(f.device->write(f.workspace.address + 1, std::vector<std::uint8_t>(3, 1)));
    CHECK_FALSE(f.run("copy", 2));
  }
  SECTION("until a kernel writes") { CHECK_FALSE(f.run("put_and_add", 2)); }
  SECTION("until the host fills") {
    REQUIRE(f.device->fill(f.output.address, 0, 4, 1));
    CHECK_FALSE(f.run("reduce", 2));
    poison(f.output);  // the next run's
    never_written(f.run("reduce", 2), "red.global.add.f32");
  }
  SECTION("in order with what is queued") {
    DeviceLaunch launch;
    const std::uint64_t pointers[] = {f.workspace.address, f.output.address};
    launch.module = f.module;
    launch.symbol = "put_and_add";
    launch.parameters = {reinterpret_cast<const std::uint8_t*>(pointers), sizeof pointers};
    REQUIRE_FALSE(f.device->launch(launch).value());
    poison(f.output);
    never_written(f.run("reduce", 2), "red.global.add.f32");
  }
}
