// The emulator behind the interface of every device: memory, modules, launches,
// faults, reports.
#include "support/catch.hpp"

#include <ptxbench/emulator.hpp>

#include <cstring>
#include <string>
#include <vector>

using namespace ptxbench;

namespace {

constexpr const char *kHeader =
    ".version 8.7\n.target sm_90a\n.address_size 64\n"; // 3 lines

// c[i] = a[i] + b[i], for i < n; `wide` parameters force a gap.
constexpr const char *kAdd = R"ptx(
.visible .entry add(.param .u64 a, .param .u64 b, .param .u32 n, .param .u64 c, .param .u32 unread)
{
  .reg .pred %p;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<8>;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.s32 %r0, %r0, %r1, %r2;
  ld.param.u32 %r3, [n];
  setp.ge.u32 %p, %r0, %r3;
  @%p bra done;
  ld.param.u64 %rd0, [a];
  ld.param.u64 %rd1, [b];
  ld.param.u64 %rd2, [c];
  mul.wide.u32 %rd3, %r0, 4;
  add.s64 %rd4, %rd0, %rd3;
  add.s64 %rd5, %rd1, %rd3;
  add.s64 %rd6, %rd2, %rd3;
  ld.global.f32 %f0, [%rd4];
  ld.global.f32 %f1, [%rd5];
  add.f32 %f2, %f0, %f1;
  st.global.f32 [%rd6], %f2;
done:
  ret;
}
)ptx";

constexpr const char *kSpin = R"ptx(
.visible .entry spin()
{
again:
  bra again;
}
)ptx";

// One thread waits for an arrival that nobody makes.
constexpr const char *kWait = R"ptx(
.visible .entry waits()
{
  .reg .pred %p;
  .shared .align 8 .b64 barrier;
  mbarrier.init.shared::cta.b64 [barrier], 2;
again:
  mbarrier.try_wait.parity.shared::cta.b64 %p, [barrier], 0;
  @!%p bra again;
  ret;
}
)ptx";

std::string ptx(std::string_view body) {
  return std::string(kHeader) + std::string(body);
}

struct Emulated {
  std::unique_ptr<EmulatedDevice> device;

  explicit Emulated(std::string_view name = "emulator:h200") {
    const auto options = parse_emulator_name(name);
    if (!options)
      FAIL(options.error().to_string());
    auto opened = open_emulator_device(*options);
    if (!opened)
      FAIL(opened.error().to_string());
    device = std::move(*opened);
  }
  DeviceModule load(std::string_view body) {
    const std::string text = ptx(body);
    ModuleImage image;
    image.source = "k.ptx";
    image.ptx = text;
    const auto module = device->load(image);
    if (!module)
      FAIL(module.error().to_string());
    return *module;
  }
  KernelInfo kernel(DeviceModule module) {
    const auto info = device->describe(module);
    REQUIRE(info);
    REQUIRE(info->kernels.size() == 1);
    return info->kernels[0];
  }
  DeviceBuffer floats(const std::vector<float> &values,
                      const char *label = nullptr) {
    const auto buffer = device->allocate(values.size() * 4);
    REQUIRE(buffer);
    REQUIRE(device->write(
        buffer->address, {reinterpret_cast<const std::uint8_t *>(values.data()),
                          values.size() * 4}));
    if (label != nullptr)
      device->label(*buffer, {MemoryLabel::Role::input,
                              label,
                              DType::float32,
                              {static_cast<std::int64_t>(values.size())}});
    return *buffer;
  }
  std::vector<float> read(const DeviceBuffer &buffer) {
    std::vector<float> values(buffer.bytes / 4);
    REQUIRE(device->read(
        buffer.address,
        {reinterpret_cast<std::uint8_t *>(values.data()), buffer.bytes}));
    return values;
  }
  DeviceOutcome launch(const DeviceLaunch &launch) {
    const auto outcome = device->launch(launch);
    if (!outcome)
      FAIL(outcome.error().to_string());
    return *outcome;
  }
  DeviceOutcome synchronize(std::uint64_t deadline_ns = 60'000'000'000) {
    const auto outcome = device->synchronize(deadline_ns);
    if (!outcome)
      FAIL(outcome.error().to_string());
    return *outcome;
  }
};

