#include "plan/names.hpp"

#include "plan/numbers.hpp"
#include "plan/read.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace ptxbench::plan {
namespace {

constexpr std::array<std::string_view, 4> kDeviceNames{"sm_count", "smem_optin_bytes", "regs_per_sm",
                                                       "l2_bytes"};

bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

Error override_error(const std::string& name, std::string message) {
  return make_error(ErrorCode::invalid_argument, "override of constant `" + name + "`: " + std::move(message),
                    {"", "/constants/" + name, 0, 0}, kPlanInvalid);
}

// The override's value in the constant's kind.
Result<Number> keep_kind(const Constant& constant, const Number& value) {
  const char* const kinds[] = {"an integer", "a float", "a boolean"};
  const auto wrong = [&] {
    return override_error(constant.name, std::string("it is ") + kinds[constant.value.index()] + " (" +
                                             expr::to_string(constant.value) + "), which " +
                                             expr::to_string(value) + " is not");
  };
  if (constant.value.index() == value.index()) {
    if (const double* v = std::get_if<double>(&value); v != nullptr && !std::isfinite(static_cast<float>(*v)))
      return override_error(constant.name, expr::to_string(value) + " does not fit a float");
    return value;
  }
  if (constant.value.index() == 1 && value.index() == 0)
    return Number(static_cast<double>(std::get<0>(value)));
  if (constant.value.index() == 0 && value.index() == 1) {
    const double v = std::get<1>(value);
    if (std::trunc(v) == v && std::fabs(v) < 0x1p53) return Number(static_cast<std::int64_t>(v));
  }
  return wrong();
}

}  // namespace

Result<std::vector<Constant>> apply_overrides(
    const LaunchPlan::Impl& plan, const Workload& workload,
    const std::vector<std::pair<std::string, PlanNumber>>& overrides) {
  std::vector<Constant> out = plan.constants;
  for (const Constant& constant : out) {
    const bool axis = workload.definition->find_axis(constant.name) != nullptr;
    const auto& inputs = workload.definition->inputs;
    const bool scalar = std::any_of(inputs.begin(), inputs.end(), [&](const TensorSpec& input) {
      return input.is_scalar() && input.name == constant.name;
    });
    if (axis || scalar)
      return plan.error(constant.pointer,
                        "`" + constant.name + "` is " + (axis ? "an axis" : "a scalar input") +
                            " of the definition " + workload.definition->name +
                            "; a constant needs a name of its own",
                        kPlanInvalid);
  }
  for (const auto& [name, value] : overrides) {
    const auto found =
        std::find_if(out.begin(), out.end(), [&n = name](const Constant& c) { return c.name == n; });
    if (found == out.end()) {
      std::vector<std::string_view> known;
      for (const Constant& constant : out) known.push_back(constant.name);
      Error error = override_error(name, "the plan has no such constant" + suggestion(name, known));
      error.where = plan.at("/constants");
      error.rule = kUnknownName;
      return error;
    }
    auto kept = keep_kind(*found, value);
    if (!kept) {
      kept.error().where = plan.at(found->pointer);
      return std::move(kept).error();
    }
    found->value = *kept;
  }
  return out;
}

std::optional<std::int64_t> Names::device(std::string_view name) const {
  if (name == "sm_count") return limits_.sm_count;
  if (name == "smem_optin_bytes") return limits_.smem_optin_bytes;
  if (name == "regs_per_sm") return limits_.regs_per_sm;
  if (name == "l2_bytes") return limits_.l2_bytes;
  return std::nullopt;
}

