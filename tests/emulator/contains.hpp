// CHECK_HAS(text, Contains("a") && Contains("b")): what Catch2 2 and 3 call differently.
#pragma once

#include "support/catch.hpp"

#include <string>
#include <utility>
#include <vector>

namespace ptxbench::testing {

struct Contains {
  explicit Contains(std::string part) : parts{std::move(part)} {}
  Contains operator&&(const Contains& other) const {
    Contains both = *this;
    both.parts.insert(both.parts.end(), other.parts.begin(), other.parts.end());
    return both;
  }
  bool in(const std::string& text) const {
    for (const std::string& part : parts)
      if (text.find(part) == std::string::npos) return false;
    return true;
  }
  std::vector<std::string> parts;
};

#define CHECK_HAS(text, what)            \
  do {                                   \
    const std::string has_text_ = text;  \
    INFO(has_text_);                     \
    CHECK((what).in(has_text_));         \
  } while (false)

}  // namespace ptxbench::testing
