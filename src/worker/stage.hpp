// What a worker can do, by name: each kind of job is a stage, a whole piece of work with a request and a
// result. A new stage is a new file with a StageFunction and a line in the worker's main.
#pragma once

#include "core/message.hpp"
#include "core/unique_fd.hpp"

#include <ptxbench/core.hpp>

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench {

// A message with the descriptors (of SharedMemory) that travel beside it.
struct Parcel {
  Parcel() = default;
  Parcel(Message m) : message(std::move(m)) {}  // NOLINT: implicit on purpose
  Parcel(Message m, std::vector<UniqueFd> f) : message(std::move(m)), files(std::move(f)) {}
  Message message;
  std::vector<UniqueFd> files;
};

// The host, as a stage sees it while it runs.
class StageHost {
 public:
  virtual ~StageHost() = default;
  // Tells the host something that it need not answer.
  virtual Result<void> progress(const Message& message, std::span<const int> files = {}) = 0;
  // Asks the host (a callback of the request) and waits for its answer. The host's error comes back as an
  // Error, with which the stage should end. Time that the host takes is not held against the job's deadline.
  virtual Result<Parcel> ask(const Message& message, std::span<const int> files = {}) = 0;
};

// Runs one job. `job.files` may be moved from. An Error is the environment's fault and reaches the host as it
// is; what a candidate did wrong belongs into the resulting message.
using StageFunction = std::function<Result<Parcel>(Parcel& job, StageHost& host)>;

// Stages by the type of their job's message.
using StageTable = std::map<std::string, StageFunction, std::less<>>;

}  // namespace ptxbench
