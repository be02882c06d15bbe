// A Device for tests: memory is host memory, modules are tables of C++ functions, time is a counter.
//
//   testing::FakeDevice device;
//   device.define("add.cu", "add", {8, 8, 4}, [](testing::FakeCall& call) {
//     float* x = call.pointer<float>(0); ... call.argument<int>(2) ...; call.take(5000);
//   });
//   auto module = device.load({.source = "add.cu"}).value();
//
// Work runs at once, in the order in which it is queued. What would hang on a GPU (waiting behind a closed
// gate) is an Error here, and so is any access outside of a live allocation.
#pragma once

#include <ptxbench/device.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ptxbench::testing {

class FakeDevice;

// What a fake kernel sees of its launch.
class FakeCall {
 public:
  FakeCall(FakeDevice& device, const DeviceLaunch& launch, const KernelInfo& kernel)
      : device(device), launch(launch), kernel(kernel) {}

  FakeDevice& device;
  const DeviceLaunch& launch;
  const KernelInfo& kernel;

  // The bytes at `offset` of the parameter buffer as a T; zero where the buffer ends before.
  template <class T>
  T at(std::size_t offset) const {
    T value{};
    if (offset + sizeof(T) <= launch.parameters.size())
      std::memcpy(&value, launch.parameters.data() + offset, sizeof(T));
    return value;
  }
  // Parameter number `index` as a T, or as the memory that it points to.
  template <class T>
  T argument(std::size_t index) const {
    return index < kernel.parameters.size() ? at<T>(kernel.parameters[index].offset) : T{};
  }
  template <class T>
  T* pointer(std::size_t index) const;

  // The kernel takes this long on the device's clock.
  void take(std::uint64_t nanoseconds) { nanoseconds_ += nanoseconds; }
  // The kernel ends with this fault, which synchronize() reports.
  void fail(DeviceFault fault) { fault_ = std::move(fault); }

 private:
  friend class FakeDevice;
  std::uint64_t nanoseconds_ = 0;
  DeviceOutcome fault_;
};

using FakeKernel = std::function<void(FakeCall&)>;

// One operation that was queued, in order.
struct FakeRecord {
  enum class Kind { write, read, fill, copy, launch, record, close_gate, open_gate, synchronize } kind;
  std::string symbol;  // launch
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t pattern = 0;  // fill
};

class FakeDevice : public Device {
 public:
  FakeDevice() {
    info_.id = "fake:0";
    info_.name = "Fake";
    info_.arch = "sm_90a";
    DeviceLimits& l = info_.limits;
    l.name = info_.name;
    l.compute_major = 9;
    l.sm_count = 132;
    l.smem_optin_bytes = 232448;
    l.smem_per_sm_bytes = 233472;
    l.regs_per_sm = 65536;
    l.l2_bytes = 60 << 20;
    l.memory_bytes = std::uint64_t{1} << 30;
    info_.versions = {{"driver", "fake 1.0"}};
  }

  // --- what tests set up ---
  // A kernel of the module whose ModuleImage::source is `source`; `parameter_sizes` in bytes, laid out with
  // natural alignment (at most 8; 64 for sizes of 128, i.e. tensor maps).
  void define(const std::string& source, const std::string& symbol,
              const std::vector<std::uint32_t>& parameter_sizes, FakeKernel kernel) {
    KernelInfo info;
    info.symbol = symbol;
    std::uint32_t end = 0;
    for (std::uint32_t size : parameter_sizes) {
      std::uint32_t align = size == 128 ? 64 : size >= 8 ? 8 : size >= 4 ? 4 : size >= 2 ? 2 : 1;
      end = (end + align - 1) / align * align;
      info.parameters.push_back({end, size, std::nullopt});
      end += size;
    }
    info.parameter_bytes = end;
    define(source, std::move(info), std::move(kernel));
  }
  void define(const std::string& source, KernelInfo info, FakeKernel kernel) {
    kernels_[source].push_back({std::move(info), std::move(kernel)});
  }
  // A global of that module with its initial image.
  void define_global(const std::string& source, const std::string& symbol, std::vector<std::uint8_t> image) {
    globals_[source].push_back({symbol, std::move(image)});
  }
  // Called before each launch; what it returns is the launch's outcome (a refusal).
  std::function<DeviceOutcome(const DeviceLaunch&)> before_launch;
  // Answers of queries().
  std::int64_t occupancy = 1, max_active_clusters = 66;
  // Time of one fill, copy or launch, before what kernels take themselves.
  std::uint64_t operation_ns = 1000;
  // What fresh memory holds.
  std::uint8_t fresh_byte = 0xcd;
  // Allocations beyond info().limits.memory_bytes fail with no_memory.
  DeviceInfo& mutable_info() { return info_; }

