// CompileRequest and Compiled as messages: what a compile worker is sent and returns, and what the cache
// keeps.
#pragma once

#include "core/message.hpp"

#include <ptxbench/compile.hpp>

namespace ptxbench {

Message to_message(const CompileRequest& request);  // type "compile"
Result<CompileRequest> compile_request_from(const Message& message);
Message to_message(const Compiled& compiled);  // type "compiled"
Result<Compiled> compiled_from(const Message& message);

}  // namespace ptxbench
