#include "core/cuda_libs.hpp"

#include "support/catch.hpp"

#include <filesystem>
#include <fstream>

using namespace ptxbench;
namespace fs = std::filesystem;

namespace {

struct TempFolder {
  fs::path path;
  TempFolder() {
    std::string pattern = (fs::temp_directory_path() / "ptxbench-libs-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  void file(const std::string& name, const std::string& text = "") const {
    fs::create_directories((path / name).parent_path());
    std::ofstream(path / name) << text;
  }
};

ToolkitSearch test_toolkit() {
  ToolkitSearch search;
  search.cuda_home = PTXBENCH_TEST_CUDA_HOME;
  return search;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a missing library is an error that names it and every place") {
  TempFolder empty;
  const ToolkitSearch search = ToolkitSearch::only(empty.path.string());

  const auto nvrtc = Nvrtc::open(search);
  REQUIRE_FALSE(nvrtc);
  CHECK(nvrtc.error().code == ErrorCode::toolkit);
  CHECK(contains(nvrtc.error().message, "libnvrtc.so.13"));
  CHECK(contains(nvrtc.error().message, empty.path.string()));
  CHECK(contains(nvrtc.error().message, "option cuda_home"));

  const auto driver = CudaDriver::open(search);
  REQUIRE_FALSE(driver);
  CHECK(driver.error().code == ErrorCode::no_device);
  CHECK(contains(driver.error().message, "libcuda.so.1"));

  for (const Error& error : {Cupti::open(search).error(), CublasLt::open(search).error(),
                             Cublas::open(search).error(), Cudnn::open(search).error()}) {
    CHECK(error.code == ErrorCode::toolkit);
    CHECK(contains(error.message, empty.path.string()));
  }
  const auto ptxas = find_ptxas(search);
  REQUIRE_FALSE(ptxas);
  CHECK(contains(ptxas.error().message, empty.path.string()));
}

TEST_CASE("places that do not exist are named as such, and the whole order is listed") {
  ToolkitSearch search;
  search.cuda_home = "/nonexistent/cuda";
  const std::string text = describe_places(search, ToolkitPart::libraries);
  CHECK(contains(text, "/nonexistent/cuda (option cuda_home; no such folder)"));
  CHECK(contains(text, "/opt/cuda"));
  CHECK(contains(text, "loader"));
  CHECK(text.find("/nonexistent/cuda") < text.find("/opt/cuda"));
}

TEST_CASE("a file that is no library is reported with the loader's words") {
  TempFolder folder;
  folder.file("lib/libnvrtc.so.13", "not an ELF file");
  const auto nvrtc = Nvrtc::open(ToolkitSearch::only(folder.path.string()));
  REQUIRE_FALSE(nvrtc);
  CHECK(contains(nvrtc.error().message, (folder.path / "lib/libnvrtc.so.13").string()));
}

TEST_CASE("a library under cuDNN's name that is none is reported as such") {
  TempFolder folder;
  fs::create_directories(folder.path / "lib");
  const auto nvrtc = Nvrtc::open(test_toolkit());
  REQUIRE(nvrtc);
  fs::create_symlink((*nvrtc)->library.path, folder.path / "lib/libcudnn.so.9");
  const auto cudnn = Cudnn::open(ToolkitSearch::only(folder.path.string()));
  REQUIRE_FALSE(cudnn);
  CHECK(cudnn.error().code == ErrorCode::toolkit);
  CHECK(contains(cudnn.error().message, "cudnnGetVersion"));
}

TEST_CASE("cuDNN's versions are written as it writes them") {
  Cudnn cudnn;
  cudnn.version = 91301;
  CHECK(cudnn.version_text() == "9.13.1");
  cudnn.version = 8907;
  CHECK(cudnn.version_text() == "8.9.7");
}

TEST_CASE("both layouts of the wheels are understood") {
  TempFolder folder;
  folder.file("nvidia/cu13/lib/x");
  folder.file("nvidia/cuda_nvrtc/lib/x");
  const std::vector<std::string> found = toolkit_directories(folder.path.string(), ToolkitPart::libraries);
  CHECK(found == std::vector<std::string>{(folder.path / "nvidia/cu13/lib").string(),
                                          (folder.path / "nvidia/cuda_nvrtc/lib").string()});
  // `nvidia` itself may be named as well.
  CHECK(toolkit_directories((folder.path / "nvidia").string(), ToolkitPart::libraries) == found);
}

TEST_CASE("incomplete headers are the environment's fault and say what lacks where") {
  TempFolder folder;
  for (const char* header :
       {"cuda.h", "cuda_fp16.h", "cuda_bf16.h", "cuda_fp8.h", "vector_types.h", "crt/host_defines.h"})
    folder.file("include/" + std::string(header));
  const auto headers = find_cuda_headers(ToolkitSearch::only(folder.path.string()));
  REQUIRE_FALSE(headers);
  CHECK(headers.error().code == ErrorCode::toolkit);
  CHECK(contains(headers.error().message, "nv/target"));
  CHECK(contains(headers.error().message, (folder.path / "include").string()));

  folder.file("include/cccl/nv/target");
  folder.file("include/cccl/cuda/std/type_traits");
  folder.file("include/cuda.h", "#define CUDA_VERSION 12090\n");
  const auto complete = find_cuda_headers(ToolkitSearch::only(folder.path.string()));
  REQUIRE(complete);
  CHECK(complete->cuda_version == 12090);
  CHECK(complete->directories.size() == 2);
}

TEST_CASE("NVRTC of the toolkit at hand opens, with its builtins") {
  const auto nvrtc = Nvrtc::open(test_toolkit());
  REQUIRE(nvrtc);
  CHECK((*nvrtc)->major >= 12);
  CHECK(contains((*nvrtc)->builtins_path, "libnvrtc-builtins"));
  ToolkitSearch near = ToolkitSearch::only("");
  near.near = (*nvrtc)->library.path;
  const auto headers = find_cuda_headers(near);
  if (!headers) FAIL(headers.error().message);
  CHECK(headers->cuda_version / 1000 == (*nvrtc)->major);
}

TEST_CASE("libnvrtc-builtins missing beside NVRTC is named") {
  const auto nvrtc = Nvrtc::open(test_toolkit());
  REQUIRE(nvrtc);
  // The loader gives the copy that is already open for the same file, so a copy is made; 100 MB, but a link
  // would be the same file.
  TempFolder folder;
  fs::create_directories(folder.path / "lib");
  const std::string name = "libnvrtc.so." + std::to_string((*nvrtc)->major);
  fs::copy_file((*nvrtc)->library.path, folder.path / "lib" / name);
  const auto alone = Nvrtc::open(ToolkitSearch::only(folder.path.string()));
  REQUIRE_FALSE(alone);
  CHECK(alone.error().code == ErrorCode::toolkit);
  CHECK(contains(alone.error().message, "libnvrtc-builtins.so." + (*nvrtc)->version_text() + " is missing"));
  CHECK(contains(alone.error().message, (folder.path / "lib").string()));
}
