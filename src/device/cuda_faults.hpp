// What the driver's results mean for a judged run.
#pragma once

#include "core/cuda_libs.hpp"

#include <ptxbench/device.hpp>

#include <string>

namespace ptxbench {

// The kind of fault that `result` is, and whether the context is lost with it. Kind::other is sticky only for
// results that the driver documents so.
struct FaultClass {
  DeviceFault::Kind kind = DeviceFault::Kind::other;
  bool sticky = false;
  const char* meaning = "";  // one clause for people
};
FaultClass classify_fault(CUresult result) noexcept;

// A result with which nothing more can be done in this context.
bool is_sticky(CUresult result) noexcept;

// `what` says what was being done: "synchronizing", "launching gemm".
DeviceFault make_fault(const CudaDriver& driver, CUresult result, const std::string& what);
// The same as an Error: no_memory for out of memory, else driver.
Error driver_error(const CudaDriver& driver, CUresult result, const std::string& what);

}  // namespace ptxbench
