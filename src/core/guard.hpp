// The last line of a public function: no exception leaves it.
#pragma once

#include <ptxbench/core.hpp>

#include <exception>
#include <new>
#include <utility>

namespace ptxbench {

// Calls `f`, which returns a Result; what it throws becomes an error.
template <class F>
auto guarded(F&& f) noexcept -> decltype(std::forward<F>(f)()) {
  try {
    return std::forward<F>(f)();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory");  // short enough to need none
  } catch (const std::exception& e) {
    return make_error(ErrorCode::internal, e.what());
  } catch (...) {
    return make_error(ErrorCode::internal, "unknown");
  }
}

}  // namespace ptxbench
