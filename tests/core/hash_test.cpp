#include "core/hash.hpp"

#include "support/catch.hpp"

using namespace ptxbench;

TEST_CASE("hash: SHA-256 test vectors of FIPS 180-4") {
  REQUIRE(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  REQUIRE(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  REQUIRE(sha256_hex(std::string(1000000, 'a')) ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("hash: fields are kept apart") {
  const auto of = [](std::initializer_list<std::string_view> fields) {
    Hasher hasher;
    for (const auto field : fields) hasher.field(field);
    return std::move(hasher).hex();
  };
  REQUIRE(of({"ab", "c"}) == of({"ab", "c"}));
  REQUIRE(of({"ab", "c"}) != of({"a", "bc"}));
  REQUIRE(of({"abc"}) != of({"abc", ""}));
  REQUIRE(of({}) == sha256_hex(""));
  REQUIRE(of({"x"}) == sha256_hex(std::string("\x01\0\0\0\0\0\0\0x", 9)));
}
