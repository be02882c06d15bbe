// Copies of tensors' boxes: against what an H200 did, and through PTX.
#include "emulator/tma.hpp"

#include "emulator/async.hpp"
#include "emulator/support.hpp"
#include "emulator/tensor_map.hpp"

#include <fstream>
#include <sstream>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

// The bytes that the probe puts into tensor (seed 1) and window (seed 2).
std::vector<std::uint8_t> pattern(std::size_t n, std::uint64_t seed) {
  std::vector<std::uint8_t> p(n);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t h = (i + 1) * 0x9e3779b97f4a7c15ull + seed * 0xff51afd7ed558ccdull;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ull;
    p[i] = static_cast<std::uint8_t>(h >> 37);
  }
  return p;
}

std::uint64_t fnv(const std::uint8_t* p, std::size_t n) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (std::size_t i = 0; i < n; ++i) h = (h ^ p[i]) * 0x100000001b3ull;
  return h;
}

std::string load_kernel(int rank) {
  const std::string coordinates[] = {"{%r10}", "{%r10, %r11}", "{%r10, %r11, %r12}",
                                     "{%r10, %r11, %r12, %r13}", "{%r10, %r11, %r12, %r13, %r14}"};
  const std::string& c = coordinates[rank - 1];
  const std::string dim = std::to_string(rank) + "d";
  // Waits for `bytes`; then thread by thread the window goes out. Every thread first fills its part.
  return R"(
.extern .shared .align 1024 .b8 window[];
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 map, .param .u64 out, .param .u32 off, .param .u32 bytes, .param .u32 c0, .param .u32 c1,
                  .param .u32 c2, .param .u32 c3, .param .u32 c4) {
  .reg .pred %p<4>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [map];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [off];
  ld.param.u32 %r2, [bytes];
  ld.param.u32 %r10, [c0];
  ld.param.u32 %r11, [c1];
  ld.param.u32 %r12, [c2];
  ld.param.u32 %r13, [c3];
  ld.param.u32 %r14, [c4];
  mov.u32 %r3, window;
  add.u32 %r4, %r3, %r1;
  mov.u32 %r5, bar;
  mov.u32 %r6, %tid.x;
  mov.u32 %r7, 0xCDCDCDCD;
  shl.b32 %r8, %r6, 2;
FILL:
  add.u32 %r9, %r3, %r8;
  st.shared.u32 [%r9], %r7;
  add.u32 %r8, %r8, 512;
  setp.lt.u32 %p1, %r8, 40960;
  @%p1 bra FILL;
  setp.eq.u32 %p2, %r6, 0;
  @%p2 mbarrier.init.shared.b64 [%r5], 1;
  fence.proxy.async;
  bar.sync 0;
  @!%p2 bra WAIT;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r5], %r2;
  cp.async.bulk.tensor.)" +
         dim + R"(.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1, )" + c + R"(], [%r5];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0;
  @!%p3 bra WAIT;
  shl.b32 %r8, %r6, 2;
COPY:
  add.u32 %r9, %r3, %r8;
  ld.shared.u32 %r7, [%r9];
  cvt.u64.u32 %rd3, %r8;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r7;
  add.u32 %r8, %r8, 512;
  setp.lt.u32 %p1, %r8, 40960;
  @%p1 bra COPY;
  ret;
}
)";
}