std::vector<std::uint8_t> add_parameters(const KernelInfo &kernel,
                                         const DeviceBuffer &a,
                                         const DeviceBuffer &b, std::uint32_t n,
                                         const DeviceBuffer &c) {
  std::vector<std::uint8_t> bytes(kernel.parameter_bytes);
  std::memcpy(bytes.data() + kernel.parameters[0].offset, &a.address, 8);
  std::memcpy(bytes.data() + kernel.parameters[1].offset, &b.address, 8);
  std::memcpy(bytes.data() + kernel.parameters[2].offset, &n, 4);
  std::memcpy(bytes.data() + kernel.parameters[3].offset, &c.address, 8);
  return bytes;
}

DeviceLaunch shape(DeviceModule module, std::string_view symbol,
                   std::uint32_t grid, std::uint32_t block) {
  DeviceLaunch launch;
  launch.module = module;
  launch.symbol = symbol;
  launch.grid = {grid, 1, 1};
  launch.block = {block, 1, 1};
  return launch;
}

} // namespace

TEST_CASE("an emulator's name says profile and options, and nothing unknown") {
  CHECK(is_emulator_name("emulator"));
  CHECK(is_emulator_name("emulator:h100"));
  CHECK(is_emulator_name("emulator?sm_count=2"));
  CHECK_FALSE(is_emulator_name("emulators"));
  CHECK_FALSE(is_emulator_name("cuda:0"));
  const auto options = parse_emulator_name(
      "emulator:h100?sm_count=2&memory_mib=64&step_limit=1000&threads=1");
  REQUIRE(options);
  CHECK(options->profile == "h100");
  CHECK(options->sm_count == 2);
  CHECK(options->memory_bytes == 64u << 20);
  CHECK(options->step_limit == 1000);
  CHECK(options->threads == 1);
  for (const char *bad :
       {"emulator:", "emulator:h200?sm=2", "emulator:h200?sm_count",
        "emulator:h200?sm_count=0", "emulator:h200?sm_count=2x",
        "emulator?sm_count=-1", "cuda:0"}) {
    INFO(bad);
    const auto refused = parse_emulator_name(bad);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::invalid_argument);
  }
  CHECK(parse_emulator_name("emulator?sm_coutn=2")
            .error()
            .message.find("sm_count") != std::string::npos);

  CHECK(Emulated().device->info().id == "emulator:h200");
  CHECK(Emulated("emulator").device->info().limits.sm_count == 132);
  const Emulated small("emulator:h100?sm_count=2");
  CHECK(small.device->info().id == "emulator:h100?sm_count=2");
  CHECK(small.device->info().limits.sm_count == 2);
  CHECK(small.device->info().emulated);
  CHECK(small.device->info().arch == "sm_90a");
  EmulatorOptions other;
  other.profile = "b200";
  CHECK(open_emulator_device(other).error().code == ErrorCode::unsupported);
  other.profile = "h300";
  CHECK(open_emulator_device(other).error().code == ErrorCode::not_found);
}

