// A host that treats its guest badly, on a GPU: SIGCHLD ignored, SIGPIPE at its default, the thread that started the workers
// ended. Five times an illegal address, a kernel that never ends and a trap, each followed by a good candidate; then no process may be
// left. Exit status 0: all went well. Also prints how long from a kill to the next verdict.
//   hostile_gpu_host WORKER
#include "support/processes.hpp"

#include "twice.hpp"

#include <ptxbench/evaluate.hpp>

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <thread>

using namespace ptxbench;
using namespace testing;

namespace {

std::optional<Status> status_of(Context& context, const Workload& workload, const char* body) {
  const Result<Solution> solution = twice_solution("candidate", body);
  if (!solution) return std::nullopt;
  const Judging judging = twice_judging();
  EvaluateOptions options;
  options.trials = 1;
  options.time = options.count = false;
  options.run_deadline_ns = 1'000'000'000;
  const Result<Evaluation> evaluation = evaluate(context, *solution, {&workload, 1}, judging, options);
  if (!evaluation) {
    std::printf("error: %s\n", evaluation.error().to_string().c_str());
    return std::nullopt;
  }
  return evaluation->status();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::signal(SIGCHLD, SIG_IGN);
  std::signal(SIGPIPE, SIG_DFL);
  const Result<Workload> workload = twice_workload(100'000);
  if (!workload) return 2;
  ContextOptions options;
  options.worker_path = argv[1];
  options.cache_dir = "";
  Result<std::shared_ptr<Context>> context = Context::create(options);
  if (!context) return 2;
  constexpr const char* kGood = "if (i < n) z[i] = x[i] + x[i];";
  std::optional<Status> first;
  std::thread([&] { first = status_of(**context, *workload, kGood); }).join();
  if (first != Status::passed) {
    std::printf("the first good one did not pass\n");
    return 1;
  }
  const struct {
    const char* name;
    const char* body;
    Status status;
  } bad[] = {{"illegal address", "z[i + (1ll << 44)] = x[0];", Status::runtime_error},
             {"endless", "for (volatile int* p = (volatile int*)z;;) if (*p == 42 && *p == 43) return;", Status::timeout},
             {"trap", "__trap();", Status::runtime_error}};
  for (const auto& one : bad) {
    for (int i = 0; i < 5; ++i) {
      if (status_of(**context, *workload, one.body) != one.status) {
        std::printf("%s: not the status it must get\n", one.name);
        return 1;
      }
      const auto start = std::chrono::steady_clock::now();
      if (status_of(**context, *workload, kGood) != Status::passed) {
        std::printf("%s: the good one after it did not pass\n", one.name);
        return 1;
      }
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
      std::printf("%s: replaced, next verdict after %.0f ms\n", one.name, took.count());
    }
  }
  context->reset();
  for (int i = 0; i < 50 && !testing::children_of(::getpid()).empty(); ++i) ::usleep(100'000);
  if (!testing::children_of(::getpid()).empty()) {
    std::printf("children are left\n");
    return 1;
  }
  std::printf("hostile host: all passed, no process is left\n");
  return 0;
}
