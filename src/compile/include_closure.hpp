// Which headers a source can reach, and their text: given to NVRTC, and part of the cache's key.
#pragma once

#include <ptxbench/compile.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// One #include. `begin`..`end` are the offsets of the name with its delimiters.
struct IncludeDirective {
  std::size_t begin = 0, end = 0;
  int line = 0;
  bool quoted = false;    // "x" rather than <x>
  bool computed = false;  // a macro; `name` is its text
  std::string name;
};
// Every #include that the preprocessor could see, and perhaps some that it does not (inside #if 0, or a raw
// string): a superset is what the cache needs. Comments are skipped. Never fails.
std::vector<IncludeDirective> scan_includes(std::string_view text);

// "a/./b/../c" -> "a/c"; nothing for absolute paths and for those that leave the root.
std::optional<std::string> normalise_path(std::string_view path);

// The texts by which includes are answered from memory, in the order of precedence.
struct HeaderPool {
  std::map<std::string, std::string_view, std::less<>> candidate;  // the candidate's files by path
  std::map<std::string, std::string_view, std::less<>> given;      // <launch_plan.h> and the pack's headers
  std::vector<std::string> directories;                            // of the toolkit, on disk
};

// Names under which NVRTC sees files in memory, so that messages and line tables do not depend on the working
// directory: kCandidateRoot + path, kHeaderRoot + name.
inline constexpr std::string_view kCandidateRoot = "/ptxbench/candidate/";
inline constexpr std::string_view kHeaderRoot = "/ptxbench/header/";
// The name that a person knows, of a file as NVRTC or the PTX spells it.
std::string user_path(std::string_view file);

struct IncludeClosure {
  std::string source;                // the translation unit's text, includes rewritten to full names
  std::vector<SourceFile> headers;   // for nvrtcCreateProgram
  std::vector<std::string> on_disk;  // headers of the toolkit that can be reached, full paths (if asked for)
  bool computed = false;             // some #include names a macro: its text is not known
  std::vector<Diagnostic> problems;  // an absolute path, a path that leaves the candidate
};
// `follow_disk`: also read the toolkit's headers for `on_disk`. Reads files; does not throw for unreadable
// ones.
IncludeClosure close_includes(const std::string& path, std::string_view text, const HeaderPool& pool,
                              bool follow_disk);

}  // namespace ptxbench
