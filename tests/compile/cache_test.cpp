#include "compile/cache.hpp"

#include "support.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

using namespace ptxbench;
using namespace ptxbench::test;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> entries(const fs::path& dir) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(dir))
    if (entry.is_regular_file()) out.push_back(entry.path());
  return out;
}

CompileRequest cached_request(const TempFolder& folder) {
  CompileRequest request = request_of(
      "k.cu", "#include \"x.cuh\"\n#include <cuda_fp16.h>\n__global__ void k(float* p) { p[0] = X; }\n");
  request.files.push_back({"x.cuh", "#define X 1\n"});
  request.cache_dir = folder.path.string();
  return request;
}

}  // namespace

TEST_CASE("the cache answers a second time, with the same bytes") {
  TempFolder folder;
  const CompileRequest request = cached_request(folder);
  const Compiled first = compile(request);
  REQUIRE(first.ok);
  CHECK_FALSE(first.cached);
  const Compiled second = compile(request);
  CHECK(second.cached);
  CHECK(second.modules[0].cubin == first.modules[0].cubin);
  CHECK(second.compiler == first.compiler);
  CHECK(second.log == first.log);
  REQUIRE(entries(folder.path).size() == 1);
  const fs::path entry = entries(folder.path)[0];
  CHECK(entry.parent_path().parent_path() == folder.path / "v1");
  CHECK(entry.parent_path().filename() == entry.filename().string().substr(0, 2));
}

TEST_CASE("whatever changes the result changes the key") {
  TempFolder folder;
  const CompileRequest base = cached_request(folder);
  compile(base);
  std::vector<CompileRequest> others(7, base);
  others[0].files[1].content = "#define X 2\n";  // a header
  others[1].defines = {{"Y", "1"}};
  others[2].launch_plan_header = "//\n";
  others[2].files[0].content.insert(0, "#include <launch_plan.h>\n");
  others[3].arch = "sm_100a";
  others[4].sources[0].options.fast_math = true;
  others[5].sources[0].name_expressions = {"k"};
  others[6].sources[0].options.maxrregcount = 64;
  for (const CompileRequest& other : others) CHECK_FALSE(compile(other).cached);
  CompileRequest unrelated = base;
  unrelated.files.push_back({"notes.txt", "not included"});
  CHECK(compile(unrelated).cached);
}

TEST_CASE("plain errors of a candidate are kept, with their messages") {
  TempFolder folder;
  CompileRequest request = cached_request(folder);
  request.files[1].content = "#define X nope\n";
  const Compiled first = compile(request), second = compile(request);
  CHECK_FALSE(second.ok);
  CHECK(second.cached);
  CHECK(all_messages(second) == all_messages(first));
}

TEST_CASE("timeouts are not kept") {
  TempFolder folder;
  CompileRequest request = cached_request(folder);
  request.deadline_ns = 0;
  CHECK(finding(compile(request), "compiler_timeout") != nullptr);
  CHECK(entries(folder.path).empty());
}

TEST_CASE("what a computed include reads is not known: such sources are not kept") {
  TempFolder folder;
  CompileRequest request = cached_request(folder);
  request.files[0].content = "#define H \"x.cuh\"\n#include H\n__global__ void k(float* p) { p[0] = X; }\n";
  CHECK(compile(request).ok);
  CHECK_FALSE(compile(request).cached);
}

TEST_CASE("a damaged entry is a miss and is written anew") {
  TempFolder folder;
  const CompileRequest request = cached_request(folder);
  compile(request);
  const fs::path entry = entries(folder.path)[0];
  const auto size = fs::file_size(entry);
  SECTION("cut short") { fs::resize_file(entry, size / 2); }
  SECTION("empty") { fs::resize_file(entry, 0); }
  SECTION("one byte changed") {
    std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size / 2));
    file.put('\x5a').put('\xa5').put('\x5a');
  }
  CHECK_FALSE(compile(request).cached);
  CHECK(compile(request).cached);
}

TEST_CASE("a cache that cannot be written is no error") {
  CompileRequest request = request_of("k.cu", "__global__ void k(float* p) { p[0] = 1; }\n");
  request.cache_dir = "/proc/nowhere";
  CHECK(compile(request).ok);
}

TEST_CASE("many processes write and read one entry") {
  TempFolder folder;
  Compiled compiled;
  compiled.ok = true;
  compiled.modules.resize(1);
  compiled.modules[0].cubin.assign(200'000, 7);
  const CompileCache cache(folder.path.string());
  const std::string key(64, 'a');
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      bool good = true;
      for (int j = 0; j < 25; ++j) {
        good = cache.store(key, compiled) && good;
        const std::optional<Compiled> back =
            cache.load(key);  // never torn, and there from the first store on
        good = back && back->modules[0].cubin == compiled.modules[0].cubin && good;
      }
      ::_exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  CHECK(entries(folder.path).size() == 1);
}
