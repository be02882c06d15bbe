#include "support/gpu.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// Small kernels; no headers, so that NVRTC needs none.
constexpr const char* kKernels = R"cuda(
typedef unsigned int u32; typedef unsigned long long u64;
extern "C" __global__ void add(const int* a, const int* b, int* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void spin(u64 nanoseconds) {
  u64 start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < nanoseconds);
}
extern "C" __global__ void cluster_shape(u32* out) {
  u32 size, rank, clusters;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%nclusterid.x;" : "=r"(clusters));
  if (threadIdx.x == 0) { out[blockIdx.x * 4] = size; out[blockIdx.x * 4 + 1] = rank; out[blockIdx.x * 4 + 2] = clusters;
    out[blockIdx.x * 4 + 3] = gridDim.x; }
}
extern "C" __global__ void __cluster_dims__(2, 1, 1) compiled_cluster(u32* out) {
  u32 size; asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  if (threadIdx.x == 0) out[blockIdx.x] = size;
}
// A barrier of the whole grid: ends only if all CTAs are resident together.
extern "C" __global__ void grid_barrier(u32* arrived, u32* out) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1);
    while (*(volatile u32*)arrived < gridDim.x) {}
    atomicAdd(out, 1);
  }
}
extern "C" __global__ void pdl_first(u32* a, int n) {
  asm volatile("griddepcontrol.launch_dependents;");
  u64 start, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - start < 200000);
  for (int i = threadIdx.x; i < n; i += blockDim.x) a[i] = 3 * i;
}
extern "C" __global__ void pdl_second(const u32* a, u32* b, int n) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  for (int i = threadIdx.x; i < n; i += blockDim.x) b[i] = a[i] + 1;
}
struct Large { char bytes[4000]; };
extern "C" __global__ void large(const __grid_constant__ Large) {}
extern "C" __global__ void last_shared_byte(u32* out, u32 bytes) {
  extern __shared__ unsigned char smem[];
  smem[bytes - 1] = 42; __syncthreads();
  if (threadIdx.x == 0) *out = smem[bytes - 1];
}
extern "C" __global__ void with_static(u32* out, u32 bytes) {
  __shared__ u32 fixed[4096];
  extern __shared__ unsigned char smem[];
  fixed[threadIdx.x] = 7; smem[bytes - 1] = 1; __syncthreads();
  if (threadIdx.x == 0) *out = fixed[0] + smem[bytes - 1];
}
extern "C" __global__ void __block_size__((64, 1, 1), (2, 1, 1)) counts_clusters(u32* out) {
  if (threadIdx.x == 0) { out[0] = gridDim.x; atomicAdd(out + 1, 1); }
}
extern "C" __global__ void local(u32* out, int n) {
  volatile u32 a[512];
  for (int i = 0; i < n; ++i) a[(i * 7) & 511] = i;
  if (threadIdx.x == 0 && blockIdx.x == 0) *out = a[((n - 1) * 7) & 511];
}
extern "C" __global__ void very_local(u32* out, int n) {
  volatile u32 a[8192];
  for (int i = 0; i < n; ++i) a[(i * 7) & 8191] = i;
  if (threadIdx.x == 0 && blockIdx.x == 0) *out = a[((n - 1) * 7) & 8191];
}
extern "C" __global__ void nothing() {}
)cuda";

Result<DeviceOutcome> wait(Device& device) { return device.synchronize(10'000'000'000); }

}  // namespace

TEST_CASE("gpu: identity and limits") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceInfo& info = device->info();
  REQUIRE(info.id.rfind("cuda:GPU-", 0) == 0);
  REQUIRE(info.id.size() == std::string("cuda:GPU-").size() + 36);
  REQUIRE_FALSE(info.emulated);
  REQUIRE(info.limits.sm_count > 0);
  REQUIRE(info.limits.smem_optin_bytes >= 48 * 1024);
  REQUIRE(info.limits.smem_per_sm_bytes >= info.limits.smem_optin_bytes);
  REQUIRE(info.limits.regs_per_sm == 65536);
  REQUIRE(info.limits.memory_bytes > (1u << 30));
  REQUIRE(info.versions.at(0).first == "driver");
  WARN(info.id << ", " << info.name << ", " << info.arch << ", " << info.versions.at(0).second << ", "
               << info.limits.sm_count << " SMs, " << info.limits.smem_optin_bytes << " B of shared memory");
  // The id opens the same device again.
  auto again = open_cuda_device(info.id);
  REQUIRE(again);
  REQUIRE((*again)->info().id == info.id);
}

