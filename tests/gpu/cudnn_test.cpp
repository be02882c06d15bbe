// cuDNN as the baseline of attention: what it computes, and how fast it is. Skipped where there is no cuDNN;
// a folder of wheels that is in none of the usual places is named in PTXBENCH_CUDA_HOME.
#include "support/attention_reference.hpp"
#include "support/gpu.hpp"

#include <ptxbench/bench.hpp>

#include <algorithm>
#include <chrono>
#include <random>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// Null, with a warning, where there is none.
std::unique_ptr<LibraryBaseline> baseline_or_skip(const Workload& workload) {
  auto found = find_library_baseline(workload);
  if (found) return std::move(*found);
  WARN("skipped, no cuDNN: " << found.error().to_string());
  return nullptr;
}

class Buffers {
 public:
  explicit Buffers(Device& device) : device_(device) {}
  ~Buffers() {
    for (const DeviceBuffer& buffer : all_) device_.release(buffer);
  }
  DeviceBuffer make(std::uint64_t bytes) {
    all_.push_back(device_.allocate(bytes).value());
    return all_.back();
  }
  DeviceBuffer with(const Matrix& values, DType dtype) {
    std::vector<std::uint8_t> bytes(values.size() * (dtype == DType::float32 ? 4 : 2));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t half = to_bf16(values[i]);
      const auto single = static_cast<float>(values[i]);
      if (dtype == DType::float32)
        std::memcpy(&bytes[4 * i], &single, 4);
      else
        std::memcpy(&bytes[2 * i], &half, 2);
    }
    const DeviceBuffer buffer = make(bytes.size());
    REQUIRE(device_.write(buffer.address, bytes));
    return buffer;
  }
  Matrix values(const DeviceBuffer& buffer, DType dtype) {
    std::vector<std::uint8_t> bytes(buffer.bytes);
    REQUIRE(device_.read(buffer.address, bytes));
    Matrix read(bytes.size() / (dtype == DType::float32 ? 4 : 2));
    for (std::size_t i = 0; i < read.size(); ++i) {
      std::uint16_t half = 0;
      float single = 0;
      if (dtype == DType::float32)
        std::memcpy(&single, &bytes[4 * i], 4);
      else
        std::memcpy(&half, &bytes[2 * i], 2);
      read[i] = dtype == DType::float32 ? single : from_bf16(half);
    }
    return read;
  }

 private:
  Device& device_;
  std::vector<DeviceBuffer> all_;
};

Matrix gaussian(std::size_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<double> normal;
  Matrix values(count);
  for (double& value : values) value = from_bf16(to_bf16(normal(bits)));
  return values;
}

}  // namespace

