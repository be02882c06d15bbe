// The library in hosts that treat it badly (programs/hostile_host_main.cpp), each a process of its own.
#include "support/catch.hpp"
#include "support/processes.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <sstream>

using namespace testing;

namespace {

struct Host {
  pid_t pid = -1;
  FILE* output = nullptr;
};

Host start(const char* mode) {
  int fds[2];
  REQUIRE(::pipe(fds) == 0);
  Host host;
  host.pid = ::fork();
  if (host.pid == 0) {
    ::dup2(fds[1], 1);
    ::close(fds[0]);
    ::close(fds[1]);
    ::execl(PTXBENCH_TEST_HOSTILE_HOST, PTXBENCH_TEST_HOSTILE_HOST, mode, nullptr);
    ::_exit(127);
  }
  ::close(fds[1]);
  host.output = ::fdopen(fds[0], "r");
  return host;
}

std::string line_of(const Host& host) {
  char line[512] = {};
  return std::fgets(line, sizeof line, host.output) != nullptr ? line : "";
}

std::vector<int> numbers_in(const std::string& line) {
  std::istringstream words(line.substr(line.find(' ')));
  std::vector<int> result;
  for (int n; words >> n;) result.push_back(n);
  return result;
}

}  // namespace

TEST_CASE("in a hostile host every death is survived and no child is left") {
  for (const char* mode : {"sigchld-ignored", "wait-all", "sigpipe-default", "thread-ended", "all-three"}) {
    const Host host = start(mode);
    std::string printed;
    for (std::string line; !(line = line_of(host)).empty();) printed += line;
    std::fclose(host.output);
    int status = -1;
    REQUIRE(::waitpid(host.pid, &status, 0) == host.pid);
    INFO(mode << ": status " << status << "\n" << printed);
    CHECK(status == 0);
  }
}

TEST_CASE("a host killed with -9 leaves no worker and nothing that a worker started") {
  const Host host = start("to-be-killed");
  const std::string line = line_of(host);
  REQUIRE(line.starts_with("ready "));
  const std::vector<int> groups = numbers_in(line);
  REQUIRE(groups.size() == 3);
  for (const int group : groups) REQUIRE_FALSE(living_in_group(group).empty());
  REQUIRE(living_in_group(groups[1]).size() >= 3);  // its two sleeps
  ::kill(host.pid, SIGKILL);
  ::waitpid(host.pid, nullptr, 0);
  for (const int group : groups) CHECK(eventually([&] { return living_in_group(group).empty(); }));
  std::fclose(host.output);
}

TEST_CASE("workers end with their host though a forked copy of it keeps their sockets open") {
  const Host host = start("fork-keeps-socket");
  std::vector<int> groups;
  int copy = -1;
  for (int i = 0; i < 2; ++i) {
    const std::string line = line_of(host);
    INFO(line);
    if (line.starts_with("ready ")) groups = numbers_in(line);
    if (line.starts_with("copy ")) copy = numbers_in(line).at(0);
  }
  REQUIRE(groups.size() == 3);
  REQUIRE(copy > 0);
  ::kill(host.pid, SIGKILL);
  ::waitpid(host.pid, nullptr, 0);
  for (const int group : groups) CHECK(eventually([&] { return living_in_group(group).empty(); }));
  ::kill(copy, SIGKILL);
  std::fclose(host.output);
}
