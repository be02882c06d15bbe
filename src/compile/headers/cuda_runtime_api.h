// Calls of the runtime are host code; its device side is built into NVRTC.
#pragma once
#include <cuda_runtime.h>
