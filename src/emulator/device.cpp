#include "emulator/device.hpp"

#include "core/guard.hpp"
#include "emulator/tensor_map.hpp"
#include "emulator/text.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace ptxbench::emulator {
namespace {

// Of operations that are waited for without a deadline (a read in front of a synchronize).
constexpr std::uint64_t kOwnDeadlineNs = 60'000'000'000;
constexpr std::uint64_t kNever = UINT64_MAX;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}
std::uint64_t in(std::uint64_t ns) {
  const std::uint64_t now = now_ns();
  return ns > kNever - now ? kNever : now + ns;
}

Error no_timing() {
  return make_error(ErrorCode::unsupported, "the emulator does not measure time: there are no events and no gate");
}

}  // namespace

Emulator::Emulator(const EmulatorOptions& options, DeviceInfo info)
    : options_(options), info_(std::move(info)), profile_sm_count_(info_.limits.sm_count), memory_(options.memory_bytes) {}

Emulator::~Emulator() {
  queue_.clear();
  modules_.clear();  // they hold places in memory
}

Result<LoadedModule*> Emulator::module_at(DeviceModule module) const {
  if (module >= modules_.size() || modules_[module] == nullptr)
    return make_error(ErrorCode::invalid_argument, "no such module: " + std::to_string(module));
  return modules_[module].get();
}

Result<std::uint8_t*> Emulator::at(std::uint64_t address, std::uint64_t bytes, const char* what) const {
  std::uint8_t* place = const_cast<Memory&>(memory_).host(address, bytes);
  if (place != nullptr) return place;
  return make_error(ErrorCode::invalid_argument, std::string(what) + " of " + std::to_string(bytes) + " bytes at " +
                                                     hex(address) + " lies outside of any allocation");
}

// --- memory ---

Result<DeviceBuffer> Emulator::allocate(std::uint64_t bytes) {
  return guarded([&]() -> Result<DeviceBuffer> {
    PTXBENCH_TRY_ASSIGN(const std::uint64_t address, memory_.allocate(std::max<std::uint64_t>(bytes, 1)));
    return DeviceBuffer{address, bytes};
  });
}

void Emulator::release(DeviceBuffer buffer) noexcept {
  if (buffer.address == 0) return;
  settle();  // what is queued may use it
  memory_.release(buffer.address);
}

Result<void> Emulator::write(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return {};
  settle();
  PTXBENCH_TRY_ASSIGN(std::uint8_t* to, at(address, bytes.size(), "a write"));
  std::memcpy(to, bytes.data(), bytes.size());
  memory_.define(address, bytes.size());
  return {};
}

Result<void> Emulator::read(std::uint64_t address, std::span<std::uint8_t> bytes) {
  if (bytes.empty()) return {};
  settle();
  PTXBENCH_TRY_ASSIGN(const std::uint8_t* from, at(address, bytes.size(), "a read"));
  std::memcpy(bytes.data(), from, bytes.size());
  return {};
}

void Emulator::do_fill(const Fill& fill) {
  const std::uint64_t size = static_cast<std::uint64_t>(fill.element_bytes);
  std::uint8_t* to = memory_.host(fill.address, size * fill.elements);
  if (to == nullptr) return;  // released since: nobody can see it
  if (fill.poison) memory_.undefine(fill.address, size * fill.elements);
  else memory_.define(fill.address, size * fill.elements);
  if (size == 1) {
    std::memset(to, static_cast<int>(fill.pattern & 0xff), fill.elements);
    return;
  }
  std::uint8_t element[8];
  std::memcpy(element, &fill.pattern, 8);
  for (std::uint64_t i = 0; i < fill.elements; ++i) std::memcpy(to + i * size, element, size);
}

void Emulator::do_copy(const Copy& copy) {
  std::uint8_t* to = memory_.host(copy.to, copy.bytes);
  const std::uint8_t* from = memory_.host(copy.from, copy.bytes);
  if (to == nullptr || from == nullptr) return;
  std::memmove(to, from, copy.bytes);
  memory_.copy_undefined(copy.to, copy.from, copy.bytes);
}