TEST_CASE("gpu: memory is written, filled, copied and read") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceBuffer a = device->allocate(1 << 20).value(), b = device->allocate(1 << 20).value();
  REQUIRE(a.address % 256 == 0);
  REQUIRE(device->fill(a.address, 0x11, 1, 1 << 20));
  REQUIRE(device->fill(a.address, 0xbeef, 2, 3));
  REQUIRE(device->fill(a.address + 8, 0x12345678, 4, 2));
  REQUIRE(device->fill(a.address + 16, 0x1122334455667788, 8, 100000));  // unequal halves
  REQUIRE(device->fill(a.address + 16 + 800000, 0x4444444444444444, 8, 3));
  REQUIRE(device->copy(b.address, a.address, 1 << 20));
  const auto bytes = read_back<std::uint8_t>(*device, b.address, 1 << 20);
  REQUIRE(bytes[0] == 0xef);
  REQUIRE(bytes[5] == 0xbe);
  REQUIRE(bytes[6] == 0x11);
  const auto wide = read_back<std::uint64_t>(*device, b.address + 16, 100004);
  REQUIRE(std::all_of(wide.begin(), wide.begin() + 100000, [](auto v) { return v == 0x1122334455667788; }));
  REQUIRE(wide[100002] == 0x4444444444444444);
  REQUIRE(wide[100003] == 0x1111111111111111);
  REQUIRE(read_back<std::uint32_t>(*device, b.address + 8, 2) ==
          std::vector<std::uint32_t>{0x12345678, 0x12345678});
  const DeviceEvent start = device->create_event().value(), end = device->create_event().value();
  REQUIRE(device->record(start));
  REQUIRE(device->fill(a.address, 0x3ff0000000000000, 8, 131072));
  REQUIRE(device->record(end));
  REQUIRE_FALSE(*wait(*device));
  WARN("1 MiB of unequal halves filled in " << device->elapsed_ns(start, end).value() << " ns");
  const auto ones = read_back<double>(*device, a.address, 131072);
  REQUIRE(std::all_of(ones.begin(), ones.end(), [](double v) { return v == 1.0; }));
  REQUIRE(device->host_view(a.address) == nullptr);
  REQUIRE_FALSE(device->fill(a.address, 0, 3, 1));
  REQUIRE_FALSE(device->fill(a.address + 1, 0, 4, 1));
  device->release(a);
  device->release(b);
}

TEST_CASE("gpu: an allocation that does not fit is an error, and the device goes on") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const auto huge = device->allocate(device->info().limits.memory_bytes * 2);
  REQUIRE_FALSE(huge);
  REQUIRE(huge.error().code == ErrorCode::no_memory);
  REQUIRE(device->allocate(0));
  REQUIRE(device->allocate(16));
}

