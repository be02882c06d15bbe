#include "ptx/names.hpp"

#include <charconv>
#include <string>

namespace ptxbench::ptx {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
constexpr std::size_t kMostDigits = 8;  // of the number in a register's name

}  // namespace

void Names::close_scope() {
  const Scope scope = scopes_.back();
  for (; undo_.size() > scope.undo; undo_.pop_back()) {
    const Undo& undo = undo_.back();
    if (undo.was_there)
      single_[undo.name] = undo.before;
    else
      single_.erase(undo.name);
  }
  for (; range_undo_.size() > scope.range_undo; range_undo_.pop_back()) {
    const RangeUndo& undo = range_undo_.back();
    if (undo.before >= 0)
      innermost_range_[undo.prefix] = undo.before;
    else
      innermost_range_.erase(undo.prefix);
    if (undo.ends_in_digit) --prefixes_with_digit_;
    ranges_.pop_back();
  }
  scopes_.pop_back();
}

const Symbol* Names::declare(std::string_view name, const Symbol& symbol) {
  const auto scope = static_cast<std::uint32_t>(scopes_.size());
  if (find_in_ranges(name) && found_.scope == scope) return &found_.symbol;
  const auto [at, fresh] = single_.try_emplace(name, Entry{symbol, scope});
  if (!fresh) {
    if (at->second.scope == scope) return &at->second.symbol;
    undo_.push_back({name, true, at->second});
    at->second = {symbol, scope};
  } else {
    undo_.push_back({name, false, {}});
  }
  return nullptr;
}

const Symbol* Names::declare_range(std::string_view prefix, std::uint32_t count, const Symbol& first) {
  const auto scope = static_cast<std::uint32_t>(scopes_.size());
  const auto known = innermost_range_.find(prefix);
  const std::int32_t outer = known == innermost_range_.end() ? -1 : known->second;
  if (outer >= 0 && ranges_[static_cast<std::size_t>(outer)].scope == scope)
    return &ranges_[static_cast<std::size_t>(outer)].first;
  // A single name in the way? Only where some single name begins like the range's.
  const auto similar = single_.lower_bound(prefix);
  if (similar != single_.end() && similar->first.substr(0, prefix.size()) == prefix) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string name = std::string(prefix) + std::to_string(i);
      if (const Entry* entry = find_single(name); entry != nullptr && entry->scope == scope)
        return &entry->symbol;
    }
  }
  const bool ends_in_digit = is_digit(prefix.back());
  range_undo_.push_back({prefix, outer, ends_in_digit});
  if (ends_in_digit) ++prefixes_with_digit_;
  innermost_range_[prefix] = static_cast<std::int32_t>(ranges_.size());
  ranges_.push_back({first, count, scope, outer});
  return nullptr;
}

const Names::Entry* Names::find_single(std::string_view name) const {
  const auto at = single_.find(name);
  return at == single_.end() ? nullptr : &at->second;
}

bool Names::find_in_ranges(std::string_view name) {
  if (ranges_.empty()) return false;
  std::size_t digits = 0;
  while (digits < name.size() && digits < kMostDigits && is_digit(name[name.size() - 1 - digits])) ++digits;
  bool found = false;
  // Split as "%r" and "12"; as "%r1" and "2" only where a prefix ends in a digit.
  for (std::size_t n = digits; n > 0; --n) {
    const std::size_t split = name.size() - n;
    if (n < digits && prefixes_with_digit_ == 0 && digits < kMostDigits) break;
    const auto range = innermost_range_.find(name.substr(0, split));
    if (range == innermost_range_.end()) continue;
    std::uint32_t number = 0;
    std::from_chars(name.data() + split, name.data() + name.size(), number);
    for (std::int32_t i = range->second; i >= 0; i = ranges_[static_cast<std::size_t>(i)].outer) {
      const Range& candidate = ranges_[static_cast<std::size_t>(i)];
      if (number >= candidate.count) continue;
      if (!found || candidate.scope > found_.scope) {
        found = true;
        found_ = {candidate.first, candidate.scope};
        found_.symbol.index += number * candidate.first.vector;
      }
      break;
    }
  }
  return found;
}

const Symbol* Names::find(std::string_view name) {
  const Entry* single = find_single(name);
  if (find_in_ranges(name) && (single == nullptr || found_.scope > single->scope)) return &found_.symbol;
  return single == nullptr ? nullptr : &single->symbol;
}

}  // namespace ptxbench::ptx
