// Count workers: a process for each job, a spare one, and what a death means.
#include "worker/count_worker.hpp"

#include "support/catch.hpp"
#include "support/count_case.hpp"

#include <chrono>
#include <set>
#include <thread>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

int launches = 0;

CountWorkers workers_of(const std::string& path) {
  launches = 0;
  return CountWorkers([path](const WarmStart* warm) -> Result<WorkerLaunch> {
    ++launches;
    WorkerLaunch launch;
    launch.path = path;
    launch.arguments.kind = "count";
    if (warm != nullptr) launch.arguments.warm = *warm;
    return launch;
  });
}

CountRequest request_for(const std::string& device) {
  return {device, "", probe_job({1}, "k", 1, 32, 1, 64)};
}

}  // namespace

TEST_CASE("count workers: each job has a process of its own, the next is started meanwhile") {
  CountWorkers workers = workers_of(PTXBENCH_TEST_WORKER);
  LocalCallbacks none;
  workers.prepare({"", "pid"});
  CHECK(launches == 1);
  std::set<std::string> pids;
  for (int i = 1; i <= 4; ++i) {
    const auto evidence = workers.count(request_for("pid"), none, {});
    if (!evidence) FAIL(evidence.error().to_string());
    pids.insert(evidence->method);
    CHECK(pids.size() == static_cast<std::size_t>(i));
    CHECK(launches == 1 + i);
    workers.prepare({"", "pid"});  // there is one already
    CHECK(launches == 1 + i);
  }
  for (int i = 0; i < 5; ++i) workers.prepare({"", "pid"});  // three at most
  CHECK(launches == 7);
  workers.settle();
}

TEST_CASE("count workers: a spare one is warm before it is used, and one that dies of that is no harm") {
  CountWorkers workers = workers_of(PTXBENCH_TEST_WORKER);
  LocalCallbacks none;
  const auto count = [&](const std::string& device) {
    const auto evidence = workers.count(request_for(device), none, {});
    if (!evidence) FAIL(evidence.error().to_string());
    REQUIRE_FALSE(evidence->unavailable);
    return evidence->method;
  };
  CHECK(count("warm") == "cold");  // none was prepared
  CHECK(count("warm") == "warm for warm");
  workers.prepare({"", "warm"});  // there is one from before
  workers.settle();
  CHECK(launches == 3);
  CHECK(count("warm") == "warm for warm");

  CountWorkers sick = workers_of(PTXBENCH_TEST_WORKER);
  sick.prepare({"crash", "pid"});
  sick.settle();
  CHECK(launches == 1);
  CHECK(sick.count(request_for("pid"), none, {}));
  CHECK(launches == 3);  // a cold one, and the next spare one
  sick.prepare({"crash", "pid"});
  CHECK(sick.count(request_for("pid"), none, {}));  // not settled before
}

TEST_CASE("count workers: a spare one serves the device that it has opened, and no other") {
  CountWorkers workers = workers_of(PTXBENCH_TEST_WORKER);
  LocalCallbacks none;
  const auto count = [&](const std::string& device) { return workers.count(request_for(device), none, {}).value().method; };
  workers.prepare({"", "warm:0"});
  workers.prepare({"", "warm:1"});
  workers.prepare({"", "warm:1"});
  CHECK(launches == 3);
  workers.settle();
  for (const char* device : {"warm:1", "warm:0", "warm:1", "warm:1", "warm:0"}) CHECK(count(device) == "warm for " + std::string(device));
  CHECK(count("warm:2") == "cold");
}

TEST_CASE("count workers: one that dies makes the counts unavailable, and the next job is served") {
  CountWorkers workers = workers_of(PTXBENCH_TEST_WORKER);
  LocalCallbacks none;
  for (int i = 0; i < 5; ++i) {
    const auto bad = workers.count(request_for("crash"), none, {});
    if (!bad) FAIL(bad.error().to_string());
    REQUIRE(bad->unavailable);
    CHECK(bad->unavailable->kind == CountUnavailable::Kind::fault);
    CHECK(contains(bad->unavailable->reason, "patched code went astray"));
    const auto good = workers.count(request_for("pid"), none, {});
    REQUIRE(good);
    CHECK_FALSE(good->unavailable);
  }
}

TEST_CASE("count workers: a worker that does not start, and a cancelled job, are errors") {
  LocalCallbacks none;
  CountWorkers nowhere = workers_of("/nonexistent/worker");
  nowhere.prepare({"", "pid"});
  const auto missing = nowhere.count(request_for("pid"), none, {});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::worker);
  CountWorkers workers = workers_of(PTXBENCH_TEST_WORKER);
  CancelToken cancel;
  cancel.trigger();
  const auto cancelled = workers.count(request_for("pid"), none, cancel);
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().code == ErrorCode::cancelled);
}

TEST_CASE("count workers: the product's says why it cannot open a device") {
  CountWorkers workers = workers_of(PTXBENCH_BINARY_DIR "/bin/ptxbench-worker");
  LocalCallbacks none;
  const auto evidence = workers.count(request_for("cuda:4711"), none, {});
  if (!evidence) FAIL(evidence.error().to_string());
  REQUIRE(evidence->unavailable);
  CHECK(evidence->unavailable->kind == CountUnavailable::Kind::driver);
  CHECK(contains(evidence->unavailable->reason, "cannot open the device"));
}

TEST_CASE("count workers: a job that hangs is cancelled by killing its worker, and the next is served") {
  CountWorkers workers = workers_of(PTXBENCH_TEST_WORKER);
  LocalCallbacks none;
  const CancelToken cancel;
  std::thread soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancel.trigger();
  });
  const auto evidence = workers.count(request_for("hang"), none, cancel);  // else for three minutes
  soon.join();
  REQUIRE_FALSE(evidence);
  CHECK(evidence.error().code == ErrorCode::cancelled);
  CHECK(workers.count(request_for("pid"), none, {}));
}
