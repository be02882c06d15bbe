// Steps and their arguments.
#include "plan/read.hpp"

#include <algorithm>
#include <array>

namespace ptxbench::plan {
namespace {

struct ScalarKey {
  std::string_view key;
  ScalarType type;
};
constexpr std::array<ScalarKey, 9> kScalarKeys{{{"i32", ScalarType::i32},
                                                {"u32", ScalarType::u32},
                                                {"i64", ScalarType::i64},
                                                {"u64", ScalarType::u64},
                                                {"f32", ScalarType::f32},
                                                {"f64", ScalarType::f64},
                                                {"bf16", ScalarType::bf16},
                                                {"f16", ScalarType::f16},
                                                {"bool", ScalarType::boolean}}};

Result<std::vector<std::uint8_t>> read_hex(const json::Cursor& at) {
  PTXBENCH_TRY_ASSIGN(const std::string text, at.as_nonempty_string());
  std::vector<std::uint8_t> out;
  int digits = 0;
  unsigned byte = 0;
  for (const char c : text) {
    if (c == ' ' || c == '_') continue;
    unsigned digit = 0;
    if (c >= '0' && c <= '9')
      digit = static_cast<unsigned>(c - '0');
    else if (c >= 'a' && c <= 'f')
      digit = static_cast<unsigned>(c - 'a') + 10;
    else if (c >= 'A' && c <= 'F')
      digit = static_cast<unsigned>(c - 'A') + 10;
    else
      return invalid(at, "bytes are hexadecimal digits, two a byte, e.g. \"00ff10\"");
    byte = byte * 16 + digit;
    if (++digits % 2 == 0) {
      out.push_back(static_cast<std::uint8_t>(byte));
      byte = 0;
    }
  }
  if (digits % 2 != 0) return invalid(at, "an odd number of hexadecimal digits: two make a byte");
  if (out.empty()) return invalid(at, "no bytes are here");
  if (out.size() > 65536) return at.error("at most 65536 bytes are allowed", kPlanLimit);
  return out;
}

Result<std::vector<Argument>> read_arguments(const json::Cursor& at, int depth, std::size_t& total);

// The member that says what an argument is; `offset` may stand beside `tensor` and `workspace`.
Result<Argument> read_argument(const json::Cursor& at, int depth, std::size_t& total) {
  if (++total > kMaxArguments)
    return at.error("a kernel has at most " + std::to_string(kMaxArguments) + " arguments, members included",
                    kPlanLimit);
  if (at.kind() != json::Kind::object)
    return invalid(at, "an argument is an object such as {\"tensor\": \"A\"} or {\"i32\": \"M\"}");
  PTXBENCH_TRY(only(at, {"tensor", "workspace", "map", "scalar", "i32", "u32", "i64", "u64", "f32", "f64",
                         "bf16", "f16", "bool", "null", "struct", "bytes", "offset"}));
  PTXBENCH_TRY_ASSIGN(const auto members, at.members());
  std::optional<std::pair<std::string, json::Cursor>> what;
  for (const auto& member : members) {
    if (member.first == "offset") continue;
    if (what)
      return invalid(at, "an argument is exactly one thing, but this one is \"" + what->first + "\" and \"" +
                             member.first + "\"");
    what = member;
  }
  if (!what)
    return invalid(at, "this argument does not say what it is: tensor, workspace, map, scalar, i32, ...");
  const auto& [key, value] = *what;
  Argument out;
  out.pointer = at.pointer();
  PTXBENCH_TRY_ASSIGN(out.offset, read_optional_expression(at, "offset"));
  if (out.offset && key != "tensor" && key != "workspace")
    return invalid(at, "\"offset\" goes with \"tensor\" and \"workspace\" only");
  if (key == "tensor" || key == "workspace" || key == "map" || key == "scalar") {
    out.kind = key == "tensor"      ? Argument::Kind::tensor
               : key == "workspace" ? Argument::Kind::workspace
               : key == "map"       ? Argument::Kind::map
                                    : Argument::Kind::scalar;
    PTXBENCH_TRY_ASSIGN(out.name, value.as_nonempty_string());
    return out;
  }
  if (key == "null") {
    out.kind = Argument::Kind::null;
    PTXBENCH_TRY_ASSIGN(const bool yes, value.as_bool());
    if (!yes) return invalid(value, "a null pointer is written {\"null\": true}");
    return out;
  }
  if (key == "struct") {
    out.kind = Argument::Kind::structure;
    if (depth >= kMaxStructDepth)
      return value.error("structs nest at most " + std::to_string(kMaxStructDepth) + " deep", kPlanLimit);
    PTXBENCH_TRY_ASSIGN(out.members, read_arguments(value, depth + 1, total));
    return out;
  }
  if (key == "bytes") {
    out.kind = Argument::Kind::bytes;
    PTXBENCH_TRY_ASSIGN(out.bytes, read_hex(value));
    return out;
  }
  out.kind = Argument::Kind::number;
  out.type = std::find_if(kScalarKeys.begin(), kScalarKeys.end(), [&k = key](const ScalarKey& s) {
               return s.key == k;
             })->type;
  PTXBENCH_TRY_ASSIGN(out.value, read_expression(value));
  return out;
}

Result<std::vector<Argument>> read_arguments(const json::Cursor& at, int depth, std::size_t& total) {
  PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> items, at.items());
  std::vector<Argument> out;
  for (const json::Cursor& item : items) {
    PTXBENCH_TRY_ASSIGN(Argument argument, read_argument(item, depth, total));
    out.push_back(std::move(argument));
  }
  return out;
}

// Reads `key` of `at` into `out` where it is there.
Result<void> read_extent(const json::Cursor& at, std::string_view key, std::vector<Expression>& out) {
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> found, at.get(key));
  if (!found) return {};
  PTXBENCH_TRY_ASSIGN(out, read_expressions(*found, 1, 3));
  return {};
}

