#include "compile/diagnostics.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <set>
#include <tuple>

namespace ptxbench {
namespace {

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\v\f");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\v\f") - begin + 1);
}

// The number at the start of `text`, which is advanced; 0 where there is none or it does not fit.
int take_number(std::string_view& text) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::size_t length = static_cast<std::size_t>(end - text.data());
  if (failed != std::errc()) value = 0;
  if (failed == std::errc::invalid_argument || value < 0) {
    length = 0;
    value = 0;
  }
  text.remove_prefix(length);
  return value;
}

// "error   : text" -> severity; `text` becomes what follows the colon.
bool take_severity(std::string_view& text, Severity& severity) {
  constexpr std::pair<std::string_view, Severity> kWords[] = {{"catastrophic error", Severity::error},
                                                              {"error", Severity::error},
                                                              {"fatal", Severity::error},
                                                              {"warning", Severity::warning},
                                                              {"info", Severity::note},
                                                              {"note", Severity::note},
                                                              {"remark", Severity::note},
                                                              {"internal error", Severity::error}};
  for (const auto& [word, meaning] : kWords) {
    if (!text.starts_with(word)) continue;
    std::string_view rest = text.substr(word.size());
    rest = rest.substr(std::min(rest.find_first_not_of(' '), rest.size()));
    std::string_view number;
    if (rest.starts_with('#')) {  // " #177-D"
      const std::size_t colon = rest.find(':');
      if (colon == std::string_view::npos) return false;
      number = rest.substr(0, colon);
      rest = rest.substr(colon);
    }
    if (!rest.starts_with(':')) continue;
    severity = meaning;
    text = trim(rest.substr(1));
    return true;
  }
  return false;
}

