// cuDNN's backend API for tests: descriptors are tables of attributes, and execution interprets the operation
// graph in double over a FakeDevice's memory. What cuDNN would refuse (an attribute after finalizing, an
// operation on what is not finalized, an id that has no address) fails here too.
#pragma once

#include "core/cuda_libs.hpp"
#include "support/attention_reference.hpp"
#include "support/catch.hpp"
#include "support/fake_device.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace ptxbench::testing {

class FakeCudnn {
 public:
  using A = cudnn::Attribute;
  using Type = cudnn::DescriptorType;

  // An engine's configuration that the heuristics offer.
  struct Offer {
    std::int64_t engine = 0, kernel_cfg = 0;
    std::uint64_t takes_ns = 1000;
    std::int64_t workspace = 0;
    int plan_status = 0, run_status = 0;
  };
  std::vector<Offer> offers{{2, 7, 1000}}, fallback_offers;
  bool viable = true;  // false: the heuristics count their offers and then give none
  std::string last_error;

  // What tests look at.
  std::vector<std::string> operations;  // of the last graph
  int live_descriptors = 0, live_handles = 0, runs = 0;
  CUstream stream = nullptr;
  std::vector<std::int64_t> last_ids;
  void* last_workspace = nullptr;

  explicit FakeCudnn(FakeDevice& device) : device_(device) {
    REQUIRE(current() == nullptr);
    current() = this;
  }
  ~FakeCudnn() { current() = nullptr; }
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  static std::shared_ptr<const Cudnn> library() {
    auto table = std::make_shared<Cudnn>();
    table->version = 91900;
    table->cudnnGetErrorString = [](int status) {
      return status / 1000 == 3 ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_EXECUTION_FAILED";
    };
    table->cudnnGetLastErrorString = [](char* message, std::size_t capacity) {
      const std::size_t length = std::min(capacity - 1, current()->last_error.size());
      current()->last_error.copy(message, length);
      message[length] = 0;
    };
    table->cudnnCreate = [](cudnn::Handle* handle) {
      ++current()->live_handles;
      *handle = current();
      return 0;
    };
    table->cudnnDestroy = [](cudnn::Handle) {
      CHECK(current()->live_descriptors == 0);
      --current()->live_handles;
      return 0;
    };
    table->cudnnSetStream = [](cudnn::Handle, CUstream stream) {
      current()->stream = stream;
      return 0;
    };
    table->cudnnBackendCreateDescriptor = [](Type type, cudnn::Descriptor* made) {
      ++current()->live_descriptors;
      *made = new Descriptor{type, false, {}, {}};
      return 0;
    };
    table->cudnnBackendDestroyDescriptor = [](cudnn::Descriptor descriptor) {
      --current()->live_descriptors;
      delete of(descriptor);
      return 0;
    };
    table->cudnnBackendSetAttribute = [](cudnn::Descriptor to, A name, cudnn::AttributeType type,
                                         std::int64_t count, const void* elements) {
      return current()->set(*of(to), name, type, count, elements);
    };
    table->cudnnBackendGetAttribute = [](cudnn::Descriptor from, A name, cudnn::AttributeType,
                                         std::int64_t requested, std::int64_t* count, void* elements) {
      return current()->get(*of(from), name, requested, count, elements);
    };
    table->cudnnBackendFinalize = [](cudnn::Descriptor descriptor) {
      return current()->finalize(*of(descriptor));
    };
    table->cudnnBackendExecute = [](cudnn::Handle, cudnn::Descriptor plan, cudnn::Descriptor pack) {
      return current()->execute(*of(plan), *of(pack));
    };
    return table;
  }

 private:
  static constexpr int kBadParameter = 2000;

  struct Descriptor {
    Type type;
    bool finalized = false;
    std::map<A, std::vector<std::uint8_t>> values;
    Offer offer;  // engine, configuration, plan, knob

    template <class T>
    T value(A name, std::size_t index = 0) const {
      T read{};
      const auto it = values.find(name);
      if (it != values.end() && (index + 1) * sizeof(T) <= it->second.size())
        std::memcpy(&read, it->second.data() + index * sizeof(T), sizeof(T));
      return read;
    }
    template <class T>
    std::size_t count(A name) const {
      const auto it = values.find(name);
      return it == values.end() ? 0 : it->second.size() / sizeof(T);
    }
    Descriptor* child(A name, std::size_t index = 0) const {
      return of(value<cudnn::Descriptor>(name, index));
    }
  };
  static Descriptor* of(cudnn::Descriptor descriptor) { return static_cast<Descriptor*>(descriptor); }
  static FakeCudnn*& current() {
    static FakeCudnn* fake = nullptr;
    return fake;
  }

