// Records what a card answers to the micro-kernels: micro_vectors FILE.
#include "support/micro_run.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  using namespace ptxbench;
  using namespace ptxbench::testing;
  if (argc != 2) return 2;
  auto device = open_cuda_device("auto");
  if (!device) return std::fprintf(stderr, "%s\n", device.error().to_string().c_str()), 2;
  const std::vector<MicroForm> forms = micro_forms();
  std::ofstream file(argv[1], std::ios::binary);
  for (std::size_t i = 0; i < forms.size(); i += 50) {
    const std::size_t end = std::min(forms.size(), i + 50);
    const auto results = run_micro(**device, forms, i, end);
    if (!results) return std::fprintf(stderr, "%s\n", results.error().to_string().c_str()), 1;
    for (std::size_t k = i; k < end; ++k) write_micro(file, forms[k], (*results)[k - i]);
  }
  std::printf("%zu forms\n", forms.size());
}