// "(C7510) rest" -> code, and the text without it.
std::string take_code(std::string_view& text) {
  if (!text.starts_with("(C")) return {};
  const std::size_t close = text.find(')');
  if (close == std::string_view::npos || close > 8) return {};
  const std::string code(text.substr(1, close - 1));
  if (!std::all_of(code.begin() + 1, code.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
  text = trim(text.substr(close + 1));
  return code;
}

// "... in function 'X'", "in the function 'X'", "for entry function 'X'".
std::string quoted_function(std::string_view text) {
  const std::size_t at = text.find("function '");
  if (at == std::string_view::npos) return {};
  const std::size_t begin = at + 10, end = text.find('\'', begin);
  return end == std::string_view::npos ? std::string() : std::string(text.substr(begin, end - begin));
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> heads) {
  return std::any_of(heads.begin(), heads.end(),
                     [&](std::string_view head) { return text.starts_with(head); });
}

// Resources and noise among ptxas's lines.
bool is_resource(std::string_view text) {
  return starts_with_any(text, {"Compiling entry function", "Function properties for", "Used ",
                                "Compile time", "Overriding "}) ||
         text.ends_with("bytes gmem") || text.find(" bytes gmem,") != std::string_view::npos;
}

bool parse_ptxas(std::string_view line, Diagnostic& out) {
  if (!line.starts_with("ptxas")) return false;
  std::string_view rest = trim(line.substr(5));
  if (rest.starts_with('.')) return true;  // "ptxas         .     0 bytes stack frame"
  int ptx_line = 0;
  if (const std::size_t at = rest.find(", line "); at != std::string_view::npos && at < rest.find(" : ")) {
    std::string_view number = rest.substr(at + 7);
    const int value = take_number(number);
    if (number.starts_with(';') || number.starts_with(' ')) {
      ptx_line = value;
      rest = trim(number.substr(1));
    }
  }
  if (!take_severity(rest, out.severity)) return false;
  if (is_resource(rest) || rest == "Ptx assembly aborted due to errors") return true;
  out.ptx_line = ptx_line;
  out.code = take_code(rest);
  out.function = quoted_function(rest);
  if (out.ptx_line == 0)
    if (const std::size_t at = rest.find("in around line "); at != std::string_view::npos) {
      std::string_view number = rest.substr(at + 15);
      out.ptx_line = take_number(number);
    }
  if (out.severity == Severity::note && rest.find("Potential Performance Loss") != std::string_view::npos)
    out.severity = Severity::warning;
  out.message = std::string(rest);
  return true;
}

// "gemm.cu(12): error: text"; the file may hold parentheses.
bool parse_front_end(std::string_view line, Diagnostic& out) {
  for (std::size_t close = line.find("): "); close != std::string_view::npos;
       close = line.find("): ", close + 1)) {
    const std::size_t open = line.rfind('(', close);
    if (open == std::string_view::npos || open == 0) continue;
    std::string_view number = line.substr(open + 1, close - open - 1);
    const int value = take_number(number);
    if (value == 0 || !number.empty()) continue;
    std::string_view rest = line.substr(close + 3);
    if (!take_severity(rest, out.severity)) continue;
    out.file = std::string(line.substr(0, open));
    out.line = value;
    out.message = std::string(rest);
    return true;
  }
  return false;
}

bool is_noise(std::string_view line) {
  if (starts_with_any(
          line, {"Remark: The warnings can be suppressed", "Compilation terminated", "Error limit reached"}))
    return true;
  return line.find(" detected in the compilation of ") != std::string_view::npos;
}

bool is_caret(std::string_view line) {
  return line.find('^') != std::string_view::npos &&
         line.find_first_not_of(" \t^~") == std::string_view::npos;
}

// The first word of a PTX instruction, without predicate, label or brace.
std::string opcode_of(std::string_view line) {
  line = trim(line);
  while (!line.empty()) {
    if (line.front() == '{' || line.front() == '}' || line.front() == ';') {
      line = trim(line.substr(1));
    } else if (line.front() == '@') {
      const std::size_t space = line.find_first_of(" \t");
      if (space == std::string_view::npos) return {};
      line = trim(line.substr(space));
    } else if (const std::size_t end = line.find_first_of(" \t;,:({");
               end != std::string_view::npos && line[end] == ':' && line.substr(end, 2) != "::") {
      line = trim(line.substr(end + 1));
    } else {
      break;
    }
  }
  std::size_t end = 0;
  while (end < line.size() && (std::isalnum(static_cast<unsigned char>(line[end])) != 0 || line[end] == '.' ||
                               line[end] == '_' || line[end] == ':'))
    ++end;
  return std::string(line.substr(0, end));
}

}  // namespace

std::vector<Diagnostic> parse_compiler_log(std::string_view log) {
  std::vector<Diagnostic> found;
  const std::vector<std::string_view> lines = split_lines(log);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (trim(line).empty() || is_noise(line)) continue;
    Diagnostic diagnostic;
    if (parse_ptxas(line, diagnostic)) {
      if (!diagnostic.message.empty()) found.push_back(std::move(diagnostic));
      continue;
    }
    if (parse_front_end(line, diagnostic)) {
      // Further lines of the message, the source line, the caret, and where a template was instantiated.
      std::string_view previous;
      const auto append = [&](std::string_view more) {
        if (!trim(more).empty()) diagnostic.message += "\n" + std::string(trim(more));
      };
      Diagnostic next;
      while (i + 1 < lines.size() && lines[i + 1].starts_with(' ') && !parse_front_end(lines[i + 1], next) &&
             !is_noise(lines[i + 1])) {
        ++i;
        if (is_caret(lines[i])) {
          // The source line is printed behind two blanks.
          diagnostic.column = std::max(1, static_cast<int>(lines[i].find('^')) - 1);
          previous = {};
          continue;
        }
        append(previous);
        previous = lines[i];
      }
      append(previous);
      found.push_back(std::move(diagnostic));
      continue;
    }
    std::string_view rest = line;
    if (const std::size_t colon = line.find(": ");
        line.starts_with("nvrtc") && colon != std::string_view::npos)
      rest = line.substr(colon + 2);
    Severity severity = Severity::error;
    if (take_severity(rest, severity)) {
      diagnostic.severity = severity;
      diagnostic.message = std::string(rest);
      found.push_back(std::move(diagnostic));
    } else if (line.find("rror") != std::string_view::npos || line.find("atal") != std::string_view::npos) {
      diagnostic.message = std::string(trim(line));
      found.push_back(std::move(diagnostic));
    }
  }
  return found;
}

PtxLineMap::PtxLineMap(std::string_view ptx) : lines_(split_lines(ptx)) {
  for (const std::string_view line : lines_) {
    std::string_view text = trim(line);
    if (!text.starts_with(".file")) continue;
    text = trim(text.substr(5));
    const int number = take_number(text);
    const std::size_t open = text.find('"'), close = text.rfind('"');
    if (open != std::string_view::npos && close > open)
      files_.emplace_back(number, std::string(text.substr(open + 1, close - open - 1)));
  }
}

