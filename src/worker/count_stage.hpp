// The stage of a count worker: opens the device, counts, once in the process's life.
#pragma once

#include "worker/stage.hpp"
#include "worker/worker_main.hpp"

namespace ptxbench {

// "count": its job is a CountRequest (count/wire.hpp), its result a CountEvidence. Returns what warms it up: the driver is
// initialised, CUPTI and the device opened, which takes longer than to count.
WarmUp add_count_stage(StageTable& stages);

}  // namespace ptxbench
