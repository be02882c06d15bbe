#include "worker/worker_path.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgram = "ptxbench-worker";

bool is_program(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

void add_near(const fs::path& file, std::vector<fs::path>& places) {
  if (file.empty()) return;
  const fs::path folder = file.parent_path();
  places.push_back(folder / kProgram);
  places.push_back(folder.parent_path() / "bin" / kProgram);
}

}  // namespace

Result<std::string> find_worker(const std::string& option) {
  std::error_code error;
  if (!option.empty()) {
    const fs::path path = fs::absolute(option, error);
    if (!error && is_program(path)) return path.string();
    return make_error(ErrorCode::worker,
                      "the worker " + option + " (option worker_path) is not an executable file");
  }
  std::vector<fs::path> places;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_worker), &info) != 0 && info.dli_fname != nullptr)
    add_near(fs::canonical(info.dli_fname, error), places);
  add_near(fs::read_symlink("/proc/self/exe", error), places);
  places.emplace_back(PTXBENCH_INSTALLED_WORKER);

  std::string tried;
  for (std::size_t i = 0; i < places.size(); ++i) {
    bool repeated = false;
    for (std::size_t k = 0; k < i; ++k) repeated = repeated || places[k] == places[i];
    if (repeated) continue;
    if (is_program(places[i])) return places[i].string();
    tried += (tried.empty() ? "" : ", ") + places[i].string();
  }
  return make_error(ErrorCode::worker, "ptxbench-worker is not found; looked at: " + tried +
                                           "; set the option worker_path to where it is");
}

}  // namespace ptxbench
