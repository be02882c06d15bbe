// Programmatic dependent launch: what the launch before wrote may be read only behind griddepcontrol.wait.
#include "emulator/memory.hpp"
#include "emulator/run.hpp"
#include "emulator/vector_clocks.hpp"

namespace ptxbench::emulator {

void Memory::watch(Agent& agent, std::uint64_t address, std::uint64_t bytes, Access access) {
  if (agent.grid.follows_global) follow(address, bytes, access);
  if (agent.grid.remembers_writes && access != Access::read) remember_write(address, bytes);
  if (!agent.grid.dependent || access == Access::write || !written_before(address, bytes)) return;
  const VectorClocks* clocks = agent.cluster.clocks.get();
  if (clocks == nullptr || agent.site.warp < 0 ||
      clocks->known_of_any(agent.cta.rank, static_cast<std::uint32_t>(agent.site.warp), VectorClocks::kGrid,
                           1))
    return;
  agent.run.remark(
      true, "pdl_unordered_read", agent.site,
      "reads " + describe(address) +
          ", which the launch before has written, without griddepcontrol.wait before it (in this thread, or "
          "in "
          "one that it has synchronised with): a launch with programmatic dependent launch may begin before "
          "the one before has ended");
}

}  // namespace ptxbench::emulator
