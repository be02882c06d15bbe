// Faults that kill a context: each runs in a process of its own, as it does in a worker.
#include "support/gpu.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

extern char** environ;

using namespace ptxbench;
using namespace ptxbench::testing;
using Kind = DeviceFault::Kind;

namespace {

constexpr const char* kKernels = R"cuda(
extern "C" __global__ void store(unsigned long long address) { *(volatile int*)address = 1; }
extern "C" __global__ void trap() { asm volatile("trap;"); }
extern "C" __global__ void endless(volatile int* flag) { while (*flag == 0) {} }
extern "C" __global__ void fine(int* out) { *out = 1; }
)cuda";

// Runs the fault `name` in this process and checks what the device makes of it.
void child(const std::string& name) {
  const auto device = gpu_or_skip();
  REQUIRE(device);
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer word = device->allocate(64).value();
  REQUIRE(device->fill(word.address, 0, 4, 16));
  Parameters parameters;
  Kind expected = Kind::other;
  int code = 0;
  const char* kernel = "store";
  std::uint64_t deadline = 10'000'000'000;
  if (name == "illegal_address") {
    parameters.add(std::uint64_t{0x10});
    expected = Kind::illegal_address;
    code = 700;
  } else if (name == "misaligned") {
    parameters.add(word.address + 2);
    expected = Kind::misaligned;
    code = 716;
  } else if (name == "trap") {
    kernel = "trap";
    expected = Kind::trap;
    code = 719;
  } else {
    REQUIRE(name == "endless");
    kernel = "endless";
    parameters.add(word.address);
    expected = Kind::timeout;
    deadline = 500'000'000;
  }
  REQUIRE_FALSE(*device->launch(launch_of(module, kernel, parameters)));
  const auto outcome = device->synchronize(deadline);
  REQUIRE(outcome);
  REQUIRE(*outcome);
  CHECK((*outcome)->kind == expected);
  CHECK((*outcome)->sticky);
  if (code != 0) CHECK((*outcome)->code == code);
  CHECK_FALSE((*outcome)->name.empty());
  WARN(name << ": " << (*outcome)->name << ", " << (*outcome)->message);
  // The device is lost: launches say why, everything else is an error, and nothing hangs.
  const Parameters fine = Parameters().add(word.address);
  const auto again = device->launch(launch_of(module, "fine", fine));
  REQUIRE(again);
  REQUIRE(*again);
  CHECK((*again)->kind == expected);
  CHECK((*device->synchronize(1000))->kind == expected);
  CHECK(device->allocate(64).error().code == ErrorCode::driver);
  CHECK(device->load({}).error().code == ErrorCode::driver);
  CHECK(device->close_gate().error().code == ErrorCode::driver);
  std::uint8_t byte = 0;
  CHECK(device->read(word.address, {&byte, 1}).error().code == ErrorCode::driver);
  device->release(word);
  device->unload(module);
}

int run_child(const std::string& name) {
  std::vector<char*> environment;
  for (char** e = environ; *e != nullptr; ++e) environment.push_back(*e);
  std::string variable = "PTXBENCH_GPU_FAULT=" + name;
  environment.push_back(variable.data());
  environment.push_back(nullptr);
  char program[] = "/proc/self/exe";
  char test[] = "gpu fault child";
  char* arguments[] = {program, test, nullptr};
  pid_t pid = 0;
  // NOT through a shell, and /proc/self/exe must be resolved here and not in the child.
  char path[4096] = {};
  REQUIRE(::readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
  REQUIRE(::posix_spawn(&pid, path, nullptr, nullptr, arguments, environment.data()) == 0);
  int status = 0;
  for (int waited = 0; waited < 600; ++waited) {
    if (::waitpid(pid, &status, WNOHANG) == pid)
      return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, &status, 0);
  return -SIGKILL;
}

}  // namespace

TEST_CASE("gpu fault child") {
  if (const char* name = std::getenv("PTXBENCH_GPU_FAULT")) child(name);
}

TEST_CASE("gpu: faults are told by their kind, the device is lost with them, and others go on") {
  if (std::getenv("PTXBENCH_GPU_FAULT") != nullptr) return;
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer word = device->allocate(64).value();
  const Parameters parameters = Parameters().add(word.address);
  for (const char* name : {"illegal_address", "misaligned", "trap", "endless"}) {
    INFO(name);
    CHECK(run_child(name) == 0);
    REQUIRE(device->fill(word.address, 0, 4, 16));
    run(*device, launch_of(module, "fine", parameters));
    CHECK(read_back<int>(*device, word.address, 1)[0] == 1);
  }
}