TEST_CASE("emulated memory is read, written, filled and copied within its "
          "allocations") {
  Emulated e("emulator?memory_mib=1");
  const DeviceBuffer a = e.floats({1, 2, 3, 4}), b = e.floats({0, 0, 0, 0});
  CHECK(a.address % 256 == 0);
  REQUIRE(e.device->copy(b.address + 4, a.address, 12));
  CHECK(e.read(b) == std::vector<float>{0, 1, 2, 3});
  REQUIRE(e.device->fill(a.address + 4, 0x3f800000, 4, 2));
  CHECK(e.read(a) == std::vector<float>{1, 1, 1, 4});
  CHECK(static_cast<float *>(e.device->host_view(a.address))[3] == 4);
  CHECK(e.device->copy(b.address, a.address, 1 << 20).error().code ==
        ErrorCode::invalid_argument);
  CHECK(e.device->fill(a.address, 0, 3, 1).error().code ==
        ErrorCode::invalid_argument);
  CHECK(e.device->fill(a.address, 0, 8, UINT64_MAX).error().code ==
        ErrorCode::invalid_argument);
  CHECK(e.device->host_view(4096) == nullptr);
  CHECK(e.device->allocate(2 << 20).error().code == ErrorCode::no_memory);
  CHECK(e.device->create_event().error().code == ErrorCode::unsupported);
  CHECK(e.device->close_gate().error().code == ErrorCode::unsupported);
  CHECK(e.device->native_stream() == nullptr);
  CHECK_FALSE(e.device->loss());
}

TEST_CASE("an emulated module is described by its PTX") {
  Emulated e;
  const DeviceModule module = e.load(R"ptx(
.visible .global .align 4 .u32 numbers[4] = {1, 2, 3, 4};
.visible .global .align 8 .u64 pointer = generic(numbers)+4;
.visible .const .align 4 .f32 pi = 0f40490FDB;
.visible .entry k(.param .u8 a, .param .align 64 .b8 map[128], .param .u16 b, .param .u64 c)
.reqntid 64
.minnctapersm 2
.reqnctapercluster 2, 1, 1
{
  .shared .align 16 .b8 tile[40];
  .reg .b64 %rd;
  ld.param.u64 %rd, [c];
  ret;
}
)ptx");
  const KernelInfo kernel = e.kernel(module);
  CHECK(kernel.symbol == "k");
  REQUIRE(kernel.parameters.size() == 4);
  const std::uint32_t offsets[] = {0, 64, 192, 200}, sizes[] = {1, 128, 2, 8};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(kernel.parameters[i].offset == offsets[i]);
    CHECK(kernel.parameters[i].size == sizes[i]);
    CHECK(kernel.parameters[i].read == (i == 3));
  }
  CHECK(kernel.parameter_bytes == 208);
  CHECK(kernel.static_shared_bytes == 40);
  CHECK(kernel.required_block == std::array<std::uint32_t, 3>{64, 1, 1});
  CHECK(kernel.required_cluster == std::array<std::uint32_t, 3>{2, 1, 1});

  const auto numbers = e.device->global(module, "numbers"),
             pointer = e.device->global(module, "pointer"),
             pi = e.device->global(module, "pi");
  REQUIRE(numbers);
  REQUIRE(pointer);
  REQUIRE(pi);
  CHECK(numbers->bytes == 16);
  std::uint64_t held = 0;
  std::memcpy(&held, e.device->host_view(pointer->address), 8);
  CHECK(held == numbers->address + 4);
  CHECK(e.read(*pi)[0] == Approx(3.14159274));
  CHECK(static_cast<std::uint32_t *>(
            e.device->host_view(numbers->address))[2] == 3);
  CHECK(e.device->global(module, "nothing").error().code ==
        ErrorCode::not_found);
  e.device->unload(module);
  CHECK(e.device->describe(module).error().code == ErrorCode::invalid_argument);
}

