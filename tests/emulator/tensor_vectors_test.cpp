// Every matrix instruction as a kernel: the emulator's engine against its arithmetic, and its arithmetic
// against what an H200 answered (tests/fixtures/tensor/h200.bin, recorded by
// tests/gpu/programs/tensor_vectors.cpp).
#include "support/catch.hpp"
#include "support/tensor_run.hpp"

#include <ptxbench/emulator.hpp>

#include <set>
#include <sstream>

using namespace ptxbench;
using namespace ptxbench::testing;

TEST_CASE("matrix instructions: names are different") {
  std::set<std::string> names;
  for (const TensorForm& form : tensor_forms()) CHECK(names.insert(form.name()).second);
}

TEST_CASE("matrix instructions: kernels on the emulator give what its arithmetic says") {
  auto device = open_emulator_device({});
  if (!device) FAIL(device.error().to_string());
  for (const auto mode :
       {EmulatorSchedule::Mode::eager, EmulatorSchedule::Mode::lazy, EmulatorSchedule::Mode::random}) {
    (*device)->set_schedule({mode, 7});
    for (const TensorForm& form : tensor_forms()) {
      INFO(form.name());
      const int tiles = std::min(form.tiles, mode == EmulatorSchedule::Mode::eager ? 5 : 1);
      const auto results = run_tensor(**device, form, tiles);
      if (!results) {
        FAIL_CHECK(results.error().to_string());
        continue;
      }
      for (int tile = 0; tile < tiles; ++tile)
        CHECK((*results)[static_cast<std::size_t>(tile)] == expected_tile(form, tile));
    }
  }
}

TEST_CASE("matrix instructions: the arithmetic gives the bits of an H200") {
  const auto forms = tensor_forms();
  const auto recorded = read_tensor(PTXBENCH_SOURCE_DIR "/tests/fixtures/tensor/h200.bin", forms);
  if (recorded.empty()) {
    WARN("skipped: nothing is recorded");
    return;
  }
  for (const TensorForm& form : forms) {
    const auto at = recorded.find(form.name());
    if (at == recorded.end()) continue;
    const RecordedTensor& card = at->second;
    std::size_t wrong = 0;
    for (std::size_t tile = 0; tile < card.hashes.size(); ++tile) {
      const auto expected = expected_tile(form, static_cast<int>(tile));
      wrong += tile_hash(expected) != card.hashes[tile];
      if (tile < card.tiles.size()) CHECK(tile_hash(card.tiles[tile]) == card.hashes[tile]);
    }
    INFO(form.name() << ": tiles that differ");
    if (form.rule().fidelity == emulator::RuleFidelity::exact) CHECK(wrong == 0);
    if (wrong != 0) WARN(form.name() << ": " << wrong << " tiles of " << card.hashes.size() << " differ");
  }
}