  int set(Descriptor& to, A name, cudnn::AttributeType type, std::int64_t count, const void* elements) {
    if (to.finalized || count < 1 || elements == nullptr) return kBadParameter;
    std::size_t size = 8;
    if (type == cudnn::AttributeType::boolean) size = 1;
    if (type == cudnn::AttributeType::data_type || type == cudnn::AttributeType::pointwise_mode ||
        type == cudnn::AttributeType::reduction_operator || type == cudnn::AttributeType::heuristic_mode)
      size = 4;
    if (type == cudnn::AttributeType::descriptor)
      for (std::int64_t i = 0; i < count; ++i)
        if (!of(static_cast<const cudnn::Descriptor*>(elements)[i])->finalized) return kBadParameter;
    const auto* bytes = static_cast<const std::uint8_t*>(elements);
    to.values[name].assign(bytes, bytes + size * static_cast<std::size_t>(count));
    return 0;
  }

  int get(const Descriptor& from, A name, std::int64_t requested, std::int64_t* count, void* elements) {
    if (!from.finalized) return kBadParameter;
    const auto give = [&](auto value) {
      *count = 1;
      std::memcpy(elements, &value, sizeof value);
      return 0;
    };
    const auto part = [&](int index) {
      Descriptor& target = *of(static_cast<cudnn::Descriptor*>(elements)[index]);
      target.offer = from.offer;
      target.finalized = true;
    };
    switch (name) {
      case A::heuristics_results: {
        const auto mode = from.value<cudnn::HeuristicMode>(A::heuristics_mode);
        const std::vector<Offer>& list = mode == cudnn::HeuristicMode::a ? offers : fallback_offers;
        *count = static_cast<std::int64_t>(list.size());
        for (std::size_t i = 0; i < list.size() && static_cast<std::int64_t>(i) < requested; ++i) {
          Descriptor& config = *of(static_cast<cudnn::Descriptor*>(elements)[i]);
          config.offer = list[i];
          config.finalized = true;
        }
        if (requested > 0 && !viable) *count = 0;
        return 0;
      }
      case A::engine_config_engine:
        *count = 1;
        part(0);
        return 0;
      case A::engine_config_knob_choices:
        *count = 1;
        if (requested > 0) part(0);
        return 0;
      case A::engine_global_index:
        return give(from.offer.engine);
      case A::knob_choice_type:
        return give(24);
      case A::knob_choice_value:
        return give(from.offer.kernel_cfg);
      case A::plan_workspace_size:
        return give(from.offer.workspace);
      default:
        return kBadParameter;
    }
  }

  int finalize(Descriptor& d) {
    if (d.finalized) return kBadParameter;
    if (d.type == Type::tensor) {
      const auto id = d.value<std::int64_t>(A::tensor_unique_id);
      if (id == 0 || d.count<std::int64_t>(A::tensor_dimensions) != 4 ||
          d.count<std::int64_t>(A::tensor_strides) != 4)
        return kBadParameter;
    }
    if (d.type == Type::operation_graph) {
      operations.clear();
      for (std::size_t i = 0; i < d.count<cudnn::Descriptor>(A::operation_graph_operations); ++i)
        operations.push_back(name_of(*d.child(A::operation_graph_operations, i)));
      graph_ = &d;
    }
    if (d.type == Type::execution_plan) {
      d.offer = d.child(A::plan_engine_config)->offer;
      if (d.offer.plan_status != 0) return d.offer.plan_status;
    }
    d.finalized = true;
    return 0;
  }

