// The emulator's tensor maps, and how kernels change them.
#include "emulator/tensor_map.hpp"

#include "emulator/contains.hpp"
#include "emulator/support.hpp"

#include <numeric>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

TensorMap some_map(std::uint64_t address) {
  TensorMap map;
  map.address = address;
  map.rank = 2;
  map.data_type = kMapU32;
  map.dims = {16, 8, 1, 1, 1};
  map.strides = {64, 0, 0, 0};
  map.box = {16, 8, 1, 1, 1};
  map.element_strides = {1, 1, 1, 1, 1};
  return map;
}

// Makes a map in shared memory (from @p zeros or a copy of the given one), replaces fields, copies it to
// global memory and loads one box through it. The copy to global memory is line 7 of maps.cu.
std::string kernel(const std::string& replace, bool zeros) {
  return std::string(R"(
.shared .align 128 .b8 map[128];
.shared .align 128 .b8 tile[512];
.shared .align 8 .b64 bar;
.visible .entry k(.param .u64 from, .param .u64 to, .param .u64 tensor, .param .u64 out) {
  .reg .pred %p<4>;
  .reg .b32 %r<32>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  ld.param.u64 %rd3, [tensor];
  ld.param.u64 %rd4, [out];
  mov.u32 %r1, map;
  mov.u32 %r2, tile;
  mov.u32 %r3, bar;
  mov.u32 %r4, %tid.x;
  shl.b32 %r5, %r4, 2;
  cvt.u64.u32 %rd5, %r5;
  add.s64 %rd6, %rd1, %rd5;
  add.u32 %r6, %r1, %r5;
  )") + (zeros ? "mov.u32 %r7, 0;" : "ld.global.u32 %r7, [%rd6];") +
         R"(
  st.shared.u32 [%r6], %r7;
  bar.warp.sync 0xffffffff;
  setp.eq.u32 %p1, %r4, 0;
  @!%p1 bra COPY;
)" + replace +
         R"(
COPY:
  bar.warp.sync 0xffffffff;
  .loc 1 7 0
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [%r1], 128;
  fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;
  @!%p1 bra WAIT;
  mbarrier.init.shared.b64 [%r3], 1;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r3], 256;
  cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd2, {0, 2}], [%r3];
WAIT:
  bar.warp.sync 0xffffffff;
AGAIN:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
  @!%p2 bra AGAIN;
  add.u32 %r8, %r2, %r5;
  ld.shared.u32 %r9, [%r8];
  add.s64 %rd7, %rd4, %rd5;
  st.global.u32 [%rd7], %r9;
  ret;
}
.file 1 "maps.cu"
)";
}

struct Ran {
  Run run;
  std::vector<std::uint32_t> out;
};
// @p poisoned: the global memory that the map is copied to is a workspace that nobody has written.
Ran go(const std::string& replace, bool zeros, const std::string& without = {},
       const std::string& instead = {}, bool poisoned = false) {
  std::string text = kernel(replace, zeros);
  if (!without.empty()) text.replace(text.find(without), without.size(), instead);
  Machine m(text);
  std::vector<std::uint32_t> tensor(256);
  std::iota(tensor.begin(), tensor.end(), 0u);
  const std::uint64_t t = m.upload(tensor), from = m.allocate(128), to = m.allocate(128),
                      out = m.allocate(128);
  const auto image = encode(some_map(t + 64));
  std::memcpy(m.memory.host(from, 128), image.data(), 128);
  if (poisoned) m.memory.undefine(to, 128);
  Run run = m.launch({}, from, to, t, out);
  return {std::move(run), m.read<std::uint32_t>(out, 32)};
}

}  // namespace

