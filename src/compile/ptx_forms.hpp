// The nearest valid form of a PTX instruction that does not exist.
#pragma once

#include <string_view>

namespace ptxbench {

// Of an opcode with its modifiers ("cp.async.bulk.tensr.2d..."); empty where none is near.
std::string_view nearest_ptx_form(std::string_view opcode);

}  // namespace ptxbench
