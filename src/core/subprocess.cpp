#include "core/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

extern "C" char** environ;

namespace ptxbench {
namespace {

// Numbers newer than the C library that we build against.
constexpr int kIdPidfd = 3;                       // P_PIDFD, Linux 5.4
constexpr unsigned kPidfdSignalProcessGroup = 4;  // PIDFD_SIGNAL_PROCESS_GROUP, Linux 6.9
struct PidfdInfo {                                // struct pidfd_info, first version, Linux 6.13
  std::uint64_t mask = 0;
  std::uint64_t cgroup = 0;
  std::uint32_t ids[11] = {};
  std::int32_t exit_code = 0;  // as from wait(2); Linux 6.15
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kPidfdInfoExit = 1u << 3;

int pidfd_open(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }
int pidfd_send_signal(int pidfd, int signal, unsigned flags) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, flags));
}

// Descriptors that the spawn's dup2 calls would overwrite before they are used (a host may have closed its 0,
// 1 or 2) are moved out of the way.
bool move_up(UniqueFd& fd) {
  constexpr int kClear = 16;
  if (fd.get() >= kClear) return true;
  const int moved = ::fcntl(fd.get(), F_DUPFD_CLOEXEC, kClear);
  if (moved < 0) return false;
  fd.reset(moved);
  return true;
}

std::string system_message(int error) {
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);  // the GNU form, which returns the text
}

Error spawn_error(const SpawnOptions& options, std::string_view step, int error) {
  return make_error(ErrorCode::worker,
                    "cannot start " + options.path + ": " + std::string(step) + ": " + system_message(error));
}

bool names(std::string_view pattern, std::string_view name) {
  if (!pattern.empty() && pattern.back() == '*')
    return name.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern == name;
}

std::vector<std::string> child_environment(const SpawnOptions& options) {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    const auto replaced = [&](const auto& pair) { return pair.first == name; };
    const auto unset = [&](const std::string& pattern) { return names(pattern, name); };
    if (std::none_of(options.set_environment.begin(), options.set_environment.end(), replaced) &&
        std::none_of(options.unset_environment.begin(), options.unset_environment.end(), unset))
      result.emplace_back(text);
  }
  for (const auto& [name, value] : options.set_environment) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& s : strings) result.push_back(s.data());
  result.push_back(nullptr);
  return result;
}