TEST_CASE(
    "a module that the emulator cannot take says why, and whose fault it is") {
  Emulated e;
  const std::vector<std::uint8_t> cubin{0x7f, 'E', 'L', 'F'};
  ModuleImage image;
  image.source = "k.cubin";
  CHECK(e.device->load(image).error().code == ErrorCode::invalid_argument);
  image.cubin = cubin;
  const auto machine_code = e.device->load(image);
  REQUIRE_FALSE(machine_code);
  CHECK(machine_code.error().code == ErrorCode::unsupported);
  CHECK(machine_code.error().message.find("no PTX") != std::string::npos);

  const std::string wrong =
      ptx(".visible .entry k() { .reg .b32 %r<2>; add.s32 %r0, , %r1; }");
  image = {};
  image.source = "k.ptx";
  image.ptx = wrong;
  const auto malformed = e.device->load(image);
  REQUIRE_FALSE(malformed);
  CHECK(malformed.error().code == ErrorCode::parse);
  image.cubin = cubin; // an assembler has taken it: then it is not wrong, but
                       // unknown here
  const auto unknown = e.device->load(image);
  REQUIRE_FALSE(unknown);
  CHECK(unknown.error().code == ErrorCode::unsupported);

  // An instruction that the emulator does not know is named before anything
  // runs.
  const DeviceModule module = e.load(R"ptx(
.visible .entry k()
{
  .reg .b32 %r<4>;
  tex.1d.v4.s32.s32 {%r0, %r1, %r2, %r3}, [0, {%r0}];
  ret;
}
)ptx");
  const auto ready = e.device->prepare(module, "k");
  REQUIRE_FALSE(ready);
  CHECK(ready.error().code == ErrorCode::unsupported);
  INFO(ready.error().to_string());
  CHECK(ready.error().to_string().find("tex.1d") != std::string::npos);
  CHECK(ready.error().to_string().find("8") != std::string::npos); // the line
  CHECK(e.device->prepare(module, "other").error().code ==
        ErrorCode::not_found);
}

TEST_CASE("an emulated launch runs when it is waited for, and is counted") {
  Emulated e;
  const DeviceModule module = e.load(kAdd);
  const KernelInfo kernel = e.kernel(module);
  CHECK(kernel.parameters[3].offset == 24);
  CHECK(kernel.parameters[4].read == false);
  const DeviceBuffer a = e.floats({1, 2, 3, 4, 5}),
                     b = e.floats({10, 20, 30, 40, 50}),
                     c = e.floats({0, 0, 0, 0, 0});
  const auto parameters = add_parameters(kernel, a, b, 5, c);
  DeviceLaunch launch = shape(module, "add", 2, 32);
  launch.parameters = parameters;
  e.device->begin_report();
  REQUIRE_FALSE(e.launch(launch));
  REQUIRE(e.device->fill(
      a.address, 0, 1,
      20)); // queued behind it: the launch sees the values from before
  REQUIRE_FALSE(e.synchronize());
  CHECK(e.read(c) == std::vector<float>{11, 22, 33, 44, 55});
  CHECK(e.read(a) == std::vector<float>{0, 0, 0, 0, 0});

  EmulatorReport report = e.device->report();
  CHECK(report.findings.empty());
  CHECK(report.fidelity == EmulatorFidelity::exact);
  CHECK_FALSE(report.asynchronous);
  const auto of = [&](std::string_view text) {
    for (const EmulatedInstruction &i : report.instructions)
      if (i.text == text)
        return i;
    return EmulatedInstruction{};
  };
  CHECK(of("add.f32").warps == 1);
  CHECK(of("add.f32").threads == 5);
  CHECK(of("add.f32").family == "fp32");
  CHECK(of("mad.lo.s32").warps == 2);
  CHECK(of("mad.lo.s32").threads == 64);
  CHECK(of("mad.lo.s32").ptx_line == 14);
  e.device->begin_report();
  CHECK(e.device->report().instructions.empty());
  // A read waits for what is queued.
  REQUIRE_FALSE(e.launch(launch));
  CHECK(e.read(c) == std::vector<float>{10, 20, 30, 40, 50});
}

