#include "device/cuda_faults.hpp"

namespace ptxbench {

FaultClass classify_fault(CUresult result) noexcept {
  using Kind = DeviceFault::Kind;
  switch (static_cast<int>(result)) {
    // What a kernel did. The driver documents each of these as leaving the context unusable.
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return {Kind::illegal_address, true,
              "a kernel loaded from or stored to an address that is not allocated"};
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return {Kind::misaligned, true,
              "a kernel used an address that is not aligned as its instruction requires"};
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
      return {Kind::illegal_instruction, true,
              "a kernel met an illegal instruction, or an instruction with operands that it may not have"};
    case CUDA_ERROR_ASSERT:
      return {Kind::trap, true, "an assertion of a kernel failed"};
    case CUDA_ERROR_LAUNCH_FAILED:
      // __trap(), and faults of the asynchronous engines (a bad tensor map, a bad shared address).
      return {Kind::trap, true,
              "a kernel trapped (__trap), or an asynchronous unit met bad operands (a tensor map, a "
              "descriptor, a "
              "shared memory address)"};
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
      return {Kind::launch_failed, true, "a kernel's call stack is corrupted or overflowed"};
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
      return {Kind::launch_failed, true, "a kernel used an address of the wrong state space"};
    case CUDA_ERROR_INVALID_PC:
      return {Kind::launch_failed, true, "a kernel's program counter left its code"};
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return {Kind::timeout, true, "the driver's watchdog ended a kernel that ran too long"};
    case CUDA_ERROR_ECC_UNCORRECTABLE:
      return {Kind::hardware, true, "the device's memory has an uncorrectable error"};
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
      return {Kind::hardware, true, "an uncorrectable NVLink error"};
    case CUDA_ERROR_CONTAINED:
      return {Kind::hardware, true, "a contained hardware error"};
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
      return {Kind::launch_failed, true, "a kernel ended without freeing its tensor memory"};
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_MPS_CLIENT_TERMINATED:
      return {Kind::hardware, true, "the context is gone"};
    case CUDA_ERROR_EXTERNAL_DEVICE:
      return {Kind::hardware, true, "an error of an external device"};

    // What a launch was refused for; the context stays good.
    case CUDA_ERROR_INVALID_VALUE:
      return {Kind::launch_refused, false,
              "the driver refuses the launch: an argument, shape or size is out of range"};
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return {Kind::launch_refused, false,
              "the launch needs more threads, registers or shared memory than a CTA can have"};
    case CUDA_ERROR_INVALID_CLUSTER_SIZE:
      return {Kind::launch_refused, false,
              "a cluster of this size does not fit the device with what each CTA needs"};
    case CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
      return {Kind::launch_refused, false,
              "a cooperative grid must be resident as a whole, and this one does not fit"};
    case CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING:
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_NOT_PERMITTED:
    case CUDA_ERROR_NOT_SUPPORTED:
      return {Kind::launch_refused, false, "the driver refuses the launch"};
    case CUDA_ERROR_OUT_OF_MEMORY:
      return {Kind::out_of_memory, false, "the device's memory is used up"};
    default:
      return {Kind::other, false, "an unexpected result of the driver"};
  }
}

bool is_sticky(CUresult result) noexcept { return classify_fault(result).sticky; }

namespace {
std::string name_of(const CudaDriver& driver, CUresult result) {
  const std::string text = driver.error_text(result);
  return text.substr(0, text.find(':'));
}
}  // namespace

DeviceFault make_fault(const CudaDriver& driver, CUresult result, const std::string& what) {
  const FaultClass c = classify_fault(result);
  DeviceFault fault;
  fault.kind = c.kind;
  fault.sticky = c.sticky;
  fault.code = static_cast<std::int32_t>(result);
  fault.name = name_of(driver, result);
  fault.message = what + ": " + driver.error_text(result);
  if (c.kind != DeviceFault::Kind::other || c.sticky) fault.message += " (" + std::string(c.meaning) + ")";
  return fault;
}

Error driver_error(const CudaDriver& driver, CUresult result, const std::string& what) {
  const ErrorCode code = result == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::no_memory : ErrorCode::driver;
  return make_error(code, what + ": " + driver.error_text(result));
}

}  // namespace ptxbench
