// tensor_vectors OUT [WHOLE]: what the GPU answers to every form of tests/support/tensor_forms.hpp, as
// tests/fixtures/tensor/h200.bin holds it (WHOLE: how many tiles of each form are recorded with all their
// bits; 5), and how many of its outputs differ from the emulator's arithmetic. Forms that the driver cannot
// assemble are named and left out.
#include "support/tensor_run.hpp"

#include <cstdio>
#include <cstdlib>

using namespace ptxbench;
using namespace ptxbench::testing;

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: tensor_vectors OUT [WHOLE]\n");
    return 2;
  }
  const std::size_t whole = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : 5;
  auto device = open_cuda_device("auto");
  if (!device) {
    std::fprintf(stderr, "tensor_vectors: %s\n", device.error().to_string().c_str());
    return 1;
  }
  std::ofstream file(argv[1], std::ios::binary);
  int failed = 0;
  for (const TensorForm& form : tensor_forms()) {
    const auto results = run_tensor(**device, form, form.tiles);
    if (!results) {
      std::printf("%-60s left out: %s\n", form.name().c_str(), results.error().to_string().c_str());
      ++failed;
      if ((*device)->loss()) return 1;
      continue;
    }
    write_tensor(file, form, *results, whole);
    const auto size = static_cast<std::size_t>(accumulator_bytes(form.d));
    std::size_t outputs = 0, wrong = 0, kinds[5] = {};
    std::string first;
    for (int tile = 0; tile < form.tiles; ++tile) {
      const auto expected = expected_tile(form, tile);
      const auto& got = (*results)[static_cast<std::size_t>(tile)];
      for (std::size_t i = 0; i < expected.size(); i += size, ++outputs) {
        if (std::memcmp(&expected[i], &got[i], size) == 0) continue;
        ++kinds[tile % 5];
        if (wrong++ != 0) continue;
        std::uint32_t want = 0, have = 0;
        std::memcpy(&want, &expected[i], size);
        std::memcpy(&have, &got[i], size);
        char text[96];
        std::snprintf(text, sizeof text, "; first: tile %d output %zu card %08x emulator %08x", tile,
                      i / size, have, want);
        first = text;
      }
    }
    std::printf("%-60s %8zu outputs, %zu differ", form.name().c_str(), outputs, wrong);
    if (wrong != 0)
      std::printf(" (normal %zu, bits %zu, scaled %zu, special %zu, sparse %zu)%s", kinds[0], kinds[1],
                  kinds[2], kinds[3], kinds[4], first.c_str());
    std::printf("\n");
    std::fflush(stdout);
  }
  std::printf("%d forms left out\n", failed);
  return 0;
}
