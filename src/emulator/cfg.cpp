// The control-flow graph of a decoded kernel, the order in which divergent lanes are run, and loops that wait.
#include "emulator/control.hpp"
#include "emulator/decode_builder.hpp"

#include <algorithm>

namespace ptxbench::emulator {
namespace {

constexpr unsigned kMaxDepth = 200;  // of nested loops that are told apart

// Where an op can go; `next`: also the one behind it.
void targets_of(const Kernel& k, std::uint32_t i, std::vector<std::uint32_t>& targets, bool& next) {
  const Op& op = k.ops[i];
  targets.clear();
  next = true;
  const bool conditional = op.guard != kPredTrue;
  if (op.run == op_branch) {
    targets.push_back(static_cast<std::uint32_t>(op.imm));
    next = conditional;
  } else if (op.run == op_branch_table) {
    const auto at = static_cast<std::size_t>(op.imm);
    for (std::uint32_t n = 0; n < k.branch_tables[at]; ++n) targets.push_back(k.branch_tables[at + 1 + n]);
    next = conditional;
  } else if (op.run == op_exit || op.run == op_trap) {
    next = conditional;
  }
}
bool ends_block(const Op& op) {
  return op.run == op_branch || op.run == op_branch_table || op.run == op_exit || op.run == op_trap;
}

// A weak topological order (Bourdoncle): strongly connected components in topological order, each its head first and
// then, without the edges back to the head, ordered the same way. So lanes that left a loop come behind those in it.
class Order {
 public:
  explicit Order(Graph& graph) : graph_(graph), region_(graph.blocks.size(), 0) {}

  void run() {
    std::vector<std::uint32_t> all(graph_.blocks.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    order(all, 0, 0);
  }

 private:
  // Orders @p nodes (all of region @p region), which are entered at nodes[0] first.
  void order(const std::vector<std::uint32_t>& nodes, std::uint32_t region, unsigned depth) {
    struct Frame {
      std::uint32_t node;
      std::size_t next;
    };
    std::vector<std::vector<std::uint32_t>> components;  // in reverse topological order
    std::vector<std::uint32_t> stack;
    std::vector<Frame> calls;
    if (index_.size() < graph_.blocks.size()) {
      index_.resize(graph_.blocks.size());
      low_.resize(graph_.blocks.size());
      on_stack_.resize(graph_.blocks.size());
    }
    for (const std::uint32_t n : nodes) index_[n] = 0;
    std::uint32_t counter = 0;
    const auto visit = [&](std::uint32_t n) {
      index_[n] = low_[n] = ++counter;
      stack.push_back(n);
      on_stack_[n] = true;
      calls.push_back({n, 0});
    };
    for (const std::uint32_t start : nodes) {
      if (index_[start] != 0) continue;
      visit(start);
      while (!calls.empty()) {
        Frame& f = calls.back();
        const std::uint32_t n = f.node;
        const std::vector<std::uint32_t>& successors = graph_.blocks[n].successors;
        if (f.next < successors.size()) {
          const std::uint32_t s = successors[f.next++];
          if (region_[s] != region) continue;
          if (index_[s] == 0)
            visit(s);
          else if (on_stack_[s])
            low_[n] = std::min(low_[n], index_[s]);
          continue;
        }
        if (low_[n] == index_[n]) {
          std::vector<std::uint32_t> component;
          std::uint32_t m;
          do {
            m = stack.back();
            stack.pop_back();
            on_stack_[m] = false;
            component.push_back(m);
          } while (m != n);
          std::reverse(component.begin(), component.end());  // the head, where it was entered, comes first
          components.push_back(std::move(component));
        }
        calls.pop_back();
        if (!calls.empty()) low_[calls.back().node] = std::min(low_[calls.back().node], low_[n]);
      }
    }
    for (auto c = components.rbegin(); c != components.rend(); ++c) {
      const std::uint32_t head = c->front();
      graph_.order.push_back(head);
      if (c->size() == 1) {
        const auto& s = graph_.blocks[head].successors;
        if (std::find(s.begin(), s.end(), head) != s.end()) graph_.loops.push_back({head});
        continue;
      }
      graph_.loops.push_back(*c);
      std::vector<std::uint32_t> inner(c->begin() + 1, c->end());
      if (depth >= kMaxDepth) {
        std::sort(inner.begin(), inner.end());
        graph_.order.insert(graph_.order.end(), inner.begin(), inner.end());
        continue;
      }
      const std::uint32_t inner_region = ++regions_;
      for (const std::uint32_t n : inner) region_[n] = inner_region;
      order(inner, inner_region, depth + 1);
    }
  }

  Graph& graph_;
  std::vector<std::uint32_t> region_, index_, low_;
  std::vector<bool> on_stack_;
  std::uint32_t regions_ = 0;
};

}  // namespace

Graph build_graph(const Kernel& kernel) {
  Graph graph;
  const auto n = static_cast<std::uint32_t>(kernel.ops.size());
  std::vector<bool> leader(n + 1);
  leader[0] = true;
  std::vector<std::uint32_t> targets;
  bool next = true;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!ends_block(kernel.ops[i])) continue;
    targets_of(kernel, i, targets, next);
    for (const std::uint32_t t : targets) leader[t] = true;
    leader[i + 1] = true;
  }
  graph.block_of.resize(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (leader[i]) graph.blocks.push_back({i, i, {}});
    graph.blocks.back().end = i + 1;
    graph.block_of[i] = static_cast<std::uint32_t>(graph.blocks.size() - 1);
  }
  for (BasicBlock& b : graph.blocks) {
    targets_of(kernel, b.end - 1, targets, next);
    if (next && b.end < n) targets.push_back(b.end);
    // The later ones first: they end up behind.
    for (const std::uint32_t t : targets) b.successors.push_back(graph.block_of[t]);
    std::sort(b.successors.begin(), b.successors.end(), std::greater<>());
    b.successors.erase(std::unique(b.successors.begin(), b.successors.end()), b.successors.end());
  }
  Order(graph).run();
  return graph;
}

