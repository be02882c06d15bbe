// Loading modules, and what is in them.
#include "device/cuda_device.hpp"
#include "device/cuda_faults.hpp"
#include "device/kernel_info.hpp"
#include "device/ptx_globals.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>
#include <cstring>

namespace ptxbench {
namespace {

// Whose fault it is that a module does not load.
ErrorCode load_error_code(CUresult result) {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
    case CUDA_ERROR_NOT_FOUND:
      return ErrorCode::invalid_argument;
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_JIT_COMPILATION_DISABLED:
      return ErrorCode::toolkit;
    case CUDA_ERROR_OUT_OF_MEMORY:
      return ErrorCode::no_memory;
    default:
      return ErrorCode::driver;
  }
}

// What the driver tells of a kernel that it assembled itself.
KernelInfo from_driver(const CudaDriver& driver, CUfunction function, const std::string& symbol) {
  KernelInfo info;
  info.symbol = symbol;
  const auto attribute = [&](CUfunction_attribute which) {
    int value = 0;
    return driver.cuFuncGetAttribute(&value, which, function) == CUDA_SUCCESS ? value : 0;
  };
  info.registers = attribute(CU_FUNC_ATTRIBUTE_NUM_REGS);
  info.static_shared_bytes = static_cast<std::uint64_t>(attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  info.explicit_cluster = attribute(CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET) != 0;
  if (const int width = attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH); width > 0)
    info.required_cluster = {
        static_cast<std::uint32_t>(width),
        static_cast<std::uint32_t>(std::max(1, attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT))),
        static_cast<std::uint32_t>(std::max(1, attribute(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH)))};
  if (driver.cuFuncGetParamInfo == nullptr) return info;
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0, size = 0;
    if (driver.cuFuncGetParamInfo(function, i, &offset, &size) != CUDA_SUCCESS) break;
    info.parameters.push_back(
        {static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size), std::nullopt});
    info.parameter_bytes = std::max(info.parameter_bytes, static_cast<std::uint32_t>(offset + size));
  }
  return info;
}

}  // namespace

Result<CudaDevice::Module*> CudaDevice::module_at(DeviceModule module) {
  if (module >= modules_.size() || !modules_[module])
    return make_error(ErrorCode::invalid_argument, "no such module: " + std::to_string(module));
  return &*modules_[module];
}

Result<DeviceModule> CudaDevice::load(const ModuleImage& image) {
  PTXBENCH_TRY(may_wait("loading a module"));
  if (image.cubin.empty() && image.ptx.empty())
    return make_error(ErrorCode::invalid_argument,
                      image.source + ": there is neither a cubin nor PTX to load");
  Current current(*this);
  Module module;
  module.source = image.source;
  module.lowered = image.lowered;

  std::string ptx;  // the driver wants a NUL behind it
  const void* data = image.cubin.data();
  if (image.cubin.empty()) {
    ptx.assign(image.ptx);
    data = ptx.c_str();
  }
  std::string log(16384, '\0');
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const CUresult result = driver_->cuModuleLoadDataEx(&module.handle, data, 2, options, values);
  if (result != CUDA_SUCCESS) {
    log.resize(std::strlen(log.c_str()));
    while (!log.empty() && (log.back() == '\n' || log.back() == ' ')) log.pop_back();
    Error error = failed(result, image.source + ": the driver cannot load the module");
    if (!log.empty()) error.message += "\n" + log;
    error.code = load_error_code(result);
    error.where.file = image.source;
    if (error.code == ErrorCode::invalid_argument) error.rule = "module_load";
    return error;
  }
  Result<void> found = find_functions(module, image);
  if (found) found = find_globals(module, image);
  if (!found) {
    driver_->cuModuleUnload(module.handle);
    return std::move(found).error();
  }
  reserve_local_memory(module);
  modules_.push_back(std::move(module));
  return static_cast<DeviceModule>(modules_.size() - 1);
}

