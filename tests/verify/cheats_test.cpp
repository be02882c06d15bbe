// Planted cheats and honest kernels of tests/verify: every kind must get its verdict.
#include "support/catch.hpp"
#include "support/gemm_case.hpp"

#include <map>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

using Kernel = std::function<void(GemmCall&)>;

struct Judged {
  VerifyEvidence evidence;
  Verdict verdict;
};

class GemmBench {
 public:
  GemmBench(std::int64_t m, std::int64_t n, std::int64_t k, DType out = DType::bfloat16)
      : out_(out),
        definition_(gemm_definition(n, k, DType::bfloat16, out)),
        workload_(gemm_workload(definition_, m)) {}

  Judged judge(Kernel kernel, const std::function<void(VerifyJob&)>& change = {}) {
    FakeDevice device;
    device.define("gemm.cu", "gemm", {8, 8, 8, 4, 4, 4}, [&](FakeCall& call) {
      GemmCall g(call);
      g.wide = out_ == DType::float32;
      kernel(g);
    });
    device.define_global("gemm.cu", "state", std::vector<std::uint8_t>(1024, 0));
    VerifyJob job;
    job.workload = workload_;
    job.candidate = candidate_of("candidate", kGemmPlan, definition_->name);
    job.seed = 42;
    if (change) change(job);
    LocalCallbacks none;
    Result<VerifyEvidence> evidence = run_verify(device, job, none);
    if (!evidence) FAIL(evidence.error().to_string());
    Judged judged{std::move(*evidence), {}};
    compose_correctness(judged.evidence, judged.verdict);
    CHECK(device.bad_releases == 0);
    CHECK(device.live_allocations() == 0);
    return judged;
  }
  // The bytes of the candidate's global in this launch.
  static std::uint8_t* state(GemmCall& g) {
    return static_cast<std::uint8_t*>(
        g.call.device.host_view(g.call.device.global(g.call.launch.module, "state").value().address));
  }

 private:
  DType out_;
  DefinitionPtr definition_;
  Workload workload_;
};

Kernel sums(Dot dot) {
  return [dot](GemmCall& g) { honest_gemm(g, dot); };
}

std::string findings_of(const Verdict& verdict) {
  std::string text;
  for (const Finding& f : verdict.findings) text += f.code + ": " + f.message + "\n";
  return text;
}

}  // namespace

TEST_CASE("honest sums of different order pass") {
  const std::map<std::string, Dot> honest = {{"in order", dot_in_order},
                                             {"reversed", dot_reversed},
                                             {"split-K", dot_split_k},
                                             {"pairwise", dot_pairwise},
                                             {"tensor core", dot_tensor_core}};
  for (const auto& [m, n, k] :
       {std::tuple{48, 40, 5120}, {33, 17, 1000}, {1, 1, 64}, {64, 64, 1}, {5, 3, 7}, {1, 128, 2048}}) {
    GemmBench bench(m, n, k);
    for (const auto& [name, dot] : honest) {
      const Judged judged = bench.judge(sums(dot));
      INFO(name << " " << m << "x" << n << "x" << k << "\n" << findings_of(judged.verdict));
      CHECK(judged.verdict.status == Status::passed);
      CHECK(judged.verdict.integrity == Integrity::clean);
      REQUIRE(judged.verdict.correctness.outputs.size() == 1);
      const OutputCorrectness& y = judged.verdict.correctness.outputs[0];
      CHECK(y.ok);
      CHECK(y.elements == static_cast<std::uint64_t>(m * n));
      CHECK(y.elements_checked == y.elements);
      CHECK(judged.verdict.correctness.trials == 3);
      CHECK(judged.verdict.correctness.trials_failed == 0);
    }
  }
}

TEST_CASE("honest sums pass where the output is fp32, where their errors differ most") {
  for (const std::int64_t k : {64, 512, 5120, 21504}) {
    GemmBench bench(16, 16, k, DType::float32);
    for (const auto& [name, dot] : std::map<std::string, Dot>{
             {"reversed", dot_reversed}, {"pairwise", dot_pairwise}, {"tensor core", dot_tensor_core}}) {
      const Judged judged = bench.judge(sums(dot));
      INFO(name << " " << k << "\n" << findings_of(judged.verdict));
      CHECK(judged.verdict.status == Status::passed);
    }
    const Judged cheap = bench.judge(sums(dot_fp16_chunks));
    INFO("fp16 chunks " << k);
    CHECK(cheap.verdict.status == Status::incorrect_numerical);
  }
}

