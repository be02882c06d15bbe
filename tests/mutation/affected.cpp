#include "affected.hpp"

#include <algorithm>
#include <map>

namespace ptxbench::testing {
namespace {

using ptx::Instruction;
using ptx::Operand;
using Kind = ptx::Operand::Kind;
using Set = std::set<std::uint32_t>;

bool has(const Instruction& i, std::string_view modifier) {
  return std::find(i.modifiers.begin(), i.modifiers.end(), modifier) != i.modifiers.end();
}
bool begins(const Instruction& i, std::string_view name) { return i.text().rfind(name, 0) == 0; }

void registers_of(const Operand& o, Set& out) {
  if (o.kind == Kind::reg) out.insert(o.index);
  for (const Operand& p : o.parts) registers_of(p, out);
}

// Whether operand 0 is written and not read.
bool has_destination(const Instruction& i) {
  static const Set none;
  for (const char* op : {"st", "red", "bar", "barrier", "bra", "cp", "fence", "membar", "ret", "exit",
                         "prefetch", "stmatrix", "griddepcontrol", "setmaxnreg", "trap", "call", "brx"})
    if (i.opcode == op) return false;
  if (i.opcode == "mbarrier")
    return begins(i, "mbarrier.arrive") || has(i, "parity") || begins(i, "mbarrier.t") ||
           begins(i, "mbarrier.p");
  if (i.opcode == "wgmma") return begins(i, "wgmma.mma_async");
  return true;
}

// One function's registers: who writes and reads them, and what the addresses come from.
class Flow {
 public:
  explicit Flow(const ptx::Function& f) : f_(f), writes_(f.body.size()), reads_(f.body.size()) {
    for (std::uint32_t i = 0; i < f.body.size(); ++i) {
      const Instruction& in = f.body[i];
      for (std::size_t k = 0; k < in.operands.size(); ++k) {
        const bool to = k == 0 && has_destination(in);
        registers_of(in.operands[k], to ? writes_[i] : reads_[i]);
        // D of wgmma is read as well.
        if (to && in.opcode == "wgmma") registers_of(in.operands[k], reads_[i]);
      }
      if (in.guard) reads_[i].insert(in.guard->reg);
      for (const std::uint32_t r : writes_[i]) writers_[r].push_back(i);
      for (const std::uint32_t r : reads_[i]) readers_[r].push_back(i);
    }
    find_memory();
  }

  // Everything that values written at @p at flow into.
  Set forward(std::uint32_t at) const {
    Set seen{at};
    std::vector<std::uint32_t> todo{at};
    while (!todo.empty()) {
      const std::uint32_t i = todo.back();
      todo.pop_back();
      for (const std::uint32_t r : writes_[i]) {
        const auto found = readers_.find(r);
        if (found == readers_.end()) continue;
        for (const std::uint32_t j : found->second)
          if (seen.insert(j).second) todo.push_back(j);
      }
    }
    return seen;
  }

  bool touches_memory(std::uint32_t i) const { return marks_.count(i) != 0; }
  // Instructions that share a barrier, a buffer or a variable with @p at.
  Set sharing(std::uint32_t at) const {
    Set out;
    const auto mine = marks_.find(at);
    if (mine == marks_.end()) return out;
    for (const auto& [i, marks] : marks_)
      if (std::any_of(marks.begin(), marks.end(),
                      [&](const std::string& m) { return mine->second.count(m) != 0; }))
        out.insert(i);
    return out;
  }

 private:
  // Marks of what an address comes from: variables, and registers on the way that tell one place from
  // another.
  void marks_of(std::uint32_t reg, std::set<std::string>& out, Set& seen, int depth) const {
    if (depth > 24 || !seen.insert(reg).second) return;
    out.insert("r" + std::to_string(reg));
    const auto found = writers_.find(reg);
    if (found == writers_.end()) return;
    for (const std::uint32_t i : found->second) {
      const Instruction& in = f_.body[i];
      if (in.opcode == "ld" || in.opcode == "shfl" || in.opcode == "atom") continue;
      for (const Operand& o : in.operands) variables_of(o, out);
      for (const std::uint32_t r : reads_[i]) marks_of(r, out, seen, depth + 1);
    }
  }
  void variables_of(const Operand& o, std::set<std::string>& out) const {
    if (o.kind == Kind::variable) out.insert((o.module_scope ? "m" : "v") + std::to_string(o.index));
    for (const Operand& p : o.parts) variables_of(p, out);
  }
  void find_memory() {
    std::map<std::string, std::size_t> uses;
    for (std::uint32_t i = 0; i < f_.body.size(); ++i) {
      const Instruction& in = f_.body[i];
      std::set<std::string> marks;
      Set seen;
      const bool wgmma = begins(in, "wgmma.mma_async");
      for (std::size_t k = 0; k < in.operands.size(); ++k) {
        const Operand& o = in.operands[k];
        const bool address = o.kind == Kind::address || o.kind == Kind::tensor;
        if (in.opcode == "ld" && has(in, "param")) continue;
        if (!address && !(wgmma && (k == 1 || k == 2) && o.kind == Kind::reg)) continue;
        // Of a tensor operand the map, not the coordinates.
        const Operand& from = o.kind == Kind::tensor && !o.parts.empty() ? o.parts[0] : o;
        variables_of(from, marks);
        Set regs;
        registers_of(from, regs);
        for (const std::uint32_t r : regs) marks_of(r, marks, seen, 0);
      }
      if (marks.empty()) continue;
      for (const std::string& m : marks) ++uses[m];
      marks_[i] = std::move(marks);
    }
    // What more than half of all accesses have in common tells nothing apart.
    const std::size_t most = marks_.size() / 2;
    for (auto& [i, marks] : marks_)
      for (auto m = marks.begin(); m != marks.end();) m = uses[*m] > most ? marks.erase(m) : std::next(m);
  }

