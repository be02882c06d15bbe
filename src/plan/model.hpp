// The parsed form of a launch plan and of a bound one: what hides behind LaunchPlan::Impl and
// BoundPlan::Impl.
#pragma once

#include "core/expr.hpp"

#include <ptxbench/plan.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ptxbench {
namespace plan {

using expr::Expression;
using expr::Number;

// Error rules (docs/launch_plan.md has the table).
inline constexpr char kPlanInvalid[] = "plan_invalid";
inline constexpr char kPlanHole[] = "plan_hole";
inline constexpr char kPlanLimit[] = "plan_limit";
inline constexpr char kExpression[] = "expression";
inline constexpr char kUnknownName[] = "unknown_name";
inline constexpr char kLaunchRule[] = "launch_rule";
inline constexpr char kWorkspaceLimit[] = "workspace_limit";
inline constexpr char kTensorMapRule[] = "tensor_map_rule";
inline constexpr char kArgumentMismatch[] = "argument_mismatch";

inline constexpr std::size_t kMaxSteps = 512;
inline constexpr std::size_t kMaxEntries =
    256;  // tensor maps, workspaces, globals, constants, defines, require
inline constexpr std::size_t kMaxArguments = 1024;  // of one kernel, members of structs included
inline constexpr int kMaxStructDepth = 8;
inline constexpr std::size_t kMaxPlanText = std::size_t{1} << 20;

// A name that the plan refers to, with its place.
struct Reference {
  std::string name;
  std::string pointer;
};

struct Constant {
  std::string name;
  Number value;
  std::string pointer;
};

// A macro: an expression, or (where there is none) a token taken as it is.
struct Define {
  std::string name;
  std::string pointer;
  std::optional<Expression> value;
  std::string token;
};

// Fields of `compile` that are there.
struct CompileFields {
  std::optional<std::string> std;
  std::optional<bool> fast_math, fmad, ftz;
  std::optional<int> maxrregcount;
  std::optional<std::string> ptx_version;
  std::optional<std::vector<std::string>> ptxas_options;
};

struct TensorMap {
  std::string name;
  std::string pointer;
  Reference tensor;  // input, output or workspace
  std::optional<DType> dtype;
  std::optional<Expression> offset;
  std::optional<std::vector<Expression>> dims, strides, element_strides;
  std::vector<Expression> box;                               // tiled
  std::vector<Expression> pixel_box_lower, pixel_box_upper;  // im2col
  std::optional<Expression> channels_per_pixel, pixels_per_column;
  bool im2col = false;
  int interleave = 0, swizzle = 0, l2_promotion = 0, oob_fill = 0;  // CUDA's enumerators
};

struct Workspace {
  std::string name;
  std::string pointer;
  DType dtype = DType::uint8;
  std::vector<Expression> shape;
  std::optional<Expression> init;  // nothing: poisoned by the judge
};

enum class BufferKind : std::uint8_t { tensor, workspace };

struct Global {
  std::string symbol;
  std::string pointer;
  std::optional<Reference> source;
  std::vector<Expression> values;  // written as `dtype` from element `offset` on
  DType dtype = DType::float32;
  std::optional<Expression> offset;
  std::optional<Reference> tensor, workspace, map;  // or the address of one, or a map
};

enum class ScalarType : std::uint8_t { i32, u32, i64, u64, f32, f64, bf16, f16, boolean };

struct Argument {
  enum class Kind : std::uint8_t { tensor, workspace, map, scalar, number, null, structure, bytes };
  Kind kind = Kind::null;
  std::string pointer;
  std::string name;                  // tensor, workspace, map, scalar
  std::optional<Expression> offset;  // tensor, workspace: elements
  ScalarType type = ScalarType::i32;
  std::optional<Expression> value;  // number
  std::vector<Argument> members;    // structure
  std::vector<std::uint8_t> bytes;  // bytes
};

struct KernelStep {
  std::string kernel;
  std::string as;  // may be empty
  std::optional<Reference> source;
  std::vector<Expression> grid, block, cluster, preferred_cluster;  // empty where left out; grid never is
  std::optional<Expression> shared_bytes, carveout;
  std::vector<Argument> arguments;
  bool cooperative = false, pdl = false;
  int cluster_policy = 0;  // CUclusterSchedulingPolicy

  const std::string& name() const { return as.empty() ? kernel : as; }
};
struct MemsetStep {
  Reference to;
  std::optional<Expression> value, offset, elements;
};
struct CopyStep {
  Reference from, to;
  std::optional<Expression> from_offset, to_offset, elements;
};

struct Step {
  std::string pointer;
  std::optional<Expression> when, repeat;
  std::variant<KernelStep, MemsetStep, CopyStep> what;
};

using Extent = std::array<std::uint32_t, 3>;

// A kernel step after the first half of binding.
struct BoundStep {
  std::size_t source = 0;       // in BoundPlan::sources
  std::string name_expression;  // empty: `kernel` is the symbol
  std::optional<Extent> block, cluster, preferred_cluster;
  std::uint64_t shared_bytes = 0;
  std::optional<int> carveout;
};
struct BoundGlobal {
  std::size_t source = 0;
  std::string name_expression;  // empty: `symbol` is the symbol
};

}  // namespace plan

struct LaunchPlan::Impl : std::enable_shared_from_this<LaunchPlan::Impl> {
  std::string file;
  std::vector<plan::Constant> constants;
  std::vector<plan::Expression> require;
  std::vector<plan::Define> defines;
  plan::CompileFields compile;
  std::vector<std::pair<plan::Reference, plan::CompileFields>> per_source;
  std::vector<plan::TensorMap> tensor_maps;
  std::vector<plan::Workspace> workspaces;
  std::vector<plan::Global> globals;
  std::vector<plan::Step> steps;

  Location at(std::string pointer) const { return {file, std::move(pointer), 0, 0}; }
  // An error of the candidate at `pointer`.
  Error error(std::string pointer, std::string message, std::string rule) const {
    return make_error(ErrorCode::invalid_argument, std::move(message), at(std::move(pointer)),
                      std::move(rule));
  }
};

struct BoundPlan::Impl {
  std::shared_ptr<const LaunchPlan::Impl> plan;
  Workload workload;
  DeviceLimits limits;
  std::vector<plan::Constant> constants;              // overrides applied
  std::vector<std::optional<plan::BoundStep>> steps;  // by step; nothing for memset and copy
  std::vector<plan::BoundGlobal> globals;
};

}  // namespace ptxbench
