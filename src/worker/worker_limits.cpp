#include "worker/worker_main.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ptxbench {
namespace {

// Of the process, set once before the first job; the handlers below have nothing else to go by.
std::uint64_t g_start_bytes = 0;
std::uint64_t g_limit_bytes = 0;

// Writable private memory of this process. Async-signal-safe.
std::uint64_t data_bytes() noexcept {
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[256];
  const ssize_t n = ::read(fd, text, sizeof text - 1);
  ::close(fd);
  if (n <= 0) return 0;
  text[n] = '\0';
  const char* p = text;
  for (int column = 0; column < 5; ++column) {  // the sixth number: data and stack, in pages
    while (*p != '\0' && *p != ' ') ++p;
    while (*p == ' ') ++p;
  }
  std::uint64_t pages = 0;
  for (; *p >= '0' && *p <= '9'; ++p) pages = pages * 10 + static_cast<std::uint64_t>(*p - '0');
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void write_note() noexcept {
  [[maybe_unused]] ssize_t ignored = ::write(2, kWorkerMemoryNote.data(), kWorkerMemoryNote.size());
  ignored = ::write(2, "\n", 1);
}

[[noreturn]] void out_of_memory() {
  write_note();
  ::_exit(kWorkerExitMemory);
}

// A compiler that does not check an allocation crashes on it: tell that apart from other crashes.
void on_crash(int signal) {
  constexpr std::uint64_t kMargin = std::uint64_t{64} << 20;
  if (g_limit_bytes != 0 &&
      data_bytes() + std::min(kMargin, g_limit_bytes / 8) >= g_start_bytes + g_limit_bytes)
    write_note();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void set_limit(decltype(RLIMIT_CORE) which, std::uint64_t bytes) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0) return;
  if (limit.rlim_max != RLIM_INFINITY) bytes = std::min<std::uint64_t>(bytes, limit.rlim_max);
  limit.rlim_cur = bytes;
  limit.rlim_max = bytes;
  ::setrlimit(which, &limit);
}

}  // namespace

void apply_worker_limits(const WorkerArguments& arguments) {
  // 1 and not 0: it is too small for a file, and the value at which the kernel starts no handler either,
  // where core_pattern is a pipe.
  set_limit(RLIMIT_CORE, 1);
  // NVRTC raises the soft limit to the hard one, which mostly is unlimited, and recurses: deeply nested text
  // would take all memory by the stack, which RLIMIT_DATA does not count. 64 MiB are eight times the usual
  // limit.
  rlimit stack{};
  if (::getrlimit(RLIMIT_STACK, &stack) == 0) {
    constexpr rlim_t kMostStack = rlim_t{64} << 20;
    stack.rlim_max = std::min(stack.rlim_max, kMostStack);  // RLIM_INFINITY is the largest value
    stack.rlim_cur = std::min(stack.rlim_cur, stack.rlim_max);
    ::setrlimit(RLIMIT_STACK, &stack);
  }
  // Where memory is short, the kernel should take this process and not its host.
  if (const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); fd >= 0) {
    [[maybe_unused]] const ssize_t ignored = ::write(fd, "800", 3);
    ::close(fd);
  }
  if (arguments.file_limit_bytes != 0) {
    ::signal(SIGXFSZ, SIG_IGN);  // a write past the limit fails instead
    set_limit(RLIMIT_FSIZE, arguments.file_limit_bytes);
  }

  // On a stack of its own, for the handler of a stack overflow must run too.
  static char alternate[32 * 1024];
  stack_t place{};
  place.ss_sp = alternate;
  place.ss_size = sizeof alternate;
  ::sigaltstack(&place, nullptr);
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGTRAP})
    ::sigaction(signal, &action, nullptr);
  std::set_new_handler(out_of_memory);

  if (arguments.memory_limit_bytes != 0) {
    g_start_bytes = data_bytes();
    g_limit_bytes = arguments.memory_limit_bytes;
    // RLIMIT_DATA counts what is writable and private, as memory that is used; RLIMIT_AS would also count
    // libraries, reserved arenas and a CUDA context's address ranges.
    set_limit(RLIMIT_DATA, g_start_bytes + g_limit_bytes);
  }
}

bool worker_has_grown() noexcept {
  return g_limit_bytes != 0 && data_bytes() > g_start_bytes + g_limit_bytes / 4;
}

}  // namespace ptxbench