Result<KernelStep> read_kernel(const json::Cursor& at) {
  PTXBENCH_TRY(
      only(at, {"kernel", "as", "source", "grid", "block", "cluster", "shared_bytes", "args", "cooperative",
                "pdl", "cluster_policy", "preferred_cluster", "carveout", "when", "repeat"}));
  KernelStep out;
  PTXBENCH_TRY_ASSIGN(const json::Cursor kernel, at.require("kernel"));
  PTXBENCH_TRY_ASSIGN(out.kernel, kernel.as_nonempty_string());
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> as, at.get("as"));
  if (as) {
    PTXBENCH_TRY_ASSIGN(out.as, read_identifier(*as));
  }
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> source, at.get("source"));
  if (source) {
    PTXBENCH_TRY_ASSIGN(out.source, read_reference(*source));
  }
  PTXBENCH_TRY_ASSIGN(const json::Cursor grid, at.require("grid"));
  PTXBENCH_TRY_ASSIGN(out.grid, read_expressions(grid, 1, 3));
  PTXBENCH_TRY(read_extent(at, "block", out.block));
  PTXBENCH_TRY(read_extent(at, "cluster", out.cluster));
  PTXBENCH_TRY(read_extent(at, "preferred_cluster", out.preferred_cluster));
  PTXBENCH_TRY_ASSIGN(out.shared_bytes, read_optional_expression(at, "shared_bytes"));
  PTXBENCH_TRY_ASSIGN(out.carveout, read_optional_expression(at, "carveout"));
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> args, at.get("args"));
  if (args) {
    std::size_t total = 0;
    PTXBENCH_TRY_ASSIGN(out.arguments, read_arguments(*args, 0, total));
  }
  PTXBENCH_TRY_ASSIGN(out.cooperative, read_optional_bool(at, "cooperative", false));
  PTXBENCH_TRY_ASSIGN(out.pdl, read_optional_bool(at, "pdl", false));
  PTXBENCH_TRY_ASSIGN(const std::optional<json::Cursor> policy, at.get("cluster_policy"));
  if (policy) {
    // CU_CLUSTER_SCHEDULING_POLICY_SPREAD = 1, _LOAD_BALANCING = 2
    PTXBENCH_TRY_ASSIGN(const int word, read_word(*policy, {"spread", "load_balancing"}));
    out.cluster_policy = word + 1;
  }
  return out;
}

