#include "device/cuda_device.hpp"

#include "device/cuda_faults.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

namespace ptxbench {
namespace {

// Element `pattern` of 8 bytes, n times, has no memset of its own where its halves differ.
using MemsetD2D32Async = decltype(&::cuMemsetD2D32Async);
#define PTXBENCH_NAME_(x) #x
#define PTXBENCH_NAME(x) PTXBENCH_NAME_(x)
constexpr const char* kMemsetD2D32AsyncName = PTXBENCH_NAME(cuMemsetD2D32Async);

}  // namespace

CudaDevice::Current::Current(const CudaDevice& device) : device_(device) {
  CUcontext now = nullptr;
  if (device.driver_->cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == device.context_) return;
  pushed_ = device.driver_->cuCtxPushCurrent(device.context_) == CUDA_SUCCESS;
}

CudaDevice::Current::~Current() {
  CUcontext popped = nullptr;
  if (pushed_) device_.driver_->cuCtxPopCurrent(&popped);
}

CudaDevice::CudaDevice(std::shared_ptr<const CudaDriver> driver, CudaDeviceEntry entry)
    : driver_(std::move(driver)), device_(entry.device), info_(std::move(entry.info)) {}

Result<void> CudaDevice::open() {
  // The context stays current on this thread: libraries that share the stream need it so.
  if (const CUresult result =
          driver_->ctx_create(&context_, CU_CTX_MAP_HOST | CU_CTX_LMEM_RESIZE_TO_MAX, device_);
      result != CUDA_SUCCESS) {
    context_ = nullptr;
    return driver_error(*driver_, result, "making a context on " + info_.id);
  }
  if (const CUresult result = driver_->cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING);
      result != CUDA_SUCCESS)
    return driver_error(*driver_, result, "making a stream");
  void* flag = nullptr;
  if (const CUresult result = driver_->cuMemHostAlloc(&flag, 64, CU_MEMHOSTALLOC_DEVICEMAP);
      result != CUDA_SUCCESS)
    return driver_error(*driver_, result, "allocating the gate's flag");
  gate_flag_ = static_cast<volatile std::uint32_t*>(flag);
  *gate_flag_ = 0;
  if (const CUresult result = driver_->cuMemHostGetDevicePointer(&gate_address_, flag, 0);
      result != CUDA_SUCCESS)
    return driver_error(*driver_, result, "mapping the gate's flag");
  // No part of the L2 is set aside for persisting accesses: 0 is the default, but not one that is promised.
  driver_->cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0);
  std::size_t stack = 0;
  if (driver_->cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS) local_bytes_ready_ = stack;
  return {};
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr) return;
  raise_flag();
  // Work that never ends keeps every call below waiting; the process's end frees all.
  if (timed_out_) return;
  {
    Current current(*this);
    if (!lost_) {
      for (CUevent event : events_)
        if (event != nullptr) driver_->cuEventDestroy(event);
      for (const DeviceBuffer& buffer : release_later_) driver_->cuMemFree(buffer.address);
      for (const std::optional<Module>& module : modules_)
        if (module) driver_->cuModuleUnload(module->handle);
      if (stream_ != nullptr) driver_->cuStreamDestroy(stream_);
      if (beside_ != nullptr) driver_->cuStreamDestroy(beside_);
      if (gate_flag_ != nullptr) driver_->cuMemFreeHost(const_cast<std::uint32_t*>(gate_flag_));
    }
  }
  driver_->cuCtxDestroy(context_);
}

Result<void> CudaDevice::usable(const char* what) const {
  if (!lost_) return {};
  return make_error(ErrorCode::driver, std::string(what) + ": the device is lost since " + lost_->message);
}

Result<void> CudaDevice::may_wait(const char* what) const {
  PTXBENCH_TRY(usable(what));
  if (gate_closed_)
    return make_error(ErrorCode::state, std::string(what) + " would wait for ever: the gate is closed");
  return {};
}

DeviceFault CudaDevice::lose(DeviceFault fault) {
  if (!lost_) {
    fault.sticky = true;
    lost_ = std::move(fault);
  }
  return *lost_;
}

