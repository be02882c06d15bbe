// NVML, opened at run time. Its declarations are written here: CUDA's runtime packages come without its
// header. They are those of driver 525 and later, whose entry points carry their version in the name.
#include "core/cuda_libs.hpp"
#include "core/guard.hpp"

#include <ptxbench/bench.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace ptxbench {
namespace {

using NvmlDevice = struct NvmlDeviceHandle*;
using NvmlReturn = int;  // an enumeration in NVML
constexpr NvmlReturn kSuccess = 0, kNotFound = 6, kInsufficientSize = 7;
constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;

struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_bytes;
  unsigned int gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24);
struct ProcessUtilization {
  unsigned int pid;
  unsigned long long time_us;
  unsigned int sm_percent, memory_percent, encoder_percent, decoder_percent;
};
static_assert(sizeof(ProcessUtilization) == 32);

struct Nvml {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*driver_version)(char*, unsigned int) = nullptr;
  NvmlReturn (*handle_by_uuid)(const char*, NvmlDevice*) = nullptr;
  NvmlReturn (*clock)(NvmlDevice, int, unsigned int*) = nullptr;
  NvmlReturn (*max_clock)(NvmlDevice, int, unsigned int*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice, int, unsigned int*) = nullptr;
  NvmlReturn (*power)(NvmlDevice, unsigned int*) = nullptr;
  NvmlReturn (*reasons)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*processes)(NvmlDevice, unsigned int*, ProcessInfo*) = nullptr;
  NvmlReturn (*utilization)(NvmlDevice, ProcessUtilization*, unsigned int*, unsigned long long) = nullptr;
  Dylib library;

  std::string text(NvmlReturn result) const {
    const char* words = error_string == nullptr ? nullptr : error_string(result);
    return words == nullptr ? "NVML error " + std::to_string(result) : words;
  }
};

template <class Function>
bool load(const Dylib& library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(library.symbol(name));
  return to != nullptr;
}

Result<Nvml> open_nvml() {
  Nvml nvml;
  // It belongs to the driver, never to a toolkit (whose stub does nothing).
  ToolkitSearch by_loader;
  by_loader.file = "libnvidia-ml.so.1";
  PTXBENCH_TRY_ASSIGN(nvml.library, open_dylib("NVML", {}, by_loader));
  std::string missing;
  const auto need = [&](const char* name, auto& to) {
    if (!load(nvml.library, name, to)) missing += (missing.empty() ? "" : ", ") + std::string(name);
  };
  need("nvmlInit_v2", nvml.init);
  need("nvmlShutdown", nvml.shutdown);
  need("nvmlErrorString", nvml.error_string);
  need("nvmlSystemGetDriverVersion", nvml.driver_version);
  need("nvmlDeviceGetHandleByUUID", nvml.handle_by_uuid);
  need("nvmlDeviceGetClockInfo", nvml.clock);
  need("nvmlDeviceGetMaxClockInfo", nvml.max_clock);
  need("nvmlDeviceGetTemperature", nvml.temperature);
  need("nvmlDeviceGetPowerUsage", nvml.power);
  if (!load(nvml.library, "nvmlDeviceGetCurrentClocksEventReasons", nvml.reasons))
    need("nvmlDeviceGetCurrentClocksThrottleReasons", nvml.reasons);  // its name before driver 535
  load(nvml.library, "nvmlDeviceGetComputeRunningProcesses_v3", nvml.processes);
  load(nvml.library, "nvmlDeviceGetProcessUtilization", nvml.utilization);
  if (!missing.empty())
    return make_error(ErrorCode::toolkit,
                      "NVML at " + nvml.library.path + " is too old: it lacks " + missing);
  return nvml;
}

std::uint64_t now_us() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

class NvmlMonitor final : public GpuMonitor {
 public:
  explicit NvmlMonitor(Nvml nvml) : nvml_(std::move(nvml)) {}
  ~NvmlMonitor() override {
    if (open_) nvml_.shutdown();
  }
  NvmlMonitor(const NvmlMonitor&) = delete;
  NvmlMonitor& operator=(const NvmlMonitor&) = delete;

  Result<void> open(const std::string& device_id) {
    PTXBENCH_TRY(check(nvml_.init(), "starting NVML"));
    open_ = true;
    const std::string uuid = device_id.substr(device_id.rfind("cuda:", 0) == 0 ? 5 : 0);
    PTXBENCH_TRY(check(nvml_.handle_by_uuid(uuid.c_str(), &device_), "finding " + uuid));
    char version[96] = {};
    if (nvml_.driver_version(version, sizeof version - 1) == kSuccess) version_ = version;
    if (nvml_.max_clock(device_, kClockSm, &max_sm_mhz_) != kSuccess) max_sm_mhz_ = 0;
    return {};
  }