  static std::string name_of(const Descriptor& operation) {
    if (operation.type == Type::operation_matmul) return "matmul";
    if (operation.type == Type::operation_reshape) return "reshape";
    if (operation.type == Type::operation_reduction)
      return operation.child(A::operation_reduction_descriptor)
                         ->value<cudnn::ReductionOperator>(A::reduction_operator) ==
                     cudnn::ReductionOperator::max
                 ? "reduce max"
                 : "reduce add";
    switch (
        operation.child(A::operation_pointwise_descriptor)->value<cudnn::PointwiseMode>(A::pointwise_mode)) {
      case cudnn::PointwiseMode::add:
        return "add";
      case cudnn::PointwiseMode::mul:
        return "mul";
      case cudnn::PointwiseMode::div:
        return "div";
      case cudnn::PointwiseMode::sub:
        return "sub";
      case cudnn::PointwiseMode::exp:
        return "exp";
      case cudnn::PointwiseMode::log:
        return "log";
      case cudnn::PointwiseMode::identity:
        return "identity";
      case cudnn::PointwiseMode::compare_ge:
        return "ge";
      case cudnn::PointwiseMode::gen_index:
        return "index";
      case cudnn::PointwiseMode::binary_select:
        return "select";
    }
    return "?";
  }

  // --- the interpreter ---
  using Index = std::array<std::int64_t, 4>;
  struct Values {
    Index dims{};
    Matrix data;
    double at(Index i) const {  // broadcast
      std::size_t offset = 0;
      for (std::size_t n = 0; n < 4; ++n)
        offset =
            offset * static_cast<std::size_t>(dims[n]) + static_cast<std::size_t>(dims[n] == 1 ? 0 : i[n]);
      return data[offset];
    }
  };
  template <class Visit>
  static void each(const Index& dims, const Visit& visit) {
    Index i{};
    for (i[0] = 0; i[0] < dims[0]; ++i[0])
      for (i[1] = 0; i[1] < dims[1]; ++i[1])
        for (i[2] = 0; i[2] < dims[2]; ++i[2])
          for (i[3] = 0; i[3] < dims[3]; ++i[3]) visit(i);
  }
  static Index dims_of(const Descriptor& tensor) {
    Index dims{};
    for (std::size_t n = 0; n < 4; ++n) dims[n] = tensor.value<std::int64_t>(A::tensor_dimensions, n);
    return dims;
  }
  static double rounded(double value, cudnn::DataType type) {
    return type == cudnn::DataType::bfloat16 ? from_bf16(to_bf16(value)) : value;
  }

  struct Run {
    std::map<std::int64_t, std::uint8_t*> addresses;
    std::map<std::int64_t, Values> inside;

    Values read(const Descriptor& tensor) {
      const auto id = tensor.value<std::int64_t>(A::tensor_unique_id);
      if (tensor.value<bool>(A::tensor_is_virtual)) return inside.at(id);
      Values values{dims_of(tensor), {}};
      const std::uint8_t* memory = addresses.at(id);
      each(values.dims, [&](const Index& i) {
        const std::int64_t at = offset(tensor, i);
        if (tensor.value<cudnn::DataType>(A::tensor_data_type) == cudnn::DataType::float32) {
          float single = 0;
          std::memcpy(&single, memory + at * 4, 4);
          values.data.push_back(single);
        } else {
          std::uint16_t half = 0;
          std::memcpy(&half, memory + at * 2, 2);
          values.data.push_back(from_bf16(half));
        }
      });
      return values;
    }
    template <class Value>
    void write(const Descriptor& tensor, const Value& value) {
      const auto id = tensor.value<std::int64_t>(A::tensor_unique_id);
      const auto type = tensor.value<cudnn::DataType>(A::tensor_data_type);
      Values made{dims_of(tensor), {}};
      each(made.dims, [&](const Index& i) { made.data.push_back(rounded(value(i), type)); });
      if (tensor.value<bool>(A::tensor_is_virtual)) {
        inside[id] = std::move(made);
        return;
      }
      std::uint8_t* memory = addresses.at(id);
      each(made.dims, [&](const Index& i) {
        const std::int64_t at = offset(tensor, i);
        const auto single = static_cast<float>(made.at(i));
        const std::uint16_t half = to_bf16(single);
        if (type == cudnn::DataType::float32)
          std::memcpy(memory + at * 4, &single, 4);
        else
          std::memcpy(memory + at * 2, &half, 2);
      });
    }
    static std::int64_t offset(const Descriptor& tensor, const Index& i) {
      std::int64_t at = 0;
      for (std::size_t n = 0; n < 4; ++n) at += i[n] * tensor.value<std::int64_t>(A::tensor_strides, n);
      return at;
    }
  };

