/// @file
/// Launch plans: the host side of a candidate, as data (`launch.json`; docs/launch_plan.md).
///
/// Binding has two halves. `bind_plan` needs only the workload and the device's limits and says what to
/// compile. `resolve_plan` runs after compiling, where kernels' real parameters and occupancies are known,
/// and gives a list of concrete operations without addresses; whoever runs it patches addresses in.
/// All functions are pure; all types are immutable once made and may be shared between threads.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/trace.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace ptxbench {

/// A number of a plan: integer, float or boolean.
using PlanNumber = std::variant<std::int64_t, double, bool>;

/// What a plan may ask of a device, and the limits that launches are checked against. Filled from a real
/// device or from a profile.
struct DeviceLimits {
  std::string name;                       ///< "NVIDIA H200", or the profile's name
  int compute_major = 0, compute_minor = 0;
  std::int64_t sm_count = 0;
  std::int64_t smem_optin_bytes = 0;      ///< most dynamic + static shared memory of a CTA, opted in
  std::int64_t smem_per_sm_bytes = 0;
  std::int64_t smem_reserved_bytes = 1024; ///< the system's share of each CTA
  std::int64_t regs_per_sm = 0;
  std::int64_t regs_per_cta = 65536;
  std::int64_t l2_bytes = 0;
  std::int64_t max_threads_per_cta = 1024;
  std::int64_t max_threads_per_sm = 2048;
  std::int64_t max_ctas_per_sm = 32;
  std::array<std::int64_t, 3> max_block{1024, 1024, 64};
  std::array<std::int64_t, 3> max_grid{2147483647, 65535, 65535};
  std::int64_t max_cluster = 16;          ///< CTAs, non-portable sizes included
  std::uint64_t memory_bytes = 0;         ///< device memory; bounds workspaces
};

/// Limits of a profile ("h100", "h200", "b200"), from NVIDIA's published numbers. Unknown: not_found, with
/// the known names.
Result<DeviceLimits> device_profile(std::string_view name);
/// The profile that stands for an architecture where there is no device ("sm_90a" -> h200).
Result<DeviceLimits> profile_for_arch(std::string_view arch);

