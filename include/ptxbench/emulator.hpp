/// @file
/// The emulator: a Device on the CPU that runs the PTX of Hopper kernels (sm_90a) exactly, explores when asynchronous
/// operations complete, and says why a kernel is wrong or hangs. For correctness and counts, never for speed.
///
/// It reads and runs candidate code: the library opens it only inside a device worker, unless the host asks for it here.
#pragma once

#include <ptxbench/core.hpp>
#include <ptxbench/device.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxbench {

/// When asynchronous operations complete, and the order in which ready warps run.
struct EmulatorSchedule {
  enum class Mode : std::uint8_t {
    eager,   ///< at once; warps in turn
    lazy,    ///< only when no warp can run any more
    random   ///< both drawn from `seed`
  } mode = Mode::eager;
  std::uint64_t seed = 0;
};
/// "eager", "lazy", "random:17"
std::string schedule_name(const EmulatorSchedule& schedule);

/// How exact what ran is.
enum class EmulatorFidelity : std::uint8_t {
  exact,       ///< every executed instruction gives the card's bits
  ptxas,       ///< exact as the PTX stands, but ptxas may fuse or fold some of it to other bits
  unmeasured,  ///< some instructions follow a rule that was measured on their kin only
  bounded      ///< some are only within a stated error
};
std::string_view fidelity_name(EmulatorFidelity fidelity) noexcept;

/// Executions of one PTX instruction, over all launches since the report was begun.
struct EmulatedInstruction {
  std::string kernel;                ///< symbol
  std::string text;                  ///< "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
  std::string family;                ///< the counter's
  std::uint32_t ptx_line = 0;
  std::string source;                ///< "gemm.cu:120"; empty where unknown
  std::uint64_t warps = 0;           ///< executions
  std::uint64_t threads = 0;         ///< threads whose guard was on
  bool timing_dependent = false;     ///< in a loop that waits
  EmulatorFidelity fidelity = EmulatorFidelity::exact;
};

/// A fault, a hazard or a note.
struct EmulatorFinding {
  enum class Grade : std::uint8_t { fault, hazard, note } grade = Grade::fault;
  std::string code;                  ///< "out_of_bounds", "deadlock", "missing_proxy_fence", ...
  std::string message;               ///< what happened, the values, the rule
  std::string detail;                ///< several lines, may be empty: in a deadlock who waits for what
  std::string kernel, instruction;   ///< symbol; PTX text
  std::uint32_t ptx_line = 0;
  std::string source;                ///< CUDA line
  std::int64_t cta = -1;             ///< linear index; -1 not known
  std::int32_t warp = -1, lane = -1;
  std::uint64_t times = 1;
};

struct EmulatorReport {
  std::vector<EmulatedInstruction> instructions;  ///< executed ones, by kernel and PTX line
  std::vector<EmulatorFinding> findings;          ///< at most one fault, first
  EmulatorFidelity fidelity = EmulatorFidelity::exact;  ///< the worst of what was executed
  std::vector<std::string> inexact;               ///< instructions that are not exact, with the reason
  std::uint64_t tma_load_bytes = 0, tma_store_bytes = 0, bulk_copy_bytes = 0;
  std::uint64_t warp_instructions = 0;
  std::string printf_output;                      ///< at most 64 KiB
  bool asynchronous = false;                      ///< a kernel with asynchronous operations ran
  bool synchronised = false;                      ///< a kernel ran whose warps wait for each other
};

struct EmulatorOptions {
  std::string profile = "h200";       ///< a device profile of capability 9.0: "h200", "h100"
  std::optional<int> sm_count;        ///< overrides the profile's
  std::uint64_t memory_bytes = std::uint64_t{8} << 30;  ///< of device memory; beyond: ErrorCode::no_memory
  std::uint64_t step_limit = 0;       ///< warp instructions a launch; 0: none
  std::uint32_t threads = 0;          ///< host threads; 0: as many as the machine has
};

/// What only an emulator has. Like any Device it belongs to one thread at a time.
class EmulatedDevice : public Device {
 public:
  /// Of the launches that follow.
  virtual void set_schedule(const EmulatorSchedule& schedule) = 0;
  /// SMs of the launches and questions that follow; 0: the profile's. `info().limits` follows.
  virtual void set_sm_count(int sm_count) = 0;
  /// Decodes a kernel that will be launched. What the emulator does not know is ErrorCode::unsupported, with each
  /// instruction, its PTX line and its CUDA line; a kernel that is not there, ErrorCode::not_found.
  virtual Result<void> prepare(DeviceModule module, std::string_view symbol) = 0;
  /// Begins a new report.
  virtual void begin_report() = 0;
  virtual EmulatorReport report() const = 0;
};

/// Whether @p device names an emulator: "emulator", "emulator:h200", "emulator:h100?sm_count=2".
bool is_emulator_name(std::string_view device) noexcept;
/// Reads such a name: profile (default h200), and after `?` options joined by `&`: sm_count (1 to 1024), memory_mib,
/// step_limit, threads. What it does not know is ErrorCode::invalid_argument.
Result<EmulatorOptions> parse_emulator_name(std::string_view device);

/// The profiles that it can be: "h200", "h100".
std::span<const std::string_view> emulator_profiles() noexcept;

/// Opens an emulator; `info().id` is "emulator:h200", with each option that is not the default
/// ("emulator:h200?sm_count=2"). An unknown profile, or one of another capability than 9.0, is ErrorCode::not_found or
/// unsupported.
Result<std::unique_ptr<EmulatedDevice>> open_emulator_device(const EmulatorOptions& options = {});

}  // namespace ptxbench
