#include "core/message.hpp"

#include "support/catch.hpp"

using namespace ptxbench;

namespace {

std::string frame_of(const Message& message) {
  const auto bytes = encode(message);
  return {bytes.begin(), bytes.end()};
}

Message sample() { return {"compile", R"({"a":1})", {{1, 2, 3}, {}, std::vector<std::uint8_t>(1000, 7)}}; }

}  // namespace

TEST_CASE("message: comes back as it was sent") {
  for (const Message& message : {sample(), Message{}, Message{"x", "", {{}}}}) {
    const std::string frame = frame_of(message);
    const auto back = decode(frame);
    REQUIRE(back);
    REQUIRE(back->type == message.type);
    REQUIRE(back->json == message.json);
    REQUIRE(back->blobs == message.blobs);
    REQUIRE(frame_bytes(std::string_view(frame).substr(0, kFrameHeadBytes)).value() == frame.size());
  }
}

TEST_CASE("message: a frame cut anywhere or with more behind it is refused") {
  const std::string frame = frame_of(sample());
  for (std::size_t n = 0; n < frame.size(); ++n) REQUIRE_FALSE(decode(std::string_view(frame).substr(0, n)));
  REQUIRE_FALSE(decode(frame + "x"));
}

TEST_CASE("message: no size is believed") {
  const std::string frame = frame_of(sample());
  // Every byte of the head and of the table of sizes, with its bits set, cleared and flipped at the top.
  for (std::size_t i = 0; i < 32 + 3 * 8; ++i) {
    for (const char value :
         {'\0', '\xff', '\x7f', static_cast<char>(frame[i] ^ 0x80), static_cast<char>(frame[i] + 1)}) {
      if (value == frame[i]) continue;
      std::string broken = frame;
      broken[i] = value;
      INFO("byte " << i);
      const auto result = decode(broken);
      REQUIRE_FALSE(result);
      REQUIRE(result.error().code == ErrorCode::parse);
      REQUIRE(result.error().rule == "message_frame");
    }
  }
}

TEST_CASE("message: sizes that wrap around are refused") {
  std::string frame = frame_of({"", "", {{1}, {2}}});
  for (std::size_t i = 32; i < 40; ++i) frame[i] = '\xff';  // 2^64 - 1 and ...
  frame[40] = '\x03';                                       // ... 3 are 2
  REQUIRE_FALSE(decode(frame));
}

TEST_CASE("message: a limit on the size") {
  const std::string frame = frame_of(sample());
  REQUIRE(decode(frame, frame.size()));
  REQUIRE_FALSE(decode(frame, frame.size() - 1));
  REQUIRE_FALSE(frame_bytes("PXM"));
}