  std::string description() const override { return version_.empty() ? "NVML" : "NVML " + version_; }
  std::uint32_t max_sm_mhz() const override { return max_sm_mhz_; }

  // What a card does not tell (power, say) stays 0; the reasons it must.
  Result<GpuState> state() override {
    GpuState state;
    unsigned int value = 0;
    if (nvml_.clock(device_, kClockSm, &value) == kSuccess) state.sm_mhz = value;
    if (nvml_.clock(device_, kClockMemory, &value) == kSuccess) state.memory_mhz = value;
    if (nvml_.temperature(device_, kTemperatureGpu, &value) == kSuccess) state.temperature_c = value;
    if (nvml_.power(device_, &value) == kSuccess) state.power_mw = value;
    PTXBENCH_TRY_ASSIGN(state.reasons, reasons());
    return state;
  }

  Result<std::uint64_t> reasons() override {
    unsigned long long reasons = 0;
    PTXBENCH_TRY(check(nvml_.reasons(device_, &reasons), "asking why the clock is not higher"));
    return static_cast<std::uint64_t>(reasons);
  }

  void watch_others() override { since_us_ = now_us(); }

  Result<std::vector<OtherProcess>> others() override {
    if (nvml_.processes == nullptr || nvml_.utilization == nullptr)
      return make_error(ErrorCode::unsupported, "this NVML does not tell which processes compute");
    std::vector<ProcessInfo> running(64);
    auto count = static_cast<unsigned int>(running.size());
    PTXBENCH_TRY(check(nvml_.processes(device_, &count, running.data()), "listing processes"));
    running.resize(std::min<std::size_t>(count, running.size()));
    // This process has a context. Where it is not in the list, the list is of another PID namespace (a
    // container's host), or empty: then nobody can be told from us.
    const auto own = static_cast<unsigned int>(::getpid());
    const bool known =
        std::any_of(running.begin(), running.end(), [&](const ProcessInfo& p) { return p.pid == own; });
    if (known) return computing(own);
    if (running.size() <= 1) return std::vector<OtherProcess>{};  // us alone, under whichever number
    return make_error(ErrorCode::unsupported, "other processes cannot be told from this one: NVML lists " +
                                                    std::to_string(running.size()) +
                                                    " by the numbers of another PID namespace");
  }

 private:
  Result<void> check(NvmlReturn result, const std::string& what) const {
    if (result == kSuccess) return {};
    return make_error(ErrorCode::driver, what + ": " + nvml_.text(result));
  }

  // Those that used the SMs in samples since `watch_others`. Owning a context is no computing.
  Result<std::vector<OtherProcess>> computing(unsigned int own) const {
    std::vector<ProcessUtilization> samples(256);
    auto count = static_cast<unsigned int>(samples.size());
    const NvmlReturn result = nvml_.utilization(device_, samples.data(), &count, since_us_);
    if (result == kNotFound) return std::vector<OtherProcess>{};
    if (result != kInsufficientSize) PTXBENCH_TRY(check(result, "asking which processes compute"));
    samples.resize(std::min<std::size_t>(count, samples.size()));
    std::vector<OtherProcess> others;
    for (const ProcessUtilization& sample : samples) {
      if (sample.pid == own || sample.sm_percent == 0 || sample.sm_percent > 100 ||
          sample.time_us < since_us_)
        continue;
      const auto same =
          std::find_if(others.begin(), others.end(), [&](const auto& o) { return o.pid == sample.pid; });
      if (same == others.end())
        others.push_back({sample.pid, sample.sm_percent});
      else
        same->sm_percent = std::max(same->sm_percent, sample.sm_percent);
    }
    return others;
  }

  Nvml nvml_;
  bool open_ = false;
  NvmlDevice device_ = nullptr;
  std::string version_;
  unsigned int max_sm_mhz_ = 0;
  std::uint64_t since_us_ = 0;
};

}  // namespace

Result<std::unique_ptr<GpuMonitor>> open_gpu_monitor(const std::string& device_id) {
  return guarded([&]() -> Result<std::unique_ptr<GpuMonitor>> {
    PTXBENCH_TRY_ASSIGN(Nvml nvml, open_nvml());
    auto monitor = std::make_unique<NvmlMonitor>(std::move(nvml));
    PTXBENCH_TRY(monitor->open(device_id));
    return std::unique_ptr<GpuMonitor>(std::move(monitor));
  });
}

}  // namespace ptxbench
