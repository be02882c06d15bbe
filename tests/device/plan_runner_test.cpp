#include "support/catch.hpp"
#include "support/fake_device.hpp"

#include <ptxbench/device.hpp>

using namespace ptxbench;
using testing::FakeCall;
using testing::FakeDevice;
using Kind = BufferRef::Kind;

namespace {

ResolvedLaunch launch_of(const std::string& symbol, std::size_t step, std::uint32_t bytes,
                         std::vector<Patch> patches) {
  ResolvedLaunch launch;
  launch.step = step;
  launch.name = launch.symbol = symbol;
  launch.parameters.assign(bytes, 0);
  launch.patches = std::move(patches);
  return launch;
}

ResolvedWorkspace workspace_of(std::uint64_t bytes, std::optional<std::uint64_t> pattern = {},
                               int element_bytes = 4) {
  ResolvedWorkspace workspace;
  workspace.name = "w";
  workspace.bytes = bytes;
  workspace.initialised = pattern.has_value();
  workspace.pattern = pattern.value_or(0);
  workspace.element_bytes = element_bytes;
  return workspace;
}

std::vector<std::uint8_t> bytes_at(FakeDevice& device, std::uint64_t address, std::size_t size) {
  const auto* p = reinterpret_cast<const std::uint8_t*>(address);
  REQUIRE(device.host_view(address) != nullptr);
  return {p, p + size};
}

}  // namespace

TEST_CASE("addresses are patched into parameters, and steps run in the plan's order") {
  FakeDevice device;
  std::vector<std::string> order;
  device.define("a.cu", "scale", {8, 8, 4}, [&](FakeCall& call) {
    order.push_back("scale");
    const int* in = call.pointer<int>(0);
    int* out = call.pointer<int>(1);
    for (int i = 0; i < call.argument<int>(2); ++i) out[i] = in[i] * 3;
  });
  device.define("a.cu", "increment", {8}, [&](FakeCall& call) {
    order.push_back("increment");
    call.pointer<int>(0)[0] += 1;
  });
  const DeviceModule module = device.load({.source = "a.cu"}).value();
  const DeviceBuffer in = device.allocate(16).value(), out = device.allocate(16).value();
  REQUIRE(
      device.write(in.address, std::vector<std::uint8_t>{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}));

  ResolvedPlan plan;
  ResolvedMemset memset{0, {Kind::output, 0, 4}, 3, 4, 7};
  ResolvedCopy copy{3, {Kind::output, 0, 0}, {Kind::output, 0, 12}, 4};
  ResolvedLaunch scale =
      launch_of("scale", 1, 20, {{0, BufferRef{Kind::input, 0, 4}}, {8, BufferRef{Kind::output, 0, 0}}});
  scale.parameters[16] = 2;  // count
  plan.operations = {memset, scale, launch_of("increment", 2, 8, {{0, BufferRef{Kind::output, 0, 4}}}), copy};
  auto runner = PlanRunner::create(device, plan, {module}, {{in}, {out}});
  REQUIRE(runner);
  device.records.clear();
  auto outcome = (*runner)->enqueue();
  REQUIRE(outcome);
  REQUIRE_FALSE(*outcome);
  REQUIRE(order == std::vector<std::string>{"scale", "increment"});
  using R = testing::FakeRecord::Kind;
  std::vector<R> kinds;
  for (const auto& r : device.records) kinds.push_back(r.kind);
  REQUIRE(kinds == std::vector<R>{R::fill, R::launch, R::launch, R::copy});
  const int* values = reinterpret_cast<const int*>(out.address);
  REQUIRE(values[0] == 6);
  REQUIRE(values[1] == 10);
  REQUIRE(values[2] == 7);
  REQUIRE(values[3] == 6);
}

