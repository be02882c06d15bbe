#include "core/subprocess.hpp"

#include "support/catch.hpp"
#include "support/processes.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <csignal>
#include <thread>

using namespace ptxbench;
using namespace std::chrono_literals;

namespace {

Result<Subprocess> shell(const std::string& script, SpawnOptions options = {}) {
  options.path = "/bin/sh";
  options.arguments = {"-c", script};
  return Subprocess::start(options);
}

ExitStatus run(const std::string& script, std::string* output = nullptr, SpawnOptions options = {}) {
  auto process = shell(script, std::move(options));
  REQUIRE(process);
  const auto status = process->wait(SteadyClock::now() + 20s);
  REQUIRE(status);
  if (output != nullptr) *output = process->output_tail(100'000);
  return *status;
}

// Sets a disposition and puts the old one back.
class Disposition {
 public:
  Disposition(int signal, void (*handler)(int)) : signal_(signal) {
    struct sigaction action {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, &old_);
  }
  ~Disposition() { ::sigaction(signal_, &old_, nullptr); }

 private:
  int signal_;
  struct sigaction old_ {};
};

}  // namespace

TEST_CASE("a process ends with its status or signal") {
  REQUIRE(run("exit 3").to_string() == "exit status 3");
  REQUIRE(run("kill -SEGV $$").to_string() == "killed by signal 11 (SIGSEGV)");
  REQUIRE(run("exit 0").to_string() == "exit status 0");
  REQUIRE(testing::children_of(::getpid()).empty());
}

TEST_CASE("what cannot be started is an error that says why") {
  SpawnOptions options;
  options.path = "/no/such/worker";
  const auto process = Subprocess::start(options);
  REQUIRE_FALSE(process);
  REQUIRE(process.error().code == ErrorCode::worker);
  REQUIRE(process.error().message.find("/no/such/worker") != std::string::npos);
  REQUIRE(process.error().message.find("No such file") != std::string::npos);
  REQUIRE(testing::children_of(::getpid()).empty());
}

TEST_CASE("the child has 0 to 3 and nothing else") {
  const int inheritable = ::open("/dev/null", O_RDONLY);  // a host's descriptor without CLOEXEC
  REQUIRE(inheritable >= 0);
  std::string output;
  // The listing's own descriptor of /proc/self/fd is the one more.
  REQUIRE(run("ls -l /proc/self/fd | sed -e 's/.* \\([0-9]* -> .*\\)/\\1/'", &output).value == 0);
  ::close(inheritable);
  INFO(output);
  REQUIRE(output.find("0 -> /dev/null") != std::string::npos);
  REQUIRE(output.find("2 -> /memfd:ptxbench-worker-output") != std::string::npos);
  REQUIRE(output.find("3 -> socket:") != std::string::npos);
  REQUIRE(output.find("5 -> ") == std::string::npos);
}

TEST_CASE("a host that has closed its standard descriptors can start a worker") {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (int fd = 0; fd < 3; ++fd) ::close(fd);
    auto process = shell("read line <&3; echo \"$line\" >&3; echo out; echo err >&2; exit 7");
    if (!process) ::_exit(1);
    const UniqueFd socket = process->take_socket();
    if (::send(socket.get(), "hi\n", 3, MSG_NOSIGNAL) != 3) ::_exit(2);
    char back[3] = {};
    if (::recv(socket.get(), back, 3, MSG_WAITALL) != 3 || back[0] != 'h') ::_exit(3);
    const auto status = process->wait(SteadyClock::now() + 20s);
    if (!status || status->value != 7) ::_exit(4);
    ::_exit(process->output_tail(100) == "out\nerr\n" ? 0 : 5);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
}

TEST_CASE("dispositions, mask and process group are the child's own") {
  const Disposition pipe(SIGPIPE, SIG_IGN);
  sigset_t block, old;
  ::sigfillset(&block);
  ::pthread_sigmask(SIG_BLOCK, &block, &old);
  std::string output;
  run("grep -E 'SigBlk|SigIgn' /proc/self/status; cut -d' ' -f5 /proc/$$/stat; echo $$", &output);
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  INFO(output);
  REQUIRE(output.find("SigBlk:\t0000000000000000") != std::string::npos);
  // Signals 32 and 33 are the C library's own.
  const auto ignored = output.find("SigIgn:\t");
  REQUIRE((std::stoull(output.substr(ignored + 8), nullptr, 16) & ~0x180000000ull) == 0);
  const auto numbers = output.substr(output.rfind("SigIgn"));
  const auto first = numbers.find('\n') + 1, second = numbers.find('\n', first) + 1;
  REQUIRE(numbers.substr(first, second - first - 1) == numbers.substr(second, numbers.size() - second - 1));
}

TEST_CASE("the environment is the host's with changes") {
  ::setenv("PTXBENCH_TEST_A", "1", 1);
  ::setenv("PTXBENCH_TEST_AB", "2", 1);
  ::setenv("PTXBENCH_TEST_C", "3", 1);
  SpawnOptions options;
  options.unset_environment = {"PTXBENCH_TEST_A*"};
  options.set_environment = {{"PTXBENCH_TEST_C", "4"}, {"PTXBENCH_TEST_D", ""}};
  std::string output;
  run("echo "
      "\"${PTXBENCH_TEST_A-no}${PTXBENCH_TEST_AB-no}$PTXBENCH_TEST_C${PTXBENCH_TEST_D-no}${PATH:+path}\"",
      &output, options);
  REQUIRE(output == "nono4path\n");
}

TEST_CASE("a process has a temporary folder of its own for as long as it lives") {
  SpawnOptions options;
  options.private_temp = true;
  std::string folder;
  SECTION("that ends by itself") {
    REQUIRE(
        run("mkdir $TMPDIR/a; echo x > $TMPDIR/a/b; ls $TMPDIR/a; printf $TMPDIR", &folder, options).value ==
        0);
    REQUIRE(folder.starts_with("b\n"));
    folder = folder.substr(2);
  }
  SECTION("that is killed") {
    auto process = shell("echo x > $TMPDIR/a; printf $TMPDIR; sleep 1000", options);
    REQUIRE(process);
    REQUIRE(testing::eventually([&] { return process->output_bytes() > 10; }));
    folder = process->output_tail(1000);
    REQUIRE(std::filesystem::exists(folder + "/a"));
  }
  INFO(folder);
  REQUIRE(folder.find("/ptxbench-worker-") != std::string::npos);
  REQUIRE_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("output is captured, cut and cleared") {
  auto process = shell(
      "i=0; while [ $i -lt 1000 ]; do echo 0123456789; i=$((i+1)); done; printf 'end\\001\\377'; read x <&3; "
      "echo new");
  REQUIRE(process);
  const UniqueFd socket = process->take_socket();
  REQUIRE(testing::eventually([&] { return process->output_bytes() == 11'005; }));
  REQUIRE(process->output_tail(16) == "[10989 bytes cut]\n0123456789\nend\xEF\xBF\xBD\xEF\xBF\xBD");
  process->clear_output();
  REQUIRE(process->output_bytes() == 0);
  REQUIRE(::send(socket.get(), "\n", 1, MSG_NOSIGNAL) == 1);
  REQUIRE(process->wait(SteadyClock::now() + 20s));
  REQUIRE(process->output_tail(100) == "new\n");  // no hole in front
}

TEST_CASE("killing takes the whole group, waiting is bounded") {
  auto process = shell("sleep 1000 & sleep 1000");
  REQUIRE(process);
  const int group = process->pid();
  REQUIRE(testing::eventually([&] { return testing::living_in_group(group).size() == 3; }));
  REQUIRE_FALSE(process->poll());
  process->kill();
  const auto status = process->wait(SteadyClock::now() + 20s);
  REQUIRE(status);
  REQUIRE(status->to_string() == "killed by signal 9 (SIGKILL)");
  REQUIRE(testing::eventually([&] { return testing::living_in_group(group).empty(); }));
  REQUIRE(testing::children_of(::getpid()).empty());
}

TEST_CASE("a process that ends by itself leaves no child of its own") {
  auto process = shell("sleep 1000 & exit 5");
  REQUIRE(process);
  const int group = process->pid();
  const auto status = process->wait(SteadyClock::now() + 20s);
  REQUIRE(status);
  REQUIRE(status->value == 5);
  REQUIRE(testing::eventually([&] { return testing::living_in_group(group).empty(); }));
}

TEST_CASE("under SIGCHLD ignored the end is seen and nothing is waited for") {
  const Disposition ignored(SIGCHLD, SIG_IGN);
  for (int i = 0; i < 20; ++i) {
    const ExitStatus status = run("sleep 1000 & exit 3");
    // New kernels keep the status for the holder of a pidfd; on older ones it is lost.
    if (status.kind != ExitStatus::Kind::unknown) REQUIRE(status.to_string() == "exit status 3");
  }
  {
    auto process = shell("sleep 1000");
    REQUIRE(process);
    process->kill();
    REQUIRE(process->wait(SteadyClock::now() + 20s));
  }
  REQUIRE(testing::children_of(::getpid()).empty());
}

TEST_CASE("a host that waits for every child takes the status and breaks nothing") {
  auto process = shell("exit 3");
  REQUIRE(process);
  int status = 0;
  REQUIRE(::waitpid(-1, &status, 0) == process->pid());
  const auto seen = process->wait(SteadyClock::now() + 20s);
  REQUIRE(seen);
  if (seen->kind != ExitStatus::Kind::unknown) REQUIRE(seen->to_string() == "exit status 3");
}

TEST_CASE("a process outlives the thread that started it") {
  std::optional<Subprocess> process;
  std::thread([&] {
    auto started = shell("read line <&3; exit 4");
    if (started) process.emplace(std::move(started).value());
  }).join();
  REQUIRE(process);
  const UniqueFd socket = process->take_socket();
  REQUIRE_FALSE(process->wait(SteadyClock::now() + 50ms));
  REQUIRE(::send(socket.get(), "\n", 1, MSG_NOSIGNAL) == 1);
  const auto status = process->wait(SteadyClock::now() + 20s);
  REQUIRE(status);
  REQUIRE(status->value == 4);
}

TEST_CASE("a forked copy of the host leaves its parent's processes alone") {
  auto process = shell("sleep 1000");
  REQUIRE(process);
  const pid_t pid = ::fork();
  if (pid == 0) {
    {
      Subprocess copy = std::move(process).value();
      copy.kill();
    }
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE_FALSE(process->wait(SteadyClock::now() + 50ms));
}

TEST_CASE("descriptors and processes do not pile up") {
  run("exit 0");
  const std::size_t before = testing::open_descriptors();
  {
    Graveyard graveyard;
    for (int i = 0; i < 50; ++i) {
      auto process = shell(i % 2 ? "exit 0" : "sleep 1000");
      REQUIRE(process);
      if (i % 3 == 0) graveyard.bury(std::move(process).value());
    }
    REQUIRE(testing::eventually([&] {
      graveyard.collect();
      return graveyard.size() == 0;
    }));
  }
  REQUIRE(testing::open_descriptors() == before);
  REQUIRE(testing::children_of(::getpid()).empty());
}

TEST_CASE("printable text is valid UTF-8 whatever came") {
  REQUIRE(printable_text("a\tb\r\n") == "a\tb\n");
  REQUIRE(printable_text("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80") ==
          "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80");
  const std::string bad = "\xEF\xBF\xBD";
  REQUIRE(printable_text("\x1b[0m") == bad + "[0m");
  REQUIRE(printable_text("\xC3") == bad);
  REQUIRE(printable_text("\xC0\x80") == bad + bad);
  REQUIRE(printable_text("\xED\xA0\x80") == bad + bad + bad);            // a surrogate
  REQUIRE(printable_text("\xF4\x90\x80\x80") == bad + bad + bad + bad);  // past U+10FFFF
}
