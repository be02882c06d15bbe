// CountJob and CountEvidence as messages: what a count worker is sent and returns.
#pragma once

#include "core/message.hpp"

#include <ptxbench/count.hpp>

#include <string>

namespace ptxbench {

// All that a fresh process needs: it opens the device itself.
struct CountRequest {
  std::string device, cuda_home;
  CountJob job;
};

Message to_message(const CountRequest& request);  // type "count"
Result<CountRequest> count_request_from(const Message& message);
Message to_message(const CountEvidence& evidence);  // type "counted"
Result<CountEvidence> count_evidence_from(const Message& message);

}  // namespace ptxbench