TEST_CASE("cheap arithmetic is caught where a flat tolerance would pass it") {
  const std::map<std::string, Dot> cheap = {
      {"bf16 accumulation", dot_bf16_accumulate},  {"bf16 chunks", dot_bf16_chunks},
      {"bf16 split-K of four", dot_bf16_split<4>}, {"bf16 split-K of two", dot_bf16_split<2>},
      {"fp16 accumulators", dot_fp16_accumulate},  {"fp8 products", dot_fp8}};
  for (const std::int64_t k : {512, 5120}) {
    GemmBench bench(48, 40, k);
    for (const auto& [name, dot] : cheap) {
      const Judged judged = bench.judge(sums(dot));
      INFO(name << " " << k << "\n" << findings_of(judged.verdict));
      CHECK(judged.verdict.status == Status::incorrect_numerical);
      CHECK(judged.verdict.find_finding("wrong_result") != nullptr);
      CHECK(judged.verdict.integrity == Integrity::clean);
    }
  }
}

TEST_CASE("a kernel that writes nothing is caught, and told so") {
  const Judged judged = GemmBench(16, 16, 64).judge([](GemmCall&) {});
  CHECK(judged.verdict.status == Status::incorrect_numerical);
  const Finding* finding = judged.verdict.find_finding("never_written");
  REQUIRE(finding != nullptr);
  CHECK(finding->message.find("nothing was written") != std::string::npos);
  CHECK(judged.verdict.correctness.outputs[0].elements_unwritten == 256);
  CHECK(judged.verdict.correctness.trials_failed == 3);
}

TEST_CASE("half writers are caught with the first wrong index") {
  GemmBench bench(16, 24, 64);
  const auto without = [](std::int64_t from_row, std::int64_t from_column) {
    return [=](GemmCall& g) {
      std::vector<std::uint16_t> before(g.y, g.y + g.m * g.n);
      honest_gemm(g, dot_in_order);
      for (std::int64_t i = 0; i < g.m; ++i)
        for (std::int64_t j = 0; j < g.n; ++j)
          if (i >= from_row && j >= from_column)
            g.y[i * g.n + j] = before[static_cast<std::size_t>(i * g.n + j)];
    };
  };
  const Judged last = bench.judge(without(15, 23));
  CHECK(last.verdict.status == Status::incorrect_numerical);
  CHECK(last.verdict.find_finding("never_written") != nullptr);
  CHECK(last.verdict.correctness.outputs[0].first_wrong_index == std::vector<std::int64_t>{15, 23});
  CHECK(last.verdict.correctness.outputs[0].elements_unwritten == 1);
  CHECK(last.verdict.correctness.outputs[0].elements_wrong == 1);
  const Judged tile = bench.judge(without(8, 16));
  CHECK(tile.verdict.status == Status::incorrect_numerical);
  CHECK(tile.verdict.correctness.outputs[0].first_wrong_index == std::vector<std::int64_t>{8, 16});
  CHECK(tile.verdict.correctness.outputs[0].elements_unwritten == 64);
}

TEST_CASE("outputs that ignore the inputs are caught") {
  GemmBench bench(16, 16, 256);
  for (const float value : {0.0f, 1.0f, -3.5f}) {
    const Judged judged = bench.judge([value](GemmCall& g) {
      for (std::int64_t i = 0; i < g.m * g.n; ++i) g.y[i] = GemmCall::narrow(value);
    });
    CHECK(judged.verdict.status == Status::incorrect_numerical);
    CHECK(judged.verdict.find_finding("never_written") == nullptr);
  }
}

TEST_CASE("a right result that is scaled by a little is caught by its slope") {
  // Half an ulp at most for each element, all in one direction.
  const Judged judged = GemmBench(96, 96, 64).judge([](GemmCall& g) {
    honest_gemm(g, [](const auto& a, const auto& b) { return dot_in_order(a, b) * 1.001f; });
  });
  INFO(findings_of(judged.verdict));
  CHECK(judged.verdict.status == Status::incorrect_numerical);
}

