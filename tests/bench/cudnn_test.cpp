// The attention baseline on a fake cuDNN that interprets the graph: what the graph computes, which plan is
// chosen, and what is said where there is none.
#include "bench/library_baselines.hpp"
#include "fake_cudnn.hpp"

#include <random>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

class StreamedDevice final : public FakeDevice {
 public:
  void* native_stream() noexcept override { return this; }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr std::int64_t kBatch = 2, kHeads = 3, kSequence = 7, kWidth = 8;
constexpr std::size_t kRows = kBatch * kHeads * kSequence, kElements = kRows * kWidth;

Matrix gaussian(std::size_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  Matrix values(count);
  for (double& value : values) value = from_bf16(to_bf16(normal(bits)));
  return values;
}

struct Setup {
  bool causal, backward;
  StreamedDevice device;
  FakeCudnn cudnn{device};
  Workload workload;
  std::unique_ptr<LibraryBaseline> library;

  explicit Setup(bool is_causal = false, bool is_backward = false)
      : causal(is_causal),
        backward(is_backward),
        workload(
            attention_workload(attention_definition(backward, causal, kWidth), kBatch, kHeads, kSequence)),
        library(make_cudnn_attention(FakeCudnn::library(), {backward, causal, DType::bfloat16})) {}

  DeviceBuffer half(const Matrix& values) {
    const DeviceBuffer buffer = device.allocate(values.size() * 2).value();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t bits = to_bf16(values[i]);
      std::memcpy(static_cast<std::uint8_t*>(device.host_view(buffer.address)) + 2 * i, &bits, 2);
    }
    return buffer;
  }
  DeviceBuffer single(const Matrix& values) {
    const DeviceBuffer buffer = device.allocate(values.size() * 4).value();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = static_cast<float>(values[i]);
      std::memcpy(static_cast<std::uint8_t*>(device.host_view(buffer.address)) + 4 * i, &value, 4);
    }
    return buffer;
  }
  Matrix read(const DeviceBuffer& buffer, bool is_half) {
    const auto* bytes = static_cast<const std::uint8_t*>(device.host_view(buffer.address));
    Matrix values(buffer.bytes / (is_half ? 2 : 4));
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint16_t bits = 0;
      float value = 0;
      if (is_half)
        std::memcpy(&bits, bytes + 2 * i, 2);
      else
        std::memcpy(&value, bytes + 4 * i, 4);
      values[i] = is_half ? from_bf16(bits) : value;
    }
    return values;
  }
  PlanBuffers forward_buffers(unsigned seed = 1) {
    return {{half(gaussian(kElements, seed)), half(gaussian(kElements, seed + 1)),
             half(gaussian(kElements, seed + 2))},
            {half(Matrix(kElements)), single(Matrix(kRows))}};
  }
};

const AttentionReference kCausal{kBatch * kHeads, kSequence, kWidth, true};
const AttentionReference kFull{kBatch * kHeads, kSequence, kWidth, false};

}  // namespace

TEST_CASE("the forward graph is attention with its LSE, and every run has its own addresses") {
  for (const bool causal : {false, true}) {
    Setup s(causal);
    const PlanBuffers prepared = s.forward_buffers(), other = s.forward_buffers(11);
    REQUIRE(s.library->prepare(s.device, s.workload, prepared));
    CHECK(s.cudnn.stream == static_cast<CUstream>(s.device.native_stream()));
    const std::vector<std::string> mask = {"index", "index", "ge", "select"};
    std::vector<std::string> expected = {"matmul", "mul"};
    if (causal) expected.insert(expected.end(), mask.begin(), mask.end());
    for (const char* name : {"reduce max", "sub", "exp", "reduce add", "log", "add", "div", "matmul"})
      expected.emplace_back(name);
    CHECK(s.cudnn.operations == expected);

    Matrix o, lse;
    const auto read = [&](std::size_t i) { return s.read(other.inputs[i], true); };
    (causal ? kCausal : kFull).forward(read(0), read(1), read(2), o, lse);
    REQUIRE(s.device.close_gate());
    REQUIRE(s.library->enqueue(other));
    REQUIRE(s.device.open_gate());
    CHECK(relative_error(s.read(other.outputs[0], true), o) < 5e-3);
    CHECK(relative_error(s.read(other.outputs[1], false), lse) < 1e-6);
    Matrix wrong_o, wrong_lse;
    (causal ? kFull : kCausal).forward(read(0), read(1), read(2), wrong_o, wrong_lse);
    CHECK(relative_error(s.read(other.outputs[0], true), wrong_o) > 0.1);
  }
}

TEST_CASE("the backward graph gives the gradients") {
  for (const bool causal : {false, true}) {
    Setup s(causal, true);
    const Matrix q = gaussian(kElements, 1), k = gaussian(kElements, 2), v = gaussian(kElements, 3),
                 d_o = gaussian(kElements, 4);
    Matrix o, lse, d_q, d_k, d_v;
    const AttentionReference& reference = causal ? kCausal : kFull;
    reference.forward(q, k, v, o, lse);
    for (double& value : o) value = from_bf16(to_bf16(value));
    reference.backward(q, k, v, o, d_o, lse, d_q, d_k, d_v);
    const PlanBuffers buffers{
        {s.half(q), s.half(k), s.half(v), s.half(o), s.half(d_o), s.single(lse)},
        {s.half(Matrix(kElements)), s.half(Matrix(kElements)), s.half(Matrix(kElements))}};
    REQUIRE(s.library->prepare(s.device, s.workload, buffers));
    REQUIRE(s.library->enqueue(buffers));
    CHECK(relative_error(s.read(buffers.outputs[0], true), d_q) < 1e-2);
    CHECK(relative_error(s.read(buffers.outputs[1], true), d_k) < 1e-2);
    CHECK(relative_error(s.read(buffers.outputs[2], true), d_v) < 1e-2);
    CHECK(relative_error(s.read(buffers.outputs[1], true), d_v) > 0.5);
  }
}