std::string store_kernel(int rank, const std::string& head, const std::string& kind) {
  const std::string coordinates[] = {"{%r10}", "{%r10, %r11}", "{%r10, %r11, %r12}",
                                     "{%r10, %r11, %r12, %r13}", "{%r10, %r11, %r12, %r13, %r14}"};
  return R"(
.extern .shared .align 1024 .b8 window[];
.visible .entry k(.param .u64 map, .param .u64 in, .param .u32 off, .param .u32 c0, .param .u32 c1, .param .u32 c2,
                  .param .u32 c3, .param .u32 c4) {
  .reg .pred %p<4>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [map];
  ld.param.u64 %rd2, [in];
  ld.param.u32 %r1, [off];
  ld.param.u32 %r10, [c0];
  ld.param.u32 %r11, [c1];
  ld.param.u32 %r12, [c2];
  ld.param.u32 %r13, [c3];
  ld.param.u32 %r14, [c4];
  mov.u32 %r3, window;
  add.u32 %r4, %r3, %r1;
  mov.u32 %r6, %tid.x;
  shl.b32 %r8, %r6, 2;
FILL:
  cvt.u64.u32 %rd3, %r8;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.u32 %r9, %r3, %r8;
  st.shared.u32 [%r9], %r7;
  add.u32 %r8, %r8, 512;
  setp.lt.u32 %p1, %r8, 40960;
  @%p1 bra FILL;
  fence.proxy.async;
  bar.sync 0;
  setp.eq.u32 %p2, %r6, 0;
  @!%p2 bra DONE;
  )" + head +
         std::to_string(rank) + "d.global.shared::cta" + kind + ".bulk_group [%rd1, " +
         coordinates[rank - 1] + R"(], [%r4];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
DONE:
  ret;
}
)";
}

std::uint64_t put_map(Machine& m, const TensorMap& map) {
  const std::uint64_t address = m.allocate(128);
  const auto image = encode(map);
  std::memcpy(m.memory.host(address, 128), image.data(), 128);
  return address;
}

TensorMap matrix(std::uint64_t address, std::uint8_t type, unsigned bytes, std::uint64_t rows,
                 std::uint64_t columns, std::uint32_t box_rows, std::uint32_t box_columns,
                 std::uint8_t swizzle = kSwizzleNone) {
  TensorMap map;
  map.address = address;
  map.rank = 2;
  map.data_type = type;
  map.swizzle = swizzle;
  map.dims = {columns, rows, 1, 1, 1};
  map.strides = {columns * bytes, 0, 0, 0};
  map.box = {box_columns, box_rows, 1, 1, 1};
  map.element_strides = {1, 1, 1, 1, 1};
  return map;
}

LaunchShape window_shape() {
  LaunchShape shape;
  shape.block = {128, 1, 1};
  shape.dynamic_shared = 40960 + 1024;
  return shape;
}

}  // namespace

