// Compares the outputs of a run with what is expected: statistics on the device, or a host's Comparator.
#include "verify/session.hpp"

#include <algorithm>

namespace ptxbench {
namespace {

bool integral(DType dtype) { return !judge::type_is_float(static_cast<judge::u32>(dtype)); }

Tolerance tolerance_for(const ComparatorSpec& comparator, const TensorLayout& layout) {
  for (const auto& [name, tolerance] : comparator.by_output)
    if (name == layout.name) return tolerance;
  return integral(layout.dtype) ? Tolerance{0, 0} : comparator.tolerance;
}

// The values as host tensors of the definition's types.
Result<std::vector<HostTensor>> to_host(Device& device, const TensorLayouts& layouts,
                                        const OutputValues& values, std::vector<HostBuffer>& memory) {
  std::vector<HostTensor> tensors;
  for (std::size_t i = 0; i < layouts.outputs.size(); ++i) {
    const TensorLayout& layout = layouts.outputs[i];
    HostBuffer& bytes = memory.emplace_back(layout.bytes);
    if (values.dtypes[i] == layout.dtype) {
      if (layout.bytes != 0) PTXBENCH_TRY(device.read(values.buffers[i].address, bytes.span()));
    } else {  // the judge's own reference, of a wider type: rounded to a float type of 16 or 32 bits
      HostBuffer wide(dtype_bytes(values.dtypes[i], layout.elements));
      const auto wide_type = static_cast<judge::u32>(values.dtypes[i]);
      if (layout.elements != 0) PTXBENCH_TRY(device.read(values.buffers[i].address, wide.span()));
      const auto type = static_cast<judge::u32>(layout.dtype);
      for (std::uint64_t e = 0; e < layout.elements; ++e) {
        const auto value = static_cast<float>(
            judge::decode(wide_type, judge::load_element(wide.data(), wide_type, e)));
        const judge::u64 code = judge::encode_from_float(type, value);
        if (judge::type_bits(type) == 16) {
          reinterpret_cast<judge::u16*>(bytes.data())[e] = static_cast<judge::u16>(code);
        } else {
          reinterpret_cast<judge::u32*>(bytes.data())[e] = static_cast<judge::u32>(code);
        }
      }
    }
    tensors.push_back({layout.name, layout.dtype, layout.shape, bytes.data(), layout.bytes});
  }
  return tensors;
}

Result<void> by_callback(Device& device, const Workload& workload, const TensorLayouts& layouts,
                         const OutputValues& got, const OutputValues& expected, HostCallbacks* callbacks,
                         std::vector<OutputEvidence>& outputs) {
  if (callbacks == nullptr)
    return make_error(ErrorCode::invalid_argument,
                      "a comparison by callback was asked for, but there is none");
  std::vector<HostBuffer> memory;
  memory.reserve(2 * layouts.outputs.size());
  PTXBENCH_TRY_ASSIGN(const auto got_tensors, to_host(device, layouts, got, memory));
  PTXBENCH_TRY_ASSIGN(const auto expected_tensors, to_host(device, layouts, expected, memory));
  PTXBENCH_TRY_ASSIGN(auto said, callbacks->compare(workload, expected_tensors, got_tensors));
  if (said.size() != outputs.size())
    return make_error(ErrorCode::callback, "the comparator returned " + std::to_string(said.size()) +
                                               " results for " + std::to_string(outputs.size()) + " outputs");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].wrong = said[i].elements_wrong;
    outputs[i].callback = std::move(said[i]);
  }
  return {};
}

}  // namespace

Result<std::vector<double>> read_elements(Device& device, ElementsAt at, std::uint64_t first, std::uint64_t count) {
  const auto type = static_cast<judge::u32>(at.dtype);
  const std::uint64_t bits = judge::type_bits(type), skip = first * bits % 8 / 4;  // of two in a byte
  HostBuffer bytes((count * bits + 7) / 8 + 1);
  PTXBENCH_TRY(device.read(at.address + first * bits / 8,
                           {bytes.data(), static_cast<std::size_t>(((count + skip) * bits + 7) / 8)}));
  std::vector<double> values(count);
  for (std::uint64_t i = 0; i < count; ++i)
    values[i] = judge::decode(type, judge::load_element(bytes.data(), type, i + skip));
  return values;
}

