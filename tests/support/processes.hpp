// Looking at processes and descriptors through /proc, for tests that nothing is left behind.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace testing {

struct ProcessEntry {
  int pid = 0, parent = 0, group = 0;
  char state = '?';  // 'Z': a zombie
  std::string name;
};

inline std::vector<ProcessEntry> all_processes() {
  std::vector<ProcessEntry> result;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string folder = entry.path().filename().string();
    if (folder.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    const auto open = text.find('('), close = text.rfind(')');
    if (open == std::string::npos || close == std::string::npos) continue;
    ProcessEntry p;
    p.pid = std::atoi(folder.c_str());
    p.name = text.substr(open + 1, close - open - 1);
    if (std::sscanf(text.c_str() + close + 1, " %c %d %d", &p.state, &p.parent, &p.group) == 3)
      result.push_back(p);
  }
  return result;
}

// Children of `parent`, zombies included.
inline std::vector<ProcessEntry> children_of(int parent) {
  std::vector<ProcessEntry> result;
  for (const ProcessEntry& p : all_processes())
    if (p.parent == parent) result.push_back(p);
  return result;
}

// Members of a process group that are not zombies.
inline std::vector<ProcessEntry> living_in_group(int group) {
  std::vector<ProcessEntry> result;
  for (const ProcessEntry& p : all_processes())
    if (p.group == group && p.state != 'Z' && p.state != 'X') result.push_back(p);
  return result;
}

inline std::size_t open_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

// Kilobytes of memory that this process has in RAM.
inline long resident_kb() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.rfind("VmRSS:", 0) == 0) return std::atol(line.c_str() + 6);
  return 0;
}

// Whether `condition` becomes true within a generous time.
template <class F>
bool eventually(F condition, std::chrono::seconds limit = std::chrono::seconds(60)) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace testing
