#include "known_misses.hpp"

#include <charconv>
#include <fstream>
#include <stdexcept>

namespace ptxbench::testing {

std::vector<KnownMiss> known_misses() {
  const std::string path = PTXBENCH_SOURCE_DIR "/tests/mutation/known_misses.txt";
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + " is not there");
  std::vector<KnownMiss> out;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> parts;
    for (std::size_t at = 0; parts.size() < 4;) {
      const std::size_t end = line.find(" | ", at);
      if (end == std::string::npos) throw std::runtime_error(path + ": " + line);
      parts.push_back(line.substr(at, end - at));
      at = end + 3;
      if (parts.size() == 4) parts.push_back(line.substr(at));
    }
    std::size_t misses = 0;
    const char* end = parts[3].data() + parts[3].size();
    const auto read = std::from_chars(parts[3].data(), end, misses);
    if (read.ec != std::errc{} || read.ptr != end || misses == 0)
      throw std::runtime_error(path + ": how many? " + line);
    out.push_back({parts[0], parts[1], parts[2], misses, parts[4]});
  }
  return out;
}

const KnownMiss* find_known(const std::vector<KnownMiss>& all, const std::string& name,
                            const Mutant& mutant) {
  for (const KnownMiss& k : all)
    if (k.is(name, mutant)) return &k;
  return nullptr;
}

}  // namespace ptxbench::testing
