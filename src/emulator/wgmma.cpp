#include "emulator/wgmma.hpp"

#include "emulator/async_operands.hpp"
#include "emulator/fragments.hpp"
#include "emulator/memory.hpp"
#include "emulator/op_tensor.hpp"
#include "emulator/overwrites.hpp"
#include "emulator/run.hpp"
#include "emulator/text.hpp"

#include <algorithm>
#include <bitset>
#include <cstring>

namespace ptxbench::emulator {

namespace {

constexpr int kMaxRows = 256;

// Which of an operand's rows hold a byte that was never written.
using RowBits = std::bitset<kMaxRows>;

// Reads an operand of shared memory. False where a fault was raised.
bool read_operand(Agent& agent, const WgmmaOp& op, std::uint64_t descriptor, bool mn_major, int rows, const char* name,
                  std::uint8_t* packed, RowBits& undefined) {
  Cta& cta = agent.cta;
  std::uint32_t chunks[2 * kMaxRows];
  const WgmmaDescriptor d = decode_descriptor(descriptor);
  chunk_addresses(d, mn_major, rows, chunks);
  const int count = 2 * rows;
  std::uint32_t lowest = chunks[0], highest = chunks[0];
  for (int i = 1; i < count; ++i) {
    lowest = std::min(lowest, chunks[i]);
    highest = std::max(highest, chunks[i]);
  }
  const std::uint32_t end = static_cast<std::uint32_t>(cta.shared.size());
  if (lowest < kSystemShared || highest + 16 > end) {
    const std::uint32_t wrong = lowest < kSystemShared ? lowest : highest;
    agent.run.raise(
        Fault{FaultKind::out_of_bounds,
              agent.site,
              std::string("operand ") + name + " of wgmma reaches shared address " + hex(wrong) +
                  ", outside of the CTA's " + "shared memory (" + hex(kSystemShared) + " to " +
                  hex(end) + "): descriptor " + hex(descriptor) + " starts at " +
                  hex(d.start) + ", leading offset " + std::to_string(d.leading_bytes) +
                  " bytes, stride offset " + std::to_string(d.stride_bytes) + " bytes, swizzle of " +
                  (d.swizzle == Swizzle::none ? std::string("none")
                                              : std::to_string(swizzle_span(d.swizzle)) + " bytes") +
                  (mn_major ? ", MN-major, " : ", K-major, ") + std::to_string(rows) + " rows",
              {}});
    return false;
  }
  agent.run.shared_high_water = std::max(agent.run.shared_high_water, highest + 16);
  if (cta.track != nullptr && !cta.track->written.empty())
    for (int i = 0; i < count; ++i) note_async_read(agent, cta, chunks[i], 16);
  note_wgmma_read(agent, cta, op.group, op.number, chunks, count);
  if (!cta.shared_undefined.empty())
    for (int i = 0; i < count; ++i)
      if ((cta.shared_undefined[chunks[i] / 64] >> (chunks[i] % 64) & 0xffff) != 0) {
        agent.run.read_undefined(agent.site, [&] { return hole_text(agent.grid, cta, chunks[i], 16); });
        const RowRange range = rows_of_chunk(mn_major, i);
        for (int r = 0; r < range.count; ++r) undefined.set(static_cast<std::size_t>(range.first + r));
      }
  pack_chunks(mn_major, rows, chunks, cta.shared.data(), packed);
  return true;
}

WaitKey group_key(WaitKey::Kind kind, std::uint16_t cta, std::uint32_t group) {
  WaitKey key;
  key.kind = kind;
  key.cta = cta;
  key.address = 0x8000'0000 | group;
  return key;
}

}  // namespace

bool WgmmaOp::ready(const Cluster& cluster) const {
  return joined == 15 && cluster.ctas[cta]->warpgroups[group]->completed + 1 == number;
}

std::string WgmmaOp::describe() const {
  std::string text = kernel->info[op->info].text + " number " + std::to_string(number) + " of warpgroup " +
                     std::to_string(group) + " of CTA " + std::to_string(cta) + " (";
  text += a_in_registers ? "A in registers" : "A at " + hex(decode_descriptor(a_descriptor).start);
  text += ", B at " + hex(decode_descriptor(b_descriptor).start) + ")";
  if (joined != 15) {
    text += "; not issued yet by warps";
    for (std::uint32_t w = 0; w < 4; ++w)
      if ((joined >> w & 1) == 0) text += " " + std::to_string(4 * group + w);
  }
  return text;
}

bool WgmmaOp::complete(Cluster& cluster, Run& run) {
  Agent agent = agent_of(*this, cluster, run);
  Cta& own = agent.cta;
  const TensorRule& r = tensor_rule(rule);
  const bool half = r.accumulator == AccumulatorType::f16;
  const unsigned accumulators = op->destinations;
  const Operand* operands = kernel->operands.data() + op->first_operand;
  const Operand* a_operands = operands + 2 * accumulators;
  Warp* warps = own.warps.data() + std::size_t{4} * group;

  alignas(64) std::uint8_t rows[64 * 32];
  alignas(64) std::uint8_t columns[kMaxRows * 32];
  RowBits undefined_rows, undefined_columns;
  if (a_in_registers) {
    for (int w = 0; w < 4; ++w) {
      gather_a(
          4, [&](int i) { return warps[w].regs + a_operands[i]; }, rows + w * 16 * 32);
      for (int i = 0; i < 4; ++i)
        if (const Mask u = warps[w].undefined[slot_of(a_operands[i])] & warps[w].live; u != 0)
          undefined_rows |= RowBits(lanes_to_rows(u)) << static_cast<std::size_t>(16 * w + 8 * (i % 2));
    }
  } else if (!read_operand(agent, *this, a_descriptor, a_mn_major, 64, "A", rows, undefined_rows)) {
    return true;
  }
  if (!read_operand(agent, *this, b_descriptor, b_mn_major, n, "B", columns, undefined_columns)) return true;

  std::uint32_t* lanes[8 * 64];  // fragment_multiply's order
  const int blocks = n / 8;
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < blocks; ++j) {
      std::uint32_t* regs = warps[i / 2].regs;
      if (half) {
        lanes[i * blocks + j] = regs + operands[2 * j + i % 2];
      } else {
        for (int c = 0; c < 2; ++c)
          lanes[(i * blocks + j) * 2 + c] = regs + operands[4 * j + 2 * (i % 2) + c];
      }
    }
  fragment_multiply(r, rows, columns, lanes, 64, n, k, options);