TEST_CASE("boxes of random tensor maps lie as an H200 laid them") {
  std::ifstream in(PTXBENCH_SOURCE_DIR "/tests/fixtures/tma/cases.txt");
  REQUIRE(in.good());
  std::string line;
  std::size_t cases = 0, refused = 0, interleaved = 0;
  std::vector<std::unique_ptr<Machine>> loads, stores, sums;
  for (int rank = 1; rank <= 5; ++rank) {
    loads.push_back(std::make_unique<Machine>(load_kernel(rank)));
    stores.push_back(std::make_unique<Machine>(store_kernel(rank, "cp.async.bulk.tensor.", "")));
    sums.push_back(std::make_unique<Machine>(store_kernel(rank, "cp.reduce.async.bulk.tensor.", ".add")));
  }
  while (std::getline(in, line)) {
    std::istringstream text(line);
    std::array<std::int64_t, 32> v{};
    for (auto& x : v) text >> x;
    int error = 0;
    std::uint64_t sum = 0;
    text >> error >> std::hex >> sum;
    REQUIRE(text);
    INFO("case " << cases << ": " << line);
    ++cases;
    const int kind = static_cast<int>(v[0]), rank = static_cast<int>(v[2]);
    Machine& m = *(kind == 0 ? loads : kind == 1 ? stores : sums)[rank - 1];
    const auto bytes = static_cast<std::size_t>(v[31]);
    std::vector<std::uint8_t> content = pattern(bytes, 1);
    if (v[3] != 0) ++interleaved, content.resize(bytes + 65536);  // some read zeros behind it
    const std::uint64_t tensor = m.upload(content);
    TensorMap map;
    map.address = tensor;
    map.rank = static_cast<std::uint8_t>(rank);
    map.data_type = static_cast<std::uint8_t>(v[1]);
    map.interleave = static_cast<std::uint8_t>(v[3]);
    map.swizzle = static_cast<std::uint8_t>(v[4]);
    map.oob_fill = static_cast<std::uint8_t>(v[5]);
    std::array<std::int32_t, 5> at{};
    for (unsigned d = 0; d < 5; ++d) {
      map.dims[d] = static_cast<std::uint64_t>(v[6 + d]);
      map.box[d] = static_cast<std::uint32_t>(v[15 + d]);
      map.element_strides[d] = static_cast<std::uint32_t>(v[20 + d]);
      at[d] = static_cast<std::int32_t>(v[25 + d]);
      if (d < 4) map.strides[d] = static_cast<std::uint64_t>(v[11 + d]);
    }
    const std::uint64_t address = put_map(m, map);
    const auto off = static_cast<std::uint32_t>(v[30]);
    // The dynamic window begins behind the barrier: the test's window is at 1024-byte alignment there as on
    // the card.
    const std::uint64_t outside = m.upload(kind == 0 ? std::vector<std::uint8_t>(40960) : pattern(40960, 2));
    const Run run = kind == 0
                        ? m.launch(window_shape(), address, outside, off, box_shape(map).bytes, at[0], at[1],
                                   at[2], at[3], at[4])
                        : m.launch(window_shape(), address, outside, off, at[0], at[1], at[2], at[3], at[4]);
    if (error != 0) {
      ++refused;
      INFO(fault_text(run));
      CHECK((run.fault &&
             run.fault->kind == (error == 700 ? FaultKind::out_of_bounds : FaultKind::illegal_instruction)));
    } else {
      INFO(fault_text(run));
      CHECK(!run.fault);
      if (kind == 0) {
        auto left = m.read<std::uint8_t>(outside, 40960);
        std::size_t keep = 40960;
        while (keep > 128 && left[keep - 1] == 0xCD) --keep;
        CHECK(fnv(left.data(), keep) == sum);
      } else {
        CHECK(fnv(m.read<std::uint8_t>(tensor, bytes).data(), bytes) == sum);
      }
    }
    for (const std::uint64_t a : {tensor, address, outside}) m.memory.release(a);
  }
  CHECK(cases > 800);
  CHECK(refused > 100);
  CHECK(interleaved > 300);
}

TEST_CASE("reductions give the bits of an H200") {
  std::ifstream in(PTXBENCH_SOURCE_DIR "/tests/fixtures/tma/reductions.bin", std::ios::binary);
  REQUIRE(in.good());
  std::array<std::vector<std::uint8_t>, 13> old, added;
  const auto read = [&](std::vector<std::uint8_t>& v) {
    v.resize(2048);
    in.read(reinterpret_cast<char*>(v.data()), 2048);
  };
  for (int type = 2; type <= 12; ++type) read(old[type]), read(added[type]);
  REQUIRE(in.good());
  constexpr ReduceType kTypes[] = {ReduceType::u32,    ReduceType::u32,  ReduceType::u32,     ReduceType::s32,
                                   ReduceType::u64,    ReduceType::s64,  ReduceType::f16,     ReduceType::f32,
                                   ReduceType::f64,    ReduceType::bf16, ReduceType::f32_ftz, ReduceType::f32,
                                   ReduceType::f32_ftz};
  int found = 0;
  for (char head[2]; in.read(head, 2); ++found) {
    std::vector<std::uint8_t> expected;
    read(expected);
    const int type = head[0];
    const auto op = static_cast<ReduceOp>(head[1]);
    INFO("type " << element_name(static_cast<std::uint8_t>(type)) << ", " << reduce_name(op));
    CHECK(reduce_allowed(op, kTypes[type], true));
    std::vector<std::uint8_t> got = old[type];
    reduce(op, kTypes[type], got.data(), added[type].data(), got.size());
    CHECK(got == expected);
  }
  CHECK(found == 33);
  // Everything else the card refused.
  int allowed = 0;
  for (int type = 2; type <= 12; ++type)
    for (int op = 0; op < 8; ++op) allowed += reduce_allowed(static_cast<ReduceOp>(op), kTypes[type], true);
  CHECK(allowed == 33);
}

