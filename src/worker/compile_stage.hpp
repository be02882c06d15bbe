// The stage "compile": NVRTC and ptxas, in a compile worker.
#pragma once

#include "worker/stage.hpp"

namespace ptxbench {

Result<Parcel> compile_stage(Parcel& job, StageHost& host);

}  // namespace ptxbench
