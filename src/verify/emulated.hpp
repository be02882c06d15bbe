// What an emulator told of the runs, as the verdict says it.
#pragma once

#include <ptxbench/verify.hpp>

namespace ptxbench {

// Fills @p verdict's emulation block, findings and output log. Nothing without an emulator's report.
void compose_emulation(const VerifyEvidence& evidence, Verdict& verdict);

}  // namespace ptxbench