TEST_CASE("the fastest plan that can be made is chosen, and named") {
  Setup s;
  s.cudnn.offers = {
      {1, 3, 9000, 64}, {5, 9, 100, 0, 3001}, {2, 7, 4000, 512}, {6, 1, 100, 0, 0, 5000}, {7, 2, 5000}};
  const std::uint64_t before = s.device.live_bytes();
  const PlanBuffers buffers = s.forward_buffers();
  const std::uint64_t tensors = s.device.live_bytes() - before;
  REQUIRE(s.library->prepare(s.device, s.workload, buffers));
  CHECK(s.library->description() == "cuDNN 9.19.0 engine 2 kernel_cfg=7, best of 4");
  const std::uint64_t start = s.device.now_ns();
  REQUIRE(s.library->enqueue(buffers));
  CHECK(s.device.now_ns() - start == 4000);
  CHECK(s.cudnn.last_workspace != nullptr);
  CHECK(s.library->prepare(s.device, s.workload, buffers).error().code == ErrorCode::state);

  // All that it made is gone with it.
  CHECK(s.cudnn.live_handles == 1);
  s.library.reset();
  CHECK(s.cudnn.live_handles == 0);
  CHECK(s.cudnn.live_descriptors == 0);
  CHECK(s.device.live_bytes() - before == tensors + 1);  // the fake's own byte
  CHECK(s.device.bad_releases == 0);
  CHECK(s.device.live_events == 0);
}

TEST_CASE("the chosen plan has its workspace, whatever was tried after it") {
  Setup s;
  s.cudnn.offers = {{1, 3, 4000, 512}, {2, 7, 9000, std::int64_t{1} << 40}, {3, 1, 9000, 64}};
  const PlanBuffers buffers = s.forward_buffers();
  REQUIRE(s.library->prepare(s.device, s.workload, buffers));
  CHECK(contains(s.library->description(), "engine 1"));
  CHECK(s.library->enqueue(buffers));
}

TEST_CASE("the fallback engines serve where the heuristics offer nothing else") {
  Setup s;
  s.cudnn.offers = {{1, 1, 100, 0, 3000}};
  s.cudnn.fallback_offers = {{9, 4, 100}};
  REQUIRE(s.library->prepare(s.device, s.workload, s.forward_buffers()));
  CHECK(contains(s.library->description(), "engine 9"));
}

TEST_CASE("an attention that cuDNN does not serve is unsupported, in its own words") {
  for (const bool counted : {false, true}) {
    Setup s;
    s.cudnn.viable = false;
    if (!counted) s.cudnn.offers.clear();
    s.cudnn.last_error = "d_qk % 8 != 0\n";
    const auto prepared = s.library->prepare(s.device, s.workload, s.forward_buffers());
    REQUIRE_FALSE(prepared);
    CHECK(prepared.error().code == ErrorCode::unsupported);
    CHECK(contains(prepared.error().message, "cuDNN 9.19.0 has no engine for this attention"));
    CHECK(contains(prepared.error().message, "CUDNN_STATUS_NOT_SUPPORTED (d_qk % 8 != 0)"));
    CHECK(s.library->enqueue(s.forward_buffers()).error().code == ErrorCode::state);
  }
  SECTION("no plan can be made") {
    Setup s;
    s.cudnn.offers[0].plan_status = 3007;
    const auto prepared = s.library->prepare(s.device, s.workload, s.forward_buffers());
    REQUIRE_FALSE(prepared);
    CHECK(prepared.error().code == ErrorCode::unsupported);
  }
  SECTION("a failure that is none of support is an error of the driver") {
    Setup s;
    s.cudnn.offers[0].plan_status = 4000;
    const auto prepared = s.library->prepare(s.device, s.workload, s.forward_buffers());
    REQUIRE_FALSE(prepared);
    CHECK(prepared.error().code == ErrorCode::driver);
  }
  SECTION("its workspace does not fit") {
    Setup s;
    s.cudnn.offers[0].workspace = std::int64_t{1} << 40;
    const auto prepared = s.library->prepare(s.device, s.workload, s.forward_buffers());
    REQUIRE_FALSE(prepared);
    CHECK(prepared.error().code == ErrorCode::unsupported);
    CHECK(contains(prepared.error().message, "1099511627776 bytes of workspace"));
  }
  SECTION("a device without a stream") {
    FakeDevice plain;
    Setup s;
    const auto prepared = s.library->prepare(plain, s.workload, s.forward_buffers());
    REQUIRE_FALSE(prepared);
    CHECK(prepared.error().code == ErrorCode::unsupported);
  }
}

TEST_CASE("a library is found by the pattern of tensors") {
  const auto found = find_library_baseline(
      attention_workload(attention_definition(false, true, 64), 1, 1, 64), "/nonexistent/cuda");
  if (!found) {  // this machine has no cuDNN
    CHECK(found.error().code == ErrorCode::toolkit);
    CHECK(contains(found.error().message, "cuDNN"));
    CHECK(contains(found.error().message, "/nonexistent/cuda"));
  }
  Definition untagged = *attention_definition(false, true, 64);
  untagged.tags.clear();
  const auto none =
      find_library_baseline(attention_workload(make_definition(std::move(untagged)).value(), 1, 1, 64));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::unsupported);
  CHECK(contains(none.error().message, "attention"));
  CHECK(find_library_baseline(Workload{}).error().code == ErrorCode::invalid_argument);
}
