#include "worker/worker_pool.hpp"

#include "support/catch.hpp"
#include "support/processes.hpp"
#include "test_worker.hpp"

#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <mutex>
#include <set>
#include <thread>

using namespace testing;

namespace {

const CancelToken kNever;

std::string run_json(WorkerPool& pool, const Message& message) {
  auto outcome = pool.run(message, 60s, kNever);
  if (!outcome) return "error: " + outcome.error().to_string();
  if (outcome->died) return "death: " + outcome->death.description;
  return outcome->reply.message.json;
}

}  // namespace

TEST_CASE("each death is followed by a good job, 20 times, and nothing is left behind") {
  const std::size_t descriptors = open_descriptors();
  {
    auto pool = test_pool(1);
    for (int round = 0; round < 20; ++round) {
      for (const DeathCase& expected : kDeaths) {
        INFO(expected.stage << ", round " << round);
        // Deaths by memory take time, and the deadline is one: fewer of those.
        if (round >= 4 && expected.kind == WorkerDeath::Kind::memory) continue;
        auto bad = pool->run(job(expected.stage), time_for(expected), kNever);
        REQUIRE(bad);
        REQUIRE(bad->died);
        REQUIRE(bad->death.kind == expected.kind);
        REQUIRE(run_json(*pool, job("echo", "{\"good\":1}")) == "{\"good\":1}");
      }
      REQUIRE(eventually([] { return children_of(::getpid()).size() <= 2; }));  // the worker, and one that is going, which may take a while
    }
    REQUIRE(pool->statistics().died >= 20 * 10);
  }
  REQUIRE(children_of(::getpid()).empty());
  for (const ProcessEntry& p : all_processes()) {
    INFO(p.pid << " " << p.name);
    REQUIRE_FALSE((p.name == "test_worker_pro" && p.parent == ::getpid()));
  }
  REQUIRE(open_descriptors() == descriptors);
}

TEST_CASE("a worker is reused, and replaced where a fresh one is wanted") {
  auto pool = test_pool(2);
  const auto pid = [&](bool fresh) {
    auto outcome = pool->run(job("pid"), 60s, kNever, fresh);
    REQUIRE(outcome);
    REQUIRE((!fresh || outcome->fresh));
    return outcome->reply.message.type;
  };
  const std::string first = pid(false);
  REQUIRE(pid(false) == first);
  REQUIRE(pid(true) != first);
}

TEST_CASE("a worker that has grown makes room for another, which is no death") {
  auto pool = test_pool(1);
  for (int i = 0; i < 5; ++i) {
    auto outcome = pool->run(job("leak"), 60s, kNever);
    REQUIRE(outcome);
    REQUIRE(!outcome->died);
  }
  REQUIRE(pool->statistics().died == 0);
}

TEST_CASE("an idle worker that somebody killed costs nobody a job") {
  auto pool = test_pool(1);
  for (int i = 0; i < 5; ++i) {
    auto outcome = pool->run(job("pid"), 60s, kNever);
    REQUIRE(outcome);
    const int pid = std::stoi(outcome->reply.message.type);
    ::kill(pid, SIGKILL);
    REQUIRE(run_json(*pool, job("echo", "[1]")) == "[1]");
  }
}

TEST_CASE("jobs from many threads get their own answers, and the limit holds") {
  auto pool = test_pool(3);
  std::atomic<int> wrong{0};
  std::atomic<std::size_t> most{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 12; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 30; ++i) {
        const std::string text = "[" + std::to_string(t) + "," + std::to_string(i) + "]";
        if (i % 10 == 3) {
          auto bad = pool->run(job("abort"), 60s, kNever);
          if (!bad || !bad->died) ++wrong;
        }
        if (run_json(*pool, job("echo", text)) != text) ++wrong;
        if (t == 0) {
          std::size_t living = 0;
          for (const ProcessEntry& p : children_of(::getpid())) living += p.state != 'Z';
          if (living > most) most = living;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  REQUIRE(wrong == 0);
  REQUIRE(most <= 6);  // three, and their predecessors on the way out
}

TEST_CASE("waiting is in the order of asking") {
  auto pool = test_pool(1);
  std::vector<std::string> answers(5);
  std::vector<std::thread> threads;
  CancelToken stop;
  std::thread holder([&] { (void)pool->run(job("hang"), 60s, stop); });
  REQUIRE(eventually([&] { return !children_of(::getpid()).empty(); }));
  for (std::size_t t = 0; t < answers.size(); ++t) {
    threads.emplace_back([&, t] {
      const auto outcome = pool->run(job("tally"), 60s, kNever);
      if (outcome) answers[t] = outcome->reply.message.type;
    });
    REQUIRE(eventually([&] { return pool->statistics().waiting == t + 1; }));
  }
  stop.trigger();
  holder.join();
  for (std::thread& t : threads) t.join();
  REQUIRE(answers == std::vector<std::string>{"0", "1", "2", "3", "4"});
}

TEST_CASE("one who waits for a worker can be cancelled") {
  auto pool = test_pool(1);
  CancelToken stop_first, stop_second;
  std::thread holder([&] { (void)pool->run(job("hang"), 60s, stop_first); });
  REQUIRE(eventually([&] { return !children_of(::getpid()).empty(); }));
  std::thread second([&] {
    std::this_thread::sleep_for(30ms);
    stop_second.trigger();
  });
  std::this_thread::sleep_for(10ms);
  auto result = pool->run(job("echo"), 60s, stop_second);
  second.join();
  REQUIRE_FALSE(result);
  REQUIRE(result.error().code == ErrorCode::cancelled);
  stop_first.trigger();
  holder.join();
  REQUIRE(run_json(*pool, job("echo", "[2]")) == "[2]");
}

TEST_CASE("a worker that is not found is an error each time, until it is there") {
  bool there = false;
  WorkerPool pool(test_launch(),
                  [&]() -> Result<std::string> {
                    if (!there) return make_error(ErrorCode::worker, "not here");
                    return std::string(PTXBENCH_TEST_WORKER);
                  },
                  1, {});
  REQUIRE(run_json(pool, job("echo", "[3]")) == "error: not here");
  there = true;
  REQUIRE(run_json(pool, job("echo", "[3]")) == "[3]");
}

TEST_CASE("a forked copy of the host cannot use or end the pool") {
  auto pool = test_pool(1);
  REQUIRE(run_json(*pool, job("echo", "[4]")) == "[4]");
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = run_json(*pool, job("echo")).starts_with("error: this process is a forked copy");
    pool.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  auto outcome = pool->run(job("echo", "[5]"), 60s, kNever);
  REQUIRE(outcome);
  REQUIRE_FALSE(outcome->fresh);
}
