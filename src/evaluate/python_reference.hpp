// A Definition's own `reference` as what is expected: run by a Python interpreter with torch, in a process of its own.
#pragma once

#include <ptxbench/evaluate.hpp>

#include <memory>

namespace ptxbench {

// Each call of `compute` starts a process, which is killed when the request is cancelled. Errors: cancelled; toolkit where there is no interpreter or it has no torch; invalid_argument
// where the reference fails, with the last lines that it printed.
std::shared_ptr<Reference> make_python_reference(const PythonReference& options, const CancelToken& cancel = {});

}  // namespace ptxbench
