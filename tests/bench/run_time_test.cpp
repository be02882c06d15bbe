// The time stage on a fake device whose clock is a counter: what is timed, in which order, and that every
// timed run is verified.
#include "support/catch.hpp"
#include "support/gemm_case.hpp"

#include <ptxbench/bench.hpp>

#include <set>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

using Kernel = std::function<void(GemmCall&)>;

// A library whose kernel is a C++ function on the same device.
class FakeLibrary final : public LibraryBaseline {
 public:
  FakeLibrary(FakeDevice& device, Kernel kernel) : device_(device), kernel_(std::move(kernel)) {}
  Result<void> prepare(Device& device, const Workload& workload, const PlanBuffers&) override {
    REQUIRE(&device == &device_);
    m_ = workload.axis_value("M").value();
    n_ = workload.axis_value("N").value();
    k_ = workload.axis_value("K").value();
    device_.define("library", "gemm", {8, 8, 8, 4, 4, 4}, [this](FakeCall& call) {
      GemmCall g(call);
      kernel_(g);
    });
    PTXBENCH_TRY_ASSIGN(module_, device_.load({"library", {}, {}, {}}));
    return {};
  }
  std::string description() const override { return "fake library 1.0"; }
  Result<void> enqueue(const PlanBuffers& buffers) override {
    ++runs;
    std::vector<std::uint8_t> parameters(36);
    const std::uint64_t addresses[3] = {buffers.inputs[0].address, buffers.inputs[1].address,
                                        buffers.outputs[0].address};
    const auto m = static_cast<std::int32_t>(m_), n = static_cast<std::int32_t>(n_),
               k = static_cast<std::int32_t>(k_);
    std::memcpy(parameters.data(), addresses, 24);
    std::memcpy(parameters.data() + 24, &m, 4);
    std::memcpy(parameters.data() + 28, &n, 4);
    std::memcpy(parameters.data() + 32, &k, 4);
    DeviceLaunch launch;
    launch.module = module_;
    launch.symbol = "gemm";
    launch.parameters = parameters;
    PTXBENCH_TRY(device_.launch(launch));
    return {};
  }
  int runs = 0;

 private:
  FakeDevice& device_;
  Kernel kernel_;
  DeviceModule module_ = 0;
  std::int64_t m_ = 0, n_ = 0, k_ = 0;
};

// Counts what keeps a run cold.
class CountingDevice final : public FakeDevice {
 public:
  Result<void> reset_persisting_l2() override {
    REQUIRE_FALSE(gate_closed());
    ++resets;
    return {};
  }
  int resets = 0;
};

