// Which registers live where, and the slots that follow: registers whose lives do not overlap share one.
//
// Among registers of up to 32 bits, and among wider ones, a lane's values lie in a column of its own, so the lives along
// the paths of the graph are what counts, also where lanes of a warp are apart. Between the two they do not: the 64-bit
// lane 1 lies where the 32-bit lanes 2 and 3 do. So wide registers have slots of their own, behind the narrow ones. A
// write under a guard leaves the other lanes' values: it ends no life.
#include "emulator/decode_builder.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

constexpr std::uint32_t kNone32 = UINT32_MAX;

struct Life {
  std::uint32_t begin = kNone32, end = 0;  // positions, inclusive
  void touch(std::uint32_t at) {
    begin = std::min(begin, at);
    end = std::max(end, at);
  }
};

class Liveness {
 public:
  Liveness(const Kernel& kernel, const Graph& graph, const DecodedOps& decoded)
      : kernel_(kernel), graph_(graph), lives_(decoded.slots.size()), global_(decoded.slots.size(), kNone32) {}

  // Positions are ops in their textual order, where loops lie together.
  std::vector<Life> run() {
    find_globals();
    solve();
    for (std::uint32_t i = 0; i < kernel_.ops.size(); ++i)
      each_register(i, [&](std::uint32_t v, bool) { lives_[v].touch(i); });
    for (std::size_t b = 0; b < graph_.blocks.size(); ++b) {
      const BasicBlock& block = graph_.blocks[b];
      for (std::size_t w = 0; w < words_; ++w) {
        for (std::uint64_t bits = in_[b * words_ + w]; bits != 0; bits &= bits - 1)
          lives_[globals_[w * 64 + static_cast<unsigned>(__builtin_ctzll(bits))]].touch(block.begin);
        for (std::uint64_t bits = out_[b * words_ + w]; bits != 0; bits &= bits - 1)
          lives_[globals_[w * 64 + static_cast<unsigned>(__builtin_ctzll(bits))]].touch(block.end - 1);
      }
    }
    return std::move(lives_);
  }

 private:
  template <class F>
  void each_register(std::uint32_t op, F&& f) const {
    const auto [first, last] = operand_range(kernel_, op);
    std::uint32_t seen = 0;
    const Op& o = kernel_.ops[op];
    for (std::uint32_t k = first; k < last; ++k) {
      const Operand x = kernel_.operands[k];
      // Destinations come first; a `_` among them counts.
      const bool destination = seen < o.destinations;
      if (is_virtual(x)) f(virtual_slot(x), destination), ++seen;
      else if (x == kNoOperand) ++seen;
    }
  }
  static bool kills(const Op& op) { return op.guard == kPredTrue; }

  // Registers that live across blocks: read in one before it writes them.
  void find_globals() {
    std::vector<std::uint32_t> defined(lives_.size(), kNone32);
    for (std::uint32_t b = 0; b < graph_.blocks.size(); ++b) {
      for (std::uint32_t i = graph_.blocks[b].begin; i < graph_.blocks[b].end; ++i) {
        each_register(i, [&](std::uint32_t v, bool destination) {
          if (!destination && defined[v] != b) make_global(v);
        });
        each_register(i, [&](std::uint32_t v, bool destination) {
          if (!destination) return;
          if (kills(kernel_.ops[i])) defined[v] = b;
          else if (defined[v] != b) make_global(v);
        });
      }
    }
  }
  void make_global(std::uint32_t v) {
    if (global_[v] != kNone32) return;
    global_[v] = static_cast<std::uint32_t>(globals_.size());
    globals_.push_back(v);
  }

