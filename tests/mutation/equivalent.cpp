#include "equivalent.hpp"

#include <algorithm>
#include <optional>

namespace ptxbench::testing {
namespace {

using ptx::Instruction;
using ptx::Operand;
using Kind = ptx::Operand::Kind;

bool has(const Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}
bool begins(const Instruction& i, std::string_view name) { return i.text().rfind(name, 0) == 0; }
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Touches memory or barriers that other threads see, or waits for something.
bool communicates(const Instruction& i) {
  for (const char* op :
       {"st", "red", "atom", "ldmatrix", "stmatrix", "cp", "wgmma", "mbarrier", "fence", "membar", "bar",
        "barrier", "griddepcontrol", "tensormap", "mma", "wmma", "ret", "exit", "call"})
    if (i.opcode == op) return true;
  return i.opcode == "ld" && !has(i, "param");
}
bool cta_barrier(const Instruction& i) {
  return (i.opcode == "bar" || i.opcode == "barrier") && !has(i, "warp") && !has(i, "cluster") &&
         has(i, "sync");
}

class Rules {
 public:
  explicit Rules(const Survivor& s)
      : s_(s), f_(s.mutant.plan ? nullptr : &s.module.functions[s.mutant.function]) {}

  std::string run() const {
    const std::string& kind = s_.mutant.kind;
    if (s_.mutant.plan) return map_unused();
    const Instruction& i = f_->body[s_.mutant.index];
    if (begins(i, "wgmma.fence"))
      return "ptxas orders the registers of wgmma itself: a note on speed, by policy";
    if (i.opcode == "wgmma" && (kind == "delete_wait" || kind == "delete_commit") &&
        contains(s_.note, "wgmma_register_touched"))
      return "ptxas inserts the wait where the accumulators are used: a note on speed, by policy";
    if (kind == "change_descriptor" && contains(s_.mutant.what, "leading offset"))
      return "the leading offset means nothing where the operand is one swizzle atom wide";
    if (begins(i, "griddepcontrol.wait") && !contains(s_.launch, "\"pdl\""))
      return "no launch of the plan depends on one before it";
    if (kind == "delete_fence" && has(i, "mbarrier_init")) return barrier_init_fence();
    if (kind == "delete_fence" && has(i, "proxy") && has(i, "async"))
      return "no ordinary store lies between the fence before it and an asynchronous read (each is followed)";
    if (begins(i, "cp.async.commit_group"))
      return "folded into the next group: nothing is missing where a copy completes only when a wait forces "
             "it";
    if ((kind == "delete_commit" || kind == "delete_wait") && has(i, "bulk")) {
      const std::string covered = covered_by_next_wait();
      return covered.empty() ? empty_bulk_group() : covered;
    }
    if (kind == "delete_wait" && begins(i, "wgmma.wait_group")) return waited_before();
    if (kind == "flip_scale_d") return accumulators_zeroed();
    if (kind == "delete_barrier" && (cta_barrier(i) || (i.opcode == "bar" && has(i, "warp")))) {
      const std::string beside = cta_barrier(i) ? barrier_beside() : warp_barrier();
      return beside.empty() ? orders_nothing() : beside;
    }
    if (kind == "delete_barrier" && has(i, "cluster")) return cluster_end();
    if (kind == "drop_initialisation" && i.opcode == "mov") return already_holds();
    return {};
  }

 private:
  std::string map_unused() const {
    // The name that stands nearest before the change.
    const std::size_t at = s_.launch.rfind("\"name\": \"", s_.mutant.edit.offset);
    if (at == std::string::npos || s_.used_maps.empty()) return {};
    const std::size_t begin = at + 9, end = s_.launch.find('"', begin);
    const std::string name = s_.launch.substr(begin, end - begin);
    if (std::find(s_.used_maps.begin(), s_.used_maps.end(), name) != s_.used_maps.end()) return {};
    return "no launch that ran is given this map";
  }

  std::string barrier_init_fence() const {
    for (std::uint32_t k = s_.mutant.index + 1; k < f_->body.size(); ++k) {
      const Instruction& i = f_->body[k];
      if (begins(i, "barrier.cluster.arrive") && !has(i, "relaxed"))
        return "barrier.cluster.arrive behind it releases to the cluster";
      if (cta_barrier(i)) {
        const bool clusters = std::any_of(f_->body.begin(), f_->body.end(), [](const Instruction& o) {
          return begins(o, "barrier.cluster") || o.opcode == "mapa";
        });
        return clusters ? "" : "one CTA only: bar.sync orders, and compilers put nothing more";
      }
    }
    return {};
  }

