// The second half of binding: with compiled modules and a device to ask, the run as data.
#include "core/json.hpp"
#include "plan/arguments.hpp"
#include "plan/buffers.hpp"
#include "plan/launch_rules.hpp"
#include "plan/names.hpp"
#include "plan/numbers.hpp"

#include <algorithm>
#include <map>
#include <new>

namespace ptxbench {
namespace plan {
namespace {

// A kernel step with its compiled code.
struct Kernel {
  std::size_t module = 0;
  const KernelInfo* info = nullptr;
  LaunchShape shape;
};

class Resolver {
 public:
  Resolver(const BoundPlan::Impl& bound, const BoundPlan& public_bound,
           const std::vector<ModuleInfo>& modules, const ScalarValues& scalars, const DeviceQueries& queries)
      : bound_(bound),
        plan_(*bound.plan),
        sources_(public_bound.sources),
        modules_(modules),
        scalars_(scalars),
        queries_(queries),
        names_(bound.workload, bound.limits, bound.constants, scalars) {}

  Result<ResolvedPlan> run() {
    PTXBENCH_TRY(find_kernels());
    PTXBENCH_TRY_ASSIGN(buffers_, tensor_buffers(bound_.workload));
    PTXBENCH_TRY(resolve_workspaces(plan_, bound_, environment({}), buffers_, out_.workspaces));
    for (const TensorMap& map : plan_.tensor_maps) {
      PTXBENCH_TRY_ASSIGN(ResolvedTensorMap resolved,
                          resolve_tensor_map(plan_, map, *find_any_buffer(buffers_, map.tensor.name),
                                             environment({}), bound_.limits));
      out_.maps.push_back(std::move(resolved));
    }
    for (std::size_t i = 0; i < plan_.globals.size(); ++i) PTXBENCH_TRY(global(i));
    evidence_.begin_object().key("steps").begin_array();
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) PTXBENCH_TRY(step(i));
    evidence_.end_array();
    finish_evidence();
    return std::move(out_);
  }

 private:
  expr::Environment environment(std::optional<std::int64_t> index) {
    return names_.environment(index, [this](std::string_view function, std::string_view kernel) {
      return kernel_function(function, kernel);
    });
  }

  ArgumentContext context(std::optional<std::int64_t> index) {
    return {plan_, *bound_.workload.definition, buffers_, out_.maps, scalars_, environment(index)};
  }

  Result<std::size_t> find_module(std::size_t source) const {
    for (std::size_t i = 0; i < modules_.size(); ++i)
      if (source < sources_.size() && modules_[i].source == sources_[source].path) return i;
    return make_error(
        ErrorCode::internal,
        "no compiled module is given for " +
            (source < sources_.size() ? sources_[source].path : "source " + std::to_string(source)));
  }

  static const std::string* lowered(const ModuleInfo& module, const std::string& expression) {
    for (const auto& [name, symbol] : module.lowered)
      if (name == expression || without_spaces(name) == without_spaces(expression)) return &symbol;
    return nullptr;
  }

  Result<void> find_kernels() {
    kernels_.resize(plan_.steps.size());
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) {
      const auto* step = std::get_if<KernelStep>(&plan_.steps[i].what);
      if (step == nullptr) continue;
      const BoundStep& bound = *bound_.steps[i];
      Kernel& kernel = kernels_[i];
      PTXBENCH_TRY_ASSIGN(kernel.module, find_module(bound.source));
      const ModuleInfo& module = modules_[kernel.module];
      std::string symbol = step->kernel;
      if (!bound.name_expression.empty())
        if (const std::string* found = lowered(module, bound.name_expression)) symbol = *found;
      for (const KernelInfo& info : module.kernels)
        if (info.symbol == symbol) kernel.info = &info;
      if (kernel.info == nullptr) {
        std::string known;
        for (const KernelInfo& info : module.kernels) known += (known.empty() ? "" : ", ") + info.symbol;
        return plan_.error(plan_.steps[i].pointer + "/kernel",
                           "there is no kernel `" + step->kernel + "` in " + module.source +
                               (known.empty() ? ", which has none" : "; there is " + known),
                           kUnknownName);
      }
      kernel.shape = {step->name(),      plan_.steps[i].pointer, step,
                      bound.block,       bound.cluster,          bound.preferred_cluster,
                      bound.shared_bytes};
      PTXBENCH_TRY(check_kernel(plan_, kernel.shape, *kernel.info, bound_.limits));
    }
    return {};
  }

