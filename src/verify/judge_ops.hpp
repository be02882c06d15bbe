// What the judge computes on device memory: one interface with a form on the GPU (kernels of judge.cu) and
// one on the CPU for devices whose memory the host can touch.
#pragma once

#include "verify/judge/judge.h"
#include "verify/native.hpp"

#include <ptxbench/device.hpp>
#include <ptxbench/verify.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace ptxbench {

// Elements of `dtype` at a device address.
struct ElementsAt {
  std::uint64_t address = 0;
  DType dtype = DType::float32;
};

class JudgeOps {
 public:
  virtual ~JudgeOps() = default;

  // --- queued ---
  virtual Result<void> draw(const judge::DrawSpec& spec, std::uint64_t address) = 0;
  // fp64 results into `out` / results of the model, rounded to `pattern.output`.
  virtual Result<void> gemm_reference(const GemmPattern& pattern, const GemmShape& shape, std::uint64_t a,
                                      std::uint64_t b, std::uint64_t out) = 0;
  virtual Result<void> gemm_model(const GemmPattern& pattern, const GemmShape& shape, std::uint64_t a,
                                  std::uint64_t b, std::uint64_t out) = 0;
  virtual Result<void> flush_l2() = 0;
  // Reads memory, so that the L2 holds the end of it; 16-byte aligned.
  virtual Result<void> read_through(std::uint64_t address, std::uint64_t bytes) = 0;
  virtual Result<void> wipe_shared() = 0;

  // --- these wait for what is queued ---
  // Units (elements; bytes for 4-bit types) that differ from the draw.
  virtual Result<judge::Mismatch> check_draw(const judge::DrawSpec& spec, std::uint64_t address) = 0;
  // Bytes that differ.
  virtual Result<judge::Mismatch> compare(std::uint64_t a, std::uint64_t b, std::uint64_t bytes) = 0;
  // Elements of `element_bytes` (1, 2, 4 or 8) all of whose bytes are `byte`.
  virtual Result<std::uint64_t> count_poison(std::uint64_t address, int element_bytes, std::uint64_t elements,
                                             std::uint8_t byte) = 0;
  // `model`: address 0 for none; its type is got's.
  virtual Result<OutputStatistics> statistics(std::uint64_t elements, ElementsAt got, ElementsAt reference,
                                              std::uint64_t model) = 0;
  virtual Result<judge::Mismatch> find_wrong(std::uint64_t elements, ElementsAt got, ElementsAt reference,
                                             double atol, double rtol) = 0;
};

// The form that fits @p device: on the CPU where the host can touch its memory, else kernels from @p cubin
// (an error where that is empty).
Result<std::unique_ptr<JudgeOps>> make_judge_ops(Device& device, std::span<const std::uint8_t> cubin);

std::unique_ptr<JudgeOps> make_host_judge(Device& device);
Result<std::unique_ptr<JudgeOps>> make_cuda_judge(Device& device, std::span<const std::uint8_t> cubin);

OutputStatistics statistics_of(const judge::Partial& partial, bool has_model) noexcept;

}  // namespace ptxbench