  const bool any = undefined_rows.any() || undefined_columns.any();
  for (int w = 0; w < 4; ++w) {
    Warp& warp = warps[w];
    std::uint32_t own_rows = 0;
    if (any)
      for (std::size_t row = 0; row < 16; ++row)
        own_rows |= (undefined_rows[static_cast<std::size_t>(16 * w) + row] ? 1U : 0U) << row;
    for (unsigned i = 0; i < accumulators; ++i) {
      const std::uint32_t slot = slot_of(operands[i]);
      Mask& undefined = warp.undefined[slot];
      if (!options.accumulate) undefined = 0;
      if (any) {
        const int block = static_cast<int>(half ? i / 2 : i / 4);
        std::uint32_t bits = 0;
        for (int c = 0; c < 8; ++c)
          bits |= (undefined_columns[static_cast<std::size_t>(8 * block + c)] ? 1U : 0U) << c;
        undefined |= lanes_of(own_rows, bits, static_cast<int>(i), half);
      }
      warp.in_flight[slot] = static_cast<std::uint16_t>(warp.in_flight[slot] - kWriteInFlight);
      --warp.in_flight_total;
    }
    for (int i = 0; a_in_registers && i < 4; ++i) {
      const std::uint32_t slot = slot_of(a_operands[i]);
      warp.in_flight[slot] = static_cast<std::uint16_t>(warp.in_flight[slot] - kReadInFlight);
      --warp.in_flight_total;
    }
  }
  WgmmaState& state = *own.warpgroups[group];
  state.completed = number;
  state.under_way.pop_front();
  cluster.wake(group_key(WaitKey::Kind::async_group, cta, group));
  cluster.wake(group_key(WaitKey::Kind::warpgroup, cta, group));
  return true;
}

}  // namespace ptxbench::emulator
