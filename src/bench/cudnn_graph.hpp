// An operation graph of cuDNN's backend API, built operation by operation.
#pragma once

#include "core/cuda_libs.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench {

// "cudnnBackendFinalize of a tensor: CUDNN_STATUS_BAD_PARAM (...)". What cuDNN does not support is
// ErrorCode::unsupported, everything else ErrorCode::driver.
Error cudnn_error(const Cudnn& library, int status, const std::string& what);

// A backend descriptor that is destroyed with its owner.
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  CudnnDescriptor(CudnnDescriptor&& other) noexcept { swap(other); }
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    swap(other);
    return *this;
  }
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;
  ~CudnnDescriptor();

  static Result<CudnnDescriptor> create(std::shared_ptr<const Cudnn> library, cudnn::DescriptorType type);

  Result<void> set(cudnn::Attribute attribute, cudnn::AttributeType type, std::int64_t count,
                   const void* elements);
  // One element, whose type follows from T.
  Result<void> set(cudnn::Attribute attribute, const CudnnDescriptor& value);
  Result<void> set(cudnn::Attribute attribute, std::int64_t value);
  Result<void> set(cudnn::Attribute attribute, bool value);
  Result<void> set(cudnn::Attribute attribute, cudnn::DataType value);
  Result<void> finalize();
  // How many elements there are; at most `capacity` of them are written.
  Result<std::int64_t> get(cudnn::Attribute attribute, cudnn::AttributeType type, std::int64_t capacity,
                           void* elements) const;

  cudnn::Descriptor handle() const noexcept { return handle_; }

 private:
  void swap(CudnnDescriptor& other) noexcept {
    std::swap(library_, other.library_);
    std::swap(handle_, other.handle_);
    std::swap(type_, other.type_);
  }
  std::shared_ptr<const Cudnn> library_;
  cudnn::Descriptor handle_ = nullptr;
  cudnn::DescriptorType type_{};
};

using CudnnDims = std::array<std::int64_t, 4>;  // of [B, H, rows, columns]
CudnnDims packed_strides(const CudnnDims& dims) noexcept;

// A tensor of a graph. Virtual ones exist only inside of the library's kernel.
struct CudnnTensor {
  std::int64_t id = 0;
  CudnnDims dims{}, strides{};
  cudnn::DataType type = cudnn::DataType::float32;
};

class CudnnGraph {
 public:
  explicit CudnnGraph(std::shared_ptr<const Cudnn> library) : library_(std::move(library)) {}

  // In memory; its address comes with every run.
  Result<CudnnTensor> tensor(const CudnnDims& dims, const CudnnDims& strides, cudnn::DataType type);
  // A float that travels by value.
  Result<CudnnTensor> constant(float value);

  // Each returns its virtual output, or writes to `into`, where given.
  Result<CudnnTensor> matmul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor* into = nullptr);
  struct Pointwise {
    cudnn::PointwiseMode mode;
    cudnn::DataType output = cudnn::DataType::float32, compute = cudnn::DataType::float32;
    std::int64_t axis = -1;  // gen_index
  };
  Result<CudnnTensor> pointwise(const Pointwise& what, const CudnnTensor& x, const CudnnTensor* b = nullptr,
                                const CudnnTensor* t = nullptr, const CudnnTensor* into = nullptr);
  // Over the last dimension.
  Result<CudnnTensor> reduce(cudnn::ReductionOperator what, const CudnnTensor& x);
  // The same bytes with the last two dimensions exchanged, as `type`.
  Result<CudnnTensor> transpose(const CudnnTensor& x, cudnn::DataType type);

  Result<CudnnDescriptor> finish(cudnn::Handle handle);

  const std::map<std::int64_t, float>& constants() const noexcept { return constants_; }  // by id

 private:
  Result<CudnnTensor> add_tensor(CudnnTensor tensor, bool is_virtual, bool by_value);
  Result<CudnnTensor> output(const CudnnTensor* into, const CudnnDims& dims, cudnn::DataType type);
  Result<void> connect(CudnnDescriptor& operation, cudnn::Attribute attribute, const CudnnTensor& tensor);
  Result<void> add_operation(CudnnDescriptor operation);

  std::shared_ptr<const Cudnn> library_;
  std::vector<CudnnDescriptor> tensors_;  // by id - 1
  std::vector<CudnnDescriptor> operations_, parts_;
  std::map<std::int64_t, float> constants_;
};

}  // namespace ptxbench
