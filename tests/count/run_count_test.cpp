// The count stage on a fake device, with a counter that says what a test wants.
#include "count/match.hpp"
#include "count/wire.hpp"
#include "support/catch.hpp"
#include "support/count_case.hpp"
#include "support/fake_device.hpp"
#include "verify/judge/judge.h"
#include "verify/seed.hpp"

#include <ptxbench/evaluate.hpp>

#include <cstring>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

using Kind = CountUnavailable::Kind;

// Counts launches of k_elect while it is on: every instruction of its straight line, 2 warps of 32 threads a
// launch.
class FakeCounter final : public SassCounter {
 public:
  MaybeUnavailable prepare(Device&) override {
    calls += "prepare ";
    return refuse_prepare;
  }
  MaybeUnavailable start() override {
    calls += "start ";
    on = true;
    return refuse_start;
  }
  MaybeUnavailable finish(std::vector<SassRecord>& records) override {
    calls += "finish ";
    on = false;
    for (std::uint32_t i = 0; i < instructions; ++i)
      records.push_back({"k_elect", 5, 16 * i, 2 * launches, 64 * launches});
    records.push_back({"memset_by_the_driver", 9, 0, 1, 32});
    records.push_back({"k_elect", 6, 1u << 20, 0, 0});  // another of that name, not launched
    return refuse_finish;
  }
  std::vector<std::vector<std::uint8_t>> loaded_code() override { return loaded; }
  void abandon() noexcept override { calls += "abandon "; }
  std::optional<std::uint32_t> cubin_crc(std::span<const std::uint8_t>) override { return std::nullopt; }
  std::string method() const override { return "fake"; }
  std::vector<std::pair<std::string, std::string>> versions() const override { return {{"cupti", "fake 1"}}; }

  std::string calls;
  bool on = false;
  std::uint64_t launches = 0;
  std::uint32_t instructions = 0;
  std::vector<std::vector<std::uint8_t>> loaded;
  MaybeUnavailable refuse_prepare, refuse_start, refuse_finish;
};

struct Counted {
  Result<CountEvidence> evidence = make_error(ErrorCode::internal, "not run");
  FakeCounter counter;
  int launches = 0, references = 0;
};

enum class Does { right, wrong, fault, hang };

Counted count(Does does, const std::function<void(CountJob&, FakeCounter&)>& change = {}) {
  Counted out;
  FakeDevice device;
  CountJob job = probe_job(cubin_fixture("async.sm_90a"), "k_elect", 1, 64, 3, 64);
  out.counter.instructions =
      static_cast<std::uint32_t>(straight_line(job.candidate.modules[0].cubin, "k_elect").size());
  device.define("probe.cubin", "k_elect", {8}, [&](FakeCall& call) {
    ++out.launches;
    if (out.counter.on) ++out.counter.launches;
    if (does == Does::fault || does == Does::hang) {
      DeviceFault fault;
      fault.kind = does == Does::hang ? DeviceFault::Kind::timeout : DeviceFault::Kind::illegal_address;
      fault.name = "FAKE_FAULT";
      fault.sticky = true;
      call.fail(fault);
      return;
    }
    auto* o = call.pointer<std::int32_t>(0);
    for (int i = 0; i < 64; ++i) o[i] = i % 32 == (does == Does::wrong ? 99 : 3);
  });
  if (change) change(job, out.counter);
  struct Counting final : Reference, Comparator {
    Result<void> compute(const Workload& w, std::span<const HostTensor> inputs, std::span<HostTensor> outputs) override {
      ++computed;
      return judge.compute(w, inputs, outputs);
    }
    Result<std::vector<OutputCorrectness>> compare(const Workload& w, std::span<const HostTensor> expected,
                                                   std::span<const HostTensor> got) override {
      return judge.compare(w, expected, got);
    }
    OneElected judge;
    int computed = 0;
  } judge;
  LocalCallbacks callbacks(nullptr, &judge, &judge);
  out.evidence = run_count_with(device, job, callbacks, out.counter);
  out.references = judge.computed;
  return out;
}

