// Lists of requests and jobs over workers that are stand-ins: order, threads, cancellation, ends.
#include "fake_workers.hpp"

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

using namespace testing;
using namespace std::chrono_literals;

namespace {

// A door that is opened once.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // Whether it was opened, rather than cancelled or left for too long.
  bool wait(const CancelToken* cancel = nullptr) {
    std::unique_lock lock(mutex_);
    for (int i = 0; i < 6000 && !open_ && (cancel == nullptr || !cancel->triggered()); ++i)
      changed_.wait_for(lock, 10ms);
    return open_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// Catch's own checks are for one thread at a time: what other threads see is noted, and looked at in the end.
std::atomic<int> g_wrong{0};
void expect(bool good) {
  if (!good) ++g_wrong;
}

bool readable(int fd) {
  pollfd p{fd, POLLIN, 0};
  return ::poll(&p, 1, 0) == 1;
}

EvaluateRequest request_of(const Bench& bench, const std::string& name = "s") {
  Solution solution = bench.solution;
  solution.name = name;
  return {
      std::make_shared<const Solution>(std::move(solution)), {bench.workload}, bench.judging, bench.options};
}

std::unique_ptr<Job> submitted(const Bench& bench, EvaluateRequest request) {
  auto job = submit(bench.context, std::move(request));
  if (!job) FAIL(job.error().to_string());
  return std::move(*job);
}

}  // namespace

TEST_CASE("many: results come in order, each request has its own, callbacks run on the calling thread") {
  Bench bench;
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> elsewhere{0};
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks&, const CancelToken&) -> Result<void> {
    if (std::this_thread::get_id() != caller) ++elsewhere;
    if (job.candidate.solution.name == "s5") return make_error(ErrorCode::driver, "sick");
    return {};
  };
  std::vector<EvaluateRequest> requests;
  for (int i = 0; i < 40; ++i) requests.push_back(request_of(bench, "s" + std::to_string(i)));
  requests[7].options.trials = 0;  // wrong before anything runs
  requests[9].solution = nullptr;
  requests[11].workloads.assign(3, bench.workload);
  const auto results = evaluate_many(*bench.context, requests);
  REQUIRE(results);
  REQUIRE(results->size() == 40);
  for (int i = 0; i < 40; ++i) {
    INFO(i);
    const Result<Evaluation>& result = (*results)[static_cast<std::size_t>(i)];
    if (i == 5) {
      CHECK(result.error().code == ErrorCode::driver);
    } else if (i == 7 || i == 9) {
      CHECK(result.error().code == ErrorCode::invalid_argument);
    } else {
      REQUIRE(result);
      CHECK(result->solution == "s" + std::to_string(i));
      CHECK(result->status() == Status::passed);
      CHECK(result->verdicts.size() == (i == 11 ? 3 : 1));
    }
  }
  CHECK(elsewhere == 0);
  CHECK(evaluate_many(*bench.context, {})->empty());
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("many: candidates are compiled ahead while the device measures, and not without bound") {
  Bench bench;
  const int window = ContextImpl::of(*bench.context).compile_window();
  std::atomic<int> compiled{0}, most_ahead{0};
  Gate ahead;
  bench.workers->on_compile = [&](const CompileRequest& request, const CancelToken&) {
    if (request.sources.at(0).path != "k.cu") return;  // the judge's own
    if (++compiled >= 3) ahead.open();
  };
  std::atomic<int> measured{0};
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks&, const CancelToken&) -> Result<void> {
    if (job.first_trial > 0) return {};
    expect(ahead.wait());  // the first is measured when two more have been compiled
    most_ahead = std::max(most_ahead.load(), compiled - measured);
    ++measured;
    return {};
  };
  std::vector<EvaluateRequest> requests(100, request_of(bench));
  const auto results = evaluate_many(*bench.context, requests);
  REQUIRE(results);
  CHECK(measured == 100);
  CHECK(most_ahead <= window);
  CHECK(most_ahead >= 3);
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("many: one slow compilation does not keep the device from the others") {
  Bench bench;
  Gate others;
  bench.workers->on_compile = [&](const CompileRequest& request, const CancelToken&) {
    if (request.files.at(0).content.find("slow") != std::string::npos) expect(others.wait());
  };
  std::atomic<int> measured{0};
  bench.workers->on_verify = [&](const VerifyJob&, HostCallbacks&, const CancelToken&) -> Result<void> {
    if (++measured == 20) others.open();
    return {};
  };
  ContextOptions options;
  options.cache_dir = "";
  options.compile_workers = 2;
  bench.context = std::make_shared<ContextImpl>(options, bench.workers);
  std::vector<EvaluateRequest> requests(21, request_of(bench));
  Solution slow = bench.solution;
  slow.sources[1].content += "// slow";
  requests[0].solution = std::make_shared<const Solution>(slow);
  const auto results = evaluate_many(*bench.context, requests);
  REQUIRE(results);
  for (const auto& result : *results) CHECK(result);
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("many: cancelled while one compiles and one runs, all end") {
  Bench bench;
  const CancelToken cancel;
  std::atomic<bool> endless{true};
  bench.workers->on_verify = [&](const VerifyJob&, HostCallbacks&, const CancelToken& token) -> Result<void> {
    cancel.trigger();
    while (endless && !token.triggered()) std::this_thread::sleep_for(1ms);
    return {};
  };
  std::vector<EvaluateRequest> requests(30, request_of(bench));
  const auto results = evaluate_many(*bench.context, requests, cancel);
  REQUIRE(results);
  for (const auto& result : *results) CHECK(result.error().code == ErrorCode::cancelled);
  CHECK(bench.workers->verified == 1);
  CHECK(g_wrong.exchange(0) == 0);
}

namespace {

// Counted, and nothing of the host's is called.
EvaluateRequest counted_request(const Bench& bench) {
  EvaluateRequest request = request_of(bench);
  request.judging.reference = SolutionChoice{std::make_shared<const Solution>(bench.solution), {}};
  request.options.count = true;
  return request;
}

CountEvidence no_counter() {
  CountEvidence evidence;
  evidence.unavailable = CountUnavailable{CountUnavailable::Kind::library_missing, "no CUPTI"};
  return evidence;
}

}  // namespace

TEST_CASE("many: while one is counted the next is verified, on threads of the library, and results are in order") {
  Bench bench;
  std::atomic<int> counting{0};
  Gate both;
  const std::thread::id caller = std::this_thread::get_id();
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks&, const CancelToken&) -> Result<void> {
    expect(std::this_thread::get_id() != caller);
    if (counting > 0 && job.first_trial == 0) both.open();
    return {};
  };
  std::atomic<int> counts{0};
  bench.workers->on_count = [&](const CountJob&) -> Result<CountEvidence> {
    ++counting;
    if (++counts == 1) expect(both.wait());  // not before another is verified
    --counting;
    return no_counter();
  };
  std::vector<EvaluateRequest> requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back(counted_request(bench));
    Solution named = bench.solution;
    named.name = "s" + std::to_string(i);
    requests.back().solution = std::make_shared<const Solution>(std::move(named));
  }
  const auto results = evaluate_many(*bench.context, requests);
  REQUIRE(results);
  for (std::size_t i = 0; i < 20; ++i) {
    const auto& result = (*results)[i];
    if (!result) FAIL(result.error().to_string());
    CHECK(result->solution == "s" + std::to_string(i));
    CHECK(result->status() == Status::passed);
    CHECK(result->verdicts.at(0).counts.reason == "no CUPTI");
  }
  CHECK(counts == 20);
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("many: cancelled while several are measured and more wait for a thread, all end") {
  for (int round = 0; round < 20; ++round) {
    Bench bench;
    const CancelToken cancel;
    bench.workers->on_verify = [&](const VerifyJob&, HostCallbacks&, const CancelToken& token) -> Result<void> {
      if (bench.workers->verified > round % 4) cancel.trigger();
      while (!token.triggered()) std::this_thread::sleep_for(1ms);
      return {};
    };
    std::vector<EvaluateRequest> requests(30, counted_request(bench));
    const auto results = evaluate_many(*bench.context, requests, cancel);
    REQUIRE(results);
    for (const auto& result : *results) CHECK(result.error().code == ErrorCode::cancelled);
  }
}

TEST_CASE("job: counted ones are measured side by side, and given up in any order") {
  for (int round = 0; round < 10; ++round) {
    Bench bench;
    bench.workers->on_count = [&](const CountJob&) -> Result<CountEvidence> {
      std::this_thread::sleep_for(1ms);
      return no_counter();
    };
    std::vector<std::unique_ptr<Job>> jobs;
    for (int i = 0; i < 12; ++i) jobs.push_back(submitted(bench, counted_request(bench)));
    bench.context.reset();  // the jobs keep it
    CHECK(jobs[static_cast<std::size_t>(round)]->wait().value());
    CHECK(jobs[static_cast<std::size_t>(round)]->take().value().status() == Status::passed);
  }
}

TEST_CASE("many: a token that nobody triggers stays as it is") {
  Bench bench;
  const CancelToken cancel;
  std::vector<EvaluateRequest> requests(3, request_of(bench));
  requests[1].options.pairs = 1;
  REQUIRE(evaluate_many(*bench.context, requests, cancel));
  CHECK_FALSE(cancel.triggered());
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("a token that follows another one is triggered with it, and by itself alone") {
  const CancelToken leader;
  const CancelToken first = leader.follower(), second = leader.follower(), last = first.follower();
  first.trigger();
  CHECK(first.triggered());
  CHECK(last.triggered());
  CHECK_FALSE(second.triggered());
  CHECK_FALSE(leader.triggered());
  leader.trigger();
  CHECK(second.triggered());
}

TEST_CASE("job: a descriptor, states, a result that is taken once") {
  Bench bench;
  Gate gate;
  bench.workers->on_verify = [&](const VerifyJob&, HostCallbacks&, const CancelToken&) -> Result<void> {
    expect(gate.wait());
    return {};
  };
  const auto job = submitted(bench, request_of(bench));
  CHECK(job->descriptor() >= 0);
  CHECK_FALSE(readable(job->descriptor()));
  CHECK(job->wait(1'000'000).value() == false);
  CHECK(job->take().error().code == ErrorCode::busy);
  gate.open();
  CHECK(job->wait().value());
  CHECK(readable(job->descriptor()));
  CHECK(job->state() == JobState::finished);
  const auto evaluation = job->take();
  REQUIRE(evaluation);
  CHECK(evaluation->status() == Status::passed);
  CHECK(job->state() == JobState::taken);
  CHECK(job->take().error().code == ErrorCode::state);
  CHECK(readable(job->descriptor()));
  job->cancel();  // too late, and harmless
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("job: a bad request is refused at once; an Error of the environment is the job's result") {
  Bench bench;
  EvaluateRequest bad = request_of(bench);
  bad.options.trials = 0;
  CHECK(submit(bench.context, bad).error().code == ErrorCode::invalid_argument);
  CHECK(submit(nullptr, request_of(bench)).error().code == ErrorCode::invalid_argument);
  bench.workers->fault =
      DeviceFault{DeviceFault::Kind::hardware, "CUDA_ERROR_ECC_UNCORRECTABLE", 214, true, "ecc", {}};
  const auto job = submitted(bench, request_of(bench));
  CHECK(job->wait().value());
  CHECK(job->take().error().code == ErrorCode::driver);
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("job: callbacks and hooks of all jobs run on one thread of the library, one at a time") {
  Bench bench;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> inside{0}, most{0};
  const auto note = [&] {
    most = std::max(most.load(), ++inside);
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(100us);
    --inside;
  };
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks& callbacks, const CancelToken&) {
    note();
    return callbacks.compute(job.workload, {}, {});
  };
  bench.options.before_timing = bench.options.after_timing = note;
  std::vector<std::unique_ptr<Job>> jobs;
  for (int i = 0; i < 50; ++i) jobs.push_back(submitted(bench, request_of(bench)));
  for (const auto& job : jobs) {
    CHECK(job->wait().value());
    CHECK(job->take());
  }
  CHECK(bench.workers->timed == 50);
  CHECK(threads.size() == 1);
  CHECK(threads.count(std::this_thread::get_id()) == 0);
  CHECK(most == 1);
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("job: cancelled while it compiles, runs, or waits; its descriptor says so") {
  for (const bool compiling : {true, false}) {
    Bench bench;
    Gate there;
    const auto stay = [&](const CancelToken& cancel) {
      there.open();
      Gate never;
      never.wait(&cancel);
    };
    if (compiling)
      bench.workers->on_compile = [&](const CompileRequest&, const CancelToken& cancel) { stay(cancel); };
    else
      bench.workers->on_verify = [&](const VerifyJob&, HostCallbacks&,
                                     const CancelToken& cancel) -> Result<void> {
        stay(cancel);
        return {};
      };
    const auto first = submitted(bench, request_of(bench));
    REQUIRE(there.wait());
    CHECK(first->state() == JobState::running);
    std::vector<std::unique_ptr<Job>> waiting;  // behind it, where it keeps the device
    for (int i = 0; i < 20; ++i) waiting.push_back(submitted(bench, request_of(bench)));
    if (!compiling) {
      waiting.back()->cancel();
      CHECK(waiting.back()->wait().value());
      CHECK(waiting.back()->take().error().code == ErrorCode::cancelled);
      CHECK(first->state() == JobState::running);
    }
    first->cancel();
    CHECK(first->wait().value());
    CHECK(readable(first->descriptor()));
    CHECK(first->take().error().code == ErrorCode::cancelled);
    for (const auto& job : waiting) job->cancel();
    for (const auto& job : waiting) CHECK(job->wait().value());
  }
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("job: destroying one cancels it, and nothing of it is called afterwards") {
  Bench bench;
  Gate there;
  std::atomic<int> calls{0};
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks& callbacks,
                                 const CancelToken& cancel) -> Result<void> {
    there.open();
    while (!cancel.triggered()) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    ++calls;
    expect(callbacks.compute(job.workload, {}, {}).error().code ==
           ErrorCode::cancelled);  // the host's own is not called
    return {};
  };
  auto job = submitted(bench, request_of(bench));
  REQUIRE(there.wait());
  job.reset();
  CHECK(calls == 1);
  bench.workers->on_verify = nullptr;
  const auto next = submitted(bench, request_of(bench));
  CHECK(next->wait().value());
  CHECK(next->take());
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("job: the context lives until its last job is gone") {
  Bench bench;
  Gate gate;
  bench.workers->on_verify = [&](const VerifyJob&, HostCallbacks&, const CancelToken&) -> Result<void> {
    expect(gate.wait());
    return {};
  };
  std::weak_ptr<Context> watched = bench.context;
  auto first = submitted(bench, request_of(bench)), second = submitted(bench, request_of(bench));
  bench.context.reset();
  gate.open();
  CHECK(first->wait().value());
  CHECK(first->take()->status() == Status::passed);
  CHECK_FALSE(watched.expired());
  first.reset();
  second.reset();
  CHECK(watched.expired());
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("job: destroyed in a callback, with the last hold on the context") {
  for (int i = 0; i < 20; ++i) {
    Bench bench;
    std::unique_ptr<Job> job;
    Gate submitted_gate, destroyed;
    auto workers = bench.workers;
    workers->on_verify = [&](const VerifyJob&, HostCallbacks&, const CancelToken&) -> Result<void> {
      expect(submitted_gate.wait());
      expect(job->wait().error().code == ErrorCode::state);
      job.reset();
      destroyed.open();
      return {};
    };
    std::weak_ptr<Context> watched = bench.context;
    job = submitted(bench, request_of(bench));
    bench.context.reset();
    submitted_gate.open();
    REQUIRE(destroyed.wait());
    for (int wait = 0; wait < 2000 && !watched.expired(); ++wait) std::this_thread::sleep_for(5ms);
    CHECK(watched.expired());
  }
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("job: a callback may submit another; hundreds are cancelled by destroying them in any order") {
  Bench bench;
  std::unique_ptr<Job> inner;
  bench.workers->on_verify = [&](const VerifyJob&, HostCallbacks&, const CancelToken&) -> Result<void> {
    if (!inner) inner = submitted(bench, request_of(bench));
    return {};
  };
  const auto outer = submitted(bench, request_of(bench));
  CHECK(outer->wait().value());
  REQUIRE(inner);
  CHECK(inner->wait().value());
  CHECK(inner->take());
  std::vector<std::unique_ptr<Job>> jobs;
  for (int i = 0; i < 300; ++i) jobs.push_back(submitted(bench, request_of(bench)));
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[(i * 7) % jobs.size()].reset();
  CHECK(g_wrong.exchange(0) == 0);
}

TEST_CASE("job: a Python reference that does not end is killed when the job is cancelled") {
  Bench bench;
  std::string script = (std::filesystem::temp_directory_path() / "ptxbench-jobs-XXXXXX").string();
  const int fd = ::mkstemp(script.data());
  REQUIRE(fd >= 0);
  ::close(fd);
  std::ofstream(script) << "#!/bin/sh\nexec sleep 1000\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  Definition definition = *bench.workload.definition;
  definition.reference = "def run():\n    pass\n";
  bench.workload.definition = make_definition(std::move(definition)).value();
  bench.judging.reference = PythonReference{script, false, 900'000'000'000};
  Gate asked;
  bench.workers->on_verify = [&](const VerifyJob& job, HostCallbacks& callbacks,
                                 const CancelToken&) -> Result<void> {
    std::vector<float> data(256);
    HostTensor y{"y", DType::float32, {256}, data.data(), 1024};
    asked.open();
    return callbacks.compute(job.workload, {}, {&y, 1});
  };
  const auto job = submitted(bench, request_of(bench));
  REQUIRE(asked.wait());
  CHECK_FALSE(job->wait(100'000'000).value());
  job->cancel();
  CHECK(job->wait(20'000'000'000).value());
  CHECK(job->take().error().code == ErrorCode::cancelled);
  std::filesystem::remove(script);
  CHECK(g_wrong.exchange(0) == 0);
}
