// Bytes that executed instructions moved: by TMA, by bulk copies, and by spills.
#pragma once

#include <ptxbench/count.hpp>
#include <ptxbench/sass.hpp>
#include <ptxbench/trace.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace ptxbench {

// How often an instruction of the uniform datapath, which acts once for a warp, did so. Empty: its guard was
// off at times and several threads were active at others, so that the two counts do not tell.
std::optional<std::uint64_t> uniform_executions(const CountRecord& record, bool guarded);

class ByteTally {
 public:
  // A copy that was executed by @p record's count; @p where names the instruction. @p box: of its tensor map.
  void add(const std::string& where, const sass::BulkAccess& access, const CountRecord& record,
           std::optional<std::uint64_t> box);
  // A load or store of local memory. @p spills: whether ptxas reported spills of its kernel; empty: nobody
  // knows.
  void add_local(const std::string& kernel, std::uint32_t bytes, const CountRecord& record,
                 std::optional<bool> spills);
  // Fills the block's bytes, and the three counts of copies. Its state is measured.
  void fill(std::optional<std::uint64_t> task_bytes, CountsBlock& block) const;

 private:
  std::uint64_t load_ = 0, store_ = 0, bulk_ = 0, spill_ = 0;
  std::string load_unknown_, store_unknown_, bulk_unknown_, spill_unknown_;  // why
};

// bytes.task, and the ratio to it, from the counts of copies that the block holds.
void fill_byte_ratio(std::optional<std::uint64_t> task_bytes, CountsBlock& block);

}  // namespace ptxbench
