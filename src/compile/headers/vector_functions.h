// Built into NVRTC.
#pragma once