Result<MemsetStep> read_memset(const json::Cursor& at) {
  PTXBENCH_TRY(only(at, {"memset", "value", "offset", "elements", "when", "repeat"}));
  MemsetStep out;
  PTXBENCH_TRY_ASSIGN(const json::Cursor to, at.require("memset"));
  PTXBENCH_TRY_ASSIGN(out.to, read_reference(to));
  PTXBENCH_TRY_ASSIGN(const json::Cursor value, at.require("value"));
  PTXBENCH_TRY_ASSIGN(out.value, read_expression(value));
  PTXBENCH_TRY_ASSIGN(out.offset, read_optional_expression(at, "offset"));
  PTXBENCH_TRY_ASSIGN(out.elements, read_optional_expression(at, "elements"));
  return out;
}

Result<CopyStep> read_copy(const json::Cursor& at) {
  PTXBENCH_TRY(only(at, {"copy", "from_offset", "to_offset", "elements", "when", "repeat"}));
  CopyStep out;
  PTXBENCH_TRY_ASSIGN(const json::Cursor copy, at.require("copy"));
  PTXBENCH_TRY_ASSIGN(const std::vector<json::Cursor> names, copy.items());
  if (names.size() != 2)
    return invalid(copy, "expected [FROM, TO], found " + std::to_string(names.size()) + " names");
  PTXBENCH_TRY_ASSIGN(out.from, read_reference(names[0]));
  PTXBENCH_TRY_ASSIGN(out.to, read_reference(names[1]));
  PTXBENCH_TRY_ASSIGN(out.from_offset, read_optional_expression(at, "from_offset"));
  PTXBENCH_TRY_ASSIGN(out.to_offset, read_optional_expression(at, "to_offset"));
  PTXBENCH_TRY_ASSIGN(out.elements, read_optional_expression(at, "elements"));
  return out;
}

}  // namespace

Result<Step> read_step(const json::Cursor& at) {
  if (at.kind() != json::Kind::object) return invalid(at, "a step is an object");
  int forms = 0;
  for (const char* key : {"kernel", "memset", "copy"}) forms += at.value().find(key) != nullptr ? 1 : 0;
  if (forms > 1) return invalid(at, "a step is exactly one of \"kernel\", \"memset\" and \"copy\"");
  if (forms == 0) {
    for (const auto& [name, value] : at.value().members)
      if (const auto near = json::nearest(name, {"kernel", "memset", "copy"}); !near.empty())
        return invalid(at, "unknown member \"" + name + "\"; did you mean \"" + std::string(near) + "\"?");
    return invalid(at, "a step says \"kernel\", \"memset\" or \"copy\"");
  }
  Step out;
  out.pointer = at.pointer();
  if (at.value().find("kernel") != nullptr) {
    PTXBENCH_TRY_ASSIGN(out.what, read_kernel(at));
  } else if (at.value().find("memset") != nullptr) {
    PTXBENCH_TRY_ASSIGN(out.what, read_memset(at));
  } else {
    PTXBENCH_TRY_ASSIGN(out.what, read_copy(at));
  }
  PTXBENCH_TRY_ASSIGN(out.when, read_optional_expression(at, "when"));
  PTXBENCH_TRY_ASSIGN(out.repeat, read_optional_expression(at, "repeat"));
  return out;
}

}  // namespace ptxbench::plan
