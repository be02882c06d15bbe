// One launch of a kernel from the body of its text, on the device that the product opens: what was found,
// with the place in PTX and in CUDA.
#pragma once

#include "emulator/contains.hpp"
#include "emulator/device.hpp"
#include "support/catch.hpp"

#include <ptxbench/emulator.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace ptxbench::testing {

struct TextLaunch {
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1}, cluster{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  EmulatorSchedule schedule;
  std::string device = "emulator:h200?threads=1";
  bool follow_global = false;  // fills TextResult::global_reused
  std::uint64_t deadline_ns = 60'000'000'000;
};

struct TextResult {
  EmulatorReport report;
  DeviceOutcome outcome;
  std::string error;  // of loading or preparing
  std::vector<std::uint32_t> out;
  bool global_reused = false;

  const EmulatorFinding* find(EmulatorFinding::Grade grade, const std::string& code = {}) const {
    for (const EmulatorFinding& f : report.findings)
      if (f.grade == grade && (code.empty() || f.code == code)) return &f;
    return nullptr;
  }
  static std::string words(const EmulatorFinding& f) {
    return f.code + ": " + f.message + " [" + f.instruction + ", PTX line " + std::to_string(f.ptx_line) +
           ", " + f.source + ", CTA " + std::to_string(f.cta) + ", warp " + std::to_string(f.warp) +
           ", lane " + std::to_string(f.lane) + "]\n" + f.detail;
  }
  std::string fault() const {
    const EmulatorFinding* f = find(EmulatorFinding::Grade::fault);
    if (f != nullptr) return words(*f);
    return outcome ? outcome->name + ": " + outcome->message : error.empty() ? "none" : "error: " + error;
  }
  // All hazards (or notes).
  std::string remarks(EmulatorFinding::Grade grade = EmulatorFinding::Grade::hazard) const {
    std::string text;
    for (const EmulatorFinding& f : report.findings)
      if (f.grade == grade) text += words(f);
    return text.empty() ? "none" : text;
  }
};

// A kernel `k(a, out)`: %rd1 a (float32 [8, 16], an input), %rd2 out (float32 [64], an output), %r1 %tid.x,
// %r2 %ctaid.x. Line i (from 1 on) of @p body is line 100 + i of gemm.cu; each is one instruction or label.
inline std::string kernel_text(const std::string& declarations, const std::string& body) {
  std::string text = ".version 8.7\n.target sm_90a\n.address_size 64\n" + declarations +
                     "\n.visible .entry k(.param .u64 a, .param .u64 out)\n{\n.reg .pred %p<16>;\n.reg .b16 "
                     "%h<8>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<32>;\n.reg .f32 %f<64>;\nld.param.u64 %rd1, "
                     "[a];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\n";
  int line = 100;
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t end = std::min(body.find('\n', at), body.size());
    text += ".loc 1 " + std::to_string(++line) + " 0\n" + body.substr(at, end - at) + "\n";
    at = end + 1;
  }
  return text + "ret;\n}\n.file 1 \"gemm.cu\"\n";
}

inline TextResult launch_text(const std::string& declarations, const std::string& body,
                              const TextLaunch& how = {}) {
  TextResult result;
  const auto options = parse_emulator_name(how.device);
  if (!options) FAIL(options.error().to_string());
  auto opened = open_emulator_device(*options);
  if (!opened) FAIL(opened.error().to_string());
  EmulatedDevice& device = **opened;
  static_cast<emulator::Emulator&>(device).follow_global(how.follow_global);
  device.set_schedule(how.schedule);
  const std::string text = kernel_text(declarations, body);
  ModuleImage image;
  image.source = "gemm.ptx";
  image.ptx = text;
  const auto module = device.load(image);
  if (!module) {
    result.error = module.error().to_string();
    return result;
  }
  if (const auto prepared = device.prepare(*module, "k"); !prepared) {
    result.error = prepared.error().to_string();
    return result;
  }
  const auto a = device.allocate(8 * 16 * 4), out = device.allocate(64 * 4);
  REQUIRE(a);
  REQUIRE(out);
  const auto label = [&](DeviceBuffer buffer, MemoryLabel::Role role, const char* name,
                         std::vector<std::int64_t> shape) {
    MemoryLabel what;
    what.role = role;
    what.name = name;
    what.dtype = DType::float32;
    what.shape = std::move(shape);
    device.label(buffer, what);
  };
  label(*a, MemoryLabel::Role::input, "A", {8, 16});
  label(*out, MemoryLabel::Role::output, "C", {64});
  const std::uint64_t parameters[] = {a->address, out->address};
  DeviceLaunch launch;
  launch.module = *module;
  launch.symbol = "k";
  launch.grid = how.grid;
  launch.block = how.block;
  launch.cluster = how.cluster;
  launch.has_cluster = how.cluster != std::array<std::uint32_t, 3>{1, 1, 1};
  launch.dynamic_shared_bytes = how.dynamic_shared;
  launch.parameters = {reinterpret_cast<const std::uint8_t*>(parameters), sizeof parameters};
  const auto launched = device.launch(launch);
  if (!launched) {
    result.error = launched.error().to_string();
    return result;
  }
  result.outcome = *launched;
  if (!result.outcome) {
    const auto ended = device.synchronize(how.deadline_ns);
    if (!ended)
      result.error = ended.error().to_string();
    else
      result.outcome = *ended;
  }
  result.report = device.report();
  result.global_reused = static_cast<emulator::Emulator&>(device).global_reused();
  result.out.resize(64);
  REQUIRE(device.read(out->address, {reinterpret_cast<std::uint8_t*>(result.out.data()), 64 * 4}));
  return result;
}

inline std::string fault_of(const std::string& body, const TextLaunch& how = {},
                            const std::string& declarations = {}) {
  return launch_text(declarations, body, how).fault();
}

}  // namespace ptxbench::testing
