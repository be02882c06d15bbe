// What the decoders and handlers of asynchronous instructions have in common: several memory operands in one
// instruction, checks that no operand was left unwritten, who an operation acts for.
//
// An op of these families holds its register operands first (destinations, then sources, in the order in
// which its decoder names them), then one plain number for each memory operand: the offset behind its base.
#pragma once

#include "emulator/async.hpp"
#include "emulator/decode.hpp"
#include "emulator/memory.hpp"
#include "emulator/run.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace ptxbench::emulator {

// Collects the operands of an op with any number of memory operands. Bit k of Emit::d says that address k is
// wide.
class AddressOperands {
 public:
  AddressOperands(Decoder& d, Emit& e) : d_(d), e_(e) {}
  // [base + offset] as the next source; e.imm is left at 0.
  Result<void> add(const ptx::Operand& operand, ptx::Space space);
  // After all sources: the offsets.
  void finish();

 private:
  Decoder& d_;
  Emit& e_;
  std::vector<Operand> offsets_;
};

// Address number @p k, whose base is operand @p i of the op; offsets begin at operand @p first_offset.
std::uint64_t address_of(const Exec& x, unsigned k, unsigned i, unsigned first_offset, int lane);
// The same as a .shared address.
inline std::uint32_t shared_address_of(const Exec& x, unsigned k, unsigned i, unsigned first_offset,
                                       int lane) {
  return static_cast<std::uint32_t>(address_of(x, k, i, first_offset, lane));
}

// False, with a fault raised, where a lane that executes reads operand @p i without anything ever written to
// it.
bool defined(const Exec& x, unsigned i, const char* what);
// The same for operands [from, to).
bool defined(const Exec& x, unsigned from, unsigned to, const char* what);

inline Agent agent_of(const Exec& x, int lane) { return {x.run, x.grid, x.cluster, x.cta, x.site(lane)}; }
inline Agent agent_of(const AsyncOp& op, Cluster& cluster, Run& run) {
  return {run, *cluster.grid, cluster, *cluster.ctas[op.cta], op.site};
}
// Fills what the queue wants to know of who issued.
void set_issuer(AsyncOp& op, const Exec& x, int lane);

// Generic addresses of shared memory as .shared ones; false where @p address is no address of shared memory.
bool shared_from_generic(std::uint64_t address, std::uint32_t& shared);

}  // namespace ptxbench::emulator