TEST_CASE("gpu: a kernel runs between events; host latency lies outside of the gate") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceEvent start = device->create_event().value(), end = device->create_event().value();
  REQUIRE(device->elapsed_ns(start, end).error().code == ErrorCode::state);
  const Parameters spin = Parameters().add(std::uint64_t{1'000'000});
  const DeviceBuffer buffer = device->allocate(64).value();

  REQUIRE(device->close_gate());
  REQUIRE_FALSE(device->close_gate());
  REQUIRE(device->record(start));
  REQUIRE_FALSE(*device->launch(launch_of(module, "spin", spin)));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // a slow host
  REQUIRE_FALSE(*device->launch(launch_of(module, "spin", spin)));
  REQUIRE(device->record(end));
  REQUIRE(device->elapsed_ns(start, end).error().code == ErrorCode::busy);
  // What would wait for ever is an error.
  std::uint8_t byte = 0;
  REQUIRE(device->read(buffer.address, {&byte, 1}).error().code == ErrorCode::state);
  REQUIRE(device->synchronize(1000).error().code == ErrorCode::state);
  REQUIRE(device->allocate(16).error().code == ErrorCode::state);
  device->release(buffer);  // later
  REQUIRE(device->open_gate());
  REQUIRE_FALSE(*wait(*device));
  const std::uint64_t elapsed = device->elapsed_ns(start, end).value();
  WARN("two spins of 1 ms behind the gate: " << elapsed << " ns");
  REQUIRE(elapsed >= 1'900'000);
  REQUIRE(elapsed < 200'000'000);  // the host slept for 300 ms
}

TEST_CASE("gpu: a gate left closed does not keep the device from ending, nor does a full queue") {
  {
    const auto device = gpu_or_skip();
    if (!device) return;
    const DeviceModule module = load_text(*device, kKernels);
    REQUIRE(device->close_gate());
    REQUIRE_FALSE(*device->launch(launch_of(module, "nothing", {})));
  }
  const auto device = gpu_or_skip();
  const DeviceModule module = load_text(*device, kKernels);
  REQUIRE(device->close_gate());
  int queued = 0;
  std::optional<Error> stopped;
  for (; queued < 5000 && !stopped; ++queued) {
    auto outcome = device->launch(launch_of(module, "nothing", {}));
    if (!outcome) stopped = outcome.error();
  }
  REQUIRE(stopped);
  REQUIRE(stopped->code == ErrorCode::state);
  REQUIRE(queued > 500);
  REQUIRE_FALSE(*wait(*device));  // the gate is open again

  const Parameters large = Parameters().add(std::array<char, 4000>{});
  REQUIRE(device->close_gate());
  stopped.reset();
  for (queued = 0; queued < 5000 && !stopped; ++queued) {
    auto outcome = device->launch(launch_of(module, "large", large));
    if (!outcome) stopped = outcome.error();
  }
  REQUIRE(stopped);
  REQUIRE(stopped->code == ErrorCode::state);
  REQUIRE(queued > 300);
  REQUIRE_FALSE(*wait(*device));
}

TEST_CASE("gpu: kernels with local memory do not block behind the gate") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer out = device->allocate(4).value();
  const Parameters parameters = Parameters().add(out.address).add(100);
  const auto ctas = static_cast<std::uint32_t>(device->info().limits.sm_count * 8);
  REQUIRE(device->close_gate());
  const auto outcome =
      device->launch(launch_of(module, "local", parameters, ctas, 256));  // room was made at loading
  REQUIRE(outcome);
  REQUIRE_FALSE(*outcome);
  REQUIRE(device->open_gate());
  REQUIRE_FALSE(*wait(*device));
  REQUIRE(read_back<std::uint32_t>(*device, out.address, 1)[0] == 99);

  REQUIRE(device->close_gate());
  const auto refused = device->launch(launch_of(module, "very_local", parameters, ctas, 256));
  REQUIRE_FALSE(refused);
  REQUIRE(refused.error().code == ErrorCode::state);
  run(*device, launch_of(module, "very_local", parameters, 1, 32));  // the gate is open again
  REQUIRE(device->close_gate());
  const auto now = device->launch(launch_of(module, "very_local", parameters, ctas, 256));
  REQUIRE(now);
  REQUIRE_FALSE(*now);
  REQUIRE(device->open_gate());
  REQUIRE_FALSE(*wait(*device));
}

