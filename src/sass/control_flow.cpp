#include "sass/control_flow.hpp"

#include "sass/elf.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

namespace ptxbench::sass {
namespace {

constexpr std::size_t kMostInstructions = std::size_t{1} << 18;  // 4 MiB of code
constexpr std::size_t kNone = ~std::size_t{0};

constexpr std::uint32_t kWarpSync = 0x148, kBra = 0x147, kCallAbs = 0x143, kCallRel = 0x144, kBrx = 0x149,
                        kJmp = 0x14a, kJmx = 0x14c, kExit = 0x14d, kRet = 0x150, kBrxu = 0x158, kJmxu = 0x159,
                        kKill = 0x15b, kBpt = 0x15c;

// The instruction that a relative branch goes to; nothing where it leaves the code or lands between
// instructions.
std::optional<std::size_t> target_of(std::size_t at, Word word, std::size_t count) {
  constexpr std::int64_t kSign = std::int64_t{1} << 47;
  std::int64_t upper = static_cast<std::int64_t>(field(word, 34, 48));
  upper = (upper ^ kSign) - kSign;
  if (upper < -(std::int64_t{1} << 32) || upper > std::int64_t{1} << 32) return std::nullopt;
  const std::int64_t words =
      upper * 256 + static_cast<std::int64_t>(field(word, 16, 8));  // of 4 bytes, from the next one
  if (words % 4 != 0) return std::nullopt;
  const std::int64_t target = static_cast<std::int64_t>(at) + 1 + words / 4;
  if (target < 0 || target >= static_cast<std::int64_t>(count)) return std::nullopt;
  return static_cast<std::size_t>(target);
}

enum class Transfer : std::uint8_t { none, branch, indirect, call, call_unknown, collective, exit, ret };

Transfer transfer_of(const Instruction& instruction) {
  const std::uint32_t form = static_cast<std::uint32_t>(field(instruction.word, 9, 3));
  switch (operation_of(instruction.word)) {
    case kBra:
      return Transfer::branch;
    case kBrx:
    case kBrxu:
    case kJmx:
    case kJmxu:
    case kJmp:
      return Transfer::indirect;
    case kCallRel:
      return form == 4 ? Transfer::call : Transfer::call_unknown;
    case kCallAbs:
      return Transfer::call_unknown;
    case kWarpSync:
      return form == 1 ? Transfer::collective : Transfer::none;
    case kExit:
    case kKill:
      return Transfer::exit;
    case kRet:
      return Transfer::ret;
    default:
      return Transfer::none;
  }
}

bool conditional(const Instruction& instruction) {
  if (instruction.operands.guard || instruction.operands.never) return true;
  switch (operation_of(instruction.word)) {
    case kBra:  // a second predicate, a uniform one, or whether the warp has diverged
      return field(instruction.word, 32, 2) != 0 || field(instruction.word, 87, 4) != kPredicateTrue;
    case kBrx:
    case kBrxu:
    case kJmx:
    case kJmxu:
    case kExit:
    case kKill:
      return field(instruction.word, 87, 4) != kPredicateTrue;
    default:
      return false;
  }
}

}  // namespace

Result<ControlFlow> ControlFlow::build(int sm, std::span<const std::uint8_t> code) {
  const std::size_t count = code.size() / 16;
  if (count > kMostInstructions)
    return make_error(ErrorCode::invalid_argument, "the kernel's code has " + std::to_string(count) +
                                                       " instructions; up to " +
                                                       std::to_string(kMostInstructions) + " are analysed");
  ControlFlow flow;
  flow.sm_ = sm;
  flow.instructions_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    Instruction& instruction = flow.instructions_[i];
    instruction.word = {elf::read64(code, 16 * i), elf::read64(code, 16 * i + 8)};
    instruction.row = find_row(sm, instruction.word);
    instruction.operands = operands_of(sm, instruction.word, instruction.row);
  }
  if (count != 0) {
    flow.find_blocks();
    flow.connect();
    flow.find_post_dominators();
  }
  return flow;
}

void ControlFlow::find_blocks() {
  const std::size_t count = instructions_.size();
  std::vector<bool> leader(count, false);
  leader[0] = true;
  for (std::size_t i = 0; i < count; ++i) {
    const Transfer transfer = transfer_of(instructions_[i]);
    if (transfer == Transfer::none) continue;
    if (i + 1 < count) leader[i + 1] = true;
    if (transfer == Transfer::branch || transfer == Transfer::call || transfer == Transfer::collective)
      if (const auto target = target_of(i, instructions_[i].word, count)) leader[*target] = true;
  }
  block_of_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (leader[i]) {
      blocks_.emplace_back();
      blocks_.back().first = i;
    }
    BasicBlock& block = blocks_.back();
    block.last = i;
    block_of_[i] = blocks_.size() - 1;
    if (operation_of(instructions_[i].word) == kBpt && !conditional(instructions_[i])) block.traps = true;
  }
}

