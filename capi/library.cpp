#include "capi/handles.hpp"

#include <string>

using namespace ptxbench;
using namespace ptxbench::capi;

extern "C" {

uint32_t ptxbench_version(void) { return version(); }
uint32_t ptxbench_abi_version(void) { return PTXBENCH_ABI_VERSION; }

const char* ptxbench_build_info(size_t* len) {
  static constexpr std::string_view kInfo =
      "{\"version\":\"0.1.0\",\"abi_version\":0,\"compiler\":\"" __VERSION__ "\",\"worker\":\"" PTXBENCH_WORKER_PATH "\"}";
  if (len != nullptr) *len = kInfo.size();
  return kInfo.data();
}

const char* ptxbench_status_name(ptxbench_status status) {
  switch (status) {
    case PTXBENCH_OK: return "PTXBENCH_OK";
    case PTXBENCH_E_INVALID_ARGUMENT: return "PTXBENCH_E_INVALID_ARGUMENT";
    case PTXBENCH_E_PARSE: return "PTXBENCH_E_PARSE";
    case PTXBENCH_E_NOT_FOUND: return "PTXBENCH_E_NOT_FOUND";
    case PTXBENCH_E_IO: return "PTXBENCH_E_IO";
    case PTXBENCH_E_NO_DEVICE: return "PTXBENCH_E_NO_DEVICE";
    case PTXBENCH_E_TOOLKIT: return "PTXBENCH_E_TOOLKIT";
    case PTXBENCH_E_DRIVER: return "PTXBENCH_E_DRIVER";
    case PTXBENCH_E_STATE: return "PTXBENCH_E_STATE";
    case PTXBENCH_E_CANCELLED: return "PTXBENCH_E_CANCELLED";
    case PTXBENCH_E_CALLBACK: return "PTXBENCH_E_CALLBACK";
    case PTXBENCH_E_NO_MEMORY: return "PTXBENCH_E_NO_MEMORY";
    case PTXBENCH_E_UNSUPPORTED: return "PTXBENCH_E_UNSUPPORTED";
    case PTXBENCH_E_WORKER: return "PTXBENCH_E_WORKER";
    case PTXBENCH_E_BUSY: return "PTXBENCH_E_BUSY";
    case PTXBENCH_E_INTERNAL: return "PTXBENCH_E_INTERNAL";
    default: return "PTXBENCH_E_UNKNOWN";
  }
}

}  // extern "C"