TEST_CASE("gpu: a grid counts CTAs, also for a kernel that is compiled to count clusters") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const auto compiled = nvrtc_compile(kKernels, device->info().arch);
  REQUIRE(compiled);
  const DeviceBuffer out = device->allocate(8).value();
  const Parameters parameters = Parameters().add(out.address);
  for (bool from_ptx : {false, true}) {
    ModuleImage image;
    image.source = "test.cu";
    if (!from_ptx) image.cubin = compiled->cubin;
    image.ptx = compiled->ptx;
    const auto module = device->load(image);
    REQUIRE(module);
    REQUIRE(device->fill(out.address, 0, 4, 2));
    DeviceLaunch launch = launch_of(*module, "counts_clusters", parameters, 6, 64);
    run(*device, launch);
    REQUIRE(read_back<std::uint32_t>(*device, out.address, 2) == std::vector<std::uint32_t>{6, 6});
    REQUIRE(device->fill(out.address, 0, 4, 2));
    launch.has_cluster = true;
    launch.cluster = {2, 1, 1};
    run(*device, launch);
    REQUIRE(read_back<std::uint32_t>(*device, out.address, 2) == std::vector<std::uint32_t>{6, 6});
    launch.grid = {5, 1, 1};
    const auto refused = device->launch(launch);
    REQUIRE(refused);
    REQUIRE(*refused);
    REQUIRE((*refused)->kind == DeviceFault::Kind::launch_refused);
  }
}

TEST_CASE("gpu: clusters of 2 and of 16, given by the launch or by the code") {
  const auto device = gpu_or_skip();
  if (!device) return;
  if (device->info().limits.max_cluster < 16) {
    WARN("skipped: no clusters of 16");
    return;
  }
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer out = device->allocate(4096).value();
  const Parameters parameters = Parameters().add(out.address);
  for (std::uint32_t size : {2u, 8u, 16u}) {
    DeviceLaunch launch = launch_of(module, "cluster_shape", parameters, 32, 128);
    launch.has_cluster = true;
    launch.cluster = {size, 1, 1};
    launch.cluster_policy = size == 8 ? 2 : 1;
    run(*device, launch);
    const auto values = read_back<std::uint32_t>(*device, out.address, 128);
    for (std::uint32_t cta = 0; cta < 32; ++cta) {
      REQUIRE(values[cta * 4] == size);
      REQUIRE(values[cta * 4 + 1] < size);
      REQUIRE(values[cta * 4 + 2] == 32 / size);
      REQUIRE(values[cta * 4 + 3] == 32);
    }
  }
  const DeviceQueries queries = device->queries({module});
  for (std::uint32_t size : {1u, 2u, 16u}) {
    OccupancyQuery query{0, "cluster_shape", {128, 1, 1}, {size, 1, 1}, 200 * 1024};
    const auto clusters = queries.max_active_clusters(query);
    REQUIRE(clusters);
    REQUIRE(*clusters > 0);
    REQUIRE(*clusters * size <= device->info().limits.sm_count);
    REQUIRE(queries.occupancy(query).value() == 1);
    WARN("clusters of " << size << " with 200 KiB of shared memory: " << *clusters << " active");
  }
  OccupancyQuery too_much{0, "cluster_shape", {128, 1, 1}, {1, 1, 1}, 1 << 20};
  REQUIRE(queries.occupancy(too_much).value() == 0);

  run(*device, launch_of(module, "compiled_cluster", parameters, 4, 32));  // no attribute: the code's shape
  REQUIRE(read_back<std::uint32_t>(*device, out.address, 4) == std::vector<std::uint32_t>{2, 2, 2, 2});
  DeviceLaunch same = launch_of(module, "compiled_cluster", parameters, 4, 32);
  same.has_cluster = true;
  same.cluster = {2, 1, 1};
  run(*device, same);
  const ModuleInfo info = device->describe(module).value();
  for (const KernelInfo& kernel : info.kernels)
    if (kernel.symbol == "compiled_cluster")
      REQUIRE(kernel.required_cluster == std::array<std::uint32_t, 3>{2, 1, 1});
}

