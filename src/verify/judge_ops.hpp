// What the judge computes on device memory: one interface with a form on the GPU (kernels of judge.cu) and
// one on the CPU for devices whose memory the host can touch.
#pragma once

#include "verify/diagnose.hpp"
#include "verify/judge/attention.h"
#include "verify/judge/judge.h"
#include "verify/native.hpp"

#include <ptxbench/device.hpp>
#include <ptxbench/verify.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ptxbench {

// Elements of `dtype` at a device address.
struct ElementsAt {
  std::uint64_t address = 0;
  DType dtype = DType::float32;
};

// Results of a model, of all elements or of some rows; address 0: none. Its type is that of what is compared.
struct ModelAt {
  ModelAt(std::uint64_t at = 0) : address(at) {}
  std::uint64_t address = 0;
  judge::Sample sample{};      // list at a device address
  std::uint64_t elements = 0;  // of a sample
};

// An attention's tensors at device addresses: the forward pass reads q, k, v and writes o and lse; the
// backward pass reads q, k, v, o, d_o and lse and writes dq, dk and dv.
struct AttentionTensors {
  std::uint64_t q = 0, k = 0, v = 0, o = 0, lse = 0, d_o = 0, dq = 0, dk = 0, dv = 0;
};

// How an attention is computed, of which rows of each head (queries; keys for dk and dv), and what is
// written.
struct AttentionSpec {
  bool causal = false;
  // Mistakes that a diagnosis computes under: a causal mask that is one off (-1 or 1: query i sees keys 0 .. i + offset), and
  // scores multiplied by something else than 1 / sqrt(D), the default. Gradients are multiplied by 1 / sqrt(D) all the same.
  int mask_offset = 0;
  std::optional<double> score_scale;
  DType input = DType::bfloat16;
  bool model = false;             // else the reference
  DType output = DType::float32;  // of o, dq, dk, dv
  DType lse = DType::float64;     // of the forward pass: float32 or float64
  std::uint64_t rows =
      0;  // u32 [heads, rows_of_head] at a device address, ascending: outputs are packed; 0: all
  std::uint32_t rows_of_head = 0;

  judge::u32 mask() const {
    return causal ? static_cast<judge::u32>(static_cast<int>(judge::kCausalMask) + mask_offset) : judge::kNoMask;
  }
};

// Where the backward pass has what the forward pass computed, and what its inputs' gradients follow from.
inline constexpr std::size_t kAttentionOutput = 3, kAttentionGradient = 4, kAttentionLse = 5;

// The forward pass whose results a backward pass takes: the reference, rounded to its inputs' types.
inline AttentionSpec forward_as_inputs(const AttentionPattern& backward) {
  AttentionSpec spec;
  spec.causal = backward.causal;
  spec.input = spec.output = backward.dtype;
  spec.lse = DType::float32;
  return spec;
}

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
  // Something else that runs beside what is queued next and takes the room of its CTAs (of such a @p shape) for up to a third of
  // a millisecond: there is room for one, later for two, for four, until all is free. However small a grid is, its CTAs begin at
  // different times, in another order, beside few others; by the seed. False where nothing can run beside.
  struct CtaShape {
    std::uint64_t threads = 1, shared_bytes = 0;
  };
  virtual Result<bool> disturb(std::uint64_t seed, const CtaShape& shape) = 0;

  // --- these wait for what is queued ---
  // Units (elements; bytes for 4-bit types) that differ from the draw.
  virtual Result<judge::Mismatch> check_draw(const judge::DrawSpec& spec, std::uint64_t address) = 0;
  // Bytes that differ.
  virtual Result<judge::Mismatch> compare(std::uint64_t a, std::uint64_t b, std::uint64_t bytes) = 0;
  // Of memory at a multiple of 8.
  virtual Result<judge::Digest> digest(std::uint64_t address, std::uint64_t bytes, std::uint64_t key) = 0;
  // Elements of `element_bytes` (1, 2, 4 or 8) all of whose bytes are `byte`.
  virtual Result<std::uint64_t> count_poison(std::uint64_t address, int element_bytes, std::uint64_t elements,
                                             std::uint8_t byte) = 0;
  virtual Result<OutputStatistics> statistics(std::uint64_t elements, ElementsAt got, ElementsAt reference,
                                              const ModelAt& model) = 0;
  virtual Result<judge::Mismatch> find_wrong(std::uint64_t elements, ElementsAt got, ElementsAt reference,
                                             double atol, double rtol) = 0;
  // How many of them lie in each tile of @p grid, row-major; at most 64 by 64 tiles.
  virtual Result<std::vector<std::uint32_t>> wrong_tiles(const TileGrid& grid, ElementsAt got, ElementsAt reference,
                                                         double atol, double rtol) = 0;
  // Need memory for some rows of scores while they run. The backward reference recomputes P from its own fp64 LSE, the
  // model's from the one given.
  virtual Result<void> attention_forward(const AttentionSpec& spec, const AttentionShape& shape,
                                         const AttentionTensors& tensors) = 0;
  virtual Result<void> attention_backward(const AttentionSpec& spec, const AttentionShape& shape,
                                          const AttentionTensors& tensors) = 0;
};

// The form that fits @p device: on the CPU where the host can touch its memory, else kernels from @p cubin
// (an error where that is empty).
Result<std::unique_ptr<JudgeOps>> make_judge_ops(Device& device, std::span<const std::uint8_t> cubin);

std::unique_ptr<JudgeOps> make_host_judge(Device& device);
Result<std::unique_ptr<JudgeOps>> make_cuda_judge(Device& device,
                                                  const ModuleImage& image);  // judge.cu, compiled

OutputStatistics statistics_of(const judge::Partial& partial, bool has_model) noexcept;
// Adds what was seen of a model's sample.
void add_sample(OutputStatistics& statistics, const judge::Partial& sample) noexcept;

}  // namespace ptxbench
