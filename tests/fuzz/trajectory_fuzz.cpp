#include <ptxbench/agent.hpp>

#include <cstdlib>

using namespace ptxbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trajectory = parse_trajectory(text, "fuzz");
  if (!trajectory) return 0;
  // What was read replays without a crash; bytes written by hand need not come out the same.
  (void)replay_trajectory(*trajectory, {});
  if (trajectory->torn == (size > 0 && text.back() == '\n')) std::abort();
  return 0;
}
