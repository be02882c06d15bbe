#include <ptxbench/verify.hpp>

namespace ptxbench {
namespace {

Error missing(const char* what) {
  return make_error(ErrorCode::invalid_argument,
                    std::string("the job asks for a ") + what + " of the host; there is none");
}

// What a host's code returns is its own error, whichever code it chose.
template <class T>
Result<T> from_host(Result<T> result) {
  if (result) return result;
  Error error = std::move(result).error();
  if (error.code != ErrorCode::cancelled) error.code = ErrorCode::callback;
  return error;
}

}  // namespace

Result<void> LocalCallbacks::fill(const Workload& workload, std::uint64_t seed, int trial,
                                  std::span<HostTensor> inputs) {
  if (inputs_ == nullptr) return missing("input source");
  return from_host(inputs_->fill(workload, seed, trial, inputs));
}

Result<void> LocalCallbacks::compute(const Workload& workload, std::span<const HostTensor> inputs,
                                     std::span<HostTensor> outputs) {
  if (reference_ == nullptr) return missing("reference");
  return from_host(reference_->compute(workload, inputs, outputs));
}

Result<std::vector<OutputCorrectness>> LocalCallbacks::compare(const Workload& workload,
                                                               std::span<const HostTensor> expected,
                                                               std::span<const HostTensor> got) {
  if (comparator_ == nullptr) return missing("comparator");
  return from_host(comparator_->compare(workload, expected, got));
}

}  // namespace ptxbench
