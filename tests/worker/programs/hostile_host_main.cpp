// A host that treats its guest badly: `hostile_host_program MODE`. Exit status 0: all answers were right.
// What is wrong is printed.
//   sigchld-ignored   SIGCHLD is ignored
//   wait-all          another thread waits for every child
//   sigpipe-default   SIGPIPE ends the process (its default)
//   thread-ended      each worker's starting thread has ended before the next job
//   all-three         SIGCHLD ignored, SIGPIPE default, starting threads ended
//   to-be-killed      starts workers (one hangs, with children of its own), prints "ready", waits to be
//   killed fork-keeps-socket the same, while a forked copy of the host lives on with its descriptors
#include "support/processes.hpp"
#include "test_worker.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <thread>

using namespace testing;

namespace {

int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  ++failures;
  std::printf("wrong: %s\n", what.c_str());
}

using Runner = std::function<void(const std::function<void()>&)>;

void rounds(const Runner& runner, bool status_may_be_lost) {
  {
    auto pool = test_pool(1);
    const CancelToken never;
    for (int round = 0; round < 5; ++round) {
      for (const DeathCase& expected : kDeaths) {
        if (round > 0 && expected.kind == WorkerDeath::Kind::memory) continue;
        runner([&] {
          const auto bad = pool->run(job(expected.stage), time_for(expected), never);
          if (!bad) return expect(false, expected.stage + (": " + bad.error().to_string()));
          const WorkerDeath* death = bad->died ? &bad->death : nullptr;
          if (death == nullptr) return expect(false, std::string(expected.stage) + " lived");
          const bool lost = status_may_be_lost && death->kind == WorkerDeath::Kind::closed;
          expect(death->kind == expected.kind || lost,
                 std::string(expected.stage) + ": " + death->description);
        });
        runner([&] {
          const auto good = pool->run(job("echo", "[1]"), 60s, never);
          expect(good && !good->died && good->reply.message.json == "[1]",
                 std::string("the good job after ") + expected.stage);
        });
      }
    }
  }
  expect(eventually([] { return children_of(::getpid()).empty(); }), "children are left");
}

void in_new_thread(const std::function<void()>& work) { std::thread(work).join(); }
void in_this_thread(const std::function<void()>& work) { work(); }

void wait_to_be_killed() {
  auto first = WorkerProcess::launch(test_launch());
  auto second = WorkerProcess::launch(test_launch());
  auto third = WorkerProcess::launch(test_launch());
  if (!first || !second || !third || !first->greet() || !second->greet() || !third->greet()) return;
  const std::string pids =
      std::to_string(first->pid()) + " " + std::to_string(second->pid()) + " " + std::to_string(third->pid());
  std::thread([&] { (void)third->call(job("spin"), {}, {}); }).detach();  // and one stays idle
  (void)second->call(job("child_and_hang"), {}, {}, [&](FrameKind, Parcel) -> Result<Parcel> {
    std::printf("ready %s\n", pids.c_str());
    std::fflush(stdout);
    return Parcel();
  });
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  ::signal(SIGPIPE, SIG_DFL);
  if (mode == "sigchld-ignored") {
    ::signal(SIGCHLD, SIG_IGN);
    rounds(in_this_thread, true);
  } else if (mode == "wait-all") {
    std::atomic<bool> stop{false};
    std::thread waiter([&] {
      while (!stop) {
        int status;
        if (::waitpid(-1, &status, WNOHANG) <= 0) std::this_thread::sleep_for(1ms);
      }
    });
    rounds(in_this_thread, true);
    stop = true;
    waiter.join();
  } else if (mode == "sigpipe-default") {
    rounds(in_this_thread, false);
  } else if (mode == "thread-ended") {
    rounds(in_new_thread, false);
  } else if (mode == "all-three") {
    ::signal(SIGCHLD, SIG_IGN);
    rounds(in_new_thread, true);
  } else if (mode == "to-be-killed") {
    wait_to_be_killed();
  } else if (mode == "fork-keeps-socket") {
    // A copy that is forked later, from another thread, and so has the sockets.
    std::thread([] {
      std::this_thread::sleep_for(500ms);
      const pid_t copy = ::fork();
      if (copy == 0)
        for (;;) ::pause();
      std::printf("copy %d\n", copy);
      std::fflush(stdout);
    }).detach();
    wait_to_be_killed();
  } else {
    std::printf("unknown mode\n");
    return 2;
  }
  return failures == 0 ? 0 : 1;
}
