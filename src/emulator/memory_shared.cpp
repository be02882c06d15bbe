// Shared and local memory, and what is remembered of shared memory beside its bytes.
#include "emulator/mbarrier.hpp"
#include "emulator/memory.hpp"
#include "emulator/overwrites.hpp"
#include "emulator/run.hpp"
#include "emulator/text.hpp"

#include <algorithm>

namespace ptxbench::emulator {

namespace {
std::string_view does(Access access) {
  return access == Access::read ? "reads " : access == Access::write ? "writes " : "updates ";
}
// ", in `tile` + 16": the variable of the kernel that @p address of @p space lies in.
std::string variable_text(const Grid& grid, ptx::Space space, std::uint64_t address) {
  for (const Placed& p : grid.kernel->placed) {
    if (p.space == space && address - p.address < p.bytes) {
      return ", in `" + p.name + "` + " + std::to_string(address - p.address);
    }
  }
  return {};
}
constexpr std::uint64_t kNoWriter = 0;
}  // namespace

std::uint8_t* Memory::shared(Agent& agent, std::uint32_t address, std::uint32_t bytes, std::uint32_t align,
                             Access access, Proxy proxy, bool own, Cta*& where, std::uint32_t& offset) {
  const std::uint32_t rank = address >> 24;
  offset = address & 0xffffff;
  const auto raise = [&](FaultKind kind, std::string what) -> std::uint8_t* {
    agent.run.raise(Fault{kind,
                          agent.site,
                          std::string(does(access)) + bytes_text(bytes) + " at shared address " +
                              hex(address) + std::move(what),
                          {}});
    return nullptr;
  };
  where = &agent.cta;
  if (rank != agent.cta.rank && !(own && rank == 0)) {
    if (rank >= agent.cluster.ctas.size()) {
      return raise(FaultKind::out_of_bounds, ": bits 24 and up name CTA " + std::to_string(rank) +
                                                 " of a cluster of " +
                                                 std::to_string(agent.cluster.ctas.size()));
    }
    if (own) {
      return raise(FaultKind::out_of_bounds,
                   ", which lies in CTA " + std::to_string(rank) +
                       " of the cluster: .shared::cta reaches only its own CTA (rank " +
                       std::to_string(agent.cta.rank) + ")");
    }
    where = agent.cluster.ctas[rank].get();
    if (where->done()) {
      return raise(FaultKind::exit_with_work,
                   " of CTA " + std::to_string(rank) +
                       " of the cluster, which has exited: a CTA must stay until its "
                       "peers are done with its shared memory");
    }
  }
  if (align > 1 && (offset & (align - 1)) != 0) {
    return raise(FaultKind::misaligned, ", which is no multiple of " + std::to_string(align) +
                                            variable_text(agent.grid, ptx::Space::shared, offset));
  }
  const auto window = static_cast<std::uint32_t>(where->shared.size());
  if (offset < kSystemShared) {
    return raise(FaultKind::out_of_bounds, ": the first " + std::to_string(kSystemShared) +
                                               " bytes of the window belong to the system");
  }
  if (bytes > window || offset > window - bytes) {
    const std::uint64_t end = std::uint64_t{offset} + bytes;
    return raise(FaultKind::out_of_bounds,
                 (offset >= window ? ", " + bytes_text(offset - window) + " behind the end of"
                                   : ", which ends " + bytes_text(end - window) + " behind the end of") +
                     " the CTA's shared memory (" + std::to_string(window - kSystemShared) + " bytes from " +
                     hex(kSystemShared) + " on, static and dynamic)");
  }
  agent.run.shared_high_water = std::max(agent.run.shared_high_water, offset + bytes);
  if (proxy == Proxy::generic) {
    if (access != Access::read) note_generic_write(agent, *where, offset, bytes);
  } else if (access == Access::read) {
    note_async_read(agent, *where, offset, bytes);
  } else {
    if (const std::int64_t barrier = live_barrier_in(*where, offset, bytes); barrier >= 0) {
      return raise(FaultKind::barrier_misuse,
                   " of an asynchronous copy, over the live mbarrier object at " +
                       hex(static_cast<std::uint64_t>(barrier)) +
                       variable_text(agent.grid, ptx::Space::shared, static_cast<std::uint64_t>(barrier)));
    }
    note_async_write(agent, *where, offset, bytes);
  }
  return where->shared.data() + offset;
}

std::uint8_t* Memory::local(Agent& agent, std::uint32_t thread, std::uint64_t offset, std::uint32_t bytes,
                            std::uint32_t align, Access access) {
  const std::uint64_t frame = agent.grid.kernel->local_bytes;
  const auto raise = [&](FaultKind kind, std::string what) -> std::uint8_t* {
    agent.run.raise(Fault{
        kind,
        agent.site,
        std::string(does(access)) + bytes_text(bytes) + " at local address " + hex(offset) + std::move(what),
        {}});
    return nullptr;
  };
  if (align > 1 && (offset & (align - 1)) != 0) {
    return raise(FaultKind::misaligned, ", which is no multiple of " + std::to_string(align) +
                                            variable_text(agent.grid, ptx::Space::local, offset));
  }
  if (bytes > frame || offset > frame - bytes) {
    return raise(FaultKind::out_of_bounds,
                 ": a thread of this kernel has " + bytes_text(frame) + " of local memory");
  }
  return agent.cta.local.data() + thread * frame + offset;
}

// --- values never written
// ---------------------------------------------------------------------------------------

namespace {
std::uint64_t low_bits(std::uint64_t n) { return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1; }
}  // namespace

bool any_undefined(const std::vector<std::uint64_t>& bits, std::uint64_t offset,
                   std::uint64_t bytes) noexcept {
  const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, bits.size() * 64);
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t shift = at % 64, n = std::min(64 - shift, end - at);
    if (((bits[at / 64] >> shift) & low_bits(n)) != 0) return true;
    at += n;
  }
  return false;
}