// What verification's digest of such outputs is.
std::vector<OutputDigest> digest_of(const CountJob& job, std::int32_t elected) {
  judge::Digest digest{0, 0};
  const std::uint64_t key = trial_seed(job.seed, job.workload.uuid, job.trial);
  for (std::uint64_t i = 0; i < 32; ++i) {  // two elements a word
    std::int32_t pair[2];
    for (std::uint64_t j = 0; j < 2; ++j) pair[j] = static_cast<std::int32_t>((2 * i + j) % 32) == elected;
    judge::u64 word = 0;
    std::memcpy(&word, pair, sizeof word);
    judge::add_word(digest, key, i, word);
  }
  return {{digest.low, digest.high}};
}

}  // namespace

TEST_CASE("counting: the candidate alone runs between start and finish, and its launches add up") {
  const Counted counted = count(Does::right);
  REQUIRE(counted.evidence);
  const CountEvidence& evidence = *counted.evidence;
  INFO((evidence.unavailable ? evidence.unavailable->reason : std::string()));
  REQUIRE_FALSE(evidence.unavailable);
  CHECK(counted.counter.calls == "prepare start finish ");
  CHECK(counted.launches == 3);
  CHECK(evidence.method == "fake");
  CHECK(evidence.other_functions == std::vector<std::string>{"memset_by_the_driver"});
  REQUIRE(evidence.kernels.size() == 1);
  CHECK(evidence.kernels[0].symbol == "k_elect");
  CHECK(evidence.kernels[0].module == 0);
  REQUIRE(evidence.kernels[0].records.size() == counted.counter.instructions);
  for (const CountRecord& record : evidence.kernels[0].records) {
    CHECK(record.warp_executions == 6);
    CHECK(record.threads_predicated_on == 192);
  }
  REQUIRE(evidence.trial);
  REQUIRE(evidence.trial->outputs.size() == 1);
  CHECK(evidence.trial->violations.empty());
  CHECK(judge_output(evidence.trial->outputs[0]).ok);
}

TEST_CASE("counting: outputs that were verified bit by bit need no reference, others do") {
  const auto as = [](std::int32_t elected) {
    return [elected](CountJob& job, FakeCounter&) { job.verified = digest_of(job, elected); };
  };
  const Counted same = count(Does::right, as(3));
  REQUIRE(same.evidence);
  REQUIRE_FALSE(same.evidence->unavailable);
  CHECK(same.evidence->as_verified);
  CHECK(same.references == 0);
  const Counted other = count(Does::right, as(4));  // right as well, and another one's
  REQUIRE(other.evidence);
  CHECK_FALSE(other.evidence->as_verified);
  CHECK(other.references == 1);
  CHECK(judge_output(other.evidence->trial->outputs.at(0)).ok);
  const Counted wrong = count(Does::wrong, as(3));
  REQUIRE(wrong.evidence);
  CHECK_FALSE(wrong.evidence->as_verified);
  CHECK_FALSE(judge_output(wrong.evidence->trial->outputs.at(0)).ok);

  Verdict verdict;
  verdict.outcome = Outcome::judged;
  verdict.status = Status::passed;
  const CountJob job = probe_job(cubin_fixture("async.sm_90a"), "k_elect", 1, 64, 3, 64);
  compose_counts(*same.evidence, job.candidate.modules, {}, verdict);
  CHECK(verdict.status == Status::passed);
  CHECK(verdict.correctness.trials == 1);
  CHECK(verdict.counts.state == Availability::measured);
}

TEST_CASE("counting: a wrong result is seen") {
  const Counted counted = count(Does::wrong);
  REQUIRE(counted.evidence);
  REQUIRE(counted.evidence->trial);
  CHECK_FALSE(judge_output(counted.evidence->trial->outputs.at(0)).ok);
  // Also where there are no counts.
  const Counted refused = count(Does::wrong, [](CountJob&, FakeCounter& counter) {
    counter.refuse_finish = CountUnavailable{Kind::driver, "no"};
  });
  REQUIRE(refused.evidence);
  CHECK(refused.evidence->unavailable);
  CHECK(refused.evidence->kernels.empty());
  REQUIRE(refused.evidence->trial);
  CHECK_FALSE(judge_output(refused.evidence->trial->outputs.at(0)).ok);
}

