// PTX ISA chapter "Special Registers".
#include "ptx/types.hpp"

#include <algorithm>
#include <array>

namespace ptxbench::ptx {
namespace {

constexpr std::array<std::string_view, 8> kVectors{
    "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"};
constexpr std::array<std::string_view, 33> kScalars{"%laneid",
                                                    "%warpid",
                                                    "%nwarpid",
                                                    "%smid",
                                                    "%nsmid",
                                                    "%gridid",
                                                    "%is_explicit_cluster",
                                                    "%cluster_ctarank",
                                                    "%cluster_nctarank",
                                                    "%lanemask_eq",
                                                    "%lanemask_le",
                                                    "%lanemask_lt",
                                                    "%lanemask_ge",
                                                    "%lanemask_gt",
                                                    "%clock",
                                                    "%clock_hi",
                                                    "%clock64",
                                                    "%globaltimer",
                                                    "%globaltimer_lo",
                                                    "%globaltimer_hi",
                                                    "%total_smem_size",
                                                    "%aggr_smem_size",
                                                    "%dynamic_smem_size",
                                                    "%current_graph_exec",
                                                    "%reserved_smem_offset_begin",
                                                    "%reserved_smem_offset_end",
                                                    "%reserved_smem_offset_cap",
                                                    "%reserved_smem_offset_0",
                                                    "%reserved_smem_offset_1",
                                                    "%reserved_smem_offset_2",
                                                    "%reserved_smem_offset_3",
                                                    "%reserved_smem_offset_4",
                                                    "%reserved_smem_offset_5"};

// "%pm3" of 8, "%envreg31" of 32.
bool is_numbered(std::string_view name, std::string_view prefix, unsigned count) noexcept {
  if (name.substr(0, prefix.size()) != prefix) return false;
  const std::string_view number = name.substr(prefix.size());
  if (number.empty() || number.size() > 2 || (number.size() == 2 && number[0] == '0')) return false;
  unsigned value = 0;
  for (const char c : number) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<unsigned>(c - '0');
  }
  return value < count;
}

}  // namespace

bool is_special_vector(std::string_view name) noexcept {
  return std::find(kVectors.begin(), kVectors.end(), name) != kVectors.end();
}

bool is_special_register(std::string_view name) noexcept {
  if (is_special_vector(name) || std::find(kScalars.begin(), kScalars.end(), name) != kScalars.end())
    return true;
  constexpr std::string_view kWide = "_64";
  if (name.size() > kWide.size() && name.substr(name.size() - kWide.size()) == kWide)
    return is_numbered(name.substr(0, name.size() - kWide.size()), "%pm", 8);
  return is_numbered(name, "%pm", 8) || is_numbered(name, "%envreg", 32);
}

}  // namespace ptxbench::ptx
