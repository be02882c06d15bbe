// Special registers: their names, and the op that reads one into a register.
#include "emulator/special.hpp"

#include "emulator/control.hpp"
#include "emulator/decode.hpp"
#include "emulator/memory.hpp"

#include <bit>
#include <cstring>

namespace ptxbench::emulator {
namespace {

struct Entry {
  std::string_view name;
  Special special;
  unsigned bits;
};
constexpr Entry kEntries[] = {
    {"%tid.x", Special::tid_x, 32}, {"%tid.y", Special::tid_y, 32}, {"%tid.z", Special::tid_z, 32},
    {"%ntid.x", Special::ntid_x, 32}, {"%ntid.y", Special::ntid_y, 32}, {"%ntid.z", Special::ntid_z, 32},
    {"%ctaid.x", Special::ctaid_x, 32}, {"%ctaid.y", Special::ctaid_y, 32}, {"%ctaid.z", Special::ctaid_z, 32},
    {"%nctaid.x", Special::nctaid_x, 32}, {"%nctaid.y", Special::nctaid_y, 32}, {"%nctaid.z", Special::nctaid_z, 32},
    {"%laneid", Special::laneid, 32}, {"%warpid", Special::warpid, 32}, {"%nwarpid", Special::nwarpid, 32},
    {"%smid", Special::smid, 32}, {"%nsmid", Special::nsmid, 32}, {"%gridid", Special::gridid, 64},
    {"%clusterid.x", Special::clusterid_x, 32}, {"%clusterid.y", Special::clusterid_y, 32},
    {"%clusterid.z", Special::clusterid_z, 32}, {"%nclusterid.x", Special::nclusterid_x, 32},
    {"%nclusterid.y", Special::nclusterid_y, 32}, {"%nclusterid.z", Special::nclusterid_z, 32},
    {"%cluster_ctaid.x", Special::cluster_ctaid_x, 32}, {"%cluster_ctaid.y", Special::cluster_ctaid_y, 32},
    {"%cluster_ctaid.z", Special::cluster_ctaid_z, 32}, {"%cluster_nctaid.x", Special::cluster_nctaid_x, 32},
    {"%cluster_nctaid.y", Special::cluster_nctaid_y, 32}, {"%cluster_nctaid.z", Special::cluster_nctaid_z, 32},
    {"%cluster_ctarank", Special::cluster_ctarank, 32}, {"%cluster_nctarank", Special::cluster_nctarank, 32},
    {"%is_explicit_cluster", Special::is_explicit_cluster, 1},
    {"%lanemask_eq", Special::lanemask_eq, 32}, {"%lanemask_le", Special::lanemask_le, 32},
    {"%lanemask_lt", Special::lanemask_lt, 32}, {"%lanemask_ge", Special::lanemask_ge, 32},
    {"%lanemask_gt", Special::lanemask_gt, 32},
    {"%clock", Special::clock, 32}, {"%clock_hi", Special::clock_hi, 32}, {"%clock64", Special::clock64, 64},
    {"%globaltimer", Special::globaltimer, 64}, {"%globaltimer_lo", Special::globaltimer_lo, 32},
    {"%globaltimer_hi", Special::globaltimer_hi, 32},
    {"%envreg1", Special::envreg1, 32}, {"%envreg2", Special::envreg2, 32},
    {"%dynamic_smem_size", Special::dynamic_smem_size, 32}, {"%total_smem_size", Special::total_smem_size, 32},
    {"%aggr_smem_size", Special::aggr_smem_size, 32},
    {"%reserved_smem_offset_begin", Special::reserved_smem_offset_begin, 32},
    {"%reserved_smem_offset_cap", Special::reserved_smem_offset_cap, 32},
    {"%reserved_smem_offset_end", Special::reserved_smem_offset_end, 32},
};

bool numbered(std::string_view name, std::string_view prefix, std::string_view suffix, unsigned count) {
  if (name.substr(0, prefix.size()) != prefix) return false;
  name.remove_prefix(prefix.size());
  if (name.size() < suffix.size() || name.substr(name.size() - suffix.size()) != suffix) return false;
  name.remove_suffix(suffix.size());
  if (name.empty() || name.size() > 2) return false;
  unsigned value = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value < count;
}

// Shared memory as the launch sizes it, in the driver's granularity.
constexpr std::uint32_t kSharedGranularity = 128;
std::uint32_t smem_size(std::uint32_t bytes) {
  return (bytes + kSharedGranularity - 1) / kSharedGranularity * kSharedGranularity;
}

// What is the same in all lanes.
std::uint64_t uniform_value(const Exec& x, Special special) {
  const Grid& g = x.grid;
  const auto clusters = [&](unsigned d) { return g.dim[d] / g.cluster_dim[d]; };
  const auto within = [&](unsigned d) { return x.cta.id[d] % g.cluster_dim[d]; };
  switch (special) {
    case Special::ntid_x: return g.block[0];
    case Special::ntid_y: return g.block[1];
    case Special::ntid_z: return g.block[2];
    case Special::ctaid_x: return x.cta.id[0];
    case Special::ctaid_y: return x.cta.id[1];
    case Special::ctaid_z: return x.cta.id[2];
    case Special::nctaid_x: return g.dim[0];
    case Special::nctaid_y: return g.dim[1];
    case Special::nctaid_z: return g.dim[2];
    case Special::warpid: return x.warp.index;
    case Special::nwarpid: return 64;
    case Special::smid: return x.cta.sm;
    case Special::nsmid: return g.sm_count;
    case Special::gridid: return g.launch_index;
    case Special::clusterid_x: return x.cluster.id[0];
    case Special::clusterid_y: return x.cluster.id[1];
    case Special::clusterid_z: return x.cluster.id[2];
    case Special::nclusterid_x: return clusters(0);
    case Special::nclusterid_y: return clusters(1);
    case Special::nclusterid_z: return clusters(2);
    case Special::cluster_ctaid_x: return within(0);
    case Special::cluster_ctaid_y: return within(1);
    case Special::cluster_ctaid_z: return within(2);
    case Special::cluster_nctaid_x: return g.cluster_dim[0];
    case Special::cluster_nctaid_y: return g.cluster_dim[1];
    case Special::cluster_nctaid_z: return g.cluster_dim[2];
    case Special::cluster_ctarank: return x.cta.rank;
    case Special::cluster_nctarank: return std::uint64_t{g.cluster_dim[0]} * g.cluster_dim[1] * g.cluster_dim[2];
    case Special::is_explicit_cluster: return g.has_cluster;
    // One instruction of the cluster is one cycle, and about half a nanosecond.
    case Special::clock: return x.cluster.clock & 0xffff'ffff;
    case Special::clock_hi: return x.cluster.clock >> 32;
    case Special::clock64: return x.cluster.clock;
    case Special::globaltimer: return x.cluster.clock / 2;
    case Special::globaltimer_lo: return x.cluster.clock / 2 & 0xffff'ffff;
    case Special::globaltimer_hi: return x.cluster.clock / 2 >> 32;
    case Special::envreg1: return g.cooperative_workspace >> 32;
    case Special::envreg2: return g.cooperative_workspace & 0xffff'ffff;
    case Special::dynamic_smem_size: return g.dynamic_shared_bytes;
    case Special::total_smem_size:
      return smem_size(x.kernel.static_shared_bytes + g.dynamic_shared_bytes);
    case Special::aggr_smem_size: return smem_size(g.shared_bytes);
    case Special::reserved_smem_offset_begin: return 0;
    case Special::reserved_smem_offset_cap:
    case Special::reserved_smem_offset_end: return kSystemShared;
    default: return 0;
  }
}

bool by_lane(Special special) {
  switch (special) {
    case Special::tid_x:
    case Special::tid_y:
    case Special::tid_z:
    case Special::laneid:
    case Special::lanemask_eq:
    case Special::lanemask_le:
    case Special::lanemask_lt:
    case Special::lanemask_ge:
    case Special::lanemask_gt: return true;
    default: return false;
  }
}

std::uint32_t lane_value(const Exec& x, Special special, unsigned lane) {
  const std::uint32_t thread = x.warp.index * kLanes + lane;
  switch (special) {
    case Special::tid_x: return thread % x.grid.block[0];
    case Special::tid_y: return thread / x.grid.block[0] % x.grid.block[1];
    case Special::tid_z: return thread / (x.grid.block[0] * x.grid.block[1]);
    case Special::laneid: return lane;
    case Special::lanemask_eq: return 1u << lane;
    case Special::lanemask_le: return (2u << lane) - 1;
    case Special::lanemask_lt: return (1u << lane) - 1;
    case Special::lanemask_ge: return ~((1u << lane) - 1);
    case Special::lanemask_gt: return ~((2u << lane) - 1);
    default: return 0;
  }
}

}  // namespace

std::optional<SpecialInfo> special_named(std::string_view name) noexcept {
  for (const Entry& e : kEntries)
    if (e.name == name) return SpecialInfo{e.special, e.bits};
  if (numbered(name, "%envreg", "", 32) || numbered(name, "%pm", "", 8)) return SpecialInfo{Special::zero, 32};
  if (numbered(name, "%pm", "_64", 8)) return SpecialInfo{Special::zero64, 64};
  return std::nullopt;
}

Flow op_read_special(Exec& x) {
  const auto special = static_cast<Special>(x.op.imm);
  if (by_lane(special)) {
    const auto write = [&](auto* d) {
      using T = std::remove_pointer_t<decltype(d)>;
      write_lanes(d, x.mask, [&](unsigned i) { return static_cast<T>(lane_value(x, special, i)); });
    };
    if (x.op.a == 64) write(x.dst64(0));
    else write(x.dst(0));
    if (x.op.a < 32) for_lanes(x.mask, [&](int i) { x.dst(0)[i] &= (1u << x.op.a) - 1; });
    return Flow::next;
  }
  std::uint64_t value = uniform_value(x, special);
  if (x.op.a < 64) value &= (std::uint64_t{1} << x.op.a) - 1;
  if (x.op.a == 64) write_lanes(x.dst64(0), x.mask, [&](unsigned) { return value; });
  else write_lanes(x.dst(0), x.mask, [&](unsigned) { return static_cast<std::uint32_t>(value); });
  return Flow::next;
}

Flow op_read_special_pred(Exec& x) {
  x.set_pred(0, uniform_value(x, static_cast<Special>(x.op.imm)) != 0 ? ~Mask{0} : 0);
  return Flow::next;
}

Flow op_shared_address(Exec& x) {
  const std::uint64_t value = (static_cast<std::uint64_t>(x.op.imm) | std::uint64_t{x.cta.rank} << 24) +
                              (x.op.b != 0 ? kSharedWindow : 0);
  if (x.op.a == 64) write_lanes(x.dst64(0), x.mask, [&](unsigned) { return value; });
  else write_lanes(x.dst(0), x.mask, [&](unsigned) { return static_cast<std::uint32_t>(value); });
  return Flow::next;
}

Flow op_parameter_address(Exec& x) {
  const std::uint64_t value = x.grid.parameters + static_cast<std::uint64_t>(x.op.imm);
  write_lanes(x.dst64(0), x.mask, [&](unsigned) { return value; });
  return Flow::next;
}

// They are operands, no instructions.
void register_special(InstructionTable&) {}

}  // namespace ptxbench::emulator
