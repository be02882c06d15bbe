// What handlers ask of the machine.
#include "emulator/machine.hpp"

#include "emulator/run.hpp"

#include <utility>

namespace ptxbench::emulator {

void Cluster::wake(const WaitKey& key) {
  bool any = false;
  for (const std::unique_ptr<Cta>& cta : ctas) {
    for (Warp& warp : cta->warps) {
      for (Fragment& f : warp.fragments) {
        if (f.wait.kind == WaitKey::Kind::none || !(f.wait == key)) continue;
        f.wait = {};
        warp.ready = any = true;
      }
    }
  }
  if (any) ++progress;
}

std::string_view fault_name(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::out_of_bounds: return "out_of_bounds";
    case FaultKind::misaligned: return "misaligned";
    case FaultKind::undefined_value: return "undefined_value";
    case FaultKind::barrier_misuse: return "barrier_misuse";
    case FaultKind::deadlock: return "deadlock";
    case FaultKind::partial_collective: return "partial_collective";
    case FaultKind::tensor_map: return "tensor_map";
    case FaultKind::descriptor: return "descriptor";
    case FaultKind::shared_limit: return "shared_limit";
    case FaultKind::exit_with_work: return "exit_with_work";
    case FaultKind::trap: return "trap";
    case FaultKind::assertion: return "assertion";
    case FaultKind::illegal_instruction: return "illegal_instruction";
    case FaultKind::step_limit: return "step_limit";
    case FaultKind::memory_limit: return "memory_limit";
    case FaultKind::time_limit: return "time_limit";
    case FaultKind::unsupported: return "unsupported";
  }
  return "unsupported";
}

Site Exec::site(int lane) const {
  return {static_cast<std::uint32_t>(&op - kernel.ops.data()), static_cast<std::int64_t>(cta.linear_id),
          static_cast<std::int32_t>(warp.index), lane};
}

Flow Exec::fault(FaultKind kind, int lane, std::string message) const {
  run.raise({kind, site(lane), std::move(message), {}});
  return Flow::stop;
}

void Exec::remark(bool hazard, std::string_view code, std::string message, int lane) const {
  run.remark(hazard, code, site(lane), std::move(message));
}

bool Exec::converged(Mask members) const {
  if ((members & warp.live & ~mask) == 0) return true;
  fragment.wait = {WaitKey::Kind::converge, static_cast<std::uint16_t>(cta.rank),
                   static_cast<std::uint32_t>(&op - kernel.ops.data())};
  return false;
}

}  // namespace ptxbench::emulator
