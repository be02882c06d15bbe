// The one place where CUDA's libraries are opened, at run time: each behind a struct of function pointers
// whose types are those of CUDA's headers. The library loads, and everything that needs no GPU works, where
// none of them is there; what is missing is named, with the places that were searched.
//
// Members have the functions' names, so `driver->cuMemAlloc(&p, n)` reads like the plain call. (cuda.h's
// macros turn both sides into cuMemAlloc_v2, and so does the name that is looked up.) A table is immutable
// and may be used from many threads; libraries are never unloaded, because the driver and NVRTC do not
// survive it.
#pragma once

#include "core/cudnn_api.hpp"
#include "core/toolkit_search.hpp"

#include <ptxbench/core.hpp>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_profiler_target.h>
#include <cupti_result.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>
#include <cupti_version.h>
#include <nvrtc.h>

#include <cstdint>
#include <memory>
#include <string>

namespace ptxbench {

// A library that is open.
struct Dylib {
  void* handle = nullptr;
  std::string path;                               // of the file, as the loader knows it
  void* symbol(const char* name) const noexcept;  // null where it has none
};
// Looks for `names` (e.g. {"libnvrtc.so.13", "libnvrtc.so.12"}), first in every folder of the search, then by
// the loader; `loader_first` turns that round. Errors: ErrorCode::toolkit, naming `what` and all places.
Result<Dylib> open_dylib(const std::string& what, const std::vector<std::string>& names,
                         const ToolkitSearch& search, bool loader_first = false);

// clang-format off
#define PTXBENCH_DRIVER_FUNCTIONS(X)                                                                          \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString)                                       \
  X(cuDeviceGet) X(cuDeviceGetCount) X(cuDeviceGetName) X(cuDeviceGetAttribute) X(cuDeviceGetUuid)            \
  X(cuDeviceTotalMem) X(cuDeviceGetPCIBusId)                                                                  \
  X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuDevicePrimaryCtxSetFlags)                      \
  X(cuCtxDestroy) X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxPushCurrent) X(cuCtxPopCurrent)                \
  X(cuCtxGetDevice) X(cuCtxSynchronize) X(cuCtxSetLimit) X(cuCtxGetLimit)                                     \
  X(cuModuleLoadData) X(cuModuleLoadDataEx) X(cuModuleUnload) X(cuModuleGetFunction) X(cuModuleGetGlobal)     \
  X(cuFuncGetAttribute) X(cuFuncSetAttribute) X(cuFuncSetCacheConfig)                                         \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) X(cuOccupancyMaxActiveClusters)                              \
  X(cuOccupancyMaxPotentialClusterSize)                                                                       \
  X(cuLaunchKernel) X(cuLaunchKernelEx) X(cuLaunchHostFunc)                                                   \
  X(cuStreamCreate) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent)           \
  X(cuStreamGetCtx) X(cuStreamWriteValue32) X(cuStreamWaitValue32)                                            \
  X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventSynchronize) X(cuEventQuery)                   \
  X(cuMemAlloc) X(cuMemFree) X(cuMemGetInfo) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostGetDevicePointer)  \
  X(cuMemHostRegister) X(cuMemHostUnregister)                                                                 \
  X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyDtoD)                                                             \
  X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync)                                              \
  X(cuMemsetD8) X(cuMemsetD16) X(cuMemsetD32) X(cuMemsetD8Async) X(cuMemsetD16Async) X(cuMemsetD32Async)      \
  X(cuTensorMapEncodeTiled) X(cuTensorMapEncodeIm2col)
// Newer than the oldest driver that works; null where the driver has none.
#define PTXBENCH_DRIVER_OPTIONAL_FUNCTIONS(X) \
  X(cuFuncGetParamInfo) X(cuFuncGetName) X(cuFuncGetModule) X(cuModuleGetFunctionCount) X(cuModuleEnumerateFunctions) \
  X(cuCtxResetPersistingL2Cache)

#define PTXBENCH_NVRTC_FUNCTIONS(X)                                                                           \
  X(nvrtcVersion) X(nvrtcGetErrorString) X(nvrtcGetNumSupportedArchs) X(nvrtcGetSupportedArchs)               \
  X(nvrtcCreateProgram) X(nvrtcDestroyProgram) X(nvrtcCompileProgram)                                         \
  X(nvrtcGetPTXSize) X(nvrtcGetPTX) X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN)                                     \
  X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog) X(nvrtcAddNameExpression) X(nvrtcGetLoweredName)

#define PTXBENCH_CUPTI_FUNCTIONS(X)                                                                           \
  X(cuptiGetVersion) X(cuptiGetResultString) X(cuptiSubscribe) X(cuptiUnsubscribe) X(cuptiEnableDomain)       \
  X(cuptiProfilerInitialize) X(cuptiProfilerDeInitialize)                                                     \
  X(cuptiProfilerDeviceSupported) X(cuptiDeviceGetChipName)                                                   \
  X(cuptiSassMetricsGetNumOfMetrics) X(cuptiSassMetricsGetMetrics) X(cuptiSassMetricsGetProperties)           \
  X(cuptiSassMetricsSetConfig) X(cuptiSassMetricsUnsetConfig) X(cuptiSassMetricsEnable)                       \
  X(cuptiSassMetricsDisable) X(cuptiSassMetricsGetDataProperties) X(cuptiSassMetricsFlushData)
#define PTXBENCH_CUPTI_OPTIONAL_FUNCTIONS(X) X(cuptiGetErrorMessage)

