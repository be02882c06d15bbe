#include "evaluate/context.hpp"

#include "core/guard.hpp"
#include "evaluate/pipeline.hpp"
#include "worker/gpu_lock.hpp"

#include <ptxbench/emulator.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

namespace ptxbench {
namespace {

// The user's cache folder by the XDG Base Directory Specification; empty where there is no home.
std::string default_cache_dir() {
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && xdg[0] == '/')
    return std::string(xdg) + "/ptxbench";
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/')
    return std::string(home) + "/.cache/ptxbench";
  return {};
}

constexpr std::uint64_t kLeastCompileMemory = std::uint64_t{64} << 20;

// As many as there are compile workers: each thread waits for one.
int compile_threads(const ContextOptions& options) {
  if (options.compile_workers > 0) return options.compile_workers;
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

ContextImpl::ContextImpl(ContextOptions options, std::shared_ptr<Workers> workers)
    : options_(std::move(options)), workers_(std::move(workers)), compilers_(compile_threads(options_)) {}

// There are no jobs any more: each holds the context.
ContextImpl::~ContextImpl() {
  if (job_lane_) job_lane_->stop();
}

int ContextImpl::compile_window() const {
  constexpr int kReady = 4;  // wait for the device, so that it does not wait
  return compilers_.most() + kReady;
}

std::shared_ptr<Lane> ContextImpl::job_lane() {
  const std::lock_guard lock(mutex_);
  if (job_lane_) return job_lane_;
  auto lane = std::make_shared<Lane>(compilers_, measurers_, compile_window());
  measurer_.post([lane] {
    while (std::optional<Lane::Ready> ready = lane->take(nullptr)) lane->measure(std::move(*ready));
  });
  job_lane_ = std::move(lane);
  return job_lane_;
}

bool no_gpu(const Error& error) noexcept { return error.code == ErrorCode::no_device || error.code == ErrorCode::toolkit; }

Result<DeviceInfo> ContextImpl::device(const CancelToken& cancel) {
  constexpr std::chrono::milliseconds kLook{10};  // how often the cancel token is looked at
  std::unique_lock lock(device_mutex_);
  while (device_opening_) {
    device_changed_.wait_for(lock, kLook);
    if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled while the device was opened");
  }
  if (device_ && device_->has_value()) return *device_;
  if (options_.device == "none") return make_error(ErrorCode::no_device, "none was asked for (device \"none\")");
  // That there is no device is remembered too: looking costs a process. Other errors may pass.
  if (device_ && device_->error().code == ErrorCode::no_device) return *device_;
  device_opening_ = true;
  lock.unlock();
  Result<DeviceInfo> opened = guarded([&] { return open_device(cancel); });
  lock.lock();
  device_opening_ = false;
  device_ = opened;
  device_changed_.notify_all();
  return opened;
}

Result<DeviceInfo> ContextImpl::open_device(const CancelToken& cancel) {
  Result<DeviceInfo> device = workers_->open_device(options_.device, options_.cuda_home, cancel);
  if (options_.device != "auto" || device || !no_gpu(device.error())) return device;
  if (options_.log) options_.log(LogLevel::info, "no GPU (" + device.error().to_string() + "): candidates run on the emulator");
  return workers_->open_device(std::string(kDefaultEmulator), options_.cuda_home, cancel);
}

Result<std::vector<std::uint8_t>> ContextImpl::judge_cubin(const std::string& arch, const CancelToken& cancel) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = judge_cubins_.find(arch); found != judge_cubins_.end()) return found->second;
  }
  CompileRequest request = judge_compile_request(arch);
  request.toolkit.cuda_home = options_.cuda_home;
  request.cache_dir = options_.cache_dir.value_or("");
  PTXBENCH_TRY_ASSIGN(Compiled compiled, workers_->compile(request, cancel));
  if (!compiled.ok || compiled.modules.empty() || compiled.modules[0].cubin.empty())
    return make_error(ErrorCode::internal, "the judge's own device code does not compile for " + arch + ":\n" + compiled.log);
  const std::lock_guard lock(mutex_);
  return judge_cubins_.emplace(arch, std::move(compiled.modules[0].cubin)).first->second;
}

ContextImpl::Modules ContextImpl::kept_modules(const std::string& key) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, modules] : modules_)
    if (name == key) return modules;
  return nullptr;
}

void ContextImpl::keep_modules(const std::string& key, Modules modules) {
  constexpr std::size_t kMost = 32;
  const std::lock_guard lock(mutex_);
  if (modules_.size() == kMost) modules_.pop_front();
  modules_.emplace_back(key, std::move(modules));
}

std::optional<double> ContextImpl::noise_floor(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = noise_floors_.find(key);
  if (found == noise_floors_.end()) return std::nullopt;
  return found->second;
}

void ContextImpl::keep_noise_floor(const std::string& key, double value) {
  const std::lock_guard lock(mutex_);
  noise_floors_[key] = value;
}

Result<std::shared_ptr<Context>> Context::create(const ContextOptions& options) {
  return guarded([&]() -> Result<std::shared_ptr<Context>> {
    ContextOptions own = options;
    if (own.compile_memory_bytes < kLeastCompileMemory)
      return make_error(ErrorCode::invalid_argument, "compile_memory_bytes is " + std::to_string(own.compile_memory_bytes) +
                                                         "; a compiler needs at least " + std::to_string(kLeastCompileMemory));
    if (!own.cache_dir) own.cache_dir = default_cache_dir();
    // A name that no emulator has is said now; the device itself is opened in a worker.
    if (is_emulator_name(own.device)) {
      PTXBENCH_TRY_ASSIGN(const EmulatorOptions named, parse_emulator_name(own.device));
      PTXBENCH_TRY(open_emulator_device(named));
    }
    WorkerOptions worker_options;
    worker_options.worker_path = own.worker_path;
    worker_options.compile_workers = own.compile_workers;
    worker_options.memory_limit_bytes = own.compile_memory_bytes;
    worker_options.lock_dir = own.lock_dir.value_or(kDefaultLockDir);
    worker_options.log = own.log;
    PTXBENCH_TRY_ASSIGN(std::shared_ptr<Workers> workers, Workers::create(worker_options));
    return std::shared_ptr<Context>(std::make_shared<ContextImpl>(std::move(own), std::move(workers)));
  });
}

}  // namespace ptxbench
