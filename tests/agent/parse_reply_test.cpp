#include "agent/support.hpp"
#include "support/catch.hpp"

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// "launch.json gemm.cu" with their first words, or the first note.
std::string files(const std::string& text) {
  const ParsedReply reply = parse_reply(text, *task(), "t");
  if (!reply.candidate) return "none: " + (reply.notes.empty() ? std::string("NO NOTE") : reply.notes[0]);
  std::string out;
  for (const SourceFile& file : reply.candidate->sources) out += (out.empty() ? "" : " ") + file.path;
  return out;
}

std::string content(const std::string& text, const std::string& path) {
  const ParsedReply reply = parse_reply(text, *task(), "t");
  const SourceFile* file = reply.candidate ? reply.candidate->find_source(path) : nullptr;
  return file == nullptr ? "" : file->content;
}

const std::string kPlan = "{\"version\": 1, \"steps\": []}\n";
const std::string kJson = "```json\n" + kPlan + "```\n";
const std::string kKernel = "__global__ void k() {}\n";

std::string with_crlf(std::string text) {
  for (std::size_t i = 0; (i = text.find('\n', i)) != std::string::npos; i += 2) text.replace(i, 1, "\r\n");
  return text;
}

}  // namespace

TEST_CASE("replies in many styles") {
  struct Row {
    const char* what;
    std::string text, files;
  };
  const Row rows[] = {
      {"names in bold", kReply, "launch.json scale.cu"},
      {"CRLF", with_crlf(kReply), "launch.json scale.cu"},
      {"no names at all", kJson + "```cuda\n" + kKernel + "```\n", "launch.json kernel.cu"},
      {"no tags", "```\n" + kPlan + "```\n```\n" + kKernel + "```\n", "launch.json kernel.cu"},
      {"any tag", "```JSON5\n" + kPlan + "```\n```whatever\n" + kKernel + "```\n", "launch.json kernel.cu"},
      {"tildes", "~~~json\n" + kPlan + "~~~\n~~~c++\n" + kKernel + "~~~\n", "launch.json kernel.cu"},
      {"longer fences", "`````json\n" + kPlan + "`````\n````cu\n// ```\n" + kKernel + "````\n",
       "launch.json kernel.cu"},
      {"headings", "### `launch.json`\n" + kJson + "### gemm.cu\n\n```cpp\n" + kKernel + "```\n",
       "gemm.cu launch.json"},
      {"File:", "File: launch.json\n" + kJson + "File: src/gemm.cu\n```cpp\n" + kKernel + "```\n",
       "launch.json src/gemm.cu"},
      {"a sentence", kJson + "Here is the corrected `gemm.cu`:\n```cpp\n" + kKernel + "```\n",
       "launch.json gemm.cu"},
      {"tag with a name", "```json launch.json\n" + kPlan + "```\n```cuda gemm.cu\n" + kKernel + "```\n",
       "launch.json gemm.cu"},
      {"tag with a colon", "```cuda:gemm.cu\n" + kKernel + "```\n" + kJson, "launch.json gemm.cu"},
      {"tag with title", "```cuda title=\"gemm.cu\"\n" + kKernel + "```\n" + kJson, "launch.json gemm.cu"},
      {"name in a comment", kJson + "```cuda\n// gemm.cu: the kernel\n" + kKernel + "```\n",
       "launch.json gemm.cu"},
      {"name in a comment, labelled", kJson + "```cuda\n/* File: gemm.cu */\n" + kKernel + "```\n",
       "launch.json gemm.cu"},
      {"a comment that only speaks of a file",
       kJson + "```cuda\n// like gemm.cu but faster\n" + kKernel + "```\n", "launch.json kernel.cu"},
      {"includes are no names", kJson + "It includes `ptx/tma.cuh`:\n```cuda\n" + kKernel + "```\n",
       "launch.json kernel.cu"},
      {"in a list",
       "1. plan\n   ```json\n   " + kPlan + "   ```\n2. code\n   ```cuda\n   " + kKernel + "   ```\n",
       "launch.json kernel.cu"},
      {"last fence does not end", kJson + "```cuda\n" + kKernel, "launch.json kernel.cu"},
      {"a fence in the middle does not end", "```json\n" + kPlan + "```cuda\n" + kKernel + "```\n",
       "launch.json kernel.cu"},
      {"a fence around all of it",
       "```markdown\n**launch.json**\n" + kJson + "**a.cu**\n```cuda\n" + kKernel + "```\n```\n",
       "launch.json a.cu"},
      {"a header too",
       kJson + "**common.cuh**\n```cuda\n#pragma once\n```\n**a.cu**\n```cuda\n" + kKernel + "```\n",
       "launch.json a.cu common.cuh"},
      {"PTX", kJson + "```ptx\n.version 8.0\n.visible .entry k() { ret; }\n```\n", "launch.json kernel.ptx"},
      {"plan by another name", "**plan.json**\n" + kJson + "```cuda\n" + kKernel + "```\n",
       "launch.json kernel.cu"},
      {"plan in a folder",
       "**candidate/launch.json**\n" + kJson + "**candidate/k.cu**\n```cuda\n" + kKernel + "```\n",
       "launch.json candidate/k.cu"},
      {"a malformed plan is the judge's to refuse",
       "```json\n{\"steps\": [,]}\n```\n```cuda\n" + kKernel + "```\n", "launch.json kernel.cu"},
      {"other JSON", "```json\n{\"speedup\": 2}\n```\n" + kJson + "```cuda\n" + kKernel + "```\n",
       "launch.json kernel.cu"},
      {"shell and output",
       "```bash\nnvcc k.cu\n```\n" + kJson + "```cuda\n" + kKernel + "```\n```text\nok\n```\n",
       "launch.json kernel.cu"},
      {"a snippet of code",
       kJson + "```cuda\n" + kKernel + "```\nThe trick:\n```cuda\nptx::wgmma_fence();\n```\n",
       "launch.json kernel.cu"},
      {"a sketch beside named sources",
       kJson + "```cuda\n" + kKernel + "```\n**a.cu**\n```cuda\n" + kKernel + "```\n", "launch.json a.cu"},
      {"paths that lead out",
       "**../../launch.json**\n" + kJson + "**/etc/k.cu**\n```cuda\n" + kKernel + "```\n",
       "launch.json etc/k.cu"},
      {"a solution record",
       "```json\n{\"name\": \"x\", \"sources\": [{\"path\": \"launch.json\", \"content\": \"{}\"}, "
       "{\"path\": \"a.cu\", \"content\": \"x\"}]}\n```\n",
       "launch.json a.cu"},
      {"the plan's name for the only source",
       "```json\n{\"steps\": [{\"kernel\": \"k\", \"source\": \"my.cu\"}]}\n```\n```cuda\n" + kKernel +
           "```\n",
       "launch.json my.cu"},
      {"two whole candidates, plan first",
       kJson + "**a.cu**\n```cuda\n" + kKernel + "```\nBetter:\n" + kJson + "**b.cu**\n```cuda\n" + kKernel +
           "```\n",
       "launch.json b.cu"},
      {"two whole candidates, plan last",
       "**a.cu**\n```cuda\n" + kKernel + "```\n" + kJson + "**b.cu**\n```cuda\n" + kKernel + "```\n" + kJson,
       "launch.json b.cu"},
      {"a second plan for the first source",
       "**a.cu**\n```cuda\n" + kKernel + "```\n" + kJson + "Rather:\n" + kJson, "launch.json a.cu"},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    std::string wanted = row.files == "gemm.cu launch.json" ? "launch.json gemm.cu" : row.files;
    CHECK(files(row.text) == wanted);
  }
}

