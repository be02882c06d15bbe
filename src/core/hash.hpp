// Content hashing (SHA-256 from OpenSSL's libcrypto).
#pragma once

#include <ptxbench/core.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace ptxbench {

// Fields are length-prefixed, so that ("ab","c") and ("a","bc") differ.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;
  Hasher& field(std::string_view bytes);
  std::string hex() &&;  // 64 lower-case hex digits; ends the hasher's life

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace ptxbench
