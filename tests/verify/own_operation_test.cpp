// An operation of an embedder's own: inputs, reference and comparison by callback, another Solution as
// reference, tolerances by output, scalars, integer outputs.
#include "support/catch.hpp"
#include "support/gemm_case.hpp"

#include <cstring>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// y = s * x + 1, count = how many x are above zero, per row.
DefinitionPtr definition() {
  Definition d;
  d.name = "scale_and_count";
  d.op_type = "mine";
  d.axes = {{"R", false, 0, {}}, {"C", true, 24, {}}};
  d.inputs = {{"x", std::vector<std::string>{"R", "C"}, DType::float32, {}},
              {"s", std::nullopt, DType::float32, {}}};
  d.outputs = {{"y", std::vector<std::string>{"R", "C"}, DType::float32, {}},
               {"count", std::vector<std::string>{"R"}, DType::int32, {}}};
  return make_definition(std::move(d)).value();
}

constexpr const char* kPlan = R"json({"version": 1, "steps": [{"kernel": "op", "grid": ["R"], "block": [32],
  "args": [{"tensor": "x"}, {"tensor": "y"}, {"tensor": "count"}, {"scalar": "s"}, {"i32": "R"}]}]})json";

struct Op {
  const float* x;
  float* y;
  std::int32_t* count;
  float s;
  std::int64_t rows;
};

void right(const Op& op) {
  for (std::int64_t r = 0; r < op.rows; ++r) {
    op.count[r] = 0;
    for (std::int64_t c = 0; c < 24; ++c) {
      op.y[r * 24 + c] = op.s * op.x[r * 24 + c] + 1;
      op.count[r] += op.x[r * 24 + c] > 0;
    }
  }
}

struct Setup {
  FakeDevice device;
  VerifyJob job;
  std::function<void(Op)> candidate = right, reference = right;
  std::vector<float> scalars_seen;

  Setup() {
    const auto define = [this](const char* source, std::function<void(Op)>& body) {
      device.define(source, "op", {8, 8, 8, 4, 4}, [this, &body](FakeCall& call) {
        Op op{call.pointer<float>(0), call.pointer<float>(1), call.pointer<std::int32_t>(2),
              call.argument<float>(3), call.argument<std::int32_t>(4)};
        scalars_seen.push_back(op.s);
        body(op);
      });
    };
    define("mine.cu", candidate);
    define("theirs.cu", reference);
    job.workload.definition = definition();
    job.workload.axes = {{"R", 7}};
    job.workload.uuid = "u";
    job.candidate = candidate_of("mine", kPlan, "scale_and_count", "mine.cu");
    job.reference.kind = ReferenceKind::solution;
    job.reference.solution = candidate_of("theirs", kPlan, "scale_and_count", "theirs.cu");
    job.seed = 5;
  }
  Verdict judge(HostCallbacks& callbacks) {
    const auto made = run_verify(device, job, callbacks);
    if (!made) FAIL(made.error().to_string());
    evidence = *made;
    CHECK(device.live_allocations() == 0);
    Verdict verdict;
    compose_correctness(evidence, verdict);
    return verdict;
  }
  VerifyEvidence evidence;
};

class RampInputs final : public InputSource {
 public:
  Result<void> fill(const Workload&, std::uint64_t seed, int trial, std::span<HostTensor> inputs) override {
    if (fail) return make_error(ErrorCode::invalid_argument, "no inputs today");
    REQUIRE(inputs.size() == 1);  // scalars are left out
    REQUIRE(inputs[0].name == "x");
    REQUIRE(inputs[0].bytes == 7 * 24 * 4);
    REQUIRE(reinterpret_cast<std::uintptr_t>(inputs[0].data) % 64 == 0);
    for (int i = 0; i < 7 * 24; ++i)
      static_cast<float*>(inputs[0].data)[i] =
          static_cast<float>(i % 11 - 5) + static_cast<float>(trial) + static_cast<float>(seed % 3);
    trials.push_back(trial);
    return {};
  }
  bool fail = false;
  std::vector<int> trials;
};

class HostReference final : public Reference {
 public:
  explicit HostReference(float s) : s_(s) {}
  Result<void> compute(const Workload&, std::span<const HostTensor> inputs,
                       std::span<HostTensor> outputs) override {
    if (fail) return make_error(ErrorCode::internal, "no reference today");
    REQUIRE(outputs.size() == 2);
    right({static_cast<const float*>(inputs[0].data), static_cast<float*>(outputs[0].data),
           static_cast<std::int32_t*>(outputs[1].data), s_, 7});
    ++calls;
    return {};
  }
  bool fail = false;
  int calls = 0;

