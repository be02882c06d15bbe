#include "support/catch.hpp"

#include <ptxbench/llm.hpp>

#include <filesystem>
#include <fstream>
#include <random>

using namespace ptxbench;
namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("ptxbench-llm-" + std::to_string(std::random_device{}()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
  }
};

std::string next(ChatModel& model) {
  const auto reply = model.complete({}, {});
  return reply ? reply->text : "error: " + reply.error().rule;
}

}  // namespace

TEST_CASE("scripted replies come in order, and their end is an error of its own") {
  ScriptedModel model({{"a", {}, "stop", "m"}, {"b", ChatUsage{1, 2}, "length", "m"}});
  CHECK(model.size() == 2);
  CHECK(next(model) == "a");
  const auto second = model.complete({}, {});
  REQUIRE(second);
  CHECK(second->usage->output_tokens == 2);
  CHECK(next(model) == "error: script_end");
  const CancelToken cancel;
  cancel.trigger();
  CHECK(model.complete({}, cancel).error().code == ErrorCode::cancelled);
}

TEST_CASE("a JSON-lines script") {
  const auto replies = parse_scripted_replies(
      "{\"text\": \"a\\n\", \"model\": \"x\"}\r\n\n{\"text\": \"b\", \"usage\": {\"input_tokens\": 3, "
      "\"output_tokens\": 4}}\n",
      "s.jsonl");
  REQUIRE(replies);
  REQUIRE(replies->size() == 2);
  CHECK((*replies)[0].model == "x");
  CHECK((*replies)[1].usage->input_tokens == 3);
  CHECK((*replies)[1].model == "scripted");
  const std::pair<const char*, int> bad[] = {
      {"{\"text\": \"a\"}\n{\"txt\": \"b\"}", 2},
      {"{}", 1},
      {"[", 1},
      {"{\"text\": 1}", 1},
      {"{\"text\": \"\", \"usage\": {\"input_tokens\": -1, \"output_tokens\": 0}}", 1}};
  for (const auto& [text, line] : bad) {
    const auto failed = parse_scripted_replies(text, "s.jsonl");
    INFO(text);
    REQUIRE_FALSE(failed);
    CHECK(failed.error().where.line == line);
    CHECK(failed.error().where.file == "s.jsonl");
  }
}

TEST_CASE("scripts from files and folders") {
  Folder folder;
  SECTION("texts, by name") {
    folder.write("2.md", "two");
    folder.write("1.txt", "one");
    folder.write("README", "not a reply");
    const auto model = ScriptedModel::load(folder.path.string());
    REQUIRE(model);
    CHECK(next(**model) == "one");
    CHECK(next(**model) == "two");
    CHECK((*model)->size() == 2);
  }
  SECTION("candidates are shown as a model writes them") {
    folder.write("1_a/launch.json", "{\"steps\": []}");
    folder.write("1_a/a.cu", "// ```\n");
    folder.write("2_b/launch.json", "{}\n");
    folder.write("2_b/b.ptx", ".version 8.0\n");
    const auto model = find_chat_model("scripted:" + folder.path.string());
    REQUIRE(model);
    const std::string first = next(**model);
    CHECK(first.find("**launch.json**\n```json\n{\"steps\": []}\n```\n") != std::string::npos);
    CHECK(first.find("**a.cu**\n````cuda\n// ```\n````\n") !=
          std::string::npos);  // a longer fence than the text's own
    CHECK(next(**model).find("**b.ptx**") != std::string::npos);
    const auto one = ScriptedModel::load((folder.path / "1_a").string());
    REQUIRE(one);
    CHECK((*one)->size() == 1);
  }
  SECTION("neither, or both") {
    CHECK(ScriptedModel::load(folder.path.string()).error().code == ErrorCode::not_found);
    folder.write("1.md", "x");
    folder.write("c/launch.json", "{}");
    CHECK(ScriptedModel::load(folder.path.string()).error().code == ErrorCode::invalid_argument);
  }
  CHECK(ScriptedModel::load("/nonexistent").error().code == ErrorCode::not_found);
}

TEST_CASE("backends by name") {
  CHECK(find_chat_model("gpt").error().message.find("scripted:PATH") != std::string::npos);
  CHECK(find_chat_model("scripted").error().code == ErrorCode::invalid_argument);
  CHECK(find_chat_model("scripted:").error().code == ErrorCode::invalid_argument);
  for (const ChatRole role : {ChatRole::system, ChatRole::user, ChatRole::assistant})
    CHECK(chat_role_from_name(chat_role_name(role)) == role);
  CHECK_FALSE(chat_role_from_name("tool"));
}
