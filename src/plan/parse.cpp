// LaunchPlan::parse: the document's shape, holes, and the fields that are lists of small records.
#include "plan/read.hpp"
#include "plan/reserved_names.hpp"

#include <algorithm>
#include <cmath>
#include <new>

namespace ptxbench {
namespace plan {
namespace {

using Impl = LaunchPlan::Impl;

// `{"hole": "why"}` in place of any value: what a drafted plan leaves open.
void collect_holes(const json::Value& value, const std::string& pointer, std::vector<std::string>& out) {
  if (value.kind == json::Kind::object) {
    if (value.members.size() == 1 && value.members[0].first == "hole" &&
        value.members[0].second.kind == json::Kind::string) {
      out.push_back(pointer + " (" + value.members[0].second.text + ")");
      return;
    }
    for (const auto& [name, member] : value.members)
      collect_holes(member, pointer + "/" + json::pointer_token(name), out);
  }
  for (std::size_t i = 0; i < value.items.size(); ++i)
    collect_holes(value.items[i], pointer + "/" + std::to_string(i), out);
}

Result<void> at_most(const json::Cursor& at, std::size_t count, std::size_t most) {
  if (count <= most) return {};
  return at.error("at most " + std::to_string(most) + " are allowed, found " + std::to_string(count),
                  kPlanLimit);
}

// Members of the optional object `key` of `root`.
Result<std::vector<std::pair<std::string, json::Cursor>>> members_of(const json::Cursor& root,
                                                                     std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, root.get(key));
  if (!found) return std::vector<std::pair<std::string, json::Cursor>>();
  PTXBENCH_TRY_ASSIGN(auto members, found->members());
  PTXBENCH_TRY(at_most(*found, members.size(), kMaxEntries));
  return members;
}

Result<std::vector<json::Cursor>> items_of(const json::Cursor& root, std::string_view key, std::size_t most) {
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, root.get(key));
  if (!found) return std::vector<json::Cursor>();
  PTXBENCH_TRY_ASSIGN(auto items, found->items());
  PTXBENCH_TRY(at_most(*found, items.size(), most));
  return items;
}

Result<void> read_constants(const json::Cursor& root, Impl& plan) {
  PTXBENCH_TRY_ASSIGN(const auto members, members_of(root, "constants"));
  for (const auto& [name, value] : members) {
    if (!is_identifier(name))
      return invalid(value, "the constant \"" + name + "\" is no identifier (letters, digits and _)");
    if (is_expression_word(name))
      return invalid(value, "a constant cannot be named `" + name + "`: expressions have a meaning for it");
    if (is_language_name(name))
      return invalid(value, "a constant cannot be named `" + name + "`: it is a name of the C++ language");
    Number number;
    if (value.kind() == json::Kind::boolean) {
      number = value.value().boolean;
    } else if (value.kind() == json::Kind::number) {
      PTXBENCH_TRY_ASSIGN(const Expression literal, Expression::parse(value.value().text, value.location()));
      PTXBENCH_TRY_ASSIGN(number, literal.evaluate({}));
      if (const double* v = std::get_if<double>(&number);
          v != nullptr && !std::isfinite(static_cast<float>(*v)))
        return invalid(value,
                       value.value().text + " does not fit a float, which is what a source finds it as");
    } else {
      return invalid(value, "a constant is a number or a boolean");
    }
    plan.constants.push_back({name, number, value.pointer()});
  }
  return {};
}

Result<void> read_defines(const json::Cursor& root, Impl& plan) {
  PTXBENCH_TRY_ASSIGN(const auto members, members_of(root, "defines"));
  for (const auto& [name, value] : members) {
    if (!is_identifier(name)) return invalid(value, "\"" + name + "\" cannot be the name of a macro");
    if (is_language_name(name))
      return invalid(value, "a macro cannot be named `" + name + "`: it is a name of the C++ language");
    if (is_header_name(name))
      return invalid(value,
                     "a macro cannot be named `" + name +
                         "`: CUDA's and our headers use that name and would break (use a longer one, or a "
                         "constant, which is no macro)");
    Define define{name, value.pointer(), std::nullopt, {}};
    if (value.kind() == json::Kind::object) {
      PTXBENCH_TRY(only(value, {"token"}));
      PTXBENCH_TRY_ASSIGN(const json::Cursor token, value.require("token"));
      PTXBENCH_TRY_ASSIGN(define.token, token.as_nonempty_string());
      const bool printable = std::all_of(define.token.begin(), define.token.end(),
                                         [](char c) { return c >= 0x20 && c < 0x7f && c != '\\'; });
      if (!printable || define.token.size() > 256 || define.token.find("//") != std::string::npos ||
          define.token.find("/*") != std::string::npos)
        return invalid(token,
                       "a token is up to 256 printable characters of one line, without comments or \\");
    } else {
      PTXBENCH_TRY_ASSIGN(define.value, read_expression(value));
    }
    plan.defines.push_back(std::move(define));
  }
  return {};
}

Result<void> read_compile(const json::Cursor& root, Impl& plan) {
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> compile, root.get("compile"));
  if (!compile) return {};
  PTXBENCH_TRY_ASSIGN(plan.compile, read_compile_fields(*compile, true));
  PTXBENCH_TRY_ASSIGN(const auto members, members_of(*compile, "per_source"));
  for (const auto& [path, value] : members) {
    PTXBENCH_TRY_ASSIGN(CompileFields fields, read_compile_fields(value, false));
    plan.per_source.emplace_back(Reference{path, value.pointer()}, std::move(fields));
  }
  return {};
}

