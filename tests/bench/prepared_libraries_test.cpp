#include "bench/prepared_libraries.hpp"
#include "support/catch.hpp"
#include "support/gemm_case.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

struct Counts {
  int found = 0, prepared = 0, gone = 0;
  bool fail = false;
};

class Counted final : public LibraryBaseline {
 public:
  explicit Counted(Counts& counts) : counts_(counts) {}
  ~Counted() override { ++counts_.gone; }
  Result<void> prepare(Device&, const Workload&, const PlanBuffers&) override {
    ++counts_.prepared;
    if (counts_.fail) return make_error(ErrorCode::no_memory, "no room");
    return {};
  }
  std::string description() const override { return "counted"; }
  Result<void> enqueue(const PlanBuffers&) override { return {}; }

 private:
  Counts& counts_;
};

}  // namespace

TEST_CASE("a library baseline is prepared once for a workload, and few are kept") {
  Counts counts;
  FakeDevice device;
  PreparedLibraries libraries([&](const Workload&, const std::string&) {
    ++counts.found;
    return Result<std::unique_ptr<LibraryBaseline>>(std::make_unique<Counted>(counts));
  });
  const auto definition = gemm_definition(16, 64);
  const auto use = [&](std::int64_t m) {
    const Workload workload = gemm_workload(definition, m);
    LibraryBaseline* library = libraries.find(workload, {}).value().library;
    CHECK(library->description() == "counted");
    return library->prepare(device, workload, {}).has_value();
  };
  CHECK(use(1));
  const BaselineCalibration* const kept = libraries.find(gemm_workload(definition, 1), {}).value().calibration;
  CHECK(use(1));
  CHECK(libraries.find(gemm_workload(definition, 1), {}).value().calibration == kept);
  CHECK(libraries.find(gemm_workload(definition, 1), {}).value().calibration->done == false);
  CHECK(counts.found == 1);
  CHECK(counts.prepared == 1);
  CHECK(use(2));
  CHECK(use(3));
  CHECK(use(1));  // the last used now
  CHECK(counts.found == 3);
  CHECK(use(4));  // 2 goes
  CHECK(libraries.size() == PreparedLibraries::kMost);
  CHECK(counts.gone == 1);
  CHECK(use(1));
  CHECK(counts.found == 4);
  CHECK(use(2));
  CHECK(counts.found == 5);
  libraries.clear();
  CHECK(counts.gone == 5);

  // One that could not be prepared is tried again.
  counts.fail = true;
  CHECK_FALSE(use(7));
  counts.fail = false;
  CHECK(use(7));
}

TEST_CASE("that there is no library for a workload is handed on") {
  PreparedLibraries libraries([](const Workload&, const std::string&) {
    return Result<std::unique_ptr<LibraryBaseline>>(make_error(ErrorCode::unsupported, "none"));
  });
  const auto none = libraries.find(gemm_workload(gemm_definition(16, 64), 1), {});
  REQUIRE_FALSE(none);
  CHECK(none.error().message == "none");
  CHECK(libraries.size() == 0);
}
