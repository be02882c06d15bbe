// VerifyJob and VerifyEvidence as messages: what a device worker is sent and returns. Also the asks of
// HostCallbacks, whose tensors travel in shared memory.
#pragma once

#include "core/message.hpp"

#include <ptxbench/verify.hpp>

namespace ptxbench {

Message to_message(const VerifyJob& job);  // type "verify"
Result<VerifyJob> verify_job_from(const Message& message);
Message to_message(const VerifyEvidence& evidence);  // type "verified"
Result<VerifyEvidence> verify_evidence_from(const Message& message);

// What a HostCallbacks::compare returns, for the answer to a worker's ask.
Message to_message(const std::vector<OutputCorrectness>& outputs);  // type "compared"
Result<std::vector<OutputCorrectness>> outputs_from(const Message& message);

}  // namespace ptxbench