#define PTXBENCH_CUBLASLT_FUNCTIONS(X)                                                                        \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtGetVersion) X(cublasLtGetStatusName)                         \
  X(cublasLtGetStatusString) X(cublasLtMatmul)                             \
  X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute)                  \
  X(cublasLtMatmulDescGetAttribute) X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy)              \
  X(cublasLtMatrixLayoutSetAttribute) X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy)    \
  X(cublasLtMatmulPreferenceSetAttribute) X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmulAlgoCheck)        \
  X(cublasLtMatmulAlgoConfigGetAttribute)

#define PTXBENCH_CUBLAS_FUNCTIONS(X)                                                                          \
  X(cublasCreate) X(cublasDestroy) X(cublasGetVersion) X(cublasSetStream) X(cublasSetWorkspace)               \
  X(cublasSetMathMode)

// Without their prefix: cudnn_api.hpp has their types.
#define PTXBENCH_CUDNN_FUNCTIONS(X)                                                                           \
  X(GetVersion) X(GetErrorString) X(GetLastErrorString) X(Create) X(Destroy) X(SetStream)                     \
  X(BackendCreateDescriptor) X(BackendDestroyDescriptor) X(BackendSetAttribute) X(BackendGetAttribute)        \
  X(BackendFinalize) X(BackendExecute)

#define PTXBENCH_DECLARE_FUNCTION(name) decltype(&::name) name = nullptr;
// clang-format on

// libcuda. Opened by the loader first, because a driver belongs to the machine and not to a toolkit; a
// toolkit's `stubs` are never taken. Errors: ErrorCode::no_device where it is missing, ErrorCode::toolkit
// where it is too old, with the functions that it lacks. Opening does not call cuInit.
struct CudaDriver {
  PTXBENCH_DRIVER_FUNCTIONS(PTXBENCH_DECLARE_FUNCTION)
  PTXBENCH_DRIVER_OPTIONAL_FUNCTIONS(PTXBENCH_DECLARE_FUNCTION)
  // The forms that every driver since CUDA 11 has, whichever the headers prefer.
  CUresult (*event_elapsed_time)(float* milliseconds, CUevent start, CUevent end) = nullptr;
  CUresult (*ctx_create)(CUcontext* context, unsigned int flags, CUdevice device) = nullptr;

  Dylib library;
  int version = 0;                   // of the CUDA that it supports, e.g. 13000; 0 where it did not say
  std::string version_text() const;  // "13.0"
  // "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"
  std::string error_text(CUresult result) const;

  static Result<std::shared_ptr<const CudaDriver>> open(const ToolkitSearch& search = {});
};

// libnvrtc. Errors: ErrorCode::toolkit, also where libnvrtc-builtins is not where NVRTC looks for it.
struct Nvrtc {
  PTXBENCH_NVRTC_FUNCTIONS(PTXBENCH_DECLARE_FUNCTION)
  // Absent before CUDA 12.9.
  nvrtcResult (*set_flow_callback)(nvrtcProgram program, int (*callback)(void*, void*),
                                   void* payload) = nullptr;

  Dylib library;
  std::string builtins_path;
  int major = 0, minor = 0;
  std::string version_text() const;  // "13.0"

  static Result<std::shared_ptr<const Nvrtc>> open(const ToolkitSearch& search = {});
};

// libcupti: the version, and what counting by SASS metrics needs.
struct Cupti {
  PTXBENCH_CUPTI_FUNCTIONS(PTXBENCH_DECLARE_FUNCTION)
  PTXBENCH_CUPTI_OPTIONAL_FUNCTIONS(PTXBENCH_DECLARE_FUNCTION)

  Dylib library;
  std::uint32_t version = 0;  // CUPTI_API_VERSION, e.g. 130001
  std::string error_text(CUptiResult result) const;

  static Result<std::shared_ptr<const Cupti>> open(const ToolkitSearch& search = {});
};

// libcublasLt and, opened with it, libcublas.
struct CublasLt {
  PTXBENCH_CUBLASLT_FUNCTIONS(PTXBENCH_DECLARE_FUNCTION)

  Dylib library;
  std::size_t version = 0;           // e.g. 130002
  std::string version_text() const;  // "13.0.2"

  static Result<std::shared_ptr<const CublasLt>> open(const ToolkitSearch& search = {});
};

struct Cublas {
  PTXBENCH_CUBLAS_FUNCTIONS(PTXBENCH_DECLARE_FUNCTION)
  // Spelled out because the header overloads the name.
  cublasStatus_t (*gemm_ex)(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                            int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                            const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
                            cudaDataType c_type, int ldc, cublasComputeType_t compute_type,
                            cublasGemmAlgo_t algo) = nullptr;

  Dylib library;

  static Result<std::shared_ptr<const Cublas>> open(const ToolkitSearch& search = {});
};

// libcudnn 9.6 or newer: its graph API. Older ones leave it to the caller to clear what the backward pass sums into.
struct Cudnn {
#define PTXBENCH_DECLARE_CUDNN_FUNCTION(name) cudnn::name* cudnn##name = nullptr;
  PTXBENCH_CUDNN_FUNCTIONS(PTXBENCH_DECLARE_CUDNN_FUNCTION)

  Dylib library;
  std::size_t version = 0;           // e.g. 91300
  std::string version_text() const;  // "9.13.0"

  // Errors: ErrorCode::toolkit where it is missing, too old, or not whole.
  static Result<std::shared_ptr<const Cudnn>> open(const ToolkitSearch& search = {});
};

}  // namespace ptxbench
