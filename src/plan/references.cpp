#include "plan/references.hpp"

#include "plan/read.hpp"

#include <algorithm>

namespace ptxbench::plan {
namespace {

class Checker {
 public:
  Checker(const LaunchPlan::Impl& plan, const Definition& definition, const Names& names)
      : plan_(plan), definition_(definition), names_(names) {}

  Result<void> run() const {
    PTXBENCH_TRY(workspace_names());
    PTXBENCH_TRY(early(plan_.require));
    for (const Define& define : plan_.defines) PTXBENCH_TRY(early(define.value));
    for (const Workspace& workspace : plan_.workspaces) {
      PTXBENCH_TRY(late(workspace.shape, false));
      PTXBENCH_TRY(late(workspace.init, false));
    }
    for (const TensorMap& map : plan_.tensor_maps) PTXBENCH_TRY(tensor_map(map));
    for (const Global& global : plan_.globals) PTXBENCH_TRY(this->global(global));
    for (const Step& step : plan_.steps) PTXBENCH_TRY(this->step(step));
    return {};
  }

 private:
  // An expression of the first half, which may not ask a compiled kernel.
  Result<void> early(const Expression& e) const {
    PTXBENCH_TRY(names_.check(e, false));
    if (e.kernels().empty()) return {};
    return plan_.error(e.where().pointer,
                       "`" + e.text() +
                           "` asks a kernel, which is known only after compiling: require, defines, "
                           "block, cluster and shared_bytes cannot",
                       kExpression);
  }
  // One of the second half.
  Result<void> late(const Expression& e, bool index) const {
    PTXBENCH_TRY(names_.check(e, index));
    for (const std::string& kernel : e.kernels()) {
      auto found = find_kernel_step(plan_, kernel);
      if (found) continue;
      found.error().where = e.where();
      return std::move(found).error();
    }
    return {};
  }
  Result<void> early(const std::vector<Expression>& list) const {
    for (const Expression& e : list) PTXBENCH_TRY(early(e));
    return {};
  }
  Result<void> late(const std::vector<Expression>& list, bool index) const {
    for (const Expression& e : list) PTXBENCH_TRY(late(e, index));
    return {};
  }
  Result<void> early(const std::optional<Expression>& e) const { return e ? early(*e) : Result<void>(); }
  Result<void> late(const std::optional<Expression>& e, bool index) const {
    return e ? late(*e, index) : Result<void>();
  }
  Result<void> late(const std::optional<std::vector<Expression>>& list) const {
    return list ? late(*list, false) : Result<void>();
  }

  enum Allowed : unsigned { kInput = 1, kOutput = 2, kWorkspace = 4 };

  // The type of the buffer `name`, where it is one of the kinds in `allowed`.
  Result<DType> buffer(const std::string& name, const std::string& pointer, unsigned allowed) const {
    std::vector<std::string_view> known;
    const auto tensors = [&](const std::vector<TensorSpec>& list, unsigned kind) -> const TensorSpec* {
      for (const TensorSpec& tensor : list) {
        if (tensor.is_scalar()) continue;
        if (allowed & kind) known.push_back(tensor.name);
        if (tensor.name == name) return &tensor;
      }
      return nullptr;
    };
    const TensorSpec* const input = tensors(definition_.inputs, kInput);
    const TensorSpec* const output = tensors(definition_.outputs, kOutput);
    const Workspace* workspace = nullptr;
    for (const Workspace& w : plan_.workspaces) {
      if (allowed & kWorkspace) known.push_back(w.name);
      if (w.name == name) workspace = &w;
    }
    if (input != nullptr && (allowed & kInput)) return input->dtype;
    if (output != nullptr && (allowed & kOutput)) return output->dtype;
    if (workspace != nullptr && (allowed & kWorkspace)) return workspace->dtype;
    std::string message =
        "there is no " + std::string(allowed == kWorkspace ? "workspace" : "buffer") + " `" + name + "`";
    if (input != nullptr) message = "`" + name + "` is an input, which is never written";
    if (input != nullptr && allowed == kWorkspace)
      message = "`" + name + "` is an input: write {\"tensor\": ...}";
    if (output != nullptr) message = "`" + name + "` is an output: write {\"tensor\": ...}";
    if (workspace != nullptr) message = "`" + name + "` is a workspace: write {\"workspace\": ...}";
    const TensorSpec* const any = definition_.find_tensor(name);
    if (any != nullptr && any->is_scalar())
      message = "`" + name + "` is a scalar, which has no address: write {\"scalar\": ...}";
    return plan_.error(pointer, message + suggestion(name, known), kUnknownName);
  }

  Result<void> map_name(const std::string& name, const std::string& pointer) const {
    std::vector<std::string_view> known;
    for (const TensorMap& map : plan_.tensor_maps) {
      if (map.name == name) return {};
      known.push_back(map.name);
    }
    return plan_.error(pointer, "there is no tensor map `" + name + "`" + suggestion(name, known),
                       kUnknownName);
  }

  Result<void> workspace_names() const {
    for (const Workspace& workspace : plan_.workspaces)
      if (definition_.find_tensor(workspace.name) != nullptr)
        return plan_.error(workspace.pointer + "/name",
                           "`" + workspace.name + "` is a tensor of the definition " + definition_.name +
                               "; a workspace needs a name of its own",
                           kPlanInvalid);
    return {};
  }

