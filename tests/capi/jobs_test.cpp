// Jobs and lists of requests through the C surface, on the emulator: descriptors, results, cancellation,
// ends.
#include "copy_case.hpp"
#include "support/processes.hpp"

#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

using namespace testing;

namespace {

constexpr const char* kRight = "for (int i = 0; i < 1000; ++i) y[i] = x[i];";
constexpr const char* kWrong = "for (int i = 0; i < 1000; ++i) y[i] = x[i] + 1;";
// It writes: an emulator knows a loop that waits for what nobody writes for a deadlock.
constexpr const char* kEndless = "for (unsigned i = 0;; ++i) *(volatile unsigned*)y = i;";
// A short loop that NVRTC unrolls for minutes (as it stands in JSON).
constexpr const char* kSlowToCompile =
    R"(float a = x[0]; _Pragma(\"unroll\") for (int i = 0; i < 1024; ++i))"
    R"( _Pragma(\"unroll\") for (int j = 0; j < 1024; ++j) a = a * x[i ^ j] + x[i + j]; y[0] = a;)";
constexpr const char* kOptions =
    R"({"trials": 1, "schedules": 0, "small_sm_count": 0, "stages": ["verify"]})";

struct Judging {
  ptxbench_judging* handle = nullptr;
  std::atomic<int> computed{0}, destroyed{0};
  std::atomic<std::thread::id> thread{};

  Judging() {
    REQUIRE(ptxbench_judging_create(&handle, nullptr) == PTXBENCH_OK);
    ptxbench_reference reference = {};
    reference.struct_size = sizeof reference;
    reference.userdata = this;
    reference.compute = [](void* self, const char*, size_t, const void* const* in,
                           void* const* out) -> int32_t {
      auto& judging = *static_cast<Judging*>(self);
      ++judging.computed;
      judging.thread = std::this_thread::get_id();
      std::memcpy(out[0], in[0], 4000);
      return 0;
    };
    reference.destroy = [](void* self) { ++static_cast<Judging*>(self)->destroyed; };
    REQUIRE(ptxbench_judging_set_reference(handle, &reference, nullptr) == PTXBENCH_OK);
    REQUIRE(ptxbench_judging_set_baseline_ns(handle, 0, nullptr) == PTXBENCH_OK);
  }
  ~Judging() { ptxbench_judging_free(handle); }
};

ptxbench_job* start(const Handles& handles, const char* body, const ptxbench_judging* judging) {
  ptxbench_solution* candidate = parse(solution(body));
  ptxbench_job* job = nullptr;
  ptxbench_error* error = nullptr;
  const ptxbench_workload* workloads[] = {handles.workload};
  const ptxbench_status status = ptxbench_job_start(&job, handles.context, candidate, workloads, 1, judging,
                                                    kOptions, PTXBENCH_LEN_AUTO, &error);
  INFO(ptxbench_error_message(error));
  REQUIRE(status == PTXBENCH_OK);
  ptxbench_solution_free(candidate);  // the job has its share
  return job;
}

ptxbench_verdict_status status_of(ptxbench_job* job) {
  ptxbench_evaluation* evaluation = nullptr;
  ptxbench_error* error = nullptr;
  const ptxbench_status status = ptxbench_job_take(&evaluation, job, &error);
  INFO(ptxbench_error_message(error));
  REQUIRE(status == PTXBENCH_OK);
  const ptxbench_verdict_status verdict = ptxbench_evaluation_status(evaluation);
  ptxbench_evaluation_free(evaluation);
  return verdict;
}

// Generous: where cancelling did nothing it would take minutes.
constexpr std::uint64_t kSoon = 20'000'000'000;

}  // namespace