TEST_CASE("an emulated fault names the tensor and its index, and the device "
          "goes on") {
  Emulated e;
  const DeviceModule module = e.load(kAdd);
  const KernelInfo kernel = e.kernel(module);
  const DeviceBuffer a = e.floats({1, 2, 3, 4}, "A"),
                     c = e.floats({0, 0, 0, 0}, "C");
  // Within one allocation only what is labelled may be touched.
  const DeviceBuffer whole = e.floats(std::vector<float>(64, 1.0f));
  const DeviceBuffer b{whole.address + 64, 16};
  e.device->label(b, {MemoryLabel::Role::input, "B", DType::float32, {2, 2}});
  const auto parameters = add_parameters(kernel, a, b, 5, c);
  DeviceLaunch launch = shape(module, "add", 1, 32);
  launch.parameters = parameters;
  e.device->begin_report();
  REQUIRE_FALSE(e.launch(launch));
  REQUIRE(e.device->fill(a.address, 0, 4, 4));
  const DeviceOutcome outcome = e.synchronize();
  REQUIRE(outcome);
  CHECK(outcome->kind == DeviceFault::Kind::illegal_address);
  CHECK(outcome->name == "out_of_bounds");
  CHECK_FALSE(outcome->sticky);
  INFO(outcome->message);
  CHECK(outcome->message.find("A") != std::string::npos);
  CHECK(outcome->message.find("ld.global.f32") != std::string::npos);
  CHECK(e.read(a)[0] == 1); // what stands behind a fault does not run
  const EmulatorReport report = e.device->report();
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].grade == EmulatorFinding::Grade::fault);
  CHECK(report.findings[0].lane == 4);
  CHECK(report.findings[0].warp == 0);
  CHECK(report.findings[0].ptx_line == 25);

  // The same kernel, right this time.
  const auto right = add_parameters(kernel, a, b, 4, c);
  launch.parameters = right;
  REQUIRE_FALSE(e.launch(launch));
  REQUIRE_FALSE(e.synchronize());
  CHECK(e.read(c) == std::vector<float>{2, 3, 4, 5});
}

TEST_CASE("an emulated launch that breaks a rule is refused before it runs") {
  Emulated e;
  const DeviceModule module =
      e.load(std::string(".visible .entry k() .reqntid 64 { ret; }"));
  const auto refused = [&](auto change) {
    DeviceLaunch launch = shape(module, "k", 4, 64);
    change(launch);
    const DeviceOutcome outcome = e.launch(launch);
    CHECK_FALSE(e.synchronize());
    if (outcome)
      CHECK(outcome->kind == DeviceFault::Kind::launch_refused);
    return outcome ? outcome->message : std::string();
  };
  CHECK(refused([](DeviceLaunch &) {}).empty());
  CHECK(refused([](DeviceLaunch &l) {
          l.block = {32, 1, 1};
        }).find(".reqntid") != std::string::npos);
  CHECK(refused([](DeviceLaunch &l) {
          l.block = {2048, 1, 1};
        }).find("1024") != std::string::npos);
  CHECK(refused([](DeviceLaunch &l) {
          l.grid = {0, 1, 1};
        }).find("grid") != std::string::npos);
  CHECK(refused([](DeviceLaunch &l) {
          l.grid = {1, 70000, 1};
        }).find("grid") != std::string::npos);
  CHECK(refused([](DeviceLaunch &l) {
          l.dynamic_shared_bytes = 232449;
        }).find("shared") != std::string::npos);
  CHECK(refused([](DeviceLaunch &l) {
          l.dynamic_shared_bytes = 232448;
        }).empty());
  CHECK(refused([](DeviceLaunch &l) {
          l.has_cluster = true, l.cluster = {3, 1, 1};
        }).find("multiple") != std::string::npos);
  CHECK(refused([](DeviceLaunch &l) {
          l.has_cluster = true, l.cluster = {32, 1, 1}, l.grid = {32, 1, 1};
        }).find("16") != std::string::npos);
  CHECK(refused([](DeviceLaunch &l) {
          l.cooperative = true, l.grid = {100000, 1, 1};
        }).find("resident") != std::string::npos);
  e.device->set_sm_count(2);
  CHECK(refused([](DeviceLaunch &l) {
          l.cooperative = true, l.grid = {132, 1, 1};
        }).find("resident") != std::string::npos);
  e.device->set_sm_count(0);
  CHECK(refused([](DeviceLaunch &l) {
          l.cooperative = true, l.grid = {132, 1, 1};
        }).empty());
  DeviceLaunch none = shape(module, "other", 1, 64);
  CHECK(e.device->launch(none).error().code == ErrorCode::not_found);
}

