// Turns in timing between processes: cancellable, ended by the end of the holder, never two at once.
#include "worker/gpu_lock.hpp"

#include "stub_case.hpp"
#include "support/processes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <thread>

using namespace testing;
using namespace std::chrono_literals;

namespace {

constexpr const char* kDevice = "cuda:GPU-0000-1111";

// Another program that holds the lock until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& dir) {
    std::fflush(nullptr);
    pipe_ = ::popen((std::string(PTXBENCH_TEST_LOCK_HOLDER) + " " + dir + " " + kDevice).c_str(), "r");
    REQUIRE(pipe_ != nullptr);
    REQUIRE(std::fscanf(pipe_, "%d", &pid_) == 1);
  }
  ~Holder() { end(); }
  void end() {
    if (pipe_ == nullptr) return;
    ::kill(pid_, SIGKILL);
    ::pclose(pipe_);
    pipe_ = nullptr;
  }

 private:
  std::FILE* pipe_ = nullptr;
  int pid_ = 0;
};

}  // namespace

TEST_CASE("gpu lock: another process's keeps this one waiting, cancellably; its end by SIGKILL frees it") {
  const TestFolder folder;
  Holder holder(folder.path());
  const CancelToken cancel;
  std::thread soon([&] {
    std::this_thread::sleep_for(50ms);
    cancel.trigger();
  });
  const auto waited = GpuLock::take(folder.path(), kDevice, cancel);
  soon.join();
  REQUIRE_FALSE(waited);
  CHECK(waited.error().code == ErrorCode::cancelled);
  CHECK(GpuLock::take(folder.path(), "cuda:GPU-2222", {}));  // another GPU's is free
  holder.end();
  CHECK(GpuLock::take(folder.path(), kDevice, {}));
}

TEST_CASE("gpu lock: two holders in one process exclude each other; a file that is removed excludes nobody") {
  const TestFolder folder;
  auto first = GpuLock::take(folder.path() + "/made/here", kDevice, {});
  REQUIRE(first);
  const CancelToken cancel;
  cancel.trigger();
  CHECK(GpuLock::take(folder.path() + "/made/here", kDevice, cancel).error().code == ErrorCode::cancelled);
  *first = GpuLock();
  CHECK(GpuLock::take(folder.path() + "/made/here", kDevice, cancel));  // free: taken at once
  auto second = GpuLock::take(folder.path(), kDevice, {});
  REQUIRE(second);
  REQUIRE(::unlink(GpuLock::path_of(folder.path(), kDevice).c_str()) == 0);
  CHECK(GpuLock::take(folder.path(), kDevice, cancel));
}

TEST_CASE(
    "gpu lock: a folder that cannot be made is an Error that names the option; names stay inside the "
    "folder") {
  const auto no = GpuLock::take("/proc/no/such", kDevice, {});
  REQUIRE_FALSE(no);
  CHECK(no.error().code == ErrorCode::io);
  CHECK(no.error().message.find("lock_dir") != std::string::npos);
  CHECK(GpuLock::path_of("/d", "cuda:../../x") == "/d/______x.lock");
}

TEST_CASE(
    "gpu lock: timings of two contexts on one device never overlap, and wait for other processes "
    "cancellably") {
  StubCase stub;
  stub.options.time = true;
  ContextOptions other = stub.context->options();
  auto second = Context::create(other);
  REQUIRE(second);
  std::vector<std::unique_ptr<Job>> jobs;
  for (int i = 0; i < 20; ++i)
    jobs.push_back(submit(i % 2 == 0 ? stub.context : *second, stub.request("right")).value());
  for (const auto& job : jobs) {
    REQUIRE(job->wait(120'000'000'000).value());
    const auto evaluation = job->take();
    if (!evaluation) FAIL(evaluation.error().to_string());
    CHECK(evaluation->verdicts.at(0).timing.state == Availability::measured);
  }
  const auto device = stub.context->device();
  REQUIRE(device);
  const auto held = GpuLock::take(*stub.context->options().lock_dir, device->id, {});
  REQUIRE(held);
  const auto job = submit(stub.context, stub.request("right")).value();
  CHECK_FALSE(job->wait(200'000'000).value());
  job->cancel();
  CHECK(job->wait(20'000'000'000).value());
  CHECK(job->take().error().code == ErrorCode::cancelled);
}