Result<void> Emulator::fill(std::uint64_t address, std::uint64_t pattern, int element_bytes, std::uint64_t elements) {
  if (elements == 0) return {};
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4 && element_bytes != 8)
    return make_error(ErrorCode::invalid_argument, "a fill has elements of 1, 2, 4 or 8 bytes, not " + std::to_string(element_bytes));
  if (elements > UINT64_MAX / 8) return make_error(ErrorCode::invalid_argument, "a fill of too many elements");
  return queue_fill({address, pattern, elements, element_bytes, false});
}

Result<void> Emulator::poison(std::uint64_t address, std::uint8_t byte, std::uint64_t bytes) {
  if (bytes == 0) return {};
  return queue_fill({address, byte, bytes, 1, true});
}

Result<void> Emulator::queue_fill(const Fill& fill) {
  return guarded([&]() -> Result<void> {
    PTXBENCH_TRY(at(fill.address, fill.elements * static_cast<std::uint64_t>(fill.element_bytes), "a fill"));
    if (queue_.empty()) do_fill(fill);
    else queue_.push_back(fill);
    return {};
  });
}

Result<void> Emulator::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  if (bytes == 0) return {};
  PTXBENCH_TRY(at(to, bytes, "a copy"));
  PTXBENCH_TRY(at(from, bytes, "a copy"));
  return guarded([&]() -> Result<void> {
    const Copy copy{to, from, bytes};
    if (queue_.empty()) do_copy(copy);
    else queue_.push_back(copy);
    return {};
  });
}

void Emulator::label(const DeviceBuffer& buffer, const MemoryLabel& what) {
  if (buffer.bytes != 0) memory_.name(buffer.address, buffer.bytes, what);
}

void* Emulator::host_view(std::uint64_t address) noexcept {
  settle();
  return memory_.host(address, 1);
}

// --- modules ---

Result<DeviceModule> Emulator::load(const ModuleImage& image) {
  return guarded([&]() -> Result<DeviceModule> {
    if (image.cubin.empty() && image.ptx.empty())
      return make_error(ErrorCode::invalid_argument, image.source + ": there is neither a cubin nor PTX to load");
    PTXBENCH_TRY_ASSIGN(std::unique_ptr<LoadedModule> module, LoadedModule::load(memory_, image));
    modules_.push_back(std::move(module));
    return static_cast<DeviceModule>(modules_.size() - 1);
  });
}

void Emulator::unload(DeviceModule module) noexcept {
  settle();
  if (module < modules_.size()) modules_[module].reset();
}

Result<ModuleInfo> Emulator::describe(DeviceModule module) {
  PTXBENCH_TRY_ASSIGN(const LoadedModule* loaded, module_at(module));
  return guarded([&]() -> Result<ModuleInfo> { return loaded->info(); });
}

Result<DeviceBuffer> Emulator::global(DeviceModule module, std::string_view symbol) {
  PTXBENCH_TRY_ASSIGN(const LoadedModule* loaded, module_at(module));
  const std::optional<DeviceBuffer> place = loaded->variable(symbol);
  if (place) return *place;
  return make_error(ErrorCode::not_found, loaded->info().source + " has no variable " + std::string(symbol));
}

Result<void> Emulator::prepare(DeviceModule module, std::string_view symbol) {
  PTXBENCH_TRY_ASSIGN(LoadedModule* loaded, module_at(module));
  return guarded([&]() -> Result<void> {
    PTXBENCH_TRY(loaded->kernel(symbol));
    return {};
  });
}

void Emulator::set_sm_count(int sm_count) {
  info_.limits.sm_count = sm_count > 0 ? sm_count : options_.sm_count ? *options_.sm_count : profile_sm_count_;
}

