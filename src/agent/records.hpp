// The lines of a trajectory, written and read (docs/agent.md).
#pragma once

#include <ptxbench/agent.hpp>

#include <string>

namespace ptxbench {

// Lines without their newline.
std::string header_line(const Trajectory& trajectory);
std::string turn_line(const TrajectoryTurn& turn, const SamplingHints& sampling, TrajectoryMode mode);
struct TrajectoryEnd {
  std::string reason;
  int turns = 0;
  int best_turn = 0;  // 0: none
  std::int64_t ended_us = 0;
};
std::string end_line(const TrajectoryEnd& end);

inline constexpr int kMostTurns = 100000;

std::string conversation_hash(const std::vector<ChatMessage>& messages);

// Lines appended to a new file, each on the disk before `append` returns.
class TrajectoryFile {
 public:
  TrajectoryFile() = default;
  ~TrajectoryFile();
  TrajectoryFile(const TrajectoryFile&) = delete;
  TrajectoryFile& operator=(const TrajectoryFile&) = delete;
  // A file that is there already is an error: a trajectory is never overwritten.
  Result<void> create(const std::string& path);
  bool is_open() const { return descriptor_ >= 0; }
  // After an error nothing of the line is left in the file.
  Result<void> append(const std::string& line);

 private:
  int descriptor_ = -1;
  std::string path_;
  long long size_ = 0;
};

}  // namespace ptxbench
