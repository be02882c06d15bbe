// SASS metrics through CUPTI: each instruction is patched to count its executions by warps and by threads.
// One flush gives all there is, and nothing more in this process's life.
#include "core/cuda_libs.hpp"
#include "count/sass_counter.hpp"

#include <cupti_pcsampling.h>

#include <array>
#include <compare>
#include <map>
#include <mutex>
#include <new>

namespace ptxbench {
namespace {

using Kind = CountUnavailable::Kind;

constexpr const char* kWarpMetric = "smsp__sass_inst_executed";
constexpr const char* kThreadMetric = "smsp__sass_thread_inst_executed_pred_on";
// Of instructions times metrics; far beyond any program, and a bound on what a wrong number makes us
// allocate.
constexpr std::size_t kMostRecords = std::size_t{1} << 26;

class CuptiCounter final : public SassCounter {
 public:
  explicit CuptiCounter(std::string cuda_home) : cuda_home_(std::move(cuda_home)) {}
  ~CuptiCounter() override { stop(); }

  MaybeUnavailable prepare(Device& device) override {
    if (device.native_stream() == nullptr)
      return CountUnavailable{Kind::unsupported,
                              "device " + device.info().id + " is no GPU: CUPTI counts on GPUs only"};
    warm_up();
    if (opened_->has_value()) return *opened_;
    ToolkitSearch search;
    search.cuda_home = cuda_home_;
    Result<std::shared_ptr<const CudaDriver>> driver = CudaDriver::open(search);
    if (!driver) return CountUnavailable{Kind::driver, driver.error().to_string()};
    if (MaybeUnavailable why = find_device(**driver, static_cast<CUstream>(device.native_stream())))
      return why;
    if (MaybeUnavailable why = check_support()) return why;
    {
      const std::lock_guard lock(code_mutex_);
      code_.clear();
      keep_code_ = true;
    }
    return configure();
  }

  std::vector<std::vector<std::uint8_t>> loaded_code() override {
    const std::lock_guard lock(code_mutex_);
    keep_code_ = false;
    return std::move(code_);
  }

  void warm_up() override {
    if (!opened_) opened_ = open();
  }

  MaybeUnavailable start() override {
    CUpti_SassMetricsEnable_Params enable{};
    enable.structSize = CUpti_SassMetricsEnable_Params_STRUCT_SIZE;
    enable.ctx = context_;
    // A function is patched where it is first launched from here on; the judge's, which are not, stay as they
    // are.
    enable.enableLazyPatching = 1;
    if (MaybeUnavailable why = refused(cupti_->cuptiSassMetricsEnable(&enable), "cuptiSassMetricsEnable"))
      return why;
    enabled_ = true;
    return std::nullopt;
  }

  MaybeUnavailable finish(std::vector<SassRecord>& records) override {
    MaybeUnavailable why = flush(records);
    stop();
    return why;
  }

  void abandon() noexcept override {
    enabled_ = configured_ = false;
    subscriber_ = nullptr;
  }

  std::optional<std::uint32_t> cubin_crc(std::span<const std::uint8_t> cubin) override {
    if (cupti_ == nullptr || cubin.empty()) return std::nullopt;
    const auto get =
        reinterpret_cast<decltype(&::cuptiGetCubinCrc)>(cupti_->library.symbol("cuptiGetCubinCrc"));
    if (get == nullptr) return std::nullopt;
    CUpti_GetCubinCrcParams params{};
    params.size = CUpti_GetCubinCrcParamsSize;
    params.cubinSize = cubin.size();
    params.cubin = cubin.data();
    if (get(&params) != CUPTI_SUCCESS) return std::nullopt;
    return static_cast<std::uint32_t>(params.cubinCrc);
  }

  std::string method() const override { return "cupti_sass"; }

  std::vector<std::pair<std::string, std::string>> versions() const override {
    if (cupti_ == nullptr) return {};
    std::string text = "API " + std::to_string(cupti_->version);
    if (!chip_.empty()) text += ", chip " + chip_;
    return {{"cupti", text}};
  }