TEST_CASE("one that changes an input is caught, and the reference is made from the true one") {
  GemmBench bench(16, 16, 64);
  const Judged zeroed = bench.judge([](GemmCall& g) {
    std::fill(g.x, g.x + g.m * g.k, std::uint16_t{0});
    honest_gemm(g, dot_in_order);
  });
  CHECK(zeroed.verdict.status == Status::incorrect_numerical);
  CHECK(zeroed.verdict.integrity == Integrity::violated);
  const Finding* finding = zeroed.verdict.find_finding("input_clobbered");
  REQUIRE(finding != nullptr);
  CHECK(finding->message.find("input X") != std::string::npos);
  CHECK(zeroed.verdict.find_finding("wrong_result") != nullptr);
  // Also where the result is right.
  const Judged after = bench.judge([](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    g.w[g.n * g.k - 1] ^= 1;
  });
  CHECK(after.verdict.status == Status::incorrect_numerical);
  CHECK(after.verdict.integrity == Integrity::violated);
  CHECK(after.verdict.find_finding("wrong_result") == nullptr);
  REQUIRE(!after.evidence.trials[0].violations.empty());
  CHECK(after.evidence.trials[0].violations[0].first_offset == (16 * 64 - 1) * 2);
}

TEST_CASE("writes beside a buffer are caught with tensor and offset") {
  for (const std::int64_t offset :
       {std::int64_t{-2}, std::int64_t{16 * 15 * 2}, std::int64_t{-1024}, std::int64_t{16 * 15 * 2 + 1023}}) {
    const Judged judged = GemmBench(16, 15, 64).judge([offset](GemmCall& g) {
      honest_gemm(g, dot_in_order);
      reinterpret_cast<std::uint8_t*>(g.y)[offset] ^= 0x10;
    });
    INFO(offset);
    CHECK(judged.verdict.status == Status::incorrect_numerical);
    CHECK(judged.verdict.integrity == Integrity::violated);
    REQUIRE(!judged.evidence.trials[0].violations.empty());
    const IntegrityViolation& violation = judged.evidence.trials[0].violations[0];
    CHECK(violation.kind == IntegrityViolation::Kind::red_zone);
    CHECK(violation.tensor == "Y");
    CHECK(violation.first_offset == offset);
    CHECK(violation.bytes == 1);
    CHECK(judged.verdict.find_finding("red_zone") != nullptr);
  }
}

TEST_CASE("a write beside a workspace is caught") {
  FakeDevice device;
  const DefinitionPtr definition = gemm_definition(8, 32);
  device.define("gemm.cu", "gemm", {8, 8, 8, 8, 4, 4, 4},
                [](FakeCall& call) { call.pointer<std::uint8_t>(3)[64] = 1; });
  VerifyJob job;
  job.workload = gemm_workload(definition, 8);
  job.candidate = candidate_of(
      "c", R"({"version": 1, "workspaces": [{"name": "tickets", "dtype": "uint8", "shape": [64], "init": 0}],
    "steps": [{"kernel": "gemm", "grid": [1], "block": [32], "args": [{"tensor": "X"}, {"tensor": "W"}, {"tensor": "Y"},
    {"workspace": "tickets"}, {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]}]})",
      definition->name);
  LocalCallbacks none;
  const auto evidence = run_verify(device, job, none);
  REQUIRE(evidence);
  REQUIRE(!evidence->trials[0].violations.empty());
  CHECK(evidence->trials[0].violations[0].tensor == "workspace tickets");
  CHECK(evidence->trials[0].violations[0].first_offset == 64);
}

