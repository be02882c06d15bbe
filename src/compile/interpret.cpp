// What the compilers' messages mean for a person: findings, and hints inside messages.
#include "compile/diagnostics.hpp"
#include "compile/headers.hpp"
#include "compile/ptx_forms.hpp"
#include "core/json.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace ptxbench {
namespace {

// Which architectures have an instruction; `plain` says what people need to know beside that.
struct InstructionRow {
  std::string_view prefix;
  std::string_view where;
  std::string_view hint;
};
constexpr std::array kInstructions = {
    InstructionRow{"wgmma", "sm_90a only", "sm_100a has tcgen05.mma instead"},
    InstructionRow{"setmaxnreg", "sm_90a and sm_100a", "not on targets without the `a`"},
    InstructionRow{"tcgen05", "sm_100a only", "sm_90a has wgmma instead"},
    InstructionRow{"tensormap", "sm_90a and sm_100a", "not on targets without the `a`"},
    InstructionRow{"clusterlaunchcontrol", "sm_100 and newer", "sm_90a has none: use a persistent loop"},
    InstructionRow{"st.bulk", "sm_100 and newer", ""},
    InstructionRow{"redux.sync", "sm_80 and newer for integers, sm_100a for f32", ""},
    InstructionRow{"multimem", "sm_90 and newer", ""},
    InstructionRow{"cp.async.bulk", "sm_90 and newer",
                   "its .cta_group, .tile::gather4 and .tile::scatter4 forms need sm_100a"},
};

std::string quoted(std::string_view text, std::string_view head) {
  const std::size_t at = text.find(head);
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + head.size(), end = text.find('\'', begin);
  return end == std::string_view::npos ? std::string() : std::string(text.substr(begin, end - begin));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string place_of(const Diagnostic& d) {
  if (d.line > 0) return d.file + ":" + std::to_string(d.line);
  return d.ptx_line > 0 ? "PTX line " + std::to_string(d.ptx_line) : std::string();
}

void place_json(json::Writer& writer, const Diagnostic& d) {
  if (!d.file.empty()) writer.field("file", d.file);
  if (d.line > 0) writer.field("line", d.line);
  if (d.ptx_line > 0) writer.field("ptx_line", d.ptx_line);
  if (!d.code.empty()) writer.field("code", d.code);
  if (!d.function.empty()) writer.field("function", d.function);
}

// One finding for each (code, function or instruction), with all places in its evidence.
class Findings {
 public:
  void add(std::string code, Severity severity, std::string key, std::string message, const Diagnostic& d) {
    const auto [it, fresh] = index_.try_emplace(code + "\n" + key, entries_.size());
    if (fresh) entries_.push_back({std::move(code), severity, std::move(message), {}});
    entries_[it->second].places.push_back(&d);
  }

  std::vector<Finding> take() {
    std::vector<Finding> out;
    for (Entry& entry : entries_) {
      json::Writer writer;
      writer.begin_object().key("messages").begin_array();
      for (const Diagnostic* d : entry.places) {
        writer.begin_object().field("message", d->message);
        place_json(writer, *d);
        writer.end_object();
      }
      writer.end_array().end_object();
      out.push_back(
          {std::move(entry.code), entry.severity, std::move(entry.message), std::move(writer).str()});
    }
    return out;
  }

 private:
  struct Entry {
    std::string code;
    Severity severity;
    std::string message;
    std::vector<const Diagnostic*> places;
  };
  std::map<std::string, std::size_t> index_;
  std::vector<Entry> entries_;
};

// "Instruction 'wgmma.fence' not supported on .target 'sm_90'", "... cannot be compiled for architecture
// 'sm_100a'", "Feature 'X' requires .target sm_90a or higher".
std::string unsupported_instruction(const std::string& message) {
  if (!contains(message, "not supported on .target") &&
      !contains(message, "cannot be compiled for architecture") && !contains(message, "requires .target") &&
      !contains(message, "not supported for target"))
    return {};
  for (const std::string_view head : {"Instruction '", "Feature '", "Modifier '"})
    if (std::string name = quoted(message, head); !name.empty()) return name;
  return {};
}

std::string architecture_message(const std::string& instruction, const Diagnostic& d, std::string_view arch) {
  std::string target = quoted(d.message, ".target '");
  if (target.empty()) target = quoted(d.message, "architecture '");
  if (target.empty()) target = std::string(arch);
  std::string text = instruction + " is not an instruction of " + target;
  for (const InstructionRow& row : kInstructions) {
    if (!instruction.starts_with(row.prefix)) continue;
    text += ": " + std::string(row.prefix) + " exists on " + std::string(row.where);
    if (!row.hint.empty()) text += " (" + std::string(row.hint) + ")";
    break;
  }
  if (target == "sm_90" || target == "sm_100") text += "; compile for " + target + "a instead of " + target;
  if (const std::string place = place_of(d); !place.empty()) text += "; used at " + place;
  return text;
}

// Adds the PTX line and the nearest form to a message about an instruction that does not exist.
void add_hint(Diagnostic& d, const PtxLineMap& map) {
  const bool unknown = contains(d.message, "Not a name of any known instruction") ||
                       contains(d.message, "Unknown modifier") || contains(d.message, "Illegal modifier") ||
                       contains(d.message, "Unexpected instruction types") ||
                       contains(d.message, "Arguments mismatch for instruction") ||
                       contains(d.message, "Parsing error") || contains(d.message, "syntax error");
  if (!unknown || d.ptx_line == 0) return;
  const PtxLineMap::Place place = map.at(d.ptx_line);
  if (place.instruction.empty()) return;
  d.message += "; the PTX line is `" + place.instruction.substr(0, 200) + "`";
  if (contains(d.message, "Arguments mismatch")) return;  // the form exists
  if (const std::string_view near = nearest_ptx_form(place.opcode); !near.empty())
    d.message += "; the nearest form is " + std::string(near);
}

// A header that is not there.
void add_header_advice(Diagnostic& d) {
  for (const std::string_view head : {"cannot open source file \"", "could not open source file \""}) {
    const std::size_t at = d.message.find(head);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + head.size(), end = d.message.find('"', begin);
    if (end == std::string::npos) continue;
    d.message += "; " + header_advice(std::string_view(d.message).substr(begin, end - begin));
    return;
  }
}

// Host code in a candidate.
void add_host_advice(Diagnostic& d) {
  const bool host = contains(d.message, "identifier \"cudaM") || contains(d.message, "identifier \"cudaF") ||
                    contains(d.message, "identifier \"cudaS") || contains(d.message, "identifier \"cudaG") ||
                    contains(d.message, "identifier \"cudaD") ||
                    contains(d.message, "identifier \"cuTensorMap") ||
                    contains(d.message, "identifier \"cuGet");
  if (host && contains(d.message, "is undefined"))
    d.message +=
        "; a candidate has no host code: allocations, tensor maps and launches belong into launch.json";
}

bool is_serialized(std::string_view code) { return code >= "C7509" && code <= "C7519" && code.size() == 5; }

}  // namespace

std::vector<Finding> interpret_diagnostics(std::vector<Diagnostic>& diagnostics, std::string_view ptx,
                                           std::string_view arch) {
  const PtxLineMap map(ptx);
  Findings findings;
  for (Diagnostic& d : diagnostics) {
    if (d.severity == Severity::error) {
      add_hint(d, map);
      add_header_advice(d);
      add_host_advice(d);
    }
  }
  for (const Diagnostic& d : diagnostics) {
    const std::string function = d.function.empty() ? std::string() : demangle(d.function);
    const std::string in = function.empty() ? std::string() : " in " + function;
    if (std::string instruction = unsupported_instruction(d.message);
        !instruction.empty() && d.severity == Severity::error) {
      const std::string family = instruction.substr(0, instruction.find_first_of(". "));
      findings.add("architecture_instruction", Severity::error, family,
                   architecture_message(instruction, d, arch), d);
    } else if (d.code == "C7508") {
      findings.add("setmaxnreg_ignored", Severity::warning, d.function,
                   "setmaxnreg was ignored" + in +
                       ": the number of registers at entry is not known. Give the kernel "
                       "__launch_bounds__(threads), or "
                       "compile.maxrregcount",
                   d);
    } else if (is_serialized(d.code)) {
      // "warpgroup.arrive is injected ..." costs an instruction; the others take the overlap away.
      const bool injected = contains(d.message, "is injected");
      findings.add(
          "wgmma_serialized", injected ? Severity::note : Severity::warning, d.function + d.code,
          (injected ? "ptxas adds synchronisation to wgmma" : "wgmma is serialised") + in + ": " + d.message,
          d);
    } else if (d.code == "C7602") {
      findings.add("register_budget", Severity::warning, d.function,
                   "the register budget is too small" + in + ": " + d.message +
                       " (65536 registers divided by the threads of a CTA are what each thread can have)",
                   d);
    }
  }
  return findings.take();
}

}  // namespace ptxbench
