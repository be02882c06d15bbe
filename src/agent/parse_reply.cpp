// A candidate out of a model's reply: blocks, then their names, then the choice among them.
#include "agent/reply_blocks.hpp"
#include "core/guard.hpp"
#include "core/json.hpp"

#include <ptxbench/agent.hpp>

#include <algorithm>
#include <set>

namespace ptxbench {
namespace {

constexpr std::size_t kMostReplyBytes = std::size_t{8} << 20;
constexpr std::size_t kMostFiles = 256;

bool is_source(std::string_view path) {
  return path.ends_with(".cu") || path.ends_with(".ptx") || path.ends_with(".cubin");
}

// A block that may become a file of the candidate.
struct File {
  std::string path;
  std::string content;
  int line = 0;
  bool named = false;  // by the reply, not by us
  int plans_before = 0;
};

std::string place(const ReplyBlock& block) {
  std::string text = "the block at line " + std::to_string(block.line);
  if (!block.tag.empty()) text += " (tag \"" + block.tag + "\")";
  return text;
}

// What the plan's steps and globals say of sources; empty where the text is no JSON.
std::set<std::string> named_sources(const std::string& plan) {
  std::set<std::string> names;
  const auto parsed = json::parse(plan);
  if (!parsed) return names;
  for (const char* list : {"steps", "globals"}) {
    const json::Value* items = parsed->root.find(list);
    if (items == nullptr) continue;
    for (const json::Value& item : items->items) {
      const json::Value* source = item.kind == json::Kind::object ? item.find("source") : nullptr;
      if (source != nullptr && source->kind == json::Kind::string) names.insert(source->text);
    }
  }
  return names;
}

// The files of `all` that make the last candidate, the latest of each name. Sources of earlier candidates
// would be modules of their own beside the last one's, so they are left out.
std::vector<File> last_candidate(std::vector<File> all, std::vector<std::string>& notes) {
  int plans = 0;
  for (const File& file : all) plans += file.path == "launch.json" ? 1 : 0;
  const bool plan_first = !all.empty() && all.front().path == "launch.json";
  // Of which candidate a file is part: the plan closes a candidate, or opens it where the reply starts with
  // one.
  const auto group = [&](const File& file) {
    if (plan_first) return file.path == "launch.json" ? file.plans_before + 1 : file.plans_before;
    return std::min(file.plans_before + 1, plans);
  };
  bool last_has_source = false;
  std::string plan;
  for (const File& file : all) {
    if (file.path == "launch.json") plan = file.content;
    if (is_source(file.path) && group(file) == plans) last_has_source = true;
  }
  const std::set<std::string> wanted = named_sources(plan);

  std::vector<File> chosen;
  for (File& file : all) {
    if (plans > 1 && last_has_source && is_source(file.path) && group(file) < plans &&
        wanted.count(file.path) == 0)
      continue;
    const auto same = std::find_if(chosen.begin(), chosen.end(),
                                   [&](const File& other) { return other.path == file.path; });
    if (same == chosen.end())
      chosen.push_back(std::move(file));
    else
      *same = std::move(file);
  }

  // A nameless block beside named sources is a sketch, unless it is all that there is of its kind.
  const bool named =
      std::any_of(chosen.begin(), chosen.end(), [](const File& f) { return f.named && is_source(f.path); });
  std::vector<File> kept;
  for (File& file : chosen) {
    if (named && !file.named && is_source(file.path)) {
      notes.push_back("the block at line " + std::to_string(file.line) +
                      " has no file name and was left out, since other sources are named");
      continue;
    }
    kept.push_back(std::move(file));
  }
  // The plan names one source that is not there, and there is one without a name.
  std::vector<std::string> missing;
  for (const std::string& name : wanted)
    if (std::none_of(kept.begin(), kept.end(), [&](const File& f) { return f.path == name; }))
      missing.push_back(name);
  if (missing.size() == 1) {
    std::vector<File*> nameless;
    for (File& file : kept)
      if (!file.named && is_source(file.path)) nameless.push_back(&file);
    if (nameless.size() == 1) nameless[0]->path = missing[0];
  }
  return kept;
}

std::vector<File> files_of(const std::vector<ReplyBlock>& blocks, std::vector<std::string>& notes) {
  std::vector<File> files;
  int plans = 0;
  const auto add = [&](std::string path, const ReplyBlock& block, bool named) {
    if (files.size() == kMostFiles) return;
    const bool plan = path == "launch.json";
    files.push_back({std::move(path), block.content, block.line, named, plans});
    plans += plan ? 1 : 0;
  };
  for (const ReplyBlock& block : blocks) {
    if (block.content.find_first_not_of(" \t\r\n") == std::string::npos) {
      if (block.ended) notes.push_back(place(block) + " is empty");
      continue;
    }
    const std::string name = block_file_name(block);
    switch (block_kind(block, name)) {
      case BlockKind::launch_plan:
        add("launch.json", block, true);
        break;
      case BlockKind::file:
        add(name, block, true);
        break;
      case BlockKind::cuda:
        add("kernel.cu", block, false);
        break;
      case BlockKind::ptx:
        add("kernel.ptx", block, false);
        break;
      case BlockKind::solution: {
        const auto parsed = json::parse(block.content);
        const json::Value* sources = parsed ? parsed->root.find("sources") : nullptr;
        if (sources == nullptr) break;
        for (const json::Value& source : sources->items) {
          const json::Value* path = source.find("path");
          const json::Value* content = source.find("content");
          if (path == nullptr || content == nullptr) continue;
          ReplyBlock inner = block;
          inner.content = content->text;
          add(usable_path(path->text), inner, true);
        }
        break;
      }
      case BlockKind::diff:
        notes.push_back(place(block) + " is a diff, which is not applied: give whole files");
        break;
      case BlockKind::other:
        notes.push_back(
            place(block) +
            " was not taken: it has no file name, no \"steps\" of a launch plan and no __global__ function");
        break;
    }
  }
  return files;
}

ParsedReply parse(std::string_view text, const Definition& definition, std::string_view name,
                  std::string_view author) {
  ParsedReply out;
  if (text.size() > kMostReplyBytes) {
    out.notes.push_back("the reply is larger than 8 MiB");
    return out;
  }
  const std::vector<ReplyBlock> blocks = find_blocks(text);
  if (blocks.empty()) {
    out.notes.push_back(
        text.find_first_not_of(" \t\r\n") == std::string_view::npos
            ? "the reply is empty"
            : "the reply has no fenced block (```): a candidate's files must be in fenced blocks");
    return out;
  }
  std::vector<std::string> remarks;
  std::vector<File> files = last_candidate(files_of(blocks, remarks), remarks);
  const bool plan =
      std::any_of(files.begin(), files.end(), [](const File& f) { return f.path == "launch.json"; });
  const bool source =
      std::any_of(files.begin(), files.end(), [](const File& f) { return is_source(f.path); });
  if (!plan || !source) {
    std::string there;
    for (const File& file : files) there += (there.empty() ? "" : ", ") + file.path;
    if (there.empty()) there = "none of its files";
    if (!plan && !source)
      out.notes.push_back("the reply has neither a launch.json nor a source (.cu or .ptx); found: " + there);
    else if (!plan)
      out.notes.push_back(
          "the launch.json is missing: no block is named launch.json or is JSON with \"steps\"; found: " +
          there);
    else
      out.notes.push_back(
          "the source is missing: no block is named *.cu or *.ptx or has a __global__ function; found: " +
          there);
    out.notes.insert(out.notes.end(), remarks.begin(), remarks.end());
    return out;
  }

  Solution solution;
  solution.name = std::string(name);
  solution.definition = definition.name;
  solution.author = author.empty() ? "model" : std::string(author);
  solution.spec.language = "cuda";
  solution.spec.target_hardware = {"cuda"};
  solution.spec.entry_point = "launch.json::run";
  std::stable_sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::pair(a.path != "launch.json", std::string_view(a.path)) <
           std::pair(b.path != "launch.json", std::string_view(b.path));
  });
  for (File& file : files) solution.sources.push_back({std::move(file.path), std::move(file.content)});
  Result<Solution> checked = make_solution(std::move(solution));
  if (checked)
    out.candidate = std::move(*checked);
  else
    out.notes.push_back("the files make no candidate: " + checked.error().to_string());
  out.notes.insert(out.notes.end(), remarks.begin(), remarks.end());
  return out;
}

}  // namespace

ParsedReply parse_reply(std::string_view text, const Definition& definition, std::string_view name,
                        std::string_view author) {
  Result<ParsedReply> parsed =
      guarded([&]() -> Result<ParsedReply> { return parse(text, definition, name, author); });
  if (parsed) return std::move(*parsed);
  ParsedReply failed;
  failed.notes.push_back("the reply could not be read: " + parsed.error().message);
  return failed;
}

}  // namespace ptxbench
