// Every scalar instruction form against what an H200 answered, bit by bit.
#include "support/catch.hpp"
#include "support/micro_run.hpp"

#include <ptxbench/emulator.hpp>

#include <cstdlib>
#include <sstream>

using namespace ptxbench;
using namespace ptxbench::testing;

TEST_CASE("micro-kernels give the bits of an H200") {
  const std::vector<MicroForm> forms = micro_forms();
  const auto recorded = read_micro(PTXBENCH_SOURCE_DIR "/tests/fixtures/micro/h200.bin", forms);
  REQUIRE(recorded.size() == forms.size());
  auto device = open_emulator_device({});
  if (!device) FAIL(device.error().to_string());
  std::size_t wrong_forms = 0;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    const auto got = run_micro(**device, forms, i, i + 1);
    std::ostringstream problem;
    if (!got) {
      problem << got.error().to_string();
    } else {
      const MicroResults& expected = recorded.at(i);
      const std::vector<std::uint64_t> operands = micro_operands(forms[i], i);
      unsigned wrong = 0;
      for (std::size_t r = 0; r < forms[i].results.size(); ++r)
        for (unsigned t = 0; t < kMicroThreads; ++t) {
          const std::size_t at = r * kMicroThreads + t;
          if ((*got)[0][at] == expected[at] || wrong++ != 0) continue;
          problem << "result " << r << " of thread " << t << " is " << std::hex << (*got)[0][at]
                  << ", the card's " << expected[at] << "; operands";
          for (std::size_t s = 0; s < forms[i].sources.size(); ++s)
            problem << ' ' << operands[s * kMicroThreads + t];
        }
      if (wrong != 0) problem << std::dec << "; " << wrong << " wrong";
    }
    if (problem.str().empty()) continue;
    if (++wrong_forms <= 60) UNSCOPED_INFO(forms[i].name() + ": " + problem.str());
  }
  CHECK(wrong_forms == 0);
}