TEST_CASE("workspaces lie between red zones, are initialised by every run, or poisoned on request") {
  FakeDevice device;
  device.define("a.cu", "touch", {8, 8}, [](FakeCall& call) { call.pointer<std::uint8_t>(0)[0] = 99; });
  const DeviceModule module = device.load({.source = "a.cu"}).value();
  ResolvedPlan plan;
  plan.workspaces = {workspace_of(12, 0x01020304), workspace_of(7), workspace_of(16, 0x1122334455667788, 8)};
  plan.operations = {launch_of("touch", 0, 16, {{0, BufferRef{Kind::workspace, 0, 0}}})};
  auto runner = PlanRunner::create(device, plan, {module}, {}).value();
  REQUIRE(runner->workspaces().size() == 3);
  for (const DeviceBuffer& w : runner->workspaces()) {
    REQUIRE(w.address % 256 == 0);
    REQUIRE(bytes_at(device, w.address - kRedZoneBytes, kRedZoneBytes) ==
            std::vector<std::uint8_t>(kRedZoneBytes, kRedZoneByte));
    REQUIRE(bytes_at(device, w.address + w.bytes, kRedZoneBytes) ==
            std::vector<std::uint8_t>(kRedZoneBytes, kRedZoneByte));
  }
  REQUIRE(runner->poison_workspaces(0xee));
  for (int run = 0; run < 2; ++run) {
    REQUIRE(runner->enqueue());
    const auto w = runner->workspaces();
    REQUIRE(bytes_at(device, w[0].address, 12) ==
            std::vector<std::uint8_t>{99, 3, 2, 1, 4, 3, 2, 1, 4, 3, 2, 1});
    REQUIRE(bytes_at(device, w[1].address, 7) == std::vector<std::uint8_t>(7, 0xee));
    REQUIRE(bytes_at(device, w[2].address + 8, 2) == std::vector<std::uint8_t>{0x88, 0x77});
    *reinterpret_cast<int*>(w[0].address + 4) = 0;  // the next run must not see it
  }
  runner.reset();
  REQUIRE(device.live_allocations() == 0);
  REQUIRE(device.bad_releases == 0);
}

