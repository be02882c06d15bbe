#include "compile/ptxas.hpp"

#include "core/temporary_folder.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>

extern char** environ;

namespace ptxbench {
namespace {

using Clock = std::chrono::steady_clock;

std::string read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream buffer;
  buffer << in.rdbuf();
  return std::move(buffer).str();
}

struct Ended {
  bool in_time = true;
  int status = -1;  // of waitpid; -1 where the kernel did not keep it (a host that ignores SIGCHLD)
};

// Waits without a signal handler and without waiting for other children.
Ended wait_for(pid_t pid, Clock::time_point deadline) {
  Ended ended;
#ifdef SYS_pidfd_open
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
#else
  const int pidfd = -1;
#endif
  for (;;) {
    int status = 0;
    const pid_t got = ::waitpid(pid, &status, WNOHANG);
    if (got == pid) {
      ended.status = status;
      break;
    }
    if (got < 0 && errno != EINTR) break;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      ended.in_time = false;
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
      break;
    }
    constexpr long long kSliceMs = 10;  // where there is no pidfd
    pollfd waiting{pidfd, POLLIN, 0};
    ::poll(pidfd >= 0 ? &waiting : nullptr, pidfd >= 0 ? 1 : 0,
           static_cast<int>(std::min<long long>(left + 1, pidfd >= 0 ? 60'000 : kSliceMs)));
  }
  if (pidfd >= 0) ::close(pidfd);
  return ended;
}

Result<Ended> run(const std::string& path, const std::vector<std::string>& arguments, const std::string& log,
                  Clock::time_point deadline) {
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, path.c_str(), &actions, &attributes, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    return make_error(ErrorCode::toolkit,
                      "ptxas at " + path + " cannot be started: " + std::strerror(failed));
  return wait_for(pid, deadline);
}

}  // namespace

Result<PtxasOutput> run_ptxas(const std::string& path, std::string_view ptx,
                              const std::vector<std::string>& options, Clock::time_point deadline) {
  PTXBENCH_TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make("ptxas"));
  const std::string input = folder.file("input.ptx"), output = folder.file("output.cubin"),
                    log = folder.file("log");
  {
    std::ofstream out(input, std::ios::binary);
    out.write(ptx.data(), static_cast<std::streamsize>(ptx.size()));
    if (!out.flush()) return make_error(ErrorCode::io, "cannot write " + input);
  }
  std::vector<std::string> arguments = options;
  arguments.insert(arguments.end(), {"-o", output, input});
  PTXBENCH_TRY_ASSIGN(const Ended ended, run(path, arguments, log, deadline));

  PtxasOutput out;
  out.log = read_all(log);
  for (std::size_t at = out.log.find(input); at != std::string::npos; at = out.log.find(input, at))
    out.log.replace(at, input.size(), "ptx input");
  const std::string cubin = read_all(output);
  out.cubin.assign(cubin.begin(), cubin.end());
  const bool complained = out.log.find("ptxas fatal") != std::string::npos ||
                          out.log.find("; error ") != std::string::npos ||
                          out.log.find("ptxas error") != std::string::npos;
  if (!ended.in_time) {
    out.state = PtxasOutput::State::timed_out;
  } else if (ended.status != -1 && WIFSIGNALED(ended.status)) {
    out.state = PtxasOutput::State::crashed;
    out.log += "ptxas was killed by signal " + std::to_string(WTERMSIG(ended.status)) + "\n";
  } else if (!out.cubin.empty() && !complained && (ended.status == -1 || WEXITSTATUS(ended.status) == 0)) {
    out.state = PtxasOutput::State::assembled;
  } else {
    out.state = PtxasOutput::State::failed;
    // A program that cannot be loaded says so before it reads anything.
    if (!complained && ended.status != -1 && WEXITSTATUS(ended.status) == 127)
      return make_error(ErrorCode::toolkit, "ptxas at " + path + " cannot be run: " + out.log);
  }
  if (out.state != PtxasOutput::State::assembled) out.cubin.clear();
  return out;
}

Result<std::string> ptxas_version(const std::string& path) {
  PTXBENCH_TRY_ASSIGN(const TemporaryFolder folder, TemporaryFolder::make("ptxas"));
  const std::string log = folder.file("log");
  PTXBENCH_TRY_ASSIGN(const Ended ended,
                      run(path, {"--version"}, log, Clock::now() + std::chrono::seconds(10)));
  const std::string text = read_all(log);
  const std::size_t at = text.find(", V");
  if (!ended.in_time || at == std::string::npos)
    return make_error(ErrorCode::toolkit,
                      "ptxas at " + path + " does not tell its version: " + text.substr(0, 200));
  const std::size_t end = std::min(text.find_first_not_of("0123456789.", at + 3), text.size());
  return text.substr(at + 3, end - at - 3);
}

}  // namespace ptxbench