  bool has_room(const void* workspace, std::int64_t bytes) {
    const auto first = reinterpret_cast<std::uint64_t>(workspace);
    return bytes == 0 || (device_.host_view(first) != nullptr &&
                          device_.host_view(first + static_cast<std::uint64_t>(bytes) - 1) != nullptr);
  }

  int execute(const Descriptor& plan, const Descriptor& pack) {
    if (!plan.finalized || !pack.finalized) return kBadParameter;
    ++runs;
    if (plan.offer.run_status != 0) return plan.offer.run_status;
    last_ids.clear();
    last_workspace = pack.value<void*>(A::variant_pack_workspace);
    if (!has_room(last_workspace, plan.offer.workspace)) return kBadParameter;
    Run run;
    for (std::size_t i = 0; i < pack.count<std::int64_t>(A::variant_pack_unique_ids); ++i) {
      last_ids.push_back(pack.value<std::int64_t>(A::variant_pack_unique_ids, i));
      run.addresses[last_ids.back()] = pack.value<std::uint8_t*>(A::variant_pack_data_pointers, i);
    }
    for (std::size_t i = 0; i < operations.size(); ++i)
      interpret(run, *graph_->child(A::operation_graph_operations, i));
    // The device's clock goes on by itself with every operation that is queued.
    const std::uint64_t usual = device_.operation_ns;
    device_.operation_ns = plan.offer.takes_ns;
    if (!clock_.address) clock_ = device_.allocate(1).value();
    CHECK(device_.fill(clock_.address, 0, 1, 1));
    device_.operation_ns = usual;
    return 0;
  }

  static void interpret(Run& run, const Descriptor& operation) {
    const std::string name = name_of(operation);
    if (name == "matmul") {
      const Values a = run.read(*operation.child(A::operation_matmul_a)),
                   b = run.read(*operation.child(A::operation_matmul_b));
      run.write(*operation.child(A::operation_matmul_c), [&](const Index& i) {
        double sum = 0;
        for (std::int64_t k = 0; k < a.dims[3]; ++k)
          sum += a.at({i[0], i[1], i[2], k}) * b.at({i[0], i[1], k, i[3]});
        return sum;
      });
    } else if (name == "reshape") {
      const Values x = run.read(*operation.child(A::operation_reshape_x));
      run.write(*operation.child(A::operation_reshape_y), [&](const Index& i) {
        return x.at({i[0], i[1], i[3], i[2]});
      });
    } else if (name == "reduce max" || name == "reduce add") {
      const Values x = run.read(*operation.child(A::operation_reduction_x));
      const bool most = name == "reduce max";
      run.write(*operation.child(A::operation_reduction_y), [&](const Index& i) {
        double value = most ? -std::numeric_limits<double>::infinity() : 0;
        for (std::int64_t k = 0; k < x.dims[3]; ++k) {
          const double element = x.at({i[0], i[1], i[2], k});
          value = most ? std::max(value, element) : value + element;
        }
        return value;
      });
    } else {
      const Values x = run.read(*operation.child(A::operation_pointwise_x));
      const Descriptor *b_tensor = operation.child(A::operation_pointwise_b),
                       *t_tensor = operation.child(A::operation_pointwise_t);
      const Values b = b_tensor != nullptr ? run.read(*b_tensor) : Values{{1, 1, 1, 1}, {0}};
      const Values t = t_tensor != nullptr ? run.read(*t_tensor) : Values{{1, 1, 1, 1}, {0}};
      const auto axis = static_cast<std::size_t>(
          operation.child(A::operation_pointwise_descriptor)->value<std::int64_t>(A::pointwise_axis));
      run.write(*operation.child(A::operation_pointwise_y), [&](const Index& i) -> double {
        const double left = x.at(i), right = b.at(i);
        if (name == "add") return left + right;
        if (name == "sub") return left - right;
        if (name == "mul") return left * right;
        if (name == "div") return left / right;
        if (name == "exp") return std::exp(left);
        if (name == "log") return std::log(left);
        if (name == "ge") return left >= right ? 1 : 0;
        if (name == "index") return static_cast<double>(i[axis]);
        if (name == "select") return t.at(i) != 0 ? left : right;
        return left;
      });
    }
  }

  FakeDevice& device_;
  const Descriptor* graph_ = nullptr;
  DeviceBuffer clock_;
};

}  // namespace ptxbench::testing
