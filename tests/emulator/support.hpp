// A small machine for tests: PTX text in, a launch, memory out.
#pragma once

#include "emulator/decode.hpp"
#include "emulator/engine.hpp"
#include "emulator/memory.hpp"
#include "emulator/modules.hpp"
#include "support/catch.hpp"

#include <cstring>
#include <string>
#include <vector>

namespace ptxbench::testing {

using namespace ptxbench::emulator;

inline constexpr const char* kPtxHeader = ".version 8.7\n.target sm_90a\n.address_size 64\n";  // 3 lines

struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{32, 1, 1}, cluster{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  bool cooperative = false;
  std::uint32_t sm_count = 4, ctas_per_sm = 1;
  Schedule schedule;
  Limits limits{10'000'000, 0, 1};
};

class Machine {
 public:
  // @p text without a header gets kPtxHeader: the first line of the text is line 4 then.
  explicit Machine(std::string_view text) {
    ModuleImage image;
    source = std::string(text.find(".version") == std::string_view::npos ? kPtxHeader : "") + std::string(text);
    image.ptx = source;
    image.source = "test.ptx";
    auto loaded = LoadedModule::load(memory, image);
    if (!loaded) FAIL(loaded.error().to_string());
    module = std::move(*loaded);
  }

  // Zeroed, all of it named "buffer<n>" for reports; every byte is defined.
  std::uint64_t allocate(std::uint64_t bytes) {
    auto address = memory.allocate(bytes);
    REQUIRE(address.has_value());
    return *address;
  }
  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = allocate(values.size() * sizeof(T));
    std::memcpy(memory.host(address, values.size() * sizeof(T)), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> read(std::uint64_t address, std::size_t count) {
    std::vector<T> values(count);
    const std::uint8_t* from = memory.host(address, count * sizeof(T));
    REQUIRE(from != nullptr);
    std::memcpy(values.data(), from, count * sizeof(T));
    return values;
  }

  Result<std::shared_ptr<const Kernel>> decode(std::string_view name = "k") { return module->kernel(name); }
  std::shared_ptr<const Kernel> kernel(std::string_view name = "k") {
    auto decoded = decode(name);
    if (!decoded) FAIL(decoded.error().to_string());
    return *decoded;
  }

  // Parameters: 4- or 8-byte integers and floats in their order, each at the kernel's offset for it.
  template <class... P>
  Run launch(const LaunchShape& shape, P... parameters) {
    return launch_named("k", shape, parameters...);
  }
  template <class... P>
  Run launch_named(std::string_view name, const LaunchShape& shape, P... parameters) {
    last = kernel(name);
    REQUIRE(last->parameter_offsets.size() == sizeof...(P));
    Grid grid;
    grid.kernel = last.get();
    grid.memory = &memory;
    grid.dim = shape.grid;
    grid.block = shape.block;
    grid.cluster_dim = shape.cluster;
    grid.has_cluster = shape.cluster != std::array<std::uint32_t, 3>{1, 1, 1};
    grid.cooperative = shape.cooperative;
    grid.dynamic_shared_bytes = shape.dynamic_shared;
    grid.shared_bytes = kSystemShared + last->static_shared_bytes + shape.dynamic_shared;
    auto buffer = memory.allocate(std::max<std::uint64_t>(last->parameter_bytes, 1), true);
    REQUIRE(buffer.has_value());
    grid.parameters = *buffer;
    [[maybe_unused]] std::size_t at = 0;
    (std::memcpy(memory.host(*buffer + last->parameter_offsets[at++], sizeof(P)), &parameters, sizeof(P)), ...);
    grid.sm_count = shape.sm_count;
    grid.ctas_per_sm = shape.ctas_per_sm;
    grid.schedule = shape.schedule;
    grid.limits = shape.limits;
    Run run = run_grid(grid);
    memory.release(*buffer);
    return run;
  }

  // Executions of the first instruction whose text is @p text.
  OpCount count(const Run& run, std::string_view text) const {
    for (std::size_t i = 0; i < last->info.size(); ++i)
      if (last->info[i].text == text && !last->info[i].family.empty()) return run.counts[i];
    FAIL("no instruction " << text);
    return {};
  }
  std::uint32_t line_of(const Site& site) const {
    return site.op < last->ops.size() ? last->info[last->ops[site.op].info].where.line : 0;
  }

  std::string source;
  Memory memory{std::uint64_t{1} << 30};
  std::unique_ptr<LoadedModule> module;
  std::shared_ptr<const Kernel> last;
};

inline std::string fault_text(const Run& run) {
  if (!run.fault) return "no fault";
  return std::string(fault_name(run.fault->kind)) + ": " + run.fault->message + "\n" + run.fault->detail;
}
#define REQUIRE_CLEAN(run)                           \
  do {                                               \
    INFO(::ptxbench::testing::fault_text(run));      \
    REQUIRE(!(run).fault.has_value());               \
  } while (false)

}  // namespace ptxbench::testing
