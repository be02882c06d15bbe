// A message between processes, and the form in which a record is kept in the cache: a type, a JSON object and
// binary attachments.
#pragma once

#include <ptxbench/core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

struct Message {
  std::string type;
  std::string json = "{}";
  std::vector<std::vector<std::uint8_t>> blobs;
};

// One frame: magic, sizes (little endian), type, JSON, blobs. Decoding checks every size against the bytes
// that are there and against `max_bytes`.
// A type has at most 256 bytes; `json` is not looked at.
std::vector<std::uint8_t> encode(const Message& message);
// Errors: ErrorCode::parse with the rule "message_frame".
Result<Message> decode(std::string_view frame, std::uint64_t max_bytes = std::uint64_t{1} << 30);

// For reading from a stream: how long the whole frame is, from its first kFrameHeadBytes bytes.
inline constexpr std::size_t kFrameHeadBytes = 16;
Result<std::uint64_t> frame_bytes(std::string_view head, std::uint64_t max_bytes = std::uint64_t{1} << 30);

}  // namespace ptxbench