  const ptx::Function& f_;
  std::vector<Set> writes_, reads_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> writers_, readers_;
  std::map<std::uint32_t, std::set<std::string>> marks_;
};

// Whether the mutant changes an order, not a place or a value.
bool orders(const Mutant& m) {
  return m.kind == "delete_fence" || m.kind == "delete_wait" || m.kind == "delete_commit" ||
         m.kind == "delete_barrier" || m.kind == "shift_barrier_count";
}

bool synchronises(const Instruction& i) {
  return i.opcode == "bar" || i.opcode == "barrier" || begins(i, "wgmma.wait") ||
         begins(i, "cp.async.wait") || begins(i, "cp.async.bulk.wait") || begins(i, "mbarrier.try_wait") ||
         begins(i, "mbarrier.test_wait") || begins(i, "griddepcontrol");
}

// Whether @p m waits for, or commits, groups of operations of which @p other is one.
bool same_groups(const Instruction& m, const Instruction& other) {
  const bool groups = begins(m, "cp.async.wait") || begins(m, "cp.async.commit") ||
                      begins(m, "cp.async.bulk.wait") || begins(m, "cp.async.bulk.commit") ||
                      begins(m, "wgmma.wait") || begins(m, "wgmma.commit");
  return groups && m.opcode == other.opcode && has(m, "bulk") == has(other, "bulk");
}

}  // namespace

std::set<std::uint32_t> affected_lines(const ptx::Module& module, const Mutant& mutant) {
  Set lines;
  if (mutant.plan) {
    // A map's swizzle or box: the copies by tensor maps, and who waits for their bytes.
    for (const ptx::Function& f : module.functions)
      for (const Instruction& i : f.body)
        if (has(i, "tensor") || i.opcode == "mbarrier") lines.insert(i.where.line);
    return lines;
  }
  const ptx::Function& f = module.functions[mutant.function];
  const Flow flow(f);
  Set found = flow.forward(mutant.index);
  const Set sharing = flow.sharing(mutant.index);
  found.insert(sharing.begin(), sharing.end());
  if (orders(mutant)) {
    // Accesses and synchronisation from the one before to the one behind, and in the loop around.
    std::int64_t first = mutant.index, last = mutant.index;
    const auto stop = [&](std::int64_t i) { return synchronises(f.body[static_cast<std::size_t>(i)]); };
    for (--first; first >= 0 && !stop(first);) --first;
    const auto size = static_cast<std::int64_t>(f.body.size());
    for (++last; last < size && !stop(last);) ++last;
    // A fence in front of a barrier is for what comes behind the barrier.
    if (mutant.kind == "delete_fence" && last < size)
      for (++last; last < size && !stop(last);) ++last;
    for (std::uint32_t i = 0; i < f.body.size(); ++i) {
      const Instruction& jump = f.body[i];
      if (jump.opcode != "bra" || jump.operands.empty() || jump.operands[0].kind != Kind::label) continue;
      const std::uint32_t to = jump.operands[0].index;
      if (to <= mutant.index && mutant.index <= i && to < i) {
        first = std::min<std::int64_t>(first, to);
        last = std::max<std::int64_t>(last, i);
      }
    }
    for (std::int64_t i = std::max<std::int64_t>(first, 0); i <= std::min(last, size - 1); ++i) {
      const auto at = static_cast<std::uint32_t>(i);
      if (flow.touches_memory(at) || synchronises(f.body[at]) || f.body[at].opcode == "wgmma")
        found.insert(at);
    }
  }
  // A wait or commit of groups is about every operation of its kind; an operation on an mbarrier about those
  // who wait for one.
  const Instruction& mutated = f.body[mutant.index];
  for (std::uint32_t i = 0; i < f.body.size(); ++i) {
    const Instruction& other = f.body[i];
    if (same_groups(mutated, other)) found.insert(i);
    if (mutated.opcode == "mbarrier" &&
        (begins(other, "mbarrier.try_wait") || begins(other, "mbarrier.test_wait")))
      found.insert(i);
    // An object that was never initialised is noticed by whoever comes first: an arrival, or a copy that signals it.
    if (begins(mutated, "mbarrier.init") &&
        (other.opcode == "mbarrier" || other.text().find("mbarrier::complete_tx") != std::string::npos))
      found.insert(i);
  }
  for (const std::uint32_t i : found) lines.insert(f.body[i].where.line);
  return lines;
}

std::set<std::uint32_t> lines_in(const std::string& text) {
  Set lines;
  static constexpr std::string_view kWords = "PTX line ";
  for (std::size_t at = text.find(kWords); at != std::string::npos; at = text.find(kWords, at + 1)) {
    std::uint32_t line = 0;
    for (std::size_t i = at + kWords.size();
         i < text.size() && text[i] >= '0' && text[i] <= '9' && line < 10'000'000; ++i)
      line = line * 10 + static_cast<std::uint32_t>(text[i] - '0');
    if (line != 0) lines.insert(line);
  }
  return lines;
}

}  // namespace ptxbench::testing
