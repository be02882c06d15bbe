#include "worker/worker_process.hpp"

#include "core/shared_memory.hpp"
#include "support/catch.hpp"
#include "support/processes.hpp"
#include "test_worker.hpp"

#include <numeric>

using namespace testing;

namespace {

Parcel reply_of(Result<CallOutcome> result) {
  REQUIRE(result);
  if (result->died) FAIL("died: " << result->death.description << "\n" << result->death.output);
  return std::move(result->reply);
}

WorkerDeath death_of(Result<CallOutcome> result) {
  REQUIRE(result);
  REQUIRE(result->died);
  return std::move(result->death);
}

WorkerProcess launched() {
  auto worker = WorkerProcess::launch(test_launch());
  REQUIRE(worker);
  return std::move(*worker);
}

}  // namespace

TEST_CASE("a worker says hello, takes jobs one after another, and has its start timed") {
  WorkerProcess worker = launched();
  REQUIRE(worker.greet());
  REQUIRE(worker.hello().version == version_string());
  REQUIRE(worker.hello().build.size() == 16);
  REQUIRE(worker.start_time().count() > 0);
  REQUIRE(worker.kill_to_ready().count() == 0);
  for (int i = 0; i < 10; ++i) {
    const Parcel reply = reply_of(worker.call(job("echo", "{\"i\":" + std::to_string(i) + "}"), {}, {20s}));
    REQUIRE(reply.message.json == "{\"i\":" + std::to_string(i) + "}");
  }
  REQUIRE(worker.jobs_done() == 10);
  REQUIRE(worker.ready());
  REQUIRE(worker.restart());
  REQUIRE(worker.greet());
  REQUIRE(worker.kill_to_ready() >= worker.start_time());
}

TEST_CASE("every way to die is told apart and followed by a good job") {
  for (const DeathCase& expected : kDeaths) {
    INFO(expected.stage);
    WorkerProcess worker = launched();
    const WorkerDeath death = death_of(worker.call(job(expected.stage), {}, {time_for(expected)}));
    INFO(death.description << "\n" << death.output);
    REQUIRE(death_name(death.kind) == death_name(expected.kind));
    REQUIRE(death.signal == expected.signal);
    REQUIRE(death.exit_status == expected.exit_status);
    REQUIRE_FALSE(worker.ready());
    REQUIRE_FALSE(worker.call(job("echo"), {}, {20s}));
    REQUIRE(worker.restart());
    REQUIRE(reply_of(worker.call(job("echo", "{\"ok\":true}"), {}, {20s})).message.json == "{\"ok\":true}");
  }
  REQUIRE(eventually([] { return children_of(::getpid()).empty(); }));
}

TEST_CASE("a death brings its description and what was printed") {
  WorkerProcess worker = launched();
  const WorkerDeath death = death_of(worker.call(job("segfault"), {}, {20s}));
  REQUIRE(death.description == "killed by signal 11 (SIGSEGV)");
  REQUIRE(death.output == "about to crash\n");
  REQUIRE(worker.restart());
  REQUIRE(death_of(worker.call(job("throw"), {}, {20s})).output == "ptxbench-worker: thrown by a stage\n");
}

TEST_CASE("output is bounded and belongs to its job") {
  WorkerProcess worker = launched();
  REQUIRE(reply_of(worker.call(job("print"), {}, {60s})).message.type == "printed");  // 9 MB, 4 MiB are kept
  const std::string tail = worker.output_tail();
  REQUIRE(tail.size() < 17 * 1024);
  REQUIRE(tail.find("line 1") != std::string::npos);
  reply_of(worker.call(job("echo"), {}, {20s}));
  REQUIRE(worker.output_tail().empty());
}