Result<void> CudaDevice::find_functions(Module& module, const ModuleImage& image) {
  std::vector<Function> kernels;
  const auto add = [&](KernelInfo info, std::uint64_t local_bytes, bool grid_counts_clusters) {
    Function function;
    function.info = std::move(info);
    function.local_bytes = local_bytes;
    function.grid_counts_clusters = grid_counts_clusters;
    kernels.push_back(std::move(function));
  };
  if (!image.cubin.empty()) {
    PTXBENCH_TRY_ASSIGN(const sass::Cubin cubin, sass::read_cubin(image.cubin));
    for (const sass::Kernel& kernel : cubin.kernels)
      add(kernel_info(kernel), kernel.local_bytes, kernel.blocks_are_clusters);
  } else {
    if (driver_->cuModuleGetFunctionCount == nullptr || driver_->cuModuleEnumerateFunctions == nullptr ||
        driver_->cuFuncGetName == nullptr || driver_->cuFuncGetParamInfo == nullptr)
      return make_error(
          ErrorCode::toolkit,
          module.source + ": this driver (CUDA " + driver_->version_text() +
              ") does not tell the kernels of PTX that it assembled; CUDA 12.4 does, and ptxas makes it "
              "unnecessary");
    unsigned count = 0;
    if (const CUresult result = driver_->cuModuleGetFunctionCount(&count, module.handle);
        result != CUDA_SUCCESS)
      return failed(result, "counting the kernels of " + module.source);
    std::vector<CUfunction> handles(count);
    if (const CUresult result = driver_->cuModuleEnumerateFunctions(handles.data(), count, module.handle);
        result != CUDA_SUCCESS)
      return failed(result, "listing the kernels of " + module.source);
    for (CUfunction handle : handles) {
      const char* name = nullptr;
      int local_bytes = 0;
      if (driver_->cuFuncGetName(&name, handle) != CUDA_SUCCESS || name == nullptr) continue;
      driver_->cuFuncGetAttribute(&local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, handle);
      add(from_driver(*driver_, handle, name), static_cast<std::uint64_t>(std::max(0, local_bytes)),
          ptx_blocks_are_clusters(image.ptx, name));
    }
  }
  // Modules load lazily by default, and loading a kernel at its first launch may wait for the whole context,
  // behind a closed gate for ever. So all are loaded now.
  const auto load_now = reinterpret_cast<CUresult (*)(CUfunction)>(driver_->library.symbol("cuFuncLoad"));
  for (Function& function : kernels) {
    const std::string& symbol = function.info.symbol;
    if (const CUresult result = driver_->cuModuleGetFunction(&function.handle, module.handle, symbol.c_str());
        result != CUDA_SUCCESS)
      return failed(result, "finding the kernel " + symbol + " of " + module.source);
    if (load_now != nullptr)
      if (const CUresult result = load_now(function.handle); result != CUDA_SUCCESS)
        return failed(result, "loading the kernel " + symbol + " of " + module.source);
    // Also makes drivers without cuFuncLoad load it.
    if (driver_->cuFuncGetAttribute(&function.max_dynamic_shared,
                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    function.handle) != CUDA_SUCCESS)
      function.max_dynamic_shared = 0;
    module.order.push_back(symbol);
    module.functions.emplace(module.order.back(), std::move(function));
  }
  return {};
}

void CudaDevice::reserve_local_memory(const Module& module) {
  std::uint64_t most = 0;
  for (const auto& [name, function] : module.functions) most = std::max(most, function.local_bytes);
  // Room is made for every thread that can be resident: 8 KiB each are 2 GiB on an H200. Beyond that the
  // first launch does it.
  if (most <= local_bytes_ready_ || most > 8192) return;
  if (driver_->cuCtxSetLimit(CU_LIMIT_STACK_SIZE, most) == CUDA_SUCCESS) local_bytes_ready_ = most;
}

Result<void> CudaDevice::find_globals(Module& module, const ModuleImage& image) {
  struct Candidate {
    std::string name;
    bool writable = false;
  };
  std::vector<Candidate> candidates;
  if (!image.cubin.empty()) {
    PTXBENCH_TRY_ASSIGN(const sass::Cubin cubin, sass::read_cubin(image.cubin));
    for (const sass::Global& global : cubin.globals)
      candidates.push_back({global.symbol, global.writable && global.bytes != 0});
  } else {
    for (std::string& name : ptx_globals(image.ptx)) candidates.push_back({std::move(name), false});
  }
  for (const auto& [name, writable] : candidates) {
    CUdeviceptr address = 0;
    std::size_t bytes = 0;
    const CUresult result = driver_->cuModuleGetGlobal(&address, &bytes, module.handle, name.c_str());
    // The driver finds internal names as well; what it does not find could not be restored between runs.
    if (result == CUDA_ERROR_NOT_FOUND && writable)
      return make_error(ErrorCode::unsupported, module.source +
                                                    ": the driver does not tell where the global " + name +
                                                    " is, so it could carry state from run to run");
    if (result == CUDA_ERROR_NOT_FOUND) continue;
    if (result != CUDA_SUCCESS) return failed(result, "finding the global " + name + " of " + module.source);
    module.globals.push_back({name, bytes});
  }
  return {};
}

void CudaDevice::unload(DeviceModule module) noexcept {
  if (module >= modules_.size() || !modules_[module] || lost_) return;
  raise_flag();  // unloading waits for what is queued
  Current current(*this);
  driver_->cuModuleUnload(modules_[module]->handle);
  modules_[module].reset();
}

Result<ModuleInfo> CudaDevice::describe(DeviceModule module) {
  PTXBENCH_TRY_ASSIGN(const Module* m, module_at(module));
  ModuleInfo info;
  info.source = m->source;
  info.lowered = m->lowered;
  for (const std::string& symbol : m->order) info.kernels.push_back(m->functions.find(symbol)->second.info);
  info.globals = m->globals;
  return info;
}

Result<DeviceBuffer> CudaDevice::global(DeviceModule module, std::string_view symbol) {
  PTXBENCH_TRY(usable("finding a global"));
  PTXBENCH_TRY_ASSIGN(const Module* m, module_at(module));
  Current current(*this);
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  const CUresult result =
      driver_->cuModuleGetGlobal(&address, &bytes, m->handle, std::string(symbol).c_str());
  if (result == CUDA_ERROR_NOT_FOUND)
    return make_error(ErrorCode::not_found, m->source + " has no global " + std::string(symbol));
  if (result != CUDA_SUCCESS) return failed(result, "finding the global " + std::string(symbol));
  return DeviceBuffer{address, bytes};
}

}  // namespace ptxbench