  // --- what tests look at ---
  std::vector<FakeRecord> records;
  std::vector<std::string> launched() const {
    std::vector<std::string> symbols;
    for (const FakeRecord& r : records)
      if (r.kind == FakeRecord::Kind::launch) symbols.push_back(r.symbol);
    return symbols;
  }
  std::size_t live_allocations() const { return allocations_.size() - owned_; }
  std::uint64_t live_bytes() const { return live_bytes_; }
  std::uint64_t now_ns() const { return now_; }
  bool lost() const { return lost_.has_value(); }
  bool gate_closed() const { return gate_closed_; }

  // --- Device ---
  const DeviceInfo& info() const override { return info_; }

  Result<DeviceBuffer> allocate(std::uint64_t bytes) override {
    PTXBENCH_TRY(usable());
    if (gate_closed_) return behind_gate("allocate");
    if (bytes > info_.limits.memory_bytes - live_bytes_)
      return make_error(ErrorCode::no_memory, "fake device: " + std::to_string(bytes) + " bytes do not fit");
    return new_block(bytes);
  }
  void release(DeviceBuffer buffer) noexcept override {
    auto it = allocations_.find(buffer.address);
    if (it == allocations_.end()) {
      ++bad_releases;
      return;
    }
    live_bytes_ -= it->second.bytes;
    allocations_.erase(it);
  }
  std::size_t bad_releases = 0;

