#include "core/base64.hpp"

#include "support/catch.hpp"

using namespace ptxbench;

TEST_CASE("base64: test vectors of RFC 4648") {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : vectors) {
    REQUIRE(base64_encode(bytes) == text);
    REQUIRE(base64_decode(text).value() == bytes);
  }
}

TEST_CASE("base64: all bytes, with white space between") {
  std::string bytes;
  for (int i = 0; i < 512; ++i) bytes += static_cast<char>(i * 37);
  std::string text = base64_encode(bytes);
  for (std::size_t i = 40; i < text.size(); i += 41) text.insert(i, "\n");
  REQUIRE(base64_decode(text).value() == bytes);
}

TEST_CASE("base64: malformed text is refused") {
  for (const char* bad : {"Z", "Zg", "Zg=", "Zm9", "=", "====", "Z===", "Zg===", "Zg==Zg==", "Zm9v!", "Zm-_",
                          "Zh==", "Zm9=", "Zg=g", "Zm9vYg=", "\xff\xff\xff\xff"}) {
    INFO(bad);
    const auto result = base64_decode(bad);
    REQUIRE_FALSE(result);
    REQUIRE(result.error().rule == "base64");
  }
}
