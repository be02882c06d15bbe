// What the compile layer needs to know of a PTX text without understanding its instructions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench {

struct PtxVersion {
  int major = 0, minor = 0;
  auto operator<=>(const PtxVersion&) const = default;
  std::string text() const { return std::to_string(major) + "." + std::to_string(minor); }
};
std::optional<PtxVersion> parse_ptx_version(std::string_view text);  // "9.0"

struct PtxHeader {
  std::optional<PtxVersion> version;
  std::size_t version_begin = 0, version_end = 0;  // of the number
  std::string target;                              // "sm_90a"; empty where there is no .target
};
PtxHeader read_ptx_header(std::string_view ptx);

// Whether a module for `target` (of a .target directive) runs on `arch`.
bool ptx_target_runs_on(std::string_view target, std::string_view arch);

// Symbols that a module defines.
struct PtxSymbols {
  std::vector<std::string> kernels;
  std::vector<std::string> globals;    // .global and .const
  std::vector<std::string> externals;  // .extern .func that are called
};
PtxSymbols read_ptx_symbols(std::string_view ptx);

// Which of malloc, free and the like the module calls; empty: none.
std::string device_heap_function(const PtxSymbols& symbols);

// "V13.0.88" -> "13.0.88", from the comment that NVRTC writes; empty where there is none.
std::string compiler_version_in(std::string_view ptx);

}  // namespace ptxbench
