// The library baseline for GEMMs: cuBLASLt, 32 MiB of workspace, the fastest of what its heuristics offer.
#include "bench/library_baselines.hpp"
#include "bench/time_offered.hpp"

#include <array>
#include <vector>

namespace ptxbench {
namespace {

constexpr std::uint64_t kWorkspaceBytes = std::uint64_t{32} << 20;

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::bfloat16:
      return CUDA_R_16BF;
    case DType::float16:
      return CUDA_R_16F;
    default:
      return CUDA_R_32F;
  }
}

class CublasLtGemm final : public LibraryBaseline {
 public:
  CublasLtGemm(std::shared_ptr<const CublasLt> library, GemmPattern pattern)
      : lt_(std::move(library)), pattern_(pattern) {}
  ~CublasLtGemm() override {
    for (const cublasLtMatrixLayout_t layout : {a_, b_, c_})
      if (layout != nullptr) lt_->cublasLtMatrixLayoutDestroy(layout);
    if (operation_ != nullptr) lt_->cublasLtMatmulDescDestroy(operation_);
    if (handle_ != nullptr) lt_->cublasLtDestroy(handle_);
    if (device_ != nullptr && workspace_.address != 0) device_->release(workspace_);
  }

  Result<void> prepare(Device& device, const Workload& workload, const PlanBuffers& buffers) override {
    if (device.native_stream() == nullptr)
      return make_error(ErrorCode::unsupported, device.info().id + " runs no library's kernels");
    if (device_ != nullptr) return make_error(ErrorCode::state, "the baseline is prepared already");
    device_ = &device;
    PTXBENCH_TRY_ASSIGN(const GemmShape shape, gemm_shape(workload, pattern_));
    PTXBENCH_TRY_ASSIGN(workspace_, device.allocate(kWorkspaceBytes));
    PTXBENCH_TRY(describe(shape));
    PTXBENCH_TRY_ASSIGN(const auto offered, candidates());
    return choose(offered, buffers);
  }

  std::string description() const override { return description_; }

  Result<void> enqueue(const PlanBuffers& buffers) override {
    if (description_.empty()) return make_error(ErrorCode::state, "the baseline is not prepared");
    return check(queue(algorithm_, buffers), "cublasLtMatmul");
  }

 private:
  Result<void> check(cublasStatus_t status, const char* what) const {
    if (status == CUBLAS_STATUS_SUCCESS) return {};
    return make_error(ErrorCode::driver, std::string(what) + ": " + lt_->cublasLtGetStatusName(status) +
                                             " (" + lt_->cublasLtGetStatusString(status) + ")");
  }

