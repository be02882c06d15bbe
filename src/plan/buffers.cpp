#include "plan/buffers.hpp"

#include "plan/numbers.hpp"

#include <algorithm>

namespace ptxbench::plan {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40;

// A run of elements within a buffer.
struct Range {
  std::uint64_t first = 0, count = 0;
};

Result<std::uint64_t> element(const BufferContext& context, const Expression& e, const std::string& what) {
  PTXBENCH_TRY_ASSIGN(const std::int64_t v, e.evaluate_int(context.environment));
  if (v < 0)
    return context.plan.error(e.where().pointer,
                              what + " `" + e.text() + "` = " + std::to_string(v) + " is negative",
                              kPlanInvalid);
  return static_cast<std::uint64_t>(v);
}

// `offset` (nothing: 0) and `elements` (nothing: to the end) within `buffer`; both must name whole bytes.
Result<Range> range(const BufferContext& context, const std::string& pointer, const Buffer& buffer,
                    const std::optional<Expression>& offset, std::optional<std::uint64_t> elements) {
  Range out;
  if (offset) {
    PTXBENCH_TRY_ASSIGN(out.first, element(context, *offset, "offset"));
  }
  if (out.first > buffer.elements || (elements && *elements > buffer.elements - out.first))
    return context.plan.error(
        pointer,
        (elements ? std::to_string(*elements) + " elements from" : std::string("element")) + " " +
            std::to_string(out.first) + " do not lie inside `" + buffer.name + "`, which has " +
            std::to_string(buffer.elements) + " elements",
        kPlanInvalid);
  out.count = elements.value_or(buffer.elements - out.first);
  if (dtype_bits(buffer.dtype) < 8 &&
      (out.first % 2 != 0 || (out.count % 2 != 0 && out.first + out.count != buffer.elements)))
    return context.plan.error(pointer, "elements of 4 bits come in twos: offset and elements must be even",
                              kPlanInvalid);
  return out;
}

// Bits of a typed value as a pattern for a fill; two 4-bit elements make a byte.
Result<std::uint64_t> pattern_of(DType dtype, const Expression& value, const expr::Environment& environment) {
  PTXBENCH_TRY_ASSIGN(const Number number, value.evaluate(environment));
  auto bits = encode(dtype, number);
  if (!bits) {
    bits.error().where = value.where();
    return std::move(bits).error();
  }
  return dtype_bits(dtype) < 8 ? *bits | *bits << 4 : *bits;
}

}  // namespace

Result<std::vector<Buffer>> tensor_buffers(const Workload& workload) {
  std::vector<Buffer> out;
  const auto add = [&](const std::vector<TensorSpec>& list, BufferRef::Kind kind) -> Result<void> {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (list[i].is_scalar()) continue;
      Buffer buffer;
      buffer.kind = kind;
      buffer.index = i;
      buffer.name = list[i].name;
      buffer.dtype = list[i].dtype;
      PTXBENCH_TRY_ASSIGN(buffer.shape, workload.shape_of(list[i]));
      PTXBENCH_TRY_ASSIGN(buffer.elements, workload.elements_of(list[i]));
      buffer.bytes = dtype_bytes(buffer.dtype, buffer.elements);
      out.push_back(std::move(buffer));
    }
    return {};
  };
  PTXBENCH_TRY(add(workload.definition->inputs, BufferRef::Kind::input));
  PTXBENCH_TRY(add(workload.definition->outputs, BufferRef::Kind::output));
  return out;
}

