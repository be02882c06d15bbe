// Any launch.json either goes all the way to a resolved run or ends in an error that names its rule. The
// sources' text comes from the input as well: what stands behind a NUL byte.
#include <ptxbench/plan.hpp>

#include <cstdint>
#include <cstdlib>

namespace {

using namespace ptxbench;

Workload workload() {
  Definition d;
  d.name = "gemm";
  d.op_type = "gemm";
  d.axes = {{"M", false, 0, {}}, {"N", true, 256, {}}, {"K", true, 128, {}}};
  d.inputs = {{"A", std::vector<std::string>{"M", "K"}, DType::bfloat16, {}},
              {"B", std::vector<std::string>{"N", "K"}, DType::float4_e2m1, {}},
              {"alpha", std::nullopt, DType::float32, {}}};
  d.outputs = {{"C", std::vector<std::string>{"M", "N"}, DType::float32, {}}};
  Workload w;
  w.definition = make_definition(std::move(d)).value();
  w.axes = {{"M", 70}};
  w.inputs = {{"alpha", ScalarInput{0.5}}};
  w.uuid = "u";
  return make_workload(std::move(w)).value();
}

void require(bool holds) {
  if (!holds) std::abort();
}

// Modules in which every kernel is there that the plan asks for.
std::vector<ModuleInfo> modules_for(const BoundPlan& bound) {
  std::vector<ModuleInfo> out;
  for (const BoundSource& source : bound.sources) {
    ModuleInfo module;
    module.source = source.path;
    KernelInfo kernel;
    kernel.symbol = "k";
    kernel.registers = 32;
    kernel.parameters = {
        {0, 8, true}, {8, 4, true}, {128, 128, false}, {256, 24, false}, {280, 4, std::nullopt}};
    kernel.parameters.resize(bound.launch_plan_header.size() % 6 == 5 ? 5
                                                                      : bound.launch_plan_header.size() % 6);
    kernel.parameter_bytes = 284;
    module.kernels = {kernel, kernel};
    module.kernels[1].symbol = "add";
    module.globals = {{"g", 64}};
    for (const std::string& name : source.name_expressions)
      module.lowered.emplace_back(name, name[0] == '&' ? "g" : "k");
    out.push_back(std::move(module));
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Workload w = workload();
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::size_t cut = std::min(all.find('\0'), all.size());
  const std::string_view source = all.substr(std::min(cut + 1, all.size()));
  const auto plan = LaunchPlan::parse(all.substr(0, cut));
  if (!plan) {
    require(!plan.error().rule.empty() && !plan.error().message.empty() &&
            plan.error().where.file == "launch.json");
    return 0;
  }
  Solution solution;
  solution.name = "s";
  solution.spec.language = "cuda";
  solution.spec.entry_point = "launch.json::run";
  solution.sources = {{"k.cu", std::string(source)}};
  if (source.size() % 3 == 1) solution.sources.push_back({"p.ptx", std::string(source)});
  if (source.size() % 3 == 2)
    solution.sources.push_back({"c.cu", "extern \"C\" __global__ void add(float*);"});
  BindOptions options{device_profile(size % 2 ? "h200" : "b200").value(), plan->constants()};
  const auto bound = bind_plan(*plan, solution, w, options);
  if (!bound) {
    require(!bound.error().rule.empty() && bound.error().where.file == "launch.json");
    return 0;
  }
  if (!bound->applicable) {
    require(!bound->not_applicable_reason.empty());
    return 0;
  }
  DeviceQueries queries;
  queries.occupancy = [](const OccupancyQuery&) -> Result<std::int64_t> { return std::int64_t{2}; };
  queries.max_active_clusters = [](const OccupancyQuery&) -> Result<std::int64_t> {
    return std::int64_t{66};
  };
  const auto resolved = resolve_plan(*bound, modules_for(*bound), scalars_of(w), queries);
  if (!resolved) {
    require(!resolved.error().rule.empty() && resolved.error().where.file == "launch.json");
    return 0;
  }
  require(resolved->operations.size() <= 512);
  for (const ResolvedOperation& operation : resolved->operations)
    if (const auto* launch = std::get_if<ResolvedLaunch>(&operation))
      for (const Patch& patch : launch->patches)
        require(patch.offset + (std::holds_alternative<std::size_t>(patch.what) ? 128u : 8u) <=
                launch->parameters.size());
  return 0;
}