TEST_CASE("a stage talks with its host, with shared memory both ways") {
  WorkerProcess worker = launched();
  std::vector<std::string> seen;
  auto memory = SharedMemory::create(100);
  REQUIRE(memory);
  const CallHandler handler = [&](FrameKind kind, Parcel parcel) -> Result<Parcel> {
    seen.push_back(parcel.message.type);
    if (kind == FrameKind::progress) return Parcel();
    auto theirs = SharedMemory::adopt(std::move(parcel.files.at(0)));
    if (!theirs) return theirs.error();
    const auto sum = std::accumulate(theirs->bytes().begin(), theirs->bytes().end(), std::uint64_t{0});
    std::vector<UniqueFd> files;
    files.emplace_back(::dup(memory->fd()));
    return Parcel(Message{"answer", std::to_string(sum), {}}, std::move(files));
  };
  const Parcel reply = reply_of(worker.call(job("talk"), {}, {20s}, handler));
  REQUIRE(seen == std::vector<std::string>{"step 0", "step 1", "step 2", "sum"});
  REQUIRE(reply.message.json == std::to_string(5 << 20));
  REQUIRE(reply.files.size() == 1);

  SECTION("an error of the host's callback ends the job and not the worker") {
    const auto result = worker.call(job("talk"), {}, {20s}, [](FrameKind kind, Parcel) -> Result<Parcel> {
      if (kind == FrameKind::progress) return Parcel();
      Error e = make_error(ErrorCode::callback, "the reference said no");
      e.user_code = 7;
      return e;
    });
    REQUIRE_FALSE(result);
    REQUIRE(result.error().code == ErrorCode::callback);
    REQUIRE(result.error().user_code == 7);
    REQUIRE(worker.ready());
  }
  SECTION("without a handler a question is answered with an error") {
    REQUIRE(worker.call(job("talk"), {}, {20s}).error().code == ErrorCode::internal);
    REQUIRE(worker.ready());
  }
  SECTION("time that the host takes is not the job's") {
    const auto slow = [&](FrameKind kind, Parcel parcel) {
      std::this_thread::sleep_for(150ms);
      return handler(kind, std::move(parcel));
    };
    seen.clear();
    reply_of(worker.call(job("talk"), {}, {500ms}, slow));  // takes 600 ms
  }
}

TEST_CASE("descriptors go with a job and come back") {
  WorkerProcess worker = launched();
  auto memory = SharedMemory::create(4096);
  REQUIRE(memory);
  const int fd = memory->fd();
  Parcel reply = reply_of(worker.call(job("echo"), {&fd, 1}, {20s}));
  REQUIRE(reply.files.size() == 1);
  auto back = SharedMemory::adopt(std::move(reply.files[0]));
  REQUIRE(back);
  back->data()[0] = 9;
  REQUIRE(memory->data()[0] == 9);
}

TEST_CASE("what a stage calls an error arrives as it is, and the worker goes on") {
  WorkerProcess worker = launched();
  const auto result = worker.call(job("fail"), {}, {20s});
  REQUIRE_FALSE(result);
  REQUIRE(result.error().code == ErrorCode::toolkit);
  REQUIRE(result.error().rule == "some_rule");
  REQUIRE(result.error().where.line == 1);
  REQUIRE(worker.call(job("no such stage"), {}, {20s}).error().code == ErrorCode::internal);
  reply_of(worker.call(job("echo"), {}, {20s}));
}

TEST_CASE("a cancelled job kills its worker") {
  WorkerProcess worker = launched();
  REQUIRE(worker.greet());
  CancelToken cancel;
  std::thread later([&] {
    std::this_thread::sleep_for(30ms);
    cancel.trigger();
  });
  const auto result = worker.call(job("hang"), {}, {std::nullopt, &cancel});
  later.join();
  REQUIRE_FALSE(result);
  REQUIRE(result.error().code == ErrorCode::cancelled);
  REQUIRE_FALSE(worker.ready());
  REQUIRE(children_of(::getpid()).empty());
}

