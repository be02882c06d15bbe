// A file of its own, because it is compiled again whenever any source changes (worker.cmake).
#include "ptxbench_build_id.hpp"
#include "worker/protocol.hpp"

namespace ptxbench {

std::string_view build_id() noexcept { return PTXBENCH_BUILD_ID; }

}  // namespace ptxbench
