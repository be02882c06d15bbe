#include "compile/include_closure.hpp"

#include "compile/headers.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace ptxbench {
namespace {

bool blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'; }

// Walks over text outside of comments and strings, line by line.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<IncludeDirective> run() {
    bool line_start = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
        line_start = true;
      } else if (blank(c) || skip_continuation()) {
        if (blank(c)) ++at_;
      } else if (skip_comment()) {
        // A comment is white space: what follows may still be the line's first token.
      } else if (c == '#' && line_start) {
        directive();
        line_start = false;
      } else if (c == '"' || c == '\'') {
        skip_literal(c);
        line_start = false;
      } else {
        ++at_;
        line_start = false;
      }
    }
    return std::move(found_);
  }

 private:
  bool skip_continuation() {
    if (text_[at_] != '\\') return false;
    std::size_t next = at_ + 1;
    if (next < text_.size() && text_[next] == '\r') ++next;
    if (next >= text_.size() || text_[next] != '\n') return false;
    at_ = next + 1;
    ++line_;
    return true;
  }

  bool skip_comment() {
    if (text_.substr(at_, 2) == "//") {
      while (at_ < text_.size() && text_[at_] != '\n')
        if (!skip_continuation()) ++at_;
      return true;
    }
    if (text_.substr(at_, 2) != "/*") return false;
    const std::size_t close = std::min(text_.find("*/", at_ + 2), text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(close), '\n'));
    at_ = std::min(close + 2, text_.size());
    return true;
  }

  // A literal ends at its quote or, broken or an apostrophe in a number, at the end of the line.
  void skip_literal(char quote) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n')
      at_ += text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
  }

  void skip_blanks() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (blank(text_[at_]))
        ++at_;
      else if (!skip_continuation() && !(text_.substr(at_, 2) == "/*" && skip_comment()))
        break;
    }
  }

  void directive() {
    ++at_;  // '#'
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalpha(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    if (word != "include" && word != "include_next" && word != "import") return;
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] == '\n') return;
    IncludeDirective include;
    include.line = line_;
    include.begin = at_;
    const char open = text_[at_];
    if (open == '"' || open == '<') {
      const std::size_t close = text_.find_first_of(open == '"' ? "\"\n" : ">\n", at_ + 1);
      if (close == std::string_view::npos || text_[close] == '\n') return;
      include.quoted = open == '"';
      include.name = std::string(text_.substr(at_ + 1, close - at_ - 1));
      include.end = close + 1;
    } else {
      const std::size_t close = std::min(text_.find('\n', at_), text_.size());
      include.computed = true;
      include.name = std::string(text_.substr(at_, close - at_));
      include.end = close;
    }
    at_ = include.end;
    found_.push_back(std::move(include));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<IncludeDirective> found_;
};

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash + 1));
}

bool read_file(const std::string& path, std::string& text) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return false;
  std::ostringstream buffer;
  buffer << in.rdbuf();
  text = std::move(buffer).str();
  return true;
}

enum class Space { candidate, given, virtual_set };

struct Found {
  Space space;
  std::string name;
  std::string_view text;
  std::string full() const {
    return std::string(space == Space::candidate ? kCandidateRoot : kHeaderRoot) + name;
  }
};

class Closure {
 public:
  Closure(const HeaderPool& pool, bool follow_disk) : pool_(pool), follow_disk_(follow_disk) {}

  std::string add(Space space, const std::string& name, std::string_view text) {
    std::string out;
    std::size_t copied = 0;
    for (const IncludeDirective& include : scan_includes(text)) {
      const std::string replacement = resolve(space, name, include);
      if (replacement.empty()) continue;
      out.append(text.substr(copied, include.begin - copied));
      out += "\"" + replacement + "\"";
      copied = include.end;
    }
    out.append(text.substr(copied));
    return out;
  }

  IncludeClosure finish(std::string source) {
    result_.source = std::move(source);
    if (result_.computed) {  // the macro may name anything
      for (const auto& [name, text] : pool_.candidate) include(Found{Space::candidate, name, text}, true);
      for (const auto& [name, text] : pool_.given) include(Found{Space::given, name, text}, true);
      for (const VirtualHeader& h : virtual_headers())
        include(Found{Space::virtual_set, std::string(h.name), h.text}, true);
    }
    return std::move(result_);
  }

