// Which GPUs there are, and what they can do.
#include "device/cuda_device.hpp"

#include <climits>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>

namespace ptxbench {
namespace {

// "580.159.03", from the kernel module, else from libcuda's file name; empty where neither tells.
std::string driver_release(const CudaDriver& driver) {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (std::getline(file, line)) {
    // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.03  Release Build ..."
    std::size_t at = 0;
    while (at < line.size()) {
      const std::size_t end = std::min(line.find(' ', at), line.size());
      const std::string word = line.substr(at, end - at);
      if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos)
        return word;
      at = end + 1;
    }
  }
  std::error_code ignored;
  const std::string name = std::filesystem::canonical(driver.library.path, ignored).filename().string();
  const std::string stem = "libcuda.so.";
  if (name.rfind(stem, 0) == 0 && name.find('.', stem.size()) != std::string::npos)
    return name.substr(stem.size());
  return {};
}

// As nvidia-smi prints it.
std::string uuid_text(const CUuuid& uuid) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

// Compute capability 9.0 and later have instructions that only the `a` target gives.
std::string arch_of(int major, int minor) {
  return "sm_" + std::to_string(major) + std::to_string(minor) + (major >= 9 ? "a" : "");
}

Result<CudaDeviceEntry> entry_of(const CudaDriver& driver, int ordinal, const std::string& release) {
  CudaDeviceEntry entry;
  const auto check = [&](CUresult result, const char* what) -> Result<void> {
    if (result == CUDA_SUCCESS) return {};
    return make_error(ErrorCode::driver, std::string(what) + " of GPU " + std::to_string(ordinal) + ": " +
                                                driver.error_text(result));
  };
  PTXBENCH_TRY(check(driver.cuDeviceGet(&entry.device, ordinal), "the handle"));
  char name[256] = {};
  PTXBENCH_TRY(check(driver.cuDeviceGetName(name, sizeof(name) - 1, entry.device), "the name"));
  CUuuid uuid{};
  PTXBENCH_TRY(check(driver.cuDeviceGetUuid(&uuid, entry.device), "the UUID"));
  std::size_t memory = 0;
  PTXBENCH_TRY(check(driver.cuDeviceTotalMem(&memory, entry.device), "the memory size"));

  DeviceInfo& info = entry.info;
  info.name = name;
  info.id = std::string("cuda:") + (info.name.find(" MIG ") != std::string::npos ? "MIG-" : "GPU-") +
            uuid_text(uuid);
  DeviceLimits& l = info.limits;
  l.name = info.name;
  l.memory_bytes = memory;
  const auto attribute = [&](CUdevice_attribute which, auto& to) {
    int value = 0;
    if (driver.cuDeviceGetAttribute(&value, which, entry.device) == CUDA_SUCCESS)
      to = static_cast<std::remove_reference_t<decltype(to)>>(value);
  };
  int clusters = 0;
  attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, l.compute_major);
  attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, l.compute_minor);
  attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, l.sm_count);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, l.smem_optin_bytes);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, l.smem_per_sm_bytes);
  attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, l.smem_reserved_bytes);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, l.regs_per_sm);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, l.regs_per_cta);
  attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, l.l2_bytes);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, l.max_threads_per_cta);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, l.max_threads_per_sm);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, l.max_ctas_per_sm);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, l.max_block[0]);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, l.max_block[1]);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, l.max_block[2]);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, l.max_grid[0]);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, l.max_grid[1]);
  attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, l.max_grid[2]);
  attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, clusters);
  attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, info.max_sm_khz);
  attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, info.memory_khz);
  attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, info.memory_bus_bits);
  // No attribute tells; 16 is the non-portable limit of data centre parts, 8 what is portable.
  l.max_cluster = clusters == 0 ? 1 : l.compute_major == 9 || l.compute_major == 10 ? 16 : 8;
  info.arch = arch_of(l.compute_major, l.compute_minor);
  info.versions.emplace_back("driver", (release.empty() ? "CUDA " : release + " (CUDA ") +
                                           driver.version_text() + (release.empty() ? "" : ")"));
  return entry;
}

bool same_letters(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (lower(a[i]) != lower(b[i])) return false;
  return true;
}

