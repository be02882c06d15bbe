#include "worker/make_room.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

bool lacked_memory(const Result<VerifyEvidence>& evidence) {
  if (!evidence) return evidence.error().code == ErrorCode::no_memory;
  if (evidence->device_lost) return false;
  return std::any_of(evidence->trials.begin(), evidence->trials.end(), [](const TrialEvidence& trial) {
    return trial.fault && trial.fault->kind == DeviceFault::Kind::out_of_memory;
  });
}

}  // namespace

Result<VerifyEvidence> verify_with_room(PreparedLibraries& libraries,
                                        const std::function<Result<VerifyEvidence>()>& verify) {
  Result<VerifyEvidence> evidence = verify();
  if (libraries.size() == 0 || !lacked_memory(evidence)) return evidence;
  libraries.clear();
  return verify();
}

}  // namespace ptxbench
