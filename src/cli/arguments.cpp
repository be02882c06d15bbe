#include "cli/arguments.hpp"

#include "core/json.hpp"

#include <algorithm>

namespace ptxbench::cli {

bool Arguments::has(std::string_view name) const { return get(name).has_value(); }

std::optional<std::string> Arguments::get(std::string_view name) const {
  std::optional<std::string> value;
  for (const auto& [key, text] : options)
    if (key == name) value = text;
  return value;
}

std::vector<std::string> Arguments::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, text] : options)
    if (key == name) values.push_back(text);
  return values;
}

Result<Arguments> parse_arguments(const std::vector<std::string>& words, const std::vector<OptionSpec>& known) {
  Arguments out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      out.positional.insert(out.positional.end(), words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (word.size() < 2 || word[0] != '-') {
      out.positional.push_back(word);
      continue;
    }
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto spec = std::find_if(known.begin(), known.end(), [&](const OptionSpec& s) { return s.name == name; });
    if (spec == known.end()) {
      std::vector<std::string_view> names;
      for (const OptionSpec& s : known) names.push_back(s.name);
      const std::string_view near = json::nearest(name, names);
      return make_error(ErrorCode::invalid_argument,
                        "unknown option " + name + (near.empty() ? "" : "; did you mean " + std::string(near) + "?"));
    }
    if (!spec->repeats && out.has(name)) return make_error(ErrorCode::invalid_argument, name + " is given twice");
    std::string value;
    if (spec->takes_value) {
      if (equals != std::string::npos) value = word.substr(equals + 1);
      else if (i + 1 < words.size()) value = words[++i];
      else return make_error(ErrorCode::invalid_argument, name + " needs a value");
    } else if (equals != std::string::npos) {
      return make_error(ErrorCode::invalid_argument, name + " takes no value");
    }
    out.options.emplace_back(name, std::move(value));
  }
  return out;
}

}  // namespace ptxbench::cli
