// Many candidates in a row in one host, a third of them faulting, hanging or crashing; and a device that gets
// sick.
#include "stub_case.hpp"
#include "support/processes.hpp"

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

using namespace testing;

namespace {

struct Kind {
  const char* word;
  Status status;
};
constexpr Kind kGood[] = {{"right", Status::passed},
                          {"right", Status::passed},
                          {"right", Status::passed},
                          {"wrong", Status::incorrect_numerical},
                          {"compile_error", Status::compile_error}};
constexpr Kind kBad[] = {{"illegal", Status::runtime_error},
                         {"hang", Status::timeout},
                         {"crash", Status::runtime_error},
                         {"compile_crash", Status::compile_error}};

// A third of them bad, in an order that is random and always the same.
std::vector<Kind> candidates(std::size_t count) {
  std::vector<Kind> list;
  for (std::size_t i = 0; i < count; ++i)
    list.push_back(i % 3 == 0 ? kBad[i / 3 % std::size(kBad)] : kGood[i % std::size(kGood)]);
  std::mt19937_64 random(7);
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random() % i]);
  return list;
}

}  // namespace

TEST_CASE("soak: a thousand candidates, a third of them faulting, hanging or crashing, in one host") {
  {
    const StubCase stub;
    const std::vector<Kind> list = candidates(1000);
    const std::size_t descriptors_before = open_descriptors();
    long warm_kb = 0;
    std::size_t next = 0;
    const auto right = [&](const Result<Evaluation>& evaluation, const Kind& kind) {
      INFO(kind.word);
      if (!evaluation) FAIL(evaluation.error().to_string());
      REQUIRE(evaluation->status() == kind.status);
    };
    // In lists, as jobs, and one by one, in turn.
    for (int round = 0; next < list.size(); ++round) {
      const std::size_t count = std::min<std::size_t>(50, list.size() - next);
      const Kind* kinds = &list[next];
      next += count;
      if (round % 3 == 0) {
        std::vector<EvaluateRequest> requests;
        for (std::size_t i = 0; i < count; ++i) requests.push_back(stub.request(kinds[i].word));
        const auto results = evaluate_many(*stub.context, requests);
        REQUIRE(results);
        for (std::size_t i = 0; i < count; ++i) right((*results)[i], kinds[i]);
      } else if (round % 3 == 1) {
        std::vector<std::unique_ptr<Job>> jobs;
        for (std::size_t i = 0; i < count; ++i)
          jobs.push_back(submit(stub.context, stub.request(kinds[i].word)).value());
        for (std::size_t i = 0; i < count; ++i) {
          REQUIRE(jobs[i]->wait(120'000'000'000).value());
          right(jobs[i]->take(), kinds[i]);
        }
      } else {
        for (std::size_t i = 0; i < count; ++i) right(stub.run(kinds[i].word), kinds[i]);
      }
      if (next == 200) warm_kb = ::testing::resident_kb();
    }
    const long end_kb = ::testing::resident_kb();
    INFO("resident after 200: " << warm_kb << " KiB, after 1000: " << end_kb << " KiB");
    CHECK(end_kb < warm_kb + 16 * 1024);
    CHECK(eventually([&] { return open_descriptors() < descriptors_before + 32; }));
  }
  CHECK(eventually([] { return children_of(::getpid()).empty(); }));
}

TEST_CASE(
    "device worker: a device that is sick after a fault is an Error, for the candidate in doubt and for the "
    "next") {
  const StubCase stub;
  CHECK(stub.status("right") == Status::passed);
  const auto doubtful = stub.run("sick_after");
  REQUIRE_FALSE(doubtful);
  CHECK(doubtful.error().code == ErrorCode::driver);
  CHECK(doubtful.error().rule == "device_sick");
  CHECK(doubtful.error().message.find("CUDA_ERROR_LAUNCH_FAILED") != std::string::npos);
  const auto next = stub.run("right");
  REQUIRE_FALSE(next);
  CHECK(next.error().rule == "device_sick");
  REQUIRE(std::filesystem::remove(stub.folder.path() + "/sick"));
  CHECK(stub.status("right") == Status::passed);  // repaired
}

TEST_CASE(
    "device worker: a fault that is surely the candidate's has its verdict; the next finds the device sick") {
  const StubCase stub;
  CHECK(stub.status("illegal") == Status::runtime_error);
  CHECK(stub.status("right") == Status::passed);
  std::ofstream(stub.folder.path() + "/sick") << "yes";
  CHECK(stub.status("right") == Status::passed);  // nothing happened, nothing is tested
  CHECK(stub.status("illegal") == Status::runtime_error);
  CHECK(stub.run("right").error().rule == "device_sick");
  // A hang, or a worker that dies, may be the device's: no verdict while it is sick.
  CHECK(stub.run("hang").error().rule == "device_sick");
  std::filesystem::remove(stub.folder.path() + "/sick");
  CHECK(stub.status("hang") == Status::timeout);
  CHECK(stub.status("crash") == Status::runtime_error);
}