void set_undefined(std::vector<std::uint64_t>& bits, std::uint64_t offset, std::uint64_t bytes,
                   bool undefined) noexcept {
  const std::uint64_t end = std::min<std::uint64_t>(offset + bytes, bits.size() * 64);
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t shift = at % 64, n = std::min(64 - shift, end - at);
    const std::uint64_t mask = low_bits(n) << shift;
    bits[at / 64] = undefined ? bits[at / 64] | mask : bits[at / 64] & ~mask;
    at += n;
  }
}

std::uint64_t undefined_bits(const std::vector<std::uint64_t>& bits, std::uint64_t offset,
                             unsigned bytes) noexcept {
  const std::uint64_t word = offset / 64, shift = offset % 64;
  if (word >= bits.size()) return 0;
  std::uint64_t v = bits[word] >> shift;
  if (shift + bytes > 64 && word + 1 < bits.size()) v |= bits[word + 1] << (64 - shift);
  return v & low_bits(bytes);
}

void put_undefined_bits(std::vector<std::uint64_t>& bits, std::uint64_t offset, unsigned bytes,
                        std::uint64_t value) noexcept {
  const std::uint64_t word = offset / 64, shift = offset % 64, mask = low_bits(bytes);
  if (word >= bits.size()) return;
  value &= mask;
  bits[word] = (bits[word] & ~(mask << shift)) | value << shift;
  if (shift + bytes > 64 && word + 1 < bits.size()) {
    bits[word + 1] = (bits[word + 1] & ~(mask >> (64 - shift))) | value >> (64 - shift);
  }
}

// --- which proxy wrote last
// -------------------------------------------------------------------------------------

namespace {
std::uint64_t now(const Cluster& cluster) { return cluster.clock + 1; }  // never 0
}  // namespace

SharedTrack* shared_track(const Grid& grid, Cta& cta) {
  if (!grid.kernel->any_async) return nullptr;
  if (cta.track && !cta.track->written.empty()) return cta.track.get();
  if (!cta.track) cta.track = std::make_shared<SharedTrack>();
  cta.track->written.assign(cta.shared.size() / 16 + 1, kNoWriter);
  cta.track->writers.assign(cta.track->written.size(), static_cast<std::uint32_t>(grid.kernel->ops.size()));
  cta.track->fenced.assign(std::max<std::size_t>(cta.warps.size(), 1), 0);
  return cta.track.get();
}

void proxy_fence(const Grid& grid, Cta& cta, std::uint32_t warp) {
  SharedTrack* t = shared_track(grid, cta);
  if (t != nullptr && warp < t->fenced.size()) t->fenced[warp] = now(*cta.cluster);
}

namespace {
std::uint64_t stamp_of(const Agent& agent) {
  return now(agent.cluster) << 16 | std::uint64_t{agent.cta.rank & 0xff} << 8 |
         (static_cast<std::uint64_t>(std::max(agent.site.warp, 0)) & 0xff);
}
void put_stamp(SharedTrack& t, std::uint32_t offset, std::uint32_t bytes, std::uint64_t stamp, std::uint32_t op) {
  const std::uint32_t last = (offset + bytes - 1) / 16;
  for (std::uint32_t g = offset / 16; g <= last; ++g) t.written[g] = stamp, t.writers[g] = op;
}
}  // namespace

void note_generic_write(Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes) {
  SharedTrack* t = shared_track(agent.grid, where);
  if (t == nullptr || bytes == 0) return;
  put_stamp(*t, offset, bytes, stamp_of(agent), agent.site.op);
  if (t->reads != nullptr) check_overwrite(agent, where, offset, bytes);
}

void note_generic_writes(Agent& agent, Cta& where, const std::uint32_t offset[kLanes], Mask mask,
                         std::uint32_t bytes) {
  SharedTrack* t = shared_track(agent.grid, where);
  if (t == nullptr || bytes == 0) return;
  const std::uint64_t stamp = stamp_of(agent);
  for_lanes(mask, [&](int i) { put_stamp(*t, offset[i], bytes, stamp, agent.site.op); });
  if (t->reads == nullptr) return;
  for_lanes(mask, [&](int i) { check_overwrite(agent, where, offset[i], bytes); });
}

