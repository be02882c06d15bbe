// Words of messages.
#pragma once

#include <cstdint>
#include <string>

namespace ptxbench::emulator {

struct Kernel;
struct Site;

std::string hex(std::uint64_t value);         // "0x1f"
std::string bytes_text(std::uint64_t bytes);  // "1 byte", "16 bytes"

// The instruction of @p site: "PTX line 12 (gemm.cu:30)"; empty where it has none.
std::string line_text(const Kernel& kernel, const Site& site);
// Who executed it: "warp 3 of CTA 0 (`st.shared.u32`, PTX line 12, gemm.cu:30)".
std::string who_text(const Kernel& kernel, const Site& site);

}  // namespace ptxbench::emulator
