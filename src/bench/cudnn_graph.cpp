#include "bench/cudnn_graph.hpp"

#include <algorithm>

namespace ptxbench {

using cudnn::Attribute;
using cudnn::AttributeType;
using cudnn::DataType;
using cudnn::DescriptorType;

namespace {

const char* descriptor_name(DescriptorType type) {
  switch (type) {
    case DescriptorType::tensor:
      return "a tensor";
    case DescriptorType::pointwise:
    case DescriptorType::operation_pointwise:
      return "a pointwise operation";
    case DescriptorType::matmul:
    case DescriptorType::operation_matmul:
      return "a matrix product";
    case DescriptorType::reduction:
    case DescriptorType::operation_reduction:
      return "a reduction";
    case DescriptorType::operation_reshape:
      return "a reshape";
    case DescriptorType::operation_graph:
      return "the operation graph";
    case DescriptorType::engine_heuristics:
      return "the heuristics";
    case DescriptorType::execution_plan:
      return "an execution plan";
    case DescriptorType::variant_pack:
      return "a variant pack";
    default:
      return "an engine's configuration";
  }
}

}  // namespace

Error cudnn_error(const Cudnn& library, int status, const std::string& what) {
  std::array<char, 2048> detail{};
  library.cudnnGetLastErrorString(detail.data(), detail.size());
  detail.back() = 0;
  std::string text = detail.data();
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  constexpr std::size_t kMost = 400;  // the reason comes first, cuDNN's own call stack behind it
  if (text.size() > kMost) text = text.substr(0, kMost) + " ...";
  return make_error(
      cudnn::is_not_supported(status) ? ErrorCode::unsupported : ErrorCode::driver,
      what + ": " + library.cudnnGetErrorString(status) + (text.empty() ? "" : " (" + text + ")"));
}

CudnnDescriptor::~CudnnDescriptor() {
  if (handle_ != nullptr) library_->cudnnBackendDestroyDescriptor(handle_);
}

Result<CudnnDescriptor> CudnnDescriptor::create(std::shared_ptr<const Cudnn> library, DescriptorType type) {
  CudnnDescriptor made;
  made.type_ = type;
  made.library_ = std::move(library);
  const int status = made.library_->cudnnBackendCreateDescriptor(type, &made.handle_);
  if (status != cudnn::kSuccess) {
    made.handle_ = nullptr;
    return cudnn_error(*made.library_, status,
                       std::string("cudnnBackendCreateDescriptor of ") + descriptor_name(type));
  }
  return made;
}

Result<void> CudnnDescriptor::set(Attribute attribute, AttributeType type, std::int64_t count,
                                  const void* elements) {
  const int status = library_->cudnnBackendSetAttribute(handle_, attribute, type, count, elements);
  if (status == cudnn::kSuccess) return {};
  return cudnn_error(*library_, status,
                     "cudnnBackendSetAttribute " + std::to_string(static_cast<int>(attribute)) + " of " +
                         descriptor_name(type_));
}
Result<void> CudnnDescriptor::set(Attribute attribute, const CudnnDescriptor& value) {
  return set(attribute, AttributeType::descriptor, 1, &value.handle_);
}
Result<void> CudnnDescriptor::set(Attribute attribute, std::int64_t value) {
  return set(attribute, AttributeType::int64, 1, &value);
}
Result<void> CudnnDescriptor::set(Attribute attribute, bool value) {
  return set(attribute, AttributeType::boolean, 1, &value);
}
Result<void> CudnnDescriptor::set(Attribute attribute, DataType value) {
  return set(attribute, AttributeType::data_type, 1, &value);
}

Result<void> CudnnDescriptor::finalize() {
  const int status = library_->cudnnBackendFinalize(handle_);
  if (status == cudnn::kSuccess) return {};
  return cudnn_error(*library_, status, std::string("cudnnBackendFinalize of ") + descriptor_name(type_));
}

Result<std::int64_t> CudnnDescriptor::get(Attribute attribute, AttributeType type, std::int64_t capacity,
                                          void* elements) const {
  std::int64_t count = 0;
  const int status = library_->cudnnBackendGetAttribute(handle_, attribute, type, capacity, &count, elements);
  if (status == cudnn::kSuccess) return count;
  return cudnn_error(*library_, status,
                     "cudnnBackendGetAttribute " + std::to_string(static_cast<int>(attribute)) + " of " +
                         descriptor_name(type_));
}

CudnnDims packed_strides(const CudnnDims& dims) noexcept {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

Result<CudnnTensor> CudnnGraph::add_tensor(CudnnTensor tensor, bool is_virtual, bool by_value) {
  constexpr std::int64_t kAlignment = 16;
  tensor.id = static_cast<std::int64_t>(tensors_.size()) + 1;
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor made, CudnnDescriptor::create(library_, DescriptorType::tensor));
  PTXBENCH_TRY(made.set(Attribute::tensor_data_type, tensor.type));
  PTXBENCH_TRY(made.set(Attribute::tensor_dimensions, AttributeType::int64, 4, tensor.dims.data()));
  PTXBENCH_TRY(made.set(Attribute::tensor_strides, AttributeType::int64, 4, tensor.strides.data()));
  PTXBENCH_TRY(made.set(Attribute::tensor_unique_id, tensor.id));
  PTXBENCH_TRY(made.set(Attribute::tensor_byte_alignment, kAlignment));
  if (is_virtual) PTXBENCH_TRY(made.set(Attribute::tensor_is_virtual, true));
  if (by_value) PTXBENCH_TRY(made.set(Attribute::tensor_is_by_value, true));
  PTXBENCH_TRY(made.finalize());
  tensors_.push_back(std::move(made));
  return tensor;
}

Result<CudnnTensor> CudnnGraph::tensor(const CudnnDims& dims, const CudnnDims& strides, DataType type) {
  return add_tensor({0, dims, strides, type}, false, false);
}

Result<CudnnTensor> CudnnGraph::constant(float value) {
  PTXBENCH_TRY_ASSIGN(const CudnnTensor made,
                      add_tensor({0, {1, 1, 1, 1}, {1, 1, 1, 1}, DataType::float32}, false, true));
  constants_[made.id] = value;
  return made;
}

Result<CudnnTensor> CudnnGraph::output(const CudnnTensor* into, const CudnnDims& dims, DataType type) {
  if (into != nullptr) return *into;
  return add_tensor({0, dims, packed_strides(dims), type}, true, false);
}

Result<void> CudnnGraph::connect(CudnnDescriptor& operation, Attribute attribute, const CudnnTensor& tensor) {
  return operation.set(attribute, tensors_.at(static_cast<std::size_t>(tensor.id - 1)));
}

Result<void> CudnnGraph::add_operation(CudnnDescriptor operation) {
  PTXBENCH_TRY(operation.finalize());
  operations_.push_back(std::move(operation));
  return {};
}

Result<CudnnTensor> CudnnGraph::matmul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor* into) {
  PTXBENCH_TRY_ASSIGN(const CudnnTensor c,
                      output(into, {a.dims[0], a.dims[1], a.dims[2], b.dims[3]}, DataType::float32));
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor how, CudnnDescriptor::create(library_, DescriptorType::matmul));
  PTXBENCH_TRY(how.set(Attribute::matmul_compute_type, DataType::float32));
  PTXBENCH_TRY(how.finalize());
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor operation,
                      CudnnDescriptor::create(library_, DescriptorType::operation_matmul));
  PTXBENCH_TRY(connect(operation, Attribute::operation_matmul_a, a));
  PTXBENCH_TRY(connect(operation, Attribute::operation_matmul_b, b));
  PTXBENCH_TRY(connect(operation, Attribute::operation_matmul_c, c));
  PTXBENCH_TRY(operation.set(Attribute::operation_matmul_descriptor, how));
  parts_.push_back(std::move(how));
  PTXBENCH_TRY(add_operation(std::move(operation)));
  return c;
}

