// A kernel of a checked-in cubin as an operation of its own, to be counted: it takes one pointer and writes
// to it.
#pragma once

#include "sass/fixtures.hpp"

#include <ptxbench/count.hpp>
#include <ptxbench/sass.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench::testing {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Expects nothing, accepts anything.
class AnyOutput final : public Reference, public Comparator {
 public:
  Result<void> compute(const Workload&, std::span<const HostTensor>, std::span<HostTensor> outputs) override {
    for (HostTensor& output : outputs) std::memset(output.data, 0, output.bytes);
    return {};
  }
  Result<std::vector<OutputCorrectness>> compare(const Workload&, std::span<const HostTensor>,
                                                 std::span<const HostTensor> got) override {
    std::vector<OutputCorrectness> all(got.size());
    for (OutputCorrectness& output : all) output.ok = true;
    return all;
  }
};

// k_elect: in each warp one thread writes 1, the others 0, which of them is the hardware's choice.
class OneElected final : public Reference, public Comparator {
 public:
  Result<void> compute(const Workload&, std::span<const HostTensor>, std::span<HostTensor> outputs) override {
    for (HostTensor& output : outputs) std::memset(output.data, 0, output.bytes);
    return {};
  }
  Result<std::vector<OutputCorrectness>> compare(const Workload&, std::span<const HostTensor>,
                                                 std::span<const HostTensor> got) override {
    std::vector<OutputCorrectness> all(1);
    const auto* values = static_cast<const std::int32_t*>(got[0].data);
    for (std::uint64_t warp = 0; warp < got[0].bytes / 128; ++warp) {
      int ones = 0, zeros = 0;
      for (int lane = 0; lane < 32; ++lane) {
        ones += values[warp * 32 + static_cast<std::uint64_t>(lane)] == 1;
        zeros += values[warp * 32 + static_cast<std::uint64_t>(lane)] == 0;
      }
      if (ones != 1 || zeros != 31) all[0].elements_wrong += 32;
    }
    all[0].ok = all[0].elements_wrong == 0;
    return all;
  }
};

// Launches @p kernel @p launches times on an output "o" of @p elements int32.
inline CountJob probe_job(std::vector<std::uint8_t> cubin, const std::string& kernel, int grid, int block,
                          int launches, std::int64_t elements) {
  Definition definition;
  definition.name = "probe";
  definition.op_type = "probe";
  definition.axes = {{"N", true, elements, {}}};
  definition.outputs = {{"o", std::vector<std::string>{"N"}, DType::int32, {}}};
  CountJob job;
  job.workload.definition = make_definition(std::move(definition)).value();
  job.workload.uuid = "probe";
  job.workload = make_workload(std::move(job.workload)).value();

  std::string steps;
  for (int i = 0; i < launches; ++i)
    steps += (i == 0 ? "" : ",") + std::string(R"({"kernel":")") + kernel + R"(","grid":[)" +
             std::to_string(grid) + R"(],"block":[)" + std::to_string(block) +
             R"(],"args":[{"tensor":"o"}]})";
  Solution& solution = job.candidate.solution;
  solution.name = "probe";
  solution.definition = "probe";
  solution.author = "test";
  solution.spec.language = "cuda";
  solution.spec.target_hardware = {"H200"};
  solution.spec.entry_point = "launch.json::run";
  solution.sources = {{"launch.json", R"({"version":1,"steps":[)" + steps + "]}"}, {"probe.cubin", ""}};
  CompiledModule module;
  module.source = "probe.cubin";
  module.cubin = std::move(cubin);
  job.candidate.modules = {std::move(module)};
  job.seed = 42;
  job.reference.kind = ReferenceKind::callback;
  job.comparator.kind = ComparatorKind::callback;
  return job;
}

inline sass::Word word_at(const std::vector<std::uint8_t>& file, std::uint64_t at) {
  sass::Word word;
  std::memcpy(&word.low, file.data() + at, 8);
  std::memcpy(&word.high, file.data() + at + 8, 8);
  return word;
}

inline sass::Kernel kernel_of(const sass::Cubin& cubin, const std::string& symbol) {
  for (const sass::Kernel& kernel : cubin.kernels)
    if (kernel.symbol == symbol) return kernel;
  return {};
}

// Opcodes of @p symbol from its first instruction to its first EXIT: what each warp of straight-line code
// executes.
inline std::vector<std::string> straight_line(const std::vector<std::uint8_t>& file,
                                              const std::string& symbol) {
  const sass::Cubin cubin = sass::read_cubin(file).value();
  const sass::Kernel kernel = kernel_of(cubin, symbol);
  std::vector<std::string> opcodes;
  for (std::uint64_t at = 0; at + 16 <= kernel.code_bytes; at += 16) {
    opcodes.push_back(sass::decode(cubin.sm, word_at(file, kernel.code_offset + at)).mnemonic);
    if (opcodes.back() == "EXIT") break;
  }
  return opcodes;
}

}  // namespace ptxbench::testing
