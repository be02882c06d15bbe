// Devices by their published numbers.
//
// Sources: CUDA C++ Programming Guide, "Compute Capabilities", table "Technical Specifications per Compute
// Capability" (threads, CTAs, registers, shared memory: 228 KB an SM and 227 KB a CTA for 9.0 and 10.0; grid
// and block limits); NVIDIA Hopper Tuning Guide and Blackwell Tuning Guide (clusters of 8 are portable, 16
// with an opt-in); NVIDIA H100 Tensor Core GPU Architecture white paper (SXM5: 132 SMs, 50 MB of L2, 80 GB)
// and NVIDIA H200 data sheet (141 GB), NVIDIA HGX B200 data sheet (180 GB a GPU); what cuDeviceGetAttribute
// says of an H200 (132 SMs, 60 MiB of L2) and of a B200 (148 SMs, 126.5 MiB of L2; github.com/pytorch/ao pull
// 4002).
#include <ptxbench/plan.hpp>

#include <array>

namespace ptxbench {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::uint64_t kGB = 1'000'000'000;

struct Profile {
  std::string_view name;
  int major;
  std::int64_t sm_count, l2_bytes;
  std::uint64_t memory_bytes;
};
constexpr std::array<Profile, 3> kProfiles{{
    {"h100", 9, 132, 50 * kMiB, 80 * kGB},
    {"h200", 9, 132, 60 * kMiB, 141 * kGB},
    {"b200", 10, 148, 253 * kMiB / 2, 180 * kGB},
}};

}  // namespace

Result<DeviceLimits> device_profile(std::string_view name) {
  for (const Profile& profile : kProfiles) {
    if (profile.name != name) continue;
    DeviceLimits out;  // the defaults are those that both compute capabilities share
    out.name = std::string(profile.name);
    out.compute_major = profile.major;
    out.sm_count = profile.sm_count;
    out.smem_optin_bytes = 227 * kKiB;
    out.smem_per_sm_bytes = 228 * kKiB;
    out.regs_per_sm = 65536;
    out.l2_bytes = profile.l2_bytes;
    out.memory_bytes = profile.memory_bytes;
    return out;
  }
  return make_error(ErrorCode::not_found, "no device profile is named \"" + std::string(name) +
                                              "\"; there are h100, h200 and b200");
}

Result<DeviceLimits> profile_for_arch(std::string_view arch) {
  if (arch == "sm_90a" || arch == "sm_90") return device_profile("h200");
  if (arch == "sm_100a" || arch == "sm_100f" || arch == "sm_100") return device_profile("b200");
  return make_error(ErrorCode::not_found, "no device profile stands for \"" + std::string(arch) +
                                              "\"; there are sm_90a and sm_100a");
}

}  // namespace ptxbench
