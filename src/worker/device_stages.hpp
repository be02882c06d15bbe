// The stages of a device worker, "open_device", "verify" and "time": they share one device, which stays open.
#pragma once

#include "worker/stage.hpp"

#include <string>

namespace ptxbench {

// The job "open_device": {"device", "cuda_home"}; its result is a DeviceInfo.
Message open_device_job(const std::string& device, const std::string& cuda_home);

void add_device_stages(StageTable& stages);

}  // namespace ptxbench