void note_async_write(Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes) {
  SharedTrack* t = shared_track(agent.grid, where);
  if (t == nullptr || bytes == 0) return;
  put_stamp(*t, offset, bytes, kNoWriter, agent.site.op);
  if (t->reads != nullptr) check_overwrite(agent, where, offset, bytes);
}

std::string hole_text(const Grid& grid, const Cta& cta, std::uint32_t offset, std::uint32_t bytes) {
  const std::uint32_t end = std::min<std::uint32_t>(offset + bytes, static_cast<std::uint32_t>(cta.shared.size()));
  while (offset < end && (cta.shared_undefined[offset / 64] >> (offset % 64) & 1) == 0) ++offset;
  if (offset >= end) return {};
  std::string text = ", at " + hex(offset) + variable_text(grid, ptx::Space::shared, offset);
  const SharedTrack* t = cta.track.get();
  if (t == nullptr || t->writers.empty()) return text;
  constexpr std::uint32_t kFar = 128;  // granules
  const std::uint32_t own = offset / 16, none = static_cast<std::uint32_t>(grid.kernel->ops.size());
  std::uint32_t below = own, above = own + 1;
  while (below > 0 && t->writers[below] == none && own - below < kFar) --below;
  while (above < t->writers.size() && t->writers[above] == none && above - own < kFar) ++above;
  std::vector<std::uint32_t> said;
  for (const std::uint32_t g : {below, above}) {
    const std::uint32_t op = g < t->writers.size() ? t->writers[g] : none;
    if (op >= none || std::find(said.begin(), said.end(), op) != said.end()) continue;
    const OpInfo& info = grid.kernel->info[grid.kernel->ops[op].info];
    text += (said.empty() ? "; beside it wrote last: PTX line " : ", PTX line ") + std::to_string(info.where.line) +
            " (`" + info.text + "`)";
    said.push_back(op);
  }
  return text;
}

void note_async_read(Agent& agent, Cta& where, std::uint32_t offset, std::uint32_t bytes) {
  SharedTrack* t = where.track.get();
  if (t == nullptr || t->written.empty() || bytes == 0) return;
  const auto fenced = [&](std::uint64_t rank, std::uint64_t warp) -> std::uint64_t {
    if (rank >= agent.cluster.ctas.size()) return 0;
    const SharedTrack* of = agent.cluster.ctas[rank]->track.get();
    return of != nullptr && warp < of->fenced.size() ? of->fenced[warp] : 0;
  };
  const std::uint64_t issuer =
      agent.site.warp >= 0 ? fenced(agent.cta.rank, static_cast<std::uint64_t>(agent.site.warp)) : 0;
  std::uint64_t good = kNoWriter;  // what was found covered last
  const std::uint32_t last = (offset + bytes - 1) / 16;
  for (std::uint32_t g = offset / 16; g <= last; ++g) {
    const std::uint64_t stamp = t->written[g];
    if (stamp == kNoWriter || stamp == good) continue;
    const std::uint64_t time = stamp >> 16, rank = stamp >> 8 & 0xff, warp = stamp & 0xff;
    if (issuer > time || fenced(rank, warp) > time) {
      good = stamp;
      continue;
    }
    agent.run.remark(
        true, "missing_proxy_fence", agent.site,
        "the async proxy reads shared memory at " + hex(std::uint64_t{where.rank} << 24 | g * 16) +
            variable_text(agent.grid, ptx::Space::shared, g * 16) + ", which warp " + std::to_string(warp) +
            (rank == agent.cta.rank ? std::string() : " of CTA " + std::to_string(rank) + " of the cluster") +
            " wrote by ordinary stores with no fence.proxy.async between the two (in the writing thread "
            "before the barrier, or in the issuing thread behind it): it may see the bytes of before");
    return;
  }
}

std::int64_t live_barrier_in(Cta& cta, std::uint32_t offset, std::uint32_t bytes) {
  if (cta.barriers == nullptr || cta.barriers->all().empty()) return -1;
  const auto& all = cta.barriers->all();
  if (!cta.track) cta.track = std::make_shared<SharedTrack>();
  SharedTrack* t = cta.track.get();
  if (t->barriers_seen != all.size()) {
    t->barriers_seen = all.size();
    for (const auto& [at, object] : all) {
      t->barrier_low = std::min(t->barrier_low, at);
      t->barrier_high = std::max(t->barrier_high, at + 8);
    }
  }
  if (offset >= t->barrier_high || offset + bytes <= t->barrier_low) return -1;
  const std::uint32_t from = std::max(offset, t->barrier_low) & ~7U,
                      to = std::min(offset + bytes, t->barrier_high);
  for (std::uint32_t at = from; at < to; at += 8) {
    const MBarrier* b = cta.barriers->find(at);
    if (b != nullptr && b->valid) return at;
  }
  return -1;
}

}  // namespace ptxbench::emulator