  static OccupancyQuery query(const Kernel& kernel) {
    return {kernel.module, kernel.info->symbol, *kernel.shape.block,
            kernel.shape.cluster.value_or(Extent{1, 1, 1}), kernel.shape.shared_bytes};
  }

  // Asked once for each (function, step); the answers are evidence.
  Result<std::int64_t> ask(bool clusters, std::size_t step) {
    const auto key = std::pair(clusters, step);
    if (const auto known = answers_.find(key); known != answers_.end()) return known->second;
    const auto& function = clusters ? queries_.max_active_clusters : queries_.occupancy;
    if (!function)
      return make_error(ErrorCode::state, "no device is there to answer " +
                                              std::string(clusters ? "max_active_clusters" : "occupancy") +
                                              "(" + kernels_[step].shape.name + ")");
    PTXBENCH_TRY_ASSIGN(const std::int64_t answer, function(query(kernels_[step])));
    answers_.emplace(key, answer);
    return answer;
  }

  Result<Number> kernel_function(std::string_view function, std::string_view kernel) {
    PTXBENCH_TRY_ASSIGN(const std::size_t step, find_kernel_step(plan_, kernel));
    PTXBENCH_TRY_ASSIGN(const std::int64_t answer, ask(function == "max_active_clusters", step));
    return Number(answer);
  }

  Result<void> global(std::size_t index) {
    const Global& global = plan_.globals[index];
    const BoundGlobal& bound = bound_.globals[index];
    ResolvedGlobal out;
    PTXBENCH_TRY_ASSIGN(out.module, find_module(bound.source));
    const ModuleInfo& module = modules_[out.module];
    out.symbol = global.symbol;
    if (!bound.name_expression.empty())
      if (const std::string* found = lowered(module, bound.name_expression)) out.symbol = *found;
    const auto info = std::find_if(module.globals.begin(), module.globals.end(),
                                   [&](const GlobalInfo& g) { return g.symbol == out.symbol; });
    if (info == module.globals.end()) {
      std::string known;
      for (const GlobalInfo& g : module.globals) known += (known.empty() ? "" : ", ") + g.symbol;
      return plan_.error(global.pointer + "/symbol",
                         "there is no __device__ or __constant__ symbol `" + global.symbol + "` in " +
                             module.source + (known.empty() ? ", which has none" : "; there is " + known),
                         kUnknownName);
    }
    const expr::Environment environment = this->environment({});
    if (!global.values.empty()) {
      const std::uint64_t size = dtype_bytes(global.dtype, 1);
      if (global.offset) {
        PTXBENCH_TRY_ASSIGN(const std::int64_t offset, global.offset->evaluate_int(environment));
        if (offset < 0 || static_cast<std::uint64_t>(offset) > info->bytes / size)
          return plan_.error(global.pointer + "/offset",
                             "element " + std::to_string(offset) + " is not inside `" + global.symbol +
                                 "`, which has " + std::to_string(info->bytes) + " bytes",
                             kPlanInvalid);
        out.byte_offset = static_cast<std::uint64_t>(offset) * size;
      }
      for (const Expression& value : global.values) {
        PTXBENCH_TRY_ASSIGN(const Number number, value.evaluate(environment));
        auto bits = encode(global.dtype, number);
        if (!bits) {
          bits.error().where = value.where();
          return std::move(bits).error();
        }
        for (std::uint64_t b = 0; b < size; ++b)
          out.bytes.push_back(static_cast<std::uint8_t>(*bits >> (8 * b)));
      }
    } else if (global.map) {
      out.bytes.resize(128);
      out.patches.push_back({0, *context({}).find_map(global.map->name)});
    } else {
      const Reference& name = global.tensor ? *global.tensor : *global.workspace;
      const Buffer& buffer = *find_any_buffer(buffers_, name.name);
      out.bytes.resize(8);
      out.patches.push_back({0, BufferRef{buffer.kind, buffer.index, 0}});
    }
    if (out.byte_offset + out.bytes.size() > info->bytes)
      return plan_.error(global.pointer,
                         std::to_string(out.bytes.size()) + " bytes at byte " +
                             std::to_string(out.byte_offset) + " do not fit `" + global.symbol +
                             "`, which has " + std::to_string(info->bytes) + " bytes",
                         kPlanInvalid);
    out_.globals.push_back(std::move(out));
    return {};
  }

