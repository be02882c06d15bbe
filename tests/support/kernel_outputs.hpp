// The output bytes of the kernel collection: recorded on a card, compared on the emulator.
#pragma once

#include "support/kernel_cases.hpp"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace ptxbench::testing {

// Those whose bytes are kept in tests/fixtures/kernel_outputs; inputs are those of seed 1, trial 0.
inline const std::vector<std::string>& recorded_kernels() {
  static const std::vector<std::string> names{"attention_mma",
                                              "attention_wgmma",
                                              "attention_wgmma_128",
                                              "column_sums_grid_sync",
                                              "cutile_gemm",
                                              "cutile_softmax",
                                              "gemm_cluster_reduce",
                                              "gemm_mma_cp_async",
                                              "gemm_wgmma_64b",
                                              "gemm_wgmma_register_a",
                                              "gemm_wmma",
                                              "mosaic_gemm",
                                              "numba_softmax",
                                              "pallas_softmax",
                                              "rmsnorm_block",
                                              "softmax_warp",
                                              "tilelang_softmax",
                                              "triton_390_attention",
                                              "triton_390_gemm_descriptors",
                                              "triton_390_gemm_pointers",
                                              "triton_cluster_gemm",
                                              "triton_libm",
                                              "triton_softmax"};
  return names;
}

// A comparator that keeps what it is shown.
class Capture final : public Comparator {
 public:
  Result<std::vector<OutputCorrectness>> compare(const Workload&, std::span<const HostTensor>,
                                                 std::span<const HostTensor> got) override {
    std::vector<OutputCorrectness> out;
    bytes.clear();
    for (const HostTensor& tensor : got) {
      const auto* data = static_cast<const std::uint8_t*>(tensor.data);
      bytes.insert(bytes.end(), data, data + tensor.bytes);
      OutputCorrectness correctness;
      correctness.output = tensor.name;
      correctness.ok = true;
      out.push_back(correctness);
    }
    return out;
  }
  std::vector<std::uint8_t> bytes;
};

}  // namespace ptxbench::testing