  void solve() {
    const std::size_t n = graph_.blocks.size();
    words_ = (globals_.size() + 63) / 64;
    in_.assign(n * words_, 0);
    out_.assign(n * words_, 0);
    std::vector<std::uint64_t> uses(n * words_), kills_(n * words_);
    const auto set = [&](std::vector<std::uint64_t>& s, std::size_t b, std::uint32_t g) {
      s[b * words_ + g / 64] |= std::uint64_t{1} << (g % 64);
    };
    const auto test = [&](const std::vector<std::uint64_t>& s, std::size_t b, std::uint32_t g) {
      return (s[b * words_ + g / 64] >> (g % 64) & 1) != 0;
    };
    for (std::size_t b = 0; b < n; ++b) {
      for (std::uint32_t i = graph_.blocks[b].begin; i < graph_.blocks[b].end; ++i) {
        const bool kill = kills(kernel_.ops[i]);
        each_register(i, [&](std::uint32_t v, bool destination) {
          const std::uint32_t g = global_[v];
          if (g == kNone32 || (destination && kill)) return;
          if (!test(kills_, b, g)) set(uses, b, g);
        });
        each_register(i, [&](std::uint32_t v, bool destination) {
          if (destination && kill && global_[v] != kNone32) set(kills_, b, global_[v]);
        });
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (auto at = graph_.order.rbegin(); at != graph_.order.rend(); ++at) {
        const std::size_t b = *at;
        for (const std::uint32_t s : graph_.blocks[b].successors)
          for (std::size_t w = 0; w < words_; ++w) out_[b * words_ + w] |= in_[s * words_ + w];
        for (std::size_t w = 0; w < words_; ++w) {
          const std::uint64_t now = uses[b * words_ + w] | (out_[b * words_ + w] & ~kills_[b * words_ + w]);
          if (now != in_[b * words_ + w]) {
            in_[b * words_ + w] = now;
            changed = true;
          }
        }
      }
    }
  }

  const Kernel& kernel_;
  const Graph& graph_;
  std::vector<Life> lives_;             // by virtual slot
  std::vector<std::uint32_t> global_;   // by virtual slot: number among globals_
  std::vector<std::uint32_t> globals_;
  std::size_t words_ = 0;
  std::vector<std::uint64_t> in_, out_;
};

// Free slots, the lowest first; n of them in a row, aligned to n.
class SlotPool {
 public:
  std::uint32_t take(unsigned n) {
    const std::uint64_t pattern = n == 1 ? 1 : n == 2 ? 3 : 15;
    for (std::size_t w = lowest_; w < free_.size(); ++w) {
      if (free_[w] == 0) {
        if (w == lowest_) ++lowest_;
        continue;
      }
      for (unsigned i = 0; i < 64; i += n) {
        if ((free_[w] >> i & pattern) != pattern) continue;
        free_[w] &= ~(pattern << i);
        size_ = std::max(size_, static_cast<std::uint32_t>(w * 64 + i + n));
        return static_cast<std::uint32_t>(w * 64 + i);
      }
    }
    free_.push_back(~std::uint64_t{0});
    return take(n);
  }
  void give(std::uint32_t slot, unsigned n) {
    const std::uint64_t pattern = n == 1 ? 1 : n == 2 ? 3 : 15;
    free_[slot / 64] |= pattern << (slot % 64);
    lowest_ = std::min(lowest_, std::size_t{slot / 64});
  }
  std::uint32_t size() const { return size_; }

 private:
  std::vector<std::uint64_t> free_;
  std::size_t lowest_ = 0;
  std::uint32_t size_ = 0;
};

}  // namespace

void allocate_slots(Kernel& kernel, const Graph& graph, const DecodedOps& decoded) {
  const std::vector<Life> lives = Liveness(kernel, graph, decoded).run();
  std::vector<std::uint32_t> by_begin;
  for (std::uint32_t v = 0; v < lives.size(); ++v)
    if (decoded.slots[v] != 0 && lives[v].begin != kNone32) by_begin.push_back(v);
  std::sort(by_begin.begin(), by_begin.end(), [&](std::uint32_t a, std::uint32_t b) {
    return lives[a].begin != lives[b].begin ? lives[a].begin < lives[b].begin : a < b;
  });
  std::vector<std::uint32_t> slot(lives.size(), kNone32);
  SlotPool pool, wide;
  const auto pool_of = [&](std::uint32_t v) -> SlotPool& { return decoded.slots[v] == 1 ? pool : wide; };
  // Those in flight first, in the order of their numbers: a fragment's registers mostly lie in a row.
  for (std::uint32_t v = 0; v < lives.size(); ++v)
    if (decoded.exclusive[v] && lives[v].begin != kNone32) slot[v] = pool_of(v).take(decoded.slots[v]);
  std::vector<std::uint32_t> active;  // a heap by end
  const auto later = [&](std::uint32_t a, std::uint32_t b) { return lives[a].end > lives[b].end; };
  for (const std::uint32_t v : by_begin) {
    if (decoded.exclusive[v]) continue;
    // What ends at the op that begins v still overlaps: handlers may write before they have read everything.
    while (!active.empty() && lives[active.front()].end < lives[v].begin) {
      pool_of(active.front()).give(slot[active.front()], decoded.slots[active.front()]);
      std::pop_heap(active.begin(), active.end(), later);
      active.pop_back();
    }
    slot[v] = pool_of(v).take(decoded.slots[v]);
    active.push_back(v);
    std::push_heap(active.begin(), active.end(), later);
  }
  const std::uint32_t first_wide = (pool.size() + 3) / 4 * 4;
  for (std::size_t i = 0; i < kernel.ops.size(); ++i) {
    const auto [first, last] = operand_range(kernel, i);
    for (std::uint32_t k = first; k < last; ++k) {
      Operand& o = kernel.operands[k];
      if (!is_virtual(o)) continue;
      const std::uint32_t v = virtual_slot(o);
      if (decoded.exclusive[v]) kernel.ops[i].flags |= kMayBeInFlight;
      o = static_cast<Operand>((slot[v] + (decoded.slots[v] == 1 ? 0 : first_wide)) * kLanes);
    }
  }
  kernel.slot_words = (first_wide + wide.size()) * kLanes;
}

}  // namespace ptxbench::emulator
