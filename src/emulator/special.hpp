// Special registers by name.
#pragma once

#include "ptx/module.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptxbench::emulator {

enum class Special : std::uint8_t {
  tid_x, tid_y, tid_z, ntid_x, ntid_y, ntid_z, ctaid_x, ctaid_y, ctaid_z, nctaid_x, nctaid_y, nctaid_z,
  laneid, warpid, nwarpid, smid, nsmid, gridid,
  clusterid_x, clusterid_y, clusterid_z, nclusterid_x, nclusterid_y, nclusterid_z,
  cluster_ctaid_x, cluster_ctaid_y, cluster_ctaid_z, cluster_nctaid_x, cluster_nctaid_y, cluster_nctaid_z,
  cluster_ctarank, cluster_nctarank, is_explicit_cluster,
  lanemask_eq, lanemask_le, lanemask_lt, lanemask_ge, lanemask_gt,
  clock, clock_hi, clock64, globaltimer, globaltimer_lo, globaltimer_hi,
  dynamic_smem_size, total_smem_size, aggr_smem_size, reserved_smem_offset_begin, reserved_smem_offset_cap,
  reserved_smem_offset_end, envreg1, envreg2, zero, zero64
};

struct SpecialInfo {
  Special special = Special::zero;
  unsigned bits = 32;  // 1: a predicate
};
// "%tid.x"; nothing where there is no such register.
std::optional<SpecialInfo> special_named(std::string_view name) noexcept;

}  // namespace ptxbench::emulator
