// The judge's device code against its CPU form: the same bits, the same counts, the same sums.
#include "support/gemm_case.hpp"
#include "support/gpu.hpp"
#include "verify/judge_ops.hpp"
#include "verify/seed.hpp"

#include <ptxbench/bench.hpp>
#include <ptxbench/compile.hpp>

#include <chrono>
#include <cmath>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

const std::vector<std::uint8_t>& judge_cubin(const Device& device) {
  static std::vector<std::uint8_t> cubin;
  if (cubin.empty()) {
    auto compiled = compile_in_process(judge_compile_request(device.info().arch));
    if (!compiled) FAIL(compiled.error().to_string());
    if (!compiled->ok) FAIL(compiled->log);
    cubin = compiled->modules.at(0).cubin;
  }
  return cubin;
}

// A GPU and a fake device with the judge's two forms.
struct Both {
  std::unique_ptr<Device> gpu = gpu_or_skip();
  FakeDevice cpu;
  std::unique_ptr<JudgeOps> on_gpu, on_cpu = make_host_judge(cpu);

  Both() {
    if (!gpu) return;
    auto made = make_judge_ops(*gpu, judge_cubin(*gpu));
    if (!made) FAIL(made.error().to_string());
    on_gpu = std::move(*made);
  }
  ~Both() {
    for (const DeviceBuffer& b : gpu_buffers) gpu->release(b);
  }
  std::uint64_t on(Device& device, std::uint64_t bytes) {
    const DeviceBuffer buffer = device.allocate(bytes).value();
    if (&device == gpu.get()) gpu_buffers.push_back(buffer);
    REQUIRE(device.fill(buffer.address, 0, 1, bytes));
    return buffer.address;
  }
  // The same random tensor on both; addresses (gpu, cpu).
  std::pair<std::uint64_t, std::uint64_t> draw(const std::string& name, DType dtype,
                                               std::vector<std::int64_t> shape,
                                               judge::Distribution distribution) {
    const judge::DrawSpec spec = draw_spec(tensor_key(99, name), dtype, shape, distribution);
    const std::uint64_t bytes = dtype_bytes(dtype, spec.elements) + 16;
    const auto at = std::pair(on(*gpu, bytes), on(cpu, bytes));
    REQUIRE(on_gpu->draw(spec, at.first));
    REQUIRE(on_cpu->draw(spec, at.second));
    return at;
  }
  bool same(std::uint64_t gpu_address, std::uint64_t cpu_address, std::uint64_t bytes) {
    REQUIRE_FALSE(*gpu->synchronize(10'000'000'000));
    return read_back<std::uint8_t>(*gpu, gpu_address, bytes) ==
           read_back<std::uint8_t>(cpu, cpu_address, bytes);
  }
  std::vector<DeviceBuffer> gpu_buffers;
};

}  // namespace

TEST_CASE("the GPU draws the same bits as the CPU") {
  Both both;
  if (!both.gpu) return;
  for (int type = 0; type <= static_cast<int>(DType::uint8); ++type)
    for (const auto distribution : {judge::kGaussian, judge::kSpiky, judge::kIntegers}) {
      const auto dtype = static_cast<DType>(type);
      INFO(dtype_name(dtype) << " " << distribution_name(distribution));
      const auto at = both.draw("x", dtype, {131, 517}, distribution);
      CHECK(both.same(at.first, at.second, dtype_bytes(dtype, 131 * 517)));
      const judge::DrawSpec spec = draw_spec(tensor_key(99, "x"), dtype, {131, 517}, distribution);
      CHECK(both.on_gpu->check_draw(spec, at.first)->count == 0);
      // One changed byte is found where it is.
      const std::uint8_t byte =
          static_cast<std::uint8_t>(read_back<std::uint8_t>(*both.gpu, at.first + 4096, 1)[0] ^ 1);
      REQUIRE(both.gpu->write(at.first + 4096, {&byte, 1}));
      const auto changed = both.on_gpu->check_draw(spec, at.first);
      CHECK(changed->count == 1);
      CHECK(changed->first == 4096 / std::max<std::uint64_t>(1, dtype_bits(dtype) / 8));
    }
}

TEST_CASE("reference and model GEMMs are the CPU's, to the bit") {
  Both both;
  if (!both.gpu) return;
  for (const DType in : {DType::bfloat16, DType::float16, DType::float32})
    for (const DType out : {DType::bfloat16, DType::float16, DType::float32})
      for (const GemmShape shape :
           {GemmShape{1, 1, 1}, {130, 70, 33}, {128, 128, 64}, {257, 129, 1000}, {5, 300, 24}}) {
        INFO(dtype_name(in) << " " << dtype_name(out) << " " << shape.m << " " << shape.n << " " << shape.k);
        GemmPattern pattern;
        pattern.input = in;
        pattern.output = out;
        const auto a = both.draw("A", in, {shape.m, shape.k}, judge::kGaussian);
        const auto b = both.draw("B", in, {shape.n, shape.k}, judge::kSpiky);
        const std::uint64_t elements = std::uint64_t{shape.m} * shape.n;
        const std::uint64_t gr = both.on(*both.gpu, elements * 8), cr = both.on(both.cpu, elements * 8);
        REQUIRE(both.on_gpu->gemm_reference(pattern, shape, a.first, b.first, gr));
        REQUIRE(both.on_cpu->gemm_reference(pattern, shape, a.second, b.second, cr));
        CHECK(both.same(gr, cr, elements * 8));
        const std::uint64_t bytes = dtype_bytes(out, elements);
        const std::uint64_t gm = both.on(*both.gpu, bytes), cm = both.on(both.cpu, bytes);
        REQUIRE(both.on_gpu->gemm_model(pattern, shape, a.first, b.first, gm));
        REQUIRE(both.on_cpu->gemm_model(pattern, shape, a.second, b.second, cm));
        CHECK(both.same(gm, cm, bytes));
        const auto gs = both.on_gpu->statistics(elements, {gm, out}, {gr, DType::float64}, gm);
        const auto cs = both.on_cpu->statistics(elements, {cm, out}, {cr, DType::float64}, cm);
        REQUIRE(gs);
        REQUIRE(cs);
        CHECK(gs->elements == elements);
        CHECK(gs->nonfinite_wrong == cs->nonfinite_wrong);
        CHECK(gs->sum_squared_error == Approx(cs->sum_squared_error).epsilon(1e-12));
        CHECK(gs->max_absolute_error == cs->max_absolute_error);
        CHECK(gs->max_relative_error == Approx(cs->max_relative_error).epsilon(1e-12));
        CHECK(gs->sum_got_times_reference == Approx(cs->sum_got_times_reference).epsilon(1e-12));
        CHECK(gs->model_max_error == cs->model_max_error);
        const double limit = cs->max_absolute_error / 3;
        const auto gw = both.on_gpu->find_wrong(elements, {gm, out}, {gr, DType::float64}, limit, 0);
        const auto cw = both.on_cpu->find_wrong(elements, {cm, out}, {cr, DType::float64}, limit, 0);
        CHECK(gw->count == cw->count);
        CHECK(gw->first == cw->first);
      }
}

TEST_CASE("comparing and counting poison find every byte") {
  Both both;
  if (!both.gpu) return;
  const std::uint64_t a = both.on(*both.gpu, 100'000), b = both.on(*both.gpu, 100'000);
  CHECK(both.on_gpu->compare(a, b, 99'999)->count == 0);
  for (const std::uint64_t at : {0, 7, 8, 50'001, 99'998}) {
    const std::uint8_t one = 1, zero = 0;
    REQUIRE(both.gpu->write(b + at, {&one, 1}));
    const auto found = both.on_gpu->compare(a, b, 99'999);
    CHECK(found->count == 1);
    CHECK(found->first == at);
    REQUIRE(both.gpu->write(b + at, {&zero, 1}));
  }
  REQUIRE(both.gpu->fill(a, 0x5b, 1, 96));
  CHECK(*both.on_gpu->count_poison(a, 1, 1000, 0x5b) == 96);
  CHECK(*both.on_gpu->count_poison(a, 2, 1000, 0x5b) == 48);
  CHECK(*both.on_gpu->count_poison(a, 4, 1000, 0x5b) == 24);
  CHECK(*both.on_gpu->count_poison(a, 8, 1000, 0x5b) == 12);
}

TEST_CASE("a digest on the GPU is the CPU's, and every byte and its place matters") {
  Both both;
  if (!both.gpu) return;
  std::vector<std::uint8_t> bytes(100'003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 31 + i / 257);
  const DeviceBuffer buffer = both.gpu->allocate(bytes.size()).value();
  REQUIRE(both.gpu->write(buffer.address, bytes));
  for (const std::uint64_t length : {std::uint64_t{1}, std::uint64_t{8}, std::uint64_t{4097}, std::uint64_t{bytes.size()}}) {
    judge::Digest host{0, 0};
    for (std::uint64_t i = 0; i < length / 8; ++i) {
      judge::u64 word = 0;
      std::memcpy(&word, &bytes[8 * i], 8);
      judge::add_word(host, 77, i, word);
    }
    if (length % 8 != 0) judge::add_word(host, 77, length / 8, judge::last_word(bytes.data(), length));
    const judge::Digest gpu = both.on_gpu->digest(buffer.address, length, 77).value();
    INFO(length);
    CHECK(gpu.low == host.low);
    CHECK(gpu.high == host.high);
    const std::uint8_t other = static_cast<std::uint8_t>(bytes[length - 1] ^ 0x10);
    REQUIRE(both.gpu->write(buffer.address + length - 1, {&other, 1}));
    const judge::Digest changed = both.on_gpu->digest(buffer.address, length, 77).value();
    CHECK(changed.low != host.low);
    CHECK(changed.high != host.high);
    REQUIRE(both.gpu->write(buffer.address + length - 1, {&bytes[length - 1], 1}));
  }
  both.gpu->release(buffer);
}

TEST_CASE("flushing and wiping run") {
  Both both;
  if (!both.gpu) return;
  CHECK(both.on_gpu->flush_l2());
  CHECK(both.on_gpu->wipe_shared());
  CHECK(both.on_gpu->flush_l2());
  CHECK_FALSE(*both.gpu->synchronize(10'000'000'000));
}

namespace {

// Two candidates of real CUDA: one sums in fp32, one keeps its sum in bf16.
constexpr const char* kHonest = R"cuda(
#include <cuda_bf16.h>
extern "C" __global__ void gemm(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int m, int n, int k) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= (long long)m * n) return;
  float sum = 0;
  for (int j = 0; j < k; ++j) sum += __bfloat162float(x[i / n * k + j]) * __bfloat162float(w[i % n * k + j]);
  y[i] = __float2bfloat16(sum);
}
)cuda";
constexpr const char* kCheap = R"cuda(
#include <cuda_bf16.h>
extern "C" __global__ void gemm(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int m, int n, int k) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i >= (long long)m * n) return;
  float sum = 0;
  for (int j = 0; j < k; ++j)
    sum = __bfloat162float(__float2bfloat16(sum + __bfloat162float(x[i / n * k + j]) * __bfloat162float(w[i % n * k + j])));
  y[i] = __float2bfloat16(sum);
}
)cuda";

Candidate compiled_candidate(const Device& device, const Workload& workload, const std::string& text) {
  Candidate candidate = candidate_of("cuda", R"json({"version": 1, "steps": [{"kernel": "gemm",
      "grid": ["ceil_div(M * N, 256)"], "block": [256], "args": [{"tensor": "X"}, {"tensor": "W"}, {"tensor": "Y"},
      {"i32": "M"}, {"i32": "N"}, {"i32": "K"}]}]})json",
                                     workload.definition->name);
  candidate.solution.sources[1].content = text;
  const LaunchPlan plan = LaunchPlan::parse(candidate.solution.sources[0].content).value();
  const BoundPlan bound = bind_plan(plan, candidate.solution, workload, {device.info().limits, {}}).value();
  CompileRequest request;
  request.files = candidate.solution.sources;
  request.sources = bound.sources;
  request.launch_plan_header = bound.launch_plan_header;
  request.arch = device.info().arch;
  auto compiled = compile_in_process(request);
  if (!compiled) FAIL(compiled.error().to_string());
  if (!compiled->ok) FAIL(compiled->log);
  candidate.modules = compiled->modules;
  return candidate;
}

}  // namespace

