#include "core/toolkit_search.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

// Packages of NVIDIA's wheels; each is a folder of its own under `nvidia` for CUDA 12, CUDA 13 has one for
// all.
constexpr std::array kWheelFolders = {
    "cu14",      "cu13",     "cu12",       "cuda_nvrtc", "cuda_runtime", "cuda_nvcc",
    "cuda_cccl", "cuda_crt", "cuda_cupti", "cublas",     "cudnn",        "nvvm",
};
constexpr std::array kLibraryFolders = {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib",
                                        "extras/CUPTI/lib64"};
constexpr std::array kHeaderFolders = {"include",
                                       "include/cccl",
                                       "targets/x86_64-linux/include",
                                       "targets/x86_64-linux/include/cccl",
                                       "targets/sbsa-linux/include",
                                       "targets/sbsa-linux/include/cccl"};
constexpr std::array kProgramFolders = {"bin", "nvvm/bin"};
// Without these no useful candidate compiles; the last two are what incomplete sets lack.
constexpr std::array kRequiredHeaders = {"cuda.h",     "cuda_fp16.h",         "cuda_bf16.h",
                                         "cuda_fp8.h", "vector_types.h",      "crt/host_defines.h",
                                         "nv/target",  "cuda/std/type_traits"};

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}
bool usable_program(const std::string& path) { return is_file(path) && ::access(path.c_str(), X_OK) == 0; }

std::string canonical(const std::string& path) {
  std::error_code failed;
  fs::path real = fs::canonical(path, failed);
  return failed ? path : real.string();
}

// Entries of `directory` whose name starts with `prefix`, newest version last in the alphabet first.
std::vector<std::string> entries(const std::string& directory, std::string_view prefix) {
  std::vector<std::string> found;
  std::error_code failed;
  for (fs::directory_iterator it(directory, failed), end; !failed && it != end; it.increment(failed))
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path().string());
  std::sort(found.begin(), found.end(), std::greater<>());
  return found;
}

void add(std::vector<ToolkitPlace>& places, std::string root, std::string origin) {
  if (root.empty()) return;
  while (root.size() > 1 && root.back() == '/') root.pop_back();
  const std::string real = canonical(root);
  for (const ToolkitPlace& place : places)
    if (canonical(place.root) == real) return;
  places.push_back({std::move(root), std::move(origin)});
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// PREFIX/lib/python3*/{site,dist}-packages/nvidia
void add_wheels(std::vector<ToolkitPlace>& places, const std::string& prefix, const std::string& origin) {
  if (prefix.empty()) return;
  for (const std::string& python : entries(prefix + "/lib", "python3"))
    for (const char* packages : {"site-packages", "dist-packages"}) {
      const std::string folder = python + "/" + packages + "/nvidia";
      if (is_directory(folder)) add(places, folder, origin);
    }
}

template <class Folders>
void append_existing(std::vector<std::string>& out, const std::string& base, const Folders& folders) {
  for (const char* folder : folders) {
    const std::string path = base + "/" + folder;
    if (!is_directory(path)) continue;
    const std::string real = canonical(path);
    const bool known =
        std::any_of(out.begin(), out.end(), [&](const std::string& o) { return canonical(o) == real; });
    if (!known) out.push_back(path);
  }
}

int cuda_version_of(const std::string& cuda_h) {
  std::ifstream in(cuda_h);
  std::string line;
  while (std::getline(in, line)) {
    constexpr std::string_view kDefine = "#define CUDA_VERSION ";
    if (line.starts_with(kDefine)) return std::atoi(line.c_str() + kDefine.size());
  }
  return 0;
}

}  // namespace

std::vector<ToolkitPlace> toolkit_places(const ToolkitSearch& search) {
  std::vector<ToolkitPlace> places;
  add(places, search.cuda_home, "option cuda_home");
  if (!search.near.empty()) {
    // .../cuda/lib64/libnvrtc.so, .../nvidia/cu13/lib/libnvrtc.so, .../nvidia/cuda_nvrtc/lib/libnvrtc.so
    fs::path path = fs::path(canonical(search.near)).parent_path();
    for (int i = 0; i < 4 && path.has_relative_path(); ++i) {
      path = path.parent_path();
      if (is_directory((path / "include").string()) && is_file((path / "include/cuda.h").string())) {
        add(places, path.string(), "beside " + search.near);
        break;
      }
      if (path.filename() == "nvidia") {
        add(places, path.string(), "beside " + search.near);
        break;
      }
    }
  }
  if (search.environment)
    for (const char* name : {"PTXBENCH_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"})
      add(places, environment(name), name);
  if (search.usual_places) {
    add(places, PTXBENCH_CONFIGURED_CUDA_HOME, "the toolkit it was built with");
    add(places, "/usr/local/cuda", "usual place");
    for (const std::string& versioned : entries("/usr/local", "cuda-")) add(places, versioned, "usual place");
    add(places, "/opt/cuda", "usual place");
  }
  if (search.wheels) {
    add_wheels(places, environment("VIRTUAL_ENV"), "VIRTUAL_ENV");
    add_wheels(places, environment("CONDA_PREFIX"), "CONDA_PREFIX");
    const std::string home = environment("HOME");
    if (!home.empty()) add_wheels(places, home + "/.local", "Python packages");
    add_wheels(places, "/usr/local", "Python packages");
    add_wheels(places, "/usr", "Python packages");
  }
  return places;
}

