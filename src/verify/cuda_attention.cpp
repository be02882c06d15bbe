#include "verify/cuda_attention.hpp"

#include "verify/judge/attention.h"
#include "verify/session.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace ptxbench {
namespace {

using judge::AttentionRows;
using judge::u32;
using judge::u64;

constexpr u32 kTile = 128;
constexpr u64 kMostScratch = u64{6} << 30, kLeastScratch = u64{64} << 20;

u32 tiles(u64 extent) { return static_cast<u32>((extent + kTile - 1) / kTile); }

class CudaAttention {
 public:
  CudaAttention(Device& device, const JudgeLauncher& launch, const AttentionSpec& spec,
                const AttentionShape& shape)
      : device_(device),
        launch_(launch),
        spec_(spec),
        shape_(shape),
        size_(spec.model ? sizeof(float) : sizeof(double)),
        type_(static_cast<u32>(spec.input)),
        root_(1 / std::sqrt(static_cast<double>(shape.head_dim))),
        scale_(spec.score_scale.value_or(root_)) {}

  Result<void> forward(const AttentionTensors& t) {
    PTXBENCH_TRY(take_scratch(1));
    PTXBENCH_TRY(
        each_piece(spec_.rows, rows_of_head(), [&](const AttentionRows& which, u32 heads) -> Result<void> {
          PTXBENCH_TRY(scores(which, heads, t.q, t.k, 0, false, scale_));
          PTXBENCH_TRY(softmax(which, heads, t.lse, static_cast<u32>(spec_.lse)));
          return weighted(which, heads, 0, t.v, sums_.address(), t.o, false, 1);
        }));
    return settle(device_, "the reference");
  }

  Result<void> backward(const AttentionTensors& t) {
    PTXBENCH_TRY(take_scratch(2));
    const u64 rows = shape_.rows();
    std::uint64_t lse = t.lse;
    OwnedBuffer own_lse, dots;
    PTXBENCH_TRY_ASSIGN(dots, OwnedBuffer::allocate(device_, rows * size_));
    PTXBENCH_TRY(run("dots", {grid_of(rows), 1, 1},
                     judge::DotsArgs{t.d_o, t.o, dots.address(), rows, shape_.head_dim, type_}));
    if (!spec_.model) {
      PTXBENCH_TRY_ASSIGN(own_lse, OwnedBuffer::allocate(device_, rows * size_));
      lse = own_lse.address();
      PTXBENCH_TRY(each_piece(0, shape_.sequence, [&](const AttentionRows& which, u32 heads) -> Result<void> {
        PTXBENCH_TRY(scores(which, heads, t.q, t.k, 0, false, scale_));
        return softmax(which, heads, lse, judge::kFloat64);
      }));
    }
    // Rows are queries: dQ = dS K / sqrt(D).
    PTXBENCH_TRY(
        each_piece(spec_.rows, rows_of_head(), [&](const AttentionRows& which, u32 heads) -> Result<void> {
          PTXBENCH_TRY(scores(which, heads, t.q, t.k, 0, false, scale_));
          PTXBENCH_TRY(scores(which, heads, t.d_o, t.v, 1, false, 1));
          PTXBENCH_TRY(gradient(which, heads, lse, dots.address(), false));
          return weighted(which, heads, 1, t.k, 0, t.dq, false, root_);
        }));
    // Rows are keys: dV = P^T dO, dK = dS^T Q / sqrt(D).
    PTXBENCH_TRY(
        each_piece(spec_.rows, rows_of_head(), [&](const AttentionRows& which, u32 heads) -> Result<void> {
          PTXBENCH_TRY(scores(which, heads, t.k, t.q, 0, true, scale_));
          PTXBENCH_TRY(scores(which, heads, t.v, t.d_o, 1, true, 1));
          PTXBENCH_TRY(gradient(which, heads, lse, dots.address(), true));
          PTXBENCH_TRY(weighted(which, heads, 0, t.d_o, 0, t.dv, true, 1));
          return weighted(which, heads, 1, t.q, 0, t.dk, true, root_);
        }));
    return settle(device_, "the reference");
  }

 private:
  u32 rows_of_head() const { return spec_.rows != 0 ? spec_.rows_of_head : shape_.sequence; }

  // `matrices` of rows x sequence, as many rows at a time as there is memory for.
  Result<void> take_scratch(u64 matrices) {
    const u64 row = u64{shape_.sequence} * size_ * matrices;
    const u64 all = row * shape_.all_heads() * std::max(rows_of_head(), spec_.model ? 0 : shape_.sequence);
    u64 bytes = std::min(all, std::max(kMostScratch, row));
    for (;;) {
      Result<OwnedBuffer> made = OwnedBuffer::allocate(device_, bytes);
      if (made) {
        scratch_ = std::move(*made);
        break;
      }
      if (made.error().code != ErrorCode::no_memory || bytes / 2 < std::max(kLeastScratch, row))
        return std::move(made).error();
      bytes /= 2;
    }
    rows_at_once_ = bytes / row;
    matrix_bytes_ = rows_at_once_ * shape_.sequence * size_;
    PTXBENCH_TRY_ASSIGN(sums_, OwnedBuffer::allocate(device_, rows_at_once_ * size_));
    return {};
  }
  u64 matrix(u64 which) const { return scratch_.address() + which * matrix_bytes_; }