Error CudaDevice::failed(CUresult result, const std::string& what) {
  raise_flag();
  if (is_sticky(result)) lose(make_fault(*driver_, result, what));
  return driver_error(*driver_, result, what);
}

void CudaDevice::raise_flag() noexcept {
  if (gate_closed_ && gate_flag_ != nullptr) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    *gate_flag_ = gate_ticket_;
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  gate_closed_ = false;
  behind_gate_ = parameters_behind_gate_ = 0;
}

Result<void> CudaDevice::count_queued(std::size_t operations, const char* what, std::size_t parameter_bytes) {
  if (!gate_closed_) return {};
  behind_gate_ += operations;
  parameters_behind_gate_ += parameter_bytes;
  if (behind_gate_ <= kMostBehindGate && parameters_behind_gate_ <= kMostParametersBehindGate) return {};
  raise_flag();
  return make_error(ErrorCode::state,
                    std::string(what) + ": more than " + std::to_string(kMostBehindGate) + " operations or " +
                        std::to_string(kMostParametersBehindGate) +
                        " bytes of parameters behind the closed gate; the driver's queue would block");
}

// --- memory ---

Result<DeviceBuffer> CudaDevice::allocate(std::uint64_t bytes) {
  PTXBENCH_TRY(may_wait("allocating"));
  Current current(*this);
  CUdeviceptr address = 0;
  const CUresult result = driver_->cuMemAlloc(&address, std::max<std::uint64_t>(bytes, 1));
  if (result != CUDA_SUCCESS) return failed(result, "allocating " + std::to_string(bytes) + " bytes");
  return DeviceBuffer{address, bytes};
}

void CudaDevice::release(DeviceBuffer buffer) noexcept {
  if (buffer.address == 0 || lost_) return;  // a lost context frees all at its end
  if (gate_closed_) {
    try {
      release_later_.push_back(buffer);
    } catch (...) {
    }
    return;
  }
  Current current(*this);
  if (const CUresult result = driver_->cuMemFree(buffer.address); is_sticky(result)) {
    try {
      lose(make_fault(*driver_, result, "freeing memory"));
    } catch (...) {
    }
  }
}

Result<void> CudaDevice::write(std::uint64_t address, std::span<const std::uint8_t> bytes) {
  PTXBENCH_TRY(may_wait("writing to the device"));
  if (bytes.empty()) return {};
  Current current(*this);
  CUresult result = driver_->cuMemcpyHtoDAsync(address, bytes.data(), bytes.size(), stream_);
  if (result == CUDA_SUCCESS) result = driver_->cuStreamSynchronize(stream_);
  if (result != CUDA_SUCCESS)
    return failed(result, "writing " + std::to_string(bytes.size()) + " bytes to the device");
  return {};
}

Result<void> CudaDevice::read(std::uint64_t address, std::span<std::uint8_t> bytes) {
  PTXBENCH_TRY(may_wait("reading from the device"));
  if (bytes.empty()) return {};
  Current current(*this);
  CUresult result = driver_->cuMemcpyDtoHAsync(bytes.data(), address, bytes.size(), stream_);
  if (result == CUDA_SUCCESS) result = driver_->cuStreamSynchronize(stream_);
  if (result != CUDA_SUCCESS)
    return failed(result, "reading " + std::to_string(bytes.size()) + " bytes from the device");
  return {};
}

