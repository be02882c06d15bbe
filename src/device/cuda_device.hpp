// A GPU through the driver API. One idea a file: memory, events and waiting in cuda_device.cpp, modules in
// cuda_modules.cpp, launches in cuda_launch.cpp, tensor maps in cuda_tensor_map.cpp.
#pragma once

#include "core/cuda_libs.hpp"

#include <ptxbench/device.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// What the driver says of one GPU, no context needed.
struct CudaDeviceEntry {
  CUdevice device = 0;
  DeviceInfo info;
};
// Opens the driver, initialises it and lists its GPUs. Errors: no_device, toolkit.
struct CudaDeviceList {
  std::shared_ptr<const CudaDriver> driver;
  std::vector<CudaDeviceEntry> devices;
};
Result<CudaDeviceList> enumerate_cuda_devices(const std::string& cuda_home);
// The entry that "auto", "cuda", "cuda:0" or "cuda:GPU-<uuid>" names.
Result<CudaDeviceEntry> choose_cuda_device(const CudaDeviceList& list, std::string_view id);

class CudaDevice final : public Device {
 public:
  CudaDevice(std::shared_ptr<const CudaDriver> driver, CudaDeviceEntry entry);
  ~CudaDevice() override;
  Result<void> open();  // makes the context; once

  const DeviceInfo& info() const override { return info_; }

  Result<DeviceBuffer> allocate(std::uint64_t bytes) override;
  void release(DeviceBuffer buffer) noexcept override;
  Result<void> write(std::uint64_t address, std::span<const std::uint8_t> bytes) override;
  Result<void> read(std::uint64_t address, std::span<std::uint8_t> bytes) override;
  Result<void> fill(std::uint64_t address, std::uint64_t pattern, int element_bytes,
                    std::uint64_t elements) override;
  Result<void> copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override;
  void* host_view(std::uint64_t) noexcept override { return nullptr; }

  Result<DeviceModule> load(const ModuleImage& image) override;
  void unload(DeviceModule module) noexcept override;
  Result<ModuleInfo> describe(DeviceModule module) override;
  Result<DeviceBuffer> global(DeviceModule module, std::string_view symbol) override;
  DeviceQueries queries(std::vector<DeviceModule> modules) override;

  Result<std::array<std::uint8_t, 128>> encode(const ResolvedTensorMap& map,
                                               std::uint64_t base_address) override;
  Result<DeviceOutcome> launch(const DeviceLaunch& launch) override;
  Result<DeviceOutcome> synchronize(std::uint64_t deadline_ns) override;

  std::optional<DeviceFault> loss() const override { return lost_; }
  Result<void> reset_persisting_l2() override;
  Result<DeviceEvent> create_event() override;
  void destroy_event(DeviceEvent event) noexcept override;
  Result<void> record(DeviceEvent event) override;
  Result<std::uint64_t> elapsed_ns(DeviceEvent start, DeviceEvent end) override;
  Result<void> close_gate() override;
  Result<void> open_gate() override;
  void* native_stream() noexcept override { return stream_; }

 private:
  struct Function {
    CUfunction handle = nullptr;
    KernelInfo info;
    std::uint64_t local_bytes = 0;      // of a thread
    bool grid_counts_clusters = false;  // compiled so (__block_size__)
    int max_dynamic_shared = 0;         // as the function is opted in now
    bool non_portable_cluster = false;
  };
  struct Module {
    CUmodule handle = nullptr;
    std::string source;
    std::vector<std::pair<std::string, std::string>> lowered;
    std::map<std::string, Function, std::less<>> functions;
    std::vector<std::string> order;  // of the functions
    std::vector<GlobalInfo> globals;
  };
  // Makes our context current for a scope. A worker's thread keeps it current, so this is a comparison there.
  class Current {
   public:
    explicit Current(const CudaDevice& device);
    ~Current();

   private:
    const CudaDevice& device_;
    bool pushed_ = false;
  };

  // An Error where the device is lost, or the context cannot be used.
  Result<void> usable(const char* what) const;
  // The same, and where waiting would never end because the gate is closed.
  Result<void> may_wait(const char* what) const;
  // Notes a result other than success: opens the gate, so that nothing waits for ever, and remembers a fault
  // after which the context is dead. Returns the Error to hand on.
  Error failed(CUresult result, const std::string& what);
  DeviceFault lose(DeviceFault fault);
  // Counts what is queued behind a closed gate: the driver's queue is finite, and its end would block us.
  Result<void> count_queued(std::size_t operations, const char* what, std::size_t parameter_bytes = 0);
  // Whether the context's local memory is large enough for a launch; growing it waits for the stream.
  Result<void> local_memory_ready(const Function& function, std::string_view name);
  // Makes the context's local memory large enough for the module's kernels, where that is cheap.
  void reserve_local_memory(const Module& module);
  Result<void> fill_pairs(std::uint64_t address, std::uint32_t low, std::uint32_t high,
                          std::uint64_t elements);
  void raise_flag() noexcept;  // opens the gate in memory
  Result<Module*> module_at(DeviceModule module);
  Result<void> find_functions(Module& module, const ModuleImage& image);
  Result<void> find_globals(Module& module, const ModuleImage& image);
  // Opts the function in to what the launch needs. A refusal is a fault.
  DeviceOutcome opt_in(Function& function, const std::string& name, std::uint64_t dynamic_shared_bytes,
                       std::uint64_t cluster_ctas);

  std::shared_ptr<const CudaDriver> driver_;
  CUdevice device_ = 0;
  DeviceInfo info_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr, beside_ = nullptr;  // beside_: made when something first runs there
  std::vector<std::optional<Module>> modules_;
  bool has_event(DeviceEvent event) const noexcept;
  std::vector<CUevent> events_;  // null where one was destroyed
  std::optional<DeviceFault> lost_;
  bool timed_out_ = false;  // something still runs: freeing would wait for it

  volatile std::uint32_t* gate_flag_ = nullptr;  // host memory that the stream waits on
  CUdeviceptr gate_address_ = 0;
  std::uint32_t gate_ticket_ = 0;
  bool gate_closed_ = false;
  std::size_t behind_gate_ = 0, parameters_behind_gate_ = 0;
  std::uint64_t local_bytes_ready_ = 0;      // a thread's local memory that the context has room for
  std::vector<DeviceBuffer> release_later_;  // freeing waits for the stream
};

// Most operations, and bytes of kernel parameters, that may be queued while the gate is closed. Measured on
// an H200 with driver 580: the 1021st operation blocks the host, and so does the 719th launch with 4000
// bytes.
inline constexpr std::size_t kMostBehindGate = 900;
inline constexpr std::size_t kMostParametersBehindGate = 2 << 20;

}  // namespace ptxbench