TEST_CASE("a real kernel is judged on the GPU: right, and next to cuBLASLt") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const Workload workload = gemm_workload(gemm_definition(384, 5120), 200);
  for (const bool honest : {true, false}) {
    VerifyJob job;
    job.workload = workload;
    job.candidate = compiled_candidate(*gpu, workload, honest ? kHonest : kCheap);
    job.judge_cubin = judge_cubin(*gpu);
    job.seed = 3;
    LocalCallbacks none;
    const auto evidence = run_verify(*gpu, job, none);
    if (!evidence) FAIL(evidence.error().to_string());
    Verdict verdict;
    compose_correctness(*evidence, verdict);
    for (const Finding& finding : verdict.findings) INFO(finding.message);
    CHECK(verdict.status == (honest ? Status::passed : Status::incorrect_numerical));
    CHECK(verdict.integrity == Integrity::clean);
    if (!honest) continue;

    TimeJob time;
    time.workload = workload;
    time.candidate = job.candidate;
    time.judge_cubin = job.judge_cubin;
    time.pairs = 20;
    time.noise = true;
    time.noise_pairs = 20;
    auto library = find_library_baseline(workload);
    if (!library) {
      WARN("no cuBLASLt: " << library.error().to_string());
      continue;
    }
    const auto timed = run_time(*gpu, time, library->get());
    if (!timed) FAIL(timed.error().to_string());
    compose_timing(*timed, verdict);
    CHECK(verdict.status == Status::passed);
    CHECK(timed->baseline_description.find("beyond the limits") == std::string::npos);
    CHECK(verdict.timing.state == Availability::measured);
    REQUIRE(verdict.timing.speedup);
    CHECK(*verdict.timing.speedup < 1);
    WARN(verdict.timing.baseline << ": " << verdict.timing.baseline_median_ns << " ns, candidate "
                                 << verdict.timing.median_ns << " ns, noise floor "
                                 << verdict.timing.noise_floor.value_or(-1));
  }
}

