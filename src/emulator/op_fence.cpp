// fence and membar. Warps are interleaved one instruction at a time on one memory, so nothing has to be
// ordered; what fences between proxies would have ordered is remembered, so that a missing one can be told.
#include "emulator/access.hpp"
#include "emulator/map_changes.hpp"
#include "emulator/mbarrier.hpp"

namespace ptxbench::emulator {

namespace {

Flow run_nothing(Exec&) { return Flow::next; }

Flow run_proxy_async(Exec& x) {
  if (x.mask == 0) return Flow::next;
  proxy_fence(x.grid, x.cta, x.warp.index);
  mbarrier_inits_fenced(x.cta);
  return Flow::next;
}

Flow run_wide_fence(Exec& x) {
  if (x.mask != 0) mbarrier_inits_fenced(x.cta);
  return Flow::next;
}

// fence.proxy.tensormap::generic.acquire [addr], 128: the 128 bytes must be there.
Flow run_acquire_map(Exec& x) {
  constexpr std::uint8_t kWide = 8;
  const Operand base = x.operand(0);
  if (address_undefined(x, base)) return Flow::stop;
  std::uint64_t address[kLanes];
  addresses(x, base, (x.op.c & kWide) != 0, address);
  Place place[kLanes];
  if (!resolve_lanes(x, Where::generic, address, 128, 1, Access::read, place)) return Flow::stop;
  for_lanes(x.mask, [&](int lane) {
    const auto i = static_cast<unsigned>(lane);
    if (place[i].kind == Place::Kind::global) x.grid.memory->map_changes().acquire(agent_of(x, lane), place[i].at);
  });
  return Flow::next;
}

Flow run_release_map(Exec& x) {
  if (x.mask != 0) x.grid.memory->map_changes().release(agent_of(x, __builtin_ctz(x.mask)));
  return Flow::next;
}

Result<void> decode_fence(Decoder& d) {
  Modifiers m(d.instruction());
  Emit e;
  e.run = run_nothing;
  e.flags = kNone;
  std::string_view family = "fence";
  std::size_t operands = 0;
  if (m.take("proxy")) {
    constexpr std::uint8_t kWide = 8;
    const bool async = m.take("async");
    const bool async_generic = m.take("async::generic");
    const bool map = m.take("tensormap::generic");
    if (!m.take("alias") && !async && !async_generic && !map)
      return d.unsupported("a proxy that is not known");
    const int sem = m.take_one({"acquire", "release"});
    if (async || async_generic) {
      family = "fence_proxy_async";
      const bool global_only = m.take("global");
      m.take_one({"shared::cta", "shared::cluster"});
      // The acquire form of async::generic orders nothing that this thread wrote before.
      if (!global_only && !(async_generic && sem == 0)) e.run = run_proxy_async;
    } else if (map && sem == 1) {
      e.run = run_release_map;
    } else if (map && sem == 0) {
      operands = 2;
      PTXBENCH_TRY(d.expect_operands(2));
      PTXBENCH_TRY_ASSIGN(const std::int64_t size, d.immediate(1));
      if (size != 128) return d.bad("the size must be 128");
      PTXBENCH_TRY_ASSIGN(const Address a, d.address(e, d.instruction().operands[0], ptx::Space::generic));
      e.c = a.wide ? kWide : 0;
      e.run = run_acquire_map;
    }
  } else {
    e.flags = kStrong;
    if (m.take("mbarrier_init")) e.run = run_wide_fence;
    m.take_one({"sc", "acq_rel", "acquire", "release"});
  }
  m.take_one({"sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
  if (m.take_one({"cta", "cluster", "gpu", "gl", "sys"}) > 0 && e.run == run_nothing) e.run = run_wide_fence;
  PTXBENCH_TRY(m.finish(d));
  PTXBENCH_TRY(d.expect_operands(operands));
  return d.emit(e, family);
}

}  // namespace

void register_fence(InstructionTable& table) {
  table.add("fence", decode_fence);
  table.add("membar", decode_fence);
}

}  // namespace ptxbench::emulator
