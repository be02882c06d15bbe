#include "compile/cache.hpp"

#include "compile/wire.hpp"
#include "core/hash.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ptxbench {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kHexDigits = 64;

bool write_all(int fd, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

}  // namespace

std::string CompileCache::path_of(const std::string& key) const {
  return dir_ + "/v1/" + key.substr(0, 2) + "/" + key;
}

std::optional<Compiled> CompileCache::load(const std::string& key) const {
  std::ifstream in(path_of(key), std::ios::binary);
  if (!in) return std::nullopt;
  std::ostringstream buffer;
  buffer << in.rdbuf();
  const std::string entry = std::move(buffer).str();
  if (entry.size() <= kHexDigits || entry[kHexDigits] != '\n') return std::nullopt;
  const std::string_view body = std::string_view(entry).substr(kHexDigits + 1);
  if (sha256_hex(body) != std::string_view(entry).substr(0, kHexDigits)) return std::nullopt;
  const Result<Message> message = decode(body);
  if (!message) return std::nullopt;
  Result<Compiled> compiled = compiled_from(*message);
  if (!compiled) return std::nullopt;
  compiled->cached = true;
  return std::move(compiled).value();
}

bool CompileCache::store(const std::string& key, const Compiled& compiled) const {
  const std::vector<std::uint8_t> frame = encode(to_message(compiled));
  const std::string_view body(reinterpret_cast<const char*>(frame.data()), frame.size());
  const std::string path = path_of(key);
  std::error_code failed;
  fs::create_directories(fs::path(path).parent_path(), failed);
  if (failed) return false;
  // mkstemp's name is new for every thread and process.
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return false;
  const std::string head = sha256_hex(body) + "\n";
  const bool written = write_all(fd, head.data(), head.size()) && write_all(fd, body.data(), body.size());
  const bool closed = ::close(fd) == 0;
  if (written && closed && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  ::unlink(temporary.c_str());
  return false;
}

}  // namespace ptxbench
