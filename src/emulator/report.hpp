// What launches found and counted, added up until somebody asks.
#pragma once

#include "emulator/run.hpp"

#include <ptxbench/emulator.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ptxbench::emulator {

class Report {
 public:
  // Of one launch of @p kernel, which it may keep.
  void add(const std::shared_ptr<const Kernel>& kernel, const Run& run);
  EmulatorReport build() const;

 private:
  struct Executed {
    std::shared_ptr<const Kernel> kernel;
    std::vector<OpCount> counts;  // by Kernel::info
  };
  std::vector<Executed> kernels_;  // in the order of their first launches
  std::vector<EmulatorFinding> faults_, remarks_;
  std::uint64_t tma_load_bytes_ = 0, tma_store_bytes_ = 0, bulk_bytes_ = 0, steps_ = 0;
  std::string output_;
  bool output_cut_ = false, asynchronous_ = false, synchronised_ = false;
};

// A fault as the judge is told: nothing of it is sticky, the emulator goes on.
DeviceFault device_fault(const Kernel& kernel, const Fault& fault);

// "gemm_kernel at CTA 3, warp 2, lane 5: ld.global.f32 (PTX line 120, gemm.cu:33)"
std::string place_text(const Kernel& kernel, const Site& site);

}  // namespace ptxbench::emulator
