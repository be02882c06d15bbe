#include "core/guard.hpp"
#include "core/json.hpp"

#include <ptxbench/llm.hpp>
#include <ptxbench/trace.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;

Error at(const fs::path& path, std::string message, ErrorCode code = ErrorCode::io) {
  return make_error(code, std::move(message), {path.string(), {}, 0, 0});
}

Result<std::string> read(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return at(path, error.message());
  if (size > kMostBytes) return at(path, "is larger than 64 MiB");
  std::string text(static_cast<std::size_t>(size), '\0');
  std::ifstream in(path, std::ios::binary);
  if (size > 0 && !in.read(text.data(), static_cast<std::streamsize>(size)))
    return at(path, "cannot be read");
  return text;
}

ChatReply reply_of(std::string text) {
  ChatReply reply;
  reply.text = std::move(text);
  reply.finish_reason = "stop";
  reply.model = "scripted";
  return reply;
}

Result<ChatReply> parse_reply_line(const json::Document& document) {
  const json::Cursor root(document);
  PTXBENCH_TRY(root.only({"text", "model", "finish_reason", "usage"}));
  PTXBENCH_TRY_ASSIGN(const json::Cursor text, root.require("text"));
  PTXBENCH_TRY_ASSIGN(std::string words, text.as_string());
  ChatReply reply = reply_of(std::move(words));
  for (const auto& [key, field] :
       {std::pair{"model", &reply.model}, std::pair{"finish_reason", &reply.finish_reason}}) {
    PTXBENCH_TRY_ASSIGN(const auto cursor, root.get(key));
    if (!cursor) continue;
    PTXBENCH_TRY_ASSIGN(*field, cursor->as_string());
  }
  PTXBENCH_TRY_ASSIGN(const auto usage, root.get("usage"));
  if (usage && !usage->is_null()) {
    PTXBENCH_TRY(usage->only({"input_tokens", "output_tokens"}));
    ChatUsage counts;
    for (const auto& [key, field] : {std::pair{"input_tokens", &counts.input_tokens},
                                     std::pair{"output_tokens", &counts.output_tokens}}) {
      PTXBENCH_TRY_ASSIGN(const json::Cursor cursor, usage->require(key));
      PTXBENCH_TRY_ASSIGN(const std::int64_t number, cursor.as_int());
      if (number < 0) return cursor.error("a number of tokens cannot be negative");
      *field = static_cast<std::uint64_t>(number);
    }
    reply.usage = counts;
  }
  return reply;
}

// A fence that does not occur in the text.
std::string fence_for(const std::string& text) {
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  return fence;
}

// A candidate's folder as a model would hand it in.
Result<ChatReply> show_candidate(const fs::path& folder) {
  Definition any;  // a folder takes no more of it than its name
  any.name = "scripted";
  PTXBENCH_TRY_ASSIGN(const Solution solution, load_solution(folder.string(), any));
  std::string text = "My candidate: " + solution.name + ".\n";
  for (const SourceFile& file : solution.sources) {
    const std::string fence = fence_for(file.content);
    text += "\n**" + file.path + "**\n" + fence + (file.path == "launch.json" ? "json" : "cuda") + "\n" +
            file.content;
    if (!file.content.ends_with('\n')) text += "\n";
    text += fence + "\n";
  }
  return reply_of(std::move(text));
}

bool is_candidate(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path / "launch.json", ignored);
}

Result<std::vector<ChatReply>> load_folder(const fs::path& folder) {
  std::vector<ChatReply> replies;
  if (is_candidate(folder)) {
    PTXBENCH_TRY_ASSIGN(ChatReply reply, show_candidate(folder));
    replies.push_back(std::move(reply));
    return replies;
  }
  std::vector<fs::path> texts, candidates;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (is_candidate(path))
      candidates.push_back(path);
    else if (path.extension() == ".md" || path.extension() == ".txt")
      texts.push_back(path);
  }
  if (error) return at(folder, error.message());
  if (!texts.empty() && !candidates.empty())
    return at(folder, "holds both texts of replies and candidates; which comes first is not known",
              ErrorCode::invalid_argument);
  if (texts.empty() && candidates.empty())
    return at(folder, "holds no replies: no .md or .txt files, and no folder with a launch.json",
              ErrorCode::not_found);
  std::sort(texts.begin(), texts.end());
  std::sort(candidates.begin(), candidates.end());
  for (const fs::path& path : texts) {
    PTXBENCH_TRY_ASSIGN(std::string text, read(path));
    replies.push_back(reply_of(std::move(text)));
  }
  for (const fs::path& path : candidates) {
    PTXBENCH_TRY_ASSIGN(ChatReply reply, show_candidate(path));
    replies.push_back(std::move(reply));
  }
  return replies;
}

}  // namespace

Result<std::vector<ChatReply>> parse_scripted_replies(std::string_view text, const std::string& file) {
  return guarded([&]() -> Result<std::vector<ChatReply>> {
    std::vector<ChatReply> replies;
    json::ParseOptions options;
    options.file = file;
    for (int line = 1; !text.empty(); ++line) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view record = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (record.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const auto parsed = json::parse(record, options);
      Result<ChatReply> reply = parsed ? parse_reply_line(*parsed) : Result<ChatReply>(parsed.error());
      if (!reply) {
        Error error = std::move(reply).error();
        error.where.line = line;
        return error;
      }
      replies.push_back(std::move(*reply));
    }
    return replies;
  });
}

Result<std::unique_ptr<ScriptedModel>> ScriptedModel::load(const std::string& path) {
  return guarded([&]() -> Result<std::unique_ptr<ScriptedModel>> {
    std::error_code error;
    std::vector<ChatReply> replies;
    if (fs::is_directory(path, error)) {
      PTXBENCH_TRY_ASSIGN(replies, load_folder(path));
    } else if (!fs::exists(path, error)) {
      return at(path, "there is no such file or folder", ErrorCode::not_found);
    } else {
      PTXBENCH_TRY_ASSIGN(std::string text, read(path));
      if (fs::path(path).extension() == ".jsonl") {
        PTXBENCH_TRY_ASSIGN(replies, parse_scripted_replies(text, path));
      } else {
        replies.push_back(reply_of(std::move(text)));
      }
    }
    return std::make_unique<ScriptedModel>(std::move(replies));
  });
}

Result<ChatReply> ScriptedModel::complete(const ChatRequest&, const CancelToken& cancel) {
  if (cancel.triggered()) return make_error(ErrorCode::cancelled, "cancelled");
  if (next_ == replies_.size())
    return make_error(ErrorCode::not_found,
                      "the script has no more replies than " + std::to_string(replies_.size()), {},
                      std::string(kScriptEnd));
  return guarded([&]() -> Result<ChatReply> { return replies_[next_++]; });
}

}  // namespace ptxbench
