// Registers share slots where their lives do not overlap; lanes that are apart must not feel it.
#include "support/catch.hpp"

#include <ptxbench/emulator.hpp>

#include <string>
#include <vector>

using namespace ptxbench;

// Even lanes keep 64-bit values over a barrier of the warp, odd ones 32-bit values in another branch: the
// branches' registers are never alive together on one path. The lanes take turns, since each half waits for
// the other in the middle.
TEST_CASE("slots: registers of two branches do not disturb each other's lanes") {
  std::string text = R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
  .reg .pred %odd;
  .reg .b32 %lane, %x<9>, %bit;
  .reg .b64 %a, %at, %wide<9>;
  ld.param.u64 %a, [out];
  mov.u32 %lane, %laneid;
  mul.wide.u32 %at, %lane, 64;
  add.u64 %a, %a, %at;
  and.b32 %bit, %lane, 1;
  setp.ne.u32 %odd, %bit, 0;
  @%odd bra ODD;
)";
  const auto number = [](int i) { return std::to_string(i); };
  for (int i = 0; i < 8; ++i) {
    text += "  cvt.u64.u32 %wide" + number(i) + ", %lane;\n  mad.lo.u64 %wide" + number(i) + ", %wide" +
            number(i) + ", 4294967297, " + number(i) + ";\n";
  }
  text += "  bar.warp.sync 0x55555555;\n  barrier.sync 1, 64;\n";
  for (int i = 0; i < 8; ++i) text += "  st.global.b64 [%a+" + number(8 * i) + "], %wide" + number(i) + ";\n";
  text += "  ret;\nODD:\n";
  for (int i = 0; i < 8; ++i) text += "  add.u32 %x" + number(i) + ", %lane, " + number(1000 * i) + ";\n";
  text += "  bar.warp.sync 0xaaaaaaaa;\n  barrier.sync 1, 64;\n";
  for (int i = 0; i < 8; ++i) text += "  st.global.b32 [%a+" + number(8 * i) + "], %x" + number(i) + ";\n";
  text += "  ret;\n}\n";

  auto opened = open_emulator_device({});
  REQUIRE(opened);
  Device& device = **opened;
  ModuleImage image;
  image.source = "slots.ptx";
  image.ptx = text;
  const DeviceModule module = device.load(image).value();
  const DeviceBuffer out = device.allocate(64 * 64).value();
  DeviceLaunch launch;
  launch.module = module;
  launch.symbol = "k";
  launch.block = {64, 1, 1};
  launch.parameters = {reinterpret_cast<const std::uint8_t*>(&out.address), 8};
  REQUIRE_FALSE(device.launch(launch).value());
  const DeviceOutcome outcome = device.synchronize(10'000'000'000).value();
  INFO((outcome ? outcome->message : std::string()));
  REQUIRE_FALSE(outcome);
  std::vector<std::uint64_t> got(64 * 8);
  REQUIRE(device.read(out.address, {reinterpret_cast<std::uint8_t*>(got.data()), got.size() * 8}));
  for (std::uint64_t lane = 0; lane < 32; ++lane)
    for (std::uint64_t i = 0; i < 8; ++i) {
      INFO("lane " << lane << ", register " << i);
      CHECK(got[lane * 8 + i] == (lane % 2 == 0 ? lane * 4294967297 + i : lane + 1000 * i));
    }
}
