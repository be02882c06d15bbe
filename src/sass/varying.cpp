// Which instructions run a different number of times from run to run: those that a branch decides about whose
// predicate comes from something that timing decides.
#include "sass/control_flow.hpp"
#include "sass/kernel_code.hpp"

#include <algorithm>
#include <new>
#include <set>
#include <string>

namespace ptxbench::sass {
namespace {

constexpr std::uint64_t kMostSteps = std::uint64_t{1} << 28;

// Special registers that tell the time, or where the hardware placed the CTA.
bool tells_time(std::uint64_t special) {
  constexpr std::uint64_t kClock = 1, kTicket = 15, kVirtualSm = 67, kClockLow = 80, kGlobalTimerHigh = 83,
                          kPm = 96, kPmEnd = 131;
  return special == kClock || special == kTicket || special == kVirtualSm ||
         (special >= kClockLow && special <= kGlobalTimerHigh) || (special >= kPm && special <= kPmEnd);
}

// Loads that other threads' stores may change at any time: .STRONG and .MMIO, in bits 77 to 80.
bool is_strong_load(Word word) {
  const std::uint64_t order = field(word, 77, 4);
  return (order >= 5 && order <= 8) || order == 10 || order == 12;
}

// What the instruction writes depends on timing, whatever it reads.
bool is_source(const Instruction& instruction) {
  if (instruction.row == nullptr) return false;
  const std::string_view name = instruction.row->mnemonic;
  const Word word = instruction.word;
  const std::uint64_t form = field(word, 9, 3);
  if (instruction.row->family == "atomics") return true;
  if (name == "LD" || name == "LDG") return is_strong_load(word);
  if (name == "SYNCS") return operation_of(word) == 0x1a7 && form == 2;  // PHASECHK
  if (name == "S2R" || name == "S2UR" || name == "CS2R") return tells_time(field(word, 72, 8));
  // They fail until another warp or CTA gives back what they ask for, and the code asks again.
  return name == "USETMAXREG" || (name == "UTCATOMSWS" && form == 2);
}

bool writes_memory(const Instruction& instruction) {
  if (instruction.row == nullptr) return true;
  const std::string_view family = instruction.row->family, name = instruction.row->mnemonic;
  if (family == "atomics" || family == "barrier" || family == "cp_async" || family == "dsmem" ||
      family == "stmatrix" || family == "bulk_copy" || family == "cluster_barrier")
    return true;
  return name == "ST" || name == "STS" || name == "CALL" || name == "UTMALDG";
}

class Analysis {
 public:
  explicit Analysis(const ControlFlow& flow)
      : flow_(flow),
        instructions_(flow.instructions()),
        blocks_(flow.blocks()),
        sources_(instructions_.size(), false),
        guarded_(instructions_.size(), false),
        varies_(blocks_.size(), false),
        walked_(blocks_.size(), false),
        in_(blocks_.size()) {}

  Result<std::vector<std::uint32_t>> run() {
    for (std::size_t i = 0; i < instructions_.size(); ++i) sources_[i] = is_source(instructions_[i]);
    find_polls();
    for (const Instruction& instruction : instructions_)
      if (instruction.row != nullptr && instruction.row->family == "cluster_launch")
        shared_ = true;  // the next CTA's work
    do {
      if (!propagate() || !decide())
        return make_error(ErrorCode::invalid_argument, "the kernel's control flow is larger than we analyse");
    } while (count_in_loops());
    std::vector<std::uint32_t> offsets;
    for (std::size_t i = 0; i < instructions_.size(); ++i)
      if (varies_[flow_.block_of(i)] || guarded_[i]) offsets.push_back(static_cast<std::uint32_t>(16 * i));
    return offsets;
  }

 private:
  // Loads of shared memory do not say that they are volatile. One that reads the same place again and again
  // in a loop that does not write waits for another thread.
  void find_polls() {
    std::uint64_t budget = kMostSteps;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      std::vector<std::size_t> loads;
      for (std::size_t i = blocks_[b].first; i <= blocks_[b].last; ++i)
        if (instructions_[i].row != nullptr &&
            (instructions_[i].row->mnemonic == "LDS" || instructions_[i].row->mnemonic == "LD"))
          loads.push_back(i);
      if (loads.empty()) continue;
      if (budget < blocks_.size()) return;
      budget -= blocks_.size();
      const std::vector<std::size_t> loop = flow_.innermost_loop(b);
      Slots written;
      bool writes = loop.empty();
      for (const std::size_t l : loop)
        for (std::size_t i = blocks_[l].first; i <= blocks_[l].last; ++i) {
          written |= instructions_[i].operands.writes;
          writes = writes || writes_memory(instructions_[i]);
        }
      if (writes) continue;
      for (const std::size_t i : loads)
        if ((instructions_[i].operands.reads & written).none()) sources_[i] = true;
    }
  }