void ControlFlow::connect() {
  const std::size_t count = instructions_.size();
  std::set<std::size_t> called;
  std::vector<std::size_t> indirect, unknown_calls;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    BasicBlock& block = blocks_[b];
    const Instruction& last = instructions_[block.last];
    const Transfer transfer = transfer_of(last);
    const auto target = target_of(block.last, last.word, count);
    bool falls = true;
    switch (transfer) {
      case Transfer::none:
      case Transfer::call_unknown:
        if (transfer == Transfer::call_unknown) unknown_calls.push_back(b);
        break;
      case Transfer::branch:
        if (target) block.successors.push_back(block_of_[*target]);
        falls = conditional(last);
        break;
      case Transfer::collective:
        if (target) block.successors.push_back(block_of_[*target]);
        break;
      case Transfer::call:
        if (target) {
          block.callees.push_back(block_of_[*target]);
          called.insert(block_of_[*target]);
        }
        break;
      case Transfer::indirect:
        indirect.push_back(b);
        falls = conditional(last);
        break;
      case Transfer::exit:
        falls = conditional(last);
        break;
      case Transfer::ret:
        block.returns = true;
        falls = conditional(last);
        break;
    }
    if (falls && b + 1 < blocks_.size()) block.successors.push_back(b + 1);
  }
  // Where an indirect jump or call may go to: wherever nothing else does.
  if (!indirect.empty() || !unknown_calls.empty()) {
    std::vector<bool> reached(blocks_.size(), false);
    reached[0] = true;
    for (const BasicBlock& block : blocks_) {
      for (const std::size_t s : block.successors) reached[s] = true;
      for (const std::size_t s : block.callees) reached[s] = true;
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (reached[b]) continue;
      for (const std::size_t i : indirect) blocks_[i].successors.push_back(b);
      for (const std::size_t i : unknown_calls) blocks_[i].callees.push_back(b);
      if (!unknown_calls.empty()) called.insert(b);
    }
  }
  remove_traps();
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    for (const std::size_t s : blocks_[b].successors) blocks_[s].predecessors.push_back(b);
  entries_.push_back(0);
  for (const std::size_t b : called)
    if (b != 0) entries_.push_back(b);

  flow_.resize(blocks_.size());
  for (std::size_t b = 0; b < blocks_.size(); ++b) flow_[b] = blocks_[b].successors;
  for (const std::size_t entry : called) {
    std::vector<std::size_t> ends;
    for (const std::size_t b : function(entry))
      if (blocks_[b].returns) ends.push_back(b);
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const auto& callees = blocks_[b].callees;
      if (std::find(callees.begin(), callees.end(), entry) == callees.end()) continue;
      flow_[b].push_back(entry);
      for (const std::size_t end : ends)
        for (const std::size_t s : blocks_[b].successors) flow_[end].push_back(s);
    }
  }
}

// A run that traps is none that we explain: nothing goes to where it would, be it behind a call or on every
// way from there.
void ControlFlow::remove_traps() {
  const auto traps = [&](std::size_t b) { return blocks_[b].traps; };
  for (bool changed = true; changed;) {
    changed = false;
    for (BasicBlock& block : blocks_) {
      if (block.traps) continue;
      const bool went_on = !block.successors.empty();
      std::erase_if(block.successors, traps);
      const Transfer transfer = transfer_of(instructions_[block.last]);
      const bool calls =
          !block.callees.empty() && std::all_of(block.callees.begin(), block.callees.end(), traps);
      if (calls ||
          (went_on && block.successors.empty() && transfer != Transfer::exit && transfer != Transfer::ret))
        block.traps = changed = true;
    }
  }
  for (BasicBlock& block : blocks_) {
    if (block.traps) block.successors.clear();
    std::sort(block.successors.begin(), block.successors.end());
    block.successors.erase(std::unique(block.successors.begin(), block.successors.end()),
                           block.successors.end());
  }
}

std::vector<std::size_t> ControlFlow::function(std::size_t entry) const {
  std::vector<bool> seen(blocks_.size(), false);
  std::vector<std::size_t> found = {entry};
  seen[entry] = true;
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const std::size_t s : blocks_[found[i]].successors)
      if (!seen[s]) {
        seen[s] = true;
        found.push_back(s);
      }
  return found;
}

