// Messages from the other side of a worker's socket, and entries of the cache.
#include "compile/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxbench;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Message message;
  if (Result<Message> framed = decode(text, 1 << 20))
    message = std::move(*framed);
  else
    message = Message{size % 2 == 0 ? "compile" : "compiled", std::string(text), {{1, 2}, {}, {3}, {4}}};
  if (const Result<CompileRequest> request = compile_request_from(message))
    if (!compile_request_from(to_message(*request))) std::abort();
  if (const Result<Compiled> compiled = compiled_from(message))
    if (!compiled_from(to_message(*compiled))) std::abort();
  return 0;
}