// posix_spawn's two objects with their lifetime; `error` is the first failure.
class SpawnPlan {
 public:
  SpawnPlan() {
    note(::posix_spawn_file_actions_init(&actions));
    note(::posix_spawnattr_init(&attributes));
  }
  ~SpawnPlan() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  void note(int result) {
    if (error == 0) error = result;
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int error = 0;
};

Result<std::string> make_temp_folder(const SpawnOptions& options) {
  std::error_code error;
  const std::filesystem::path base = std::filesystem::temp_directory_path(error);
  std::string pattern = (error ? "/tmp" : base.string()) + "/ptxbench-worker-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) return spawn_error(options, "mkdtemp " + pattern, errno);
  return pattern;
}

int spawn(const SpawnOptions& options, int socket, int output, pid_t* pid) {
  SpawnPlan plan;
  plan.note(::posix_spawn_file_actions_addopen(&plan.actions, 0, "/dev/null", O_RDONLY, 0));
  plan.note(::posix_spawn_file_actions_adddup2(&plan.actions, output, 1));
  plan.note(::posix_spawn_file_actions_adddup2(&plan.actions, output, 2));
  plan.note(::posix_spawn_file_actions_adddup2(&plan.actions, socket, kWorkerSocketFd));
  plan.note(::posix_spawn_file_actions_addclosefrom_np(&plan.actions, kWorkerSocketFd + 1));
  // Dispositions that a host ignores (SIGPIPE, SIGCHLD) and its thread's mask would be inherited through
  // exec.
  sigset_t all, none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  plan.note(::posix_spawnattr_setsigdefault(&plan.attributes, &all));
  plan.note(::posix_spawnattr_setsigmask(&plan.attributes, &none));
  plan.note(::posix_spawnattr_setpgroup(&plan.attributes, 0));
  plan.note(::posix_spawnattr_setflags(
      &plan.attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP));
  if (plan.error != 0) return plan.error;

  std::vector<std::string> arguments{options.path};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = child_environment(options);
  return ::posix_spawn(pid, options.path.c_str(), &plan.actions, &plan.attributes, pointers(arguments).data(),
                       pointers(environment).data());
}

int milliseconds_until(SteadyClock::time_point until) {
  const auto now = SteadyClock::now();
  if (until <= now) return 0;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(until - now).count() + 1;
  return static_cast<int>(std::min<long long>(ms, INT_MAX));
}

ExitStatus from_siginfo(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {ExitStatus::Kind::exited, info.si_status};
  return {ExitStatus::Kind::signalled, info.si_status};
}

// What the kernel keeps for holders of a pidfd after the process was reaped (by ignoring SIGCHLD, or by
// somebody else's wait). It appears a moment after the pidfd became readable.
ExitStatus from_pidfd(int pidfd) {
  for (int attempt = 0; pidfd >= 0 && attempt < 20; ++attempt) {
    PidfdInfo info;
    info.mask = kPidfdInfoExit;
    const bool answered = ::ioctl(pidfd, _IOWR(0xFF, 11, PidfdInfo), &info) == 0;
    if (!answered && errno != ESRCH) break;  // kernel too old
    // Unanswered (the status is not there yet) the mask is still the question's.
    if (answered && (info.mask & kPidfdInfoExit)) {
      if (WIFSIGNALED(info.exit_code)) return {ExitStatus::Kind::signalled, WTERMSIG(info.exit_code)};
      return {ExitStatus::Kind::exited, WEXITSTATUS(info.exit_code)};
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

}  // namespace

std::string ExitStatus::to_string() const {
  switch (kind) {
    case Kind::exited:
      return "exit status " + std::to_string(value);
    case Kind::signalled: {
      const char* name = ::sigabbrev_np(value);
      return "killed by signal " + std::to_string(value) + (name ? " (SIG" + std::string(name) + ")" : "");
    }
    case Kind::unknown:
      break;
  }
  return "ended; its exit status is not known, because this process ignores SIGCHLD or waits for every child";
}

Result<Subprocess> Subprocess::start(const SpawnOptions& options) {
  Subprocess process;
  process.owner_ = ::getpid();
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return spawn_error(options, "socketpair", errno);
  process.socket_.reset(pair[0]);
  UniqueFd theirs(pair[1]);
  process.output_.reset(::memfd_create("ptxbench-worker-output", MFD_CLOEXEC));
  if (!process.output_) return spawn_error(options, "memfd_create", errno);
  // Appending, so that after a truncation by the host the child goes on at the new end.
  if (::fcntl(process.output_.get(), F_SETFL, O_APPEND) != 0 || !move_up(theirs) ||
      !move_up(process.output_) || !move_up(process.socket_))
    return spawn_error(options, "fcntl", errno);

  SpawnOptions own = options;
  if (options.private_temp) {
    PTXBENCH_TRY_ASSIGN(process.temp_, make_temp_folder(options));
    own.set_environment.emplace_back("TMPDIR", process.temp_);
  }
  pid_t pid = -1;
  if (const int error = spawn(own, theirs.get(), process.output_.get(), &pid); error != 0)
    return spawn_error(options, "posix_spawn", error);
  theirs.reset();
  process.pid_ = pid;

  // Where SIGCHLD is ignored, a process that ended by now is gone and its number may belong to another. It
  // held the other end of the socket: as long as that is open, the pidfd is of our process. Where it is
  // closed, the pidfd is good if the kernel calls it a child of ours.
  process.pidfd_.reset(pidfd_open(pid));
  pollfd hangup{process.socket_.get(), POLLRDHUP, 0};
  if (::poll(&hangup, 1, 0) > 0 && process.pidfd_) {
    siginfo_t info{};
    if (::waitid(static_cast<idtype_t>(kIdPidfd), static_cast<id_t>(process.pidfd_.get()), &info,
                 WEXITED | WNOHANG | WNOWAIT) != 0)
      process.pidfd_.reset();
  }
  return process;
}

Subprocess::Subprocess(Subprocess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      owner_(other.owner_),
      reaped_(other.reaped_),
      pidfd_(std::move(other.pidfd_)),
      socket_(std::move(other.socket_)),
      output_(std::move(other.output_)),
      temp_(std::exchange(other.temp_, {})),
      status_(other.status_) {}

Subprocess& Subprocess::operator=(Subprocess&& other) noexcept {
  if (this != &other) {
    end();
    pid_ = std::exchange(other.pid_, -1);
    owner_ = other.owner_;
    reaped_ = other.reaped_;
    pidfd_ = std::move(other.pidfd_);
    socket_ = std::move(other.socket_);
    output_ = std::move(other.output_);
    temp_ = std::exchange(other.temp_, {});
    status_ = other.status_;
  }
  return *this;
}

Subprocess::~Subprocess() { end(); }

bool Subprocess::owned() const noexcept { return owner_ == ::getpid(); }

void Subprocess::end() noexcept {
  if (!owned()) return;
  if (pid_ >= 0 && !status_) {
    kill();
    wait(SteadyClock::now() + std::chrono::seconds(2));
  }
  remove_temp();
}

void Subprocess::remove_temp() noexcept {
  if (temp_.empty()) return;
  try {
    std::error_code ignored;
    std::filesystem::remove_all(temp_, ignored);
  } catch (...) {  // no memory: the folder stays
  }
  temp_.clear();
}

// Sends `signal` to every process of the group, and to nobody else. A pidfd names the group beyond doubt.
// Without that (before Linux 6.9) the number is safe while the leader lives or is a zombie of ours; after
// that it is safe where no process has it as its own number: a new group of that name would need one.
void Subprocess::signal_group(int signal) noexcept {
  if (pidfd_) {
    if (pidfd_send_signal(pidfd_.get(), signal, kPidfdSignalProcessGroup) == 0 || errno == ESRCH) return;
  }
  siginfo_t info{};
  const bool pinned =
      !reaped_ && ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (pinned || (::kill(pid_, 0) != 0 && errno == ESRCH)) ::kill(-pid_, signal);
}

void Subprocess::kill() noexcept {
  if (pid_ < 0 || owner_ != ::getpid() || status_) return;
  signal_group(SIGKILL);
  if (pidfd_) pidfd_send_signal(pidfd_.get(), SIGKILL, 0);  // had it left its group
}

bool Subprocess::ended(SteadyClock::time_point until) noexcept {
  if (pidfd_) {
    for (;;) {
      pollfd p{pidfd_.get(), POLLIN, 0};
      const int n = ::poll(&p, 1, milliseconds_until(until));
      if (n > 0) return true;
      if (n == 0 && SteadyClock::now() >= until) return false;
      if (n < 0 && errno != EINTR) return false;
    }
  }
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
      if (errno != EINTR) return true;  // ECHILD: gone
    } else if (info.si_pid == pid_) {
      return true;
    }
    if (SteadyClock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

std::optional<ExitStatus> Subprocess::wait(SteadyClock::time_point until) noexcept {
  if (status_ || pid_ < 0 || owner_ != ::getpid()) return status_;
  if (!ended(until)) return std::nullopt;
  settle();
  return status_;
}

// The process has ended: note how, end its children, reap.
void Subprocess::settle() noexcept {
  siginfo_t info{};
  const auto peek = [&] {
    return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  };
  status_ = peek() ? from_siginfo(info) : from_pidfd(pidfd_.get());
  signal_group(SIGKILL);
  // The group's members that are children of this process: the worker, and where this process is a
  // container's init or a subreaper, the worker's orphans. Only those, so this takes no child of the host's
  // own. The orphans were sent SIGKILL; the bound is for one that is stuck in the kernel.
  const auto give_up = SteadyClock::now() + std::chrono::milliseconds(500);
  for (;;) {
    info = {};
    if (::waitid(P_PGID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG) != 0) {
      if (errno == EINTR) continue;
      break;  // ECHILD: none left
    }
    if (info.si_pid != 0) continue;
    if (SteadyClock::now() >= give_up) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  reaped_ = true;
  remove_temp();
}

std::uint64_t Subprocess::output_bytes() const noexcept {
  struct stat s {};
  return output_ && ::fstat(output_.get(), &s) == 0 ? static_cast<std::uint64_t>(s.st_size) : 0;
}

std::string Subprocess::output_tail(std::size_t max_bytes) const {
  const std::uint64_t size = output_bytes();
  const std::uint64_t cut = size > max_bytes ? size - max_bytes : 0;
  std::string bytes(static_cast<std::size_t>(size - cut), '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n =
        ::pread(output_.get(), bytes.data() + got, bytes.size() - got, static_cast<off_t>(cut + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  bytes.resize(got);
  std::string text = printable_text(bytes);
  return cut == 0 ? text : "[" + std::to_string(cut) + " bytes cut]\n" + text;
}

void Subprocess::clear_output() noexcept {
  if (output_ && output_bytes() > 0) [[maybe_unused]]
    const int ignored = ::ftruncate(output_.get(), 0);
}

Graveyard::~Graveyard() {
  const auto until = SteadyClock::now() + std::chrono::seconds(2);
  for (Subprocess& process : dying_) process.wait(until);
}

void Graveyard::bury(Subprocess process) noexcept {
  process.kill();
  if (process.poll()) return collect();
  try {
    const std::lock_guard lock(mutex_);
    dying_.push_back(std::move(process));
  } catch (...) {  // no memory: `process` waits for its end as it goes out of scope
  }
  collect();
}

void Graveyard::collect() noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(dying_, [](Subprocess& process) { return process.poll().has_value(); });
}

std::size_t Graveyard::size() const noexcept {
  const std::lock_guard lock(mutex_);
  return dying_.size();
}

std::string printable_text(std::string_view bytes) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    if (lead < 0x80) {
      if (lead >= 0x20 && lead != 0x7F)
        text += bytes[i];
      else if (lead == '\n' || lead == '\t')
        text += bytes[i];
      else if (lead != '\r')
        text += kReplacement;
      ++i;
      continue;
    }
    const std::size_t length = lead >= 0xF0 && lead <= 0xF4  ? 4
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                                                             : 0;
    std::uint32_t code = length == 4 ? lead & 7u : length == 3 ? lead & 15u : lead & 31u;
    bool good = length != 0 && i + length <= bytes.size();
    for (std::size_t k = 1; good && k < length; ++k) {
      const auto byte = static_cast<unsigned char>(bytes[i + k]);
      good = (byte & 0xC0u) == 0x80u;
      code = code << 6 | (byte & 0x3Fu);
    }
    good = good && !(length == 3 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) &&
           !(length == 4 && (code < 0x10000 || code > 0x10FFFF));
    if (good)
      text += bytes.substr(i, length);
    else
      text += kReplacement;
    i += good ? length : 1;
  }
  return text;
}

}  // namespace ptxbench
