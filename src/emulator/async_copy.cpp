#include "emulator/async_copy.hpp"

#include "emulator/mbarrier.hpp"
#include "emulator/text.hpp"

#include <algorithm>

namespace ptxbench::emulator {

bool SignalledTarget::multicast(const Exec& x, int lane, std::uint16_t ctas) {
  const std::size_t size = x.cluster.ctas.size();
  if (ctas == 0) {
    x.fault(FaultKind::out_of_bounds, lane, "a multicast to no CTA: its mask is 0");
    return false;
  }
  if (size < 16 && ctas >> size != 0) {
    x.fault(FaultKind::out_of_bounds, lane,
            "a multicast to CTA " + std::to_string(31 - __builtin_clz(ctas)) + " of a cluster of " +
                std::to_string(size) + " (mask " + hex(ctas) + ")");
    return false;
  }
  mask = ctas;
  return true;
}

std::uint64_t SignalledTarget::ctas(std::uint32_t issuer) const {
  if (mask != 0) return mask;
  const std::uint32_t rank = to >> 24;
  return std::uint64_t{1} << (own ? issuer : rank & 63);
}

bool SignalledTarget::signals(std::uint16_t rank, std::uint32_t offset) const {
  if ((barrier & 0xffffff) != offset) return false;
  // Without a rank an address may mean the issuer's own CTA.
  return mask != 0 ? (mask >> rank & 1) != 0 : barrier >> 24 == 0 || barrier >> 24 == rank;
}

std::string SignalledTarget::describe() const {
  std::string text = " to shared " + hex(to);
  if (mask != 0) text += " of the CTAs of mask " + hex(mask);
  return text + ", mbarrier " + hex(barrier);
}

bool signal(Agent& agent, std::uint32_t barrier, bool own, std::uint32_t bytes) {
  Cta* cta = nullptr;
  std::uint32_t offset = 0;
  if (!agent.grid.memory->shared(agent, barrier, 8, 8, Access::read, Proxy::generic, own, cta, offset))
    return false;
  note_async_signal(agent, *cta, offset);
  return mbarrier_complete_tx(agent, *cta, offset, bytes);
}

std::vector<std::uint64_t> shared_undefined_of(const Cta& cta, std::uint32_t offset, std::uint32_t bytes) {
  std::vector<std::uint64_t> bits;
  if (!any_undefined(cta.shared_undefined, offset, bytes)) return bits;
  bits.resize(bytes / 64 + 1);
  for (std::uint32_t b = 0; b < bytes; b += 64) {
    const unsigned n = std::min<std::uint32_t>(64, bytes - b);
    put_undefined_bits(bits, b, n, undefined_bits(cta.shared_undefined, offset + b, n));
  }
  return bits;
}

std::vector<std::uint64_t> global_undefined_of(const Memory& memory, std::uint64_t address,
                                               std::uint32_t bytes) {
  std::vector<std::uint64_t> bits;
  if (!memory.any_global_undefined() || !memory.global_undefined(address, bytes)) return bits;
  bits.resize(bytes / 64 + 1);
  for (std::uint32_t b = 0; b < bytes; b += 64) {
    const unsigned n = std::min<std::uint32_t>(64, bytes - b);
    std::uint64_t word = 0;
    memory.global_undefined(address + b, n, &word);
    put_undefined_bits(bits, b, n, word);
  }
  return bits;
}

void put_undefined(Cta& cta, std::uint32_t offset, std::uint32_t bytes,
                   const std::vector<std::uint64_t>& bits) {
  if (cta.shared_undefined.empty()) return;
  if (bits.empty()) {
    set_undefined(cta.shared_undefined, offset, bytes, false);
    return;
  }
  for (std::uint32_t b = 0; b < bytes; b += 64) {
    const unsigned n = std::min<std::uint32_t>(64, bytes - b);
    put_undefined_bits(cta.shared_undefined, offset + b, n, undefined_bits(bits, b, n));
  }
}

bool store_undefined(Agent& agent, std::uint64_t address, std::uint32_t bytes,
                     const std::vector<std::uint64_t>& bits, std::uint64_t first, bool reduced) {
  Memory& memory = *agent.grid.memory;
  if (bits.empty() && !memory.any_global_undefined()) return true;
  for (std::uint32_t b = 0; b < bytes; b += 64) {
    const unsigned n = std::min<std::uint32_t>(64, bytes - b);
    std::uint64_t word = bits.empty() ? 0 : undefined_bits(bits, first + b, n);
    if (reduced) {
      std::uint64_t old = 0;
      memory.global_undefined(address + b, n, &old);
      word |= old;
    }
    if (!memory.stored(agent, address + b, n, word)) return false;
  }
  return true;
}

}  // namespace ptxbench::emulator
