// What this machine can do.
#include "compile/ptxas.hpp"
#include "core/cuda_libs.hpp"
#include "core/json.hpp"
#include "evaluate/context.hpp"

#include <ptxbench/emulator.hpp>
#include <ptxbench/evaluate.hpp>

#include <unistd.h>

#include <fstream>
#include <sstream>

namespace ptxbench {
namespace {

template <class Library, class Version>
DoctorItem library_item(std::string name, const Result<std::shared_ptr<const Library>>& library, Version version) {
  DoctorItem item;
  item.name = std::move(name);
  if (!library) {
    item.message = library.error().to_string();
    return item;
  }
  item.ok = true;
  item.version = version(**library);
  item.path = (*library)->library.path;
  return item;
}

// "1 of effective CapEff bit 21" of /proc/self/status, or root.
bool may_administrate() {
  if (geteuid() == 0) return true;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("CapEff:", 0) == 0) {
      constexpr int kCapSysAdmin = 21, kCapPerfmon = 38;
      const unsigned long long bits = std::strtoull(line.c_str() + 7, nullptr, 16);
      return (bits >> kCapSysAdmin & 1) != 0 || (bits >> kCapPerfmon & 1) != 0;
    }
  return false;
}

// NVIDIA's driver lets everybody read counters, or only administrators (ERR_NVGPUCTRPERM): its own parameter says.
DoctorItem counters_item(bool driver_ok) {
  DoctorItem item;
  item.name = "counters";
  if (!driver_ok) {
    item.message = "no driver";
    return item;
  }
  std::ifstream params("/proc/driver/nvidia/params");
  for (std::string line; std::getline(params, line);) {
    if (line.rfind("RmProfilingAdminOnly:", 0) != 0) continue;
    item.path = "/proc/driver/nvidia/params";
    const bool admin_only = line.find('1') != std::string::npos;
    item.ok = !admin_only || may_administrate();
    item.message = !admin_only ? "permitted for every user"
                   : item.ok   ? "permitted: the driver allows administrators only, and this process is one"
                               : "not permitted: the driver allows administrators only (RmProfilingAdminOnly: 1); run with "
                                 "CAP_SYS_ADMIN, or load the module with NVreg_RestrictProfilingToAdminUsers=0";
    return item;
  }
  item.ok = true;
  item.message = "the driver does not say (no RmProfilingAdminOnly in /proc/driver/nvidia/params); a count will tell";
  return item;
}

DoctorItem emulator_item() {
  DoctorItem item{"emulator", true, std::string(version_string()), {}, {}};
  std::string names;
  for (const std::string_view profile : emulator_profiles()) {
    const Result<DeviceLimits> limits = device_profile(profile);
    if (!limits) continue;
    names += (names.empty() ? "" : ", ") + ("emulator:" + std::string(profile)) + " (" + std::to_string(limits->sm_count) + " SMs)";
  }
  item.message = names + "; runs kernels for sm_90a on the CPU: whether they are right and what they execute, not how fast they are";
  return item;
}

// The name as the emulator itself says it, or why there is no such one.
void use_emulator(const std::string& name, std::string reason, DoctorReport& report) {
  const Result<EmulatorOptions> options = parse_emulator_name(name);
  const auto device = options ? open_emulator_device(*options) : Result<std::unique_ptr<EmulatedDevice>>(options.error());
  if (!device) {
    report.device_reason = device.error().to_string();
    return;
  }
  report.device_used = (*device)->info().id;
  report.device_reason = std::move(reason);
}

std::string cupti_version(const Cupti& cupti) { return std::to_string(cupti.version); }

DoctorReport look(const ContextOptions& options) {
  DoctorReport report;
  ToolkitSearch search;
  search.cuda_home = options.cuda_home;

  const auto driver = CudaDriver::open(search);
  report.items.push_back(library_item("driver", driver, [](const CudaDriver& d) { return "CUDA " + d.version_text(); }));
  report.items.push_back(library_item("NVRTC", Nvrtc::open(search), [](const Nvrtc& n) { return n.version_text(); }));
  DoctorItem ptxas{"ptxas", false, {}, {}, {}};
  if (const Result<std::string> path = find_ptxas(search)) {
    ptxas.ok = true;
    ptxas.path = *path;
    ptxas.version = ptxas_version(*path).value_or("");
  } else {
    ptxas.message = path.error().to_string();
  }
  report.items.push_back(std::move(ptxas));
  DoctorItem headers{"headers", false, {}, {}, {}};
  if (const Result<CudaHeaders> found = find_cuda_headers(search)) {
    headers.ok = true;
    headers.path = found->directories.empty() ? found->root : found->directories.front();
    headers.version = std::to_string(found->cuda_version / 1000) + "." + std::to_string(found->cuda_version % 1000 / 10);
  } else {
    headers.message = found.error().to_string();
  }
  report.items.push_back(std::move(headers));
  report.items.push_back(library_item("CUPTI", Cupti::open(search), cupti_version));
  report.items.push_back(library_item("cuBLASLt", CublasLt::open(search), [](const CublasLt& c) { return c.version_text(); }));
  report.items.push_back(library_item("cuDNN", Cudnn::open(search), [](const Cudnn& c) { return c.version_text(); }));
  report.items.push_back(counters_item(driver.has_value()));

  DoctorItem worker{"worker", false, {}, {}, {}};
  WorkerOptions worker_options;
  worker_options.worker_path = options.worker_path;
  if (const auto workers = Workers::create(worker_options)) {
    const Workers::Check check = (*workers)->check();
    worker.ok = check.found && check.matches;
    worker.version = check.version;
    worker.path = check.path;
    worker.message = check.message;
  } else {
    worker.message = workers.error().to_string();
  }
  report.items.push_back(std::move(worker));

  report.items.push_back(emulator_item());

  if (options.device == "none") {
    report.device_reason = "none was asked for (device \"none\")";
    return report;
  }
  Result<std::vector<DeviceInfo>> devices = list_cuda_devices(options.cuda_home);
  if (devices) report.devices = std::move(*devices);
  if (is_emulator_name(options.device)) {
    use_emulator(options.device, "asked for", report);
    return report;
  }
  if (options.device == "auto" && report.devices.empty()) {
    const bool absent = devices || no_gpu(devices.error());
    const std::string why = devices ? "the driver sees no GPU" : devices.error().to_string();
    if (absent) use_emulator(std::string(kDefaultEmulator), "no GPU: " + why, report);
    else report.device_reason = why;
    return report;
  }
  if (!devices) {
    report.device_reason = devices.error().to_string();
    return report;
  }
  for (std::size_t i = 0; i < report.devices.size(); ++i) {
    const DeviceInfo& device = report.devices[i];
    if (options.device != "auto" && options.device != device.id && options.device != "cuda:" + std::to_string(i)) continue;
    report.device_used = device.id;
    report.device_reason = options.device == "auto" ? "the first GPU" : "asked for";
    return report;
  }
  report.device_reason = report.devices.empty() ? "the driver sees no GPU" : "there is no device " + options.device;
  return report;
}

}  // namespace

DoctorReport doctor(const ContextOptions& options) {
  try {
    return look(options);
  } catch (const std::exception& e) {
    DoctorReport report;
    report.device_reason = std::string("looking failed: ") + e.what();
    return report;
  }
}

std::string to_json(const DoctorReport& report) {
  json::Writer w({2, false});
  w.begin_object().field("ptxbench_version", version_string());
  w.key("items").begin_array();
  for (const DoctorItem& item : report.items) {
    w.begin_object().field("name", item.name).field("ok", item.ok).field("version", item.version);
    w.field("path", item.path).field("message", item.message).end_object();
  }
  w.end_array().key("devices").begin_array();
  for (const DeviceInfo& device : report.devices) {
    w.begin_object().field("id", device.id).field("name", device.name).field("arch", device.arch);
    w.field("sm_count", device.limits.sm_count).field("memory_bytes", device.limits.memory_bytes);
    w.key("versions").begin_object();
    for (const auto& [name, version] : device.versions) w.field(name, version);
    w.end_object().end_object();
  }
  w.end_array().field("device_used", report.device_used).field("device_reason", report.device_reason).end_object();
  return std::move(w).str();
}

}  // namespace ptxbench
