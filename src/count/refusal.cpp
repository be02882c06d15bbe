// Why counts are unavailable, in words that say what to do.
#include "count/sass_counter.hpp"

namespace ptxbench {

std::string_view count_unavailable_name(CountUnavailable::Kind kind) noexcept {
  switch (kind) {
    case CountUnavailable::Kind::permission:
      return "permission";
    case CountUnavailable::Kind::library_missing:
      return "library_missing";
    case CountUnavailable::Kind::other_profiler:
      return "other_profiler";
    case CountUnavailable::Kind::unsupported:
      return "unsupported";
    case CountUnavailable::Kind::no_cubin:
      return "no_cubin";
    case CountUnavailable::Kind::hang:
      return "hang";
    case CountUnavailable::Kind::fault:
      return "fault";
    case CountUnavailable::Kind::plan:
      return "plan";
    default:
      return "driver";
  }
}

CountUnavailable cupti_refusal(CUptiResult result, std::string_view call, std::string_view text) {
  using Kind = CountUnavailable::Kind;
  const std::string said = std::string(call) + ": " + std::string(text);
  switch (result) {
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return {Kind::permission, "the driver lets administrators only read performance counters (" + said +
                                    "): run with CAP_SYS_ADMIN, or load the driver's module with "
                                    "NVreg_RestrictProfilingToAdminUsers=0 "
                                    "(https://developer.nvidia.com/ERR_NVGPUCTRPERM)"};
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return {Kind::permission, "the virtual GPU may not be profiled (" + said +
                                    "): its administrator has to enable profiling for it"};
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_OLD_PROFILER_API_INITIALIZED:
      return {Kind::other_profiler,
              "another profiler or debugger is attached to the process or holds the GPU's counters (" + said +
                  "): end it (ncu, nsys, compute-sanitizer, DCGM's profiling), or run without it"};
    case CUPTI_ERROR_NOT_SUPPORTED:
    case CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED:
    case CUPTI_ERROR_INVALID_DEVICE:
      return {Kind::unsupported, "this device has no SASS metrics, or this CUPTI does not know it (" + said +
                                     "): a CUPTI of the driver's CUDA version or newer may"};
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      return {Kind::unsupported, "a virtual GPU of this kind cannot be profiled (" + said + ")"};
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return {Kind::unsupported, "a GPU in confidential-compute mode cannot be profiled (" + said + ")"};
    case CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED:
      return {Kind::unsupported, "a GPU of this kind (CMP) cannot be profiled (" + said + ")"};
    case CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED:
      return {Kind::unsupported, "a MIG slice cannot be profiled this way (" + said + "): use a whole GPU"};
    default:
      return {Kind::driver, "counting was refused (" + said + ")"};
  }
}

}  // namespace ptxbench