// Cooper, Harvey and Kennedy's iteration on the reversed graph, whose root is the end.
void ControlFlow::find_post_dominators() {
  const std::size_t count = blocks_.size(), end = count;
  // Every block must reach the end: where none does (a loop for ever), one of them is taken to.
  std::vector<bool> to_end(count, false), reaches(count, false);
  std::vector<std::size_t> work;
  const auto reach = [&] {
    while (!work.empty()) {
      const std::size_t b = work.back();
      work.pop_back();
      for (const std::size_t p : blocks_[b].predecessors)
        if (!reaches[p]) {
          reaches[p] = true;
          work.push_back(p);
        }
    }
  };
  const auto start = [&](std::size_t b) {
    to_end[b] = reaches[b] = true;
    work.push_back(b);
  };
  for (std::size_t b = 0; b < count; ++b) {
    const Transfer transfer = transfer_of(instructions_[blocks_[b].last]);
    if (blocks_[b].successors.empty() || transfer == Transfer::exit || transfer == Transfer::ret) start(b);
  }
  reach();
  for (std::size_t b = count; b-- > 0;)
    if (!reaches[b]) {
      start(b);
      reach();
    }

  std::vector<std::size_t> order,
      number(count + 1, kNone);  // reverse postorder of the reversed graph, the end first
  std::vector<std::pair<std::size_t, std::size_t>> stack;
  std::vector<bool> seen(count, false);
  std::vector<std::size_t> ends;
  for (std::size_t b = 0; b < count; ++b)
    if (to_end[b]) ends.push_back(b);
  for (const std::size_t root : ends) {
    if (seen[root]) continue;
    seen[root] = true;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto& [b, next] = stack.back();
      if (next < blocks_[b].predecessors.size()) {
        const std::size_t p = blocks_[b].predecessors[next++];
        if (!seen[p]) {
          seen[p] = true;
          stack.emplace_back(p, 0);
        }
      } else {
        order.push_back(b);
        stack.pop_back();
      }
    }
  }
  order.push_back(end);
  std::reverse(order.begin(), order.end());
  for (std::size_t i = 0; i < order.size(); ++i) number[order[i]] = i;

  post_dominator_.assign(count + 1, kNone);
  post_dominator_[end] = end;
  const auto meet = [&](std::size_t a, std::size_t b) {
    while (a != b) {
      while (number[a] > number[b]) a = post_dominator_[a];
      while (number[b] > number[a]) b = post_dominator_[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::size_t b : order) {
      if (b == end) continue;
      std::size_t found = to_end[b] ? end : kNone;
      for (const std::size_t s : blocks_[b].successors)
        if (post_dominator_[s] != kNone) found = found == kNone ? s : meet(found, s);
      if (found != kNone && post_dominator_[b] != found) {
        post_dominator_[b] = found;
        changed = true;
      }
    }
  }
}

bool ControlFlow::decided_by(std::size_t branch, std::vector<bool>& decided, std::uint64_t& budget) const {
  const std::size_t end = blocks_.size(), stop = post_dominator_[branch];
  for (const std::size_t successor : blocks_[branch].successors)
    for (std::size_t b = successor; b != stop && b != end && b != kNone; b = post_dominator_[b]) {
      if (budget == 0) return false;
      --budget;
      decided[b] = true;
    }
  return true;
}

std::vector<std::size_t> ControlFlow::innermost_loop(std::size_t block) const {
  // The shortest way back to the block; then all that lies on ways of at most that length.
  const auto distances = [&](bool forward) {
    std::vector<std::size_t> distance(blocks_.size(), kNone);
    std::vector<std::size_t> queue;
    const auto next = [&](std::size_t b) -> const std::vector<std::size_t>& {
      return forward ? blocks_[b].successors : blocks_[b].predecessors;
    };
    const auto visit = [&](std::size_t from, std::size_t at) {
      for (const std::size_t n : next(from))
        if (distance[n] == kNone) {
          distance[n] = at;
          queue.push_back(n);
        }
    };
    visit(block, 1);
    for (std::size_t i = 0; i < queue.size(); ++i)
      if (queue[i] != block) visit(queue[i], distance[queue[i]] + 1);
    return distance;
  };
  const std::vector<std::size_t> from = distances(true), to = distances(false);
  std::vector<std::size_t> loop;
  if (from[block] == kNone) return loop;
  loop.push_back(block);
  for (std::size_t b = 0; b < blocks_.size(); ++b)
    if (b != block && from[b] != kNone && to[b] != kNone && from[b] + to[b] == from[block]) loop.push_back(b);
  return loop;
}

}  // namespace ptxbench::sass