TEST_CASE("counting: after a fault or a hang nothing more is asked of the counter") {
  for (const auto& [does, kind] : {std::pair{Does::fault, Kind::fault}, {Does::hang, Kind::hang}}) {
    const Counted counted = count(does);
    REQUIRE(counted.evidence);
    REQUIRE(counted.evidence->unavailable);
    CHECK(counted.evidence->unavailable->kind == kind);
    CHECK(contains(counted.evidence->unavailable->reason, "FAKE_FAULT"));
    CHECK(counted.counter.calls == "prepare start abandon ");
    REQUIRE(counted.evidence->trial);
    CHECK(counted.evidence->trial->fault);
  }
}

TEST_CASE("counting: where the counter refuses, the candidate does not run") {
  const auto no = CountUnavailable{Kind::permission, "not permitted"};
  const Counted prepare =
      count(Does::right, [&](CountJob&, FakeCounter& counter) { counter.refuse_prepare = no; });
  REQUIRE(prepare.evidence);
  CHECK(prepare.launches == 0);
  REQUIRE(prepare.evidence->unavailable);
  CHECK(prepare.evidence->unavailable->kind == Kind::permission);
  CHECK_FALSE(prepare.evidence->trial);
  const Counted start =
      count(Does::right, [&](CountJob&, FakeCounter& counter) { counter.refuse_start = no; });
  REQUIRE(start.evidence);
  CHECK(start.launches == 0);
  CHECK(start.evidence->unavailable);
}

TEST_CASE("counting: code that the driver assembled is what the counter saw loaded") {
  const std::vector<std::uint8_t> code = cubin_fixture("async.sm_90a");
  const auto by_driver = [&](const char* ptx) {
    return count(Does::right, [&](CountJob& job, FakeCounter& counter) {
      counter.loaded = {{1, 2, 3}, cubin_fixture("wgmma.sm_90a"), code};  // others' code was loaded too
      job.candidate.modules[0].cubin.clear();
      job.candidate.modules[0].ptx = ptx;
    });
  };
  const Counted counted = by_driver(".visible .entry k_elect_not(\n) {}\n.visible .entry  k_elect(\n.param .u64 p) {}");
  REQUIRE(counted.evidence);
  REQUIRE_FALSE(counted.evidence->unavailable);
  REQUIRE(counted.evidence->driver_code.size() == 1);
  CHECK(counted.evidence->driver_code[0].module == 0);
  CHECK(counted.evidence->driver_code[0].cubin == code);
  CHECK(counted.evidence->kernels.size() == 1);
  // Through the worker's channel and into a verdict: instructions have names though the module has no cubin.
  const auto back = count_evidence_from(to_message(*counted.evidence));
  REQUIRE(back);
  REQUIRE(back->driver_code.size() == 1);
  CHECK(back->driver_code[0].cubin == code);
  CompiledModule module;
  module.source = "probe.ptx";
  Verdict verdict;
  compose_counts(*back, {module}, {}, verdict);
  CHECK(verdict.counts.state == Availability::measured);
  CHECK_FALSE(verdict.counts.opcodes.empty());
  // No module has a kernel of that name.
  const Counted none = by_driver(".entry k_elect_not(\n) {}");
  REQUIRE(none.evidence);
  REQUIRE(none.evidence->unavailable);
  CHECK(none.evidence->unavailable->kind == Kind::no_cubin);
}

TEST_CASE("counting: code that the driver assembled and nobody shows has no names") {
  const Counted counted = count(Does::right, [](CountJob& job, FakeCounter&) {
    job.candidate.modules[0].cubin.clear();
    job.candidate.modules[0].ptx = "//";
  });
  REQUIRE(counted.evidence);
  REQUIRE(counted.evidence->unavailable);
  CHECK(counted.evidence->unavailable->kind == Kind::no_cubin);
  CHECK(contains(counted.evidence->unavailable->reason, "ptxas"));
  CHECK(counted.launches == 0);
}