TEST_CASE("gpu: a cooperative grid runs together, and one that is too large is refused") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer words = device->allocate(8).value();
  REQUIRE(device->fill(words.address, 0, 4, 2));
  const Parameters parameters = Parameters().add(words.address).add(words.address + 4);
  const auto per_sm =
      device->queries({module}).occupancy({0, "grid_barrier", {256, 1, 1}, {1, 1, 1}, 0}).value();
  const auto ctas = static_cast<std::uint32_t>(per_sm * device->info().limits.sm_count);
  DeviceLaunch launch = launch_of(module, "grid_barrier", parameters, ctas, 256);
  launch.cooperative = true;
  run(*device, launch);
  REQUIRE(read_back<std::uint32_t>(*device, words.address, 2) == std::vector<std::uint32_t>{ctas, ctas});
  launch.grid = {ctas + 1, 1, 1};
  const auto refused = device->launch(launch);
  REQUIRE(refused);
  REQUIRE(*refused);
  REQUIRE((*refused)->kind == DeviceFault::Kind::launch_refused);
  REQUIRE((*refused)->code == 720);
  REQUIRE_FALSE((*refused)->sticky);
  REQUIRE_FALSE(*wait(*device));
}

TEST_CASE("gpu: a programmatic dependent launch sees what its predecessor wrote") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer a = device->allocate(4096).value(), b = device->allocate(4096).value();
  const Parameters first = Parameters().add(a.address).add(1024);
  const Parameters second = Parameters().add(a.address).add(b.address).add(1024);
  for (int repeat = 0; repeat < 5; ++repeat) {
    REQUIRE(device->fill(a.address, 0, 4, 1024));
    REQUIRE_FALSE(*device->launch(launch_of(module, "pdl_first", first, 1, 256)));
    DeviceLaunch launch = launch_of(module, "pdl_second", second, 1, 256);
    launch.pdl = true;
    run(*device, launch);
    const auto values = read_back<std::uint32_t>(*device, b.address, 1024);
    for (std::uint32_t i = 0; i < 1024; ++i) REQUIRE(values[i] == 3 * i + 1);
  }
}

TEST_CASE("gpu: all of a CTA's shared memory can be used, and no byte more") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer out = device->allocate(4).value();
  const auto most = static_cast<std::uint32_t>(device->info().limits.smem_optin_bytes);
  const auto try_bytes = [&](const char* kernel, std::uint32_t bytes) {
    const Parameters parameters = Parameters().add(out.address).add(bytes);
    DeviceLaunch launch = launch_of(module, kernel, parameters, 1, 128);
    launch.dynamic_shared_bytes = bytes;
    launch.carveout = 100;
    return device->launch(launch);
  };
  for (std::uint32_t bytes : {49152u, 49153u, most, 1024u}) {
    REQUIRE_FALSE(*try_bytes("last_shared_byte", bytes));
    REQUIRE_FALSE(*wait(*device));
    REQUIRE(read_back<std::uint32_t>(*device, out.address, 1)[0] == 42);
  }
  REQUIRE_FALSE(*try_bytes("with_static", most - 16384));
  REQUIRE_FALSE(*wait(*device));
  REQUIRE(read_back<std::uint32_t>(*device, out.address, 1)[0] == 8);
  for (const auto& outcome :
       {try_bytes("last_shared_byte", most + 1), try_bytes("with_static", most - 16383)}) {
    REQUIRE(outcome);
    REQUIRE(*outcome);
    REQUIRE((*outcome)->kind == DeviceFault::Kind::launch_refused);
    REQUIRE((*outcome)->message.find(std::to_string(most)) != std::string::npos);
  }
  const ModuleInfo info = device->describe(module).value();
  for (const KernelInfo& kernel : info.kernels)
    if (kernel.symbol == "with_static") REQUIRE(kernel.static_shared_bytes >= 16384);
}