Result<Workspace> read_workspace(const json::Cursor& at) {
  PTXBENCH_TRY(only(at, {"name", "dtype", "shape", "init"}));
  Workspace out;
  out.pointer = at.pointer();
  PTXBENCH_TRY_ASSIGN(const json::Cursor name, at.require("name"));
  PTXBENCH_TRY_ASSIGN(out.name, read_identifier(name));
  PTXBENCH_TRY_ASSIGN(const json::Cursor dtype, at.require("dtype"));
  PTXBENCH_TRY_ASSIGN(out.dtype, read_dtype(dtype, false));
  PTXBENCH_TRY_ASSIGN(const json::Cursor shape, at.require("shape"));
  PTXBENCH_TRY_ASSIGN(out.shape, read_expressions(shape, 0, 8));
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> init, at.get("init"));
  if (!init) return out;
  if (init->kind() == json::Kind::object) {
    PTXBENCH_TRY(only(*init, {"pointers", "maps"}));
    return make_error(ErrorCode::unsupported,
                      "tables of pointers or maps as a workspace's `init` come with a later version",
                      init->location(), kPlanInvalid);
  }
  if (init->kind() == json::Kind::string && init->value().text == "none") return out;
  if (init->kind() == json::Kind::string &&
      (init->value().text == "pointers" || init->value().text == "maps"))
    return make_error(
        ErrorCode::unsupported,
        "tables of " + init->value().text + " as a workspace's `init` come with a later version",
        init->location(), kPlanInvalid);
  PTXBENCH_TRY_ASSIGN(out.init, read_expression(*init));
  return out;
}