TEST_CASE("counting: a callback that fails is an error; so is a job that lacks what it asks for") {
  const Counted counted =
      count(Does::right, [](CountJob& job, FakeCounter&) { job.inputs = InputKind::callback; });
  REQUIRE_FALSE(counted.evidence);
  CHECK(counted.evidence.error().code == ErrorCode::invalid_argument);
  const Counted negative = count(Does::right, [](CountJob& job, FakeCounter&) { job.trial = -1; });
  REQUIRE_FALSE(negative.evidence);
}

TEST_CASE("counting: CUPTI counts on GPUs only") {
  FakeDevice device;
  LocalCallbacks none;
  const auto evidence =
      run_count(device, probe_job(cubin_fixture("async.sm_90a"), "k_elect", 1, 64, 1, 64), none);
  REQUIRE(evidence);
  REQUIRE(evidence->unavailable);
  CHECK(evidence->unavailable->kind == Kind::unsupported);
  CHECK(contains(evidence->unavailable->reason, "fake:0"));
}

TEST_CASE("matching records to kernels") {
  const auto match = [](const std::vector<SassRecord>& records, const std::vector<CountedModule>& modules,
                        const std::vector<std::pair<std::size_t, std::string>>& launched = {}) {
    CountEvidence evidence;
    match_records(records, modules, launched, evidence);
    return evidence;
  };
  // Two modules with a kernel of one name: their cubins' numbers decide.
  const std::vector<SassRecord> two = {{"k", 1, 0, 4, 128}, {"k", 2, 0, 8, 256}, {"k", 2, 16, 8, 200}};
  CountEvidence told = match(two, {{{"k"}, 2u}, {{"k"}, 1u}}, {{0, "k"}, {1, "k"}});
  REQUIRE(told.kernels.size() == 2);
  CHECK(told.kernels[0].records.size() == 2);
  CHECK(told.kernels[1].records.size() == 1);
  CHECK(told.kernels[1].records[0].warp_executions == 4);
  // Without them nothing is guessed.
  CountEvidence guessed = match(two, {{{"k"}, std::nullopt}, {{"k"}, std::nullopt}});
  REQUIRE(guessed.unavailable);
  CHECK(guessed.kernels.empty());
  CHECK(contains(guessed.unavailable->reason, "\"k\""));
  CHECK(match(two, {{{"k"}, std::nullopt}}).unavailable);
  // One launch that left no record.
  CountEvidence missing = match({{"other", 1, 0, 4, 128}}, {{{"k"}, 1u}}, {{0, "k"}});
  REQUIRE(missing.unavailable);
  CHECK(contains(missing.unavailable->reason, "other"));
  CHECK(match({{"k", 1, 0, 0, 0}}, {{{"k"}, 1u}}, {{0, "k"}}).unavailable);
  CHECK_FALSE(match({}, {{{"k"}, 1u}}).unavailable);
  // Records of one place add up.
  CHECK(match({{"k", 1, 0, 4, 128}, {"k", 1, 0, 1, 0}}, {{{"k"}, 1u}})
            .kernels.at(0)
            .records.at(0)
            .warp_executions == 5);
}

TEST_CASE("refusals say what to do") {
  const auto permission =
      cupti_refusal(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "cuptiSassMetricsSetConfig", "TEXT");
  CHECK(permission.kind == Kind::permission);
  CHECK(contains(permission.reason, "cuptiSassMetricsSetConfig: TEXT"));
  CHECK(contains(permission.reason, "CAP_SYS_ADMIN"));
  CHECK(contains(permission.reason, "NVreg_RestrictProfilingToAdminUsers=0"));
  CHECK(cupti_refusal(CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES, "c", "t").kind ==
        Kind::permission);
  const auto other = cupti_refusal(CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "c", "t");
  CHECK(other.kind == Kind::other_profiler);
  CHECK(contains(other.reason, "ncu"));
  CHECK(cupti_refusal(CUPTI_ERROR_HARDWARE_BUSY, "c", "t").kind == Kind::other_profiler);
  CHECK(cupti_refusal(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "c", "t").kind == Kind::unsupported);
  CHECK(cupti_refusal(CUPTI_ERROR_NOT_SUPPORTED, "c", "t").kind == Kind::unsupported);
  CHECK(cupti_refusal(CUPTI_ERROR_OUT_OF_MEMORY, "c", "t").kind == Kind::driver);
  CHECK(count_unavailable_name(Kind::permission) == "permission");
  CHECK(count_unavailable_name(Kind::other_profiler) == "other_profiler");
}

