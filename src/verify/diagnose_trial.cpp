// Looks closer at the wrong outputs of a trial: fetches a part of them and asks diagnose.hpp what it shows.
#include "core/json.hpp"
#include "verify/diagnose.hpp"
#include "verify/diagnose_attention.hpp"
#include "verify/trial.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace ptxbench {
namespace {

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 22;  // fetched, of one output

// Rows of a GEMM's operands, fetched when they are asked for.
class Operands {
 public:
  Operands(Device& device, std::uint64_t a, std::uint64_t b, DType dtype, std::uint64_t k)
      : device_(device), address_{a, b}, dtype_(dtype), k_(k) {}
  double partial(std::uint64_t row, std::uint64_t column, std::uint64_t from_a, std::uint64_t from_b,
                 std::uint64_t count) {
    const std::vector<double>&a = line(0, row), &b = line(1, column);
    double sum = 0;
    for (std::uint64_t i = 0; i < count; ++i) sum += a[from_a + i] * b[from_b + i];
    return sum;
  }
  // Whether everything that was asked for could be fetched; what could not is zero.
  const Result<void>& status() const { return status_; }

 private:
  const std::vector<double>& line(int operand, std::uint64_t number) {
    std::vector<double>& values = lines_[{operand, number}];
    if (values.empty()) {
      auto fetched = read_elements(device_, {address_[operand], dtype_}, number * k_, k_);
      if (!fetched && status_) status_ = std::move(fetched).error();
      values = fetched ? std::move(*fetched) : std::vector<double>(k_, 0.0);
    }
    return values;
  }

  Device& device_;
  const std::uint64_t address_[2];
  const DType dtype_;
  const std::uint64_t k_;
  std::map<std::pair<int, std::uint64_t>, std::vector<double>> lines_;
  Result<void> status_;
};

Finding patterns_not_tried(const std::string& output, const std::string& why) {
  json::Writer w;
  w.begin_object().field("output", output).field("reason", why).end_object();
  return {"patterns_not_tried", Severity::note,
          "output " + output + ": not all usual mistakes of an attention were looked for: " + why,
          std::move(w).str()};
}

// The elements that are looked at: whole matrices from that of the first wrong element on, or the rows of one
// from it on.
struct Part {
  MatrixStack shape;
  std::uint64_t matrix = 0, row = 0;
};
Part part_of(const MatrixStack& whole, std::uint64_t first_wrong) {
  Part part{whole, 0, 0};
  if (whole.elements() <= kMostElements) return part;
  const std::uint64_t matrix = whole.rows * whole.columns;
  part.matrix = first_wrong / matrix;
  part.shape.matrices = std::clamp<std::uint64_t>(kMostElements / matrix, 1, whole.matrices - part.matrix);
  if (matrix <= kMostElements) return part;
  part.shape.rows = std::clamp<std::uint64_t>(kMostElements / whole.columns, 1, whole.rows);
  const std::uint64_t wrong_row = first_wrong % matrix / whole.columns;
  part.row = std::min(wrong_row - std::min(wrong_row, part.shape.rows / 4), whole.rows - part.shape.rows);
  return part;
}

}  // namespace

Result<void> diagnose_outputs(const TrialParts& parts, const OutputValues& got, const OutputValues& expected,
                              std::vector<OutputEvidence>& outputs) {
  const std::optional<GemmPattern> gemm = match_gemm(*parts.workload.definition);
  PTXBENCH_TRY_ASSIGN(std::optional<AttentionMistakes> mistakes, AttentionMistakes::compute(parts, outputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    OutputEvidence& evidence = outputs[i];
    if (!evidence.first_wrong || evidence.comparator == ComparatorKind::callback) continue;
    const TensorLayout& layout = parts.layouts.outputs[i];
    const Tolerance& t = evidence.tolerance;
    const double largest = judge::largest_finite(static_cast<judge::u32>(layout.dtype));
    Allowed allowed{t.atol, t.either ? -t.rtol : t.rtol, largest};
    if (evidence.comparator == ComparatorKind::model_error)
      allowed = {model_limits(evidence.statistics, layout.dtype).max, 0, largest};
    const MatrixStack whole = matrix_stack(layout.shape);
    const TileGrid grid = tile_grid(whole);
    PTXBENCH_TRY_ASSIGN(const auto wrong,
                        parts.judge.wrong_tiles(grid, {got.buffers[i].address, layout.dtype},
                                                {expected.buffers[i].address, expected.dtypes[i]},
                                                allowed.atol, allowed.rtol));
    evidence.diagnosis.push_back(describe_tiles(layout.name, grid, wrong));

    const Part part = part_of(whole, *evidence.first_wrong);
    const std::uint64_t first = (part.matrix * whole.rows + part.row) * whole.columns,
                        elements = part.shape.elements();
    PTXBENCH_TRY_ASSIGN(const std::vector<double> have,
                        read_elements(parts.device, {got.buffers[i].address, layout.dtype}, first, elements));
    PTXBENCH_TRY_ASSIGN(
        const std::vector<double> want,
        read_elements(parts.device, {expected.buffers[i].address, expected.dtypes[i]}, first, elements));
    DiagnosisInput input;
    input.output = layout.name;
    input.shape = part.shape;
    input.first_matrix = part.matrix;
    input.first_row = part.row;
    input.got = have;
    input.expected = want;
    input.allowed = allowed;
    input.rounding = std::ldexp(
        1.0, -1 - static_cast<int>(judge::float_format(static_cast<judge::u32>(layout.dtype)).mantissa));
    std::optional<Operands> operands;
    if (gemm && parts.layouts.inputs[gemm->a].shape.size() == 2) {
      input.k = static_cast<std::uint64_t>(parts.layouts.inputs[gemm->a].shape[1]);
      operands.emplace(parts.device, parts.buffers.inputs[gemm->a].buffer().address,
                       parts.buffers.inputs[gemm->b].buffer().address, gemm->input, input.k);
      input.partial = [&operands, row0 = part.row](std::uint64_t row, std::uint64_t column,
                                                   std::uint64_t from_a, std::uint64_t from_b,
                                                   std::uint64_t count) {
        return operands->partial(row0 + row, column, from_a, from_b, count);
      };
    }
    if (mistakes) {
      PTXBENCH_TRY_ASSIGN(input.alternatives, mistakes->of(i, first, elements));
    }
    std::vector<Finding> recognised = recognise(input);
    if (operands) PTXBENCH_TRY(operands->status());
    const bool named = std::any_of(recognised.begin(), recognised.end(),
                                   [](const Finding& f) { return f.code == "wrong_pattern"; });
    if (mistakes && mistakes->left_out() && !named)
      evidence.diagnosis.push_back(patterns_not_tried(layout.name, *mistakes->left_out()));
    for (Finding& finding : recognised) evidence.diagnosis.push_back(std::move(finding));
    evidence.diagnosis.push_back(describe_worst(input, layout.shape));
  }
  return {};
}

}  // namespace ptxbench
