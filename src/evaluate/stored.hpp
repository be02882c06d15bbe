// Tensors that a workload keeps in safetensors files: inputs, and outputs as what is expected.
#pragma once

#include <ptxbench/verify.hpp>

#include <memory>
#include <span>
#include <string>

namespace ptxbench {

// Whether a workload names stored inputs / stores every output.
bool has_stored_inputs(const Workload& workload) noexcept;
bool has_golden_outputs(const Workload& workload) noexcept;

// Reads what is stored and draws the others as the library does. The bytes of the tensors read last (a GiB at most) are kept as
// long as it lives: a file that changes meanwhile may or may not be seen. @p root: what the workloads' paths are relative to.
std::shared_ptr<InputSource> make_stored_inputs(std::string root);
// The outputs that are stored. They belong to stored inputs: an input that is drawn is an error.
std::shared_ptr<Reference> make_golden_reference(std::string root);

}  // namespace ptxbench