TEST_CASE("count jobs and evidence travel as messages") {
  CountRequest request{"cuda:GPU-1", "/opt/cuda", probe_job({1, 2, 3}, "k", 2, 64, 2, 64)};
  request.job.trial = 2;
  request.job.run_deadline_ns = std::uint64_t{1} << 60;
  request.job.judge_cubin = {9, 8};
  const auto sent = count_request_from(to_message(request));
  REQUIRE(sent);
  CHECK(sent->device == "cuda:GPU-1");
  CHECK(sent->cuda_home == "/opt/cuda");
  CHECK(sent->job.trial == 2);
  CHECK(sent->job.seed == 42);
  CHECK(sent->job.run_deadline_ns == std::uint64_t{1} << 60);
  CHECK(sent->job.judge_cubin == std::vector<std::uint8_t>{9, 8});
  CHECK(sent->job.candidate.modules.at(0).cubin == std::vector<std::uint8_t>{1, 2, 3});
  CHECK(sent->job.reference.kind == ReferenceKind::callback);
  CHECK(sent->job.workload.definition->outputs.at(0).name == "o");

  CountEvidence evidence;
  evidence.unavailable = {Kind::hang, "why"};
  evidence.method = "cupti_sass";
  evidence.kernels = {{1, "k", 0xfffffffe, {{16, ~std::uint64_t{0}, 5}}}};
  evidence.maps = {{1, "k", 64, 16384}, {0, "l", 128, std::nullopt}};
  evidence.other_functions = {"memset"};
  evidence.trial.emplace();
  evidence.trial->trial = 2;
  evidence.trial->fault = DeviceFault{};
  evidence.versions = {{"cupti", "1"}};
  evidence.stages = {{"run", 7}};
  const auto came = count_evidence_from(to_message(evidence));
  REQUIRE(came);
  REQUIRE(came->unavailable);
  CHECK(came->unavailable->kind == Kind::hang);
  CHECK(came->unavailable->reason == "why");
  REQUIRE(came->kernels.size() == 1);
  CHECK(came->kernels[0].module == 1);
  CHECK(came->kernels[0].cubin_crc == 0xfffffffe);
  CHECK(came->kernels[0].records.at(0).pc_offset == 16);
  CHECK(came->kernels[0].records.at(0).warp_executions == ~std::uint64_t{0});
  REQUIRE(came->maps.size() == 2);
  CHECK(came->maps[0].module == 1);
  CHECK(came->maps[0].symbol == "k");
  CHECK(came->maps[0].offset == 64);
  CHECK(came->maps[0].box_bytes == 16384u);
  CHECK(!came->maps[1].box_bytes);
  CHECK(came->other_functions == evidence.other_functions);
  CHECK(came->trial->fault);
  CHECK(came->versions == evidence.versions);
  CHECK_FALSE(count_request_from(to_message(evidence)));
  CHECK_FALSE(count_evidence_from({"counted", "{}", {}}));
}

TEST_CASE("options: which workloads are counted") {
  CHECK(EvaluateOptions{}.count_workloads == CountScope::first);
  CHECK(parse_evaluate_options(R"({"count_workloads": "all"})").value().count_workloads == CountScope::all);
  CHECK(parse_evaluate_options(R"({"count_workloads": "first"})").value().count_workloads ==
        CountScope::first);
  const auto bad = parse_evaluate_options(R"({"count_workloads": "some"})");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().where.pointer == "/count_workloads");
  CHECK_FALSE(parse_evaluate_options(R"({"count_workload": "all"})"));
}
