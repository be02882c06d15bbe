#include "core/hash.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <new>

namespace ptxbench {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
using ContextPtr = std::unique_ptr<EVP_MD_CTX, FreeContext>;

// libcrypto's SHA-256 fails only for lack of memory.
void check(int ok) {
  if (ok != 1) throw std::bad_alloc();
}

ContextPtr start() {
  ContextPtr context(EVP_MD_CTX_new());
  check(context != nullptr);
  check(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr));
  return context;
}

std::string finish(EVP_MD_CTX* context) {
  constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  check(EVP_DigestFinal_ex(context, digest.data(), &size));
  std::string hex;
  hex.reserve(2 * size);
  for (unsigned i = 0; i < size; ++i) {
    hex += kHex[digest[i] >> 4];
    hex += kHex[digest[i] & 15];
  }
  return hex;
}

}  // namespace

struct Hasher::Impl {
  ContextPtr context = start();
};

Hasher::Hasher() : impl_(std::make_unique<Impl>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::field(std::string_view bytes) {
  std::array<unsigned char, 8> size{};
  for (std::size_t i = 0; i < size.size(); ++i)
    size[i] = static_cast<unsigned char>(static_cast<std::uint64_t>(bytes.size()) >> (8 * i));
  check(EVP_DigestUpdate(impl_->context.get(), size.data(), size.size()));
  check(EVP_DigestUpdate(impl_->context.get(), bytes.data(), bytes.size()));
  return *this;
}

std::string Hasher::hex() && {
  std::string digest = finish(impl_->context.get());
  impl_.reset();
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  const ContextPtr context = start();
  check(EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()));
  return finish(context.get());
}

}  // namespace ptxbench