 private:
  MaybeUnavailable open() {
    ToolkitSearch search;
    search.cuda_home = cuda_home_;
    Result<std::shared_ptr<const Cupti>> cupti = Cupti::open(search);
    if (!cupti) return CountUnavailable{Kind::library_missing, cupti.error().to_string()};
    cupti_ = std::move(*cupti);
    if (MaybeUnavailable why = subscribe()) return why;
    CUpti_Profiler_Initialize_Params initialize{};
    initialize.structSize = CUpti_Profiler_Initialize_Params_STRUCT_SIZE;
    return refused(cupti_->cuptiProfilerInitialize(&initialize), "cuptiProfilerInitialize");
  }

  MaybeUnavailable refused(CUptiResult result, const char* call) const {
    if (result == CUPTI_SUCCESS) return std::nullopt;
    std::string text = cupti_->error_text(result);
    const char* more = nullptr;
    if (cupti_->cuptiGetErrorMessage != nullptr &&
        cupti_->cuptiGetErrorMessage(result, &more) == CUPTI_SUCCESS && more != nullptr && *more != '\0' &&
        text != more)
      text += std::string(", ") + more;
    return cupti_refusal(result, call, text);
  }

  MaybeUnavailable find_device(const CudaDriver& driver, CUstream stream) {
    const auto failed = [&](CUresult result, const char* what) -> MaybeUnavailable {
      if (result == CUDA_SUCCESS) return std::nullopt;
      return CountUnavailable{Kind::driver, std::string(what) + ": " + driver.error_text(result)};
    };
    if (auto why = failed(driver.cuStreamGetCtx(stream, &context_), "finding the stream's context"))
      return why;
    if (auto why = failed(driver.cuCtxPushCurrent(context_), "making the context current")) return why;
    CUresult result = driver.cuCtxGetDevice(&device_);
    CUcontext popped = nullptr;
    driver.cuCtxPopCurrent(&popped);
    return failed(result, "finding the context's device");
  }

  // Without a subscriber to the driver's calls and to loaded modules CUPTI patches nothing that was loaded through the driver API: it
  // then has no records, and no error either (measured on an H200, CUPTI 2025.3.1; docs/measurements/spine.md). Programs of the CUDA
  // runtime need none.
  MaybeUnavailable subscribe() {
    if (MaybeUnavailable why = refused(cupti_->cuptiSubscribe(&subscriber_, &CuptiCounter::called, this), "cuptiSubscribe")) {
      subscriber_ = nullptr;
      return why;
    }
    for (const CUpti_CallbackDomain domain : {CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_DRIVER_API})
      if (MaybeUnavailable why = refused(cupti_->cuptiEnableDomain(1, subscriber_, domain), "cuptiEnableDomain")) return why;
    return std::nullopt;
  }

  // On the thread that loads a module: a copy of its machine code, which is the only place to get code that the driver assembled.
  static void called(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
    if (domain != CUPTI_CB_DOMAIN_RESOURCE || id != CUPTI_CBID_RESOURCE_MODULE_LOADED || data == nullptr) return;
    const auto* resource = static_cast<const CUpti_ResourceData*>(data);
    const auto* module = static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor);
    if (module == nullptr || module->pCubin == nullptr) return;
    auto* counter = static_cast<CuptiCounter*>(self);
    try {
      const std::lock_guard lock(counter->code_mutex_);
      if (!counter->keep_code_) return;
      const auto* bytes = reinterpret_cast<const std::uint8_t*>(module->pCubin);
      counter->code_.emplace_back(bytes, bytes + module->cubinSize);
    } catch (const std::bad_alloc&) {
      // Without the copy such code is only not named.
    }
  }