Result<CudnnTensor> CudnnGraph::pointwise(const Pointwise& what, const CudnnTensor& x, const CudnnTensor* b,
                                          const CudnnTensor* t, const CudnnTensor* into) {
  CudnnDims dims = x.dims;
  for (const CudnnTensor* other : {b, t})
    if (other != nullptr)
      for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = std::max(dims[i], other->dims[i]);
  PTXBENCH_TRY_ASSIGN(const CudnnTensor y, output(into, dims, what.output));
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor how, CudnnDescriptor::create(library_, DescriptorType::pointwise));
  PTXBENCH_TRY(how.set(Attribute::pointwise_mode, AttributeType::pointwise_mode, 1, &what.mode));
  PTXBENCH_TRY(how.set(Attribute::pointwise_math_precision, what.compute));
  if (what.mode == cudnn::PointwiseMode::gen_index)
    PTXBENCH_TRY(how.set(Attribute::pointwise_axis, what.axis));
  PTXBENCH_TRY(how.finalize());
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor operation,
                      CudnnDescriptor::create(library_, DescriptorType::operation_pointwise));
  PTXBENCH_TRY(operation.set(Attribute::operation_pointwise_descriptor, how));
  PTXBENCH_TRY(connect(operation, Attribute::operation_pointwise_x, x));
  PTXBENCH_TRY(connect(operation, Attribute::operation_pointwise_y, y));
  if (b != nullptr) PTXBENCH_TRY(connect(operation, Attribute::operation_pointwise_b, *b));
  if (t != nullptr) PTXBENCH_TRY(connect(operation, Attribute::operation_pointwise_t, *t));
  parts_.push_back(std::move(how));
  PTXBENCH_TRY(add_operation(std::move(operation)));
  return y;
}

