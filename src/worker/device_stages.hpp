// The stages of a device worker, "open_device", "self_test", "verify" and "time": they share one device, which stays open.
#pragma once

#include "worker/stage.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench {

// The job "open_device": {"device", "cuda_home"}; its result is a DeviceInfo.
Message open_device_job(const std::string& device, const std::string& cuda_home);

// The job "self_test": memory of the device is filled, drawn into by the judge's code, and read back. An Error, or a death, says
// that the device does not work. Without a cubin only what needs none is done.
Message self_test_job(const std::vector<std::uint8_t>& judge_cubin);

void add_device_stages(StageTable& stages);

}  // namespace ptxbench
