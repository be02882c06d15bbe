/// @file
/// Devices: what runs launch plans. `cuda:UUID` is a real GPU through the driver API; `emulator:PROFILE` is a
/// model on the CPU. One interface for both: memory, modules, launches. What is right or fast is decided above.
///
/// A Device belongs to one thread at a time. The library makes one only inside a worker process, unless the
/// host asks for in-process running by name.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/plan.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench {

/// What is known of a device.
struct DeviceInfo {
  std::string id;                ///< "cuda:GPU-<uuid>", "emulator:h200"
  std::string name;              ///< "NVIDIA H200"
  std::string arch;              ///< what to compile candidates for: "sm_90a"
  DeviceLimits limits;
  bool emulated = false;
  std::vector<std::pair<std::string, std::string>> versions;  ///< "driver" -> "580.159 (CUDA 13.0)"
  std::int64_t max_sm_khz = 0;                       ///< the SMs' highest clock; 0 unknown
  std::int64_t memory_khz = 0, memory_bus_bits = 0;  ///< two transfers a clock; 0 unknown
};

/// A fault of what ran, with the device's own word for it. After `sticky` ones the device is lost.
struct DeviceFault {
  enum class Kind : std::uint8_t { illegal_address, misaligned, illegal_instruction, trap, launch_refused,
                                   launch_failed, timeout, out_of_memory, other,
                                   hardware /* a sick device: nobody's fault but the environment's */ } kind = Kind::other;
  std::string name;              ///< "CUDA_ERROR_ILLEGAL_ADDRESS"
  std::int32_t code = 0;
  bool sticky = false;
  std::string message;           ///< what happened, at which launch
  std::optional<std::size_t> step;  ///< of the plan, where known
};

/// Device memory. `address` is what kernels see.
struct DeviceBuffer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

/// What a part of device memory holds, so that a message can say "A[3, 17]".
struct MemoryLabel {
  enum class Role : std::uint8_t { input, output, workspace, variable } role = Role::input;
  std::string name;              ///< of the tensor, workspace or variable
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;  ///< outermost first; empty: bytes
};

using DeviceModule = std::uint32_t;  ///< index of a loaded module
using DeviceEvent = std::uint32_t;   ///< index of an event

/// A module's code: the cubin for a GPU, the PTX for the emulator (or for the driver to assemble).
struct ModuleImage {
  std::string source;
  std::span<const std::uint8_t> cubin;
  std::string_view ptx;
  std::vector<std::pair<std::string, std::string>> lowered;  ///< name expression -> symbol
};

/// One launch with its whole parameter buffer (addresses and maps in place).
struct DeviceLaunch {
  DeviceModule module = 0;
  std::string_view symbol;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  bool has_cluster = false;
  std::optional<std::array<std::uint32_t, 3>> preferred_cluster;
  std::uint64_t dynamic_shared_bytes = 0;
  bool cooperative = false, pdl = false;
  int cluster_policy = 0;
  std::optional<int> carveout;
  std::span<const std::uint8_t> parameters;
  /// In a stream of its own, beside what is queued: work that takes SMs from it. `synchronize` waits for it too.
  /// ErrorCode::unsupported on an emulator.
  bool beside = false;
};

/// Either it went well, or the candidate (or the environment) failed in a way that the device reports.
/// An Error is reserved for the environment; a DeviceFault is what a judged run did.
using DeviceOutcome = std::optional<DeviceFault>;

class EmulatedDevice;  // emulator.hpp

