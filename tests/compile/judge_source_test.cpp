// The judge's own device code compiles for every architecture, in the form in which it is embedded.
#include "support/catch.hpp"

#include <ptxbench/compile.hpp>
#include <ptxbench/verify.hpp>

using namespace ptxbench;

TEST_CASE("the judge's device code compiles for every architecture, without spills") {
  for (const Architecture& arch : architectures()) {
    const auto compiled = compile_in_process(judge_compile_request(arch.name));
    if (!compiled) {
      WARN("skipped: " << compiled.error().to_string());
      return;
    }
    INFO(arch.name << "\n" << compiled->log);
    REQUIRE(compiled->ok);
    REQUIRE(compiled->modules.size() == 1);
    CHECK(!compiled->modules[0].cubin.empty());
    CHECK(compiled->modules[0].kernels.size() == 28);
    for (const KernelResources& kernel : compiled->modules[0].kernels) {
      INFO(kernel.symbol);
      CHECK(kernel.spill_store_bytes == 0);
    }
  }
}
