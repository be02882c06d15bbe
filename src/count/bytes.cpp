#include "count/bytes.hpp"

#include "sass/opcode_table.hpp"

namespace ptxbench {

std::optional<std::uint64_t> uniform_executions(const CountRecord& record, bool guarded) {
  if (!guarded) return record.warp_executions;
  if (record.threads_predicated_on <= record.warp_executions) return record.threads_predicated_on;
  return std::nullopt;
}

void ByteTally::add(const std::string& where, const sass::BulkAccess& access, const CountRecord& record,
                    std::optional<std::uint64_t> box) {
  using Direction = sass::BulkAccess::Direction;
  std::string* unknown = &bulk_unknown_;
  std::uint64_t* sum = &bulk_;
  if (access.tensor) {
    const bool load = access.direction == Direction::load;
    unknown = load ? &load_unknown_ : &store_unknown_;
    sum = load ? &load_ : &store_;
  }
  if (record.warp_executions == 0 || !unknown->empty()) return;
  const std::optional<std::uint64_t> bytes = access.tensor ? box : std::optional<std::uint64_t>(access.bytes);
  const std::optional<std::uint64_t> executions = uniform_executions(record, access.guarded);
  if (access.tensor && !access.tiled)
    *unknown = where + " copies no whole box (im2col, gather or scatter)";
  else if (access.tensor && !access.map_offset)
    *unknown = "which tensor map " + where + " uses is not to be seen in the code";
  else if (!access.tensor && !access.bytes)
    *unknown = "the size that " + where + " copies is not a constant";
  else if (!bytes)
    *unknown = "the launch plan has no single tensor map with a box where " + where + " takes its map from";
  else if (!executions)
    *unknown = "how often the guard of " + where + " was on is not known";
  else
    *sum += *executions * *bytes;
}

void ByteTally::add_local(const std::string& kernel, std::uint32_t bytes, const CountRecord& record,
                          std::optional<bool> spills) {
  if (!spills && spill_unknown_.empty())
    spill_unknown_ = kernel + " accesses local memory, and whether it spills is not known";
  if (!spills.value_or(false)) return;
  if (bytes == 0 && spill_unknown_.empty())
    spill_unknown_ = kernel + " has an access to local memory whose width is not known";
  spill_ += record.threads_predicated_on * bytes;
}

void ByteTally::fill(std::optional<std::uint64_t> task_bytes, CountsBlock& block) const {
  block.bytes = {};
  if (load_unknown_.empty()) block.tma_load_bytes = load_;
  if (store_unknown_.empty()) block.tma_store_bytes = store_;
  block.bytes.tma_reason = load_unknown_.empty() ? store_unknown_ : load_unknown_;
  if (bulk_unknown_.empty()) block.bulk_copy_bytes = bulk_;
  block.bytes.bulk_copy_reason = bulk_unknown_;
  if (spill_unknown_.empty()) block.bytes.spill = spill_;
  block.bytes.spill_reason = spill_unknown_;
  fill_byte_ratio(task_bytes, block);
}

void fill_byte_ratio(std::optional<std::uint64_t> task_bytes, CountsBlock& block) {
  BytesBlock& bytes = block.bytes;
  bytes.task = task_bytes;
  if (!block.tma_load_bytes || !block.tma_store_bytes)
    bytes.tma_ratio_reason = bytes.tma_reason;
  else if (!task_bytes || *task_bytes == 0)
    bytes.tma_ratio_reason = "how many bytes this task needs is not known";
  else
    bytes.tma_ratio =
        (static_cast<double>(*block.tma_load_bytes) + static_cast<double>(*block.tma_store_bytes)) /
        static_cast<double>(*task_bytes);
}

}  // namespace ptxbench