  MaybeUnavailable check_support() {
    CUpti_Profiler_DeviceSupported_Params supported{};
    supported.structSize = CUpti_Profiler_DeviceSupported_Params_STRUCT_SIZE;
    supported.cuDevice = device_;
    supported.api = CUPTI_PROFILER_SASS_METRICS;
    if (MaybeUnavailable why =
            refused(cupti_->cuptiProfilerDeviceSupported(&supported), "cuptiProfilerDeviceSupported"))
      return why;
    if (supported.isSupported == CUPTI_PROFILER_CONFIGURATION_SUPPORTED) return std::nullopt;
    std::string what;
    const auto look = [&](CUpti_Profiler_Support_Level level, const char* name) {
      if (level == CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED)
        what += (what.empty() ? "" : "; ") + std::string(name);
      else if (level == CUPTI_PROFILER_CONFIGURATION_DISABLED)
        what += (what.empty() ? "" : "; ") + std::string(name) + " (possible, but disabled by the system)";
    };
    look(supported.architecture, "its architecture");
    look(supported.sli, "SLI is enabled");
    look(supported.vGpu, "it is a virtual GPU");
    look(supported.confidentialCompute, "confidential compute is enabled");
    look(supported.cmp, "it is a mining processor");
    look(supported.wsl, "WSL");
    return CountUnavailable{Kind::unsupported,
                            "CUPTI has no SASS metrics for this device: " +
                                (what.empty() ? std::string("it does not say why") : what)};
  }

  MaybeUnavailable configure() {
    CUpti_Device_GetChipName_Params chip{};
    chip.structSize = CUpti_Device_GetChipName_Params_STRUCT_SIZE;
    chip.deviceIndex = static_cast<std::size_t>(device_);
    if (MaybeUnavailable why = refused(cupti_->cuptiDeviceGetChipName(&chip), "cuptiDeviceGetChipName"))
      return why;
    if (chip.pChipName == nullptr)
      return CountUnavailable{Kind::unsupported, "CUPTI does not know this device's chip"};
    chip_ = chip.pChipName;

    std::array<CUpti_SassMetrics_Config, 2> configs{};
    const std::array<const char*, 2> names{kWarpMetric, kThreadMetric};
    for (std::size_t i = 0; i < names.size(); ++i) {
      CUpti_SassMetrics_GetProperties_Params properties{};
      properties.structSize = CUpti_SassMetrics_GetProperties_Params_STRUCT_SIZE;
      properties.pChipName = chip_.c_str();
      properties.pMetricName = names[i];
      if (MaybeUnavailable why =
              refused(cupti_->cuptiSassMetricsGetProperties(&properties), "cuptiSassMetricsGetProperties")) {
        why->reason = "metric " + std::string(names[i]) + " on chip " + chip_ + ": " + why->reason;
        return why;
      }
      configs[i].metricId = metric_ids_[i] = properties.metric.metricId;
      configs[i].outputGranularity = CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU;
    }
    CUpti_SassMetricsSetConfig_Params set{};
    set.structSize = CUpti_SassMetricsSetConfig_Params_STRUCT_SIZE;
    set.numOfMetricConfig = configs.size();
    set.pConfigs = configs.data();
    set.deviceIndex = static_cast<std::uint32_t>(device_);
    if (MaybeUnavailable why = refused(cupti_->cuptiSassMetricsSetConfig(&set), "cuptiSassMetricsSetConfig"))
      return why;
    configured_ = true;
    return std::nullopt;
  }

