// The emulator as a Device: memory, modules, and a queue of operations that runs when somebody waits for it, so that the
// one who waits sets the deadline.
#pragma once

#include "emulator/modules.hpp"
#include "emulator/report.hpp"

#include <ptxbench/emulator.hpp>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace ptxbench::emulator {

// SMs of a GPU by GPC: a cluster lies within one. The counts are those of an H100/H200 in SXM form (132 SMs: six GPCs of
// 16 and two of 18); another number of SMs makes GPCs of up to 18.
std::vector<int> sms_by_gpc(std::int64_t sm_count);
// How many clusters of @p size CTAs fit where each SM holds @p ctas_per_sm of them.
std::int64_t clusters_that_fit(std::int64_t sm_count, std::int64_t ctas_per_sm, std::uint32_t size);

class Emulator final : public EmulatedDevice {
 public:
  Emulator(const EmulatorOptions& options, DeviceInfo info);
  ~Emulator() override;

  const DeviceInfo& info() const override { return info_; }
  EmulatedDevice* emulator() noexcept override { return this; }

  Result<DeviceBuffer> allocate(std::uint64_t bytes) override;
  void release(DeviceBuffer buffer) noexcept override;
  Result<void> write(std::uint64_t address, std::span<const std::uint8_t> bytes) override;
  Result<void> read(std::uint64_t address, std::span<std::uint8_t> bytes) override;
  Result<void> fill(std::uint64_t address, std::uint64_t pattern, int element_bytes, std::uint64_t elements) override;
  Result<void> poison(std::uint64_t address, std::uint8_t byte, std::uint64_t bytes) override;
  Result<void> copy(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) override;
  void label(const DeviceBuffer& buffer, const MemoryLabel& what) override;
  void* host_view(std::uint64_t address) noexcept override;

  Result<DeviceModule> load(const ModuleImage& image) override;
  void unload(DeviceModule module) noexcept override;
  Result<ModuleInfo> describe(DeviceModule module) override;
  Result<DeviceBuffer> global(DeviceModule module, std::string_view symbol) override;
  DeviceQueries queries(std::vector<DeviceModule> modules) override;

  Result<std::array<std::uint8_t, 128>> encode(const ResolvedTensorMap& map, std::uint64_t base_address) override;
  Result<DeviceOutcome> launch(const DeviceLaunch& launch) override;
  Result<DeviceOutcome> synchronize(std::uint64_t deadline_ns) override;
  std::optional<DeviceFault> loss() const override { return std::nullopt; }

  Result<DeviceEvent> create_event() override;
  Result<void> record(DeviceEvent event) override;
  Result<std::uint64_t> elapsed_ns(DeviceEvent start, DeviceEvent end) override;
  Result<void> close_gate() override;
  Result<void> open_gate() override;
  void* native_stream() noexcept override { return nullptr; }

  Result<void> prepare(DeviceModule module, std::string_view symbol) override;
  void set_schedule(const EmulatorSchedule& schedule) override { schedule_ = schedule; }
  void set_sm_count(int sm_count) override;
  void begin_report() override { report_ = {}; }
  EmulatorReport report() const override { return report_.build(); }

  // Of the launches that follow: whether Memory::reused is to be known, which begins as false. For tests.
  void follow_global(bool follow) {
    settle();
    follows_global_ = follow;
    memory_.forget_reuse();
  }
  bool global_reused() const noexcept { return memory_.reused(); }
  // Whether launches under the schedule eager look for races in shared memory, as they do by default. For benchmarks.
  void find_races(bool find) noexcept { finds_races_ = find; }

 private:
  struct Launch {
    std::shared_ptr<const Kernel> kernel;
    std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
    bool has_cluster = false, cooperative = false, dependent = false;
    std::uint32_t dynamic_shared_bytes = 0;
    std::vector<std::uint8_t> parameters;
    std::uint32_t ctas_per_sm = 1;
    Schedule schedule;
    std::uint32_t sm_count = 1;
  };
  struct Fill {
    std::uint64_t address = 0, pattern = 0, elements = 0;
    int element_bytes = 1;
    bool poison = false;  // the bytes count as never written
  };
  struct Copy {
    std::uint64_t to = 0, from = 0, bytes = 0;
  };
  using Operation = std::variant<Launch, Fill, Copy>;

  Result<LoadedModule*> module_at(DeviceModule module) const;
  Result<std::uint8_t*> at(std::uint64_t address, std::uint64_t bytes, const char* what) const;
  // Why a launch is refused; nothing where it is not.
  std::optional<std::string> refusal(const DeviceLaunch& launch, const KernelInfo& info, const Kernel& kernel,
                                     std::int64_t ctas_per_sm) const;
  Result<void> queue_fill(const Fill& fill);
  void do_fill(const Fill& fill);
  void do_copy(const Copy& copy);
  // @p next_depends: the next operation is a launch that may begin before this one has ended.
  Result<DeviceOutcome> do_launch(const Launch& launch, bool next_depends, std::uint64_t deadline);
  // Runs what is queued until @p deadline (steady clock, ns); after a fault the rest is dropped.
  Result<DeviceOutcome> drain(std::uint64_t deadline);
  // For those who need it empty and have no deadline of their own. A fault is kept for the next synchronize.
  void settle() noexcept;

  const EmulatorOptions options_;
  DeviceInfo info_;
  std::int64_t profile_sm_count_ = 0;
  Memory memory_;
  std::vector<std::unique_ptr<LoadedModule>> modules_;
  std::deque<Operation> queue_;
  DeviceOutcome pending_fault_;
  std::optional<Error> pending_error_;
  EmulatorSchedule schedule_;
  bool follows_global_ = false, finds_races_ = true;
  std::uint64_t launches_ = 0;
  Report report_;
};

}  // namespace ptxbench::emulator
