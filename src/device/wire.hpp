// DeviceInfo as a message: what a device worker says of its device.
#pragma once

#include "core/message.hpp"

#include <ptxbench/device.hpp>

namespace ptxbench {

Message to_message(const DeviceInfo& info);  // type "device"
Result<DeviceInfo> device_info_from(const Message& message);

}  // namespace ptxbench
