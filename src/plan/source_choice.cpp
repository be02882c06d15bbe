#include "plan/source_choice.hpp"

#include "plan/names.hpp"
#include "plan/read.hpp"

#include <algorithm>

namespace ptxbench::plan {
namespace {

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool has_kernel(const std::vector<SourceKernel>& kernels, std::string_view name, bool extern_c_only) {
  return std::any_of(kernels.begin(), kernels.end(), [&](const SourceKernel& kernel) {
    return kernel.name == name && (kernel.extern_c || !extern_c_only);
  });
}

}  // namespace

bool sees_launch_plan_header(const Solution& solution) {
  return std::any_of(solution.sources.begin(), solution.sources.end(), [](const SourceFile& file) {
    const bool text =
        !ends_with(file.path, ".json") && !ends_with(file.path, ".cubin") && !ends_with(file.path, ".ptx");
    return text && includes_header(file.content, "launch_plan.h");
  });
}

Result<Sources> Sources::of(const LaunchPlan::Impl& plan, const Solution& solution) {
  Sources out;
  out.plan_ = &plan;
  for (const SourceFile& file : solution.sources) {
    Module module;
    module.path = file.path;
    if (ends_with(file.path, ".cu")) {
      module.kernels = kernels_of_cuda(file.content);
    } else if (ends_with(file.path, ".ptx")) {
      module.kind = Kind::ptx;
      for (std::string& name : kernels_of_ptx(file.content))
        module.kernels.push_back({std::move(name), true});
    } else if (ends_with(file.path, ".cubin")) {
      module.kind = Kind::cubin;
    } else {
      continue;
    }
    out.modules_.push_back(std::move(module));
  }
  for (const auto& [source, fields] : plan.per_source) PTXBENCH_TRY(out.named(source));
  return out;
}

std::string Sources::paths() const {
  std::string out;
  for (const Module& module : modules_) out += (out.empty() ? "" : ", ") + module.path;
  return out;
}

Result<const Sources::Module*> Sources::named(const Reference& source) const {
  std::vector<std::string_view> known;
  for (const Module& module : modules_) {
    if (module.path == source.name) return &module;
    known.push_back(module.path);
  }
  return plan_->error(source.pointer,
                      "the candidate has no .cu, .ptx or .cubin source \"" + source.name + "\"" +
                          suggestion(source.name, known),
                      kUnknownName);
}

const Sources::Module* Sources::only(Kind kind) const {
  const Module* found = nullptr;
  for (const Module& module : modules_) {
    if (module.kind != kind) continue;
    if (found != nullptr) return nullptr;
    found = &module;
  }
  return found;
}

SourceChoice Sources::choose(const Module& module, const KernelStep& kernel) const {
  SourceChoice out{module.path, {}, module.kind == Kind::cuda};
  // An extern "C" kernel's name is its symbol; any other is a name expression for NVRTC.
  if (out.is_cuda && !has_kernel(module.kernels, kernel.kernel, true)) out.name_expression = kernel.kernel;
  return out;
}

Result<SourceChoice> Sources::of_kernel(const Step& step, const KernelStep& kernel) const {
  if (modules_.empty())
    return plan_->error(step.pointer, "the candidate has no .cu, .ptx or .cubin source", kUnknownName);
  if (kernel.source) {
    PTXBENCH_TRY_ASSIGN(const Module* module, named(*kernel.source));
    return choose(*module, kernel);
  }
  if (modules_.size() == 1) return choose(modules_[0], kernel);
  const Module* found = nullptr;
  std::string several;
  for (const Module& module : modules_) {
    if (!has_kernel(module.kernels, kernel.kernel, true)) continue;
    several += (several.empty() ? "" : ", ") + module.path;
    found = &module;
  }
  if (found != nullptr && several == found->path) return choose(*found, kernel);
  if (found != nullptr)
    return plan_->error(
        step.pointer + "/kernel",
        "`" + kernel.kernel + "` is in several sources (" + several + "): say which with `source`",
        kPlanInvalid);
  const Module* const cuda = only(Kind::cuda);
  if (cuda != nullptr) return choose(*cuda, kernel);  // a name expression
  const bool any_cuda =
      std::any_of(modules_.begin(), modules_.end(), [](const Module& m) { return m.kind == Kind::cuda; });
  const Module* const cubin = only(Kind::cubin);
  if (!any_cuda && cubin != nullptr) return choose(*cubin, kernel);
  std::vector<std::string_view> known;
  for (const Module& module : modules_)
    for (const SourceKernel& k : module.kernels) known.push_back(k.name);
  return plan_->error(
      step.pointer + "/kernel",
      "which source `" + kernel.kernel + "` is in is not clear (" + paths() +
          "): it is not declared extern \"C\" in exactly one of them, so say which with `source`" +
          suggestion(kernel.kernel, known),
      kPlanInvalid);
}

Result<SourceChoice> Sources::of_global(const Global& global) const {
  const Module* module = nullptr;
  if (global.source) {
    PTXBENCH_TRY_ASSIGN(module, named(*global.source));
  } else if (modules_.size() == 1) {
    module = &modules_[0];
  } else {
    module = only(Kind::cuda);
  }
  if (module == nullptr)
    return plan_->error(
        global.pointer,
        "which source `" + global.symbol + "` is in is not clear (" + paths() + "): say it with `source`",
        kPlanInvalid);
  SourceChoice out{module->path, {}, module->kind == Kind::cuda};
  // NVRTC takes the address of a variable as its name expression.
  if (out.is_cuda) out.name_expression = global.symbol.front() == '&' ? global.symbol : "&" + global.symbol;
  return out;
}

}  // namespace ptxbench::plan