  bool is_tainted(const Operands& operands, const Slots& state) const {
    return (operands.reads & state).any() || (operands.guard && state[*operands.guard]);
  }

  void step(std::size_t i, Slots& state) {
    const Instruction& instruction = instructions_[i];
    const Operands& operands = instruction.operands;
    if (operands.guard && state[*operands.guard]) guarded_[i] = true;
    bool tainted = sources_[i] || is_tainted(operands, state);
    if (instruction.row != nullptr) {
      const std::string_view name = instruction.row->mnemonic;
      const bool passed_on = (operands.stored & state).any();
      if (passed_on && (name == "STS" || name == "ST") && !shared_) shared_ = again_ = true;
      if (passed_on && name == "STL" && !local_) local_ = again_ = true;
      if ((shared_ && (name == "LDS" || name == "LD")) || (local_ && name == "LDL")) tainted = true;
    }
    if (tainted)
      state |= operands.writes;
    else if (!operands.guard && !operands.never)
      state &= ~operands.certain;
  }

  // What the state is where each block begins. False: too many steps.
  bool propagate() {
    do {
      again_ = false;
      std::vector<std::size_t> work;
      std::vector<bool> queued(blocks_.size(), true);
      for (std::size_t b = blocks_.size(); b-- > 0;) work.push_back(b);
      while (!work.empty()) {
        const std::size_t b = work.back();
        work.pop_back();
        queued[b] = false;
        const std::uint64_t size = blocks_[b].last - blocks_[b].first + 1;
        if (budget_ < size) return false;
        budget_ -= size;
        Slots state = in_[b];
        for (std::size_t i = blocks_[b].first; i <= blocks_[b].last; ++i) step(i, state);
        for (const std::size_t s : flow_.flow()[b]) {
          const Slots joined = in_[s] | state;
          if (joined == in_[s]) continue;
          in_[s] = joined;
          if (!queued[s]) {
            queued[s] = true;
            work.push_back(s);
          }
        }
      }
    } while (again_);
    return true;
  }

  // Which blocks vary, given the states. False: too many steps.
  bool decide() {
    std::vector<std::size_t> work;
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      if (walked_[b]) continue;
      Slots state = in_[b];
      for (std::size_t i = blocks_[b].first; i < blocks_[b].last; ++i) step(i, state);
      if (varies_[b] || is_tainted(instructions_[blocks_[b].last].operands, state)) work.push_back(b);
    }
    while (!work.empty()) {
      const std::size_t b = work.back();
      work.pop_back();
      if (walked_[b]) continue;
      walked_[b] = true;
      std::vector<bool> decided(blocks_.size(), false);
      if (budget_ < blocks_.size()) return false;
      budget_ -= blocks_.size();
      if (!flow_.decided_by(b, decided, budget_)) return false;
      if (varies_[b])
        for (const std::size_t callee : blocks_[b].callees)
          for (const std::size_t f : flow_.function(callee)) decided[f] = true;
      for (std::size_t d = 0; d < blocks_.size(); ++d)
        if (decided[d] && !varies_[d]) {
          varies_[d] = true;
          walked_[d] = false;  // its own branches, and the functions that it calls
          work.push_back(d);
        }
    }
    return true;
  }

  // A count of how often a varying block was executed is a number that timing decides. True if there were new
  // ones.
  bool count_in_loops() {
    bool found = false;
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      const Operands& operands = instructions_[i].operands;
      if (sources_[i] || !varies_[flow_.block_of(i)] || (operands.reads & operands.writes).none()) continue;
      sources_[i] = found = true;
    }
    return found;
  }

  const ControlFlow& flow_;
  const std::vector<Instruction>& instructions_;
  const std::vector<BasicBlock>& blocks_;
  std::vector<bool> sources_, guarded_, varies_, walked_;
  std::vector<Slots> in_;
  bool shared_ = false, local_ = false, again_ = false;  // memory that holds what timing decided
  std::uint64_t budget_ = kMostSteps;
};

}  // namespace

Result<std::vector<std::uint32_t>> varying_instructions(std::span<const std::uint8_t> file,
                                                        const Cubin& cubin, const Kernel& kernel) {
  try {
    PTXBENCH_TRY_ASSIGN(const elf::Bytes code, code_of(file, kernel));
    PTXBENCH_TRY_ASSIGN(const ControlFlow flow, ControlFlow::build(cubin.sm, code));
    return Analysis(flow).run();
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "out of memory while following the control flow");
  }
}

}  // namespace ptxbench::sass