/// A parsed `launch.json`. Parsing is strict: an unknown field is an error with the nearest known one.
class LaunchPlan {
 public:
  struct Impl;
  /// @p file names the text in messages.
  static Result<LaunchPlan> parse(std::string_view json, std::string_view file = "launch.json");
  const Impl& impl() const { return *impl_; }
  /// Names and values of `constants`, in order.
  std::vector<std::pair<std::string, PlanNumber>> constants() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

struct BindOptions {
  DeviceLimits limits;
  /// Constants to override; a name that the plan lacks is an error; the kind (integer, float, bool) is kept.
  std::vector<std::pair<std::string, PlanNumber>> constants;
};

/// How one source is compiled. The fields are those of LAUNCH_PLAN.md's `compile`.
struct SourceCompileOptions {
  std::string std = "c++17";
  bool fast_math = false;
  std::optional<bool> fmad;
  std::optional<bool> ftz;
  std::optional<int> maxrregcount;
  std::optional<std::string> ptx_version;  ///< e.g. "9.0": lowers `.version` of a .ptx source on request
  std::vector<std::string> ptxas_options;
};

/// One source to compile: a module of its own.
struct BoundSource {
  std::string path;                            ///< .cu, .ptx or .cubin
  SourceCompileOptions options;
  std::vector<std::string> name_expressions;   ///< kernels and globals named by C++ expressions
};

/// First half: what can be said before compiling.
struct BoundPlan {
  struct Impl;
  bool applicable = true;
  std::string not_applicable_reason;           ///< the `require` that is false, with its values
  std::vector<BoundSource> sources;            ///< every .cu/.ptx/.cubin of the Solution that a step or global uses
  std::vector<std::pair<std::string, std::string>> defines;  ///< macro name, text; sorted by name
  std::string launch_plan_header;              ///< text of <launch_plan.h>
  std::vector<Finding> findings;               ///< e.g. "override_unused"
  std::shared_ptr<const Impl> impl;
};

/// Binds @p plan to a workload. An error is the candidate's fault (its `rule` names the broken rule and
/// `where.pointer` the place); it becomes a COMPILE_ERROR verdict.
Result<BoundPlan> bind_plan(const LaunchPlan& plan, const Solution& solution, const Workload& workload,
                            const BindOptions& options);

/// What is known of a compiled kernel; from its cubin and, where there is one, its PTX.
struct KernelParameter {
  std::uint32_t offset = 0, size = 0;          ///< bytes in the parameter buffer
  std::optional<bool> read;                    ///< whether any code reads it; nothing = unknown
};
struct KernelInfo {
  std::string symbol;                          ///< mangled name
  std::vector<KernelParameter> parameters;     ///< in order
  std::uint32_t parameter_bytes = 0;           ///< size of the buffer
  std::uint32_t parameter_base = 0;            ///< where the buffer begins in the constant bank: alignment counts from there
  int registers = 0;                           ///< per thread; 0 unknown
  std::uint64_t static_shared_bytes = 0;
  std::optional<std::array<std::uint32_t, 3>> required_block;    ///< .reqntid
  std::optional<std::array<std::uint32_t, 3>> max_block;         ///< .maxntid
  std::optional<std::array<std::uint32_t, 3>> required_cluster;  ///< .reqnctapercluster
  bool explicit_cluster = false;
};
struct GlobalInfo {
  std::string symbol;
  std::uint64_t bytes = 0;
};
struct ModuleInfo {
  std::string source;                          ///< path of the source it came from
  std::vector<KernelInfo> kernels;
  std::vector<GlobalInfo> globals;
  /// name expression -> mangled symbol
  std::vector<std::pair<std::string, std::string>> lowered;
};

/// A kernel with the shape of its launch, for occupancy questions.
struct OccupancyQuery {
  std::size_t module = 0;
  std::string symbol;
  std::array<std::uint32_t, 3> block{1, 1, 1}, cluster{1, 1, 1};
  std::uint64_t dynamic_shared_bytes = 0;
};
/// Answers of the device. Each may fail; both must be set if the plan asks.
struct DeviceQueries {
  std::function<Result<std::int64_t>(const OccupancyQuery&)> occupancy;            ///< CTAs an SM
  std::function<Result<std::int64_t>(const OccupancyQuery&)> max_active_clusters;
};

/// A buffer that a run works on.
struct BufferRef {
  enum class Kind : std::uint8_t { input, output, workspace } kind = Kind::input;
  std::size_t index = 0;                       ///< in Definition::inputs, Definition::outputs, or ResolvedPlan::workspaces
  std::uint64_t byte_offset = 0;
};

/// Arguments of cuTensorMapEncodeTiled / Im2col, checked against the driver's rules; numbers are CUDA's enums.
struct ResolvedTensorMap {
  std::string name;
  BufferRef base;
  bool im2col = false;
  int data_type = 0;                           ///< CUtensorMapDataType
  std::vector<std::uint64_t> dims;             ///< innermost first
  std::vector<std::uint64_t> strides;          ///< bytes, dimensions 1..rank-1
  std::vector<std::uint32_t> box, element_strides;
  std::vector<std::int32_t> pixel_box_lower, pixel_box_upper;  ///< im2col
  std::uint32_t channels_per_pixel = 0, pixels_per_column = 0; ///< im2col
  int interleave = 0, swizzle = 0, l2_promotion = 0, oob_fill = 0;
};

/// A place in a parameter buffer or symbol that receives an address or a tensor map before launch.
struct Patch {
  std::uint32_t offset = 0;
  std::variant<BufferRef, std::size_t> what;   ///< 8-byte address of a buffer, or 128-byte map (index)
};

struct ResolvedLaunch {
  std::size_t step = 0;                        ///< index in the plan's `steps`
  std::string name;                            ///< `as`, else `kernel`
  std::size_t module = 0;
  std::string symbol;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  bool has_cluster = false;
  std::optional<std::array<std::uint32_t, 3>> preferred_cluster;
  std::uint64_t dynamic_shared_bytes = 0;
  bool cooperative = false, pdl = false;
  int cluster_policy = 0;                      ///< CUclusterSchedulingPolicy
  std::optional<int> carveout;                 ///< percent
  std::vector<std::uint8_t> parameters;        ///< whole buffer, addresses and maps zero
  std::vector<Patch> patches;
};
struct ResolvedMemset {
  std::size_t step = 0;
  BufferRef to;
  std::uint64_t elements = 0;
  int element_bytes = 1;
  std::uint64_t pattern = 0;                   ///< low element_bytes bytes
};
struct ResolvedCopy {
  std::size_t step = 0;
  BufferRef from, to;
  std::uint64_t bytes = 0;
};
using ResolvedOperation = std::variant<ResolvedLaunch, ResolvedMemset, ResolvedCopy>;

struct ResolvedWorkspace {
  std::string name;
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  bool initialised = false;                    ///< else the judge poisons it
  int element_bytes = 1;
  std::uint64_t pattern = 0;                   ///< the initial element's bits
};
struct ResolvedGlobal {
  std::size_t module = 0;
  std::string symbol;
  std::uint64_t byte_offset = 0;
  std::vector<std::uint8_t> bytes;
  std::vector<Patch> patches;
};

/// The most operations of one run, after repeats.
inline constexpr std::size_t kMaxOperations = 512;

/// Second half: the run as data. Scalar inputs are already in the parameter buffers.
struct ResolvedPlan {
  std::vector<ResolvedWorkspace> workspaces;
  std::vector<ResolvedTensorMap> maps;
  std::vector<ResolvedGlobal> globals;
  std::vector<ResolvedOperation> operations;   ///< at most kMaxOperations
  std::vector<Finding> findings;
  std::string evidence;                        ///< JSON: what each expression resolved to
};

/// The bytes of all its workspaces together.
std::uint64_t workspace_bytes(const ResolvedPlan& plan) noexcept;

/// Values of the definition's scalar inputs (for {"scalar": N} and expressions), by name.
using ScalarValues = std::vector<std::pair<std::string, PlanNumber>>;

/// Scalars that the workload itself states. A random scalar is the judge's to draw.
ScalarValues scalars_of(const Workload& workload);

/// Resolves a bound plan against compiled modules. As with bind_plan an error is the candidate's fault,
/// unless its code is driver, no_device or internal.
Result<ResolvedPlan> resolve_plan(const BoundPlan& bound, const std::vector<ModuleInfo>& modules,
                                  const ScalarValues& scalars, const DeviceQueries& queries);

}  // namespace ptxbench