Result<std::array<std::uint8_t, 128>> Emulator::encode(const ResolvedTensorMap& map, std::uint64_t base_address) {
  const std::size_t rank = map.dims.size();
  const auto broken = [&](ErrorCode code, const std::string& why) {
    return make_error(code, "tensor map \"" + map.name + "\" (address " + hex(base_address) + "): " + why, {}, "tensor_map");
  };
  if (map.im2col) return broken(ErrorCode::unsupported, "the emulator does not know im2col yet");
  if (rank < 1 || rank > 5) return broken(ErrorCode::invalid_argument, "the rank is 1 to 5");
  if (map.strides.size() + 1 != rank) return broken(ErrorCode::invalid_argument, "strides are one fewer than dims");
  if (map.box.size() != rank || map.element_strides.size() != rank)
    return broken(ErrorCode::invalid_argument, "box and element strides are as many as dims");
  // The other rules of the driver were checked when the plan was resolved; only the address is new here.
  const std::uint64_t align = map.interleave == 2 ? 32 : 16;  // CU_TENSOR_MAP_INTERLEAVE_32B
  if (base_address % align != 0)
    return broken(ErrorCode::invalid_argument, "the address must be a multiple of " + std::to_string(align));
  TensorMap out;
  out.address = base_address;
  out.rank = static_cast<std::uint8_t>(rank);
  out.data_type = static_cast<std::uint8_t>(map.data_type);
  out.interleave = static_cast<std::uint8_t>(map.interleave);
  out.swizzle = static_cast<std::uint8_t>(map.swizzle);
  out.oob_fill = static_cast<std::uint8_t>(map.oob_fill);
  out.l2_promotion = static_cast<std::uint8_t>(map.l2_promotion);
  for (std::size_t i = 0; i < rank; ++i) {
    out.dims[i] = map.dims[i];
    out.box[i] = map.box[i];
    out.element_strides[i] = map.element_strides[i];
    if (i > 0) out.strides[i - 1] = map.strides[i - 1];
  }
  return emulator::encode(out);
}

// --- what the emulator has not ---

Result<DeviceEvent> Emulator::create_event() { return no_timing(); }
Result<void> Emulator::record(DeviceEvent) { return no_timing(); }
Result<std::uint64_t> Emulator::elapsed_ns(DeviceEvent, DeviceEvent) { return no_timing(); }
Result<void> Emulator::close_gate() { return no_timing(); }
Result<void> Emulator::open_gate() { return no_timing(); }

// --- the queue ---

Result<DeviceOutcome> Emulator::drain(std::uint64_t deadline) {
  while (!queue_.empty()) {
    const Operation operation = std::move(queue_.front());
    queue_.pop_front();
    if (const auto* fill = std::get_if<Fill>(&operation)) {
      do_fill(*fill);
    } else if (const auto* copy = std::get_if<Copy>(&operation)) {
      do_copy(*copy);
    } else {
      const Launch* next = queue_.empty() ? nullptr : std::get_if<Launch>(&queue_.front());
      const bool next_depends = next != nullptr && next->dependent;
      Result<DeviceOutcome> ran = do_launch(std::get<Launch>(operation), next_depends, deadline);
      if (!ran || *ran) {
        queue_.clear();  // what stands behind a fault never runs
        return ran;
      }
    }
  }
  return DeviceOutcome{};
}

void Emulator::settle() noexcept {
  if (queue_.empty()) return;
  Result<DeviceOutcome> ran = guarded([&] { return drain(in(kOwnDeadlineNs)); });
  if (!ran) {
    pending_error_ = std::move(ran).error();
  } else if (*ran && !pending_fault_) {
    pending_fault_ = std::move(*ran);
  }
}

Result<DeviceOutcome> Emulator::synchronize(std::uint64_t deadline_ns) {
  return guarded([&]() -> Result<DeviceOutcome> {
    if (pending_error_) {
      Error error = std::move(*pending_error_);
      pending_error_.reset();
      return error;
    }
    if (pending_fault_) return std::exchange(pending_fault_, std::nullopt);
    return drain(in(deadline_ns));
  });
}

}  // namespace ptxbench::emulator
