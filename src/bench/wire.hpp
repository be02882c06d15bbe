// TimeJob and TimeEvidence as messages.
#pragma once

#include "core/message.hpp"

#include <ptxbench/bench.hpp>

namespace ptxbench {

Message to_message(const TimeJob& job);  // type "time"
Result<TimeJob> time_job_from(const Message& message);
Message to_message(const TimeEvidence& evidence);  // type "timed"
Result<TimeEvidence> time_evidence_from(const Message& message);

}  // namespace ptxbench
