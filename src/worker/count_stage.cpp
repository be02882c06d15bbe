#include "worker/count_stage.hpp"

#include "count/sass_counter.hpp"
#include "count/wire.hpp"
#include "verify/stopwatch.hpp"
#include "worker/remote_callbacks.hpp"

#include <memory>
#include <string>
#include <utility>

namespace ptxbench {
namespace {

// Kept until the process ends: its host has the evidence before anything is torn down that could go wrong.
struct Counting {
  std::string cuda_home;  // of the counter
  std::unique_ptr<SassCounter> counter;
  std::string opened;  // the device's id, with whose toolkit cuda_home is
  std::unique_ptr<Device> device;
  bool counted = false;

  SassCounter& counter_of(const std::string& home) {
    if (counter == nullptr || cuda_home != home) counter = make_cupti_counter(home);
    cuda_home = home;
    return *counter;
  }

  // The counter comes first: CUPTI must be there before the context.
  Result<void> open(const std::string& id) {
    if (device != nullptr && opened == id) return {};
    device.reset();
    PTXBENCH_TRY_ASSIGN(device, open_cuda_device(id, cuda_home));
    opened = id;
    return {};
  }
};

Result<Parcel> count_stage(Counting& counting, const Message& message, StageHost& host) {
  PTXBENCH_TRY_ASSIGN(const CountRequest request, count_request_from(message));
  if (std::exchange(counting.counted, true))
    return make_error(ErrorCode::state, "this worker has counted already, and can only once");
  std::vector<StageTime> before;
  Stopwatch watch(before);
  SassCounter& counter = counting.counter_of(request.cuda_home);
  if (const Result<void> opened = counting.open(request.device); !opened) {
    // Where the device worker could open it, this is no reason to fail the call: e.g. compute mode
    // EXCLUSIVE_PROCESS.
    CountEvidence evidence;
    evidence.unavailable = {
        CountUnavailable::Kind::driver,
        "the count worker, a process of its own, cannot open the device: " + opened.error().to_string()};
    return Parcel(to_message(evidence));
  }
  watch.lap("open");
  RemoteCallbacks callbacks(host);
  PTXBENCH_TRY_ASSIGN(CountEvidence evidence,
                      run_count_with(*counting.device, request.job, callbacks, counter));
  evidence.stages.insert(evidence.stages.begin(), before.begin(), before.end());
  return Parcel(to_message(evidence));
}

}  // namespace

WarmUp add_count_stage(StageTable& stages) {
  const auto counting = std::make_shared<Counting>();
  stages["count"] = [counting](Parcel& job, StageHost& host) {
    return count_stage(*counting, job.message, host);
  };
  return [counting](const WarmStart& warm) {
    if (!list_cuda_devices(warm.cuda_home)) return;
    counting->counter_of(warm.cuda_home).warm_up();
    (void)counting->open(warm.device);  // an error comes again with the job
  };
}

}  // namespace ptxbench