Error Names::unknown(std::string_view name, bool index) const {
  if (name == "i")
    return make_error(ErrorCode::invalid_argument,
                      "`i` is the index of a repeated step; it means nothing here", {}, kUnknownName);
  std::vector<std::string_view> known;
  for (const Axis& axis : workload_.definition->axes) known.push_back(axis.name);
  for (const TensorSpec& input : workload_.definition->inputs)
    if (input.is_scalar()) known.push_back(input.name);
  for (const Constant& constant : constants_) known.push_back(constant.name);
  known.insert(known.end(), kDeviceNames.begin(), kDeviceNames.end());
  if (index) known.push_back("i");
  return make_error(ErrorCode::invalid_argument,
                    "unknown name `" + std::string(name) + "`" + suggestion(name, known), {}, kUnknownName);
}

Result<Number> Names::lookup(std::string_view name, std::optional<std::int64_t> index) const {
  if (index && name == "i") return Number(*index);
  if (workload_.definition->find_axis(name) != nullptr) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t value, workload_.axis_value(name));
    return Number(value);
  }
  for (const TensorSpec& input : workload_.definition->inputs) {
    if (!input.is_scalar() || input.name != name) continue;
    for (const auto& [scalar, value] : scalars_)
      if (scalar == name) return number_of_dtype(input.dtype, value);
    return make_error(ErrorCode::invalid_argument,
                      "the scalar input `" + std::string(name) +
                          "` is drawn for each trial; its value is known only when arguments are packed",
                      {}, kExpression);
  }
  for (const Constant& constant : constants_)
    if (constant.name == name) return constant.value;
  if (const auto value = device(name)) return Number(*value);
  return unknown(name, index.has_value());
}

expr::Environment Names::environment(std::optional<std::int64_t> index, KernelFunction kernels) const {
  expr::Environment out;
  out.lookup = [this, index](std::string_view name) { return lookup(name, index); };
  out.kernel_function = std::move(kernels);
  return out;
}

Result<void> Names::check(const Expression& e, bool index) const {
  for (const std::string& name : e.names()) {
    if (index && name == "i") continue;
    const auto& inputs = workload_.definition->inputs;
    const bool known =
        workload_.definition->find_axis(name) != nullptr || device(name) ||
        std::any_of(inputs.begin(), inputs.end(),
                    [&](const TensorSpec& t) { return t.is_scalar() && t.name == name; }) ||
        std::any_of(constants_.begin(), constants_.end(), [&](const Constant& c) { return c.name == name; });
    if (known) continue;
    Error error = unknown(name, index);
    error.where = e.where();
    error.message += " (in `" + e.text() + "`)";
    return error;
  }
  return {};
}

std::string without_spaces(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ' && text[i] != '\t' && text[i] != '\n' && text[i] != '\r') {
      out += text[i];
      continue;
    }
    // A space between two words counts: "unsigned int".
    while (i + 1 < text.size() &&
           (text[i + 1] == ' ' || text[i + 1] == '\t' || text[i + 1] == '\n' || text[i + 1] == '\r'))
      ++i;
    if (!out.empty() && name_char(out.back()) && i + 1 < text.size() && name_char(text[i + 1])) out += ' ';
  }
  return out;
}

Result<std::size_t> find_kernel_step(const LaunchPlan::Impl& plan, std::string_view name) {
  const std::string wanted = without_spaces(name);
  std::vector<std::size_t> found;
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* kernel = std::get_if<KernelStep>(&plan.steps[i].what);
    if (kernel == nullptr) continue;
    known.push_back(kernel->name());
    if (kernel->as == wanted || without_spaces(kernel->kernel) == wanted) found.push_back(i);
  }
  if (found.size() == 1) return found[0];
  if (found.empty())
    return make_error(ErrorCode::invalid_argument,
                      "no kernel step is named `" + std::string(name) + "`" + suggestion(name, known), {},
                      kUnknownName);
  std::string steps;
  for (const std::size_t i : found) steps += (steps.empty() ? "" : ", ") + std::to_string(i);
  return make_error(ErrorCode::invalid_argument,
                    "`" + std::string(name) + "` means several steps (" + steps +
                        "); give the one that is meant a name with `as`",
                    {}, kExpression);
}

}  // namespace ptxbench::plan