TEST_CASE("a worker stays away from an MPS daemon") {
  ::setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps", 1);
  ::setenv("CUDA_MPS_LOG_DIRECTORY", "/tmp/nvidia-log", 1);
  WorkerProcess worker = launched();
  const std::string seen = reply_of(worker.call(job("environment"), {}, {20s})).message.type;
  ::unsetenv("CUDA_MPS_PIPE_DIRECTORY");
  ::unsetenv("CUDA_MPS_LOG_DIRECTORY");
  REQUIRE(seen == "/nonexistent/ptxbench-without-mps -");
}

TEST_CASE("a program that is no worker is refused with what it did") {
  WorkerLaunch launch = test_launch();
  const auto refused = [&] {
    auto worker = WorkerProcess::launch(launch);
    if (!worker) return worker.error();
    const auto greeted = worker->greet();
    REQUIRE_FALSE(greeted);
    return greeted.error();
  };
  SECTION("that ends at once") {
    launch.path = "/bin/false";
    const Error e = refused();
    REQUIRE(e.code == ErrorCode::worker);
    REQUIRE(e.message.find("exit status 1") != std::string::npos);
  }
  SECTION("that prints an error") {
    launch.path = "/bin/ls";
    REQUIRE(refused().message.find("--worker") != std::string::npos);
  }
  SECTION("that says nothing") {
    launch.path = PTXBENCH_TEST_SILENT_PROGRAM;
    launch.hello_timeout = 50ms;
    REQUIRE(refused().message.find("did not say hello") != std::string::npos);
  }
  SECTION("that is not there") {
    launch.path = "/no/such/program";
    REQUIRE(refused().message.find("No such file") != std::string::npos);
  }
  REQUIRE(children_of(::getpid()).empty());
}

TEST_CASE("a hello of another build is a mismatch that names both") {
  Hello other = own_hello({"compile"});
  REQUIRE(mismatch(other).empty());
  other.version = "0.0.9";
  other.build = "0123456789abcdef";
  const auto read = hello_from(to_message(other));
  REQUIRE(read);
  REQUIRE(read->stages == std::vector<std::string>{"compile"});
  const std::string text = mismatch(*read);
  REQUIRE(text.find("0.0.9 (protocol 1, build 0123456789abcdef)") != std::string::npos);
  REQUIRE(text.find(std::string(version_string()) + " (protocol 1, build " + std::string(build_id())) !=
          std::string::npos);
  REQUIRE_FALSE(hello_from({"hello", "{\"protocol\":\"x\"}", {}}));
  REQUIRE_FALSE(hello_from({"reply", "{}", {}}));
}

TEST_CASE("the worker's arguments read back, and nothing else is taken for them") {
  const WorkerArguments arguments{"device", 123, 456, WarmStart{"", "GPU-1"}};
  std::vector<std::string> words = command_line(arguments);
  words.insert(words.begin(), "ptxbench-worker");
  const auto parse = [](std::vector<std::string> list, WorkerArguments& to) {
    std::vector<char*> argv;
    for (auto& word : list) argv.push_back(word.data());
    return parse_command_line(static_cast<int>(argv.size()), argv.data(), to);
  };
  WorkerArguments back;
  REQUIRE(parse(words, back));
  REQUIRE(back.kind == "device");
  REQUIRE(back.memory_limit_bytes == 123);
  REQUIRE(back.file_limit_bytes == 456);
  REQUIRE(back.warm);
  REQUIRE(back.warm->cuda_home.empty());
  REQUIRE(back.warm->device == "GPU-1");
  REQUIRE_FALSE(parse({"w"}, back));
  REQUIRE_FALSE(parse({"w", "--help"}, back));
  REQUIRE_FALSE(parse({"w", "--worker", "x", "--memory-limit"}, back));
  REQUIRE_FALSE(parse({"w", "--worker", "x", "--memory-limit", "4G"}, back));
  REQUIRE_FALSE(parse({"w", "--worker", "x", "--other", "4"}, back));
}
