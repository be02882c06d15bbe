// A GPU for a test, or a word about why there is none.
#pragma once

#include "support/catch.hpp"
#include "support/nvrtc_compile.hpp"

#include <ptxbench/device.hpp>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace ptxbench::testing {

// Null, with a warning, where there is no GPU; a failure if PTXBENCH_REQUIRE_GPU is 1.
inline std::unique_ptr<Device> gpu_or_skip() {
  auto device = open_cuda_device("auto");
  if (device) return std::move(device).value();
  const char* required = std::getenv("PTXBENCH_REQUIRE_GPU");
  if (required != nullptr && std::string(required) == "1") FAIL("no GPU: " << device.error().to_string());
  WARN("skipped, no GPU: " << device.error().to_string());
  return nullptr;
}

// Compiles CUDA text for the device and loads it.
inline DeviceModule load_text(Device& device, const std::string& source) {
  auto compiled = nvrtc_compile(source, device.info().arch);
  if (!compiled) FAIL(compiled.error().to_string());
  ModuleImage image;
  image.source = "test.cu";
  image.cubin = compiled->cubin;
  image.ptx = compiled->ptx;
  auto module = device.load(image);
  if (!module) FAIL(module.error().to_string());
  return *module;
}

// A parameter buffer under the C rules of layout.
class Parameters {
 public:
  template <class T>
  Parameters& add(const T& value, std::size_t align = alignof(T)) {
    bytes_.resize((bytes_.size() + align - 1) / align * align);
    const auto* p = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof(T));
    return *this;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

inline DeviceLaunch launch_of(DeviceModule module, std::string_view symbol, const Parameters& parameters,
                              std::uint32_t grid = 1, std::uint32_t block = 1) {
  DeviceLaunch launch;
  launch.module = module;
  launch.symbol = symbol;
  launch.grid = {grid, 1, 1};
  launch.block = {block, 1, 1};
  launch.parameters = parameters.bytes();
  return launch;
}

template <class T>
std::vector<T> read_back(Device& device, std::uint64_t address, std::size_t count) {
  std::vector<T> values(count);
  auto result = device.read(address, {reinterpret_cast<std::uint8_t*>(values.data()), count * sizeof(T)});
  if (!result) FAIL(result.error().to_string());
  return values;
}

// Launches and waits; fails the test on any fault.
inline void run(Device& device, const DeviceLaunch& launch) {
  auto outcome = device.launch(launch);
  if (!outcome) FAIL(outcome.error().to_string());
  if (*outcome) FAIL((*outcome)->message);
  auto done = device.synchronize(10'000'000'000);
  if (!done) FAIL(done.error().to_string());
  if (*done) FAIL((*done)->message);
}

}  // namespace ptxbench::testing