Result<std::vector<OutputEvidence>> compare_outputs(JudgeOps& judge, Device& device, const Workload& workload,
                                                    const TensorLayouts& layouts,
                                                    const ComparatorSpec& comparator, const OutputValues& got,
                                                    const OutputValues& expected, int poison,
                                                    HostCallbacks* callbacks) {
  std::vector<OutputEvidence> outputs;
  for (std::size_t i = 0; i < layouts.outputs.size(); ++i) {
    const TensorLayout& layout = layouts.outputs[i];
    OutputEvidence evidence;
    evidence.output = layout.name;
    evidence.dtype = layout.dtype;
    evidence.shape = layout.shape;
    const ElementsAt at{got.buffers[i].address, layout.dtype};
    const ElementsAt wanted{expected.buffers[i].address, expected.dtypes[i]};
    const bool modelled = i < expected.model.size();
    if (poison >= 0) {
      const int bits = dtype_bits(layout.dtype);
      PTXBENCH_TRY_ASSIGN(evidence.unwritten, judge.count_poison(at.address, std::max(bits / 8, 1),
                                                                 bits == 4 ? layout.bytes : layout.elements,
                                                                 static_cast<std::uint8_t>(poison)));
    }
    PTXBENCH_TRY_ASSIGN(evidence.statistics, judge.statistics(layout.elements, at, wanted,
                                                              modelled ? expected.model[i] : ModelAt()));
    if (modelled && expected.sum_floor[i] != 0) {
      evidence.statistics.sum_floor = expected.sum_floor[i];
      evidence.statistics.may_be_exact = false;
    }
    evidence.comparator = comparator.kind;
    if (comparator.kind == ComparatorKind::model_error && !modelled)
      evidence.comparator = ComparatorKind::tolerance;
    if (evidence.comparator == ComparatorKind::callback) {
      outputs.push_back(std::move(evidence));
      continue;
    }
    double atol = 0, rtol = 0;
    if (evidence.comparator == ComparatorKind::tolerance) {
      evidence.tolerance = tolerance_for(comparator, layout);
      atol = evidence.tolerance.atol;
      rtol = evidence.tolerance.either ? -evidence.tolerance.rtol : evidence.tolerance.rtol;
    } else {
      atol = model_limits(evidence.statistics, layout.dtype).max;
    }
    // Statistics already say that no element is beyond a limit of its own in the common case.
    const OutputStatistics& s = evidence.statistics;
    if (s.nonfinite_wrong != 0 || s.max_absolute_error > atol) {
      PTXBENCH_TRY_ASSIGN(const judge::Mismatch wrong,
                          judge.find_wrong(layout.elements, at, wanted, atol, rtol));
      evidence.wrong = wrong.count;
      if (wrong.count != 0) {
        evidence.first_wrong = wrong.first;
        PTXBENCH_TRY_ASSIGN(const auto want, read_elements(device, wanted, wrong.first, 1));
        PTXBENCH_TRY_ASSIGN(const auto have, read_elements(device, at, wrong.first, 1));
        evidence.first_wrong_expected = want[0];
        evidence.first_wrong_got = have[0];
      }
    }
    outputs.push_back(std::move(evidence));
  }
  if (comparator.kind == ComparatorKind::callback)
    PTXBENCH_TRY(by_callback(device, workload, layouts, got, expected, callbacks, outputs));
  return outputs;
}

bool all_right(const std::vector<OutputEvidence>& outputs) {
  return std::all_of(outputs.begin(), outputs.end(),
                     [](const OutputEvidence& o) { return judge_output(o).ok; });
}

}  // namespace ptxbench
