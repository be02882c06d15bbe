// The command as a person calls it.
#include "core/json.hpp"
#include "support/catch.hpp"

#include <ptxbench/agent.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

using namespace ptxbench;
namespace fs = std::filesystem;

namespace {

const std::string kSource = PTXBENCH_SOURCE_DIR;
const std::string kTask = " --definition " + kSource +
                          "/examples/data/definitions/gemm/gemm_n7168_k5120.json --workloads " + kSource +
                          "/examples/data/workloads/gemm/gemm_n7168_k5120.jsonl --pack " + kSource +
                          "/knowledge_packs/hopper";

struct Folder {
  fs::path path =
      fs::temp_directory_path() / ("ptxbench-cli-" + std::to_string(std::random_device{}()) + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
};

struct Output {
  int code = -1;
  std::string out, err;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Output call(const std::string& arguments) {
  const Folder folder;
  std::string home = PTXBENCH_TEST_CUDA_HOME;
  if (!home.empty()) home = "CUDA_HOME='" + home + "' ";
  const std::string command = home + "'" PTXBENCH_BINARY_DIR "/bin/ptxbench' " + arguments + " >'" +
                              (folder.path / "out").string() + "' 2>'" + (folder.path / "err").string() + "'";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(folder.path / "out"), read(folder.path / "err")};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("four scripted turns without a device, then their replay") {
  const Folder folder;
  const std::string out = (folder.path / "run").string();
  const Output run = call("run --model scripted:" + kSource +
                              "/examples/data/candidates --device none --cache-dir '' --out " + out + kTask);
  INFO(run.out);
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(has(run.out, "definition gemm_n7168_k5120"));
  CHECK(has(run.out, "device: none, so nothing is executed"));
  for (int turn = 1; turn <= 4; ++turn) CHECK(has(run.out, "=== turn " + std::to_string(turn)));
  CHECK(has(run.err, "turn 4 of 4: judging"));
  CHECK(has(run.out, "gemm_tma.cu:2"));  // the asm statement's line
  CHECK(has(run.out, "Nothing was executed:"));
  CHECK(has(run.out, "- `code.wgmma.instructions >= 1`, and it is 0: "));  // a rule of the pack
  CHECK(has(run.out, "4 static"));  // wgmma of the fast candidate
  CHECK_FALSE(has(run.out, "PASSED"));
  CHECK(has(run.out, "nothing was executed, so none is known to be right): " + out + "/candidates/turn_4"));
  CHECK(fs::exists(fs::path(out) / "candidates/turn_4/gemm_wgmma.cu"));

  const auto trajectory = load_trajectory(out + "/trajectory.jsonl");
  REQUIRE(trajectory);
  REQUIRE(trajectory->turns.size() == 4);
  CHECK(trajectory->turns[0].turn.status == Status::compile_error);
  for (int turn = 1; turn < 4; ++turn)
    CHECK_FALSE(trajectory->turns[static_cast<std::size_t>(turn)].turn.status);
  CHECK(trajectory->pack_name == "hopper");

  const std::string again = (folder.path / "again").string();
  const Output replay = call("run --replay " + out + "/trajectory.jsonl --out " + again);
  INFO(replay.err);
  CHECK(replay.code == 0);
  CHECK(has(replay.out, "replayed: the same bytes"));
  CHECK(read(again + "/trajectory.jsonl") == read(out + "/trajectory.jsonl"));
  CHECK(call("run --replay " + out + "/trajectory.jsonl --out " + again).code == 2);  // never overwritten
}

// The demonstration as it runs without a GPU, on a smaller GEMM.
TEST_CASE("four scripted turns on the emulator, each judged to the end") {
  const Folder folder;
  const auto smaller = [&](const std::string& file) {
    std::string text = read(kSource + "/examples/data/" + file);
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"7168", "1024"}, {"5120", "1280"}})
      for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
    const fs::path path = folder.path / fs::path(file).filename();
    std::ofstream(path) << text;
    return path.string();
  };
  const std::string out = (folder.path / "run").string();
  const Output run = call("run --model scripted:" + kSource + "/examples/data/candidates --device emulator --cache-dir '' --out " + out +
                          " --definition " + smaller("definitions/gemm/gemm_n7168_k5120.json") + " --workloads " +
                          smaller("workloads/gemm/gemm_n7168_k5120.jsonl") + " --workload M=70 --pack " + kSource +
                          "/knowledge_packs/hopper");
  INFO(run.out);
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK(has(run.out, "device: NVIDIA H200 (emulated) (emulator:h200): says whether a kernel is right"));
  CHECK(has(run.out, "Turn 1 of 4: COMPILE_ERROR"));
  CHECK(has(run.out, "gemm_tma.cu:24"));
  CHECK(has(run.out, "Turn 2 of 4: INCORRECT_NUMERICAL"));
  CHECK(has(run.out, "first wrong: C[0, 1]"));
  CHECK(has(run.out, "Turn 3 of 4: PASSED"));
  CHECK(has(run.out, "Turn 4 of 4: PASSED"));
  CHECK(has(run.out, "the emulator does not measure time"));
  CHECK(has(run.out, "mma_sync "));
  CHECK(has(run.out, "narrow: wgmma 10240"));  // 16 tiles of 64 columns, 20 steps of K by 4, two warpgroups of 4 warps
  CHECK(has(run.out, "completing eager, lazy, eager on 4 SMs"));
  CHECK(has(run.out, "best candidate: " + out + "/candidates/turn_4"));
}

TEST_CASE("a reply without a candidate, as JSON") {
  const Folder folder;
  std::ofstream(folder.path / "script.jsonl") << "{\"text\": \"I cannot.\", \"model\": \"m\"}\n";
  const Output run =
      call("run --json --device none --model scripted:" + (folder.path / "script.jsonl").string() +
               " --turns 3 --out " + (folder.path / "run").string() + kTask);
  INFO(run.err);
  REQUIRE(run.code == 0);
  const auto parsed = json::parse(run.out);
  REQUIRE(parsed);
  CHECK(parsed->root.find("turns")->items.size() == 1);
  CHECK(parsed->root.find("end_reason")->text == "script_end");
  CHECK(parsed->root.find("best_candidate")->kind == json::Kind::null);
}

TEST_CASE("calls that are wrong say how") {
  const std::pair<const char*, const char*> rows[] = {
      {"run", "--model is wanted"},
      {"run --model gpt --definition x --workloads y", "scripted:PATH"},
      {"run --model scripted:/nonexistent --definition x --workloads y", "no such file"},
      {"run --rejudge", "--replay"},
      {"run --replay /nonexistent", "no such file"},
      {"run --turns 0 --model scripted:x", "--turns wants a number"},
      {"run --trns 3", "did you mean --turns"},
      {"run candidate --model scripted:x", "takes no candidate"},
      {"compile . --pack /nonexistent", "wanted"},
  };
  for (const auto& [arguments, words] : rows) {
    const Output run = call(arguments);
    INFO(arguments);
    INFO(run.err);
    CHECK(run.code == 2);
    CHECK(has(run.err, words));
  }
  CHECK(call("run --help").code == 0);
}