TEST_CASE("one that skips work by the inputs' structure fails on a draw without it") {
  GemmBench bench(128, 128, 256);
  // Assumes that whole blocks of X are zero wherever their first element is.
  const Judged skipper = bench.judge([](GemmCall& g) {
    honest_gemm(g, [](const std::vector<float>& a, const std::vector<float>& b) {
      float sum = 0;
      for (std::size_t i = 0; i < a.size(); i += 64) {
        if (std::abs(a[i]) < 0.05f) continue;
        for (std::size_t j = i; j < i + 64; ++j) sum += a[j] * b[j];
      }
      return sum;
    });
  });
  CHECK(skipper.verdict.status == Status::incorrect_numerical);
  // Drops the last term of K.
  const Judged tail = bench.judge([](GemmCall& g) {
    honest_gemm(g, [](std::vector<float> a, const std::vector<float>& b) {
      a.back() = 0;
      return dot_in_order(a, b);
    });
  });
  CHECK(tail.verdict.status == Status::incorrect_numerical);
  // Loses one term in one output: only the exact draw can see it, and does.
  bool lost = false;
  const Judged one = bench.judge([&](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    for (std::int64_t k = 0; k < g.k; ++k) {
      const float term = GemmCall::widen(g.x[k]) * GemmCall::widen(g.w[k]);
      if (term != 1.0f) continue;
      g.y[0] = GemmCall::narrow(GemmCall::widen(g.y[0]) - term);
      lost = true;
      break;
    }
  });
  CHECK(lost);
  CHECK(one.verdict.status == Status::incorrect_numerical);
  CHECK(one.verdict.correctness.trials_failed == 1);
  CHECK(one.verdict.correctness.outputs[0].max_limit == 0);
  CHECK(one.verdict.correctness.outputs[0].elements_wrong == 1);
  // The same inputs give the same wrong result each time, and the verdict says so.
  REQUIRE(one.evidence.repeated);
  CHECK(one.evidence.repeated->runs == one.evidence.repeated->wrong);
  CHECK(findings_of(one.verdict).find("input_dependent: 1 of 3 trials are wrong") != std::string::npos);
  CHECK(findings_of(one.verdict).find("non_deterministic") == std::string::npos);
}

TEST_CASE("one that is wrong now and then is called non-deterministic, with k and n") {
  GemmBench bench(16, 16, 64);
  int launches = 0;
  const Judged racer = bench.judge([&](GemmCall& g) {
    honest_gemm(g, dot_in_order);
    if (launches++ % 3 == 1) g.y[5] = GemmCall::narrow(1000.0f);
  });
  CHECK(racer.verdict.status == Status::incorrect_numerical);
  CHECK(racer.verdict.correctness.trials_failed == 1);
  REQUIRE(racer.evidence.repeated);
  CHECK(racer.evidence.repeated->wrong < racer.evidence.repeated->runs);
  CHECK(findings_of(racer.verdict).find("non_deterministic: 1 of 3 trials are wrong; trial 1, run 4 times more on the same inputs, "
                                        "was wrong ") != std::string::npos);
  // Wrong in every trial: nothing to repeat.
  const Judged always = bench.judge([](GemmCall& g) { g.y[0] = GemmCall::narrow(7.0f); });
  CHECK_FALSE(always.evidence.repeated);
}

TEST_CASE("a self-resetting counter passes; one that relies on its past fails") {
  GemmBench bench(16, 16, 64);
  const Judged resetting = bench.judge([](GemmCall& g) {
    std::uint8_t* counter = GemmBench::state(g);
    ++counter[0];
    if (counter[0] == 1) honest_gemm(g, dot_in_order);
    counter[0] = 0;
  });
  CHECK(resetting.verdict.status == Status::passed);
  // Never resets: right all the same, because globals are restored before every run.
  const Judged dirty = bench.judge([](GemmCall& g) {
    std::uint8_t* counter = GemmBench::state(g);
    if (counter[0]++ == 0) honest_gemm(g, dot_in_order);
  });
  CHECK(dirty.verdict.status == Status::passed);
}

TEST_CASE("a memoiser finds an empty memory, addresses that differ and contents that differ") {
  std::vector<std::uint64_t> addresses;
  std::vector<std::uint64_t> firsts;
  int remembered = 0;
  const Judged judged = GemmBench(16, 16, 64).judge([&](GemmCall& g) {
    std::uint8_t* memory = GemmBench::state(g);
    remembered += memory[0] != 0;
    memory[0] = 1;
    addresses.push_back(reinterpret_cast<std::uint64_t>(g.y));
    std::uint64_t first = 0;
    std::memcpy(&first, g.x, 8);
    firsts.push_back(first);
    honest_gemm(g, dot_in_order);
  });
  CHECK(judged.verdict.status == Status::passed);
  CHECK(remembered == 0);
  REQUIRE(addresses.size() == 3);
  CHECK(addresses[0] == addresses[1]);  // one trial reuses the addresses of the one before
  CHECK(addresses[1] != addresses[2]);
  CHECK(firsts[0] != firsts[1]);
  CHECK(firsts[1] != firsts[2]);
  CHECK(judged.evidence.trials[1].reused_addresses);
  CHECK(judged.evidence.trials[0].poison != judged.evidence.trials[1].poison);
}