TEST_CASE("tensor maps are encoded for their base address and patched into parameters and globals") {
  FakeDevice device;
  std::uint64_t seen = 0;
  device.define("a.cu", "tma", {128}, [&](FakeCall& call) { seen = call.argument<std::uint64_t>(0); });
  device.define_global("a.cu", "g_map", std::vector<std::uint8_t>(192, 0));
  device.define_global("a.cu", "g_value", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const DeviceModule module = device.load({.source = "a.cu"}).value();
  const DeviceBuffer out = device.allocate(4096).value();
  ResolvedPlan plan;
  ResolvedTensorMap map;
  map.base = {Kind::output, 0, 256};
  map.dims = {16, 16};
  map.box = {8, 8};
  plan.maps = {map};
  plan.operations = {launch_of("tma", 0, 128, {{0, std::size_t{0}}})};
  ResolvedGlobal to_map, to_value;
  to_map.symbol = "g_map";
  to_map.byte_offset = 64;
  to_map.bytes.assign(128, 0);
  to_map.patches = {{0, std::size_t{0}}};
  to_value.symbol = "g_value";
  to_value.byte_offset = 4;
  to_value.bytes.assign(8, 0);
  to_value.patches = {{0, BufferRef{Kind::output, 0, 8}}};
  plan.globals = {to_map, to_value};

  const auto image = GlobalsImage::capture(device, {module}).value();
  auto runner = PlanRunner::create(device, plan, {module}, {{}, {out}}).value();
  REQUIRE(runner->set_globals());
  REQUIRE(runner->enqueue());
  REQUIRE(seen == out.address + 256);
  const std::uint64_t g_map = device.global(module, "g_map")->address;
  const std::uint64_t g_value = device.global(module, "g_value")->address;
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<void*>(g_map + 64), 8);
  REQUIRE(value == out.address + 256);
  std::memcpy(&value, reinterpret_cast<void*>(g_value + 4), 8);
  REQUIRE(value == out.address + 8);
  REQUIRE(image->restore());
  REQUIRE(bytes_at(device, g_value, 12) == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  REQUIRE(bytes_at(device, g_map, 192) == std::vector<std::uint8_t>(192, 0));
}

TEST_CASE("a refused launch names its step and ends the run") {
  FakeDevice device;
  device.define("a.cu", "first", {}, [](FakeCall&) {});
  device.define("a.cu", "second", {}, [](FakeCall&) {});
  device.define("a.cu", "third", {}, [](FakeCall&) {});
  device.before_launch = [](const DeviceLaunch& launch) -> DeviceOutcome {
    if (launch.symbol != "second") return {};
    DeviceFault fault;
    fault.kind = DeviceFault::Kind::launch_refused;
    fault.message = "no";
    return fault;
  };
  const DeviceModule module = device.load({.source = "a.cu"}).value();
  ResolvedPlan plan;
  plan.operations = {launch_of("first", 0, 0, {}), launch_of("second", 4, 0, {}),
                     launch_of("third", 5, 0, {})};
  auto runner = PlanRunner::create(device, plan, {module}, {}).value();
  auto outcome = runner->enqueue();
  REQUIRE(outcome);
  REQUIRE(*outcome);
  REQUIRE((*outcome)->step == 4u);
  REQUIRE((*outcome)->message == "step 4 (second): no");
  REQUIRE(device.launched() == std::vector<std::string>{"first"});
}

TEST_CASE("a fault of an earlier launch that shows at a later one is not blamed on the later one") {
  FakeDevice device;
  device.define("a.cu", "k", {}, [](FakeCall& call) {
    DeviceFault fault;
    fault.kind = DeviceFault::Kind::illegal_address;
    fault.sticky = true;
    fault.message = "bad";
    call.fail(fault);
  });
  const DeviceModule module = device.load({.source = "a.cu"}).value();
  ResolvedPlan plan;
  plan.operations = {launch_of("k", 0, 0, {})};
  auto runner = PlanRunner::create(device, plan, {module}, {}).value();
  REQUIRE_FALSE(*runner->enqueue());
  REQUIRE((*device.synchronize(1000))->kind == DeviceFault::Kind::illegal_address);
  auto again = runner->enqueue();
  REQUIRE(again);
  REQUIRE(*again);
  REQUIRE_FALSE((*again)->step);
  REQUIRE_FALSE(device.allocate(4));
  REQUIRE(device.allocate(4).error().code == ErrorCode::driver);
}

TEST_CASE("a plan that does not fit its buffers, modules or symbols is refused while preparing") {
  FakeDevice device;
  device.define("a.cu", "k", {8}, [](FakeCall&) {});
  device.define_global("a.cu", "g", {1, 2, 3, 4});
  const DeviceModule module = device.load({.source = "a.cu"}).value();
  const DeviceBuffer out = device.allocate(16).value();
  const PlanBuffers buffers{{}, {out}};
  const auto refused = [&](const ResolvedPlan& plan) {
    auto runner = PlanRunner::create(device, plan, {module}, buffers);
    REQUIRE_FALSE(runner);
    return runner.error();
  };
  ResolvedPlan plan;
  plan.operations = {launch_of("k", 0, 8, {{0, BufferRef{Kind::input, 0, 0}}})};
  REQUIRE(refused(plan).message.find("input 0") != std::string::npos);
  plan.operations = {launch_of("k", 0, 8, {{1, BufferRef{Kind::output, 0, 0}}})};
  REQUIRE(refused(plan).message.find("patch") != std::string::npos);
  plan.operations = {launch_of("k", 0, 128, {{0, std::size_t{0}}})};
  REQUIRE(refused(plan).message.find("tensor map") != std::string::npos);
  plan.operations = {ResolvedMemset{0, {Kind::output, 0, 8}, 3, 4, 0}};
  REQUIRE(refused(plan).code == ErrorCode::internal);
  plan.operations = {ResolvedCopy{0, {Kind::output, 0, 8}, {Kind::output, 0, 0}, 9}};
  REQUIRE(refused(plan).code == ErrorCode::internal);
  ResolvedLaunch elsewhere = launch_of("k", 0, 8, {});
  elsewhere.module = 1;
  plan.operations = {elsewhere};
  REQUIRE(refused(plan).message.find("not loaded") != std::string::npos);
  plan.operations.clear();
  ResolvedGlobal global;
  global.symbol = "g";
  global.byte_offset = 2;
  global.bytes.assign(3, 0);
  plan.globals = {global};
  REQUIRE(refused(plan).rule == "launch_rule");
  plan.globals[0].symbol = "h";
  REQUIRE(refused(plan).code == ErrorCode::not_found);
  plan.globals.clear();
  plan.workspaces = {workspace_of(64), workspace_of(std::uint64_t{1} << 40)};
  REQUIRE(refused(plan).code == ErrorCode::no_memory);
  REQUIRE(device.live_allocations() == 1);  // only `out`: what was allocated before the failure is gone
}