TEST_CASE("cuDNN's attention agrees with a double reference, forward and backward") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  constexpr std::int64_t kBatch = 2, kHeads = 2;
  // Making plans takes up to some seconds each.
  for (const std::int64_t width : {64, 96, 128, 256})
    for (const bool causal : {false, true}) {
      if (width == 96 && !causal) continue;
      const std::int64_t sequence = width == 128 ? 256 : 200;
      CAPTURE(width, sequence, causal);
      const std::size_t heads = kBatch * kHeads, rows = heads * static_cast<std::size_t>(sequence);
      const std::size_t elements = rows * static_cast<std::size_t>(width);
      const AttentionReference reference{heads, static_cast<std::size_t>(sequence),
                                         static_cast<std::size_t>(width), causal};
      const AttentionReference other{heads, static_cast<std::size_t>(sequence),
                                     static_cast<std::size_t>(width), !causal};
      const Matrix q = gaussian(elements, 1), k = gaussian(elements, 2), v = gaussian(elements, 3),
                   d_o = gaussian(elements, 4);
      Matrix o, lse, wrong_o, wrong_lse, d_q, d_k, d_v;
      reference.forward(q, k, v, o, lse);
      other.forward(q, k, v, wrong_o, wrong_lse);
      for (double& value : o) value = from_bf16(to_bf16(value));
      reference.backward(q, k, v, o, d_o, lse, d_q, d_k, d_v);

      Buffers memory(*gpu);
      constexpr DType kHalf = DType::bfloat16, kSingle = DType::float32;
      const DeviceBuffer qkv[3] = {memory.with(q, kHalf), memory.with(k, kHalf), memory.with(v, kHalf)};
      PlanBuffers forward{{qkv[0], qkv[1], qkv[2]}, {memory.make(elements * 2), memory.make(rows * 4)}};
      const Workload workload =
          attention_workload(attention_definition(false, causal, width), kBatch, kHeads, sequence);
      const auto library = baseline_or_skip(workload);
      if (!library) return;
      const auto prepared = library->prepare(*gpu, workload, forward);
      if (!prepared) FAIL(prepared.error().to_string());
      CHECK(library->description().find("engine ") != std::string::npos);
      for (const DeviceBuffer& output : forward.outputs)
        REQUIRE(gpu->fill(output.address, 0xff, 1, output.bytes));
      // Behind the gate, where nothing may wait for the stream.
      REQUIRE(gpu->close_gate());
      const auto queued = library->enqueue(forward);
      REQUIRE(gpu->open_gate());
      if (!queued) FAIL(queued.error().to_string());
      REQUIRE_FALSE(*gpu->synchronize(60'000'000'000));
      const Matrix got_o = memory.values(forward.outputs[0], kHalf);
      CHECK(relative_error(got_o, o) < 5e-3);
      CHECK(relative_error(memory.values(forward.outputs[1], kSingle), lse) < 1e-5);
      CHECK(relative_error(got_o, wrong_o) > 0.1);

      PlanBuffers backward{
          {qkv[0], qkv[1], qkv[2], memory.with(o, kHalf), memory.with(d_o, kHalf), memory.with(lse, kSingle)},
          {memory.make(elements * 2), memory.make(elements * 2), memory.make(elements * 2)}};
      const Workload gradients =
          attention_workload(attention_definition(true, causal, width), kBatch, kHeads, sequence);
      const auto gradient_library = baseline_or_skip(gradients);
      REQUIRE(gradient_library);
      const auto ready = gradient_library->prepare(*gpu, gradients, backward);
      if (!ready) FAIL(ready.error().to_string());
      // Twice, because what sums in memory must start anew.
      for (int round = 0; round < 2; ++round) {
        for (const DeviceBuffer& output : backward.outputs)
          REQUIRE(gpu->fill(output.address, 0xff, 1, output.bytes));
        REQUIRE(gpu->close_gate());
        const auto second = gradient_library->enqueue(backward);
        REQUIRE(gpu->open_gate());
        if (!second) FAIL(second.error().to_string());
        REQUIRE_FALSE(*gpu->synchronize(60'000'000'000));
        CHECK(relative_error(memory.values(backward.outputs[0], kHalf), d_q) < 1e-2);
        CHECK(relative_error(memory.values(backward.outputs[1], kHalf), d_k) < 1e-2);
        CHECK(relative_error(memory.values(backward.outputs[2], kHalf), d_v) < 1e-2);
      }
    }
}

TEST_CASE("what cuDNN does not serve is unsupported, in its own words") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  constexpr std::int64_t width = 100;  // no multiple of 8
  for (const bool backward : {false, true}) {
    CAPTURE(backward);
    const Workload workload = attention_workload(attention_definition(backward, false, width), 1, 1, 64);
    const auto library = baseline_or_skip(workload);
    if (!library) return;
    Buffers memory(*gpu);
    PlanBuffers buffers;
    for (int i = 0; i < (backward ? 6 : 3); ++i)
      buffers.inputs.push_back(memory.make(static_cast<std::uint64_t>(width) * 128));
    for (int i = 0; i < 3; ++i)
      buffers.outputs.push_back(memory.make(static_cast<std::uint64_t>(width) * 128));
    const auto prepared = library->prepare(*gpu, workload, buffers);
    REQUIRE_FALSE(prepared);
    CHECK(prepared.error().code == ErrorCode::unsupported);
    INFO(prepared.error().message);
    CHECK(prepared.error().message.find("CUDNN_STATUS_NOT_SUPPORTED") != std::string::npos);
  }
}

TEST_CASE("cuDNN's attention in fp16: equal scores weigh all keys alike") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  constexpr std::int64_t kSequence = 192, kWidth = 64;
  const Workload workload =
      attention_workload(attention_definition(false, true, kWidth, DType::float16), 1, 2, kSequence);
  const auto library = baseline_or_skip(workload);
  if (!library) return;
  Buffers memory(*gpu);
  constexpr std::uint64_t kRows = 2 * kSequence, kBytes = kRows * kWidth * 2;
  PlanBuffers buffers;
  for (int i = 0; i < 4; ++i) (i < 3 ? buffers.inputs : buffers.outputs).push_back(memory.make(kBytes));
  buffers.outputs.push_back(memory.make(kRows * 4));
  for (const DeviceBuffer& input : buffers.inputs) REQUIRE(gpu->fill(input.address, 0, 1, kBytes));
  const auto prepared = library->prepare(*gpu, workload, buffers);
  if (!prepared) FAIL(prepared.error().to_string());
  REQUIRE(library->enqueue(buffers));
  REQUIRE_FALSE(*gpu->synchronize(60'000'000'000));
  const Matrix lse = memory.values(buffers.outputs[1], DType::float32);
  for (std::size_t i = 0; i < lse.size(); ++i)
    CHECK(std::abs(lse[i] - std::log(static_cast<double>(i % kSequence + 1))) < 1e-5);
}

// Not run by default: test_gpu "[measure]" prints times of the benchmark's shapes.
TEST_CASE("how fast cuDNN's attention is at B=4 H=48 S=4096", "[.][measure]") {
  const auto gpu = gpu_or_skip();
  if (!gpu) return;
  constexpr std::int64_t kBatch = 4, kHeads = 48, kSequence = 4096;
  const DeviceEvent start = gpu->create_event().value(), end = gpu->create_event().value();
  for (const std::int64_t width : {64, 96, 128, 256})
    for (const bool causal : {false, true}) {
      Buffers memory(*gpu);
      const auto rows = static_cast<std::uint64_t>(kBatch * kHeads * kSequence);
      const std::uint64_t bytes = rows * static_cast<std::uint64_t>(width) * 2;
      const auto drawn = [&](unsigned seed) {
        const Matrix values = gaussian(std::size_t{1} << 20, seed);
        const DeviceBuffer part = memory.with(values, DType::bfloat16), whole = memory.make(bytes);
        for (std::uint64_t done = 0; done < bytes; done += part.bytes)
          REQUIRE(gpu->copy(whole.address + done, part.address, std::min(part.bytes, bytes - done)));
        return whole;
      };
      const DeviceBuffer q = drawn(1), k = drawn(2), v = drawn(3), d_o = drawn(4), o = memory.make(bytes),
                         lse = memory.make(rows * 4);
      for (const bool backward : {false, true}) {
        const PlanBuffers buffers =
            backward ? PlanBuffers{{q, k, v, o, d_o, lse},
                                   {memory.make(bytes), memory.make(bytes), memory.make(bytes)}}
                     : PlanBuffers{{q, k, v}, {o, lse}};
        const Workload workload =
            attention_workload(attention_definition(backward, causal, width), kBatch, kHeads, kSequence);
        const auto library = baseline_or_skip(workload);
        if (!library) return;
        const auto before = std::chrono::steady_clock::now();
        const auto prepared = library->prepare(*gpu, workload, buffers);
        const double took =
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
        if (!prepared) {
          WARN("D=" << width << (causal ? " causal" : "") << (backward ? " backward: " : " forward: ")
                    << prepared.error().to_string());
          continue;
        }
        std::vector<double> times;
        for (int i = 0; i < 15; ++i) {
          REQUIRE(gpu->record(start));
          REQUIRE(library->enqueue(buffers));
          REQUIRE(gpu->record(end));
          REQUIRE_FALSE(*gpu->synchronize(60'000'000'000));
          times.push_back(static_cast<double>(gpu->elapsed_ns(start, end).value()) * 1e-6);
        }
        std::nth_element(times.begin(), times.begin() + 7, times.end());
        const double flops = (backward ? 10.0 : 4.0) * kSequence * kSequence * kBatch * kHeads *
                             static_cast<double>(width) / (causal ? 2 : 1);
        WARN("D=" << width << (causal ? " causal" : "") << (backward ? " backward: " : " forward: ")
                  << times[7] << " ms, " << flops / times[7] * 1e-9 << " TFLOPS; " << library->description()
                  << "; prepared in " << took << " ms");
      }
    }
}
