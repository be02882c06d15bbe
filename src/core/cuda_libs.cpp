#include "core/cuda_libs.hpp"

#include <dlfcn.h>
#include <link.h>

#include <exception>
#include <filesystem>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

std::string path_of(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr &&
      *map->l_name != 0)
    return map->l_name;
  return asked;
}

// Opens one file or soname; `why` collects the loader's words where a file is there and does not load.
bool try_open(const std::string& name, Dylib& out) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return false;
  out.handle = handle;
  out.path = path_of(handle, name);
  return true;
}

std::string last_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown error of the loader" : text;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Loads `name` from the folder of `library`, so that a later dlopen by soname inside that library finds it,
// also where the folder is not on the loader's path.
std::string preload_beside(const Dylib& library, const std::vector<std::string>& names) {
  const fs::path folder = fs::path(library.path).parent_path();
  for (const std::string& name : names) {
    Dylib other;
    const std::string path = (folder / name).string();
    if (exists(path) && try_open(path, other)) return other.path;
  }
  return {};
}

// Fills `target` from `library`; the names that it lacks go to `missing`.
template <class Function>
void load(const Dylib& library, const char* name, Function& target, std::string* missing) {
  target = reinterpret_cast<Function>(library.symbol(name));
  if (target == nullptr && missing != nullptr) *missing += (missing->empty() ? "" : ", ") + std::string(name);
}

#define PTXBENCH_STRING_(x) #x
#define PTXBENCH_STRING(x) PTXBENCH_STRING_(x)
#define PTXBENCH_LOAD_REQUIRED(name) load(table->library, PTXBENCH_STRING(name), table->name, &missing);
#define PTXBENCH_LOAD_OPTIONAL(name) load(table->library, PTXBENCH_STRING(name), table->name, nullptr);

Error too_old(const std::string& what, const Dylib& library, const std::string& missing,
              const std::string& need) {
  return make_error(ErrorCode::toolkit,
                    what + " at " + library.path + " is too old: it lacks " + missing + "; " + need);
}

std::vector<std::string> versions(const std::string& stem, std::initializer_list<int> numbers) {
  std::vector<std::string> names;
  for (int number : numbers) names.push_back(stem + ".so." + std::to_string(number));
  names.push_back(stem + ".so");
  return names;
}

// What an internal exception (bad_alloc, a file system error) means for a caller.
Error from_exception(const std::string& what, const std::exception& e) {
  return make_error(ErrorCode::internal, "opening " + what + ": " + e.what());
}

template <class T, class Open>
Result<std::shared_ptr<const T>> guarded(const char* what, Open&& open) {
  try {
    return open();
  } catch (const std::exception& e) {
    return from_exception(what, e);
  }
}

}  // namespace

void* Dylib::symbol(const char* name) const noexcept {
  return handle == nullptr ? nullptr : ::dlsym(handle, name);
}

Result<Dylib> open_dylib(const std::string& what, const std::vector<std::string>& names,
                         const ToolkitSearch& search, bool loader_first) {
  Dylib library;
  std::string broken;  // files that are there and do not load
  if (!search.file.empty()) {
    if (try_open(search.file, library)) return library;
    return make_error(ErrorCode::toolkit, what + " cannot be opened: " + last_error());
  }
  const auto by_loader = [&] {
    for (const std::string& name : names)
      if (try_open(name, library)) return true;
    return false;
  };
  if (search.loader && loader_first && by_loader()) return library;
  for (const ToolkitPlace& place : toolkit_places(search))
    for (const std::string& directory : toolkit_directories(place.root, ToolkitPart::libraries))
      for (const std::string& name : names) {
        const std::string path = directory + "/" + name;
        if (!exists(path)) continue;
        if (try_open(path, library)) return library;
        broken += "; " + last_error();
      }
  if (search.loader && !loader_first && by_loader()) return library;
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return make_error(ErrorCode::toolkit, what + " not found (" + list + "); searched: " +
                                            describe_places(search, ToolkitPart::libraries) + broken);
}