  Result<void> step(std::size_t index) {
    const Step& step = plan_.steps[index];
    std::int64_t count = 1;
    if (step.repeat) {
      PTXBENCH_TRY_ASSIGN(count, step.repeat->evaluate_int(environment({})));
      if (count < 0 || count > static_cast<std::int64_t>(kMaxOperations))
        return plan_.error(step.pointer + "/repeat",
                           "`" + step.repeat->text() + "` = " + std::to_string(count) +
                               "; a step repeats 0 to " + std::to_string(kMaxOperations) + " times",
                           kPlanLimit);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::optional<std::int64_t> at = step.repeat ? std::optional(i) : std::nullopt;
      evidence_.begin_object().field("step", static_cast<std::uint64_t>(index));
      if (at) evidence_.field("i", *at);
      bool runs = true;
      if (step.when) {
        PTXBENCH_TRY_ASSIGN(runs, step.when->evaluate_bool(environment(at)));
        evidence_.field("when", runs);
      }
      if (runs && out_.operations.size() == kMaxOperations)
        return plan_.error(step.pointer,
                           "a run has more than " + std::to_string(kMaxOperations) + " operations",
                           kPlanLimit);
      if (runs) PTXBENCH_TRY(operation(index, at));
      evidence_.end_object();
    }
    return {};
  }

  Result<void> operation(std::size_t index, std::optional<std::int64_t> at) {
    const Step& step = plan_.steps[index];
    if (const auto* kernel = std::get_if<KernelStep>(&step.what)) return launch(index, *kernel, at);
    const BufferContext buffers{plan_, buffers_, environment(at)};
    if (const auto* memset = std::get_if<MemsetStep>(&step.what)) {
      PTXBENCH_TRY_ASSIGN(ResolvedMemset resolved, resolve_memset(buffers, step, *memset));
      resolved.step = index;
      evidence_.field("memset", memset->to.name).field("byte_offset", resolved.to.byte_offset);
      evidence_.field("elements", resolved.elements);
      out_.operations.emplace_back(resolved);
      return {};
    }
    const auto& copy = std::get<CopyStep>(step.what);
    PTXBENCH_TRY_ASSIGN(ResolvedCopy resolved, resolve_copy(buffers, step, copy));
    resolved.step = index;
    evidence_.key("copy").begin_array().string(copy.from.name).string(copy.to.name).end_array();
    evidence_.field("from_byte_offset", resolved.from.byte_offset)
        .field("to_byte_offset", resolved.to.byte_offset);
    evidence_.field("bytes", resolved.bytes);
    out_.operations.emplace_back(resolved);
    return {};
  }

  void write_extent(std::string_view key, const Extent& extent) {
    evidence_.key(key).begin_array();
    for (const std::uint32_t v : extent) evidence_.unsigned_integer(v);
    evidence_.end_array();
  }

