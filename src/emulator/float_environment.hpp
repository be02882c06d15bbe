// The floating-point environment that the emulator's arithmetic assumes, whatever the host has set: to
// nearest, no flushing of subnormals, no traps. Restored at the end of its scope.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace ptxbench::emulator {

#if defined(__x86_64__)
class StandardFloats {
 public:
  StandardFloats() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kFlags) != kStandard) _mm_setcsr(kStandard);
  }
  ~StandardFloats() {
    if ((saved_ & ~kFlags) != kStandard) _mm_setcsr(saved_);
  }
  StandardFloats(const StandardFloats&) = delete;
  StandardFloats& operator=(const StandardFloats&) = delete;

 private:
  static constexpr unsigned kStandard = 0x1f80, kFlags = 0x3f;
  unsigned saved_;
};
#else
class StandardFloats {
 public:
  StandardFloats() {}
};
#endif

}  // namespace ptxbench::emulator
