// Names instruction words: reads lines "SM LOW64 HIGH64" (decimal, hexadecimal, hexadecimal), and prints for
// each "NAME BYTES FAMILY". tools/decoder_check.py compares that with nvdisasm.
#include <ptxbench/sass.hpp>

#include <cinttypes>
#include <cstdio>

int main() {
  using namespace ptxbench;
  char line[128];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    int sm = 0;
    sass::Word word;
    if (std::sscanf(line, "%d %" SCNx64 " %" SCNx64, &sm, &word.low, &word.high) != 3) {
      std::fprintf(stderr, "not \"SM LOW64 HIGH64\": %s", line);
      return 1;
    }
    std::printf("%s %u %s\n", sass::operation_name(sm, word).c_str(), sass::access_bytes(sm, word),
                sass::decode(sm, word).family.c_str());
  }
  return 0;
}
