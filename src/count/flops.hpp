// Floating-point operations of what was executed, and the two shares and the verdict that follow from them.
#pragma once

#include <ptxbench/emulator.hpp>
#include <ptxbench/sass.hpp>
#include <ptxbench/trace.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ptxbench {

// As sass::flops_of, from the form of a PTX instruction:
// "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16".
sass::Flops flops_of_ptx(std::string_view form, std::string_view family);

// Adds up what was executed, by kernel.
class FlopTally {
 public:
  void add(const std::string& kernel, const std::string& opcode, sass::Flops flops, std::uint64_t threads);
  // Fills block.flops. `task_flops`: of the workload, where it is known.
  void fill(std::optional<double> task_flops, CountsBlock& block) const;

 private:
  struct Sum {
    std::uint64_t arch_mma = 0, mma_sync = 0, fp32 = 0, fp64 = 0, half = 0;
    std::string arch_mma_unknown, mma_sync_unknown, unknown;  // an opcode whose operations are not known
  };
  static FlopCount count_of(const std::string& kernel, const Sum& sum);
  std::map<std::string, Sum> kernels_;
};

// Fills block.architecture from its opcodes (those of families), and flops. `sm`: compute capability, 90,
// 100, ...
void judge_architecture(int sm, CountsBlock& block);

}  // namespace ptxbench
