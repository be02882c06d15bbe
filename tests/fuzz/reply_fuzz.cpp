#include <ptxbench/agent.hpp>

#include <cstdlib>

using namespace ptxbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Definition definition;
  definition.name = "d";
  const ParsedReply reply = parse_reply({reinterpret_cast<const char*>(data), size}, definition, "t");
  // Either a candidate that is a Solution, or words that say what was missing.
  if (!reply.candidate && reply.notes.empty()) std::abort();
  if (reply.candidate) {
    if (!make_solution(*reply.candidate)) std::abort();
    if (reply.candidate->find_source("launch.json") == nullptr || reply.candidate->sources.size() < 2) std::abort();
  } else if (feedback_text(reply).empty()) {
    std::abort();
  }
  return 0;
}
