/// @file
/// Language models: one small interface, and the backends that come with ptxbench.
#pragma once

#include <ptxbench/core.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

enum class ChatRole : std::uint8_t { system, user, assistant };
std::string_view chat_role_name(ChatRole role) noexcept;  ///< "system", "user", "assistant"
std::optional<ChatRole> chat_role_from_name(std::string_view name) noexcept;

struct ChatMessage {
  ChatRole role = ChatRole::user;
  std::string content;  ///< UTF-8
};

/// Wishes; a backend may ignore any of them. Nothing = the backend's default.
struct SamplingHints {
  std::optional<double> temperature;
  std::optional<double> top_p;
  std::optional<std::int64_t> max_tokens;  ///< of the reply
  std::optional<std::uint64_t> seed;
};

struct ChatRequest {
  std::vector<ChatMessage> messages;  ///< the whole conversation, oldest first
  SamplingHints sampling;
};

struct ChatUsage {
  std::uint64_t input_tokens = 0;
  std::uint64_t output_tokens = 0;
};

struct ChatReply {
  std::string text;
  std::optional<ChatUsage> usage;
  std::string finish_reason;  ///< the backend's word, e.g. "stop", "length"; may be empty
  std::string model;          ///< what answered
};

/// A model. Implement it for the service of your choice; exceptions must not leave it, and none and no RTTI
/// are needed. An agent calls it from one thread at a time.
class ChatModel {
 public:
  virtual ~ChatModel() = default;
  /// Answers @p request; blocks. Returns ErrorCode::cancelled soon after @p cancel is triggered.
  virtual Result<ChatReply> complete(const ChatRequest& request, const CancelToken& cancel) = 0;
};

/// `rule` of the error that a ScriptedModel gives when its replies are used up.
inline constexpr std::string_view kScriptEnd = "script_end";

/// Gives prepared replies in order, whatever it is asked: for demonstrations, tests and replays.
class ScriptedModel final : public ChatModel {
 public:
  explicit ScriptedModel(std::vector<ChatReply> replies) : replies_(std::move(replies)) {}
  /// From @p path:
  /// - a `.jsonl` file: one object a line, `text` and optionally `model`, `finish_reason`,
  ///   `usage {input_tokens, output_tokens}`; strict;
  /// - any other file: one reply, its text;
  /// - a folder with `.md` or `.txt` files: a reply each, by name;
  /// - a folder of candidate folders (each with a launch.json), or one candidate folder: a reply each, by
  /// name, that
  ///   shows the candidate's files as a model would write them.
  static Result<std::unique_ptr<ScriptedModel>> load(const std::string& path);

  Result<ChatReply> complete(const ChatRequest& request, const CancelToken& cancel) override;
  std::size_t size() const noexcept { return replies_.size(); }  ///< all replies, given or not

 private:
  std::vector<ChatReply> replies_;
  std::size_t next_ = 0;
};

/// The form of a ScriptedModel's `.jsonl`; @p file is used in messages only.
Result<std::vector<ChatReply>> parse_scripted_replies(std::string_view jsonl, const std::string& file = {});

/// A backend by its name with what it needs after a colon: "scripted:PATH". Unknown: ErrorCode::not_found
/// with the names there are.
Result<std::unique_ptr<ChatModel>> find_chat_model(std::string_view spec);

}  // namespace ptxbench
