// Fenced blocks of a model's reply, and what each is.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

struct ReplyBlock {
  std::string tag;      // the whole info string after the fence
  std::string before;   // the last line with text before the fence, since the block before it
  std::string content;  // lines end in \n
  int line = 0;         // of the fence, 1-based
  bool ended = true;    // false: the reply ended first
};

// Fences of three or more backticks or tildes, at any indentation. A fence with a tag inside of a block of
// the same kind ends that block: models forget to close one, or wrap a whole answer in another.
std::vector<ReplyBlock> find_blocks(std::string_view text);

enum class BlockKind { launch_plan, file, cuda, ptx, solution, diff, other };

// The file name that the reply gives a block, made usable; empty where it gives none.
std::string block_file_name(const ReplyBlock& block);
BlockKind block_kind(const ReplyBlock& block, std::string_view name);
// A path as a source of a candidate may have it: relative, no "..", launch.json at the top.
std::string usable_path(std::string_view path);

}  // namespace ptxbench
