#include "bench/library_baselines.hpp"

#include "core/guard.hpp"

namespace ptxbench {
namespace {

Result<std::unique_ptr<LibraryBaseline>> find(const Definition& definition, const ToolkitSearch& search) {
  if (const auto gemm = match_gemm(definition)) {
    PTXBENCH_TRY_ASSIGN(auto library, CublasLt::open(search));
    return make_cublaslt_gemm(std::move(library), *gemm);
  }
  if (const auto attention = match_attention(definition)) {
    PTXBENCH_TRY_ASSIGN(auto library, Cudnn::open(search));
    return make_cudnn_attention(std::move(library), *attention);
  }
  return make_error(ErrorCode::unsupported, "no library baseline is known for op_type \"" +
                                                definition.op_type + "\" with these tensors");
}

}  // namespace

Result<std::unique_ptr<LibraryBaseline>> find_library_baseline(const Workload& workload,
                                                               const std::string& cuda_home) {
  if (workload.definition == nullptr)
    return make_error(ErrorCode::invalid_argument, "the workload has no definition");
  return guarded([&] {
    ToolkitSearch search;
    search.cuda_home = cuda_home;
    return find(*workload.definition, search);
  });
}

}  // namespace ptxbench