PtxLineMap::Place PtxLineMap::at(int ptx_line) const {
  Place place;
  if (ptx_line < 1 || static_cast<std::size_t>(ptx_line) > lines_.size()) return place;
  const std::size_t index = static_cast<std::size_t>(ptx_line) - 1;
  place.instruction = std::string(trim(lines_[index]));
  place.opcode = opcode_of(lines_[index]);
  bool asm_known = false, loc_known = false;
  for (std::size_t i = index + 1; i-- > 0;) {
    const std::string_view text = trim(lines_[i]);
    if (!asm_known) {
      if (text.starts_with("// begin inline asm")) {
        asm_known = place.in_asm = true;
      } else if (text.starts_with("// end inline asm")) {
        asm_known = true;
        place.occurrence = 0;
      } else if (i < index && opcode_of(text) == place.opcode) {
        ++place.occurrence;
      }
    }
    if (!loc_known && text.starts_with(".loc")) {
      std::string_view rest = trim(text.substr(4));
      const int file = take_number(rest);
      rest = trim(rest);
      place.line = take_number(rest);
      rest = trim(rest);
      place.column = take_number(rest);
      for (const auto& [number, name] : files_)
        if (number == file) place.file = name;
      loc_known = true;
    }
    const std::size_t entry = text.find(".entry ");
    const std::size_t function = entry != std::string_view::npos ? entry + 7 : text.find(".func ");
    if (function != std::string_view::npos && (text.starts_with('.') || text.starts_with("//") == false)) {
      std::string_view rest = text.substr(entry != std::string_view::npos ? function : function + 6);
      if (trim(rest).starts_with('(')) rest = rest.substr(std::min(rest.find(')') + 1, rest.size()));
      rest = trim(rest);
      place.function = std::string(rest.substr(0, rest.find_first_of(" \t(;")));
      break;
    }
  }
  if (!place.in_asm) place.occurrence = 0;
  return place;
}

void map_to_sources(std::vector<Diagnostic>& diagnostics, std::string_view ptx, const TextOf& text_of) {
  const bool any =
      std::any_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& d) { return d.ptx_line > 0; });
  if (any) {
    const PtxLineMap map(ptx);
    for (Diagnostic& diagnostic : diagnostics) {
      if (diagnostic.ptx_line == 0) continue;
      const PtxLineMap::Place place = map.at(diagnostic.ptx_line);
      if (diagnostic.function.empty()) diagnostic.function = place.function;
      if (place.line == 0) continue;
      diagnostic.file = place.file;
      diagnostic.line = place.line;
      diagnostic.column = place.column;
      if (!place.in_asm || place.opcode.empty()) continue;
      const std::vector<std::string_view> lines = split_lines(text_of(place.file));
      const std::size_t first = static_cast<std::size_t>(place.line) - 1;
      int left = place.occurrence;
      constexpr std::size_t kMostLines = 200;
      for (std::size_t i = first; i < lines.size() && i < first + kMostLines; ++i) {
        for (std::size_t at = lines[i].find(place.opcode); at != std::string_view::npos;
             at = lines[i].find(place.opcode, at + 1)) {
          const char after =
              at + place.opcode.size() < lines[i].size() ? lines[i][at + place.opcode.size()] : ' ';
          if (std::isalnum(static_cast<unsigned char>(after)) != 0 || after == '.' || after == '_') continue;
          if (left-- > 0) continue;
          diagnostic.line = static_cast<int>(i) + 1;
          diagnostic.column = static_cast<int>(at) + 1;
          i = lines.size();
          break;
        }
        // The statement ends here: what follows belongs to another one.
        if (i < lines.size() && trim(lines[i]).ends_with(");")) break;
      }
    }
  }
  // An unrolled loop or a template repeats a message for the same place.
  std::set<std::tuple<Severity, std::string, int, std::string>> seen;
  std::erase_if(diagnostics, [&](const Diagnostic& d) {
    return d.line > 0 && !seen.emplace(d.severity, d.file, d.line, d.message).second;
  });
}

std::string demangle(const std::string& symbol) {
  if (!symbol.starts_with("_Z")) return symbol;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : symbol;
}

}  // namespace ptxbench