Result<void> resolve_workspaces(const LaunchPlan::Impl& plan, const BoundPlan::Impl& bound,
                                const expr::Environment& environment, std::vector<Buffer>& buffers,
                                std::vector<ResolvedWorkspace>& out) {
  std::uint64_t tensors = 0, total = 0;
  for (const Buffer& buffer : buffers) tensors += buffer.bytes;
  for (std::size_t i = 0; i < plan.workspaces.size(); ++i) {
    const Workspace& workspace = plan.workspaces[i];
    Buffer buffer;
    buffer.kind = BufferRef::Kind::workspace;
    buffer.index = i;
    buffer.name = workspace.name;
    buffer.dtype = workspace.dtype;
    unsigned __int128 elements = 1;
    bool too_large = false;
    for (const Expression& e : workspace.shape) {
      PTXBENCH_TRY_ASSIGN(const std::int64_t dim, e.evaluate_int(environment));
      if (dim < 0)
        return plan.error(e.where().pointer,
                          "workspace `" + workspace.name + "`: `" + e.text() + "` = " + std::to_string(dim) +
                              " is negative",
                          kWorkspaceLimit);
      buffer.shape.push_back(dim);
      too_large = too_large || static_cast<std::uint64_t>(dim) > kMostElements;
      elements *= std::min<std::uint64_t>(static_cast<std::uint64_t>(dim), kMostElements);
      // Eight dimensions of 2^40 would not fit; from here on only "too large" or zero matter.
      if (elements > kMostElements) {
        too_large = true;
        elements = kMostElements;
      }
    }
    if (elements == 0) too_large = false;
    if (too_large)
      return plan.error(workspace.pointer + "/shape",
                        "workspace `" + workspace.name + "` has more than 2^40 elements", kWorkspaceLimit);
    buffer.elements = static_cast<std::uint64_t>(elements);
    buffer.bytes = dtype_bytes(buffer.dtype, buffer.elements);
    total += buffer.bytes;
    const std::uint64_t memory = bound.limits.memory_bytes;
    if (memory != 0 && (buffer.bytes > memory || total + tensors > memory))
      return plan.error(workspace.pointer,
                        "workspace `" + workspace.name + "` of " + std::to_string(buffer.bytes) +
                            " bytes does not fit: with it the workspaces have " + std::to_string(total) +
                            " bytes beside the tensors' " + std::to_string(tensors) + ", and " +
                            bound.limits.name + " has " + std::to_string(memory),
                        kWorkspaceLimit);
    ResolvedWorkspace resolved;
    resolved.name = workspace.name;
    resolved.dtype = workspace.dtype;
    resolved.shape = buffer.shape;
    resolved.bytes = buffer.bytes;
    resolved.element_bytes = static_cast<int>(dtype_bytes(workspace.dtype, 1));
    if (workspace.init) {
      resolved.initialised = true;
      PTXBENCH_TRY_ASSIGN(resolved.pattern, pattern_of(workspace.dtype, *workspace.init, environment));
    }
    out.push_back(std::move(resolved));
    buffers.push_back(std::move(buffer));
  }
  return {};
}

const Buffer* find_any_buffer(const std::vector<Buffer>& buffers, std::string_view name) {
  for (const Buffer& buffer : buffers)
    if (buffer.name == name) return &buffer;
  return nullptr;
}

Result<ResolvedMemset> resolve_memset(const BufferContext& context, const Step& step,
                                      const MemsetStep& memset) {
  const Buffer& buffer = *find_any_buffer(context.buffers, memset.to.name);
  std::optional<std::uint64_t> elements;
  if (memset.elements) {
    PTXBENCH_TRY_ASSIGN(elements, element(context, *memset.elements, "elements"));
  }
  PTXBENCH_TRY_ASSIGN(const Range at, range(context, step.pointer, buffer, memset.offset, elements));
  ResolvedMemset out;
  out.to = {buffer.kind, buffer.index, dtype_bytes(buffer.dtype, at.first)};
  PTXBENCH_TRY_ASSIGN(out.pattern, pattern_of(buffer.dtype, *memset.value, context.environment));
  out.element_bytes = static_cast<int>(dtype_bytes(buffer.dtype, 1));
  out.elements = dtype_bits(buffer.dtype) < 8 ? dtype_bytes(buffer.dtype, at.count) : at.count;
  return out;
}

Result<ResolvedCopy> resolve_copy(const BufferContext& context, const Step& step, const CopyStep& copy) {
  const Buffer& from = *find_any_buffer(context.buffers, copy.from.name);
  const Buffer& to = *find_any_buffer(context.buffers, copy.to.name);
  std::optional<std::uint64_t> elements;
  if (copy.elements) {
    PTXBENCH_TRY_ASSIGN(elements, element(context, *copy.elements, "elements"));
  }
  PTXBENCH_TRY_ASSIGN(const Range source, range(context, step.pointer, from, copy.from_offset, elements));
  PTXBENCH_TRY_ASSIGN(const Range target, range(context, step.pointer, to, copy.to_offset, source.count));
  if (&from == &to && source.first < target.first + target.count &&
      target.first < source.first + source.count)
    return context.plan.error(step.pointer,
                              "the copy within `" + from.name +
                                  "` overlaps: " + std::to_string(source.count) + " elements from " +
                                  std::to_string(source.first) + " to " + std::to_string(target.first),
                              kPlanInvalid);
  ResolvedCopy out;
  out.from = {from.kind, from.index, dtype_bytes(from.dtype, source.first)};
  out.to = {to.kind, to.index, dtype_bytes(to.dtype, target.first)};
  out.bytes = dtype_bytes(from.dtype, source.count);
  return out;
}

}  // namespace ptxbench::plan
