// A worker with stages that misbehave in every way that the host must survive. The loop is the product's.
#include "core/json.hpp"
#include "core/shared_memory.hpp"
#include "count/wire.hpp"
#include "worker/worker_main.hpp"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace {

using namespace ptxbench;

Message named(std::string type, std::string json = "{}") { return {std::move(type), std::move(json), {}}; }

Result<Parcel> echo(Parcel& job, StageHost&) { return Parcel(std::move(job.message), std::move(job.files)); }

Result<Parcel> segfault(Parcel&, StageHost&) {
  std::printf("about to crash\n");
  *static_cast<volatile int*>(nullptr) = 1;
  return Parcel();
}

int recurse(volatile int* depth) {
  volatile char frame[4096] = {};
  *depth = *depth + 1 + frame[0];
  return *depth < 0 ? 0 : recurse(depth) + frame[1];
}
Result<Parcel> overflow(Parcel&, StageHost&) {
  volatile int depth = 0;
  return Parcel(named(std::to_string(recurse(&depth))));
}

Result<Parcel> abort_now(Parcel&, StageHost&) { std::abort(); }
Result<Parcel> exit_3(Parcel&, StageHost&) { std::exit(3); }
Result<Parcel> throw_now(Parcel&, StageHost&) { throw std::runtime_error("thrown by a stage"); }

Result<Parcel> hang(Parcel&, StageHost&) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);  // nothing but SIGKILL ends it
  for (;;) ::pause();
}

Result<Parcel> spin(Parcel&, StageHost&) {
  for (volatile unsigned x = 0;;) x = x + 1;
}

// Like a compiler that starts a program and waits for it for ever.
Result<Parcel> child_and_hang(Parcel&, StageHost& host) {
  [[maybe_unused]] const int ignored = std::system("sleep 1000 & sleep 1000 &");
  PTXBENCH_TRY(host.progress(named("started")));
  for (;;) ::pause();
}
Result<Parcel> child_and_crash(Parcel&, StageHost&) {
  [[maybe_unused]] const int ignored = std::system("sleep 1000 &");
  std::abort();
}

Result<Parcel> allocate_new(Parcel&, StageHost&) {
  for (;;) std::memset(new char[1 << 20], 1, 1 << 20);
}
// As code that does not check: a crash, though for lack of memory.
Result<Parcel> allocate_unchecked(Parcel&, StageHost&) {
  for (;;) {
    void* volatile p = std::malloc(1 << 20);
    std::memset(p, 1, 1 << 20);
  }
}
Result<Parcel> allocate_abort(Parcel&, StageHost&) {
  for (;;) {
    void* p = std::malloc(1 << 20);
    if (p == nullptr) std::abort();
    std::memset(p, 1, 1 << 20);
  }
}
// Keeps a lot and ends well: the loop should end this worker after the reply.
Result<Parcel> leak(Parcel&, StageHost&) {
  for (int i = 0; i < 80; ++i) {
    void* volatile p = std::malloc(1 << 20);
    std::memset(p, 1, 1 << 20);
  }
  return Parcel(named("leaked"));
}

Result<Parcel> print(Parcel&, StageHost&) {
  for (int i = 0; i < 300'000; ++i) std::printf("line %d of very much output\n", i);
  std::fprintf(stderr, "the end\n");
  return Parcel(named("printed"));
}

Result<Parcel> talk(Parcel& job, StageHost& host) {
  for (int i = 0; i < 3; ++i) PTXBENCH_TRY(host.progress(named("step " + std::to_string(i))));
  PTXBENCH_TRY_ASSIGN(SharedMemory memory, SharedMemory::create(1 << 20));
  std::memset(memory.data(), 5, memory.size());
  const int fd = memory.fd();
  PTXBENCH_TRY_ASSIGN(Parcel answer, host.ask(named("sum", job.message.json), {&fd, 1}));
  return Parcel(named("talked", answer.message.json), std::move(answer.files));
}

Result<Parcel> fail(Parcel&, StageHost&) {
  return make_error(ErrorCode::toolkit, "nothing found", {"a.cu", "", 1, 2}, "some_rule");
}

Result<Parcel> garbage(Parcel&, StageHost&) {
  ::send(3, "this is no message at all, is it?", 33, MSG_NOSIGNAL);
  for (;;) ::pause();
}

Result<Parcel> environment(Parcel&, StageHost&) {
  const char* pipe = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const char* log = std::getenv("CUDA_MPS_LOG_DIRECTORY");
  return Parcel(named(std::string(pipe ? pipe : "-") + " " + (log ? log : "-")));
}

Result<Parcel> tally(Parcel&, StageHost&) {
  static int jobs = 0;
  return Parcel(named(std::to_string(jobs++)));
}

std::optional<WarmStart> warm_with;

void warm_up(const WarmStart& warm) {
  if (warm.cuda_home == "crash") std::abort();
  warm_with = warm;
}

// A count worker without a GPU: the job's device says what happens.
Result<Parcel> count(Parcel& job, StageHost&) {
  PTXBENCH_TRY_ASSIGN(const CountRequest request, count_request_from(job.message));
  if (request.device == "crash") {
    std::printf("patched code went astray\n");
    std::fflush(stdout);
    std::abort();
  }
  if (request.device == "hang")
    for (;;) ::pause();
  CountEvidence evidence;
  evidence.method = std::to_string(::getpid());
  if (request.device.rfind("warm", 0) == 0) evidence.method = warm_with ? "warm for " + warm_with->device : "cold";
  return Parcel(to_message(evidence));
}

Result<Parcel> pid(Parcel&, StageHost&) { return Parcel(named(std::to_string(::getpid()))); }

}  // namespace

int main(int argc, char** argv) {
  return worker_program(argc, argv,
                        {{"echo", echo},
                         {"segfault", segfault},
                         {"overflow", overflow},
                         {"abort", abort_now},
                         {"exit_3", exit_3},
                         {"throw", throw_now},
                         {"hang", hang},
                         {"spin", spin},
                         {"child_and_hang", child_and_hang},
                         {"child_and_crash", child_and_crash},
                         {"allocate_new", allocate_new},
                         {"allocate_unchecked", allocate_unchecked},
                         {"allocate_abort", allocate_abort},
                         {"leak", leak},
                         {"print", print},
                         {"talk", talk},
                         {"fail", fail},
                         {"garbage", garbage},
                         {"environment", environment},
                         {"count", count}, {"tally", tally},
                         {"pid", pid}},
                        warm_up);
}
