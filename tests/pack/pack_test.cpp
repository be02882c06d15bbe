#include "pack/manifest.hpp"
#include "support/catch.hpp"

#include <ptxbench/pack.hpp>

#include <filesystem>
#include <fstream>
#include <random>

using namespace ptxbench;
namespace fs = std::filesystem;

namespace {

const std::string kHopper = std::string(PTXBENCH_SOURCE_DIR) + "/knowledge_packs/hopper";

// A folder that is gone at the end.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("ptxbench-pack-" + std::to_string(std::random_device{}()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name, std::ios::binary) << text;
  }
};

const std::string kManifest = R"json({
  "version": 1, "name": "p", "title": "A pack", "architectures": ["sm_90a"],
  "devices": {"d": {"title": "Device", "names": ["NVIDIA D"], "notes": "d.md",
                    "numbers": [{"name": "SMs", "value": 7, "unit": "1", "source": "its page"}]}},
  "documents": [{"title": "Notes", "file": "notes/a.md"}],
  "launch_plan": {"title": "Plan", "file": "plan.md"},
  "include": "include"
})json";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = kManifest;
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string with_contracts(const std::string& list) {
  return changed("\"include\": \"include\"", "\"include\": \"include\", \"contracts\": " + list);
}

void fill(const Folder& folder, const std::string& manifest = kManifest) {
  folder.write("pack.json", manifest);
  folder.write("d.md", "about d\n");
  folder.write("notes/a.md", "a note\n");
  folder.write("plan.md", "the plan\n");
  folder.write("include/ptx/one.cuh", "// one\n");
  folder.write("include/two.cuh", "// two");
}

DefinitionPtr definition() {
  Definition d;
  d.name = "scale";
  d.op_type = "scale";
  d.axes = {{"M", false, 0, {}}, {"N", true, 64, {}}};
  d.inputs = {{"X", std::vector<std::string>{"M", "N"}, DType::bfloat16, {}},
              {"alpha", std::nullopt, DType::float32, {}}};
  d.outputs = {{"Y", std::vector<std::string>{"M", "N"}, DType::bfloat16, {}}};
  return make_definition(std::move(d)).value();
}

}  // namespace

