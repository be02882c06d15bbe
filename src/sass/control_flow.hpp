// A kernel's control flow from its machine code: basic blocks, and which blocks a branch decides about.
#pragma once

#include "sass/operands.hpp"

#include <ptxbench/core.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ptxbench::sass {

struct Instruction {
  Word word;
  const OpcodeRow* row = nullptr;  // nullptr: the table lacks it
  Operands operands;
};

struct BasicBlock {
  std::size_t first = 0, last = 0;      // instructions, both included
  std::vector<std::size_t> successors;  // blocks, within the function; a call goes on behind it
  std::vector<std::size_t> predecessors;
  std::vector<std::size_t> callees;  // the blocks that a call may go to
  bool returns = false;              // ends with RET
  bool traps = false;                // a run that comes here does not end
};

class ControlFlow {
 public:
  // Error: the code is larger than we analyse.
  static Result<ControlFlow> build(int sm, std::span<const std::uint8_t> code);

  const std::vector<Instruction>& instructions() const { return instructions_; }
  const std::vector<BasicBlock>& blocks() const { return blocks_; }
  std::size_t block_of(std::size_t instruction) const { return block_of_[instruction]; }
  // Entries: block 0 and those of functions that are called.
  const std::vector<std::size_t>& entries() const { return entries_; }
  // Blocks that may follow where registers are concerned: successors, callees, and where a return goes back
  // to.
  const std::vector<std::vector<std::size_t>>& flow() const { return flow_; }
  // Blocks of the function that begins at `entry`.
  std::vector<std::size_t> function(std::size_t entry) const;

  // Adds to `decided` the blocks that are executed or not as block `branch` ends one way or another (control
  // dependent on it). False where that took more steps than are left of `budget`.
  bool decided_by(std::size_t branch, std::vector<bool>& decided, std::uint64_t& budget) const;

  // Blocks of the smallest loop around `block`, itself included; empty where it is in none.
  std::vector<std::size_t> innermost_loop(std::size_t block) const;

 private:
  void find_blocks();
  void connect();
  void remove_traps();
  void find_post_dominators();

  int sm_ = 0;
  std::vector<Instruction> instructions_;
  std::vector<BasicBlock> blocks_;
  std::vector<std::size_t> block_of_, entries_;
  std::vector<std::vector<std::size_t>> flow_;
  std::vector<std::size_t> post_dominator_;  // of each block; blocks_.size(): the end
};

}  // namespace ptxbench::sass