TEST_CASE("an emulated kernel that never ends is stopped by the deadline, the "
          "step limit, or what it waits for") {
  Emulated e;
  const DeviceModule spin = e.load(kSpin), waits = e.load(kWait);
  REQUIRE_FALSE(e.launch(shape(spin, "spin", 1, 32)));
  DeviceOutcome outcome = e.synchronize(20'000'000);
  REQUIRE(outcome);
  CHECK(outcome->kind == DeviceFault::Kind::timeout);
  CHECK(outcome->name == "time_limit");

  REQUIRE_FALSE(e.launch(shape(waits, "waits", 1, 1)));
  outcome = e.synchronize();
  REQUIRE(outcome);
  CHECK(outcome->kind == DeviceFault::Kind::timeout);
  CHECK(outcome->name == "deadlock");
  INFO(outcome->message);
  CHECK(outcome->message.find("barrier") != std::string::npos);

  Emulated limited("emulator?step_limit=1000");
  const DeviceModule again = limited.load(kSpin);
  REQUIRE_FALSE(limited.launch(shape(again, "spin", 1, 32)));
  outcome = limited.synchronize();
  REQUIRE(outcome);
  CHECK(outcome->name == "step_limit");
  CHECK(outcome->kind == DeviceFault::Kind::timeout);
}

TEST_CASE(
    "an emulator answers by registers, shared memory and the GPU's parts") {
  Emulated e;
  const DeviceModule plain = e.load(".visible .entry k() .maxnreg 64 { ret; }");
  const DeviceQueries queries = e.device->queries({plain});
  OccupancyQuery query;
  query.symbol = "k";
  query.block = {256, 1, 1};
  CHECK(queries.occupancy(query).value() ==
        4); // 64 registers: 1024 threads an SM
  query.dynamic_shared_bytes = 100 * 1024;
  CHECK(queries.occupancy(query).value() == 2);
  CHECK(queries.max_active_clusters(query).value() == 264);
  query.dynamic_shared_bytes = 200 * 1024;
  query.cluster = {2, 1, 1};
  CHECK(queries.max_active_clusters(query).value() == 66);
  query.cluster = {4, 1, 1};
  CHECK(queries.max_active_clusters(query).value() ==
        32); // GPCs of 16 and 18 SMs
  query.cluster = {16, 1, 1};
  CHECK(queries.max_active_clusters(query).value() == 8);
  e.device->set_sm_count(2);
  CHECK(queries.max_active_clusters(query).value() == 0);
  query.cluster = {2, 1, 1};
  CHECK(queries.max_active_clusters(query).value() == 1);
  query.symbol = "other";
  CHECK(queries.occupancy(query).error().code == ErrorCode::not_found);
  query.module = 1;
  CHECK(queries.occupancy(query).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("an emulated tensor map is made where its address allows it") {
  Emulated e;
  ResolvedTensorMap map;
  map.name = "map_a";
  map.data_type = 9; // bfloat16
  map.dims = {64, 128};
  map.strides = {128};
  map.box = {64, 16};
  map.element_strides = {1, 1};
  CHECK(e.device->encode(map, 0x70000000000));
  CHECK(e.device->encode(map, 0x70000000008).error().code ==
        ErrorCode::invalid_argument);
  map.strides = {128, 256};
  CHECK(e.device->encode(map, 0x70000000000).error().code ==
        ErrorCode::invalid_argument);
  map.strides = {128};
  map.im2col = true;
  CHECK(e.device->encode(map, 0x70000000000).error().code ==
        ErrorCode::unsupported);
}
