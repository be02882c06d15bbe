// The device side of the runtime is built into NVRTC. The real header brings a host's <math.h>, <limits.h> and
// <stdint.h> with it, and code relies on that.
#pragma once
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