TEST_CASE("a result that is nowhere in memory cannot be copied") {
  // Looks at every allocation of the device for what it should have computed.
  const Judged judged = GemmBench(16, 16, 64).judge([](GemmCall& g) {
    for (std::int64_t i = 0; i < g.m * g.n; ++i) {
      // What is in the output's place is poison, not a result.
      const std::uint16_t there = g.y[i];
      CHECK((there == 0xffff || there == 0x5b5b));
    }
    honest_gemm(g, dot_in_order);
  });
  CHECK(judged.verdict.status == Status::passed);
}

TEST_CASE("faults end the trials and decide the status") {
  GemmBench bench(16, 16, 64);
  int launches = 0;
  const auto faulty = [&](DeviceFault::Kind kind, bool sticky) {
    launches = 0;
    return bench.judge([&, kind, sticky](GemmCall& g) {
      ++launches;
      honest_gemm(g, dot_in_order);
      if (launches == 2) g.call.fail({kind, "CUDA_ERROR_SOMETHING", 700, sticky, "the kernel failed", 0});
    });
  };
  const Judged crash = faulty(DeviceFault::Kind::illegal_address, true);
  CHECK(crash.verdict.status == Status::runtime_error);
  CHECK(crash.verdict.find_finding("illegal_address") != nullptr);
  CHECK(crash.evidence.device_lost);
  CHECK(crash.evidence.trials.size() == 2);
  CHECK(crash.evidence.trials_requested == 3);
  CHECK(crash.verdict.correctness.trials_failed == 1);
  const Judged hang = faulty(DeviceFault::Kind::timeout, true);
  CHECK(hang.verdict.status == Status::timeout);
  CHECK(hang.verdict.find_finding("deadline") != nullptr);
  const Judged trap = faulty(DeviceFault::Kind::trap, true);
  CHECK(trap.verdict.status == Status::runtime_error);
  CHECK(trap.verdict.find_finding("trap") != nullptr);
}

TEST_CASE("a launch that the driver refuses is a runtime error, one that a rule forbids a compile error") {
  FakeDevice device;
  device.define("gemm.cu", "gemm", {8, 8, 8, 4, 4, 4}, [](FakeCall&) {});
  device.before_launch = [](const DeviceLaunch&) -> DeviceOutcome {
    return DeviceFault{
        DeviceFault::Kind::launch_refused, "CUDA_ERROR_INVALID_VALUE", 1, false, "refused", {}};
  };
  const DefinitionPtr definition = gemm_definition(8, 32);
  VerifyJob job;
  job.workload = gemm_workload(definition, 8);
  job.candidate = candidate_of("c", kGemmPlan, definition->name);
  LocalCallbacks none;
  const auto refused = run_verify(device, job, none);
  REQUIRE(refused);
  Verdict verdict;
  compose_correctness(*refused, verdict);
  CHECK(verdict.status == Status::runtime_error);
  CHECK(verdict.find_finding("launch_refused") != nullptr);

  std::string plan = kGemmPlan;
  plan.replace(plan.find("[128]"), 5, "[2048]");
  job.candidate = candidate_of("c", plan, definition->name);
  const auto forbidden = run_verify(device, job, none);
  REQUIRE(forbidden);
  REQUIRE(forbidden->plan_error);
  CHECK(forbidden->trials.empty());
  Verdict other;
  compose_correctness(*forbidden, other);
  CHECK(other.status == Status::compile_error);
  CHECK(other.find_finding("launch_rule") != nullptr);
}

TEST_CASE("a plan whose requirement is false is not applicable") {
  FakeDevice device;
  device.define("gemm.cu", "gemm", {8, 8, 8, 4, 4, 4}, [](FakeCall&) {});
  const DefinitionPtr definition = gemm_definition(8, 32);
  VerifyJob job;
  job.workload = gemm_workload(definition, 8);
  std::string plan = kGemmPlan;
  plan.replace(plan.find("\"version\": 1,"), 13, "\"version\": 1, \"require\": [\"M % 16 == 0\"],");
  job.candidate = candidate_of("c", plan, definition->name);
  LocalCallbacks none;
  const auto evidence = run_verify(device, job, none);
  REQUIRE(evidence);
  Verdict verdict;
  compose_correctness(*evidence, verdict);
  CHECK(verdict.outcome == Outcome::not_applicable);
  CHECK_FALSE(verdict.status);
  CHECK(!verdict.outcome_reason.empty());
}