 private:
  std::optional<Found> find(Space space, std::string_view from, const IncludeDirective& directive) const {
    std::vector<std::string> names;
    if (directive.quoted)
      if (auto beside = normalise_path(folder_of(from) + directive.name)) names.push_back(std::move(*beside));
    const std::optional<std::string> plain = normalise_path(directive.name);
    if (directive.quoted && !names.empty()) {
      const std::string& name = names.front();
      if (space == Space::candidate)
        if (const auto it = pool_.candidate.find(name);
            it != pool_.candidate.end() && name != "launch_plan.h")
          return Found{Space::candidate, it->first, it->second};
      if (space == Space::given)
        if (const auto it = pool_.given.find(name); it != pool_.given.end())
          return Found{Space::given, it->first, it->second};
    }
    if (!plain) return std::nullopt;
    if (const auto it = pool_.given.find(*plain); it != pool_.given.end() && *plain == "launch_plan.h")
      return Found{Space::given, it->first, it->second};
    if (space == Space::candidate)
      if (const auto it = pool_.candidate.find(*plain); it != pool_.candidate.end())
        return Found{Space::candidate, it->first, it->second};
    if (const auto it = pool_.given.find(*plain); it != pool_.given.end())
      return Found{Space::given, it->first, it->second};
    if (const VirtualHeader* header = find_virtual_header(*plain))
      return Found{Space::virtual_set, std::string(header->name), header->text};
    return std::nullopt;
  }

  // The full name to write instead, or nothing where NVRTC shall look on disk.
  std::string resolve(Space space, const std::string& from, const IncludeDirective& directive) {
    if (directive.computed) {
      if (space == Space::candidate) result_.computed = true;
      return {};
    }
    if (std::optional<Found> found = find(space, from, directive)) {
      include(*found, false);
      return found->full();
    }
    if (space == Space::candidate &&
        (directive.name.starts_with('/') || !normalise_path(folder_of(from) + directive.name)))
      problem(from, directive);
    else
      disk(directive.name, {});
    return {};
  }

  void include(const Found& found, bool plain_name) {
    const std::string full = found.full();
    if (plain_name && names_.insert(found.name).second)
      result_.headers.push_back({found.name, "#include \"" + full + "\"\n"});
    if (!names_.insert(full).second) return;
    std::string text = add(found.space, found.name, found.text);
    result_.headers.push_back({full, std::move(text)});
  }

  // A header of the toolkit. Such headers may include names that are answered from memory, so all of those
  // are given once there is one; they are read only for the cache's key.
  void disk(const std::string& name, const std::string& beside) {
    std::string path;
    std::error_code ignored;
    if (!beside.empty() && std::filesystem::is_regular_file(beside + name, ignored)) path = beside + name;
    for (const std::string& directory : pool_.directories)
      if (path.empty() && std::filesystem::is_regular_file(directory + "/" + name, ignored))
        path = directory + "/" + name;
    if (path.empty() || !seen_.insert(path).second) return;
    for (const VirtualHeader& header : virtual_headers())
      include(Found{Space::virtual_set, std::string(header.name), header.text}, true);
    if (!follow_disk_) return;
    result_.on_disk.push_back(path);
    std::string text;
    if (!read_file(path, text)) return;
    for (const IncludeDirective& directive : scan_includes(text))
      if (!directive.computed) disk(directive.name, directive.quoted ? folder_of(path) : std::string());
  }

  void problem(const std::string& from, const IncludeDirective& directive) {
    Diagnostic diagnostic;
    diagnostic.file = from;
    diagnostic.line = directive.line;
    diagnostic.message =
        "#include \"" + directive.name +
        "\": a candidate includes its own files by their path inside the solution, and headers by name";
    result_.problems.push_back(std::move(diagnostic));
  }

  const HeaderPool& pool_;
  bool follow_disk_;
  IncludeClosure result_;
  std::set<std::string> names_;  // in memory
  std::set<std::string> seen_;   // on disk
};

}  // namespace

std::vector<IncludeDirective> scan_includes(std::string_view text) { return Scanner(text).run(); }

std::optional<std::string> normalise_path(std::string_view path) {
  if (path.empty() || path.front() == '/') return std::nullopt;
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(part);
    } else if (parts.empty()) {
      return std::nullopt;
    } else {
      parts.pop_back();
    }
  }
  std::string out;
  for (const std::string_view part : parts) out += (out.empty() ? "" : "/") + std::string(part);
  if (out.empty()) return std::nullopt;
  return out;
}

std::string user_path(std::string_view file) {
  for (const std::string_view root : {kCandidateRoot, kHeaderRoot})
    if (file.starts_with(root)) return std::string(file.substr(root.size()));
  return std::string(file);
}

IncludeClosure close_includes(const std::string& path, std::string_view text, const HeaderPool& pool,
                              bool follow_disk) {
  Closure closure(pool, follow_disk);
  return closure.finish(closure.add(Space::candidate, path, text));
}

}  // namespace ptxbench
