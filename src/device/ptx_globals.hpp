#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// Names of the .global and .const variables that a PTX text defines at module scope, for modules that only
// the driver assembles. Any text is safe; what is no PTX gives some list, and the driver confirms each name.
std::vector<std::string> ptx_globals(std::string_view ptx);

// Whether the entry @p kernel is compiled so that a launch's grid counts clusters (.blocksareclusters).
bool ptx_blocks_are_clusters(std::string_view ptx, std::string_view kernel);

}  // namespace ptxbench
