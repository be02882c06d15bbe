// An event of a device that is destroyed with its owner.
#pragma once

#include <ptxbench/device.hpp>

#include <utility>

namespace ptxbench {

class OwnedEvent {
 public:
  OwnedEvent() = default;
  OwnedEvent(OwnedEvent&& other) noexcept { swap(other); }
  OwnedEvent& operator=(OwnedEvent&& other) noexcept {
    swap(other);
    return *this;
  }
  OwnedEvent(const OwnedEvent&) = delete;
  OwnedEvent& operator=(const OwnedEvent&) = delete;
  ~OwnedEvent() {
    if (device_ != nullptr) device_->destroy_event(event_);
  }

  static Result<OwnedEvent> create(Device& device) {
    OwnedEvent made;
    PTXBENCH_TRY_ASSIGN(made.event_, device.create_event());
    made.device_ = &device;
    return made;
  }
  DeviceEvent get() const noexcept { return event_; }

 private:
  void swap(OwnedEvent& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(event_, other.event_);
  }
  Device* device_ = nullptr;
  DeviceEvent event_ = 0;
};

}  // namespace ptxbench