Result<std::shared_ptr<const CudaDriver>> CudaDriver::open(const ToolkitSearch& search) {
  return guarded<CudaDriver>("the CUDA driver", [&]() -> Result<std::shared_ptr<const CudaDriver>> {
    auto table = std::make_shared<CudaDriver>();
    Result<Dylib> library = open_dylib("the CUDA driver", {"libcuda.so.1"}, search, true);
    if (!library && search.file.empty() && search.loader) {
      // Containers and WSL keep it where the loader does not look.
      for (const char* folder :
           {"/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib", "/usr/local/nvidia/lib64"}) {
        Dylib found;
        if (try_open(std::string(folder) + "/libcuda.so.1", found)) {
          library = found;
          break;
        }
      }
    }
    if (!library) {
      Error error = std::move(library).error();
      error.code = ErrorCode::no_device;
      error.message += ". Without NVIDIA's driver nothing can run on a GPU; compiling works";
      return error;
    }
    table->library = std::move(library).value();
    std::string missing;
    PTXBENCH_DRIVER_FUNCTIONS(PTXBENCH_LOAD_REQUIRED)
    PTXBENCH_DRIVER_OPTIONAL_FUNCTIONS(PTXBENCH_LOAD_OPTIONAL)
    load(table->library, "cuEventElapsedTime", table->event_elapsed_time, &missing);
    load(table->library, "cuCtxCreate_v2", table->ctx_create, &missing);
    int version = 0;
    if (table->cuDriverGetVersion != nullptr && table->cuDriverGetVersion(&version) == CUDA_SUCCESS)
      table->version = version;
    if (!missing.empty())
      return too_old(
          "the CUDA driver" + (version > 0 ? " (CUDA " + table->version_text() + ")" : std::string()),
          table->library, missing, "CUDA 12.0 (driver 525) or newer is needed");
    return std::shared_ptr<const CudaDriver>(std::move(table));
  });
}

std::string CudaDriver::version_text() const {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string CudaDriver::error_text(CUresult result) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (cuGetErrorName == nullptr || cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr)
    return "CUresult " + std::to_string(static_cast<int>(result));
  if (cuGetErrorString == nullptr || cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr)
    return name;
  return std::string(name) + ": " + text;
}

Result<std::shared_ptr<const Nvrtc>> Nvrtc::open(const ToolkitSearch& search) {
  return guarded<Nvrtc>("NVRTC", [&]() -> Result<std::shared_ptr<const Nvrtc>> {
    auto table = std::make_shared<Nvrtc>();
    PTXBENCH_TRY_ASSIGN(table->library, open_dylib("NVRTC", versions("libnvrtc", {14, 13, 12}), search));
    std::string missing;
    PTXBENCH_NVRTC_FUNCTIONS(PTXBENCH_LOAD_REQUIRED)
    if (!missing.empty()) return too_old("NVRTC", table->library, missing, "CUDA 12.0 or newer is needed");
    load(table->library, "nvrtcSetFlowCallback", table->set_flow_callback, nullptr);
    if (table->nvrtcVersion(&table->major, &table->minor) != NVRTC_SUCCESS)
      return make_error(ErrorCode::toolkit, "NVRTC at " + table->library.path + " does not tell its version");
    // NVRTC opens its builtins only while compiling, and says no more than "failed to open" then.
    const std::string builtins = "libnvrtc-builtins.so." + table->version_text();
    table->builtins_path = preload_beside(table->library, {builtins});
    Dylib by_loader;
    if (table->builtins_path.empty() && search.loader && try_open(builtins, by_loader))
      table->builtins_path = by_loader.path;
    if (table->builtins_path.empty())
      return make_error(ErrorCode::toolkit, builtins + " is missing: NVRTC " + table->version_text() +
                                                " at " + table->library.path +
                                                " cannot compile without it; searched: " +
                                                fs::path(table->library.path).parent_path().string() +
                                                (search.loader ? ", the dynamic loader's path" : ""));
    return std::shared_ptr<const Nvrtc>(std::move(table));
  });
}

std::string Nvrtc::version_text() const { return std::to_string(major) + "." + std::to_string(minor); }

Result<std::shared_ptr<const Cupti>> Cupti::open(const ToolkitSearch& search) {
  return guarded<Cupti>("CUPTI", [&]() -> Result<std::shared_ptr<const Cupti>> {
    auto table = std::make_shared<Cupti>();
    PTXBENCH_TRY_ASSIGN(table->library, open_dylib("CUPTI", versions("libcupti", {14, 13, 12}), search));
    // It opens these by name when it is configured, and has no run path to find them by.
    preload_beside(table->library, {"libnvperf_host.so"});
    preload_beside(table->library, {"libnvperf_target.so"});
    std::string missing;
    PTXBENCH_CUPTI_FUNCTIONS(PTXBENCH_LOAD_REQUIRED)
    PTXBENCH_CUPTI_OPTIONAL_FUNCTIONS(PTXBENCH_LOAD_OPTIONAL)
    if (!missing.empty())
      return too_old("CUPTI", table->library, missing, "SASS metrics need CUPTI of CUDA 12.8 or newer");
    std::uint32_t version = 0;
    if (table->cuptiGetVersion(&version) == CUPTI_SUCCESS) table->version = version;
    return std::shared_ptr<const Cupti>(std::move(table));
  });
}