Result<void> CudaDevice::fill(std::uint64_t address, std::uint64_t pattern, int element_bytes,
                              std::uint64_t elements) {
  PTXBENCH_TRY(usable("filling memory"));
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4 && element_bytes != 8)
    return make_error(ErrorCode::invalid_argument,
                      "fill: elements have 1, 2, 4 or 8 bytes, not " + std::to_string(element_bytes));
  if (address % static_cast<std::uint64_t>(element_bytes) != 0)
    return make_error(ErrorCode::invalid_argument, "fill: the address is not aligned to its elements");
  if (elements == 0) return {};
  const auto low = static_cast<std::uint32_t>(pattern), high = static_cast<std::uint32_t>(pattern >> 32);
  if (element_bytes == 8 && low != high) return fill_pairs(address, low, high, elements);
  PTXBENCH_TRY(count_queued(1, "filling memory"));
  Current current(*this);
  CUresult result = CUDA_SUCCESS;
  switch (element_bytes) {
    case 1:
      result = driver_->cuMemsetD8Async(address, static_cast<unsigned char>(low), elements, stream_);
      break;
    case 2:
      result = driver_->cuMemsetD16Async(address, static_cast<unsigned short>(low), elements, stream_);
      break;
    case 4:
      result = driver_->cuMemsetD32Async(address, low, elements, stream_);
      break;
    default:
      result = driver_->cuMemsetD32Async(address, low, elements * 2, stream_);
  }
  if (result != CUDA_SUCCESS) return failed(result, "filling " + std::to_string(elements) + " elements");
  return {};
}

// There is no memset of 8 bytes. The first elements are two columns of 4 bytes in rows of 8 (which is
// slow: 1.3 ms for 8 MiB), and the rest is copied from them, twice as many each time.
Result<void> CudaDevice::fill_pairs(std::uint64_t address, std::uint32_t low, std::uint32_t high,
                                    std::uint64_t elements) {
  const auto columns = reinterpret_cast<MemsetD2D32Async>(driver_->library.symbol(kMemsetD2D32AsyncName));
  if (columns == nullptr)
    return make_error(ErrorCode::toolkit, "the CUDA driver lacks " + std::string(kMemsetD2D32AsyncName));
  PTXBENCH_TRY(count_queued(2, "filling memory"));
  Current current(*this);
  std::uint64_t done = std::min<std::uint64_t>(elements, 1024);
  CUresult result = columns(address, 8, low, 1, done, stream_);
  if (result == CUDA_SUCCESS) result = columns(address + 4, 8, high, 1, done, stream_);
  if (result != CUDA_SUCCESS) return failed(result, "filling " + std::to_string(elements) + " elements");
  while (done < elements) {
    const std::uint64_t more = std::min(done, elements - done);
    PTXBENCH_TRY(copy(address + done * 8, address, more * 8));
    done += more;
  }
  return {};
}

Result<void> CudaDevice::copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) {
  PTXBENCH_TRY(usable("copying"));
  if (bytes == 0) return {};
  PTXBENCH_TRY(count_queued(1, "copying"));
  Current current(*this);
  const CUresult result = driver_->cuMemcpyDtoDAsync(to, from, bytes, stream_);
  if (result != CUDA_SUCCESS)
    return failed(result, "copying " + std::to_string(bytes) + " bytes on the device");
  return {};
}

// --- waiting ---