Result<Global> read_global(const json::Cursor& at) {
  PTXBENCH_TRY(only(at, {"symbol", "values", "dtype", "offset", "source", "tensor", "workspace", "map"}));
  Global out;
  out.pointer = at.pointer();
  PTXBENCH_TRY_ASSIGN(const json::Cursor symbol, at.require("symbol"));
  PTXBENCH_TRY_ASSIGN(out.symbol, symbol.as_nonempty_string());
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> source, at.get("source"));
  if (source) {
    PTXBENCH_TRY_ASSIGN(out.source, read_reference(*source));
  }
  int forms = 0;
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> values, at.get("values"));
  forms += values ? 1 : 0;
  for (const auto& [key, to] : {std::pair{"tensor", &out.tensor}, std::pair{"workspace", &out.workspace},
                                std::pair{"map", &out.map}}) {
    PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, at.get(key));
    if (!found) continue;
    ++forms;
    PTXBENCH_TRY_ASSIGN(*to, read_reference(*found));
  }
  if (forms != 1)
    return invalid(at,
                   "a global takes exactly one of \"values\", \"tensor\", \"workspace\" and \"map\", found " +
                       std::to_string(forms));
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> dtype, at.get("dtype"));
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> offset, at.get("offset"));
  if (!values) {
    if (dtype || offset)
      return invalid(dtype ? *dtype : *offset, "\"dtype\" and \"offset\" go with \"values\" only");
    return out;
  }
  PTXBENCH_TRY_ASSIGN(out.values, read_expressions(*values, 1, 65536));
  if (!dtype) return invalid(at, "the member \"dtype\" is missing: it says how \"values\" are stored");
  PTXBENCH_TRY_ASSIGN(out.dtype, read_dtype(*dtype, false));
  if (dtype_bits(out.dtype) < 8)
    return invalid(*dtype, "values of " + std::string(dtype_name(out.dtype)) +
                               " have no address of their own; write them as uint8");
  if (offset) {
    PTXBENCH_TRY_ASSIGN(out.offset, read_expression(*offset));
  }
  return out;
}

template <class T>
Result<void> unique_names(const Impl& plan, const std::vector<T>& list, const char* what) {
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (list[i].name == list[j].name)
        return make_error(ErrorCode::parse,
                          std::string("two ") + what + " are named `" + list[i].name + "` (the other is " +
                              list[j].pointer + ")",
                          plan.at(list[i].pointer + "/name"), kPlanInvalid);
  return {};
}

Result<void> check_steps(const Impl& plan) {
  const KernelStep* before = nullptr;  // the kernel step directly before
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const auto* kernel = std::get_if<KernelStep>(&plan.steps[i].what);
    if (kernel != nullptr && kernel->pdl && before == nullptr)
      return make_error(
          ErrorCode::parse,
          i == 0 ? "`pdl` overlaps with the kernel step directly before, but this is the first step"
                 : "`pdl` overlaps with the kernel step directly before, but step " + std::to_string(i - 1) +
                       " is no kernel",
          plan.at(plan.steps[i].pointer + "/pdl"), kPlanInvalid);
    before = kernel;
    if (kernel == nullptr || kernel->as.empty()) continue;
    for (std::size_t j = 0; j < i; ++j) {
      const auto* other = std::get_if<KernelStep>(&plan.steps[j].what);
      if (other != nullptr && other->as == kernel->as)
        return make_error(ErrorCode::parse,
                          "`" + kernel->as + "` is already the name of step " + std::to_string(j) +
                              "; `as` must mean exactly one step",
                          plan.at(plan.steps[i].pointer + "/as"), kPlanInvalid);
    }
  }
  return {};
}

