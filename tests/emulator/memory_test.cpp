// The memory of the emulator by itself, without a kernel.
#include "emulator/memory.hpp"

#include "emulator/async.hpp"
#include "emulator/mbarrier.hpp"
#include "emulator/run.hpp"
#include "support/catch.hpp"

#include <cstring>

using namespace ptxbench;
using namespace ptxbench::emulator;

namespace {

MemoryLabel label(std::string name, DType dtype, std::vector<std::int64_t> shape,
                  MemoryLabel::Role role = MemoryLabel::Role::input) {
  return MemoryLabel{role, std::move(name), dtype, std::move(shape)};
}

// A cluster of CTAs that stand still, and an agent of the first.
struct Machine {
  explicit Machine(std::uint32_t ctas = 1, bool async = true) {
    kernel.any_async = async;
    kernel.local_bytes = 64;
    kernel.placed.push_back({"tile", ptx::Space::shared, 0x400, 256});
    grid.kernel = &kernel;
    grid.memory = &memory;
    cluster.grid = &grid;
    cluster.clock = 1;
    for (std::uint32_t r = 0; r < ctas; ++r) {
      auto cta = std::make_unique<Cta>();
      cta->cluster = &cluster;
      cta->rank = r;
      cta->threads = 64;
      cta->warps.resize(2);
      cta->shared.resize(2048);
      cta->shared_undefined.assign(2048 / 64, ~std::uint64_t{0});
      cta->local.resize(64 * 64);
      cta->local_undefined.assign(64, ~std::uint64_t{0});
      cta->barriers = std::make_unique<Barriers>();
      cluster.ctas.push_back(std::move(cta));
    }
  }
  Agent agent(std::int32_t warp = 0, std::uint32_t cta = 0) {
    return Agent{run, grid, cluster, *cluster.ctas[cta], Site{3, 0, warp, 5}};
  }
  std::uint8_t* global(std::uint64_t address, std::uint64_t bytes, std::uint32_t align = 1,
                       Access access = Access::read) {
    run.fault.reset();
    Agent a = agent();
    return memory.global(a, address, bytes, align, access);
  }
  std::uint8_t* shared(std::uint32_t address, std::uint32_t bytes, std::uint32_t align, Access access,
                       Proxy proxy = Proxy::generic, bool own = true, std::int32_t warp = 0,
                       std::uint32_t cta = 0) {
    run.fault.reset();
    Agent a = agent(warp, cta);
    return memory.shared(a, address, bytes, align, access, proxy, own, where, offset);
  }
  std::string message() const { return run.fault ? run.fault->message : std::string(); }
  bool raised(FaultKind kind) const { return run.fault && run.fault->kind == kind; }
  void fence(std::uint32_t warp, std::uint32_t cta = 0) {
    ++cluster.clock;
    proxy_fence(grid, *cluster.ctas[cta], warp);
    ++cluster.clock;
  }

