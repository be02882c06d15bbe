#include "agent/reply_blocks.hpp"

#include "core/json.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

namespace ptxbench {
namespace {

constexpr std::array<std::string_view, 6> kExtensions{".cu", ".cuh", ".h", ".ptx", ".cubin", ".json"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Fence {
  char mark = 0;
  std::size_t length = 0, indent = 0;
  std::string_view info;
};

std::optional<Fence> fence_of(std::string_view line) {
  Fence fence;
  fence.indent = std::min(line.find_first_not_of(" \t"), line.size());
  std::string_view rest = line.substr(fence.indent);
  if (rest.empty() || (rest[0] != '`' && rest[0] != '~')) return std::nullopt;
  fence.mark = rest[0];
  fence.length = std::min(rest.find_first_not_of(fence.mark), rest.size());
  if (fence.length < 3) return std::nullopt;
  fence.info = trimmed(rest.substr(fence.length));
  if (fence.mark == '`' && fence.info.find('`') != fence.info.npos)
    return std::nullopt;  // code within a line
  return fence;
}

bool name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/' ||
         c == '+';
}

bool has_extension(std::string_view word) {
  const std::string low = lower(word);
  return std::any_of(kExtensions.begin(), kExtensions.end(), [&](std::string_view extension) {
    return low.size() > extension.size() && low.ends_with(extension) &&
           low[low.size() - extension.size() - 1] != '/';
  });
}

// Words that are file names, in order.
std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < text.size();) {
    if (!name_character(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && name_character(text[end])) ++end;
    std::string_view word = text.substr(i, end - i);
    while (!word.empty() && word.back() == '.') word.remove_suffix(1);  // the sentence's
    if (has_extension(word)) names.emplace_back(word);
    i = end;
  }
  return names;
}

std::size_t words_in(std::string_view text) {
  std::size_t words = 0;
  bool inside = false;
  for (const char c : text) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    words += letter && !inside ? 1 : 0;
    inside = letter || (inside && name_character(c));
  }
  return words;
}

// "**gemm.cu**", "### gemm.cu", "File: gemm.cu", "Here is the new `gemm.cu`:"; a sentence about a file names
// no block.
std::string name_before(std::string_view line, bool json) {
  if (line.size() > 200) return {};
  const std::string low = lower(line);
  for (const char* word : {"includ", "instead of", "replace", "unlike", "import"})
    if (low.find(word) != std::string::npos) return {};
  std::vector<std::string> fitting;
  for (std::string& name : names_in(line))
    if (lower(name).ends_with(".json") == json) fitting.push_back(std::move(name));
  if (fitting.size() != 1 || words_in(line) > 12) return {};
  return fitting[0];
}

// "// gemm.cu", "/* file: gemm.cu */", "# gemm.cu: the kernel"
std::string name_in_comment(std::string_view content) {
  const std::size_t start = content.find_first_not_of(" \t\r\n");
  if (start == content.npos) return {};
  std::string_view line = content.substr(start, std::min(content.find('\n', start), content.size()) - start);
  if (line.starts_with("//") || line.starts_with("/*"))
    line.remove_prefix(2);
  else if (line.starts_with("#") && !line.starts_with("#include") && !line.starts_with("#pragma") &&
           !line.starts_with("#def") && !line.starts_with("#if"))
    line.remove_prefix(1);
  else
    return {};
  while (!line.empty() && (line.front() == '/' || line.front() == '*' || line.front() == '=' ||
                           line.front() == '-' || line.front() == ' '))
    line.remove_prefix(1);
  const std::string low = lower(line);
  for (const std::string_view label : {"filename:", "file name:", "file:", "path:"})
    if (low.starts_with(label)) {
      line = trimmed(line.substr(label.size()));
      break;
    }
  std::size_t end = 0;
  while (end < line.size() && name_character(line[end])) ++end;
  const std::string_view word = line.substr(0, end);
  return has_extension(word) ? std::string(word) : std::string();
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

bool is_json_object(const std::string& content) {
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string::npos && content[first] == '{';
}

}  // namespace

std::vector<ReplyBlock> find_blocks(std::string_view text) {
  std::vector<ReplyBlock> blocks;
  std::optional<Fence> open;
  ReplyBlock block;
  std::string before;
  const auto close = [&](bool ended) {
    block.ended = ended;
    blocks.push_back(std::move(block));
    block = {};
    open.reset();
    before.clear();
  };
  const auto begin = [&](const Fence& fence, int line) {
    open = fence;
    block.tag = std::string(fence.info);
    block.before = std::move(before);
    block.line = line;
    before.clear();
  };
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::optional<Fence> fence = fence_of(line);
    if (open) {
      const bool same = fence && fence->mark == open->mark && fence->length >= open->length;
      if (same && fence->info.empty()) {
        close(true);
      } else if (same) {
        close(false);
        begin(*fence, number);
      } else {
        const std::size_t own = std::min(line.find_first_not_of(" \t"), line.size());
        line.remove_prefix(std::min(own, open->indent));
        block.content += line;
        block.content += '\n';
      }
    } else if (fence) {
      begin(*fence, number);
    } else if (!trimmed(line).empty()) {
      before = std::string(trimmed(line));
    }
  }
  if (open) close(false);
  return blocks;
}

std::string usable_path(std::string_view path) {
  std::string out;
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (!part.empty() && part != "." && part != "..") out += (out.empty() ? "" : "/") + std::string(part);
    start = end + 1;
  }
  const std::size_t slash = out.rfind('/');
  const std::string base = lower(slash == std::string::npos ? out : out.substr(slash + 1));
  return base == "launch.json" ? base : out;
}

std::string block_file_name(const ReplyBlock& block) {
  const std::vector<std::string> tagged = names_in(block.tag);
  if (!tagged.empty()) return usable_path(tagged.back());
  std::string name = name_before(block.before, is_json_object(block.content));
  if (name.empty()) name = name_in_comment(block.content);
  return usable_path(name);
}

BlockKind block_kind(const ReplyBlock& block, std::string_view name) {
  const std::string tag = lower(block.tag);
  const auto tagged = [&](std::string_view word) {
    return tag == word || (tag.starts_with(word) && !name_character(tag[word.size()]));
  };
  if (tagged("diff") || tagged("patch") ||
      (contains(block.content, "\n@@ ") && block.content.starts_with("--- ")))
    return BlockKind::diff;
  if (name == "launch.json") return BlockKind::launch_plan;
  if (is_json_object(block.content) && (name.empty() || name.ends_with(".json"))) {
    const auto parsed = json::parse(block.content);
    if (parsed) {
      if (parsed->root.find("steps") != nullptr) return BlockKind::launch_plan;
      const json::Value* sources = parsed->root.find("sources");
      if (sources != nullptr && sources->kind == json::Kind::array) return BlockKind::solution;
    } else if (contains(block.content, "\"steps\"")) {
      return BlockKind::launch_plan;  // malformed: the judge says where
    }
    return BlockKind::other;
  }
  if (name.ends_with(".json")) return BlockKind::other;
  if (!name.empty()) return BlockKind::file;
  if (contains(block.content, "__global__")) return BlockKind::cuda;
  if (contains(block.content, ".entry") && contains(block.content, ".version")) return BlockKind::ptx;
  return BlockKind::other;
}

}  // namespace ptxbench
