// What is expected of the outputs: from the judge's own reference, another Solution, or a host's callback.
#include "verify/session.hpp"

#include <algorithm>

namespace ptxbench {

Result<DeviceBuffer> OutputValues::own(Device& device, std::uint64_t bytes) {
  PTXBENCH_TRY_ASSIGN(OwnedBuffer made, OwnedBuffer::allocate(device, bytes));
  storage.push_back(std::move(made));
  return storage.back().get();
}

OutputValues OutputValues::view(const TensorLayouts& layouts, const TensorBuffers& buffers) {
  OutputValues values;
  for (std::size_t i = 0; i < layouts.outputs.size(); ++i) {
    values.buffers.push_back(buffers.outputs[i].buffer());
    values.dtypes.push_back(layouts.outputs[i].dtype);
  }
  return values;
}

Result<OutputValues> OutputValues::take(Device& device, const TensorLayouts& layouts,
                                        const TensorBuffers& buffers) {
  OutputValues values;
  for (std::size_t i = 0; i < layouts.outputs.size(); ++i) {
    const DeviceBuffer from = buffers.outputs[i].buffer();
    PTXBENCH_TRY_ASSIGN(const DeviceBuffer to, values.own(device, from.bytes));
    if (from.bytes != 0) PTXBENCH_TRY(device.copy(to.address, from.address, from.bytes));
    values.buffers.push_back(to);
    values.dtypes.push_back(layouts.outputs[i].dtype);
  }
  return values;
}

Result<std::unique_ptr<ExpectedSource>> ExpectedSource::create(Device& device, const Workload& workload,
                                                               const TensorLayouts& layouts,
                                                               const ReferenceSpec& reference,
                                                               bool want_model, const ScalarValues& scalars,
                                                               std::uint64_t run_deadline_ns) {
  std::unique_ptr<ExpectedSource> source(new ExpectedSource(device, workload, layouts));
  source->kind_ = reference.kind;
  source->want_model_ = want_model;
  source->run_deadline_ns_ = run_deadline_ns;
  if (reference.kind == ReferenceKind::native) {
    source->gemm_ = match_gemm(*workload.definition);
    source->attention_ = match_attention(*workload.definition);
    if (!source->gemm_ && !source->attention_)
      return make_error(ErrorCode::unsupported,
                        "the library has no reference of its own for \"" + workload.definition->name +
                            "\" (op_type \"" + workload.definition->op_type +
                            "\"); bring one: another Solution as reference, or a host's Reference");
  } else if (reference.kind == ReferenceKind::solution) {
    if (!reference.solution)
      return make_error(ErrorCode::invalid_argument,
                        "a reference by solution was asked for, but the job has none");
    PTXBENCH_TRY_ASSIGN(source->solution_,
                        load_trusted_plan(device, *reference.solution, workload, scalars, "reference"));
  }
  return source;
}

Result<OutputValues> ExpectedSource::compute(JudgeOps& judge, HostCallbacks* callbacks,
                                             const TensorBuffers& buffers, std::uint64_t seed) {
  switch (kind_) {
    case ReferenceKind::native:
      return gemm_ ? gemm(judge, buffers) : attention(judge, buffers, seed);
    case ReferenceKind::solution:
      return by_solution(buffers);
    case ReferenceKind::callback:
      return by_callback(callbacks, buffers);
  }
  return make_error(ErrorCode::internal, "no such kind of reference");
}

Result<OutputValues> ExpectedSource::gemm(JudgeOps& judge, const TensorBuffers& buffers) {
  PTXBENCH_TRY_ASSIGN(const GemmShape shape, gemm_shape(workload_, *gemm_));
  const std::uint64_t elements = layouts_.outputs[0].elements;
  const std::uint64_t a = buffers.inputs[gemm_->a].buffer().address,
                      b = buffers.inputs[gemm_->b].buffer().address;
  OutputValues values;
  values.dtypes.push_back(DType::float64);
  PTXBENCH_TRY_ASSIGN(const DeviceBuffer out, values.own(device_, elements * 8));
  PTXBENCH_TRY(judge.gemm_reference(*gemm_, shape, a, b, out.address));
  values.buffers.push_back(out);
  if (want_model_) {
    PTXBENCH_TRY_ASSIGN(const DeviceBuffer model, values.own(device_, layouts_.outputs[0].bytes));
    PTXBENCH_TRY(judge.gemm_model(*gemm_, shape, a, b, model.address));
    values.model.push_back(model.address);
    values.sum_floor.push_back(0);
  }
  PTXBENCH_TRY(settle(device_, "the reference"));
  return values;
}

// The reference of O, dQ, dK and dV is kept in fp32, whose rounding is 2^-16 of what a 16-bit output's is: in
// fp64 it would be 6 GB for S = 16384 and D = 256. That of the LSE, an fp32 output, is in fp64.
Result<OutputValues> ExpectedSource::attention(JudgeOps& judge, const TensorBuffers& buffers,
                                               std::uint64_t seed) {
  constexpr int kSumFloor = -15;  // as for a GEMM's
  constexpr int kLseFloor = -20;  // an LSE is near 10 and honest ones are off by a few units of 2^-23
  PTXBENCH_TRY_ASSIGN(const AttentionShape shape, attention_shape(workload_));
  const auto input = [&](std::size_t i) { return buffers.inputs[i].buffer().address; };
  AttentionTensors tensors;
  tensors.q = input(0);
  tensors.k = input(1);
  tensors.v = input(2);
  if (attention_->backward) {
    tensors.o = input(kAttentionOutput);
    tensors.d_o = input(kAttentionGradient);
    tensors.lse = input(kAttentionLse);
  }
  const auto compute = [&](const AttentionSpec& spec, const std::vector<std::uint64_t>& to) {
    if (attention_->backward) {
      tensors.dq = to[0];
      tensors.dk = to[1];
      tensors.dv = to[2];
      return judge.attention_backward(spec, shape, tensors);
    }
    tensors.o = to[0];
    tensors.lse = to[1];
    return judge.attention_forward(spec, shape, tensors);
  };
  const auto is_lse = [&](std::size_t output) { return !attention_->backward && output == 1; };

  AttentionSpec spec;
  spec.causal = attention_->causal;
  spec.input = attention_->dtype;
  OutputValues values;
  std::vector<std::uint64_t> to;
  for (std::size_t i = 0; i < layouts_.outputs.size(); ++i) {
    values.dtypes.push_back(is_lse(i) ? spec.lse : spec.output);
    PTXBENCH_TRY_ASSIGN(const DeviceBuffer out,
                        values.own(device_, dtype_bytes(values.dtypes[i], layouts_.outputs[i].elements)));
    values.buffers.push_back(out);
    to.push_back(out.address);
  }
  PTXBENCH_TRY(compute(spec, to));
  if (want_model_ && shape.elements() != 0) {
    spec.model = true;
    spec.output = attention_->dtype;
    spec.lse = DType::float32;
    spec.rows_of_head = sampled_rows(shape);
    if (spec.rows_of_head < shape.sequence) {
      const std::vector<std::uint32_t> rows = sample_rows(shape, seed);
      PTXBENCH_TRY_ASSIGN(const DeviceBuffer list, values.own(device_, rows.size() * sizeof rows[0]));
      PTXBENCH_TRY(
          device_.write(list.address, {reinterpret_cast<const std::uint8_t*>(rows.data()), list.bytes}));
      spec.rows = list.address;
    }
    to.clear();
    for (std::size_t i = 0; i < layouts_.outputs.size(); ++i) {
      const std::uint32_t width = is_lse(i) ? 1 : shape.head_dim;
      ModelAt model;
      model.sample = {spec.rows, spec.rows_of_head, shape.sequence, width, 0};
      model.elements = std::uint64_t{shape.all_heads()} * spec.rows_of_head * width;
      PTXBENCH_TRY_ASSIGN(const DeviceBuffer out,
                          values.own(device_, dtype_bytes(layouts_.outputs[i].dtype, model.elements)));
      model.address = out.address;
      to.push_back(out.address);
      values.model.push_back(model);
      values.sum_floor.push_back(is_lse(i) ? kLseFloor : kSumFloor);
    }
    PTXBENCH_TRY(compute(spec, to));
  }
  PTXBENCH_TRY(settle(device_, "the reference"));
  return values;
}

Result<OutputValues> ExpectedSource::by_solution(const TensorBuffers& buffers) {
  PlanBuffers plan_buffers = buffers.plan_buffers();
  OutputValues values;
  for (std::size_t i = 0; i < layouts_.outputs.size(); ++i) {
    PTXBENCH_TRY_ASSIGN(const DeviceBuffer out, values.own(device_, layouts_.outputs[i].bytes));
    if (out.bytes != 0) PTXBENCH_TRY(device_.fill(out.address, 0xff, 1, out.bytes));
    plan_buffers.outputs[i] = out;
    values.buffers.push_back(out);
    values.dtypes.push_back(layouts_.outputs[i].dtype);
  }
  PTXBENCH_TRY(solution_->globals->restore());
  PTXBENCH_TRY_ASSIGN(auto runner,
                      PlanRunner::create(device_, solution_->plan, solution_->modules, plan_buffers));
  PTXBENCH_TRY(runner->set_globals());
  PTXBENCH_TRY(runner->poison_workspaces(0xff));
  PTXBENCH_TRY_ASSIGN(DeviceOutcome outcome, runner->enqueue());
  if (!outcome) {
    PTXBENCH_TRY_ASSIGN(outcome, device_.synchronize(run_deadline_ns_));
  }
  if (outcome)
    return make_error(ErrorCode::invalid_argument,
                      "the reference solution failed: " + outcome->name + ": " + outcome->message);
  return values;
}

Result<OutputValues> ExpectedSource::by_callback(HostCallbacks* callbacks, const TensorBuffers& buffers) {
  if (callbacks == nullptr)
    return make_error(ErrorCode::invalid_argument,
                      "a reference by callback was asked for, but there is none");
  PTXBENCH_TRY(settle(device_, "what came before the reference"));
  std::vector<HostBuffer> memory;
  memory.reserve(layouts_.inputs.size() + layouts_.outputs.size());
  std::vector<HostTensor> inputs, outputs;
  for (std::size_t i = 0; i < layouts_.inputs.size(); ++i) {
    const TensorLayout& layout = layouts_.inputs[i];
    if (layout.scalar) continue;
    HostBuffer& bytes = memory.emplace_back(layout.bytes);
    if (layout.bytes != 0) PTXBENCH_TRY(device_.read(buffers.inputs[i].buffer().address, bytes.span()));
    inputs.push_back({layout.name, layout.dtype, layout.shape, bytes.data(), layout.bytes});
  }
  for (const TensorLayout& layout : layouts_.outputs) {
    HostBuffer& bytes = memory.emplace_back(layout.bytes);
    outputs.push_back({layout.name, layout.dtype, layout.shape, bytes.data(), layout.bytes});
  }
  PTXBENCH_TRY(callbacks->compute(workload_, inputs, outputs));
  OutputValues values;
  for (std::size_t i = 0; i < layouts_.outputs.size(); ++i) {
    PTXBENCH_TRY_ASSIGN(const DeviceBuffer to, values.own(device_, outputs[i].bytes));
    if (to.bytes != 0)
      PTXBENCH_TRY(device_.write(to.address, {static_cast<const std::uint8_t*>(outputs[i].data), to.bytes}));
    values.buffers.push_back(to);
    values.dtypes.push_back(layouts_.outputs[i].dtype);
  }
  return values;
}

}  // namespace ptxbench