// A GPU that throttles when it is told to.
class FakeMonitor final : public GpuMonitor {
 public:
  std::string description() const override { return "fake monitor"; }
  std::uint32_t max_sm_mhz() const override { return 1980; }
  Result<GpuState> state() override {
    PTXBENCH_TRY_ASSIGN(const std::uint64_t bits, reasons());
    return GpuState{1700, 3201, 60, 500'000, bits};
  }
  Result<std::uint64_t> reasons() override {
    ++asked;
    if (broken) return make_error(ErrorCode::driver, "the monitor broke");
    return next ? next(asked) : 0x4;
  }
  void watch_others() override { watching = true; }
  Result<std::vector<OtherProcess>> others() override {
    REQUIRE(watching);
    return neighbours;
  }
  std::function<std::uint64_t(int)> next;
  std::vector<OtherProcess> neighbours;
  int asked = 0;
  bool watching = false, broken = false;
};

struct Setup {
  CountingDevice device;
  DefinitionPtr definition = gemm_definition(16, 64);
  TimeJob job;
  Kernel candidate = [](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    g.call.take(10'000);
  };
  Kernel library = [](GemmCall& g) {
    honest_gemm(g, dot_reversed);
    g.call.take(20'000);
  };

  Setup() {
    device.define("gemm.cu", "gemm", {8, 8, 8, 4, 4, 4}, [this](FakeCall& call) {
      GemmCall g(call);
      candidate(g);
    });
    device.define_global("gemm.cu", "state", std::vector<std::uint8_t>(64, 0));
    job.workload = gemm_workload(definition, 24);
    job.candidate = candidate_of("candidate", kGemmPlan, definition->name);
    job.seed = 7;
    job.pairs = 12;
    job.budget_ns = 60'000'000'000;
    job.target_width = 0;
  }
  TimeEvidence run(GpuMonitor* monitor = nullptr) {
    FakeLibrary fake(device, library);
    Result<TimeEvidence> evidence = run_time(device, job, &fake, nullptr, monitor, calibration);
    if (!evidence) FAIL(evidence.error().to_string());
    library_runs = fake.runs;
    CHECK(device.bad_releases == 0);
    CHECK_FALSE(device.gate_closed());
    return std::move(*evidence);
  }
  int library_runs = 0;
  BaselineCalibration* calibration = nullptr;
};

Verdict verdict_of(const TimeEvidence& evidence) {
  Verdict verdict;
  verdict.outcome = Outcome::judged;
  verdict.status = Status::passed;
  compose_timing(evidence, verdict);
  return verdict;
}

}  // namespace

TEST_CASE("times are those of the kernels alone, in alternating pairs") {
  Setup s;
  const TimeEvidence evidence = s.run();
  REQUIRE(evidence.pairs.size() == 12);
  for (std::size_t i = 0; i < evidence.pairs.size(); ++i) {
    CHECK(evidence.pairs[i].baseline_first == (i % 2 == 1));
    CHECK(evidence.pairs[i].candidate_ns ==
          11'000);  // the kernel and the launch, not the flush nor the poison
    CHECK(evidence.pairs[i].baseline_ns == 21'000);
  }
  CHECK(evidence.stop_reason == "pairs");
  const Verdict verdict = verdict_of(evidence);
  CHECK(verdict.status == Status::passed);
  CHECK(verdict.timing.state == Availability::measured);
  CHECK(verdict.timing.median_ns == 11'000);
  CHECK(verdict.timing.baseline_median_ns == 21'000);
  CHECK(*verdict.timing.speedup == Approx(21.0 / 11.0));
  CHECK(verdict.timing.speedup_low == Approx(21.0 / 11.0));
  CHECK(verdict.timing.baseline == "fake library 1.0");
  CHECK(verdict.timing.pairs == 12);
  CHECK_FALSE(verdict.timing.noise_floor);
}

TEST_CASE("no pair of buffer and contents is timed twice, and no result lies ready") {
  Setup s;
  std::vector<std::uint64_t> seen;
  s.candidate = [&](GemmCall& g) {
    std::uint64_t first = 0;
    std::memcpy(&first, g.x, 8);
    seen.push_back(first);
    for (std::int64_t i = 0; i < g.m * g.n; ++i) REQUIRE(g.y[i] == 0xffff);
    honest_gemm(g, dot_in_order);
  };
  const TimeEvidence evidence = s.run();
  CHECK(evidence.pairs.size() == 12);
  REQUIRE(seen.size() == 14);  // two warm-up pairs
  std::sort(seen.begin(), seen.end());
  CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("no result for its inputs lies ready when the candidate runs") {
  Setup s;
  std::set<std::uint16_t*> baselines;
  s.library = [&](GemmCall& g) {
    baselines.insert(g.y);
    honest_gemm(g, dot_in_order);
  };
  int found = 0;
  s.candidate = [&](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    for (const std::uint16_t* other : baselines)
      found += other != g.y && std::equal(g.y, g.y + g.m * g.n, other);
  };
  const TimeEvidence evidence = s.run();
  CHECK_FALSE(evidence.failure);
  CHECK(baselines.size() == 4);
  CHECK(found == 0);
}

TEST_CASE("pairs walk over a pool of addresses that candidate and baseline share") {
  Setup s;
  s.job.pairs = 24;
  std::set<std::uint16_t*> candidates, baselines;
  s.candidate = [&](GemmCall& g) {
    candidates.insert(g.y);
    honest_gemm(g, dot_in_order);
  };
  s.library = [&](GemmCall& g) {
    baselines.insert(g.y);
    honest_gemm(g, dot_in_order);
  };
  const TimeEvidence evidence = s.run();
  CHECK(candidates.size() == 4);
  CHECK(candidates == baselines);
  CHECK(evidence.method.find("4 buffer sets") != std::string::npos);
  CHECK(s.device.resets >= 2 * 26);  // before every timed run

  // Where memory is short there are two sets, one for each.
  Setup small;
  const std::uint64_t set = 24 * 64 * 2 + 16 * 64 * 2 + 24 * 16 * 2;
  small.device.mutable_info().limits.memory_bytes = 4 * 2 * set + 200'000;
  candidates.clear();
  small.candidate = s.candidate;
  CHECK_FALSE(small.run().failure);
  CHECK(candidates.size() >= 2);
}

TEST_CASE("where memory holds the candidate once only, nothing is timed on the baseline's buffers") {
  // A candidate that is right once and writes nothing after that: the baseline's result must never stand for its own.
  Setup s;
  s.job.candidate.solution.sources[0].content =
      R"json({"version": 1, "workspaces": [{"name": "big", "dtype": "uint8", "shape": [1000000], "init": "none"}],
              "steps": [{"kernel": "gemm", "grid": ["ceil_div(M, 16)"], "block": [128],
                         "args": [{"tensor": "X"}, {"tensor": "W"}, {"tensor": "Y"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]}]})json";
  s.device.mutable_info().limits.memory_bytes = 1'800'000;
  s.candidate = [](GemmCall&) {};
  const TimeEvidence evidence = s.run();
  CHECK(evidence.pairs.empty());
  CHECK(evidence.unavailable.find("does not hold what timing needs: 2 sets") != std::string::npos);
  const Verdict verdict = verdict_of(evidence);
  CHECK(verdict.timing.state == Availability::unavailable);
  CHECK(verdict.status == Status::passed);  // verification's word, which needs one set
  CHECK_FALSE(verdict.timing.speedup);
}

TEST_CASE("one that is right for the first launches and wrong later fails, whatever verification said") {
  for (const int good : {1, 5, 13}) {
    Setup s;
    int launches = 0;
    s.candidate = [&](GemmCall& g) {
      if (launches++ < good)
        honest_gemm(g, dot_in_order);
      else
        std::fill(g.y, g.y + g.m * g.n, std::uint16_t{0});
    };
    const TimeEvidence evidence = s.run();
    REQUIRE(evidence.failure);
    CHECK(evidence.failure->pair >= good - 2);
    CHECK(evidence.failure->pair < std::max(1, good + 6));  // one of every four is looked at, and the last
    const Verdict verdict = verdict_of(evidence);
    CHECK(verdict.status == Status::incorrect_numerical);
    CHECK(verdict.timing.state == Availability::unavailable);
    CHECK_FALSE(verdict.timing.speedup);
    REQUIRE(verdict.find_finding("wrong_in_timed_run") != nullptr);
  }
}

TEST_CASE("a quarter of the pairs is verified whole, by chance, and the last") {
  Setup s;
  s.job.pairs = 40;
  std::set<int> seen;
  for (const std::uint64_t seed : {1, 2, 3}) {
    s.job.seed = seed;
    const TimeEvidence evidence = s.run();
    CHECK(evidence.pairs_verified >= 10);
    CHECK(evidence.pairs_verified <= 12);
    seen.insert(s.library_runs);  // verifying where the baseline went first runs it again
  }
  CHECK(seen.size() > 1);
}

TEST_CASE("small errors in timed runs are caught too") {
  Setup s;
  s.definition = gemm_definition(16, 5120);
  s.job.workload = gemm_workload(s.definition, 24);
  int launches = 0;
  s.candidate = [&](GemmCall& g) { honest_gemm(g, launches++ < 4 ? dot_in_order : dot_bf16_accumulate); };
  const TimeEvidence evidence = s.run();
  REQUIRE(evidence.failure);
  CHECK(evidence.failure->pair >= 2);
  CHECK(verdict_of(evidence).status == Status::incorrect_numerical);
}

TEST_CASE("one that writes nothing in timed runs, or beside its buffers, or into its inputs, fails") {
  const auto from_third = [](const Kernel& bad, bool once) {
    Setup s;
    int launches = 0;
    s.candidate = [&](GemmCall& g) {
      const int launch = launches++;
      if (launch < 3 || (once && launch > 3)) return honest_gemm(g, dot_in_order);
      bad(g);
    };
    return verdict_of(s.run());
  };
  const Verdict nothing = from_third([](GemmCall&) {}, false);
  CHECK(nothing.status == Status::incorrect_numerical);
  CHECK(nothing.integrity == Integrity::clean);
  // Red zones are looked at after every run.
  const Verdict beside = from_third(
      [](GemmCall& g) {
        honest_gemm(g, dot_in_order);
        g.y[g.m * g.n] = 1;
      },
      true);
  CHECK(beside.status == Status::incorrect_numerical);
  CHECK(beside.integrity == Integrity::violated);
  CHECK(beside.find_finding("red_zone") != nullptr);
  const Verdict clobber = from_third(
      [](GemmCall& g) {
        honest_gemm(g, dot_in_order);
        g.x[3] ^= 1;
      },
      false);
  CHECK(clobber.integrity == Integrity::violated);
  CHECK(clobber.find_finding("input_clobbered") != nullptr);
}

TEST_CASE("a fault or a hang in a timed run decides the status") {
  for (const auto& [kind, status] : {std::pair{DeviceFault::Kind::illegal_address, Status::runtime_error},
                                     std::pair{DeviceFault::Kind::timeout, Status::timeout}}) {
    Setup s;
    int launches = 0;
    s.candidate = [&, kind = kind](GemmCall& g) {
      honest_gemm(g, dot_in_order);
      if (launches++ == 5) g.call.fail({kind, "FAULT", 1, true, "it failed", {}});
    };
    const TimeEvidence evidence = s.run();
    REQUIRE(evidence.fault);
    CHECK(evidence.fault_pair == 3);
    CHECK(evidence.device_lost);
    const Verdict verdict = verdict_of(evidence);
    CHECK(verdict.status == status);
    CHECK(verdict.timing.state == Availability::unavailable);
  }
}

TEST_CASE("globals are restored before every timed run: a memory of the past gains nothing") {
  Setup s;
  int remembered = 0;
  s.candidate = [&](GemmCall& g) {
    auto* memory = static_cast<std::uint8_t*>(
        g.call.device.host_view(g.call.device.global(g.call.launch.module, "state")->address));
    remembered += memory[0];
    memory[0] = 1;
    honest_gemm(g, dot_in_order);
  };
  CHECK_FALSE(s.run().failure);
  CHECK(remembered == 0);
}

TEST_CASE("a clearly slower candidate ends the pairs early") {
  Setup s;
  s.job.pairs = 100;
  s.job.stop_if_slower_than = 0.9;
  s.candidate = [](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    g.call.take(60'000);
  };
  const TimeEvidence evidence = s.run();
  CHECK(evidence.stop_reason == "slower");
  CHECK(evidence.pairs.size() == 6);
  const Verdict verdict = verdict_of(evidence);
  CHECK(verdict.status == Status::passed);
  CHECK(*verdict.timing.speedup == Approx(21.0 / 61.0));
}

TEST_CASE("the noise floor comes from the baseline against itself, and makes ties") {
  Setup s;
  s.job.noise = true;
  s.job.noise_pairs = 9;
  int turn = 0;
  s.library = [&](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    g.call.take(turn++ % 2 == 0 ? 20'000 : 20'400);
  };
  s.candidate = [](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    g.call.take(20'000);
  };
  const TimeEvidence evidence = s.run();
  CHECK(evidence.noise.size() == 9);
  REQUIRE(noise_floor(evidence.noise));
  const Verdict verdict = verdict_of(evidence);
  REQUIRE(verdict.timing.noise_floor);
  CHECK(*verdict.timing.noise_floor == *noise_floor(evidence.noise));
}

TEST_CASE("other baselines: a fixed time, none, a solution, and a library that is missing") {
  Setup fixed;
  fixed.job.baseline.kind = BaselineKind::fixed_time;
  fixed.job.baseline.fixed_ns = 22'000;
  const Verdict by_time = verdict_of(fixed.run());
  CHECK(*by_time.timing.speedup == Approx(2.0));
  CHECK(by_time.timing.speedup_low == Approx(2.0));
  CHECK(by_time.timing.baseline_samples_ns.empty());
  CHECK(fixed.library_runs == 0);

  Setup none;
  none.job.baseline.kind = BaselineKind::none;
  const Verdict without = verdict_of(none.run());
  CHECK(without.timing.state == Availability::measured);
  CHECK_FALSE(without.timing.speedup);
  CHECK(without.timing.median_ns == 11'000);

  Setup solution;
  solution.device.define("other.cu", "gemm", {8, 8, 8, 4, 4, 4}, [](FakeCall& call) {
    GemmCall g(call);
    honest_gemm(g, dot_split_k);
    call.take(43'000);
  });
  solution.job.baseline.kind = BaselineKind::solution;
  solution.job.baseline.solution =
      candidate_of("incumbent", kGemmPlan, solution.definition->name, "other.cu");
  const Verdict by_solution = verdict_of(solution.run());
  CHECK(*by_solution.timing.speedup == Approx(4.0));
  CHECK(by_solution.timing.baseline == "solution incumbent");

  Setup missing;
  const auto evidence = run_time(missing.device, missing.job, nullptr);
  REQUIRE(evidence);
  const Verdict lacking = verdict_of(*evidence);
  CHECK(lacking.timing.state == Availability::measured);
  CHECK_FALSE(lacking.timing.speedup);
  CHECK(lacking.timing.reason.find("no speedup") != std::string::npos);
}

TEST_CASE("without a baseline outputs are compared with the reference") {
  Setup s;
  s.job.baseline.kind = BaselineKind::none;
  int launches = 0;
  s.candidate = [&](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    if (launches++ >= 9) g.y[5] ^= 0x4000;
  };
  const TimeEvidence evidence = s.run();
  REQUIRE(evidence.failure);
  CHECK(evidence.failure->pair >= 7);
  REQUIRE(evidence.failure->outputs.size() == 1);
  CHECK(evidence.failure->outputs[0].first_wrong == 5);
}

TEST_CASE("what is known of a library's own outputs serves later timings, for the comparator that judged them") {
  Setup s;
  s.definition = gemm_definition(16, 5120);
  s.job.workload = gemm_workload(s.definition, 24);
  BaselineCalibration kept;
  s.calibration = &kept;
  s.run();
  REQUIRE(kept.done);
  CHECK_FALSE(kept.wrong);
  REQUIRE(kept.allowances.size() == 1);
  // Only with what is kept is a library that has become wrong believed; the candidate is then held against the reference.
  s.library = [](GemmCall& g) {
    std::fill(g.y, g.y + g.m * g.n, std::uint16_t{0});
    g.call.take(20'000);
  };
  CHECK_FALSE(s.run().failure);
  CHECK(kept.done);
  // A wrong candidate is caught by it.
  Setup wrong;
  wrong.definition = s.definition;
  wrong.job.workload = s.job.workload;
  wrong.calibration = &kept;
  wrong.candidate = [](GemmCall& g) { honest_gemm(g, dot_bf16_accumulate); };
  CHECK(wrong.run().failure);
  // By another comparator it is judged anew.
  Setup other;
  other.calibration = &kept;
  other.job.comparator.kind = ComparatorKind::tolerance;
  CHECK_FALSE(other.run().failure);
  CHECK(kept.comparator == other.job.comparator);
  CHECK_FALSE(kept.allowances.at(0).by_model);
}

TEST_CASE("a baseline that is wrong itself is no yardstick, and fails no candidate") {
  Setup s;
  s.library = [](GemmCall& g) {
    std::fill(g.y, g.y + g.m * g.n, std::uint16_t{0});
    g.call.take(20'000);
  };
  const TimeEvidence evidence = s.run();
  CHECK_FALSE(evidence.failure);
  CHECK(evidence.pairs.size() == 12);
  CHECK(evidence.baseline_description.find("beyond the limits") != std::string::npos);
  CHECK(s.library_runs == 14);  // of 2 warm-up and 12 timed pairs: none for a check that does not look at it
}

TEST_CASE("a narrow interval ends the pairs, and the noise pairs") {
  Setup s;
  s.job.pairs = 100;
  s.job.target_width = 0.003;
  s.job.noise = true;
  const TimeEvidence steady = s.run();
  CHECK(steady.stop_reason == "target_width");
  CHECK(steady.pairs.size() == 10);
  CHECK(steady.noise.size() == 10);
  CHECK(verdict_of(steady).timing.stop_rule == "target_width");

  Setup noisy;
  noisy.job.pairs = 30;
  noisy.job.target_width = 0.003;
  int turn = 0;
  noisy.candidate = [&](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    g.call.take(turn++ % 3 == 0 ? 10'000 : 10'500);
  };
  CHECK(noisy.run().stop_reason == "pairs");

  // Without a baseline it is the candidate's own times that must agree.
  Setup alone;
  alone.job.baseline.kind = BaselineKind::none;
  alone.job.target_width = 0.003;
  CHECK(alone.run().stop_reason == "target_width");
}

TEST_CASE("pairs under throttling are left out, reported, and bounded") {
  Setup s;
  FakeMonitor monitor;
  // The sixth answer is of the fifth pair's end: it and the next one are out.
  monitor.next = [](int asked) { return asked == 6 ? 0x44ull : 0x4ull; };
  const TimeEvidence evidence = s.run(&monitor);
  CHECK(evidence.pairs_discarded == 2);
  CHECK(evidence.pairs.size() == 12);
  const Verdict verdict = verdict_of(evidence);
  CHECK(verdict.timing.state == Availability::measured);
  CHECK(verdict.timing.pairs_discarded == 2);
  CHECK(verdict.timing.gpu.state == Availability::measured);
  CHECK(verdict.timing.gpu.source == "fake monitor");
  CHECK(verdict.timing.gpu.sm_mhz_low == 1700);
  CHECK(verdict.timing.gpu.limited_by == std::vector<std::string>{"sw_power_cap", "hw_thermal_slowdown"});

  Setup hot;
  FakeMonitor always;
  always.next = [](int) { return 0x80ull; };
  const TimeEvidence none = hot.run(&always);
  CHECK(none.pairs.empty());
  CHECK(none.pairs_discarded == 12);
  CHECK(none.stop_reason == "throttled");
  const Verdict unknown = verdict_of(none);
  CHECK(unknown.status == Status::passed);
  CHECK(unknown.timing.state == Availability::inconclusive);
  CHECK_FALSE(unknown.timing.speedup);
}

TEST_CASE("noise pairs under throttling are left out too, and bounded") {
  Setup s;
  s.job.pairs = 0;
  s.job.noise = true;
  s.job.noise_pairs = 8;
  FakeMonitor monitor;
  monitor.next = [](int asked) { return asked == 5 ? 0x44ull : 0x4ull; };
  const TimeEvidence evidence = s.run(&monitor);
  CHECK(evidence.noise.size() == 8);
  CHECK(s.library_runs == 2 * (1 + 8 + 2));
  CHECK(evidence.gpu.samples > 0);
  int first = 0;
  for (const TimedPair& pair : evidence.noise) first += pair.baseline_first ? 1 : 0;
  CHECK(first == 4);

  Setup hot;
  hot.job.noise = true;
  hot.job.noise_pairs = 8;
  FakeMonitor later;  // once the pairs are timed
  later.next = [&](int asked) { return asked > 20 ? 0x80ull : 0x4ull; };
  const TimeEvidence none = hot.run(&later);
  CHECK(none.pairs.size() == 12);
  CHECK(none.pairs_discarded == 0);
  CHECK(none.noise.size() < 8);
}

TEST_CASE(
    "another process that computes makes a timing inconclusive; a monitor that breaks or lacks is said") {
  Setup s;
  FakeMonitor monitor;
  monitor.neighbours = {{4711, 37}};
  const Verdict shared = verdict_of(s.run(&monitor));
  CHECK(shared.status == Status::passed);
  CHECK(shared.timing.state == Availability::inconclusive);
  CHECK(shared.timing.reason.find("4711 (37% of the SMs)") != std::string::npos);
  CHECK(shared.timing.gpu.other_processes == std::vector<int>{4711});

  Setup broken;
  FakeMonitor breaks;
  breaks.broken = true;
  const Verdict half = verdict_of(broken.run(&breaks));
  CHECK(half.timing.state == Availability::measured);
  CHECK(half.timing.gpu.state == Availability::unavailable);
  CHECK(half.timing.gpu.reason == "the monitor broke");

  Setup blind;
  CHECK(verdict_of(blind.run()).timing.gpu.state == Availability::unavailable);
}

TEST_CASE("a warm L2 is labelled") {
  Setup s;
  s.job.l2 = L2State::warm;
  const Verdict verdict = verdict_of(s.run());
  CHECK(verdict.timing.l2 == "warm");
  CHECK(verdict.timing.method.find("warm L2") != std::string::npos);
  Setup cold;
  CHECK(verdict_of(cold.run()).timing.l2 == "cold");
}

TEST_CASE(
    "the published protocol: trials of many runs on the same tensors, the baseline in a block of its own") {
  Setup s;
  s.device.mutable_info().limits.l2_bytes = 4096;
  s.job.protocol = kPublished;
  s.job.comparator = {ComparatorKind::tolerance, {1e-2, 1e-2, true}, {}};
  std::vector<char> order;
  std::set<std::uint64_t> contents;
  s.candidate = [&](GemmCall& g) {
    order.push_back('c');
    std::uint64_t first = 0;
    std::memcpy(&first, g.x, 8);
    contents.insert(first);
    honest_gemm(g, dot_in_order);
    g.call.take(order.size() % 60 == 0 ? 90'000 : 10'000);  // an outlier in each block
  };
  s.library = [&](GemmCall& g) {
    order.push_back('b');
    honest_gemm(g, dot_reversed);
    g.call.take(20'000);
  };
  const TimeEvidence evidence = s.run();
  REQUIRE(evidence.trials.size() == 3);
  CHECK(evidence.trials[0].candidate_ns.size() == 50);
  CHECK(evidence.trials[0].baseline_ns.size() == 50);
  CHECK(evidence.pairs.empty());
  CHECK(contents.size() == 3);
  REQUIRE(order.size() == 360);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == (i / 60 % 2 == 0 ? 'c' : 'b'));
  const Verdict verdict = verdict_of(evidence);
  CHECK(verdict.timing.state == Availability::measured);
  CHECK(verdict.timing.median_ns == 11'000);
  CHECK(verdict.timing.baseline_median_ns == 21'000);
  CHECK(*verdict.timing.speedup == Approx(21.0 / 11.0));
  CHECK(std::isnan(verdict.timing.speedup_low));
  CHECK(verdict.timing.trials == 3);
  CHECK(verdict.timing.stop_rule == "trials");
  CHECK(verdict.timing.samples_ns.size() == 150);

  Setup wrong;
  wrong.device.mutable_info().limits.l2_bytes = 4096;
  wrong.job.protocol = kPublished;
  wrong.job.comparator = s.job.comparator;
  wrong.candidate = [](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    g.y[7] ^= 0x4000;
  };
  const TimeEvidence failed = wrong.run();
  REQUIRE(failed.failure);
  CHECK(failed.failure->outputs[0].first_wrong == 7);
  CHECK(verdict_of(failed).status == Status::incorrect_numerical);

  Setup mixed;
  mixed.job.protocol = kPublished;
  mixed.job.l2 = L2State::warm;
  CHECK_FALSE(run_time(mixed.device, mixed.job, nullptr));
  mixed.job.protocol = "fast";
  CHECK(run_time(mixed.device, mixed.job, nullptr).error().message.find("ptxbench-published") !=
        std::string::npos);
}