  Kernel kernel;
  Memory memory{1 << 20};
  Grid grid;
  Cluster cluster;
  Run run{kernel};
  Cta* where = nullptr;
  std::uint32_t offset = 0;
};

bool has(const std::string& text, std::string_view part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("Global memory: blocks are zero, far apart, and counted") {
  Memory memory(1 << 20);
  const std::uint64_t a = *memory.allocate(1000), b = *memory.allocate(200 << 10);
  CHECK(a % 256 == 0);
  CHECK(b % 256 == 0);
  CHECK(a >= kGlobalBase);
  CHECK(b - (a + 1000) >= 64 << 20);
  CHECK(memory.live_bytes() == 1000 + (200 << 10));
  for (unsigned i = 0; i < 1000; ++i) REQUIRE(memory.host(a)[i] == 0);
  CHECK(memory.host(b + (200 << 10) - 1)[0] == 0);
  CHECK(memory.host(a, 1000) != nullptr);
  CHECK(memory.host(a, 1001) == nullptr);
  CHECK(memory.host(a + 1000) == nullptr);
  CHECK(memory.host(a - 1) == nullptr);
  CHECK(memory.host(0) == nullptr);
  CHECK(memory.host(~std::uint64_t{0}) == nullptr);
  CHECK(memory.find(a + 999)->address == a);

  SECTION("the limit is kept, and what is given back can be had again") {
    const auto more = memory.allocate(1 << 20);
    REQUIRE(!more);
    CHECK(more.error().code == ErrorCode::no_memory);
    memory.release(b);
    CHECK(memory.live_bytes() == 1000);
    CHECK(memory.find(b) == nullptr);
    CHECK(memory.allocate((1 << 20) - 1000));
    CHECK(!memory.allocate(1));
  }
  SECTION("releasing what is no block's beginning does nothing") {
    memory.release(a + 256);
    memory.release(12345);
    CHECK(memory.find(a) != nullptr);
  }
  SECTION("a huge size is refused") { CHECK(!memory.allocate(~std::uint64_t{0})); }
  SECTION("a freed address does not come back at once") {
    memory.release(a);
    CHECK(*memory.allocate(1000) != a);
  }
}

TEST_CASE("Global memory: the address space outlasts many allocations, and large blocks") {
  Memory memory(std::uint64_t{64} << 30);
  for (int i = 0; i < 70000; ++i) {
    const auto a = memory.allocate(64);
    REQUIRE(a);
    memory.release(*a);
  }
  const auto large = memory.allocate(std::uint64_t{8} << 30);
  REQUIRE(large);
  memory.host(*large + (std::uint64_t{8} << 30) - 1)[0] = 7;
  CHECK(memory.find(*large + (std::uint64_t{5} << 30))->address == *large);
  const auto next = memory.allocate(256);
  REQUIRE(next);
  CHECK(memory.find(*next)->bytes == 256);
}

TEST_CASE("Global memory: an empty block has an address of its own and no byte") {
  Machine m;
  const std::uint64_t a = *m.memory.allocate(0), b = *m.memory.allocate(0);
  CHECK(a != b);
  CHECK(m.global(a, 1) == nullptr);
  CHECK(m.raised(FaultKind::out_of_bounds));
}

TEST_CASE("Global memory: bounds of blocks without names, to the byte") {
  Machine m;
  const std::uint64_t a = *m.memory.allocate(1001);
  CHECK(m.global(a, 1001) == m.memory.host(a));
  CHECK(m.global(a + 1000, 1) == m.memory.host(a) + 1000);
  CHECK(m.global(a + 1001, 1) == nullptr);
  CHECK(m.raised(FaultKind::out_of_bounds));
  CHECK(m.run.fault->site.lane == 5);
  CHECK(m.run.fault->site.op == 3);
  has(m.message(), "0 bytes behind the end of an unnamed block");
  has(m.message(), "block of 1001 bytes");
  CHECK(m.global(a + 998, 4) == nullptr);
  has(m.message(), "begins in byte 998");
  CHECK(m.global(a - 4, 4) == nullptr);
  has(m.message(), "4 bytes before the beginning");
  CHECK(m.global(8, 4) == nullptr);
  has(m.message(), "null pointer plus 8");
  CHECK(m.global(kSharedWindow + 0x400, 4) == nullptr);
  has(m.message(), "window of shared memory");
  CHECK(m.global(~std::uint64_t{0}, 4) == nullptr);
  CHECK(m.global(a, ~std::uint64_t{0}) == nullptr);
}

TEST_CASE("Global memory: alignment") {
  Machine m;
  const std::uint64_t a = *m.memory.allocate(256);
  CHECK(m.global(a + 8, 8, 8) != nullptr);
  CHECK(m.global(a + 4, 8, 8) == nullptr);
  CHECK(m.raised(FaultKind::misaligned));
  has(m.message(), "no multiple of 8");
}

TEST_CASE("Global memory: named parts, red zones and what messages say") {
  Machine m;
  const std::uint64_t a = *m.memory.allocate(4096);
  // Two tensors with a red zone of 1024 bytes before, between and behind.
  m.memory.name(a + 1024, 6 * 8 * 2, label("C", DType::bfloat16, {6, 8}, MemoryLabel::Role::output));
  m.memory.name(a + 2144, 64, label("scratch", DType::uint8, {}, MemoryLabel::Role::workspace));

  CHECK(m.global(a + 1024, 96) != nullptr);
  CHECK(m.global(a + 2144, 64) != nullptr);
  CHECK(m.memory.describe(a + 1024 + (2 * 8 + 3) * 2) == "C[2, 3] (bfloat16)");
  CHECK(m.memory.describe(a + 1024 + (2 * 8 + 3) * 2 + 1) == "C[2, 3] (bfloat16), byte 1 of it");
  CHECK(m.memory.describe(a + 2144 + 5) == "byte 5 of scratch (64 bytes)");

  CHECK(m.global(a + 1024 + 96 + 4, 4, 4, Access::write) == nullptr);
  CHECK(m.raised(FaultKind::out_of_bounds));
  has(m.message(), "writes 4 bytes");
  has(m.message(), "4 bytes behind the end of C[6, 8] (bfloat16)");
  CHECK(m.global(a + 1020, 4) == nullptr);
  has(m.message(), "4 bytes before the beginning of C[6, 8] (bfloat16)");
  CHECK(m.global(a + 2144 - 8, 4) == nullptr);
  has(m.message(), "8 bytes before the beginning of scratch (64 bytes)");
  // Straddles the end.
  CHECK(m.global(a + 1024 + 92, 8) == nullptr);
  has(m.message(), "begins in C[5, 6] (bfloat16) and ends 3 bytes behind the end of C");
  // One access from one part over the zone into the other.
  CHECK(m.global(a + 1024, 1200) == nullptr);
  // Beyond the block itself.
  CHECK(m.global(a + 4096, 4) == nullptr);

  SECTION("a new name takes the place of the old one") {
    m.memory.name(a + 1024, 128, label("D", DType::float32, {32}));
    CHECK(m.memory.describe(a + 1028) == "D[1] (float32)");
    CHECK(m.global(a + 1024, 128) != nullptr);
    CHECK(m.memory.find(a)->named.size() == 2);
  }
  SECTION("a name is cut to its block, and one outside of any is ignored") {
    m.memory.name(a + 4000, 4000, label("E", DType::uint8, {}));
    CHECK(m.global(a + 4095, 1) != nullptr);
    CHECK(m.global(a + 4096, 1) == nullptr);
    m.memory.name(17, 4, label("F", DType::uint8, {}));
  }
  SECTION("types of half a byte") {
    const std::uint64_t b = *m.memory.allocate(64);
    m.memory.name(b, 64, label("W", DType::float4_e2m1, {2, 64}));
    CHECK(m.memory.describe(b + 33) == "W[1, 2] (float4_e2m1)");
  }
  SECTION("an empty tensor has no byte to touch") {
    const std::uint64_t b = *m.memory.allocate(64);
    m.memory.name(b, 0, label("none", DType::float32, {0, 4}));
    CHECK(m.global(b, 4) == nullptr);
  }
}

TEST_CASE("Global memory: what may only be read") {
  Machine m;
  const std::uint64_t a = *m.memory.allocate(64, true);
  CHECK(m.global(a, 4, 4, Access::read) != nullptr);
  CHECK(m.global(a, 4, 4, Access::write) == nullptr);
  CHECK(m.raised(FaultKind::out_of_bounds));
  has(m.message(), "may only read");
  CHECK(m.global(a, 4, 4, Access::atomic) == nullptr);
}

TEST_CASE("Global memory: values never written are copied, and may not reach an output") {
  Machine m;
  const std::uint64_t a = *m.memory.allocate(256), c = *m.memory.allocate(256);
  m.memory.name(c, 256, label("C", DType::float32, {64}, MemoryLabel::Role::output));
  Agent agent = m.agent();
  CHECK(!m.memory.any_global_undefined());
  CHECK(m.memory.stored(agent, a + 60, 8, 0));
  CHECK(!m.memory.any_global_undefined());

  REQUIRE(m.memory.stored(agent, a + 60, 8, 0xf0));  // bytes 64 to 67, in the next word
  CHECK(m.memory.any_global_undefined());
  std::uint64_t bits = 0;
  CHECK(m.memory.global_undefined(a + 56, 16, &bits));
  CHECK(bits == 0xf00);
  CHECK(!m.memory.global_undefined(a + 60, 4));
  CHECK(m.memory.global_undefined(a, 256));
  CHECK(!m.memory.global_undefined(c, 256));

  CHECK(m.memory.stored(agent, a + 64, 2, 0));  // written over
  CHECK(m.memory.global_undefined(a + 64, 4, &bits));
  CHECK(bits == 0xc);
  CHECK(!m.run.failed());
  m.memory.define(a, 256);
  CHECK(!m.memory.global_undefined(a, 256));

  CHECK(!m.memory.stored(agent, c + 8, 8, 0xf0));
  CHECK(m.raised(FaultKind::undefined_value));
  has(m.message(), "C[3] (float32)");
}

TEST_CASE("Bits of values never written") {
  std::vector<std::uint64_t> bits(3, 0);
  set_undefined(bits, 60, 70, true);
  CHECK(bits[0] == std::uint64_t{0xf} << 60);
  CHECK(bits[1] == ~std::uint64_t{0});
  CHECK(bits[2] == 3);
  CHECK(!any_undefined(bits, 0, 60));
  CHECK(any_undefined(bits, 0, 61));
  CHECK(any_undefined(bits, 129, 1));
  CHECK(!any_undefined(bits, 130, 1000));
  CHECK(undefined_bits(bits, 56, 8) == 0xf0);
  CHECK(undefined_bits(bits, 120, 16) == 0x3ff);
  put_undefined_bits(bits, 62, 4, 0b0101);
  CHECK(undefined_bits(bits, 60, 8) == 0b11010111);
  set_undefined(bits, 0, 1000, false);
  CHECK(!any_undefined(bits, 0, 192));
}

TEST_CASE("Shared memory: windows, ranks and bounds") {
  Machine m(2);
  CHECK(m.shared(0x400, 4, 4, Access::write) == m.cluster.ctas[0]->shared.data() + 0x400);
  CHECK(m.where == m.cluster.ctas[0].get());
  CHECK(m.offset == 0x400);
  CHECK(m.shared(2044, 4, 4, Access::read) != nullptr);
  CHECK(m.run.shared_high_water == 2048);

  CHECK(m.shared(2048, 4, 4, Access::read) == nullptr);
  CHECK(m.raised(FaultKind::out_of_bounds));
  has(m.message(), "0 bytes behind the end");
  CHECK(m.shared(2044, 8, 4, Access::read) == nullptr);
  has(m.message(), "ends 4 bytes behind the end");
  CHECK(m.shared(1020, 4, 4, Access::read) == nullptr);
  has(m.message(), "system");
  CHECK(m.shared(0x402, 4, 4, Access::read) == nullptr);
  CHECK(m.raised(FaultKind::misaligned));
  has(m.message(), "in `tile` + 2");

  // CTA 1: its own address, the same without its rank, its peer's.
  CHECK(m.shared(0x01000400, 4, 4, Access::read, Proxy::generic, true, 0, 1) ==
        m.cluster.ctas[1]->shared.data() + 0x400);
  CHECK(m.shared(0x400, 4, 4, Access::read, Proxy::generic, true, 0, 1) ==
        m.cluster.ctas[1]->shared.data() + 0x400);
  CHECK(m.shared(0x400, 4, 4, Access::read, Proxy::generic, false, 0, 1) ==
        m.cluster.ctas[0]->shared.data() + 0x400);
  CHECK(m.where == m.cluster.ctas[0].get());
  CHECK(m.shared(0x01000400, 4, 4, Access::read, Proxy::generic, false) ==
        m.cluster.ctas[1]->shared.data() + 0x400);
  CHECK(m.shared(0x01000400, 4, 4, Access::read, Proxy::generic, true) == nullptr);
  has(m.message(), ".shared::cta reaches only its own CTA");
  CHECK(m.shared(0x02000400, 4, 4, Access::read, Proxy::generic, false) == nullptr);
  has(m.message(), "CTA 2 of a cluster of 2");

  m.cluster.ctas[1]->exited = m.cluster.ctas[1]->threads;
  CHECK(m.shared(0x01000400, 4, 4, Access::read, Proxy::generic, false) == nullptr);
  CHECK(m.raised(FaultKind::exit_with_work));
}

TEST_CASE("Shared memory: an asynchronous copy over a live mbarrier object") {
  Machine m;
  Cta& cta = *m.cluster.ctas[0];
  cta.barriers->create(0x500).valid = true;
  CHECK(live_barrier_in(cta, 0x400, 0x100) == -1);
  CHECK(live_barrier_in(cta, 0x508, 8) == -1);
  CHECK(live_barrier_in(cta, 0x504, 1) == 0x500);
  CHECK(live_barrier_in(cta, 0x480, 0x100) == 0x500);
  CHECK(m.shared(0x480, 0x100, 16, Access::write, Proxy::async) == nullptr);
  CHECK(m.raised(FaultKind::barrier_misuse));
  CHECK(m.shared(0x480, 0x100, 16, Access::read, Proxy::async) != nullptr);
  cta.barriers->find(0x500)->valid = false;
  CHECK(m.shared(0x480, 0x100, 16, Access::write, Proxy::async) != nullptr);
}

TEST_CASE("Local memory: a frame a thread") {
  Machine m;
  Agent a = m.agent();
  CHECK(m.memory.local(a, 3, 8, 4, 4, Access::write) == m.cluster.ctas[0]->local.data() + 3 * 64 + 8);
  CHECK(m.memory.local(a, 3, 64, 4, 4, Access::read) == nullptr);
  CHECK(m.raised(FaultKind::out_of_bounds));
  m.run.fault.reset();
  CHECK(m.memory.local(a, 3, 2, 4, 4, Access::read) == nullptr);
  CHECK(m.raised(FaultKind::misaligned));
  m.run.fault.reset();
  CHECK(m.memory.local(a, 3, ~std::uint64_t{0}, 1, 1, Access::read) == nullptr);
}

TEST_CASE("A generic write that the async proxy reads needs a fence of the writing or the issuing warp") {
  Machine m(2);
  const auto write = [&](std::int32_t warp, std::uint32_t cta = 0) {
    ++m.cluster.clock;
    REQUIRE(m.shared(0x400, 64, 16, Access::write, Proxy::generic, false, warp, cta) != nullptr);
  };
  const auto read = [&](std::int32_t warp) {
    ++m.cluster.clock;
    m.run.remarks.clear();
    REQUIRE(m.shared(0x410, 32, 16, Access::read, Proxy::async, false, warp) != nullptr);
    return !m.run.remarks.empty();
  };
  write(0);
  SECTION("no fence") {
    CHECK(read(1));
    CHECK(m.run.remarks[0].hazard);
    CHECK(m.run.remarks[0].code == "missing_proxy_fence");
    has(m.run.remarks[0].message, "warp 0");
    has(m.run.remarks[0].message, "in `tile` + 16");
  }
  SECTION("write, fence by the writer, barrier, issue") {
    m.fence(0);
    CHECK(!read(1));
  }
  SECTION("write, barrier, fence and issue by one thread") {
    m.fence(1);
    CHECK(!read(1));
  }
  SECTION("a fence before the write does not count") {
    m.fence(0);
    write(0);
    CHECK(read(1));
  }
  SECTION("a write of another CTA's thread") {
    m.fence(0);
    write(1, 1);
    CHECK(read(0));
    m.fence(1);  // of CTA 0: neither
    CHECK(read(0));
    m.fence(1, 1);
    CHECK(!read(0));
  }
  SECTION("what the async proxy wrote itself needs none") {
    ++m.cluster.clock;
    REQUIRE(m.shared(0x400, 64, 16, Access::write, Proxy::async) != nullptr);
    CHECK(!read(1));
  }
  SECTION("other bytes are not meant") {
    ++m.cluster.clock;
    m.run.remarks.clear();
    REQUIRE(m.shared(0x440, 32, 16, Access::read, Proxy::async) != nullptr);
    CHECK(m.run.remarks.empty());
  }
}

TEST_CASE("Kernels without asynchronous operations are not tracked") {
  Machine m(1, false);
  REQUIRE(m.shared(0x400, 64, 16, Access::write) != nullptr);
  CHECK(m.cluster.ctas[0]->track == nullptr);
}
