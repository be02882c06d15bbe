#include "worker/worker_main.hpp"

#include "core/channel.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>

namespace ptxbench {
namespace {

// Answers of the host while a stage runs.
class HostOverChannel final : public StageHost {
 public:
  explicit HostOverChannel(Channel& channel) : channel_(channel) {}

  Result<void> progress(const Message& message, std::span<const int> files) override {
    return sent(channel_.send(FrameKind::progress, message, files, {}));
  }

  Result<Parcel> ask(const Message& message, std::span<const int> files) override {
    PTXBENCH_TRY(sent(channel_.send(FrameKind::ask, message, files, {})));
    Frame frame;
    PTXBENCH_TRY(sent(channel_.receive(frame, {})));
    if (frame.kind == FrameKind::error) return error_from(frame.message);
    if (frame.kind != FrameKind::answer) {
      lost_ = true;
      return make_error(ErrorCode::internal, "the host sent something else than an answer");
    }
    return Parcel(std::move(frame.message), std::move(frame.files));
  }

  bool lost() const { return lost_; }

 private:
  Result<void> sent(ChannelStatus status) {
    if (status == ChannelStatus::ok) return {};
    lost_ = true;
    return make_error(ErrorCode::internal, "the host cannot be reached: " + channel_.problem());
  }

  Channel& channel_;
  bool lost_ = false;
};

std::vector<int> numbers(const std::vector<UniqueFd>& files) {
  std::vector<int> result;
  for (const UniqueFd& file : files) result.push_back(file.get());
  return result;
}

// The process that made the other end of the socket, as a pidfd. It is the host if it is this process's
// parent still, whichever of its threads did it and whether or not that thread lives. -1 where that cannot be
// told.
int host_pidfd(int fd) {
  ucred host{};
  socklen_t size = sizeof host;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &host, &size) != 0 || host.pid <= 0) return -1;
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, host.pid, 0));
  if (pidfd >= 0 && ::getppid() != host.pid) {
    ::close(pidfd);
    return -1;
  }
  return pidfd;
}

// Ends the process group when the socket closes, or when the host has ended while something else (a forked
// copy of it) keeps the socket open.
[[noreturn]] void watch(int fd, int host) {
  std::array<pollfd, 2> fds{{{fd, POLLRDHUP, 0}, {host, POLLIN, 0}}};
  for (;;) {
    const int n = ::poll(fds.data(), host >= 0 ? 2 : 1, -1);
    if (n < 0 && errno == EINTR) continue;
    if (::getpgrp() == ::getpid()) ::kill(0, SIGKILL);
    ::_exit(1);
  }
}

bool serve(Channel& channel, const StageTable& stages) {
  Frame frame;
  if (channel.receive(frame, {}) != ChannelStatus::ok || frame.kind != FrameKind::job) return false;
  if (channel.send(FrameKind::accepted, {"accepted", "{}", {}}, {}, {}) != ChannelStatus::ok) return false;
  const auto stage = stages.find(frame.message.type);
  HostOverChannel host(channel);
  Parcel job(std::move(frame.message), std::move(frame.files));
  auto result = [&]() -> Result<Parcel> {
    if (stage == stages.end())
      return make_error(ErrorCode::internal, "this worker knows no job \"" + job.message.type + "\"");
    return stage->second(job, host);
  }();
  std::fflush(nullptr);
  if (host.lost()) return false;
  if (!result) return channel.send(FrameKind::error, to_message(result.error()), {}, {}) == ChannelStatus::ok;
  const std::vector<int> files = numbers(result->files);
  return channel.send(FrameKind::reply, result->message, files, {}) == ChannelStatus::ok;
}

bool is_our_socket(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

}  // namespace

int worker_main(int fd, const StageTable& stages, const std::function<void()>& before_hello) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);  // not for the compilers that stages start
  if (::getpgrp() != ::getpid()) ::setpgid(0, 0);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  try {
    std::thread(watch, fd, host_pidfd(fd)).detach();
    if (before_hello) before_hello();
    std::vector<std::string> names;
    for (const auto& [name, stage] : stages) names.push_back(name);
    Channel channel{UniqueFd(fd)};
    if (channel.send(FrameKind::hello, to_message(own_hello(std::move(names))), {}, {}) != ChannelStatus::ok)
      return 0;
    while (serve(channel, stages)) {
      // What compilers leak would otherwise be held against a later candidate. The host starts another.
      if (worker_has_grown()) return 0;
    }
    // The host has gone, or what it said makes no sense.
    pollfd hangup{channel.fd(), POLLRDHUP, 0};
    return ::poll(&hangup, 1, 0) > 0 ? 0 : kWorkerExitProtocol;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ptxbench-worker: %s\n", e.what());
  } catch (...) {
    std::fprintf(stderr, "ptxbench-worker: unknown exception\n");
  }
  std::fflush(nullptr);
  std::abort();
}

int worker_program(int argc, char** argv, const StageTable& stages, const WarmUp& warm_up) {
  WorkerArguments arguments;
  if (!parse_command_line(argc, argv, arguments) || !is_our_socket(kWorkerSocketFd)) {
    std::string names;
    for (const auto& [name, stage] : stages) names += (names.empty() ? "" : ", ") + name;
    const std::string version(version_string()), build(build_id());
    std::fprintf(stderr,
                 "ptxbench-worker %s (protocol %d, build %s)\n"
                 "This is the process in which the ptxbench library compiles and runs candidates; the "
                 "library starts it.\n"
                 "There is nothing to do with it by hand. Jobs that it takes: %s\n",
                 version.c_str(), kWorkerProtocol, build.c_str(), names.empty() ? "none" : names.c_str());
    return kWorkerExitByHand;
  }
  apply_worker_limits(arguments);
  const int status = worker_main(kWorkerSocketFd, stages, [&] {
    if (warm_up && arguments.warm) warm_up(*arguments.warm);
  });
  std::fflush(nullptr);
  ::_exit(status);  // no exit handlers of compilers and drivers, which may hang
}

}  // namespace ptxbench
