#include "verify/wire.hpp"

#include "verify/wire_fields.hpp"

namespace ptxbench {

Message to_message(const VerifyJob& job) { return wire::write("verify", job); }
Result<VerifyJob> verify_job_from(const Message& message) { return wire::read<VerifyJob>("verify", message); }

Message to_message(const VerifyEvidence& evidence) { return wire::write("verified", evidence); }
Result<VerifyEvidence> verify_evidence_from(const Message& message) {
  return wire::read<VerifyEvidence>("verified", message);
}

Message to_message(const std::vector<OutputCorrectness>& outputs) { return wire::write("compared", outputs); }
Result<std::vector<OutputCorrectness>> outputs_from(const Message& message) {
  return wire::read<std::vector<OutputCorrectness>>("compared", message);
}

}  // namespace ptxbench