  // One record for each metric and instruction, with an array of `numOfInstances` values, which is one for
  // the whole GPU. Every value says its metric, so that values are added up by what they say.
  MaybeUnavailable flush(std::vector<SassRecord>& records) {
    CUpti_SassMetricsGetDataProperties_Params properties{};
    properties.structSize = CUpti_SassMetricsGetDataProperties_Params_STRUCT_SIZE;
    properties.ctx = context_;
    if (MaybeUnavailable why = refused(cupti_->cuptiSassMetricsGetDataProperties(&properties),
                                       "cuptiSassMetricsGetDataProperties"))
      return why;
    const std::size_t count = properties.numOfPatchedInstructionRecords,
                      instances = properties.numOfInstances;
    if (count == 0 || instances == 0) return std::nullopt;
    if (count > kMostRecords || instances > kMostRecords / count)
      return CountUnavailable{Kind::driver, "CUPTI speaks of " + std::to_string(count) + " records of " +
                                                std::to_string(instances) + " instances, which cannot be"};
    std::vector<CUpti_SassMetrics_Data> data(count);
    std::vector<CUpti_SassMetrics_InstanceValue> values(count * instances);
    for (std::size_t i = 0; i < count; ++i) {
      data[i].structSize = CUpti_SassMetricsFlushData_Params_STRUCT_SIZE;  // as the header asks for
      data[i].pInstanceValues = &values[i * instances];
    }
    CUpti_SassMetricsFlushData_Params flush{};
    flush.structSize = CUpti_SassMetricsFlushData_Params_STRUCT_SIZE;
    flush.ctx = context_;
    flush.numOfPatchedInstructionRecords = count;
    flush.numOfInstances = instances;
    flush.pMetricsData = data.data();
    if (MaybeUnavailable why =
            refused(cupti_->cuptiSassMetricsFlushData(&flush), "cuptiSassMetricsFlushData"))
      return why;

    struct Place {
      std::string_view function;
      std::uint32_t crc, pc;
      auto operator<=>(const Place&) const = default;
    };
    std::map<Place, SassRecord> by_place;
    for (const CUpti_SassMetrics_Data& d : data) {
      const std::string_view function = d.functionName != nullptr ? d.functionName : "";
      SassRecord& record = by_place[{function, d.cubinCrc, d.pcOffset}];
      record.cubin_crc = d.cubinCrc;
      record.pc_offset = d.pcOffset;
      for (std::size_t i = 0; i < instances; ++i) {
        const CUpti_SassMetrics_InstanceValue& value = d.pInstanceValues[i];
        if (value.metricId == metric_ids_[0]) record.warps += value.value;
        if (value.metricId == metric_ids_[1]) record.threads += value.value;
      }
    }
    records.reserve(by_place.size());
    for (auto& [place, record] : by_place) {
      record.function = place.function;
      records.push_back(std::move(record));
    }
    return std::nullopt;
  }

  void stop() noexcept {
    if (enabled_) {
      CUpti_SassMetricsDisable_Params disable{};
      disable.structSize = CUpti_SassMetricsDisable_Params_STRUCT_SIZE;
      disable.ctx = context_;
      cupti_->cuptiSassMetricsDisable(&disable);
      enabled_ = false;
    }
    if (configured_) {
      CUpti_SassMetricsUnsetConfig_Params unset{};
      unset.structSize = CUpti_SassMetricsUnsetConfig_Params_STRUCT_SIZE;
      unset.deviceIndex = static_cast<std::uint32_t>(device_);
      cupti_->cuptiSassMetricsUnsetConfig(&unset);
      configured_ = false;
    }
    if (subscriber_ != nullptr) {
      cupti_->cuptiUnsubscribe(subscriber_);
      subscriber_ = nullptr;
    }
  }

  const std::string cuda_home_;
  std::optional<MaybeUnavailable> opened_;  // nothing: not tried yet
  std::shared_ptr<const Cupti> cupti_;
  CUcontext context_ = nullptr;
  CUdevice device_ = 0;
  std::string chip_;
  std::array<std::uint64_t, 2> metric_ids_{};
  CUpti_SubscriberHandle subscriber_ = nullptr;
  bool configured_ = false, enabled_ = false;
  std::mutex code_mutex_;
  bool keep_code_ = false;
  std::vector<std::vector<std::uint8_t>> code_;
};

}  // namespace

std::unique_ptr<SassCounter> make_cupti_counter(std::string cuda_home) {
  return std::make_unique<CuptiCounter>(std::move(cuda_home));
}

}  // namespace ptxbench