std::string Cupti::error_text(CUptiResult result) const {
  const char* text = nullptr;
  if (cuptiGetResultString == nullptr || cuptiGetResultString(result, &text) != CUPTI_SUCCESS ||
      text == nullptr)
    return "CUptiResult " + std::to_string(static_cast<int>(result));
  return text;
}

Result<std::shared_ptr<const CublasLt>> CublasLt::open(const ToolkitSearch& search) {
  return guarded<CublasLt>("cuBLASLt", [&]() -> Result<std::shared_ptr<const CublasLt>> {
    auto table = std::make_shared<CublasLt>();
    PTXBENCH_TRY_ASSIGN(table->library,
                        open_dylib("cuBLASLt", versions("libcublasLt", {14, 13, 12}), search));
    std::string missing;
    PTXBENCH_CUBLASLT_FUNCTIONS(PTXBENCH_LOAD_REQUIRED)
    if (!missing.empty()) return too_old("cuBLASLt", table->library, missing, "CUDA 12.0 or newer is needed");
    table->version = table->cublasLtGetVersion();
    return std::shared_ptr<const CublasLt>(std::move(table));
  });
}

std::string CublasLt::version_text() const {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Result<std::shared_ptr<const Cublas>> Cublas::open(const ToolkitSearch& search) {
  return guarded<Cublas>("cuBLAS", [&]() -> Result<std::shared_ptr<const Cublas>> {
    auto table = std::make_shared<Cublas>();
    // libcublas needs libcublasLt by soname: open that first, from the same toolkit.
    if (search.file.empty())
      PTXBENCH_TRY(open_dylib("cuBLASLt", versions("libcublasLt", {14, 13, 12}), search));
    PTXBENCH_TRY_ASSIGN(table->library, open_dylib("cuBLAS", versions("libcublas", {14, 13, 12}), search));
    std::string missing;
    PTXBENCH_CUBLAS_FUNCTIONS(PTXBENCH_LOAD_REQUIRED)
    load(table->library, "cublasGemmEx", table->gemm_ex, &missing);
    if (!missing.empty()) return too_old("cuBLAS", table->library, missing, "CUDA 12.0 or newer is needed");
    return std::shared_ptr<const Cublas>(std::move(table));
  });
}

Result<std::shared_ptr<const Cudnn>> Cudnn::open(const ToolkitSearch& search) {
  return guarded<Cudnn>("cuDNN", [&]() -> Result<std::shared_ptr<const Cudnn>> {
    constexpr std::size_t kOldest = 90600;
    auto table = std::make_shared<Cudnn>();
    PTXBENCH_TRY_ASSIGN(table->library, open_dylib("cuDNN", versions("libcudnn", {10, 9, 8}), search));
    std::string missing;
    load(table->library, "cudnnGetVersion", table->cudnnGetVersion, &missing);
    if (!missing.empty()) return too_old("cuDNN", table->library, missing, "it is no cuDNN");
    // libcudnn.so.9 is a door to libcudnn_graph.so.9, which it opens by soname at the first call; where the loader
    // does not find that one, the call ends the process. So open it before, and the one that lies beside if there is.
    const std::string graph_name = "libcudnn_graph.so.9";
    if (Dylib graph; table->library.path.find(".so.8") == std::string::npos &&
                     preload_beside(table->library, {graph_name}).empty() && !try_open(graph_name, graph))
      return make_error(ErrorCode::toolkit, "cuDNN at " + table->library.path + " is not whole: " + last_error());
    table->version = table->cudnnGetVersion();
    if (table->version < kOldest)
      return make_error(ErrorCode::toolkit, "cuDNN at " + table->library.path + " is " + table->version_text() +
                                                "; cuDNN 9.6 or newer is needed");
#define PTXBENCH_LOAD_CUDNN(name) load(table->library, "cudnn" #name, table->cudnn##name, &missing);
    PTXBENCH_CUDNN_FUNCTIONS(PTXBENCH_LOAD_CUDNN)
    if (!missing.empty()) return too_old("cuDNN", table->library, missing, "cuDNN 9.6 or newer is needed");
    return std::shared_ptr<const Cudnn>(std::move(table));
  });
}

std::string Cudnn::version_text() const {
  // Since 9.0 major * 10000 + minor * 100 + patch; before major * 1000 + ...
  const std::size_t major = version < 90000 ? version / 1000 : version / 10000;
  const std::size_t rest = version < 90000 ? version % 1000 : version % 10000;
  return std::to_string(major) + "." + std::to_string(rest / 100) + "." + std::to_string(rest % 100);
}

}  // namespace ptxbench