std::string known_ids(const CudaDeviceList& list) {
  std::string text;
  for (std::size_t i = 0; i < list.devices.size(); ++i)
    text += (i == 0 ? "" : ", ") + ("cuda:" + std::to_string(i)) + " = " + list.devices[i].info.id + " (" +
            list.devices[i].info.name + ")";
  return text;
}

}  // namespace

Result<CudaDeviceList> enumerate_cuda_devices(const std::string& cuda_home) {
  CudaDeviceList list;
  ToolkitSearch search;
  search.cuda_home = cuda_home;
  PTXBENCH_TRY_ASSIGN(list.driver, CudaDriver::open(search));
  const CudaDriver& driver = *list.driver;
  const std::string at = "the CUDA driver at " + driver.library.path;
  // That there is no GPU is a fact about the machine; any other refusal (a service that is not up yet, a driver of another version)
  // is a fault of it.
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS)
    return make_error(result == CUDA_ERROR_NO_DEVICE ? ErrorCode::no_device : ErrorCode::driver, at + " cannot be used: " + driver.error_text(result));
  int count = 0;
  if (const CUresult result = driver.cuDeviceGetCount(&count); result != CUDA_SUCCESS)
    return make_error(ErrorCode::driver, at + " does not tell its GPUs: " + driver.error_text(result));
  if (count == 0) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    return make_error(
        ErrorCode::no_device,
        at + " sees no GPU" +
            (visible == nullptr ? "" : "; CUDA_VISIBLE_DEVICES is \"" + std::string(visible) + "\""));
  }
  const std::string release = driver_release(driver);
  for (int i = 0; i < count; ++i) {
    PTXBENCH_TRY_ASSIGN(CudaDeviceEntry entry, entry_of(driver, i, release));
    list.devices.push_back(std::move(entry));
  }
  return list;
}

Result<CudaDeviceEntry> choose_cuda_device(const CudaDeviceList& list, std::string_view id) {
  if (list.devices.empty()) return make_error(ErrorCode::no_device, "there is no GPU");
  if (id == "auto" || id == "cuda" || id.empty()) return list.devices.front();
  const std::string_view prefix = "cuda:";
  if (id.substr(0, prefix.size()) != prefix)
    return make_error(ErrorCode::invalid_argument,
                      "\"" + std::string(id) + "\" is no CUDA device; there are " + known_ids(list));
  const std::string_view name = id.substr(prefix.size());
  if (!name.empty() && name.size() <= 6 && name.find_first_not_of("0123456789") == std::string_view::npos) {
    const auto ordinal = static_cast<std::size_t>(std::stoul(std::string(name)));
    if (ordinal < list.devices.size()) return list.devices[ordinal];
  }
  for (const CudaDeviceEntry& entry : list.devices)
    if (same_letters(entry.info.id, id)) return entry;
  return make_error(ErrorCode::no_device,
                    "there is no device \"" + std::string(id) + "\"; there are " + known_ids(list));
}

Result<std::vector<DeviceInfo>> list_cuda_devices(const std::string& cuda_home) {
  try {
    PTXBENCH_TRY_ASSIGN(const CudaDeviceList list, enumerate_cuda_devices(cuda_home));
    std::vector<DeviceInfo> infos;
    for (const CudaDeviceEntry& entry : list.devices) infos.push_back(entry.info);
    return infos;
  } catch (const std::exception& e) {
    return make_error(ErrorCode::internal, std::string("listing GPUs: ") + e.what());
  }
}

Result<std::unique_ptr<Device>> open_cuda_device(std::string_view id, const std::string& cuda_home) {
  try {
    PTXBENCH_TRY_ASSIGN(const CudaDeviceList list, enumerate_cuda_devices(cuda_home));
    PTXBENCH_TRY_ASSIGN(CudaDeviceEntry entry, choose_cuda_device(list, id));
    auto device = std::make_unique<CudaDevice>(list.driver, std::move(entry));
    PTXBENCH_TRY(device->open());
    return std::unique_ptr<Device>(std::move(device));
  } catch (const std::exception& e) {
    return make_error(ErrorCode::internal, std::string("opening a GPU: ") + e.what());
  }
}

}  // namespace ptxbench