class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceInfo& info() const = 0;
  /// This device as an emulator, for what only an emulator can tell; null on a GPU.
  virtual EmulatedDevice* emulator() noexcept { return nullptr; }

  // --- memory; the operations below are queued in the device's stream unless they say otherwise ---
  /// At least 256-byte aligned. out_of_memory is ErrorCode::no_memory.
  virtual Result<DeviceBuffer> allocate(std::uint64_t bytes) = 0;
  virtual void release(DeviceBuffer buffer) noexcept = 0;
  virtual Result<void> write(std::uint64_t address, std::span<const std::uint8_t> bytes) = 0;   ///< blocks
  virtual Result<void> read(std::uint64_t address, std::span<std::uint8_t> bytes) = 0;          ///< blocks
  virtual Result<void> fill(std::uint64_t address, std::uint64_t pattern, int element_bytes,
                            std::uint64_t elements) = 0;
  /// Fills with @p byte what nobody has written: an emulator knows these bytes for unwritten until somebody writes them,
  /// and takes their use for a fault. On a GPU a fill like any other.
  virtual Result<void> poison(std::uint64_t address, std::uint8_t byte, std::uint64_t bytes) {
    return fill(address, byte, 1, bytes);
  }
  virtual Result<void> copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) = 0;
  /// Says what @p buffer (all or part of an allocation) holds, until it is released. An emulator lets kernels touch only
  /// the labelled parts of an allocation that has any; a GPU cannot know and ignores it.
  virtual void label(const DeviceBuffer& buffer, const MemoryLabel& what) { (void)buffer, (void)what; }
  /// Where the host may touch the bytes at @p address directly; null on a GPU.
  virtual void* host_view(std::uint64_t address) noexcept = 0;

  // --- modules ---
  virtual Result<DeviceModule> load(const ModuleImage& image) = 0;
  virtual void unload(DeviceModule module) noexcept = 0;
  /// Kernels with their parameter layout, attributes and globals, as resolve_plan wants them.
  virtual Result<ModuleInfo> describe(DeviceModule module) = 0;
  virtual Result<DeviceBuffer> global(DeviceModule module, std::string_view symbol) = 0;
  /// Answers for resolve_plan; OccupancyQuery::module indexes @p modules. The device must outlive them.
  virtual DeviceQueries queries(std::vector<DeviceModule> modules) = 0;

  // --- running ---
  /// The 128 bytes of a tensor map over memory that starts at @p base_address (base and its offset added up).
  virtual Result<std::array<std::uint8_t, 128>> encode(const ResolvedTensorMap& map, std::uint64_t base_address) = 0;
  /// Queues a launch. A refusal is a DeviceFault of kind launch_refused.
  virtual Result<DeviceOutcome> launch(const DeviceLaunch& launch) = 0;
  /// Waits for all that is queued, at most @p deadline_ns; past it a fault of kind timeout (the device is lost).
  virtual Result<DeviceOutcome> synchronize(std::uint64_t deadline_ns) = 0;

  /// The sticky fault after which the device is lost, if it is: operations then fail with ErrorCode::driver.
  virtual std::optional<DeviceFault> loss() const = 0;

  // --- timing; ErrorCode::unsupported on the emulator ---
  virtual Result<DeviceEvent> create_event() = 0;
  virtual Result<void> record(DeviceEvent event) = 0;
  /// Nanoseconds between two completed events.
  virtual Result<std::uint64_t> elapsed_ns(DeviceEvent start, DeviceEvent end) = 0;
  /// Holds the stream until `open_gate`, so that host latency lies outside what is queued meanwhile.
  /// Meanwhile what would wait for the stream (read, write, allocate, load, synchronize) is ErrorCode::state. So is
  /// more than the driver's queue holds (900 operations, 2 MiB of kernel parameters), and a kernel with much local
  /// memory that was never launched before; these open the gate.
  virtual Result<void> close_gate() = 0;
  virtual Result<void> open_gate() = 0;
  /// The CUstream, for libraries that queue work themselves (cuBLASLt); null on the emulator.
  virtual void* native_stream() noexcept = 0;
  /// Lines that kernels marked to stay in the L2 (evict_last, persisting accesses) are as any others from now on.
  virtual Result<void> reset_persisting_l2() { return {}; }
  /// An event's number may be given out again after this.
  virtual void destroy_event(DeviceEvent) noexcept {}
};

/// Buffers of one run of a plan: one for each input and output of the definition, in order.
struct PlanBuffers {
  std::vector<DeviceBuffer> inputs, outputs;  ///< scalars have an empty buffer
};

/// Before and behind each workspace of a PlanRunner lie this many bytes, all of this value.
inline constexpr std::uint64_t kRedZoneBytes = 1024;
inline constexpr std::uint8_t kRedZoneByte = 0xa5;

/// A resolved plan made ready on a device: workspaces allocated, addresses and maps in place. `enqueue` may be
/// called many times. Belongs to the device's thread; the device must outlive it.
class PlanRunner {
 public:
  static Result<std::unique_ptr<PlanRunner>> create(Device& device, const ResolvedPlan& plan,
                                                    std::vector<DeviceModule> modules, const PlanBuffers& buffers);
  virtual ~PlanRunner() = default;
  /// Writes the plan's `globals`. Outside of timed intervals.
  virtual Result<void> set_globals() = 0;
  /// Poisons workspaces that the plan leaves uninitialised with @p byte. Outside of timed intervals.
  virtual Result<void> poison_workspaces(std::uint8_t byte) = 0;
  /// Queues the run: workspace initialisation, then the steps.
  virtual Result<DeviceOutcome> enqueue() = 0;
  /// The workspaces themselves, in the plan's order; their red zones lie directly before and behind
  /// (kRedZoneBytes before `address`, and from `address + bytes` on), for integrity checks.
  virtual std::span<const DeviceBuffer> workspaces() const = 0;
};

/// The writable globals of modules as they were right after loading, so that no run sees another's past.
class GlobalsImage {
 public:
  static Result<std::unique_ptr<GlobalsImage>> capture(Device& device, std::vector<DeviceModule> modules);
  virtual ~GlobalsImage() = default;
  virtual Result<void> restore() = 0;   ///< queued
};

/// GPUs of this machine as seen through the driver, without making a context.
Result<std::vector<DeviceInfo>> list_cuda_devices(const std::string& cuda_home = {});
/// Opens a GPU: "cuda:0", "cuda:GPU-<uuid>", or "auto" for the first. Makes a context in this process.
Result<std::unique_ptr<Device>> open_cuda_device(std::string_view id, const std::string& cuda_home = {});

}  // namespace ptxbench