  Result<void> launch(std::size_t index, const KernelStep& step, std::optional<std::int64_t> at) {
    const Kernel& kernel = kernels_[index];
    const std::string& pointer = plan_.steps[index].pointer;
    if (step.pdl &&
        (out_.operations.empty() || !std::holds_alternative<ResolvedLaunch>(out_.operations.back())))
      return plan_.error(pointer + "/pdl",
                         "`pdl` overlaps with the kernel step directly before, but in this run there is none",
                         kLaunchRule);
    std::vector<std::int64_t> grid;
    const expr::Environment environment = this->environment(at);
    for (const Expression& e : step.grid) {
      PTXBENCH_TRY_ASSIGN(const std::int64_t v, e.evaluate_int(environment));
      grid.push_back(v);
    }
    const std::uint64_t cluster = kernel.shape.cluster ? extent_count(*kernel.shape.cluster) : 1;
    std::optional<std::int64_t> resident;
    if (step.cooperative) {
      PTXBENCH_TRY_ASSIGN(const std::int64_t answer, ask(cluster > 1, index));
      resident = cluster > 1 ? answer * static_cast<std::int64_t>(cluster) : answer * bound_.limits.sm_count;
    }
    ResolvedLaunch out;
    PTXBENCH_TRY_ASSIGN(out.grid, check_grid(plan_, kernel.shape, grid, bound_.limits, resident));
    if (cluster > 1 && queries_.max_active_clusters) {
      PTXBENCH_TRY_ASSIGN(const std::int64_t clusters, ask(true, index));
      if (clusters < 1)
        return plan_.error(pointer + "/cluster",
                           kernel.shape.name + ": not one cluster of " + extent_text(*kernel.shape.cluster) +
                               " CTAs with " + std::to_string(kernel.shape.shared_bytes) +
                               " bytes of shared memory fits the device at a time",
                           kLaunchRule);
    }
    out.step = index;
    out.name = step.name();
    out.module = kernel.module;
    out.symbol = kernel.info->symbol;
    out.block = *kernel.shape.block;
    out.has_cluster = kernel.shape.cluster.has_value();
    out.cluster = kernel.shape.cluster.value_or(Extent{1, 1, 1});
    out.preferred_cluster = kernel.shape.preferred_cluster;
    out.dynamic_shared_bytes = kernel.shape.shared_bytes;
    out.cooperative = step.cooperative;
    out.pdl = step.pdl;
    out.cluster_policy = step.cluster_policy;
    out.carveout = bound_.steps[index]->carveout;
    evidence_.field("kernel", step.name())
        .field("source", modules_[kernel.module].source)
        .field("symbol", out.symbol);
    write_extent("grid", out.grid);
    write_extent("block", out.block);
    if (out.has_cluster) write_extent("cluster", out.cluster);
    if (out.preferred_cluster) write_extent("preferred_cluster", *out.preferred_cluster);
    evidence_.field("shared_bytes", out.dynamic_shared_bytes);
    evidence_.key("args").begin_array();
    PTXBENCH_TRY_ASSIGN(PackedArguments packed, pack_arguments(context(at), step.arguments, *kernel.info,
                                                               pointer + "/args", evidence_));
    evidence_.end_array();
    out.parameters = std::move(packed.parameters);
    out.patches = std::move(packed.patches);
    if (packed.left_out > 0 && std::find(noted_.begin(), noted_.end(), index) == noted_.end()) {
      noted_.push_back(index);
      json::Writer evidence;
      evidence.begin_object().field("step", static_cast<std::uint64_t>(index));
      evidence.field("parameters", static_cast<std::uint64_t>(packed.left_out)).end_object();
      out_.findings.push_back({"unread_parameters", Severity::note,
                               out.name + ": the last " + std::to_string(packed.left_out) +
                                   " parameters, which no code reads, were left out and are 0",
                               std::move(evidence).str()});
    }
    out_.operations.emplace_back(std::move(out));
    return {};
  }

  template <class T>
  void write_list(std::string_view key, const std::vector<T>& list) {
    evidence_.key(key).begin_array();
    for (const T v : list) evidence_.integer(static_cast<std::int64_t>(v));
    evidence_.end_array();
  }

