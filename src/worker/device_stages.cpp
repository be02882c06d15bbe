#include "worker/device_stages.hpp"

#include "bench/prepared_libraries.hpp"
#include "bench/wire.hpp"
#include "core/json.hpp"
#include "device/wire.hpp"
#include "verify/session.hpp"
#include "verify/wire.hpp"
#include "worker/make_room.hpp"
#include "worker/remote_callbacks.hpp"

#include <ptxbench/bench.hpp>
#include <ptxbench/device.hpp>
#include <ptxbench/emulator.hpp>
#include <ptxbench/verify.hpp>

#include <cstring>
#include <memory>
#include <optional>

namespace ptxbench {
namespace {

struct OpenDevice {
  std::unique_ptr<Device> device;
  std::string cuda_home;
  PreparedLibraries libraries;                            // on the device: they go first
  std::optional<Result<std::unique_ptr<GpuMonitor>>> monitor;  // opened by the first timing

  Result<Parcel> open(const Message& job) {
    PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(job.json, {"open_device", false, 16}));
    const json::Cursor root(document);
    PTXBENCH_TRY_ASSIGN(const json::Cursor id, root.require("device"));
    PTXBENCH_TRY_ASSIGN(const std::string name, id.as_string());
    PTXBENCH_TRY_ASSIGN(const json::Cursor home, root.require("cuda_home"));
    PTXBENCH_TRY_ASSIGN(cuda_home, home.as_string());
    libraries.clear();
    monitor.reset();
    device.reset();
    if (is_emulator_name(name)) {
      PTXBENCH_TRY_ASSIGN(const EmulatorOptions options, parse_emulator_name(name));
      PTXBENCH_TRY_ASSIGN(device, open_emulator_device(options));
    } else {
      PTXBENCH_TRY_ASSIGN(device, open_cuda_device(name, cuda_home));
    }
    return Parcel(to_message(device->info()));
  }

  Result<Device*> get() const {
    if (device == nullptr) return make_error(ErrorCode::state, "no device is open in this worker");
    return device.get();
  }
};

Result<void> run_self_test(Device& device, const std::vector<std::uint8_t>& cubin) {
  constexpr std::uint64_t kElements = std::uint64_t{1} << 18, kBytes = 4 * kElements;
  const auto wrong = [](const std::string& what) { return make_error(ErrorCode::driver, "the device's " + what); };
  PTXBENCH_TRY_ASSIGN(const OwnedBuffer buffer, OwnedBuffer::allocate(device, kBytes));
  const std::uint64_t address = buffer.get().address;
  PTXBENCH_TRY(device.fill(address, 0x5bd1e995, 4, kElements));
  PTXBENCH_TRY(settle(device, "filling memory"));
  HostBuffer host(kBytes);
  PTXBENCH_TRY(device.read(address, host.span()));
  for (std::uint64_t i = 0; i < kElements; ++i) {
    std::uint32_t word = 0;
    std::memcpy(&word, host.data() + 4 * i, sizeof word);
    if (word != 0x5bd1e995) return wrong("memory does not hold what was written");
  }
  if (cubin.empty() && device.emulator() == nullptr) return {};
  PTXBENCH_TRY_ASSIGN(const std::unique_ptr<JudgeOps> judge, make_judge_ops(device, cubin));
  const judge::DrawSpec spec = draw_spec(tensor_key(1, "self_test"), DType::float32, {static_cast<std::int64_t>(kElements)},
                                         distribution_of_trial(0));
  PTXBENCH_TRY(judge->draw(spec, address));
  PTXBENCH_TRY(settle(device, "the judge's code"));
  PTXBENCH_TRY_ASSIGN(const judge::Mismatch differs, judge->check_draw(spec, address));
  if (differs.count != 0) return wrong("results differ from one run to the next");
  return {};
}

Result<Parcel> self_test_stage(OpenDevice& open, const Message& message) {
  PTXBENCH_TRY_ASSIGN(Device* const device, open.get());
  PTXBENCH_TRY(run_self_test(*device, message.blobs.empty() ? std::vector<std::uint8_t>() : message.blobs[0]));
  return Parcel(Message{"healthy", "{}", {}});
}

Result<Parcel> verify_stage(OpenDevice& open, const Message& message, StageHost& host) {
  PTXBENCH_TRY_ASSIGN(Device* const device, open.get());
  PTXBENCH_TRY_ASSIGN(const VerifyJob job, verify_job_from(message));
  RemoteCallbacks callbacks(host);
  PTXBENCH_TRY_ASSIGN(const VerifyEvidence evidence,
                      verify_with_room(open.libraries, [&] { return run_verify(*device, job, callbacks); }));
  return Parcel(to_message(evidence));
}

Result<Parcel> time_stage(OpenDevice& open, const Message& message, StageHost& host) {
  PTXBENCH_TRY_ASSIGN(Device* const device, open.get());
  PTXBENCH_TRY_ASSIGN(const TimeJob job, time_job_from(message));
  RemoteCallbacks callbacks(host);
  PreparedLibraries::Prepared prepared;
  std::string missing;
  if (job.baseline.kind == BaselineKind::library) {
    const Result<PreparedLibraries::Prepared> found = open.libraries.find(job.workload, open.cuda_home);
    if (found) prepared = *found;
    else missing = found.error().to_string();
  }
  if (!open.monitor) open.monitor = open_gpu_monitor(device->info().id);
  GpuMonitor* const monitor = *open.monitor ? (*open.monitor)->get() : nullptr;
  PTXBENCH_TRY_ASSIGN(TimeEvidence evidence, run_time(*device, job, prepared.library, &callbacks, monitor, prepared.calibration));
  if (monitor == nullptr) evidence.gpu.missing = open.monitor->error().message;
  if (!missing.empty()) evidence.baseline_missing = missing;
  return Parcel(to_message(evidence));
}

}  // namespace

Message open_device_job(const std::string& device, const std::string& cuda_home) {
  json::Writer w;
  w.begin_object().field("device", device).field("cuda_home", cuda_home).end_object();
  return {"open_device", std::move(w).str(), {}};
}

Message self_test_job(const std::vector<std::uint8_t>& judge_cubin) { return {"self_test", "{}", {judge_cubin}}; }

void add_device_stages(StageTable& stages) {
  const auto open = std::make_shared<OpenDevice>();
  stages["open_device"] = [open](Parcel& job, StageHost&) { return open->open(job.message); };
  stages["self_test"] = [open](Parcel& job, StageHost&) { return self_test_stage(*open, job.message); };
  stages["verify"] = [open](Parcel& job, StageHost& host) { return verify_stage(*open, job.message, host); };
  stages["time"] = [open](Parcel& job, StageHost& host) { return time_stage(*open, job.message, host); };
}

}  // namespace ptxbench
