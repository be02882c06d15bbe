#include "device/wire.hpp"

#include "core/json.hpp"

namespace ptxbench {
namespace {

// One list of the limits' members, for writing and for reading.
template <class Limits, class Visit>
void each_limit(Limits& limits, Visit visit) {
  visit("sm_count", limits.sm_count);
  visit("smem_optin_bytes", limits.smem_optin_bytes);
  visit("smem_per_sm_bytes", limits.smem_per_sm_bytes);
  visit("smem_reserved_bytes", limits.smem_reserved_bytes);
  visit("regs_per_sm", limits.regs_per_sm);
  visit("regs_per_cta", limits.regs_per_cta);
  visit("l2_bytes", limits.l2_bytes);
  visit("max_threads_per_cta", limits.max_threads_per_cta);
  visit("max_threads_per_sm", limits.max_threads_per_sm);
  visit("max_ctas_per_sm", limits.max_ctas_per_sm);
  visit("max_cluster", limits.max_cluster);
  visit("max_block_x", limits.max_block[0]);
  visit("max_block_y", limits.max_block[1]);
  visit("max_block_z", limits.max_block[2]);
  visit("max_grid_x", limits.max_grid[0]);
  visit("max_grid_y", limits.max_grid[1]);
  visit("max_grid_z", limits.max_grid[2]);
}

Result<std::string> string_of(const json::Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const json::Cursor member, object.require(key));
  return member.as_string();
}

Result<std::int64_t> int_of(const json::Cursor& object, std::string_view key) {
  PTXBENCH_TRY_ASSIGN(const json::Cursor member, object.require(key));
  return member.as_int();
}

}  // namespace

Message to_message(const DeviceInfo& info) {
  json::Writer w;
  w.begin_object().field("id", info.id).field("name", info.name).field("arch", info.arch);
  w.field("emulated", info.emulated).field("limits_name", info.limits.name);
  w.field("compute_major", info.limits.compute_major).field("compute_minor", info.limits.compute_minor);
  w.field("memory_bytes", static_cast<std::int64_t>(info.limits.memory_bytes));
  w.field("max_sm_khz", info.max_sm_khz).field("memory_khz", info.memory_khz).field("memory_bus_bits", info.memory_bus_bits);
  each_limit(info.limits, [&](const char* name, const std::int64_t& value) { w.field(name, value); });
  w.key("versions").begin_object();
  for (const auto& [name, version] : info.versions) w.field(name, version);
  w.end_object().end_object();
  return {"device", std::move(w).str(), {}};
}

Result<DeviceInfo> device_info_from(const Message& message) {
  PTXBENCH_TRY_ASSIGN(const json::Document document, json::parse(message.json, {"device", false, 16}));
  const json::Cursor root(document);
  DeviceInfo info;
  PTXBENCH_TRY_ASSIGN(info.id, string_of(root, "id"));
  PTXBENCH_TRY_ASSIGN(info.name, string_of(root, "name"));
  PTXBENCH_TRY_ASSIGN(info.arch, string_of(root, "arch"));
  PTXBENCH_TRY_ASSIGN(const json::Cursor emulated, root.require("emulated"));
  PTXBENCH_TRY_ASSIGN(info.emulated, emulated.as_bool());
  PTXBENCH_TRY_ASSIGN(info.limits.name, string_of(root, "limits_name"));
  PTXBENCH_TRY_ASSIGN(const std::int64_t major, int_of(root, "compute_major"));
  PTXBENCH_TRY_ASSIGN(const std::int64_t minor, int_of(root, "compute_minor"));
  info.limits.compute_major = static_cast<int>(major);
  info.limits.compute_minor = static_cast<int>(minor);
  PTXBENCH_TRY_ASSIGN(const std::int64_t memory, int_of(root, "memory_bytes"));
  info.limits.memory_bytes = static_cast<std::uint64_t>(memory);
  PTXBENCH_TRY_ASSIGN(info.max_sm_khz, int_of(root, "max_sm_khz"));
  PTXBENCH_TRY_ASSIGN(info.memory_khz, int_of(root, "memory_khz"));
  PTXBENCH_TRY_ASSIGN(info.memory_bus_bits, int_of(root, "memory_bus_bits"));
  Result<void> read;
  each_limit(info.limits, [&](const char* name, std::int64_t& value) {
    if (!read) return;
    Result<std::int64_t> number = int_of(root, name);
    if (number) value = *number;
    else read = std::move(number).error();
  });
  PTXBENCH_TRY(read);
  PTXBENCH_TRY_ASSIGN(const json::Cursor versions, root.require("versions"));
  PTXBENCH_TRY_ASSIGN(const auto members, versions.members());
  for (const auto& [name, value] : members) {
    PTXBENCH_TRY_ASSIGN(std::string version, value.as_string());
    info.versions.emplace_back(name, std::move(version));
  }
  return info;
}

}  // namespace ptxbench