TEST_CASE("gpu: launches that cannot be are refused, and the device goes on") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const DeviceModule module = load_text(*device, kKernels);
  const DeviceBuffer out = device->allocate(4096).value();
  const Parameters parameters = Parameters().add(out.address);
  std::vector<DeviceLaunch> launches;
  DeviceLaunch launch = launch_of(module, "cluster_shape", parameters, 4, 1025);
  launches.push_back(launch);  // 1025 threads
  launch.block = {32, 1, 1};
  launch.grid = {0, 1, 1};
  launches.push_back(launch);  // no CTA
  launch.grid = {130, 1, 1};
  launch.has_cluster = true;
  launch.cluster = {4, 1, 1};
  launches.push_back(launch);  // 4 does not divide 130
  launch.grid = {64, 1, 1};
  launch.cluster = {32, 1, 1};
  launches.push_back(launch);  // over the device's limit
  launch.cluster = {1, 1, 1};
  launch.has_cluster = false;
  launch.grid = {1, 65536, 1};
  launches.push_back(launch);  // over the grid's limit
  launch = launch_of(module, "compiled_cluster", parameters, 3, 32);
  launches.push_back(launch);  // the code's cluster does not divide
  for (std::size_t i = 0; i < launches.size(); ++i) {
    INFO("launch " << i);
    const auto outcome = device->launch(launches[i]);
    REQUIRE(outcome);
    REQUIRE(*outcome);
    REQUIRE((*outcome)->kind == DeviceFault::Kind::launch_refused);
    REQUIRE_FALSE((*outcome)->sticky);
    REQUIRE((*outcome)->message.find("clu") != std::string::npos);  // names the kernel
    WARN((*outcome)->message);
  }
  REQUIRE(device->launch(launch_of(module, "absent", parameters)).error().code == ErrorCode::not_found);
  REQUIRE(device->launch(launch_of(module, "add", parameters)).error().code == ErrorCode::invalid_argument);
  run(*device, launch_of(module, "cluster_shape", parameters, 4, 32));
}

TEST_CASE("gpu: PTX is assembled by the driver where there is no cubin, and its errors are kept") {
  const auto device = gpu_or_skip();
  if (!device) return;
  const auto compiled = nvrtc_compile(
      "__device__ int counter = 5; extern \"C\" __global__ void k(int* out, short s, double d) "
      "{ *out = counter++ + s + (int)d; }",
      device->info().arch);
  REQUIRE(compiled);
  ModuleImage image;
  image.source = "k.ptx";
  image.ptx = compiled->ptx;
  const DeviceModule module = device->load(image).value();
  const ModuleInfo info = device->describe(module).value();
  REQUIRE(info.kernels.size() == 1);
  REQUIRE(info.kernels[0].symbol == "k");
  REQUIRE(info.kernels[0].registers > 0);
  REQUIRE(info.kernels[0].parameters.size() == 3);
  REQUIRE(info.kernels[0].parameters[1].offset == 8);
  REQUIRE(info.kernels[0].parameters[1].size == 2);
  REQUIRE(info.kernels[0].parameters[2].offset == 16);
  REQUIRE(info.kernels[0].parameter_bytes == 24);
  REQUIRE(info.globals.size() == 1);
  REQUIRE(info.globals[0].bytes == 4);
  const DeviceBuffer out = device->allocate(4).value();
  run(*device, launch_of(module, "k", Parameters().add(out.address).add(std::int16_t{10}).add(2.0)));
  REQUIRE(read_back<int>(*device, out.address, 1)[0] == 17);

  image.ptx =
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() { nonsense.b32 %r1; ret; }\n";
  const auto broken = device->load(image);
  REQUIRE_FALSE(broken);
  REQUIRE(broken.error().code == ErrorCode::invalid_argument);
  REQUIRE(broken.error().rule == "module_load");
  REQUIRE(broken.error().where.file == "k.ptx");
  REQUIRE(broken.error().message.find("nonsense") != std::string::npos);
  const std::vector<std::uint8_t> rubbish(256, 0x5a);
  image.cubin = rubbish;
  REQUIRE_FALSE(device->load(image));
  REQUIRE(device->allocate(4));
  device->unload(module);
  REQUIRE_FALSE(device->describe(module));
}