  // No bulk operation joins a group between this and the synchronisation before it.
  std::string empty_bulk_group() const {
    for (std::uint32_t k = s_.mutant.index; k-- > 0;) {
      const Instruction& i = f_->body[k];
      if (begins(i, "cp.async.bulk.wait_group") && k + 1 != s_.mutant.index) break;
      if (i.opcode == "cp" && has(i, "bulk") && has(i, "bulk_group")) return {};
      if (begins(i, "cp.reduce")) return {};
    }
    for (const Instruction& jump : f_->body)
      if (jump.opcode == "bra" && !jump.operands.empty() && jump.operands[0].kind == Kind::label) {
        const auto at = static_cast<std::uint32_t>(&jump - f_->body.data());
        if (jump.operands[0].index <= s_.mutant.index && s_.mutant.index <= at) return {};
      }
    return "no bulk copy is in the group";
  }

  // In straight code the thread waits for all of its groups (committed by then) before it writes or tells
  // anybody anything: a wait in between, or a commit on its way there, changes nothing.
  std::string covered_by_next_wait() const {
    const Instruction& deleted = f_->body[s_.mutant.index];
    bool committed = s_.mutant.kind == "delete_wait";
    for (std::uint32_t k = s_.mutant.index + 1; k < f_->body.size(); ++k) {
      const Instruction& i = f_->body[k];
      if (begins(i, "cp.async.bulk.commit_group")) {
        committed = true;
      } else if (begins(i, "cp.async.bulk.wait_group")) {
        const bool all =
            !i.operands.empty() && i.operands[0].kind == Kind::integer && i.operands[0].bits == 0;
        const bool as_strong = s_.mutant.kind == "delete_commit" || has(deleted, "read") || !has(i, "read");
        if (all && committed && as_strong && !i.guard)
          return "the same thread waits for all of its groups before it writes, arrives or ends";
      } else if (i.opcode == "bra") {
        // Of a poll only.
        if (i.operands.empty() || i.operands[0].kind != Kind::label ||
            i.operands[0].index <= s_.mutant.index || i.operands[0].index > k)
          return {};
      } else if (communicates(i) && !begins(i, "mbarrier.try_wait") && !begins(i, "mbarrier.test_wait") &&
                 !(i.opcode == "cp" && has(i, "bulk_group"))) {
        return {};
      }
    }
    return {};
  }

  // The sums are set to zero as well, on every way: adding them to the first product, or not, is the same.
  // Were they anything else the result would be wrong one way or the other.
  std::string accumulators_zeroed() const {
    std::vector<std::uint32_t> sums;
    const Operand& d = f_->body[s_.mutant.index].operands[0];
    if (d.kind == Kind::reg) sums.push_back(d.index);
    for (const Operand& p : d.parts)
      if (p.kind == Kind::reg) sums.push_back(p.index);
    for (const std::uint32_t reg : sums) {
      if (!zeroed(s_.mutant.index, reg, 0)) return {};
    }
    return sums.empty()
               ? ""
               : "the sums are set to zero as well: to add them to the first product or not is the same";
  }

  // In straight code the same warps have waited for all wgmma before, and issued none since.
  std::string waited_before() const {
    for (std::uint32_t k = s_.mutant.index; k-- > 0;) {
      const Instruction& i = f_->body[k];
      if (std::any_of(f_->labels.begin(), f_->labels.end(), [&](const auto& l) { return l.second == k + 1; }))
        break;
      if (begins(i, "wgmma.wait_group")) {
        if (!i.operands.empty() && i.operands[0].kind == Kind::integer && i.operands[0].bits == 0)
          return "the warp has waited for all of its wgmma before, and issued none since";
        break;
      }
      if (i.opcode == "wgmma" || (i.opcode == "bra" && !i.guard)) break;
    }
    return {};
  }

  // In straight code another barrier, with no access in between.
  std::string barrier_beside() const {
    const auto label_at = [&](std::uint32_t k) {
      return std::any_of(f_->labels.begin(), f_->labels.end(), [&](const auto& l) { return l.second == k; });
    };
    for (std::uint32_t k = s_.mutant.index + 1; k < f_->body.size(); ++k) {
      const Instruction& i = f_->body[k];
      if (cta_barrier(i)) return "a barrier follows with no access in between";
      if (communicates(i) || i.opcode == "bra" || label_at(k)) break;
    }
    for (std::uint32_t k = s_.mutant.index; k-- > 0;) {
      const Instruction& i = f_->body[k];
      if (label_at(k + 1)) break;
      if (cta_barrier(i)) return "a barrier precedes it with no access in between";
      if (communicates(i) || i.opcode == "bra") break;
    }
    return {};
  }

  // Another barrier, or a collective that all lanes come to: that orders no memory, so it does only where no
  // order of accesses to global memory can matter (a race in shared memory would have been found).
  std::string warp_barrier() const {
    for (std::uint32_t k = s_.mutant.index + 1; k < f_->body.size(); ++k) {
      const Instruction& i = f_->body[k];
      if (cta_barrier(i) || begins(i, "bar.warp")) return "a barrier follows with no access in between";
      const bool collective =
          has(i, "aligned") || i.opcode == "stmatrix" || i.opcode == "ldmatrix" || i.opcode == "wgmma";
      if (collective && s_.global_reused) break;
      if (collective) return "the next access of the warp is a collective that all its lanes come to";
      if (communicates(i) || i.opcode == "bra") break;
    }
    return {};
  }

