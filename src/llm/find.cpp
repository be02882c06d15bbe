#include "core/guard.hpp"

#include <ptxbench/llm.hpp>

namespace ptxbench {

std::string_view chat_role_name(ChatRole role) noexcept {
  switch (role) {
    case ChatRole::system:
      return "system";
    case ChatRole::user:
      return "user";
    case ChatRole::assistant:
      return "assistant";
  }
  return "user";
}

std::optional<ChatRole> chat_role_from_name(std::string_view name) noexcept {
  for (const ChatRole role : {ChatRole::system, ChatRole::user, ChatRole::assistant})
    if (chat_role_name(role) == name) return role;
  return std::nullopt;
}

Result<std::unique_ptr<ChatModel>> find_chat_model(std::string_view spec) {
  return guarded([&]() -> Result<std::unique_ptr<ChatModel>> {
    const std::size_t colon = spec.find(':');
    const std::string_view name = spec.substr(0, colon);
    if (name != "scripted")
      return make_error(ErrorCode::not_found, "no chat model \"" + std::string(name) +
                                                  "\" comes with ptxbench; there is: scripted:PATH");
    if (colon == std::string_view::npos || colon + 1 == spec.size())
      return make_error(ErrorCode::invalid_argument,
                        "scripted wants the place of its replies: scripted:PATH, a folder or a .jsonl file");
    PTXBENCH_TRY_ASSIGN(std::unique_ptr<ScriptedModel> model,
                        ScriptedModel::load(std::string(spec.substr(colon + 1))));
    return std::unique_ptr<ChatModel>(std::move(model));
  });
}

}  // namespace ptxbench