TEST_CASE("capi: jobs finish with verdicts, poll(2) sees it, callbacks run on one thread of the library") {
  Judging judging;
  {
    const Handles handles("emulator:h200");
    ptxbench_job* jobs[] = {start(handles, kRight, judging.handle), start(handles, kWrong, judging.handle),
                            start(handles, "y[0] = z;", judging.handle)};
    std::vector<pollfd> fds;
    for (ptxbench_job* job : jobs) fds.push_back({ptxbench_job_fd(job), POLLIN, 0});
    for (int left = 3; left > 0;) {
      REQUIRE(::poll(fds.data(), fds.size(), 120'000) > 0);
      for (pollfd& fd : fds)
        if (fd.revents != 0) {
          fd.fd = -1;
          --left;
        }
    }
    for (ptxbench_job* job : jobs) CHECK(ptxbench_job_poll(job) == PTXBENCH_JOB_FINISHED);
    CHECK(status_of(jobs[0]) == PTXBENCH_PASSED);
    CHECK(status_of(jobs[1]) == PTXBENCH_INCORRECT_NUMERICAL);
    CHECK(status_of(jobs[2]) == PTXBENCH_COMPILE_ERROR);
    CHECK(ptxbench_job_poll(jobs[0]) == PTXBENCH_JOB_TAKEN);
    ptxbench_evaluation* again = nullptr;
    CHECK(ptxbench_job_take(&again, jobs[0], nullptr) == PTXBENCH_E_STATE);
    CHECK(again == nullptr);
    CHECK(judging.computed == 2);
    CHECK(judging.thread.load() != std::this_thread::get_id());
    ptxbench_judging_free(judging.handle);
    judging.handle = nullptr;
    CHECK(judging.destroyed == 0);  // the jobs have their shares
    for (ptxbench_job* job : jobs) ptxbench_job_free(job);
    CHECK(judging.destroyed == 1);
  }
  CHECK(eventually([] { return children_of(::getpid()).empty(); }));
}

TEST_CASE(
    "capi: a compilation of minutes and a run without end are cancelled, and the next candidate passes") {
  Judging judging;
  {
    const Handles handles("emulator:h200");
    for (const char* body : {kSlowToCompile, kEndless}) {
      ptxbench_job* job = start(handles, body, judging.handle);
      CHECK(ptxbench_job_wait(job, 1'000'000'000) == PTXBENCH_E_BUSY);
      CHECK(ptxbench_job_poll(job) == PTXBENCH_JOB_RUNNING);
      ptxbench_evaluation* evaluation = nullptr;
      CHECK(ptxbench_job_take(&evaluation, job, nullptr) == PTXBENCH_E_BUSY);
      ptxbench_job_cancel(job);
      CHECK(ptxbench_job_wait(job, kSoon) == PTXBENCH_OK);
      CHECK(ptxbench_job_take(&evaluation, job, nullptr) == PTXBENCH_E_CANCELLED);
      CHECK(evaluation == nullptr);
      ptxbench_job_free(job);
      job = start(handles, kRight, judging.handle);
      CHECK(ptxbench_job_wait(job, UINT64_MAX) == PTXBENCH_OK);
      CHECK(status_of(job) == PTXBENCH_PASSED);
      ptxbench_job_free(job);
    }
  }
  CHECK(eventually([] { return children_of(::getpid()).empty(); }));
}

TEST_CASE("capi: freeing jobs and context while candidates compile and run leaves nothing behind") {
  Judging judging;
  ptxbench_job* running = nullptr;
  ptxbench_job* compiling = nullptr;
  {
    const Handles handles("emulator:h200");
    running = start(handles, kEndless, judging.handle);
    compiling = start(handles, kSlowToCompile, judging.handle);
    CHECK(ptxbench_job_wait(running, 500'000'000) == PTXBENCH_E_BUSY);
  }  // the context's handle is gone, the jobs go on
  CHECK(ptxbench_job_poll(running) == PTXBENCH_JOB_RUNNING);
  const auto begin = std::chrono::steady_clock::now();
  ptxbench_job_free(compiling);
  ptxbench_job_free(running);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(20));
  CHECK(eventually([] { return children_of(::getpid()).empty(); }));
}

TEST_CASE("capi: many requests at once, each with its own result or error") {
  Judging judging;
  const Handles handles("emulator:h200");
  ptxbench_solution* right = parse(solution(kRight));
  ptxbench_solution* wrong = parse(solution(kWrong));
  const ptxbench_workload* workloads[] = {handles.workload};
  const ptxbench_request good = {sizeof good,    right,    workloads,        1,
                                 judging.handle, kOptions, PTXBENCH_LEN_AUTO};
  ptxbench_request bad = good;
  bad.solution = wrong;
  ptxbench_request broken = good;
  broken.options_json = "{\"trails\": 1}";
  const ptxbench_request* list[] = {&good, &broken, &bad};
  ptxbench_evaluation* out[3];
  ptxbench_error* errors[3];
  REQUIRE(ptxbench_evaluate_many(out, errors, handles.context, list, 3, nullptr, nullptr) == PTXBENCH_OK);
  CHECK(ptxbench_evaluation_status(out[0]) == PTXBENCH_PASSED);
  CHECK(errors[0] == nullptr);
  CHECK(out[1] == nullptr);
  CHECK(ptxbench_error_status(errors[1]) == PTXBENCH_E_PARSE);
  CHECK(ptxbench_evaluation_status(out[2]) == PTXBENCH_INCORRECT_NUMERICAL);
  CHECK(judging.thread.load() == std::this_thread::get_id());
  for (int i = 0; i < 3; ++i) {
    ptxbench_evaluation_free(out[i]);
    ptxbench_error_free(errors[i]);
  }
  broken.struct_size = 0;
  out[0] = reinterpret_cast<ptxbench_evaluation*>(1);
  CHECK(ptxbench_evaluate_many(out, nullptr, handles.context, list, 3, nullptr, nullptr) ==
        PTXBENCH_E_INVALID_ARGUMENT);
  CHECK(out[0] == nullptr);
  CHECK(ptxbench_evaluate_many(nullptr, nullptr, handles.context, nullptr, 0, nullptr, nullptr) ==
        PTXBENCH_OK);
  ptxbench_solution_free(right);
  ptxbench_solution_free(wrong);
}

TEST_CASE("capi: timing hooks are kept by the judging and destroyed once") {
  static int destroyed;
  destroyed = 0;
  ptxbench_judging* judging = nullptr;
  REQUIRE(ptxbench_judging_create(&judging, nullptr) == PTXBENCH_OK);
  ptxbench_timing_hooks hooks = {sizeof hooks, nullptr, nullptr, nullptr, [](void*) { ++destroyed; }};
  CHECK(ptxbench_judging_set_timing_hooks(judging, &hooks, nullptr) == PTXBENCH_OK);
  CHECK(destroyed == 0);
  CHECK(ptxbench_judging_set_timing_hooks(nullptr, &hooks, nullptr) == PTXBENCH_E_INVALID_ARGUMENT);
  CHECK(destroyed == 1);
  ptxbench_judging_free(judging);
  CHECK(destroyed == 2);
}