TEST_CASE("the Hopper pack loads, and its prompt holds everything a model needs") {
  const auto pack = KnowledgePack::load(kHopper);
  INFO((pack ? std::string() : pack.error().to_string()));
  REQUIRE(pack);
  const KnowledgePack& p = **pack;
  CHECK(p.name() == "hopper");
  CHECK(p.hash().size() == 64);
  REQUIRE(p.headers().size() == 3);
  CHECK(p.headers()[0].path == "ptx/barrier.cuh");
  CHECK(p.contracts().size() >= 6);
  CHECK(p.find_device("h100"));
  CHECK(p.find_device("NVIDIA H200") == p.find_device("h200"));
  CHECK(p.find_device("NVIDIA H100 PCIe") == nullptr);  // other numbers than the SXM card's

  const std::string root = std::string(PTXBENCH_SOURCE_DIR) + "/examples/data/";
  const auto gemm = load_definition(root + "definitions/gemm/gemm_n7168_k5120.json");
  REQUIRE(gemm);
  const auto workloads = load_workloads(*gemm, root + "workloads/gemm/gemm_n7168_k5120.jsonl");
  REQUIRE(workloads);
  const std::string text = p.prompt(**gemm, *workloads, "NVIDIA H200");
  for (const char* part :
       {"gemm_n7168_k5120", "`A` [M, K] bfloat16", "M = 2379", "| SMs | 132 |", "4.8 | TB/s", "\"steps\"",
        "#include <ptx/wgmma.cuh>", "launch.json", "wgmma_descriptor", "setmaxnreg", "- `spills == 0`\n",
        "- `families.wgmma.flops_share >= 0.9`\n"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text == p.prompt(**gemm, *workloads, "NVIDIA H200"));
  CHECK(p.prompt(**gemm, *workloads, "NVIDIA B200").find("no numbers for \"NVIDIA B200\"") !=
        std::string::npos);
  CHECK(p.prompt(**gemm, *workloads, "").find("The device is not known here") != std::string::npos);
  CHECK(p.prompt(**gemm, *workloads, "h100").find("3.35 | TB/s") != std::string::npos);
}

TEST_CASE("a small pack is read whole") {
  Folder folder;
  fill(folder);
  const auto pack = KnowledgePack::load(folder.path.string());
  REQUIRE(pack);
  CHECK((*pack)->devices()[0].notes == "about d\n");
  CHECK((*pack)->documents()[0].text == "a note\n");
  CHECK((*pack)->launch_plan().text == "the plan\n");
  REQUIRE((*pack)->headers().size() == 2);
  CHECK((*pack)->headers()[1].path == "two.cuh");
  const auto d = definition();
  const std::string text = (*pack)->prompt(*d, {}, "NVIDIA D");
  CHECK(text.find("`alpha` scalar by value float32") != std::string::npos);
  CHECK(text.find("// two\n```") !=
        std::string::npos);  // a header without a last newline does not swallow the fence

  SECTION("its hash follows every file") {
    const std::string before = (*pack)->hash();
    folder.write("include/two.cuh", "// 2");
    CHECK(KnowledgePack::load(folder.path.string()).value()->hash() != before);
    folder.write("include/two.cuh", "// two");
    CHECK(KnowledgePack::load(folder.path.string()).value()->hash() == before);
  }
}

TEST_CASE("a pack that is not whole is refused with its place") {
  struct Row {
    std::string manifest, message, pointer;
  };
  const Row rows[] = {
      {changed("\"title\": \"A pack\"", "\"titel\": \"A pack\""), "title", "/titel"},
      {changed("\"version\": 1", "\"version\": 2"), "version 1", "/version"},
      {changed("notes/a.md", "notes/b.md"), "notes/b.md", "/documents/0/file"},
      {changed("notes/a.md", "../a.md"), "inside the pack's folder", "/documents/0/file"},
      {changed("notes/a.md", "/etc/passwd"), "inside the pack's folder", "/documents/0/file"},
      {changed("notes/a.md", "notes//a.md"), "inside the pack's folder", "/documents/0/file"},
      {changed("notes/a.md", "notes"), "no regular file", "/documents/0/file"},
      {changed("\"include\": \"include\"", "\"include\": \"plan.md\""), "no folder", "/include"},
      {changed("\"value\": 7", "\"value\": \"7\""), "", "/devices/d/numbers/0/value"},
      {changed("\"source\": \"its page\"", "\"source\": \"\""), "", "/devices/d/numbers/0/source"},
      {changed(", \"source\": \"its page\"", ""), "source", "/devices/d/numbers/0"},
      {changed("\"architectures\": [\"sm_90a\"]", "\"architectures\": []"), "at least 1", "/architectures"},
      {with_contracts("{}"), "", "/contracts"},
      {with_contracts("[\"spills == 0\"]"), "", "/contracts/0"},
      {with_contracts(R"([{"rule": "spills == 0"}])"), "sentence", "/contracts/0"},
      {with_contracts(R"([{"rule": "spills == 0", "sentence": ""}])"), "", "/contracts/0/sentence"},
      {with_contracts(R"([{"rule": "spills == 0", "sentence": ")" + std::string(1001, 's') + R"("}])"), "1000 bytes",
       "/contracts/0/sentence"},
      {with_contracts(R"([{"rule": "spills == 0", "sentence": "s", "op_type": "gemm"}])"), "op_types",
       "/contracts/0/op_type"},
      {with_contracts(R"([{"rule": "spills == 0", "sentence": "s", "op_types": []}])"), "no operation",
       "/contracts/0/op_types"},
      {with_contracts(R"([{"rule": "spills == 0", "sentence": "s"}, {"rule": "spils == 0", "sentence": "s"}])"),
       "did you mean \"spills\"", "/contracts/1/rule"},
  };
  for (const Row& row : rows) {
    Folder folder;
    fill(folder, row.manifest);
    const auto pack = KnowledgePack::load(folder.path.string());
    INFO(row.pointer);
    REQUIRE_FALSE(pack);
    INFO(pack.error().to_string());
    CHECK(pack.error().where.pointer == row.pointer);
    CHECK(pack.error().message.find(row.message) != std::string::npos);
  }
  SECTION("too large, and no text") {
    Folder folder;
    fill(folder);
    folder.write("notes/a.md", std::string(kMostPackFileBytes + 1, 'x'));
    CHECK(KnowledgePack::load(folder.path.string()).error().message.find("1 MiB") != std::string::npos);
    folder.write("notes/a.md", "\xff");
    CHECK(KnowledgePack::load(folder.path.string()).error().message.find("UTF-8") != std::string::npos);
  }
  SECTION("a link that leads out") {
    Folder folder, other;
    fill(folder);
    other.write("secret", "s");
    fs::remove(folder.path / "notes/a.md");
    fs::create_symlink(other.path / "secret", folder.path / "notes/a.md");
    CHECK(KnowledgePack::load(folder.path.string()).error().rule == "pack_path");
  }
  CHECK(KnowledgePack::load("/nonexistent").error().code == ErrorCode::not_found);
}

TEST_CASE("a pack's contracts: loaded in their order, and told to a model of their operation") {
  Folder folder;
  fill(folder, with_contracts(R"([
    {"rule": "spills == 0", "sentence": "Spill nothing."},
    {"rule": "tma.loads >= 1", "op_types": ["gemm"], "sentence": "Load by TMA."},
    {"rule": "speedup >= 0.6", "op_types": ["gemm", "scale"], "sentence": "Be faster."}])"));
  const auto pack = KnowledgePack::load(folder.path.string());
  INFO((pack ? std::string() : pack.error().to_string()));
  REQUIRE(pack);
  const std::vector<Contract>& contracts = (*pack)->contracts();
  REQUIRE(contracts.size() == 3);
  CHECK(contracts[0].rule() == "spills == 0");
  CHECK(contracts[0].sentence() == "Spill nothing.");
  CHECK(contracts[0].op_types().empty());
  CHECK(contracts[2].op_types() == std::vector<std::string>{"gemm", "scale"});
  const std::string text = (*pack)->prompt(*definition(), {}, "NVIDIA D");
  CHECK(text.find("# Rules") != std::string::npos);
  CHECK(text.find("- `spills == 0`\n- `speedup >= 0.6`\n") != std::string::npos);
  CHECK(text.find("tma.loads") == std::string::npos);  // another operation's

  SECTION("an error points into the file and the rule") {
    fill(folder, with_contracts(R"([{"rule": "spills = 0", "sentence": "s"}])"));
    const auto wrong = KnowledgePack::load(folder.path.string());
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().where.file == (folder.path / "pack.json").string());
    CHECK(wrong.error().where.pointer == "/contracts/0/rule");
    CHECK(wrong.error().where.column == 8);
    CHECK(wrong.error().rule == "contract");
    CHECK(wrong.error().to_string().find("pack.json:/contracts/0/rule: column 8: \"=\" is no operator") != std::string::npos);
  }
  SECTION("a pack without any has no such part in its prompt") {
    fill(folder);
    const auto none = KnowledgePack::load(folder.path.string()).value();
    CHECK(none->contracts().empty());
    CHECK(none->prompt(*definition(), {}, "NVIDIA D").find("# Rules") == std::string::npos);
  }
  SECTION("too many") {
    std::string list = "[";
    for (int i = 0; i < 65; ++i) list += std::string(i == 0 ? "" : ", ") + R"({"rule": "spills == 0", "sentence": "s"})";
    fill(folder, with_contracts(list + "]"));
    CHECK(KnowledgePack::load(folder.path.string()).error().message.find("more than 64") != std::string::npos);
  }
}