  // cuBLAS is column-major: row-major C[M,N] = A * B^T is C^T[N,M] = B * A^T there, with B transposed.
  Result<void> describe(const GemmShape& s) {
    PTXBENCH_TRY(check(lt_->cublasLtCreate(&handle_), "cublasLtCreate"));
    PTXBENCH_TRY(check(lt_->cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                       "cublasLtMatmulDescCreate"));
    const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    PTXBENCH_TRY(check(lt_->cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                           &transposed, sizeof transposed),
                       "cublasLtMatmulDescSetAttribute"));
    PTXBENCH_TRY(check(
        lt_->cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof plain),
        "cublasLtMatmulDescSetAttribute"));
    const cudaDataType_t in = data_type(pattern_.input), out = data_type(pattern_.output);
    PTXBENCH_TRY(
        check(lt_->cublasLtMatrixLayoutCreate(&a_, in, s.k, s.n, s.k), "cublasLtMatrixLayoutCreate"));
    PTXBENCH_TRY(
        check(lt_->cublasLtMatrixLayoutCreate(&b_, in, s.k, s.m, s.k), "cublasLtMatrixLayoutCreate"));
    return check(lt_->cublasLtMatrixLayoutCreate(&c_, out, s.n, s.m, s.n), "cublasLtMatrixLayoutCreate");
  }

  Result<std::vector<cublasLtMatmulHeuristicResult_t>> candidates() {
    cublasLtMatmulPreference_t preference = nullptr;
    PTXBENCH_TRY(check(lt_->cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate"));
    const std::uint64_t most = kWorkspaceBytes;
    std::vector<cublasLtMatmulHeuristicResult_t> offered(kMostOffered);
    int count = 0;
    cublasStatus_t status = lt_->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    if (status == CUBLAS_STATUS_SUCCESS)
      status = lt_->cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a_, b_, c_, c_, preference,
                                                   kMostOffered, offered.data(), &count);
    lt_->cublasLtMatmulPreferenceDestroy(preference);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && count == 0))
      return make_error(ErrorCode::unsupported,
                        "cuBLASLt " + lt_->version_text() + " has no kernel for this GEMM");
    PTXBENCH_TRY(check(status, "cublasLtMatmulAlgoGetHeuristic"));
    offered.resize(static_cast<std::size_t>(count));
    return offered;
  }

  Result<void> choose(const std::vector<cublasLtMatmulHeuristicResult_t>& offered,
                      const PlanBuffers& buffers) {
    PTXBENCH_TRY_ASSIGN(
        const Fastest fastest,
        time_offered(*device_, "cuBLASLt", offered.size(), [&](std::size_t i) -> Result<void> {
          PTXBENCH_TRY(check(offered[i].state, "cublasLtMatmulAlgoGetHeuristic"));
          return check(queue(offered[i].algo, buffers), "cublasLtMatmul");
        }));
    if (!fastest.index)
      return make_error(ErrorCode::unsupported, "none of cuBLASLt's kernels for this GEMM could be run");
    algorithm_ = offered[*fastest.index].algo;
    description_ = "cuBLASLt " + lt_->version_text() + " algo " + attribute(CUBLASLT_ALGO_CONFIG_ID) +
                   " tile " + attribute(CUBLASLT_ALGO_CONFIG_TILE_ID) + " stages " +
                   attribute(CUBLASLT_ALGO_CONFIG_STAGES_ID) + " split-k " +
                   attribute(CUBLASLT_ALGO_CONFIG_SPLITK_NUM) + ", best of " + std::to_string(offered.size());
    return {};
  }

  std::string attribute(cublasLtMatmulAlgoConfigAttributes_t name) const {
    std::int32_t value = 0;
    std::size_t written = 0;
    if (lt_->cublasLtMatmulAlgoConfigGetAttribute(&algorithm_, name, &value, sizeof value, &written) !=
        CUBLAS_STATUS_SUCCESS)
      return "?";
    return std::to_string(value);
  }

  cublasStatus_t queue(const cublasLtMatmulAlgo_t& algorithm, const PlanBuffers& buffers) const {
    const float one = 1, zero = 0;
    const auto pointer = [](const DeviceBuffer& buffer) { return reinterpret_cast<void*>(buffer.address); };
    void* c = pointer(buffers.outputs[0]);
    return lt_->cublasLtMatmul(handle_, operation_, &one, pointer(buffers.inputs[pattern_.b]), a_,
                               pointer(buffers.inputs[pattern_.a]), b_, &zero, c, c_, c, c_, &algorithm,
                               pointer(workspace_), kWorkspaceBytes,
                               static_cast<cudaStream_t>(device_->native_stream()));
  }

  std::shared_ptr<const CublasLt> lt_;
  GemmPattern pattern_;
  Device* device_ = nullptr;
  DeviceBuffer workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  std::string description_;
};

}  // namespace

std::unique_ptr<LibraryBaseline> make_cublaslt_gemm(std::shared_ptr<const CublasLt> library,
                                                    const GemmPattern& pattern) {
  return std::make_unique<CublasLtGemm>(std::move(library), pattern);
}

}  // namespace ptxbench
