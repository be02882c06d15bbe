#include "support/gpu.hpp"

#include <algorithm>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

constexpr const char* kKernels = R"cuda(
typedef unsigned int u32; typedef unsigned long long u64;
extern "C" __global__ void add_scaled(const int* a, int* scratch, int* out, int n, int scale) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) { scratch[i] += a[i] * scale; out[i] = scratch[i]; }
}
extern "C" __global__ void overrun(unsigned char* scratch, int n) { scratch[n] = 1; }
__device__ int shown = 5;
static __device__ int hidden = 7;
namespace { __device__ int anonymous[3]; }
__constant__ int constant[4] = {1, 2, 3, 4};
__device__ int* from_plan;
extern "C" __global__ void count(int* out) {
  static __device__ int in_function = 11;
  out[0] = shown++; out[1] = hidden++; out[2] = in_function++; out[3] = anonymous[threadIdx.x]++; out[4] = constant[threadIdx.x + 1];
  if (from_plan) *from_plan = 77;
}
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void tma_copy(const __grid_constant__ Map map, int* out) {
  __shared__ alignas(128) int tile[8 * 32];
  __shared__ alignas(8) u64 barrier;
  u32 bar = (u32)__cvta_generic_to_shared(&barrier), dst = (u32)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(8 * 32 * 4) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(dst), "l"(&map), "r"(32), "r"(4), "r"(bar) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra W; }" :: "r"(bar) : "memory");
  for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) out[i] = tile[i];
}
)cuda";

ResolvedLaunch launch_step(const char* symbol, std::size_t step, const Parameters& parameters,
                           std::vector<Patch> patches) {
  ResolvedLaunch launch;
  launch.step = step;
  launch.name = launch.symbol = symbol;
  launch.block = {32, 1, 1};
  launch.parameters = parameters.bytes();
  launch.patches = std::move(patches);
  return launch;
}

void write_ints(Device& device, std::uint64_t address, const std::vector<int>& values) {
  REQUIRE(device.write(address, {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * 4}));
}

