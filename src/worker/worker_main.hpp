// The worker's side: from its main to the loop over jobs. It runs in the worker only: it changes signal
// handlers, limits and the process group, and it ends the process.
#pragma once

#include "worker/protocol.hpp"
#include "worker/stage.hpp"

#include <functional>
#include <string>

namespace ptxbench {

// What a worker that is to be warm does before it says hello.
using WarmUp = std::function<void(const WarmStart&)>;

// Whole main of a worker program: started by a host, applies the limits and serves; started by hand, says
// what it is and returns 2.
int worker_program(int argc, char** argv, const StageTable& stages, const WarmUp& warm_up = {});

// Serves jobs that come over the socket `fd`: hello first, then until the host hangs up. Returns the exit
// status. From here on the whole process group ends at once when the socket closes or the host ends, whatever
// the calling thread is doing.
int worker_main(int fd, const StageTable& stages, const std::function<void()>& before_hello = {});

// Limits of this process and of what it starts. Core dumps are always off.
void apply_worker_limits(const WorkerArguments& arguments);
// Whether this process has grown by a quarter of its memory limit since that was set: then it should make
// room.
bool worker_has_grown() noexcept;

}  // namespace ptxbench