Result<void> read_plan(const json::Document& document, Impl& plan) {
  const json::Cursor root(document);
  if (root.kind() != json::Kind::object) return invalid(root, "a launch plan is a JSON object");
  if (!document.repeated_keys.empty())
    return make_error(ErrorCode::parse, "this member occurs more than once",
                      plan.at(document.repeated_keys[0]), kPlanInvalid);
  std::vector<std::string> holes;
  collect_holes(document.root, "", holes);
  if (!holes.empty()) {
    std::string message = "the plan is a draft; it still has " + std::to_string(holes.size()) +
                          (holes.size() == 1 ? " hole: " : " holes: ");
    for (std::size_t i = 0; i < holes.size(); ++i) message += (i == 0 ? "" : "; ") + holes[i];
    return make_error(ErrorCode::parse, std::move(message), plan.at(holes[0].substr(0, holes[0].find(" ("))),
                      kPlanHole);
  }
  PTXBENCH_TRY(only(root, {"version", "constants", "require", "defines", "compile", "tensor_maps",
                           "workspaces", "globals", "steps"}));
  PTXBENCH_TRY_ASSIGN(const json::Cursor version, root.require("version"));
  PTXBENCH_TRY_ASSIGN(const std::int64_t number, version.as_int());
  if (number != 1)
    return invalid(version,
                   "version " + std::to_string(number) + " is not known; this library reads version 1");
  PTXBENCH_TRY(read_constants(root, plan));
  PTXBENCH_TRY_ASSIGN(const auto require, items_of(root, "require", kMaxEntries));
  for (const json::Cursor& item : require) {
    PTXBENCH_TRY_ASSIGN(Expression condition, read_expression(item));
    plan.require.push_back(std::move(condition));
  }
  PTXBENCH_TRY(read_defines(root, plan));
  PTXBENCH_TRY(read_compile(root, plan));
  PTXBENCH_TRY_ASSIGN(const auto maps, items_of(root, "tensor_maps", kMaxEntries));
  for (const json::Cursor& item : maps) {
    PTXBENCH_TRY_ASSIGN(TensorMap map, read_tensor_map(item));
    plan.tensor_maps.push_back(std::move(map));
  }
  PTXBENCH_TRY(unique_names(plan, plan.tensor_maps, "tensor maps"));
  PTXBENCH_TRY_ASSIGN(const auto workspaces, items_of(root, "workspaces", kMaxEntries));
  for (const json::Cursor& item : workspaces) {
    PTXBENCH_TRY_ASSIGN(Workspace workspace, read_workspace(item));
    plan.workspaces.push_back(std::move(workspace));
  }
  PTXBENCH_TRY(unique_names(plan, plan.workspaces, "workspaces"));
  PTXBENCH_TRY_ASSIGN(const auto globals, items_of(root, "globals", kMaxEntries));
  for (const json::Cursor& item : globals) {
    PTXBENCH_TRY_ASSIGN(Global global, read_global(item));
    plan.globals.push_back(std::move(global));
  }
  PTXBENCH_TRY_ASSIGN(const json::Cursor list, root.require("steps"));
  PTXBENCH_TRY_ASSIGN(const auto steps, items_of(root, "steps", kMaxSteps));
  if (steps.empty()) return invalid(list, "a plan needs at least one step");
  for (const json::Cursor& item : steps) {
    PTXBENCH_TRY_ASSIGN(Step step, read_step(item));
    plan.steps.push_back(std::move(step));
  }
  return check_steps(plan);
}

}  // namespace
}  // namespace plan

Result<LaunchPlan> LaunchPlan::parse(std::string_view json, std::string_view file) {
  try {
    auto impl = std::make_shared<Impl>();
    impl->file = std::string(file);
    const auto parsed = [&]() -> Result<void> {
      if (json.size() > plan::kMaxPlanText)
        return make_error(ErrorCode::parse,
                          "the plan has " + std::to_string(json.size()) + " bytes; at most " +
                              std::to_string(plan::kMaxPlanText) + " are read",
                          impl->at(""), plan::kPlanLimit);
      PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(json, {impl->file, false, 64}));
      return plan::read_plan(document, *impl);
    }();
    if (!parsed) {
      Error error = parsed.error();
      // What the JSON layer refuses (syntax, kinds, unknown members) is a fault of the plan's form.
      if (error.rule.empty() || error.rule == "json") error.rule = plan::kPlanInvalid;
      if (error.where.file.empty()) error.where.file = impl->file;
      return error;
    }
    LaunchPlan out;
    out.impl_ = std::move(impl);
    return out;
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory while reading a launch plan");
  }
}

std::vector<std::pair<std::string, PlanNumber>> LaunchPlan::constants() const {
  std::vector<std::pair<std::string, PlanNumber>> out;
  if (!impl_) return out;
  for (const plan::Constant& constant : impl_->constants) out.emplace_back(constant.name, constant.value);
  return out;
}

}  // namespace ptxbench
