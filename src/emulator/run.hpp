// One launch being run by one or more host threads: what it found and counted. A Run belongs to one host thread; the
// launch merges those of its threads in the order of clusters, so that the first fault is the same at any number.
#pragma once

#include "emulator/machine.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::emulator {

struct OpCount {
  std::uint64_t warps = 0, threads = 0;  // executions; threads whose guard was on
};

class Run {
 public:
  explicit Run(const Kernel& kernel) : counts(kernel.info.size()), kernel_(&kernel) {}
  std::vector<OpCount> counts;            // by Kernel::info
  std::optional<Fault> fault;             // the first
  std::vector<Remark> remarks;
  std::string output;                     // printf, at most kOutputLimit bytes
  bool output_cut = false;
  std::uint64_t tma_load_bytes = 0, tma_store_bytes = 0, bulk_bytes = 0;
  std::uint64_t steps = 0;
  std::uint32_t shared_high_water = 0;    // bytes of the window that were touched
  static constexpr std::size_t kOutputLimit = 64 << 10;

  // The first fault stands. One about a value never written is told where such values were first read.
  void raise(Fault f);
  bool failed() const { return fault.has_value(); }
  void remark(bool hazard, std::string_view code, const Site& site, std::string message);
  void print(std::string_view text);
  // An instruction read memory that was never written; @p where() says which. Kept of a cluster's first few instructions
  // that did.
  template <class F>
  void read_undefined(const Site& site, F&& where) {
    if (keeps(undefined_reads_, site)) undefined_reads_.push_back({site, where()});
  }
  void read_undefined(const Site& site) {
    read_undefined(site, [] { return std::string(); });
  }
  // One stored a register that was never written, or depends on one, to shared memory.
  void stored_undefined(const Site& site) {
    if (keeps(undefined_stores_, site)) undefined_stores_.push_back({site, {}});
  }
  void forget_undefined_reads() {
    undefined_reads_.clear();
    undefined_stores_.clear();
  }

 private:
  static constexpr std::size_t kReadsKept = 8;
  struct Undefined {
    Site site;
    std::string where;
  };
  bool keeps(const std::vector<Undefined>& list, const Site& site) const;
  void tell(const char* title, const std::vector<Undefined>& list);
  const Kernel* kernel_;
  std::vector<Undefined> undefined_reads_, undefined_stores_;  // one an instruction
};

}  // namespace ptxbench::emulator
