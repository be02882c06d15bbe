// What a name means where it stands: registers, variables, functions and the labels passed, by nested scopes.
// Where labels lead is apart (labels.hpp), for they may be used before they are defined.
#pragma once

#include "ptx/module.hpp"

#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

namespace ptxbench::ptx {

struct Symbol {
  enum class Kind : std::uint8_t { reg, variable, function, label } kind = Kind::reg;
  bool module_scope = false;
  std::uint8_t vector = 1;  // of a register declared .v2 or .v4: that many registers from `index`
  std::uint32_t index = 0;
  Position where;  // of its declaration
};

// Ordered maps, whose cost no choice of names can spoil. Names are spans of the parsed text.
class Names {
 public:
  void open_scope() { scopes_.push_back({undo_.size(), range_undo_.size()}); }
  void close_scope();
  std::size_t depth() const noexcept { return scopes_.size(); }

  // Null when done, else the symbol of that name that the innermost scope has already.
  const Symbol* declare(std::string_view name, const Symbol& symbol);
  // `%r<100>`: the names %r0 to %r99, for registers from `first.index`. Null when done, else what clashes.
  const Symbol* declare_range(std::string_view prefix, std::uint32_t count, const Symbol& first);
  // Nothing where no scope has the name.
  const Symbol* find(std::string_view name);

 private:
  struct Entry {
    Symbol symbol;
    std::uint32_t scope = 0;  // depth that declared it
  };
  struct Range {
    Symbol first;
    std::uint32_t count = 0, scope = 0;
    std::int32_t outer = -1;  // the range of the same prefix of an enclosing scope, in `ranges_`
  };
  struct Undo {
    std::string_view name;
    bool was_there = false;
    Entry before;
  };
  struct RangeUndo {
    std::string_view prefix;
    std::int32_t before = -1;
    bool ends_in_digit = false;
  };
  struct Scope {
    std::size_t undo, range_undo;
  };

  const Entry* find_single(std::string_view name) const;
  bool find_in_ranges(std::string_view name);  // fills `found_`

  std::map<std::string_view, Entry> single_;
  std::map<std::string_view, std::int32_t> innermost_range_;
  std::vector<Range> ranges_;
  std::vector<Undo> undo_;
  std::vector<RangeUndo> range_undo_;
  std::vector<Scope> scopes_;
  std::size_t prefixes_with_digit_ = 0;  // ranges such as `%r1<10>`, whose names can be split in several ways
  Entry found_;                          // the register of a range that was asked for last
};

}  // namespace ptxbench::ptx
