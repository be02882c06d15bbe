// Base64 (RFC 4648, section 4).
#pragma once

#include <ptxbench/core.hpp>

#include <string>
#include <string_view>

namespace ptxbench {

std::string base64_encode(std::string_view bytes);

// White space is skipped; anything else outside the alphabet, wrong padding, or bits left over is an error
// (ErrorCode::parse) that names the offset.
Result<std::string> base64_decode(std::string_view text);

}  // namespace ptxbench
