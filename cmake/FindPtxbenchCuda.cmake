# Finds the headers of a CUDA toolkit (cuda.h, nvrtc.h, cublasLt.h, cupti.h). No CUDA library is linked: they are
# opened at run time. Looks in a toolkit, or in the folder where NVIDIA's PyPI wheels were unpacked
# (cmake/quickstart.sh puts them into <build tree's parent>/cuda-wheels).
#
# Variables: PTXBENCH_CUDA_HOME, a folder with include/ (a toolkit, or the wheels' nvidia/cu13).
# Target: PtxbenchCuda::headers
set(_ptxbench_cuda_hints ${PTXBENCH_CUDA_HOME} $ENV{PTXBENCH_CUDA_HOME} $ENV{CUDA_HOME} $ENV{CUDA_PATH})
if(NOT PTXBENCH_CUDA_HOME)
  list(APPEND _ptxbench_cuda_hints ${CUDAToolkit_ROOT} /usr/local/cuda ${CMAKE_SOURCE_DIR}/build/cuda-wheels/nvidia/cu13)
endif()
find_path(PTXBENCH_CUDA_INCLUDE_DIR cuda.h HINTS ${_ptxbench_cuda_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_path(PTXBENCH_NVRTC_INCLUDE_DIR nvrtc.h HINTS ${_ptxbench_cuda_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_path(PTXBENCH_CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${_ptxbench_cuda_hints} PATH_SUFFIXES include NO_DEFAULT_PATH)
find_path(PTXBENCH_CUPTI_INCLUDE_DIR cupti.h HINTS ${_ptxbench_cuda_hints}
          PATH_SUFFIXES include extras/CUPTI/include NO_DEFAULT_PATH)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(PtxbenchCuda REQUIRED_VARS PTXBENCH_CUDA_INCLUDE_DIR PTXBENCH_NVRTC_INCLUDE_DIR
  PTXBENCH_CUBLASLT_INCLUDE_DIR PTXBENCH_CUPTI_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "set PTXBENCH_CUDA_HOME to a CUDA toolkit, or run cmake/quickstart.sh, which fetches NVIDIA's wheels")
if(PtxbenchCuda_FOUND AND NOT TARGET PtxbenchCuda::headers)
  add_library(PtxbenchCuda::headers INTERFACE IMPORTED)
  set(_ptxbench_cuda_dirs ${PTXBENCH_CUDA_INCLUDE_DIR} ${PTXBENCH_NVRTC_INCLUDE_DIR} ${PTXBENCH_CUBLASLT_INCLUDE_DIR}
      ${PTXBENCH_CUPTI_INCLUDE_DIR})
  list(REMOVE_DUPLICATES _ptxbench_cuda_dirs)
  set_target_properties(PtxbenchCuda::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_ptxbench_cuda_dirs}")
endif()
mark_as_advanced(PTXBENCH_CUDA_INCLUDE_DIR PTXBENCH_NVRTC_INCLUDE_DIR PTXBENCH_CUBLASLT_INCLUDE_DIR PTXBENCH_CUPTI_INCLUDE_DIR)
