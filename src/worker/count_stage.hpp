// The stage of a count worker: opens the device, counts, once in the process's life.
#pragma once

#include "worker/stage.hpp"

namespace ptxbench {

// "count": its job is a CountRequest (count/wire.hpp), its result a CountEvidence.
void add_count_stage(StageTable& stages);

}  // namespace ptxbench