  void finish_evidence() {
    evidence_.key("workspaces").begin_array();
    for (const ResolvedWorkspace& workspace : out_.workspaces) {
      evidence_.begin_object().field("name", workspace.name).field("dtype", dtype_name(workspace.dtype));
      write_list("shape", workspace.shape);
      evidence_.field("bytes", workspace.bytes).field("initialised", workspace.initialised).end_object();
    }
    evidence_.end_array().key("tensor_maps").begin_array();
    for (std::size_t i = 0; i < out_.maps.size(); ++i) {
      const ResolvedTensorMap& map = out_.maps[i];
      evidence_.begin_object().field("name", map.name).field("tensor", plan_.tensor_maps[i].tensor.name);
      evidence_.field("byte_offset", map.base.byte_offset).field("data_type", map.data_type);
      write_list("dims", map.dims);
      write_list("strides", map.strides);
      if (map.im2col) {
        write_list("pixel_box_lower_corner", map.pixel_box_lower);
        write_list("pixel_box_upper_corner", map.pixel_box_upper);
        evidence_.field("channels_per_pixel", map.channels_per_pixel)
            .field("pixels_per_column", map.pixels_per_column);
      } else {
        write_list("box", map.box);
      }
      write_list("element_strides", map.element_strides);
      evidence_.field("interleave", map.interleave).field("swizzle", map.swizzle);
      evidence_.field("l2_promotion", map.l2_promotion).field("oob_fill", map.oob_fill).end_object();
    }
    evidence_.end_array();
    if (!out_.globals.empty()) {
      evidence_.key("globals").begin_array();
      for (const ResolvedGlobal& global : out_.globals) {
        evidence_.begin_object()
            .field("source", modules_[global.module].source)
            .field("symbol", global.symbol);
        evidence_.field("byte_offset", global.byte_offset);
        evidence_.field("bytes", std::uint64_t{global.bytes.size()}).end_object();
      }
      evidence_.end_array();
    }
    if (!answers_.empty()) {
      evidence_.key("device").begin_array();
      for (const auto& [key, answer] : answers_) {
        evidence_.begin_object().field("function", key.first ? "max_active_clusters" : "occupancy");
        evidence_.field("kernel", kernels_[key.second].shape.name).field("value", answer).end_object();
      }
      evidence_.end_array();
    }
    evidence_.end_object();
    out_.evidence = std::move(evidence_).str();
  }

  const BoundPlan::Impl& bound_;
  const LaunchPlan::Impl& plan_;
  const std::vector<BoundSource>& sources_;
  const std::vector<ModuleInfo>& modules_;
  const ScalarValues& scalars_;
  const DeviceQueries& queries_;
  Names names_;
  std::vector<Kernel> kernels_;  // by step
  std::vector<Buffer> buffers_;
  std::map<std::pair<bool, std::size_t>, std::int64_t> answers_;
  std::vector<std::size_t> noted_;
  json::Writer evidence_;
  ResolvedPlan out_;
};

}  // namespace
}  // namespace plan

Result<ResolvedPlan> resolve_plan(const BoundPlan& bound, const std::vector<ModuleInfo>& modules,
                                  const ScalarValues& scalars, const DeviceQueries& queries) {
  if (!bound.impl) return make_error(ErrorCode::state, "this BoundPlan did not come from bind_plan");
  if (!bound.applicable)
    return make_error(ErrorCode::state, "the plan is not applicable: " + bound.not_applicable_reason);
  try {
    return plan::Resolver(*bound.impl, bound, modules, scalars, queries).run();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory while resolving a launch plan");
  }
}

std::uint64_t workspace_bytes(const ResolvedPlan& plan) noexcept {
  std::uint64_t bytes = 0;
  for (const ResolvedWorkspace& workspace : plan.workspaces) bytes += workspace.bytes;
  return bytes;
}

}  // namespace ptxbench
