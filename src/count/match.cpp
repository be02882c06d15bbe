#include "count/match.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace ptxbench {
namespace {

using Kind = CountUnavailable::Kind;
using Group = std::pair<std::string, std::uint32_t>;  // function and cubin

bool has(const CountedModule& module, const std::string& symbol) {
  return std::find(module.symbols.begin(), module.symbols.end(), symbol) != module.symbols.end();
}

// The module that the group's code is from: by its cubin's number where names do not decide. Nothing:
// ambiguous.
std::optional<std::size_t> module_of(const Group& group, const std::vector<CountedModule>& modules,
                                     const std::vector<std::size_t>& named, bool only_group) {
  for (const std::size_t m : named)
    if (modules[m].cubin_crc == group.second) return m;
  if (named.size() == 1 && only_group) return named[0];
  return std::nullopt;
}

}  // namespace

void match_records(const std::vector<SassRecord>& records, const std::vector<CountedModule>& modules,
                   const std::vector<std::pair<std::size_t, std::string>>& launched,
                   CountEvidence& evidence) {
  // What was never executed says nothing, and a function that was not launched may share a kernel's name.
  std::map<Group, std::map<std::uint32_t, CountRecord>> groups;
  std::map<std::string, int> groups_of_name;
  for (const SassRecord& record : records) {
    if (record.warps == 0 && record.threads == 0) continue;
    auto [group, fresh] = groups.try_emplace({record.function, record.cubin_crc});
    if (fresh) ++groups_of_name[record.function];
    CountRecord& sum = group->second[record.pc_offset];
    sum.pc_offset = record.pc_offset;
    sum.warp_executions += record.warps;
    sum.threads_predicated_on += record.threads;
  }
  std::map<std::pair<std::size_t, std::string>, KernelRecords> kernels;
  std::set<std::string> others;
  for (auto& [group, by_pc] : groups) {
    std::vector<std::size_t> named;
    for (std::size_t m = 0; m < modules.size(); ++m)
      if (has(modules[m], group.first)) named.push_back(m);
    if (named.empty()) {
      others.insert(group.first);
      continue;
    }
    const std::optional<std::size_t> module =
        module_of(group, modules, named, groups_of_name[group.first] == 1);
    if (!module) {
      evidence.unavailable = {Kind::unsupported,
                              "more than one loaded function is named \"" + group.first +
                                  "\", and this CUPTI does not tell them apart: give the kernels "
                                  "names of their own"};
      return;
    }
    KernelRecords& kernel = kernels[{*module, group.first}];
    kernel.module = *module;
    kernel.symbol = group.first;
    kernel.cubin_crc = group.second;
    for (const auto& [pc, record] : by_pc) kernel.records.push_back(record);
  }
  for (const auto& launch : launched) {
    if (kernels.find(launch) != kernels.end()) continue;
    std::string seen;
    for (const auto& [group, by_pc] : groups) seen += (seen.empty() ? "" : ", ") + group.first;
    evidence.unavailable = {Kind::driver, "the counter has no record of kernel \"" + launch.second +
                                              "\", which was launched (it has records of " +
                                              (seen.empty() ? "nothing" : seen) + ")"};
    return;
  }
  for (auto& [key, kernel] : kernels) evidence.kernels.push_back(std::move(kernel));
  evidence.other_functions.assign(others.begin(), others.end());
}

}  // namespace ptxbench