 private:
  float s_;
};

class FirstElement final : public Comparator {
 public:
  Result<std::vector<OutputCorrectness>> compare(const Workload&, std::span<const HostTensor> expected,
                                                 std::span<const HostTensor> got) override {
    std::vector<OutputCorrectness> outputs(got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      outputs[i].ok = std::memcmp(expected[i].data, got[i].data, 4) == 0;
      outputs[i].elements_wrong = !outputs[i].ok;
    }
    if (short_answer) outputs.pop_back();
    return outputs;
  }
  bool short_answer = false;
};

}  // namespace

TEST_CASE("another Solution as reference decides by tolerance") {
  Setup s;
  LocalCallbacks none;
  CHECK(s.judge(none).status == Status::passed);
  CHECK(s.evidence.trials[0].outputs[0].comparator == ComparatorKind::tolerance);
  REQUIRE(s.evidence.scalars.size() == 1);
  const auto scalar = static_cast<float>(std::get<double>(s.evidence.scalars[0].second));
  for (const float seen : s.scalars_seen) CHECK(seen == scalar);

  s.candidate = [](Op op) {
    right(op);
    op.y[30] += 0.5f;
  };
  const Verdict wrong = s.judge(none);
  CHECK(wrong.status == Status::incorrect_numerical);
  REQUIRE(wrong.correctness.outputs.size() == 2);
  CHECK_FALSE(wrong.correctness.outputs[0].ok);
  CHECK(wrong.correctness.outputs[1].ok);
  CHECK(wrong.correctness.outputs[0].first_wrong_index == std::vector<std::int64_t>{1, 6});

  s.job.comparator.by_output = {{"y", {1.0, 0}}};
  CHECK(s.judge(none).status == Status::passed);

  s.candidate = [](Op op) {
    right(op);
    op.y[0] = NAN;
  };
  CHECK(s.judge(none).status == Status::incorrect_numerical);
}

TEST_CASE("integer outputs are exact unless a tolerance says otherwise") {
  Setup s;
  LocalCallbacks none;
  s.reference = [](Op op) {
    right(op);
    op.count[3] = 1000;
  };
  s.candidate = [](Op op) {
    right(op);
    op.count[3] = 1001;
  };
  CHECK(s.judge(none).status == Status::incorrect_numerical);
  s.job.comparator.by_output = {{"count", {1, 0}}};
  CHECK(s.judge(none).status == Status::passed);
}

TEST_CASE("NaN where NaN is due is right, and nowhere else") {
  Setup s;
  LocalCallbacks none;
  s.reference = [](Op op) {
    right(op);
    op.y[5] = NAN;
    op.y[6] = -INFINITY;
  };
  s.candidate = s.reference;
  CHECK(s.judge(none).status == Status::passed);
  s.candidate = right;
  const Verdict verdict = s.judge(none);
  CHECK(verdict.status == Status::incorrect_numerical);
  CHECK(verdict.correctness.outputs[0].elements_wrong == 2);
}

TEST_CASE("inputs, reference and comparison by callback") {
  Setup s;
  s.job.workload.inputs = {{"s", ScalarInput{2.0}}};
  s.job.inputs = InputKind::callback;
  s.job.reference = {};
  s.job.reference.kind = ReferenceKind::callback;
  RampInputs inputs;
  HostReference reference(2.0f);
  FirstElement comparator;
  LocalCallbacks callbacks(&inputs, &reference, &comparator);
  CHECK(s.judge(callbacks).status == Status::passed);
  CHECK(inputs.trials == std::vector<int>{0, 1, 2});
  CHECK(reference.calls == 3);
  CHECK(s.evidence.trials[0].distribution == "callback");

  s.candidate = [](Op op) {
    right(op);
    op.y[100] += 1;
  };
  CHECK(s.judge(callbacks).status == Status::incorrect_numerical);
  s.job.comparator.kind = ComparatorKind::callback;  // looks at the first element only
  CHECK(s.judge(callbacks).status == Status::passed);
  s.candidate = [](Op op) {
    right(op);
    op.y[0] += 1;
  };
  const Verdict verdict = s.judge(callbacks);
  CHECK(verdict.status == Status::incorrect_numerical);
  CHECK(verdict.correctness.outputs[0].comparator == "callback");

  s.candidate = [](Op op) {
    right(op);
    const_cast<float*>(op.x)[9] = 3.25f;
  };
  const Verdict clobbered = s.judge(callbacks);
  CHECK(clobbered.integrity == Integrity::violated);
  CHECK(clobbered.find_finding("input_clobbered")->message.find("input x") != std::string::npos);
}

