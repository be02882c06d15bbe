// Command lines: positional arguments, options with values, flags. Strict: an unknown option is an error that
// names the nearest known one.
#pragma once

#include <ptxbench/core.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench::cli {

struct OptionSpec {
  std::string_view name;   // "--json"
  bool takes_value = false;
  bool repeats = false;
};

struct Arguments {
  std::vector<std::string> positional;
  std::vector<std::pair<std::string, std::string>> options;  // in order; a flag's value is empty

  bool has(std::string_view name) const;
  std::optional<std::string> get(std::string_view name) const;       // the last one
  std::vector<std::string> all(std::string_view name) const;
};

// `words` without the command's own name. "--name value" and "--name=value" are the same; "--" ends options.
Result<Arguments> parse_arguments(const std::vector<std::string>& words, const std::vector<OptionSpec>& known);

}  // namespace ptxbench::cli