  Result<void> write(std::uint64_t address, std::span<const std::uint8_t> bytes) override {
    PTXBENCH_TRY(reachable(address, bytes.size(), "write"));
    if (gate_closed_) return behind_gate("write");
    records.push_back({FakeRecord::Kind::write, {}, address, bytes.size()});
    if (!bytes.empty()) std::memcpy(raw(address), bytes.data(), bytes.size());
    return {};
  }
  Result<void> read(std::uint64_t address, std::span<std::uint8_t> bytes) override {
    PTXBENCH_TRY(reachable(address, bytes.size(), "read"));
    if (gate_closed_) return behind_gate("read");
    records.push_back({FakeRecord::Kind::read, {}, address, bytes.size()});
    if (!bytes.empty()) std::memcpy(bytes.data(), raw(address), bytes.size());
    return {};
  }
  Result<void> fill(std::uint64_t address, std::uint64_t pattern, int element_bytes,
                    std::uint64_t elements) override {
    if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4 && element_bytes != 8)
      return make_error(ErrorCode::invalid_argument, "fill: elements have 1, 2, 4 or 8 bytes");
    const std::uint64_t size = static_cast<std::uint64_t>(element_bytes);
    PTXBENCH_TRY(reachable(address, elements * size, "fill"));
    records.push_back({FakeRecord::Kind::fill, {}, address, elements * size, pattern});
    for (std::uint64_t i = 0; i < elements; ++i) std::memcpy(raw(address + i * size), &pattern, size);
    now_ += operation_ns;
    return {};
  }
  Result<void> copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override {
    PTXBENCH_TRY(reachable(to, bytes, "copy"));
    PTXBENCH_TRY(reachable(from, bytes, "copy"));
    records.push_back({FakeRecord::Kind::copy, {}, to, bytes});
    if (bytes != 0) std::memmove(raw(to), raw(from), bytes);
    now_ += operation_ns;
    return {};
  }
  void* host_view(std::uint64_t address) noexcept override {
    auto it = allocations_.upper_bound(address);
    if (it == allocations_.begin()) return nullptr;
    --it;
    return address < it->first + it->second.bytes ? raw(address) : nullptr;
  }

  Result<DeviceModule> load(const ModuleImage& image) override {
    PTXBENCH_TRY(usable());
    if (gate_closed_) return behind_gate("load");
    if (!kernels_.count(image.source) && !globals_.count(image.source))
      return make_error(ErrorCode::not_found, "fake device: no module \"" + image.source + "\" was defined");
    Module module{image.source, image.lowered, {}};
    for (const auto& [symbol, bytes] : globals_[image.source]) {
      DeviceBuffer buffer = new_block(bytes.size());
      ++owned_;
      if (!bytes.empty()) std::memcpy(raw(buffer.address), bytes.data(), bytes.size());
      module.globals.push_back({symbol, buffer});
    }
    modules_.push_back(std::move(module));
    return static_cast<DeviceModule>(modules_.size() - 1);
  }
  void unload(DeviceModule module) noexcept override {
    if (module >= modules_.size() || !modules_[module]) return;
    for (const auto& [symbol, buffer] : modules_[module]->globals) {
      release(buffer);
      --owned_;
    }
    modules_[module].reset();
  }
  Result<ModuleInfo> describe(DeviceModule module) override {
    PTXBENCH_TRY(known(module));
    ModuleInfo info;
    info.source = modules_[module]->source;
    info.lowered = modules_[module]->lowered;
    for (const auto& [kernel, body] : kernels_[info.source]) info.kernels.push_back(kernel);
    for (const auto& [symbol, buffer] : modules_[module]->globals)
      info.globals.push_back({symbol, buffer.bytes});
    return info;
  }
  Result<DeviceBuffer> global(DeviceModule module, std::string_view symbol) override {
    PTXBENCH_TRY(known(module));
    for (const auto& [name, buffer] : modules_[module]->globals)
      if (name == symbol) return buffer;
    return make_error(ErrorCode::not_found, "module \"" + modules_[module]->source + "\" has no global \"" +
                                                std::string(symbol) + "\"");
  }
  DeviceQueries queries(std::vector<DeviceModule>) override {
    return {[this](const OccupancyQuery&) -> Result<std::int64_t> { return occupancy; },
            [this](const OccupancyQuery&) -> Result<std::int64_t> { return max_active_clusters; }};
  }

  // Not the driver's bytes: the base address, then rank, data type and box, so that a fake kernel can read
  // them.
  Result<std::array<std::uint8_t, 128>> encode(const ResolvedTensorMap& map,
                                               std::uint64_t base_address) override {
    std::array<std::uint8_t, 128> bytes{};
    std::memcpy(bytes.data(), &base_address, 8);
    bytes[8] = static_cast<std::uint8_t>(map.dims.size());
    bytes[9] = static_cast<std::uint8_t>(map.data_type);
    for (std::size_t i = 0; i < map.box.size() && i < 5; ++i)
      std::memcpy(bytes.data() + 12 + 4 * i, &map.box[i], 4);
    return bytes;
  }
  Result<DeviceOutcome> launch(const DeviceLaunch& launch) override {
    if (lost_) return lost_;
    PTXBENCH_TRY(known(launch.module));
    for (const auto& [kernel, body] : kernels_[modules_[launch.module]->source]) {
      if (kernel.symbol != launch.symbol) continue;
      if (before_launch)
        if (DeviceOutcome refused = before_launch(launch)) {
          gate_closed_ = false;
          if (refused->sticky) lost_ = refused;
          return refused;
        }
      records.push_back({FakeRecord::Kind::launch, kernel.symbol});
      if (pending_) return DeviceOutcome{};  // behind a fault: never runs
      FakeCall call(*this, launch, kernel);
      body(call);
      now_ += operation_ns + call.nanoseconds_;
      pending_ = std::move(call.fault_);
      return DeviceOutcome{};
    }
    return make_error(ErrorCode::not_found, "module \"" + modules_[launch.module]->source +
                                                "\" has no kernel \"" + std::string(launch.symbol) + "\"");
  }
  Result<DeviceOutcome> synchronize(std::uint64_t) override {
    if (lost_) return lost_;
    if (gate_closed_) return behind_gate("synchronize");
    records.push_back({FakeRecord::Kind::synchronize});
    DeviceOutcome outcome = std::move(pending_);
    pending_.reset();
    if (outcome && outcome->sticky) lost_ = outcome;
    return outcome;
  }

  std::optional<DeviceFault> loss() const override { return lost_; }
  Result<DeviceEvent> create_event() override {
    PTXBENCH_TRY(usable());
    ++live_events;
    events_.emplace_back();
    return static_cast<DeviceEvent>(events_.size() - 1);
  }
  void destroy_event(DeviceEvent) noexcept override { --live_events; }
  int live_events = 0;
  Result<void> record(DeviceEvent event) override {
    PTXBENCH_TRY(usable());
    if (event >= events_.size()) return make_error(ErrorCode::invalid_argument, "no such event");
    records.push_back({FakeRecord::Kind::record});
    events_[event] = now_;
    return {};
  }
  Result<std::uint64_t> elapsed_ns(DeviceEvent start, DeviceEvent end) override {
    PTXBENCH_TRY(usable());
    if (start >= events_.size() || end >= events_.size() || !events_[start] || !events_[end])
      return make_error(ErrorCode::state, "an event was not recorded");
    if (gate_closed_) return make_error(ErrorCode::busy, "an event is not reached yet");
    return *events_[end] - *events_[start];
  }
  Result<void> close_gate() override {
    PTXBENCH_TRY(usable());
    if (gate_closed_) return make_error(ErrorCode::state, "the gate is closed already");
    records.push_back({FakeRecord::Kind::close_gate});
    gate_closed_ = true;
    return {};
  }
  Result<void> open_gate() override {
    records.push_back({FakeRecord::Kind::open_gate});
    gate_closed_ = false;
    return {};
  }
  void* native_stream() noexcept override { return nullptr; }

 private:
  struct Block {
    std::unique_ptr<std::uint8_t[]> storage;
    std::uint64_t bytes = 0;
  };
  struct Module {
    std::string source;
    std::vector<std::pair<std::string, std::string>> lowered;
    std::vector<std::pair<std::string, DeviceBuffer>> globals;
  };

  static std::uint8_t* raw(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

  DeviceBuffer new_block(std::uint64_t bytes) {
    Block block{std::make_unique<std::uint8_t[]>(bytes + 512), bytes};
    const auto base = reinterpret_cast<std::uint64_t>(block.storage.get());
    const std::uint64_t address = (base + 255) / 256 * 256;
    std::memset(raw(address), fresh_byte, bytes);
    live_bytes_ += bytes;
    allocations_.emplace(address, std::move(block));
    return {address, bytes};
  }
  Result<void> usable() const {
    if (lost_) return make_error(ErrorCode::driver, "the device is lost: " + lost_->message);
    return {};
  }
  Result<void> reachable(std::uint64_t address, std::uint64_t bytes, const char* what) const {
    PTXBENCH_TRY(usable());
    if (bytes == 0) return {};
    auto it = allocations_.upper_bound(address);
    if (it != allocations_.begin()) {
      --it;
      const std::uint64_t offset = address - it->first;
      if (offset <= it->second.bytes && bytes <= it->second.bytes - offset) return {};
    }
    return make_error(ErrorCode::invalid_argument, std::string("fake device: ") + what + " of " +
                                                       std::to_string(bytes) +
                                                       " bytes outside of any allocation");
  }
  Result<void> known(DeviceModule module) const {
    PTXBENCH_TRY(usable());
    if (module >= modules_.size() || !modules_[module])
      return make_error(ErrorCode::invalid_argument, "no such module: " + std::to_string(module));
    return {};
  }
  static Error behind_gate(const char* what) {
    return make_error(ErrorCode::state, std::string(what) + " would wait for ever: the gate is closed");
  }

  DeviceInfo info_;
  std::map<std::string, std::vector<std::pair<KernelInfo, FakeKernel>>> kernels_;
  std::map<std::string, std::vector<std::pair<std::string, std::vector<std::uint8_t>>>> globals_;
  std::map<std::uint64_t, Block> allocations_;
  std::uint64_t live_bytes_ = 0;
  std::size_t owned_ = 0;  // allocations that hold globals of modules
  std::vector<std::optional<Module>> modules_;
  std::vector<std::optional<std::uint64_t>> events_;
  std::uint64_t now_ = 0;
  bool gate_closed_ = false;
  DeviceOutcome pending_, lost_;
};

template <class T>
T* FakeCall::pointer(std::size_t index) const {
  return static_cast<T*>(device.host_view(argument<std::uint64_t>(index)));
}

}  // namespace ptxbench::testing