Result<CudnnTensor> CudnnGraph::reduce(cudnn::ReductionOperator what, const CudnnTensor& x) {
  PTXBENCH_TRY_ASSIGN(const CudnnTensor y,
                      output(nullptr, {x.dims[0], x.dims[1], x.dims[2], 1}, DataType::float32));
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor how, CudnnDescriptor::create(library_, DescriptorType::reduction));
  PTXBENCH_TRY(how.set(Attribute::reduction_operator, AttributeType::reduction_operator, 1, &what));
  PTXBENCH_TRY(how.set(Attribute::reduction_compute_type, DataType::float32));
  PTXBENCH_TRY(how.finalize());
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor operation,
                      CudnnDescriptor::create(library_, DescriptorType::operation_reduction));
  PTXBENCH_TRY(connect(operation, Attribute::operation_reduction_x, x));
  PTXBENCH_TRY(connect(operation, Attribute::operation_reduction_y, y));
  PTXBENCH_TRY(operation.set(Attribute::operation_reduction_descriptor, how));
  parts_.push_back(std::move(how));
  PTXBENCH_TRY(add_operation(std::move(operation)));
  return y;
}

Result<CudnnTensor> CudnnGraph::transpose(const CudnnTensor& x, DataType type) {
  CudnnTensor y = x;
  y.type = type;
  std::swap(y.dims[2], y.dims[3]);
  std::swap(y.strides[2], y.strides[3]);
  PTXBENCH_TRY_ASSIGN(y, add_tensor(y, true, false));
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor operation,
                      CudnnDescriptor::create(library_, DescriptorType::operation_reshape));
  PTXBENCH_TRY(connect(operation, Attribute::operation_reshape_x, x));
  PTXBENCH_TRY(connect(operation, Attribute::operation_reshape_y, y));
  PTXBENCH_TRY(add_operation(std::move(operation)));
  return y;
}

Result<CudnnDescriptor> CudnnGraph::finish(cudnn::Handle handle) {
  std::vector<cudnn::Descriptor> operations;
  for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.handle());
  PTXBENCH_TRY_ASSIGN(CudnnDescriptor graph,
                      CudnnDescriptor::create(library_, DescriptorType::operation_graph));
  PTXBENCH_TRY(graph.set(Attribute::operation_graph_operations, AttributeType::descriptor,
                         static_cast<std::int64_t>(operations.size()), operations.data()));
  PTXBENCH_TRY(graph.set(Attribute::operation_graph_handle, AttributeType::handle, 1, &handle));
  PTXBENCH_TRY(graph.finalize());
  return graph;
}

}  // namespace ptxbench
