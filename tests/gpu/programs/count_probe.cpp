// count_probe launch|count CUBIN KERNEL GRID BLOCK: launches a kernel of a cubin that takes one pointer (to 1
// MiB of zeros), once; or counts such a launch and prints "OPCODE WARPS THREADS" for each opcode, modifiers
// left out.
#include "support/count_case.hpp"

#include <ptxbench/compile.hpp>

#include <cstdio>
#include <cstdlib>

using namespace ptxbench;

namespace {

constexpr std::uint64_t kBytes = 1 << 20;

int fail(const std::string& why) {
  std::fprintf(stderr, "count_probe: %s\n", why.c_str());
  return 1;
}

int launch(Device& device, const std::vector<std::uint8_t>& cubin, const std::string& kernel, int grid,
           int block) {
  ModuleImage image;
  image.source = "probe.cubin";
  image.cubin = cubin;
  const auto module = device.load(image);
  if (!module) return fail(module.error().to_string());
  const auto buffer = device.allocate(kBytes);
  if (!buffer) return fail(buffer.error().to_string());
  if (const auto filled = device.fill(buffer->address, 0, 4, kBytes / 4); !filled)
    return fail(filled.error().to_string());
  std::vector<std::uint8_t> parameters(8);
  std::memcpy(parameters.data(), &buffer->address, 8);
  DeviceLaunch l;
  l.module = *module;
  l.symbol = kernel;
  l.grid = {static_cast<std::uint32_t>(grid), 1, 1};
  l.block = {static_cast<std::uint32_t>(block), 1, 1};
  l.parameters = parameters;
  const auto outcome = device.launch(l);
  if (!outcome) return fail(outcome.error().to_string());
  if (*outcome) return fail((*outcome)->message);
  const auto done = device.synchronize(60'000'000'000);
  if (!done) return fail(done.error().to_string());
  return *done ? fail((*done)->message) : 0;
}

int count(Device& device, std::vector<std::uint8_t> cubin, const std::string& kernel, int grid, int block) {
  const auto judge = compile_in_process(judge_compile_request(device.info().arch));
  if (!judge) return fail(judge.error().to_string());
  if (!judge->ok) return fail(judge->log);
  CountJob job = testing::probe_job(std::move(cubin), kernel, grid, block, 1, kBytes / 4);
  job.judge_cubin = judge->modules.at(0).cubin;
  testing::AnyOutput any;
  LocalCallbacks callbacks(nullptr, &any, &any);
  const auto evidence = run_count(device, job, callbacks);
  if (!evidence) return fail(evidence.error().to_string());
  Verdict verdict;
  compose_counts(*evidence, job.candidate.modules, {}, verdict);
  if (verdict.counts.state != Availability::measured) return fail(verdict.counts.reason);
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> sums;
  for (const OpcodeCount& opcode : verdict.counts.opcodes) {
    auto& sum = sums[opcode.opcode.substr(0, opcode.opcode.find('.'))];
    sum.first += opcode.warp_instructions;
    sum.second += opcode.thread_instructions;
  }
  for (const auto& [opcode, sum] : sums)
    std::printf("%s %llu %llu\n", opcode.c_str(), static_cast<unsigned long long>(sum.first),
                static_cast<unsigned long long>(sum.second));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (argc != 6 || (what != "launch" && what != "count"))
    return fail("usage: count_probe launch|count CUBIN KERNEL GRID BLOCK");
  std::vector<std::uint8_t> cubin = read_bytes(argv[2]);
  if (cubin.empty()) return fail(std::string("cannot read ") + argv[2]);
  const int grid = std::atoi(argv[4]), block = std::atoi(argv[5]);
  if (grid < 1 || block < 1) return fail("GRID and BLOCK are numbers above 0");
  auto device = open_cuda_device("auto");
  if (!device) return fail(device.error().to_string());
  return what == "launch" ? launch(**device, cubin, argv[3], grid, block)
                          : count(**device, std::move(cubin), argv[3], grid, block);
}