TEST_CASE("a tensor map survives its encoding") {
  TensorMap map = some_map(0x7000'1000);
  map.rank = 5;
  map.dims = {std::uint64_t{1} << 32, 3, 4, 5, 6};
  map.strides = {std::uint64_t{1} << 39, 16, 32, 48};
  map.box = {256, 1, 2, 3, 4};
  map.element_strides = {1, 2, 3, 4, 8};
  map.swizzle = kSwizzle128B;
  map.oob_fill = 1;
  auto bytes = encode(map);
  const auto back = decode_tensor_map(bytes.data());
  REQUIRE(back);
  CHECK(back->address == map.address);
  CHECK(back->rank == 5);
  CHECK(back->dims == map.dims);
  CHECK(back->strides == map.strides);
  CHECK(back->box == map.box);
  CHECK(back->element_strides == map.element_strides);
  CHECK(back->swizzle == kSwizzle128B);
  CHECK(back->oob_fill == 1);
  // Any changed bit is noticed.
  for (unsigned bit = 0; bit < 1024; bit += 7) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    CHECK(!decode_tensor_map(bytes.data()));
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
  CHECK(!decode_tensor_map(std::array<std::uint8_t, 128>{}.data()));
}

TEST_CASE("a resolved map becomes the emulator's") {
  ResolvedTensorMap resolved;
  resolved.data_type = kMapBF16;
  resolved.dims = {64, 32, 2};
  resolved.strides = {128, 4096};
  resolved.box = {64, 8, 1};
  resolved.element_strides = {1, 1, 1};
  resolved.swizzle = kSwizzle128B;
  const TensorMap map = tensor_map_of(resolved, 0x1000);
  CHECK(map.rank == 3);
  CHECK(map.dims == std::array<std::uint64_t, 5>{64, 32, 2, 1, 1});
  CHECK(map.strides == std::array<std::uint64_t, 4>{128, 4096, 0, 0});
  CHECK(tensor_map_problem(map).empty());
}

TEST_CASE("rules that tensormap.replace can break") {
  const TensorMap good = some_map(0x1000);
  CHECK(tensor_map_problem(good).empty());
  const auto problem = [&](auto change) {
    TensorMap map = good;
    change(map);
    return tensor_map_problem(map);
  };
  CHECK_HAS(problem([](TensorMap& m) { m.address += 8; }), Contains("16 bytes"));
  CHECK_HAS(problem([](TensorMap& m) { m.rank = 0; }), Contains("rank"));
  CHECK_HAS(problem([](TensorMap& m) { m.box[1] = 257; }), Contains("box[1] = 257"));
  CHECK_HAS(problem([](TensorMap& m) { m.box[0] = 2; }), Contains("multiple of 16"));
  CHECK_HAS(problem([](TensorMap& m) { m.strides[0] = 72; }), Contains("strides[0] = 72"));
  CHECK_HAS(problem([](TensorMap& m) { m.element_strides[1] = 9; }), Contains("element_strides[1] = 9"));
  CHECK_HAS(problem([](TensorMap& m) { m.swizzle = kSwizzle32B; }), Contains("more than the swizzle's 32"));
}

TEST_CASE("kernels replace fields of a map, or make one from nothing") {
  const std::string address = "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd3;\n";
  const std::string box = "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 1, 4;\n";
  Ran o = go(box, false);
  REQUIRE_CLEAN(o.run);
  CHECK(o.out[0] == 16 + 32);  // the tensor begins 64 bytes behind; row 2
  o = go(address + box, false);
  REQUIRE_CLEAN(o.run);
  CHECK(o.out[0] == 32);
  CHECK(o.out[31] == 63);
  o = go(address + R"(
  tensormap.replace.tile.rank.shared::cta.b1024.b32 [%r1], 1;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 0, 16;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 1, 4;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 0, 16;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%r1], 1, 3;
  mov.u64 %rd8, 64;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%r1], 0, %rd8;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 0, 1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%r1], 1, 1;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%r1], 2;
  tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%r1], 0;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%r1], 0;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%r1], 0;
)",
         true);
  REQUIRE_CLEAN(o.run);
  CHECK(o.out[15] == 47);
  CHECK(o.out[16] == 0);  // row 3 lies outside
  CHECK_HAS(fault_text(go("", true).run), Contains("tensor_map") && Contains("no tensor map"));
  CHECK_HAS(fault_text(go("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 5, 4;\n", false).run),
            Contains("ordinal 5"));
  CHECK_HAS(fault_text(go("st.shared.u32 [%r1+16], %r4;\n" + box, false).run), Contains("no tensor map"));
}

TEST_CASE("Hazard: a copy through a changed map without the fences of its proxy") {
  const std::string acquire = "fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;";
  const std::string copy =
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%rd2], [%r1], "
      "128;";
  const std::string address = "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd3;\n";
  const auto hazard = [](const Ran& ran) {
    for (const Remark& r : ran.run.remarks)
      if (r.code == "tensormap_unfenced") return r.message;
    return std::string("none");
  };
  // As it must be: the copy releases, a thread of the CTA acquires.
  CHECK(hazard(go(address, false)) == "none");
  // One thread's acquire is enough for its CTA.
  CHECK(hazard(go(address, false, acquire, "@%p1 " + acquire)) == "none");
  CHECK_HAS(hazard(go(address, false, acquire)),
            Contains("generic.acquire") && Contains("(`tensormap.cp_fenceproxy") && Contains("PTX line") &&
                Contains(", maps.cu:7)"));
  // An acquire of something else, or one that comes before the change.
  CHECK_HAS(hazard(go(address, false, acquire, "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;")),
            Contains("generic.acquire"));
  CHECK_HAS(hazard(go(address, false, copy + "\n  " + acquire, acquire + "\n" + copy)),
            Contains("generic.acquire"));
  // A map changed where it lies needs a release of its own. Thread 0 changes what was copied there.
  const std::string in_place =
      copy + "\n@%p1 tensormap.replace.tile.global_address.global.b1024.b64 [%rd2], %rd3;\n";
  CHECK_HAS(hazard(go(address, false, copy, in_place)),
            Contains("generic.release") && Contains("tensormap.replace"));
  CHECK(hazard(go(address, false, copy, in_place + "fence.proxy.tensormap::generic.release.gpu;\n")) ==
        "none");
}

TEST_CASE("a map of bytes that were never written") {
  const std::string address = "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %rd3;\n";
  CHECK_HAS(fault_text(go(address, true, "st.shared.u32 [%r6], %r7;", "st.shared.u32 [%r6+4], %r7;").run),
            Contains("undefined_value") && Contains("never written"));
  // In global memory: a workspace without init, of which thread 0 writes all but 16 bytes.
  const std::string in_place = "tensormap.replace.tile.rank.global.b1024.b32 [%rd2], 1;\n";
  std::string written = "mov.u32 %r10, 0;\n";
  for (int at = 0; at < 112; at += 16)
    written += "st.global.v4.u32 [%rd2+" + std::to_string(at) + "], {%r10, %r10, %r10, %r10};\n";
  CHECK_HAS(fault_text(go(written + in_place, false, "", "", true).run),
            Contains("undefined_value") && Contains("never written"));
  CHECK_HAS(fault_text(go(in_place, false, "", "", true).run), Contains("undefined_value"));
  written += "st.global.v4.u32 [%rd2+112], {%r10, %r10, %r10, %r10};\n";
  const std::string box = "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%r1], 1, 4;\n";
  REQUIRE_CLEAN(go(written + in_place + box, false, "", "", true).run);
}