void rank_ops(Kernel& kernel, const Graph& graph) {
  kernel.rank.resize(kernel.ops.size());
  std::uint32_t rank = 0;
  for (const std::uint32_t b : graph.order)
    for (std::uint32_t i = graph.blocks[b].begin; i < graph.blocks[b].end; ++i) kernel.rank[i] = rank++;
}

namespace {

// Whether repeating the op changes nothing: a read, or an atomic of a kind that locks and flags are made of.
bool idempotent(const Kernel& kernel, std::uint32_t i) {
  const Op& op = kernel.ops[i];
  if ((op.flags & kSideEffect) == 0) return true;
  if ((op.flags & kPoll) == 0) return op.run == op_exit || op.run == op_trap;
  const std::string& text = kernel.info[op.info].text;
  for (const char* kind : {".cas", ".exch", ".or", ".and", ".min", ".max"})
    if (text.find(kind) != std::string::npos) return true;
  const auto [first, last] = operand_range(kernel, i);  // atom.add of zero
  for (std::uint32_t k = first; k < last; ++k) {
    const Operand o = kernel.operands[k];
    if (o < 0 && o != kNoOperand && static_cast<std::size_t>(~o) + kLanes <= kernel.constants.size() &&
        kernel.constants[static_cast<std::size_t>(~o)] == 0 && kernel.constants[static_cast<std::size_t>(~o) + 1] == 0)
      return true;
  }
  return false;
}

// Whether the loop can be left only by what its polls read: taint from the destinations of polling ops. One that does
// something beside is at work.
bool waits(const Kernel& kernel, const Graph& graph, const std::vector<std::uint32_t>& loop,
           const DecodedOps& decoded, const std::vector<std::uint32_t>& first_predicate) {
  std::vector<bool> inside(graph.blocks.size());
  std::size_t size = 0;
  bool polls = false;
  for (const std::uint32_t b : loop) {
    inside[b] = true;
    size += graph.blocks[b].end - graph.blocks[b].begin;
    for (std::uint32_t i = graph.blocks[b].begin; i < graph.blocks[b].end; ++i) {
      polls = polls || (kernel.ops[i].flags & kPoll) != 0;
      if (!idempotent(kernel, i)) return false;
    }
  }
  if (!polls || size > 2000) return false;
  std::vector<std::uint32_t> registers;   // tainted virtual slots
  std::vector<std::int32_t> predicates;
  const auto has = [](const auto& v, auto x) { return std::find(v.begin(), v.end(), x) != v.end(); };
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::uint32_t b : loop) {
      for (std::uint32_t i = graph.blocks[b].begin; i < graph.blocks[b].end; ++i) {
        const Op& op = kernel.ops[i];
        const auto [first, last] = operand_range(kernel, i);
        bool tainted = (op.flags & kPoll) != 0;
        std::uint32_t seen = 0;
        for (std::uint32_t k = first; k < last && !tainted; ++k)
          if (is_virtual(kernel.operands[k]) && seen++ >= op.destinations)
            tainted = has(registers, virtual_slot(kernel.operands[k]));
        for (std::uint32_t k = first_predicate[i]; k < first_predicate[i + 1] && !tainted; ++k)
          tainted = decoded.predicates[k].second >= 0 && has(predicates, decoded.predicates[k].second);
        if (!tainted) continue;
        seen = 0;
        for (std::uint32_t k = first; k < last; ++k) {
          if (!is_virtual(kernel.operands[k]) || seen++ >= op.destinations) continue;
          const std::uint32_t slot = virtual_slot(kernel.operands[k]);
          if (!has(registers, slot)) registers.push_back(slot), changed = true;
        }
        for (std::uint32_t k = first_predicate[i]; k < first_predicate[i + 1]; ++k) {
          if (decoded.predicates[k].second >= 0) continue;
          const std::int32_t p = ~decoded.predicates[k].second;
          if (!has(predicates, p)) predicates.push_back(p), changed = true;
        }
      }
    }
  }
  bool leaves = false;
  for (const std::uint32_t b : loop) {
    const BasicBlock& block = graph.blocks[b];
    const Op& last = kernel.ops[block.end - 1];
    bool out = last.run == op_exit || last.run == op_trap;
    for (const std::uint32_t s : block.successors) out = out || !inside[s];
    if (!out) continue;
    leaves = true;
    if (last.guard < 0 || !has(predicates, last.guard)) return false;
  }
  return leaves;
}

}  // namespace

void find_spin_loops(Kernel& kernel, const Graph& graph, const DecodedOps& decoded) {
  const bool any = std::any_of(kernel.ops.begin(), kernel.ops.end(), [](const Op& op) { return op.flags & kPoll; });
  if (!any) return;
  // `predicates` come in the order of ops.
  std::vector<std::uint32_t> first(kernel.ops.size() + 1);
  std::size_t at = 0;
  for (std::size_t i = 0; i < kernel.ops.size(); ++i) {
    first[i] = static_cast<std::uint32_t>(at);
    while (at < decoded.predicates.size() && decoded.predicates[at].first == i) ++at;
  }
  first[kernel.ops.size()] = static_cast<std::uint32_t>(at);
  for (const std::vector<std::uint32_t>& loop : graph.loops) {
    if (!waits(kernel, graph, loop, decoded, first)) continue;
    for (const std::uint32_t b : loop)
      for (std::uint32_t i = graph.blocks[b].begin; i < graph.blocks[b].end; ++i)
        kernel.info[kernel.ops[i].info].in_spin_loop = true;
  }
}

}  // namespace ptxbench::emulator