  Result<void> tensor_map(const TensorMap& map) const {
    PTXBENCH_TRY(buffer(map.tensor.name, map.tensor.pointer, kInput | kOutput | kWorkspace));
    PTXBENCH_TRY(late(map.offset, false));
    PTXBENCH_TRY(late(map.dims));
    PTXBENCH_TRY(late(map.strides));
    PTXBENCH_TRY(late(map.element_strides));
    PTXBENCH_TRY(late(map.box, false));
    PTXBENCH_TRY(late(map.pixel_box_lower, false));
    PTXBENCH_TRY(late(map.pixel_box_upper, false));
    PTXBENCH_TRY(late(map.channels_per_pixel, false));
    return late(map.pixels_per_column, false);
  }

  Result<void> global(const Global& global) const {
    PTXBENCH_TRY(late(global.values, false));
    PTXBENCH_TRY(late(global.offset, false));
    if (global.tensor) PTXBENCH_TRY(buffer(global.tensor->name, global.tensor->pointer, kInput | kOutput));
    if (global.workspace) PTXBENCH_TRY(buffer(global.workspace->name, global.workspace->pointer, kWorkspace));
    if (global.map) PTXBENCH_TRY(map_name(global.map->name, global.map->pointer));
    return {};
  }

  Result<void> argument(const Argument& argument, bool index) const {
    PTXBENCH_TRY(late(argument.offset, index));
    PTXBENCH_TRY(late(argument.value, index));
    for (const Argument& member : argument.members) PTXBENCH_TRY(this->argument(member, index));
    switch (argument.kind) {
      case Argument::Kind::tensor:
        PTXBENCH_TRY(buffer(argument.name, argument.pointer + "/tensor", kInput | kOutput));
        return {};
      case Argument::Kind::workspace:
        PTXBENCH_TRY(buffer(argument.name, argument.pointer + "/workspace", kWorkspace));
        return {};
      case Argument::Kind::map:
        return map_name(argument.name, argument.pointer + "/map");
      case Argument::Kind::scalar: {
        std::vector<std::string_view> known;
        for (const TensorSpec& input : definition_.inputs) {
          if (!input.is_scalar()) continue;
          if (input.name == argument.name) {
            if (dtype_bits(input.dtype) >= 8) return {};
            return plan_.error(argument.pointer, "a scalar of 4 bits cannot be passed", kPlanInvalid);
          }
          known.push_back(input.name);
        }
        return plan_.error(
            argument.pointer + "/scalar",
            "there is no scalar input `" + argument.name + "`" + suggestion(argument.name, known),
            kUnknownName);
      }
      default:
        return {};
    }
  }

  Result<void> step(const Step& step) const {
    const bool index = step.repeat.has_value();
    PTXBENCH_TRY(late(step.repeat, false));
    PTXBENCH_TRY(late(step.when, index));
    if (const auto* kernel = std::get_if<KernelStep>(&step.what)) {
      PTXBENCH_TRY(early(kernel->block));
      PTXBENCH_TRY(early(kernel->cluster));
      PTXBENCH_TRY(early(kernel->preferred_cluster));
      PTXBENCH_TRY(early(kernel->shared_bytes));
      PTXBENCH_TRY(early(kernel->carveout));
      PTXBENCH_TRY(late(kernel->grid, index));
      for (const Argument& argument : kernel->arguments) PTXBENCH_TRY(this->argument(argument, index));
      return {};
    }
    if (const auto* memset = std::get_if<MemsetStep>(&step.what)) {
      PTXBENCH_TRY(late(memset->value, index));
      PTXBENCH_TRY(late(memset->offset, index));
      PTXBENCH_TRY(late(memset->elements, index));
      PTXBENCH_TRY(buffer(memset->to.name, memset->to.pointer, kOutput | kWorkspace));
      return {};
    }
    const auto& copy = std::get<CopyStep>(step.what);
    PTXBENCH_TRY(late(copy.from_offset, index));
    PTXBENCH_TRY(late(copy.to_offset, index));
    PTXBENCH_TRY(late(copy.elements, index));
    PTXBENCH_TRY_ASSIGN(const DType from,
                        buffer(copy.from.name, copy.from.pointer, kInput | kOutput | kWorkspace));
    PTXBENCH_TRY_ASSIGN(const DType to, buffer(copy.to.name, copy.to.pointer, kOutput | kWorkspace));
    if (from != to)
      return plan_.error(step.pointer + "/copy",
                         "`" + copy.from.name + "` is " + std::string(dtype_name(from)) + " and `" +
                             copy.to.name + "` is " + std::string(dtype_name(to)) +
                             "; a copy needs equal dtypes",
                         kPlanInvalid);
    return {};
  }

  const LaunchPlan::Impl& plan_;
  const Definition& definition_;
  const Names& names_;
};

}  // namespace

Result<void> check_references(const LaunchPlan::Impl& plan, const Definition& definition,
                              const Names& names) {
  return Checker(plan, definition, names).run();
}

}  // namespace ptxbench::plan