TEST_CASE("later blocks of a name replace earlier ones, and text is kept as it is") {
  const std::string text = kJson +
                           "**a.cu**\n```cuda\n__global__ void first() "
                           "{}\n```\nNo:\n**a.cu**\n```cuda\n__global__ void second() {}\n```\n";
  CHECK(content(text, "a.cu") == "__global__ void second() {}\n");
  CHECK(content(kReply, "scale.cu") == kKernelText);
  CHECK(content(with_crlf(kReply), "scale.cu") == kKernelText);
  // An indented block loses the fence's indentation and no more.
  CHECK(content(kJson + "  ```cuda\n  __global__ void k() {\n    return;\n  }\n  ```\n", "kernel.cu") ==
        "__global__ void k() {\n  return;\n}\n");
}

TEST_CASE("a reply without a candidate says what is missing") {
  const std::pair<std::string, const char*> rows[] = {
      {"", "the reply is empty"},
      {"I am sorry, I cannot.", "no fenced block"},
      {"Use `__global__` and ``` in a line", "no fenced block"},
      {kJson, "source is missing"},
      {"```cuda\n" + kKernel + "```\n", "launch.json is missing"},
      {"```\n```\n", "neither"},
      {"```python\nprint(1)\n```\n", "neither"},
      {"```", "neither"},
      {"```json\n{\"a\": 1}\n```\n**k.cu**\n```cuda\n" + kKernel + "```\n", "launch.json is missing"},
  };
  for (const auto& [text, words] : rows) {
    INFO(text);
    const ParsedReply reply = parse_reply(text, *task(), "t");
    CHECK_FALSE(reply.candidate);
    REQUIRE_FALSE(reply.notes.empty());
    CHECK(reply.notes[0].find(words) != std::string::npos);
  }
  SECTION("a diff is named as one") {
    const ParsedReply reply =
        parse_reply("```diff\n--- a/k.cu\n+++ b/k.cu\n@@ -1 +1 @@\n```\n", *task(), "t");
    REQUIRE(reply.notes.size() == 2);
    CHECK(reply.notes[1].find("whole files") != std::string::npos);
  }
  SECTION("what is there is listed") {
    CHECK(parse_reply("**a.cu**\n```cuda\n" + kKernel + "```\n", *task(), "t").notes[0].find("a.cu") !=
          std::string::npos);
  }
}

TEST_CASE("the candidate is a solution of the definition") {
  const ParsedReply reply = parse_reply(kReply, *task(), "turn_3", "some-model");
  REQUIRE(reply.candidate);
  CHECK(reply.candidate->name == "turn_3");
  CHECK(reply.candidate->author == "some-model");
  CHECK(reply.candidate->definition == "scale");
  CHECK(reply.candidate->spec.entry_point == "launch.json::run");
  CHECK(reply.notes.empty());
}

TEST_CASE("the scripted form of every example candidate comes back whole") {
  const std::string root = std::string(PTXBENCH_SOURCE_DIR) + "/examples/data/candidates";
  const auto model = ScriptedModel::load(root);
  REQUIRE(model);
  REQUIRE((*model)->size() == 4);
  for (int i = 0; i < 4; ++i) {
    const auto reply = (*model)->complete({}, {});
    REQUIRE(reply);
    const ParsedReply parsed = parse_reply(reply->text, *task(), "t");
    REQUIRE(parsed.candidate);
    CHECK(parsed.notes.empty());
    REQUIRE(parsed.candidate->sources.size() == 2);
    bool found = false;
    for (const auto& entry : std::filesystem::directory_iterator(root))
      found = found || read((entry.path() / parsed.candidate->sources[1].path).string()) ==
                           parsed.candidate->sources[1].content;
    CHECK(found);
  }
}
