#include "capi/handles.hpp"

using namespace ptxbench;
using namespace ptxbench::capi;

extern "C" {

ptxbench_status ptxbench_definition_parse(ptxbench_definition** out, const char* json, size_t len, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    PTXBENCH_TRY_ASSIGN(const std::string_view input, text(json, len, "json"));
    PTXBENCH_TRY_ASSIGN(DefinitionPtr definition, parse_definition(input));
    std::string written = to_json(*definition);
    *out = reinterpret_cast<ptxbench_definition*>(new DefinitionImpl{std::move(definition), std::move(written)});
    return {};
  });
}

const char* ptxbench_definition_json(const ptxbench_definition* def, size_t* len) {
  static const std::string kEmpty = "{}";
  return borrow(def != nullptr ? unwrap<DefinitionImpl>(def)->json : kEmpty, len);
}

void ptxbench_definition_free(ptxbench_definition* def) { delete unwrap<DefinitionImpl>(def); }

ptxbench_status ptxbench_workload_parse(ptxbench_workload** out, const ptxbench_definition* def, const char* json,
                                        size_t len, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    PTXBENCH_TRY(required(def, "def"));
    PTXBENCH_TRY_ASSIGN(const std::string_view input, text(json, len, "json"));
    PTXBENCH_TRY_ASSIGN(Workload workload, parse_workload(unwrap<DefinitionImpl>(def)->definition, input));
    *out = reinterpret_cast<ptxbench_workload*>(new WorkloadImpl{std::move(workload)});
    return {};
  });
}

void ptxbench_workload_free(ptxbench_workload* workload) { delete unwrap<WorkloadImpl>(workload); }

ptxbench_status ptxbench_solution_parse(ptxbench_solution** out, const ptxbench_definition* def, const char* json,
                                        size_t len, ptxbench_error** err) {
  return guard(err, [&]() -> Result<void> {
    PTXBENCH_TRY(required(out, "out"));
    *out = nullptr;
    PTXBENCH_TRY_ASSIGN(const std::string_view input, text(json, len, "json"));
    PTXBENCH_TRY_ASSIGN(Solution solution, parse_solution(input));
    if (def != nullptr && solution.definition != unwrap<DefinitionImpl>(def)->definition->name)
      return make_error(ErrorCode::invalid_argument,
                        "the solution is for \"" + solution.definition + "\", the definition is \"" +
                            unwrap<DefinitionImpl>(def)->definition->name + "\"",
                        {{}, "/definition", 0, 0});
    *out = reinterpret_cast<ptxbench_solution*>(
        new SolutionImpl{std::make_shared<const Solution>(std::move(solution))});
    return {};
  });
}

void ptxbench_solution_free(ptxbench_solution* solution) { delete unwrap<SolutionImpl>(solution); }

}  // extern "C"
