// What counts executed instructions while something runs: CUPTI on a GPU, a stand-in in tests.
#pragma once

#include <ptxbench/count.hpp>

#include <cupti_result.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ptxbench {

// One SASS instruction as the counter reports it; the sums are over all launches.
struct SassRecord {
  std::string function;
  std::uint32_t cubin_crc = 0;
  std::uint32_t pc_offset = 0;
  std::uint64_t warps = 0, threads = 0;
};

using MaybeUnavailable = std::optional<CountUnavailable>;

// Used once: perhaps warm_up, then prepare, start, finish. Belongs to the device's thread.
class SassCounter {
 public:
  virtual ~SassCounter() = default;
  // What takes long and needs no device. What goes wrong is what `prepare` returns.
  virtual void warm_up() {}
  // Before any code is loaded: so that the counter sees the modules.
  virtual MaybeUnavailable prepare(Device& device) = 0;
  // The machine code of modules that were loaded since `prepare`, in their order, where the counter is shown it.
  virtual std::vector<std::vector<std::uint8_t>> loaded_code() { return {}; }
  // What is launched from here on is counted. Nothing may be queued.
  virtual MaybeUnavailable start() = 0;
  // After all that is to be counted has finished: what was executed. Ends the counting, whatever it returns.
  virtual MaybeUnavailable finish(std::vector<SassRecord>& records) = 0;
  // After a fault or a hang: nothing more is asked of the counter, which might wait for ever.
  virtual void abandon() noexcept = 0;
  // The number that records of this cubin's functions carry, where it can be told.
  virtual std::optional<std::uint32_t> cubin_crc(std::span<const std::uint8_t> cubin) = 0;
  virtual std::string method() const = 0;
  virtual std::vector<std::pair<std::string, std::string>> versions() const = 0;
};

std::unique_ptr<SassCounter> make_cupti_counter(std::string cuda_home);

// What a refusal of CUPTI means for a person. `call`: the function; `text`: CUPTI's name of the result.
CountUnavailable cupti_refusal(CUptiResult result, std::string_view call, std::string_view text);

// run_count with a counter of the caller's.
Result<CountEvidence> run_count_with(Device& device, const CountJob& job, HostCallbacks& callbacks,
                                     SassCounter& counter);

}  // namespace ptxbench
