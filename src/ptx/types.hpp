// How directives spell types and state spaces.
#pragma once

#include "ptx/module.hpp"

#include <optional>
#include <string_view>

namespace ptxbench::ptx {

// ".b32", its dot included.
std::optional<Type> type_from_directive(std::string_view directive) noexcept;
std::optional<Space> space_from_directive(std::string_view directive) noexcept;
// "%tid.x", "%laneid": one that PTX predefines.
bool is_special_register(std::string_view name) noexcept;
// "%tid": one with components .x .y .z .w.
bool is_special_vector(std::string_view name) noexcept;

}  // namespace ptxbench::ptx
