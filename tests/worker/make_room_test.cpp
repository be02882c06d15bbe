// Memory that prepared library baselines hold is a candidate's, where it needs it.
#include "worker/make_room.hpp"

#include "support/catch.hpp"
#include "support/gemm_case.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

class Idle final : public LibraryBaseline {
  Result<void> prepare(Device&, const Workload&, const PlanBuffers&) override { return {}; }
  std::string description() const override { return "idle"; }
  Result<void> enqueue(const PlanBuffers&) override { return {}; }
};

struct Setup {
  PreparedLibraries libraries{[](const Workload&, const std::string&) {
    return Result<std::unique_ptr<LibraryBaseline>>(std::make_unique<Idle>());
  }};
  int runs = 0;

  explicit Setup(bool keeps = true) {
    if (keeps) REQUIRE(libraries.find(gemm_workload(gemm_definition(16, 64), 1), {}));
  }
  // Answers `shortage` as long as libraries are kept.
  Result<VerifyEvidence> run(const Result<VerifyEvidence>& shortage) {
    return verify_with_room(libraries, [&]() -> Result<VerifyEvidence> {
      ++runs;
      if (libraries.size() > 0) return shortage;
      VerifyEvidence evidence;
      evidence.trials.emplace_back();
      return evidence;
    });
  }
};

VerifyEvidence faulted(DeviceFault::Kind kind, bool lost = false) {
  VerifyEvidence evidence;
  evidence.device_lost = lost;
  evidence.trials.emplace_back();
  evidence.trials.back().fault.emplace();
  evidence.trials.back().fault->kind = kind;
  return evidence;
}

}  // namespace

TEST_CASE("a verification that lacks memory runs once more without the libraries") {
  Setup error;
  const auto first = error.run(make_error(ErrorCode::no_memory, "full"));
  REQUIRE(first);
  CHECK_FALSE(first->trials.at(0).fault);
  CHECK(error.runs == 2);
  CHECK(error.libraries.size() == 0);

  Setup fault;
  const auto second = fault.run(faulted(DeviceFault::Kind::out_of_memory));
  REQUIRE(second);
  CHECK_FALSE(second->trials.at(0).fault);
  CHECK(fault.runs == 2);
}

TEST_CASE("anything else runs once, and the libraries stay") {
  Setup other;
  CHECK(other.run(faulted(DeviceFault::Kind::illegal_address))->trials.at(0).fault);
  CHECK(other.run(make_error(ErrorCode::driver, "no")).error().code == ErrorCode::driver);
  CHECK(other.runs == 2);
  CHECK(other.libraries.size() == 1);

  Setup lost;
  CHECK(lost.run(faulted(DeviceFault::Kind::out_of_memory, true))->device_lost);
  CHECK(lost.runs == 1);

  // Nothing is held: the shortage is the candidate's, or the machine's.
  Setup none(false);
  int runs = 0;
  const auto short_of = verify_with_room(none.libraries, [&]() -> Result<VerifyEvidence> {
    ++runs;
    return make_error(ErrorCode::no_memory, "full");
  });
  CHECK(short_of.error().code == ErrorCode::no_memory);
  CHECK(runs == 1);
}
