#include "worker/count_stage.hpp"

#include "count/wire.hpp"
#include "worker/remote_callbacks.hpp"

#include <memory>

namespace ptxbench {
namespace {

Result<Parcel> count_stage(std::unique_ptr<Device>& device, const Message& message, StageHost& host) {
  PTXBENCH_TRY_ASSIGN(const CountRequest request, count_request_from(message));
  if (device != nullptr)
    return make_error(ErrorCode::state, "this worker has counted already, and can only once");
  Result<std::unique_ptr<Device>> opened = open_cuda_device(request.device, request.cuda_home);
  if (!opened) {
    // Where the device worker could open it, this is no reason to fail the call: e.g. compute mode
    // EXCLUSIVE_PROCESS.
    CountEvidence evidence;
    evidence.unavailable = {
        CountUnavailable::Kind::driver,
        "the count worker, a process of its own, cannot open the device: " + opened.error().to_string()};
    return Parcel(to_message(evidence));
  }
  device = std::move(*opened);
  RemoteCallbacks callbacks(host);
  PTXBENCH_TRY_ASSIGN(const CountEvidence evidence,
                      run_count(*device, request.job, callbacks, request.cuda_home));
  return Parcel(to_message(evidence));
}

}  // namespace

void add_count_stage(StageTable& stages) {
  // Kept until the process ends: its host has the evidence before anything is torn down that could go wrong.
  const auto device = std::make_shared<std::unique_ptr<Device>>();
  stages["count"] = [device](Parcel& job, StageHost& host) {
    return count_stage(*device, job.message, host);
  };
}

}  // namespace ptxbench