std::vector<std::string> toolkit_directories(const std::string& root, ToolkitPart part) {
  std::vector<std::string> found;
  const auto append = [&](const std::string& base) {
    switch (part) {
      case ToolkitPart::libraries:
        append_existing(found, base, kLibraryFolders);
        break;
      case ToolkitPart::headers:
        append_existing(found, base, kHeaderFolders);
        break;
      case ToolkitPart::programs:
        append_existing(found, base, kProgramFolders);
        break;
    }
  };
  append(root);
  for (const std::string& base : {root, root + "/nvidia"}) {
    if (!is_directory(base)) continue;
    for (const char* wheel : kWheelFolders)
      if (is_directory(base + "/" + wheel)) append(base + "/" + wheel);
  }
  return found;
}

std::string describe_places(const ToolkitSearch& search, ToolkitPart part) {
  std::string text;
  const auto item = [&](const std::string& place) { text += (text.empty() ? "" : ", ") + place; };
  if (!search.file.empty()) return search.file;
  for (const ToolkitPlace& place : toolkit_places(search)) {
    const std::vector<std::string> directories = toolkit_directories(place.root, part);
    if (!is_directory(place.root))
      item(place.root + " (" + place.origin + "; no such folder)");
    else if (directories.empty())
      item(place.root + " (" + place.origin + "; nothing of a toolkit in it)");
    else
      for (const std::string& directory : directories) item(directory + " (" + place.origin + ")");
  }
  if (search.environment)
    for (const char* name : {"PTXBENCH_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"})
      if (environment(name).empty()) item(std::string(name) + " (not set)");
  if (search.wheels)
    item("nvidia/* in the site-packages of VIRTUAL_ENV, CONDA_PREFIX, ~/.local, /usr/local and /usr");
  if (search.loader && part == ToolkitPart::libraries) item("the dynamic loader's path");
  if (search.loader && part == ToolkitPart::programs) item("PATH");
  return text.empty() ? "nowhere (every place is switched off)" : text;
}

std::string find_program(std::string_view name, const std::string& folders) {
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string directory = folders.substr(begin, end - begin);
    const std::string path = directory + "/" + std::string(name);
    if (!directory.empty() && usable_program(path)) return path;
    begin = end + 1;
  }
  return {};
}

Result<std::string> find_ptxas(const ToolkitSearch& search) {
  if (!search.file.empty()) {
    if (usable_program(search.file)) return search.file;
    return make_error(ErrorCode::toolkit, "ptxas: " + search.file + " is no program that can be run");
  }
  for (const ToolkitPlace& place : toolkit_places(search))
    for (const std::string& directory : toolkit_directories(place.root, ToolkitPart::programs))
      if (usable_program(directory + "/ptxas")) return directory + "/ptxas";
  if (search.loader)
    if (std::string path = find_program("ptxas", environment("PATH")); !path.empty()) return path;
  return make_error(ErrorCode::toolkit,
                    "ptxas not found; searched: " + describe_places(search, ToolkitPart::programs) +
                        ". Install a CUDA toolkit or the wheel nvidia-cuda-nvcc, or name the "
                        "toolkit's folder in CUDA_HOME or cuda_home");
}

Result<CudaHeaders> find_cuda_headers(const ToolkitSearch& search) {
  std::string lacking;
  for (const ToolkitPlace& place : toolkit_places(search)) {
    CudaHeaders headers;
    headers.root = place.root;
    headers.directories = toolkit_directories(place.root, ToolkitPart::headers);
    if (headers.directories.empty()) continue;
    std::string missing;
    for (const char* required : kRequiredHeaders) {
      const bool there = std::any_of(headers.directories.begin(), headers.directories.end(),
                                     [&](const std::string& d) { return is_file(d + "/" + required); });
      if (!there) missing += (missing.empty() ? "" : " ") + std::string(required);
    }
    if (missing.empty()) {
      for (const std::string& directory : headers.directories)
        if (headers.cuda_version == 0) headers.cuda_version = cuda_version_of(directory + "/cuda.h");
      return headers;
    }
    std::string directories;
    for (const std::string& d : headers.directories) directories += (directories.empty() ? "" : " ") + d;
    lacking += "; " + directories + " lacks " + missing;
  }
  return make_error(ErrorCode::toolkit,
                    (lacking.empty() ? std::string("the CUDA headers were not found")
                                     : "no set of CUDA headers is complete" + lacking) +
                        "; searched: " + describe_places(search, ToolkitPart::headers) +
                        ". The wheels are nvidia-cuda-runtime, nvidia-cuda-cccl and nvidia-cuda-crt");
}

}  // namespace ptxbench
