// The frame, all integers little endian:
//   offset  0  "PXM1"
//           4  u32 bytes of the type
//           8  u64 bytes of the whole frame
//          16  u64 bytes of the JSON
//          24  u32 number of blobs
//          28  u32 zero
//          32  u64 bytes of each blob, then the type, the JSON and the blobs, without padding
#include "core/message.hpp"

#include <cstring>
#include <limits>
#include <new>

namespace ptxbench {
namespace {

constexpr std::string_view kMagic = "PXM1";
constexpr std::size_t kFixedBytes = 32;
constexpr std::size_t kMostTypeBytes = 256;

template <class T>
void put(std::vector<std::uint8_t>& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
}

template <class T>
T get(std::string_view bytes, std::size_t offset) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<unsigned char>(bytes[offset + i])) << (8 * i));
  return value;
}

void append(std::vector<std::uint8_t>& out, const void* data, std::size_t size) {
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  if (size > 0) out.insert(out.end(), bytes, bytes + size);
}

Error bad(std::string why) {
  return make_error(ErrorCode::parse, "malformed message: " + std::move(why), {}, "message_frame");
}

}  // namespace

std::vector<std::uint8_t> encode(const Message& message) {
  std::uint64_t total = kFixedBytes + 8 * message.blobs.size() + message.type.size() + message.json.size();
  for (const auto& blob : message.blobs) total += blob.size();
  std::vector<std::uint8_t> out;
  out.reserve(total);
  append(out, kMagic.data(), kMagic.size());
  put(out, static_cast<std::uint32_t>(message.type.size()));
  put(out, total);
  put(out, static_cast<std::uint64_t>(message.json.size()));
  put(out, static_cast<std::uint32_t>(message.blobs.size()));
  put(out, std::uint32_t{0});
  for (const auto& blob : message.blobs) put(out, static_cast<std::uint64_t>(blob.size()));
  append(out, message.type.data(), message.type.size());
  append(out, message.json.data(), message.json.size());
  for (const auto& blob : message.blobs) append(out, blob.data(), blob.size());
  return out;
}

Result<std::uint64_t> frame_bytes(std::string_view head, std::uint64_t max_bytes) {
  if (head.size() < kFrameHeadBytes) return bad("cut off in its head");
  if (head.substr(0, kMagic.size()) != kMagic) return bad("it does not start with " + std::string(kMagic));
  const auto total = get<std::uint64_t>(head, 8);
  if (total < kFixedBytes) return bad("a size of " + std::to_string(total) + " bytes");
  if (total > max_bytes)
    return bad(std::to_string(total) + " bytes, more than the limit of " + std::to_string(max_bytes));
  return total;
}

Result<Message> decode(std::string_view frame, std::uint64_t max_bytes) {
  PTXBENCH_TRY_ASSIGN(const std::uint64_t total, frame_bytes(frame, max_bytes));
  if (total != frame.size())
    return bad("it says " + std::to_string(total) + " bytes and has " + std::to_string(frame.size()));
  const std::uint64_t type_bytes = get<std::uint32_t>(frame, 4);
  const auto json_bytes = get<std::uint64_t>(frame, 16);
  const std::uint64_t blobs = get<std::uint32_t>(frame, 24);
  if (get<std::uint32_t>(frame, 28) != 0) return bad("a reserved field is not zero");
  if (type_bytes > kMostTypeBytes) return bad("a type of " + std::to_string(type_bytes) + " bytes");

  // Every part is taken from what is left, so that no sum can wrap around.
  std::uint64_t left = total - kFixedBytes;
  const auto take = [&left](std::uint64_t bytes) {
    if (bytes > left) return false;
    left -= bytes;
    return true;
  };
  if (!take(8 * blobs) || !take(type_bytes) || !take(json_bytes))
    return bad("its parts are larger than the frame");
  for (std::uint64_t i = 0; i < blobs; ++i)
    if (!take(get<std::uint64_t>(frame, kFixedBytes + 8 * i)))
      return bad("its blobs are larger than the frame");
  if (left != 0) return bad(std::to_string(left) + " bytes belong to no part");

  try {
    Message message;
    std::size_t offset = kFixedBytes + 8 * blobs;
    message.type = frame.substr(offset, type_bytes);
    offset += type_bytes;
    message.json = frame.substr(offset, json_bytes);
    offset += json_bytes;
    message.blobs.reserve(blobs);
    for (std::uint64_t i = 0; i < blobs; ++i) {
      const auto size = get<std::uint64_t>(frame, kFixedBytes + 8 * i);
      const std::string_view blob = frame.substr(offset, size);
      message.blobs.emplace_back(blob.begin(), blob.end());
      offset += size;
    }
    return message;
  } catch (const std::bad_alloc&) {
    return make_error(ErrorCode::no_memory, "no memory for a message of " + std::to_string(total) + " bytes");
  }
}

}  // namespace ptxbench