  // Calls f(rows, heads) for pieces of all heads' rows: whole heads where they fit, else tiles of some.
  template <class F>
  Result<void> each_piece(u64 list, u32 rows_of_head, F&& f) {
    constexpr u32 kMostHeads = 32768;
    u64 rows = std::min<u64>(rows_of_head, 512);
    if (rows > rows_at_once_) rows = rows_at_once_ >= kTile ? rows_at_once_ / kTile * kTile : rows_at_once_;
    const u32 heads = static_cast<u32>(std::min<u64>({rows_at_once_ / rows, kMostHeads, shape_.all_heads()}));
    for (u32 head = 0; head < shape_.all_heads(); head += heads)
      for (u32 row = 0; row < rows_of_head; row += static_cast<u32>(rows)) {
        const AttentionRows which{list, rows_of_head, row,
                                  static_cast<u32>(std::min<u64>(rows, rows_of_head - row)), head};
        PTXBENCH_TRY(f(which, std::min(heads, shape_.all_heads() - head)));
      }
    return {};
  }

  Result<void> scores(const AttentionRows& which, u32 heads, u64 a, u64 b, u64 to, bool by_key,
                      double scale) {
    return run("scores", {tiles(shape_.sequence), tiles(which.rows), heads},
               judge::ScoresArgs{which, a, b, matrix(to), shape_.sequence, shape_.head_dim, type_,
                                 spec_.mask(), by_key, scale});
  }
  Result<void> softmax(const AttentionRows& which, u32 heads, u64 lse, u32 lse_type) {
    return run("softmax", {grid_of(u64{heads} * which.rows * 32), 1, 1},
               judge::SoftmaxArgs{which, matrix(0), sums_.address(), lse, shape_.sequence, type_, lse_type,
                                  spec_.mask(), heads});
  }
  Result<void> gradient(const AttentionRows& which, u32 heads, u64 lse, u64 dots, bool by_key) {
    return run("gradient", {grid_of(u64{heads} * which.rows * shape_.sequence), 1, 1},
               judge::GradientArgs{which, matrix(0), matrix(1), lse, dots, shape_.sequence, type_,
                                   spec_.mask(), by_key, heads, 0});
  }
  Result<void> weighted(const AttentionRows& which, u32 heads, u64 weights, u64 b, u64 sums, u64 out,
                        bool by_key, double scale) {
    return run("weighted", {tiles(shape_.head_dim), tiles(which.rows), heads},
               judge::WeightedArgs{which, matrix(weights), b, sums, out, shape_.sequence, shape_.head_dim,
                                   type_, static_cast<u32>(spec_.output), spec_.mask(), by_key, scale});
  }

  u32 grid_of(u64 threads) const {
    const u64 most = 16 * static_cast<u64>(std::max<std::int64_t>(device_.info().limits.sm_count, 1));
    return static_cast<u32>(std::clamp<u64>((threads + 255) / 256, 1, most));
  }
  template <class Args>
  Result<void> run(const char* kernel, std::array<u32, 3> grid, const Args& args) {
    static_assert(std::is_trivially_copyable_v<Args>);
    const std::string symbol =
        std::string("ptxbench_attention_") + kernel + (spec_.model ? "_model" : "_reference");
    return launch_(symbol, grid, {reinterpret_cast<const std::uint8_t*>(&args), sizeof args});
  }

  Device& device_;
  const JudgeLauncher& launch_;
  const AttentionSpec& spec_;
  const AttentionShape& shape_;
  const u64 size_;  // of the arithmetic's type
  const u32 type_;
  const double root_, scale_;  // 1 / sqrt(D); what scores are multiplied by
  OwnedBuffer scratch_, sums_;
  u64 matrix_bytes_ = 0, rows_at_once_ = 0;
};

}  // namespace

Result<void> cuda_attention_forward(Device& device, const JudgeLauncher& launch, const AttentionSpec& spec,
                                    const AttentionShape& shape, const AttentionTensors& tensors) {
  if (shape.elements() == 0) return {};
  return CudaAttention(device, launch, spec, shape).forward(tensors);
}

Result<void> cuda_attention_backward(Device& device, const JudgeLauncher& launch, const AttentionSpec& spec,
                                     const AttentionShape& shape, const AttentionTensors& tensors) {
  if (shape.elements() == 0) return {};
  return CudaAttention(device, launch, spec, shape).backward(tensors);
}

}  // namespace ptxbench