TEST_CASE("a tensor reduction adds into global memory") {
  Machine m(store_kernel(2, "cp.reduce.async.bulk.tensor.", ".add"));
  std::vector<float> tensor(64 * 32, 1.5F), window(40960 / 4, 0.25F);
  const std::uint64_t t = m.upload(tensor), w = m.upload(window);
  const std::uint64_t map = put_map(m, matrix(t, kMapF32, 4, 64, 32, 16, 32, kSwizzle128B));
  const Run run = m.launch(window_shape(), map, w, 0u, 0, 56, 0, 0, 0);  // half of it behind the tensor
  REQUIRE_CLEAN(run);
  const auto got = m.read<float>(t, 64 * 32);
  for (unsigned i = 0; i < 64 * 32; ++i) REQUIRE(got[i] == (i / 32 >= 56 ? 1.75F : 1.5F));
  CHECK(run.tma_store_bytes == 16 * 32 * 4);
}

TEST_CASE("tensor copies with broken rules are faults") {
  Machine m(load_kernel(2));
  const std::uint64_t tensor = m.upload(pattern(64 * 256, 1)), out = m.allocate(40960);
  TensorMap map = matrix(tensor, kMapU8, 1, 64, 256, 8, 128);
  const auto run = [&](const TensorMap& of, std::uint32_t off, std::uint32_t bytes, int c0 = 0) {
    return m.launch(window_shape(), put_map(m, of), out, off, bytes, c0, 0, 0, 0, 0);
  };
  const auto fault = [](const Run& r) { return r.fault ? fault_name(r.fault->kind) : "none"; };
  CHECK(fault(run(map, 0, 1024)) == "none");
  CHECK(fault(run(map, 64, 1024)) == "misaligned");
  CHECK(fault(run(map, 40960 + 1024 - 512, 1024)) == "out_of_bounds");
  CHECK(fault(run(map, 0, 1024, 8)) == "illegal_instruction");
  CHECK(fault(run(map, 0, 1040)) == "deadlock");  // more bytes expected than come
  CHECK(fault(run(map, 0, 512)) == "deadlock");   // fewer: the count never comes to zero
  TensorMap other = map;
  other.rank = 3;
  other.strides[1] = 64 * 256;
  CHECK(fault(run(other, 0, 1024)) == "tensor_map");
  other = map;
  other.box[0] = 8;
  CHECK(fault(run(other, 0, 1024)) == "tensor_map");
  other = map;
  other.dims[1] = 128;  // behind the buffer, but no box reaches it
  CHECK(fault(run(other, 0, 1024)) == "none");
  other.address += 60 * 256;
  CHECK(fault(run(other, 0, 1024)) == "out_of_bounds");
  CHECK(fault(m.launch(window_shape(), tensor, out, 0u, 1024u, 0, 0, 0, 0, 0)) ==
        "tensor_map");  // no map at all
  other = map;
  other.im2col = true;
  CHECK(fault(run(other, 0, 1024)) == "tensor_map");
  CHECK(fault(run(map, 0, 1024)) == "none");
}

TEST_CASE("a wrong tensor copy is found under every schedule, and a right one is right") {
  Machine m(load_kernel(2));
  const auto bytes = pattern(64 * 128, 1);
  const std::uint64_t tensor = m.upload(bytes), out = m.allocate(40960);
  const std::uint64_t map = put_map(m, matrix(tensor, kMapU8, 1, 64, 128, 64, 128));
  for (const Schedule schedule : {Schedule{Schedule::Mode::eager, 0}, Schedule{Schedule::Mode::lazy, 0},
                                  Schedule{Schedule::Mode::random, 1}, Schedule{Schedule::Mode::random, 7}}) {
    LaunchShape shape = window_shape();
    shape.schedule = schedule;
    const Run run = m.launch(shape, map, out, 0u, 8192u, 0, 0, 0, 0, 0);
    REQUIRE_CLEAN(run);
    CHECK(m.read<std::uint8_t>(out, 8192) == bytes);
    CHECK(run.tma_load_bytes == 8192);
    CHECK(
        m.count(run, "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes").threads ==
        1);
  }
}