TEST_CASE("a callback that fails is the host's error, not the candidate's") {
  Setup s;
  s.job.workload.inputs = {{"s", ScalarInput{2.0}}};
  s.job.inputs = InputKind::callback;
  s.job.reference = {};
  s.job.reference.kind = ReferenceKind::callback;
  s.job.comparator.kind = ComparatorKind::callback;
  RampInputs inputs;
  HostReference reference(2.0f);
  FirstElement comparator;
  LocalCallbacks callbacks(&inputs, &reference, &comparator);
  inputs.fail = true;
  CHECK(run_verify(s.device, s.job, callbacks).error().code == ErrorCode::callback);
  inputs.fail = false;
  reference.fail = true;
  CHECK(run_verify(s.device, s.job, callbacks).error().code == ErrorCode::callback);
  reference.fail = false;
  comparator.short_answer = true;
  CHECK(run_verify(s.device, s.job, callbacks).error().code == ErrorCode::callback);
  LocalCallbacks none;
  CHECK(run_verify(s.device, s.job, none).error().code == ErrorCode::invalid_argument);
  CHECK(s.device.live_allocations() == 0);
}

TEST_CASE("what a job lacks is an error that names the ways") {
  Setup s;
  LocalCallbacks none;
  s.job.reference = {};
  const auto no_native = run_verify(s.device, s.job, none);
  REQUIRE_FALSE(no_native);
  CHECK(no_native.error().code == ErrorCode::unsupported);
  CHECK(no_native.error().message.find("Solution") != std::string::npos);

  Setup modules;
  modules.job.candidate.modules.clear();
  CHECK(run_verify(modules.device, modules.job, none).error().code == ErrorCode::invalid_argument);

  Setup trials;
  trials.job.trials = 0;
  CHECK(run_verify(trials.device, trials.job, none).error().code == ErrorCode::invalid_argument);

  Setup memory;
  memory.device.mutable_info().limits.memory_bytes = 4096;
  const auto full = run_verify(memory.device, memory.job, none);
  REQUIRE_FALSE(full);
  CHECK(full.error().code == ErrorCode::no_memory);

  Setup stored;
  stored.job.workload.inputs = {{"x", SafetensorsInput{"a.safetensors", "x"}}};
  CHECK(run_verify(stored.device, stored.job, none).error().code == ErrorCode::unsupported);
}

TEST_CASE("a reference Solution that fails is the request's fault") {
  Setup s;
  LocalCallbacks none;
  s.device.define("broken.cu", "op", {8, 8, 8, 4, 4}, [](FakeCall& call) {
    call.fail({DeviceFault::Kind::trap, "CUDA_ERROR_LAUNCH_FAILED", 719, false, "trap", {}});
  });
  s.job.reference.solution = candidate_of("broken", kPlan, "scale_and_count", "broken.cu");
  const auto evidence = run_verify(s.device, s.job, none);
  REQUIRE_FALSE(evidence);
  CHECK(evidence.error().message.find("reference") != std::string::npos);
}

TEST_CASE("native references are found by op_type and the pattern of tensors, whatever the names") {
  CHECK(has_native_reference(*gemm_definition(8, 8)));
  CHECK(has_native_reference(*gemm_definition(8, 8, DType::float16, DType::float32)));
  CHECK_FALSE(has_native_reference(*gemm_definition(8, 8, DType::float8_e4m3fn)));
  CHECK_FALSE(has_native_reference(*gemm_definition(8, 8, DType::bfloat16, DType::bfloat16, "matmul")));
  CHECK_FALSE(has_native_reference(*definition()));
  Definition swapped = *gemm_definition(8, 16);
  std::swap(swapped.inputs[0], swapped.inputs[1]);
  CHECK(has_native_reference(swapped));
  Definition transposed = *gemm_definition(8, 16);
  std::swap((*transposed.outputs[0].shape)[0], (*transposed.outputs[0].shape)[1]);
  CHECK(has_native_reference(transposed));  // the same pattern with the inputs' parts exchanged
  Definition other = *gemm_definition(8, 16);
  (*other.inputs[1].shape)[1] = "N";
  CHECK_FALSE(has_native_reference(other));
}
