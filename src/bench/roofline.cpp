// The least time that a workload can take: no kernel is faster than the card's arithmetic at its highest
// clock, nor than reading what it must read.
#include <ptxbench/bench.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace ptxbench {
namespace {

// Dense floating-point operations a clock and SM, two for a fused multiply-add, of the fastest unit that
// takes the type. From NVIDIA's published peaks: H100 SXM (132 SMs): 989.4 TFLOPS in bf16 at 1830 MHz = 4096,
// fp8 twice, tf32 half of that; FMA 66.9 TFLOPS in fp32 at 1980 MHz = 256. B200 (148 SMs): 2250 TFLOPS in
// bf16 at 1850 MHz = 8192. An fp32 operand may be taken as tf32, so tf32 bounds it. Nothing where the
// architecture or the type is not known: no bound beats a wrong one.
std::optional<double> flops_per_clock(int compute_major, DType type) {
  double bf16 = 0;
  if (compute_major == 9) bf16 = 4096;
  if (compute_major == 10) bf16 = 8192;
  if (bf16 == 0) return std::nullopt;
  switch (type) {
    case DType::bfloat16:
    case DType::float16:
      return bf16;
    case DType::float32:
      return bf16 / 2;
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return 2 * bf16;
    default:
      return std::nullopt;
  }
}

double input_bytes(const Workload& workload) {
  double bytes = 0;
  for (const TensorSpec& input : workload.definition->inputs) {
    if (input.is_scalar()) continue;
    const Result<std::uint64_t> elements = workload.elements_of(input);
    if (elements) bytes += static_cast<double>(dtype_bytes(input.dtype, *elements));
  }
  return bytes;
}

std::string text(const char* format, double a, double b) {
  char line[160];
  std::snprintf(line, sizeof line, format, a, b);
  return line;
}

}  // namespace

std::optional<Roofline> roofline(const Workload& workload, const DeviceInfo& device, L2State l2,
                                 std::uint32_t max_sm_mhz) {
  if (workload.definition == nullptr) return std::nullopt;
  Roofline bound;
  const double hz =
      std::max(static_cast<double>(max_sm_mhz) * 1e6, static_cast<double>(device.max_sm_khz) * 1e3);
  const std::optional<TaskWork> arithmetic = task_work(workload);
  bound.exact = arithmetic.has_value();
  std::string compute, memory;
  if (arithmetic) {
    bound.flops = arithmetic->flops;
    const auto rate = flops_per_clock(device.limits.compute_major, arithmetic->type);
    if (rate && hz > 0 && device.limits.sm_count > 0) {
      const double peak = *rate * static_cast<double>(device.limits.sm_count) * hz;
      bound.compute_ns = arithmetic->flops / peak * 1e9;
      compute = text("%.4g GFLOP at %.4g TFLOP/s", arithmetic->flops / 1e9, peak / 1e12) + " (" +
                std::string(dtype_name(arithmetic->type)) + ", " + std::to_string(device.limits.sm_count) +
                " SMs, " + std::to_string(std::llround(hz / 1e6)) + " MHz)";
    }
  }
  const double bandwidth =
      static_cast<double>(device.memory_khz) * 1e3 * 2 * static_cast<double>(device.memory_bus_bits) / 8;
  bound.bytes = input_bytes(workload);
  if (l2 == L2State::warm)
    bound.bytes = std::max(0.0, bound.bytes - static_cast<double>(device.limits.l2_bytes));
  if (bandwidth > 0) {
    bound.memory_ns = bound.bytes / bandwidth * 1e9;
    memory = text("%.4g MB of inputs at %.4g TB/s", bound.bytes / 1e6, bandwidth / 1e12);
  }
  bound.ns = static_cast<std::uint64_t>(std::floor(std::max(bound.compute_ns, bound.memory_ns)));
  if (bound.ns == 0) return std::nullopt;
  bound.basis = bound.compute_ns >= bound.memory_ns ? compute : memory;
  return bound;
}

}  // namespace ptxbench