  // A barrier of a CTA or a warp without which the detector of races finds nothing: what it orders in shared
  // memory, other barriers order as well, or nobody accesses. The detector does not follow global memory:
  // there no order may matter at all, in the runs of the mutant, and nothing may look as if threads spoke to
  // each other there, which another workload might show.
  std::string orders_nothing() const {
    if (s_.global_reused) return {};
    for (const ptx::Function& f : s_.module.functions)
      for (const Instruction& i : f.body) {
        const bool strong = has(i, "acquire") || has(i, "release") || has(i, "relaxed") ||
                            has(i, "volatile") || has(i, "mmio") || i.opcode == "atom" || i.opcode == "red";
        const bool memory = i.opcode == "ld" || i.opcode == "st" || i.opcode == "atom" || i.opcode == "red";
        if (memory && strong && !has(i, "shared") && !has(i, "shared::cta") && !has(i, "shared::cluster"))
          return {};
      }
    return kOrdersNothing;
  }

  // Whether on every way that leads to instruction @p to the last one that writes @p reg is one that @p good
  // accepts. @p left_out writes nothing: it is deleted.
  template <class Good>
  bool on_every_way(std::uint32_t to, std::uint32_t reg, std::optional<std::uint32_t> left_out,
                    Good&& good) const {
    std::vector<bool> seen(f_->body.size());
    std::vector<std::uint32_t> todo{to};
    while (!todo.empty()) {
      const std::uint32_t at = todo.back();
      todo.pop_back();
      std::vector<std::uint32_t> before;
      if (at == 0) return false;
      const Instruction& above = f_->body[at - 1];
      const bool falls_through =
          above.guard || (above.opcode != "bra" && above.opcode != "ret" && above.opcode != "exit");
      if (falls_through) before.push_back(at - 1);
      for (std::uint32_t k = 0; k < f_->body.size(); ++k) {
        const Instruction& jump = f_->body[k];
        if (jump.opcode == "brx") return false;
        if (jump.opcode == "bra" && !jump.operands.empty() && jump.operands[0].kind == Kind::label &&
            jump.operands[0].index == at)
          before.push_back(k);
      }
      for (const std::uint32_t k : before) {
        const Instruction& i = f_->body[k];
        if (k == left_out || seen[k]) continue;
        const bool writes = !i.operands.empty() && names(i.operands[0], reg) && i.opcode != "st";
        if (writes && good(i, k)) continue;
        if (writes) return false;
        seen[k] = true;
        todo.push_back(k);
      }
    }
    return true;
  }
  // An unguarded mov to a whole register.
  static bool sets(const Instruction& i) {
    return i.opcode == "mov" && !i.guard && i.operands.size() == 2 && i.operands[0].kind == Kind::reg;
  }

  // On every way to it the register was given the same constant, and nothing else since.
  std::string already_holds() const {
    const Instruction& deleted = f_->body[s_.mutant.index];
    const auto same = [&](const Instruction& i, std::uint32_t) {
      return sets(i) && i.operands[1].kind == deleted.operands[1].kind &&
             i.operands[1].bits == deleted.operands[1].bits;
    };
    if (!on_every_way(s_.mutant.index, deleted.operands[0].index, s_.mutant.index, same)) return {};
    return "the register holds the same constant already, on every way that leads there";
  }
  // Whether a mov has set it to zero on every way to @p to, or to a register that was zero there.
  bool zeroed(std::uint32_t to, std::uint32_t reg, int depth) const {
    return on_every_way(to, reg, std::nullopt, [&](const Instruction& i, std::uint32_t at) {
      if (!sets(i)) return false;
      const Operand& from = i.operands[1];
      const bool constant = from.kind == Kind::integer || from.kind == Kind::f32 || from.kind == Kind::f64;
      return constant ? from.bits == 0
                      : from.kind == Kind::reg && depth < 3 && zeroed(at, from.index, depth + 1);
    });
  }
  static bool names(const Operand& o, std::uint32_t reg) {
    return (o.kind == Kind::reg && o.index == reg) ||
           std::any_of(o.parts.begin(), o.parts.end(), [&](const Operand& p) { return names(p, reg); });
  }

  // The barrier at a kernel's end, where no CTA reaches into another's shared memory, or speaks to it (or to
  // its own threads) through global memory.
  std::string cluster_end() const {
    if (s_.global_reused) return {};
    const bool remote = std::any_of(f_->body.begin(), f_->body.end(), [](const Instruction& i) {
      const std::string text = i.text();
      return i.opcode == "mapa" || contains(text, "multicast") ||
             (i.opcode != "cp" && contains(text, "shared::cluster"));
    });
    if (remote) return {};
    return "no CTA of the cluster reaches into another";
  }

  const Survivor& s_;
  const ptx::Function* f_;
};

}  // namespace

std::string equivalent_because(const Survivor& survivor) { return Rules(survivor).run(); }

}  // namespace ptxbench::testing
