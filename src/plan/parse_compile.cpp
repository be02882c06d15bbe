// `compile` and `compile.per_source`, with the list of ptxas options that a plan may give.
#include "plan/read.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace ptxbench::plan {
namespace {

// An option that a plan may hand to ptxas, and the values that it takes: names separated by |, "a..b" for a
// range of integers, or empty where it takes none. What selects the target, names files, adds debug code or
// makes relocatable code is not here. (compile/compile_source.cpp has the same list for its own callers.)
struct PtxasOption {
  std::string_view name;
  std::string_view values;
};
constexpr std::array<PtxasOption, 17> kPtxasOptions{{
    {"-O0", ""},
    {"-O1", ""},
    {"-O2", ""},
    {"-O3", ""},
    {"--opt-level", "0..3"},
    {"--allow-expensive-optimizations", "true|false"},
    {"--def-load-cache", "ca|cg|cs|lu|cv"},
    {"-dlcm", "ca|cg|cs|lu|cv"},
    {"--def-store-cache", "wb|cg|cs|wt"},
    {"-dscm", "wb|cg|cs|wt"},
    {"--force-load-cache", "ca|cg|cs|lu|cv"},
    {"--force-store-cache", "wb|cg|cs|wt"},
    {"--disable-optimizer-constants", ""},
    {"--register-usage-level", "0..10"},
    {"--warn-on-double-precision-use", ""},
    {"--warn-on-local-memory-usage", ""},
    {"--warn-on-spills", ""},
}};

bool takes(std::string_view values, std::string_view value) {
  if (const std::size_t dots = values.find(".."); dots != std::string_view::npos) {
    int least = 0, most = 0, v = 0;
    std::from_chars(values.data(), values.data() + dots, least);
    std::from_chars(values.data() + dots + 2, values.data() + values.size(), most);
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), v);
    return parsed.ec == std::errc() && parsed.ptr == value.data() + value.size() && v >= least && v <= most;
  }
  while (!values.empty()) {
    const std::size_t bar = std::min(values.find('|'), values.size());
    if (values.substr(0, bar) == value) return true;
    values.remove_prefix(std::min(bar + 1, values.size()));
  }
  return false;
}

Result<std::string> read_ptxas_option(const json::Cursor& at) {
  PTXBENCH_TRY_ASSIGN(const std::string text, at.as_nonempty_string());
  const std::size_t equals = std::min(text.find('='), text.size());
  const std::string_view name = std::string_view(text).substr(0, equals);
  const auto* option = std::find_if(kPtxasOptions.begin(), kPtxasOptions.end(),
                                    [&](const PtxasOption& o) { return o.name == name; });
  if (option == kPtxasOptions.end()) {
    std::vector<std::string_view> known;
    for (const PtxasOption& o : kPtxasOptions) known.push_back(o.name);
    return invalid(at, "the ptxas option `" + std::string(name) +
                           "` is not among those that a plan may give" + suggestion(name, known));
  }
  const bool has_value = equals < text.size();
  if (option->values.empty() && has_value) return invalid(at, "`" + std::string(name) + "` takes no value");
  if (!option->values.empty() &&
      (!has_value || !takes(option->values, std::string_view(text).substr(equals + 1))))
    return invalid(at, "`" + std::string(name) + "` is written `" + std::string(name) +
                           "=VALUE` with VALUE one of " + std::string(option->values));
  return text;
}

}  // namespace

Result<CompileFields> read_compile_fields(const json::Cursor& at, bool with_per_source) {
  if (with_per_source) {
    PTXBENCH_TRY(only(at, {"std", "fast_math", "fmad", "ftz", "maxrregcount", "ptx_version", "ptxas_options",
                           "per_source"}));
  } else {
    PTXBENCH_TRY(
        only(at, {"std", "fast_math", "fmad", "ftz", "maxrregcount", "ptx_version", "ptxas_options"}));
  }
  CompileFields out;
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> standard, at.get("std"));
  if (standard) {
    PTXBENCH_TRY_ASSIGN(const int word, read_word(*standard, {"c++17", "c++20"}));
    out.std = word == 0 ? "c++17" : "c++20";
  }
  for (const auto& [key, to] :
       {std::pair{"fast_math", &out.fast_math}, std::pair{"fmad", &out.fmad}, std::pair{"ftz", &out.ftz}}) {
    PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, at.get(key));
    if (!found) continue;
    PTXBENCH_TRY_ASSIGN(*to, found->as_bool());
  }
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> registers, at.get("maxrregcount"));
  if (registers) {
    PTXBENCH_TRY_ASSIGN(const std::int64_t count, registers->as_int());
    if (count < 1 || count > 255)
      return invalid(*registers, "a thread has 1 to 255 registers, not " + std::to_string(count));
    out.maxrregcount = static_cast<int>(count);
  }
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> version, at.get("ptx_version"));
  if (version) {
    PTXBENCH_TRY_ASSIGN(const std::string text, version->as_nonempty_string());
    const auto digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
    const std::size_t dot = text.find('.');
    const bool good = (dot == 1 || dot == 2) && digit(0) && (dot == 1 || digit(1)) &&
                      text.size() == dot + 2 && digit(dot + 1);
    if (!good) return invalid(*version, "a PTX version is written like \"9.0\", not \"" + text + "\"");
    out.ptx_version = text;
  }
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> options, at.get("ptxas_options"));
  if (options) {
    PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> items, options->items());
    out.ptxas_options.emplace();
    for (const json::Cursor& item : items) {
      PTXBENCH_TRY_ASSIGN(std::string option, read_ptxas_option(item));
      out.ptxas_options->push_back(std::move(option));
    }
  }
  return out;
}

}  // namespace ptxbench::plan
