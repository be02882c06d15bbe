// JSON reading: whatever is accepted is written and read back the same.
#include "core/json.hpp"

#include <cstdlib>

using namespace ptxbench;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool lenient : {false, true}) {
    const auto document = json::parse(text, {"fuzz", lenient, 50});
    if (!document) {
      if (document.error().where.line < 1 || document.error().message.empty()) std::abort();
      continue;
    }
    const std::string written = json::to_string(document->root);
    const auto again = json::parse(written, {"fuzz", lenient, 50});
    if (!again || json::to_string(again->root) != written || !again->repeated_keys.empty()) std::abort();
    const json::Cursor root(*document);
    (void)root.as_int();
    (void)root.as_int_lax();
    (void)root.as_double();
    (void)root.only({"a", "b"});
  }
  return 0;
}