// Not run by default: test_gpu "[measure]" prints what the judge's own work takes.
TEST_CASE("what the judge's work takes at M=8192 N=7168 K=5120", "[.][measure]") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  const auto judge = make_judge_ops(*gpu, judge_cubin(*gpu)).value();
  const GemmShape shape{8192, 7168, 5120};
  const GemmPattern pattern;
  const std::uint64_t elements = std::uint64_t{shape.m} * shape.n;
  const DeviceBuffer a = gpu->allocate(std::uint64_t{shape.m} * shape.k * 2).value();
  const DeviceBuffer b = gpu->allocate(std::uint64_t{shape.n} * shape.k * 2).value();
  const DeviceBuffer reference = gpu->allocate(elements * 8).value(),
                     model = gpu->allocate(elements * 2).value();
  const judge::DrawSpec spec_a = draw_spec(1, DType::bfloat16, {shape.m, shape.k}, judge::kGaussian);
  const judge::DrawSpec spec_b = draw_spec(2, DType::bfloat16, {shape.n, shape.k}, judge::kSpiky);
  const auto took = [&](const char* what, const auto& work) {
    for (int i = 0; i < 2; ++i) {
      const auto start = std::chrono::steady_clock::now();
      work();
      REQUIRE_FALSE(*gpu->synchronize(60'000'000'000));
      const double ms =
          std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
      if (i == 1) WARN(what << ": " << ms << " ms");
    }
  };
  took("draw A", [&] { REQUIRE(judge->draw(spec_a, a.address)); });
  took("draw B (spiky)", [&] { REQUIRE(judge->draw(spec_b, b.address)); });
  took("check A", [&] { REQUIRE(judge->check_draw(spec_a, a.address)); });
  took("fp64 reference",
       [&] { REQUIRE(judge->gemm_reference(pattern, shape, a.address, b.address, reference.address)); });
  took("fp32 model",
       [&] { REQUIRE(judge->gemm_model(pattern, shape, a.address, b.address, model.address)); });
  took("statistics", [&] {
    REQUIRE(judge->statistics(elements, {model.address, DType::bfloat16}, {reference.address, DType::float64},
                              model.address));
  });
  took("find wrong", [&] {
    REQUIRE(judge->find_wrong(elements, {model.address, DType::bfloat16}, {reference.address, DType::float64},
                              0, 0));
  });
  took("count poison", [&] { REQUIRE(judge->count_poison(model.address, 2, elements, 0xff)); });
  took("flush L2", [&] { REQUIRE(judge->flush_l2()); });
  took("wipe shared memory", [&] { REQUIRE(judge->wipe_shared()); });
  took("allocate and release 470 MB", [&] { gpu->release(gpu->allocate(elements * 8).value()); });
  for (const DeviceBuffer& buffer : {a, b, reference, model}) gpu->release(buffer);
}