bool red_zones_intact(Device& device, const DeviceBuffer& workspace) {
  for (std::uint64_t zone : {workspace.address - kRedZoneBytes, workspace.address + workspace.bytes}) {
    const auto bytes = read_back<std::uint8_t>(device, zone, kRedZoneBytes);
    if (!std::all_of(bytes.begin(), bytes.end(), [](auto b) { return b == kRedZoneByte; })) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("gpu: a plan runs with its workspaces initialised, addresses patched and red zones intact") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const int n = 100;
  const DeviceBuffer a = device->allocate(n * 4).value(), out = device->allocate(n * 4).value(),
                     copied = device->allocate(n * 4).value();
  std::vector<int> values(n);
  for (int i = 0; i < n; ++i) values[static_cast<std::size_t>(i)] = i * i;
  write_ints(*device, a.address, values);

  ResolvedPlan plan;
  ResolvedWorkspace scratch;
  scratch.name = "scratch";
  scratch.bytes = n * 4;
  scratch.initialised = true;
  scratch.element_bytes = 4;
  scratch.pattern = 1000;
  ResolvedWorkspace loose;
  loose.name = "loose";
  loose.bytes = 33;
  plan.workspaces = {scratch, loose};
  using K = BufferRef::Kind;
  const Parameters parameters =
      Parameters().add(std::uint64_t{0}).add(std::uint64_t{0}).add(std::uint64_t{0}).add(n - 1).add(3);
  plan.operations = {ResolvedMemset{0, {K::output, 0, 0}, n, 4, 9},
                     launch_step("add_scaled", 1, parameters,
                                 {{0, BufferRef{K::input, 0, 4}},
                                  {8, BufferRef{K::workspace, 0, 4}},
                                  {16, BufferRef{K::output, 0, 4}}}),
                     ResolvedCopy{2, {K::output, 0, 0}, {K::output, 1, 0}, n * 4}};
  const auto runner = PlanRunner::create(*device, plan, {module}, {{a}, {out, copied}}).value();
  REQUIRE(runner->poison_workspaces(0x33));
  for (int run = 0; run < 2; ++run) {  // the second sees nothing of the first
    REQUIRE_FALSE(*runner->enqueue());
    REQUIRE_FALSE(*device->synchronize(10'000'000'000));
    const auto got = read_back<int>(*device, copied.address, n);
    REQUIRE(got[0] == 9);
    for (int i = 1; i < n; ++i) REQUIRE(got[static_cast<std::size_t>(i)] == 1000 + 3 * i * i);
  }
  REQUIRE(read_back<std::uint8_t>(*device, runner->workspaces()[1].address, 33) ==
          std::vector<std::uint8_t>(33, 0x33));
  for (const DeviceBuffer& workspace : runner->workspaces()) REQUIRE(red_zones_intact(*device, workspace));

  plan.operations = {launch_step("overrun", 0, Parameters().add(std::uint64_t{0}).add(33),
                                 {{0, BufferRef{K::workspace, 1, 0}}})};
  const auto bad = PlanRunner::create(*device, plan, {module}, {{a}, {out, copied}}).value();
  REQUIRE_FALSE(*bad->enqueue());
  REQUIRE_FALSE(*device->synchronize(10'000'000'000));
  REQUIRE(red_zones_intact(*device, bad->workspaces()[0]));
  REQUIRE_FALSE(red_zones_intact(*device, bad->workspaces()[1]));  // one byte too far
}

TEST_CASE("gpu: globals are as they were after restoring, hidden ones too") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const ModuleInfo info = device->describe(module).value();
  std::string names;
  for (const GlobalInfo& global : info.globals)
    names += global.symbol + "(" + std::to_string(global.bytes) + ") ";
  WARN("globals: " << names);
  const auto image = GlobalsImage::capture(*device, {module}).value();
  const DeviceBuffer out = device->allocate(64).value();
  const auto count = [&] {
    run(*device, launch_of(module, "count", Parameters().add(out.address)));
    return read_back<int>(*device, out.address, 5);
  };
  const std::vector<int> fresh{5, 7, 11, 0, 2};
  REQUIRE(count() == fresh);
  REQUIRE(count() == std::vector<int>{6, 8, 12, 1, 2});  // state lives between launches
  const std::vector<int> other{9, 9, 9, 9};
  write_ints(*device, device->global(module, "constant")->address, other);
  REQUIRE(count()[4] == 9);
  REQUIRE(image->restore());
  REQUIRE(count() == fresh);

  // A plan's globals: the address of an output.
  ResolvedPlan plan;
  ResolvedGlobal global;
  global.symbol = "from_plan";
  global.bytes.assign(8, 0);
  global.patches = {{0, BufferRef{BufferRef::Kind::output, 0, 40}}};
  plan.globals = {global};
  const auto runner = PlanRunner::create(*device, plan, {module}, {{}, {out}}).value();
  REQUIRE(runner->set_globals());
  count();
  REQUIRE(read_back<int>(*device, out.address + 40, 1)[0] == 77);
  REQUIRE(image->restore());
  write_ints(*device, out.address + 40, {0});
  count();
  REQUIRE(read_back<int>(*device, out.address + 40, 1)[0] == 0);
  REQUIRE(device->global(module, "absent").error().code == ErrorCode::not_found);
}

TEST_CASE("gpu: a tensor map is encoded, patched in, and copies the box that it says") {
  const auto device = gpu_or_skip();
  if (!device) return;
  if (device->info().limits.compute_major < 9) {
    WARN("skipped: no TMA");
    return;
  }
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer in = device->allocate(64 * 16 * 4).value(), out = device->allocate(8 * 32 * 4).value();
  std::vector<int> values(64 * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  write_ints(*device, in.address, values);
  ResolvedPlan plan;
  ResolvedTensorMap map;
  map.name = "map_in";
  map.base = {BufferRef::Kind::input, 0, 0};
  map.data_type = CU_TENSOR_MAP_DATA_TYPE_INT32;
  map.dims = {64, 16};
  map.strides = {64 * 4};
  map.box = {32, 8};
  map.element_strides = {1, 1};
  plan.maps = {map};
  // The compiler aligns the map in the constant bank, not in the buffer: its offset is not 0.
  ResolvedLaunch launch = launch_step("tma_copy", 0, {}, {});
  const ModuleInfo info = device->describe(module).value();
  for (const KernelInfo& kernel : info.kernels) {
    if (kernel.symbol != "tma_copy") continue;
    REQUIRE(kernel.parameters.size() == 2);
    REQUIRE(kernel.parameters[0].size == 128);
    launch.parameters.assign(kernel.parameter_bytes, 0);
    launch.patches = {{kernel.parameters[0].offset, std::size_t{0}},
                      {kernel.parameters[1].offset, BufferRef{BufferRef::Kind::output, 0, 0}}};
  }
  plan.operations = {launch};
  auto created = PlanRunner::create(*device, plan, {module}, {{in}, {out}});
  if (!created) FAIL(created.error().to_string());
  const auto& runner = *created;
  const auto queued = runner->enqueue();
  if (!queued) FAIL(queued.error().to_string());
  if (*queued) FAIL((*queued)->message);
  REQUIRE_FALSE(*device->synchronize(10'000'000'000));
  const auto got = read_back<int>(*device, out.address, 8 * 32);
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 32; ++x) REQUIRE(got[static_cast<std::size_t>(y * 32 + x)] == (y + 4) * 64 + x + 32);

  map.strides = {64 * 4 + 8};  // no multiple of 16
  const auto refused = device->encode(map, in.address);
  REQUIRE_FALSE(refused);
  REQUIRE(refused.error().rule == "tensor_map");
  REQUIRE(refused.error().message.find("map_in") != std::string::npos);
  map.strides.clear();
  REQUIRE_FALSE(device->encode(map, in.address));
}