Result<DeviceOutcome> CudaDevice::synchronize(std::uint64_t deadline_ns) {
  if (lost_) return DeviceOutcome(*lost_);
  PTXBENCH_TRY(may_wait("synchronizing"));
  using Clock = std::chrono::steady_clock;
  Current current(*this);
  const Clock::time_point start = Clock::now();
  auto pause = std::chrono::microseconds(50);
  while (true) {
    CUresult result = driver_->cuStreamQuery(stream_);
    if (result == CUDA_SUCCESS && beside_ != nullptr) result = driver_->cuStreamQuery(beside_);
    if (result == CUDA_SUCCESS) return DeviceOutcome{};
    if (result != CUDA_ERROR_NOT_READY) {
      DeviceFault fault = make_fault(*driver_, result, "running");
      // Whatever else the query reports, the context has had its day.
      return DeviceOutcome(lose(std::move(fault)));
    }
    const auto waited = static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    if (waited > deadline_ns) {
      timed_out_ = true;
      DeviceFault fault;
      fault.kind = DeviceFault::Kind::timeout;
      fault.name = "DEADLINE_EXCEEDED";
      fault.message = "the work did not end within " + std::to_string(deadline_ns / 1000000) + " ms";
      return DeviceOutcome(lose(std::move(fault)));
    }
    // Short runs are met by asking; long ones cost the host next to nothing.
    if (waited < 200'000) continue;
    const auto left = std::chrono::nanoseconds(deadline_ns - waited) + std::chrono::microseconds(10);
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(pause, left));
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
}

// --- timing ---

Result<void> CudaDevice::reset_persisting_l2() {
  PTXBENCH_TRY(may_wait("resetting the L2"));
  if (driver_->cuCtxResetPersistingL2Cache == nullptr) return {};
  Current current(*this);
  const CUresult result = driver_->cuCtxResetPersistingL2Cache();
  if (result == CUDA_ERROR_NOT_SUPPORTED) return {};
  if (result != CUDA_SUCCESS) return failed(result, "resetting persisting lines of the L2");
  return {};
}

Result<DeviceEvent> CudaDevice::create_event() {
  PTXBENCH_TRY(usable("making an event"));
  Current current(*this);
  CUevent event = nullptr;
  const CUresult result = driver_->cuEventCreate(&event, CU_EVENT_DEFAULT);
  if (result != CUDA_SUCCESS) return failed(result, "making an event");
  const auto free = std::find(events_.begin(), events_.end(), nullptr);
  const auto index = static_cast<DeviceEvent>(free - events_.begin());
  if (free != events_.end())
    *free = event;
  else
    events_.push_back(event);
  return index;
}

void CudaDevice::destroy_event(DeviceEvent event) noexcept {
  if (!has_event(event)) return;
  if (!lost_ && !timed_out_) {
    Current current(*this);
    driver_->cuEventDestroy(events_[event]);
  }
  events_[event] = nullptr;
}

bool CudaDevice::has_event(DeviceEvent event) const noexcept {
  return event < events_.size() && events_[event] != nullptr;
}

Result<void> CudaDevice::record(DeviceEvent event) {
  PTXBENCH_TRY(usable("recording an event"));
  if (!has_event(event)) return make_error(ErrorCode::invalid_argument, "no such event");
  PTXBENCH_TRY(count_queued(1, "recording an event"));
  Current current(*this);
  const CUresult result = driver_->cuEventRecord(events_[event], stream_);
  if (result != CUDA_SUCCESS) return failed(result, "recording an event");
  return {};
}

Result<std::uint64_t> CudaDevice::elapsed_ns(DeviceEvent start, DeviceEvent end) {
  PTXBENCH_TRY(usable("reading an event"));
  if (!has_event(start) || !has_event(end)) return make_error(ErrorCode::invalid_argument, "no such event");
  Current current(*this);
  float milliseconds = 0;
  const CUresult result = driver_->event_elapsed_time(&milliseconds, events_[start], events_[end]);
  if (result == CUDA_ERROR_NOT_READY) return make_error(ErrorCode::busy, "an event is not reached yet");
  if (result == CUDA_ERROR_INVALID_HANDLE) return make_error(ErrorCode::state, "an event was not recorded");
  if (result != CUDA_SUCCESS) return failed(result, "reading an event");
  return static_cast<std::uint64_t>(std::llround(std::max(0.0, static_cast<double>(milliseconds)) * 1e6));
}

// --- the gate ---

Result<void> CudaDevice::close_gate() {
  PTXBENCH_TRY(usable("closing the gate"));
  if (gate_closed_) return make_error(ErrorCode::state, "the gate is closed already");
  Current current(*this);
  const std::uint32_t ticket = gate_ticket_ + 1;
  const CUresult result =
      driver_->cuStreamWaitValue32(stream_, gate_address_, ticket, CU_STREAM_WAIT_VALUE_GEQ);
  if (result == CUDA_ERROR_NOT_SUPPORTED)
    return make_error(ErrorCode::unsupported, info_.id + " cannot make a stream wait for a value in memory");
  if (result != CUDA_SUCCESS) return failed(result, "closing the gate");
  gate_ticket_ = ticket;
  gate_closed_ = true;
  behind_gate_ = parameters_behind_gate_ = 0;
  return {};
}

Result<void> CudaDevice::open_gate() {
  raise_flag();
  std::vector<DeviceBuffer> later;
  later.swap(release_later_);
  for (const DeviceBuffer& buffer : later) release(buffer);
  return usable("opening the gate");
}

}  // namespace ptxbench
