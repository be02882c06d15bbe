// Families of PTX forms: the counter's words, so that counts of a GPU and of the emulator can be read side by side.
#include "emulator/report.hpp"
#include "emulator/support.hpp"

#include <ptxbench/sass.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

using namespace ptxbench;
using namespace ptxbench::testing;

namespace {

bool known(const std::string& family) {
  const auto all = sass::families();
  return std::any_of(all.begin(), all.end(), [&](const sass::Family& f) { return f.name == family; });
}

// The family of the one instruction @p text, in a kernel that has registers of every type.
std::string family_of_form(const std::string& text) {
  Machine machine(".visible .entry k(.param .b64 p) {\n"
                  ".reg .b16 %h<9>; .reg .b32 %r<99>; .reg .b64 %d<9>; .reg .f32 %f<99>; .reg .f64 %g<9>; .reg .pred %p<9>;\n"
                  ".shared .align 128 .b8 s[1024]; .local .align 16 .b8 l[64];\n" +
                  text + "\nret;\n}\n");
  const auto decoded = machine.decode();
  if (!decoded) return decoded.error().to_string();
  for (const OpInfo& info : (*decoded)->info)
    if (!info.family.empty()) return info.family;
  return "none";
}

}  // namespace

TEST_CASE("families: of each kind of instruction, the one of its machine instruction") {
  const std::pair<const char*, const char*> rows[] = {
      {"add.s32 %r1, %r2, %r3;", "int"},
      {"mov.u32 %r1, %tid.x;", "other"},
      {"mov.u32 %r1, %r2;", "int"},
      {"add.u32 %r1, %tid.x, 1;", "int"},
      {"fma.rn.f32 %f1, %f2, %f3, %f4;", "fp32"},
      {"add.f64 %g1, %g2, %g3;", "fp64"},
      {"add.f16 %h1, %h2, %h3;", "half"},
      {"setp.lt.f32 %p1, %f1, %f2;", "fp32"},
      {"setp.lt.s32 %p1, %r1, %r2;", "int"},
      {"ex2.approx.f32 %f1, %f2;", "sfu"},
      {"cvt.rn.f32.s32 %f1, %r1;", "conversion"},
      {"ld.global.u32 %r1, [%d1];", "global"},
      {"ld.u32 %r1, [%d1];", "global"},
      {"st.shared.u32 [s], %r1;", "shared"},
      {"ld.local.u32 %r1, [l];", "local"},
      {"ld.param.u64 %d1, [p];", "constant"},
      {"atom.global.add.u32 %r1, [%d1], %r2;", "atomics"},
      {"red.shared.add.u32 [s], %r2;", "atomics"},
      {"shfl.sync.down.b32 %r1, %r2, 1, 31, -1;", "shuffle"},
      {"vote.sync.any.pred %p1, %p2, -1;", "vote"},
      {"redux.sync.add.s32 %r1, %r2, -1;", "redux"},
      {"elect.sync _|%p1, -1;", "elect"},
      {"bar.sync 0;", "barrier"},
      {"bar.warp.sync -1;", "barrier"},
      {"barrier.cluster.arrive.aligned;", "cluster_barrier"},
      {"barrier.cluster.wait.aligned;", "cluster_barrier"},
      {"fence.acq_rel.gpu;", "fence"},
      {"fence.proxy.async;", "fence_proxy_async"},
      {"griddepcontrol.wait;", "pdl"},
      {"griddepcontrol.launch_dependents;", "pdl"},
      {"setmaxnreg.dec.sync.aligned.u32 40;", "setmaxnreg"},
      {"nanosleep.u32 20;", "control"},
      {"mbarrier.init.shared.b64 [s], 1;", "mbarrier"},
      {"mbarrier.try_wait.parity.shared::cta.b64 %p1, [s], 0;", "mbarrier"},
      {"cp.async.ca.shared.global [s], [%d1], 16;", "cp_async"},
      {"cp.async.commit_group;", "cp_async"},
      {"cp.async.wait_group 0;", "control"},
      {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1], 16, [%r1];", "bulk_copy"},
      {"cp.async.bulk.commit_group;", "tma_control"},
      {"cp.async.bulk.wait_group 0;", "control"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%d1, {%r1, %r2}], [%r3];", "tma_load"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [%d1, {%r1, %r2}], "
       "[%r3], %h1;",
       "tma_multicast"},
      {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r1, %r2}], [s];", "tma_store"},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d1, {%r1, %r2}], [s];", "tma_reduce"},
      {"cp.async.bulk.prefetch.tensor.2d.L2.global [%d1, {%r1, %r2}];", "tma_prefetch"},
      {"prefetch.tensormap [%d1];", "tma_control"},
      {"st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];", "dsmem"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [s];", "ldmatrix"},
      {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [s], {%r1};", "stmatrix"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};",
       "mma_sync"},
      {"wgmma.fence.sync.aligned;", "wgmma_sync"},
      {"wgmma.commit_group.sync.aligned;", "wgmma_sync"},
      {"wgmma.wait_group.sync.aligned 0;", "wgmma_sync"},
      {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %d1, %d2, 1, 1, 1, 0, 0;", "wgmma"},
  };
  for (const auto& [text, family] : rows) {
    INFO(text);
    CHECK(family_of_form(text) == family);
    CHECK(known(family));
  }
}

TEST_CASE("families: whatever compilers emit has a family that the counter knows") {
  std::set<std::string> unknown;
  std::size_t instructions = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PTXBENCH_SOURCE_DIR "/tests/fixtures/compiler_ptx")) {
    if (entry.path().extension() != ".ptx" || entry.path().filename().string().find("sm90") == std::string::npos) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    Machine machine(std::string{std::istreambuf_iterator<char>(in), {}});
    for (const KernelInfo& kernel : machine.module->info().kernels) {
      const auto decoded = machine.decode(kernel.symbol);
      if (!decoded) continue;  // other tests ask whether it can be
      for (const OpInfo& info : (*decoded)->info) {
        ++instructions;
        if (!info.family.empty() && !known(info.family)) unknown.insert(info.text + ": " + info.family);
      }
    }
  }
  for (const std::string& line : unknown) UNSCOPED_INFO(line);
  CHECK(unknown.empty());
  CHECK(instructions > 1000);
}

TEST_CASE("report: an instruction that reads a special register counts once") {
  Machine machine(R"(
.visible .entry k(.param .b64 p) {
  .reg .b32 %r<3>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [p];
  add.u32 %r1, %laneid, 1;
  mov.u32 %r2, %ctaid.x;
  st.global.u32 [%d1], %r1;
  ret;
})");
  const std::uint64_t out = machine.allocate(4);
  LaunchShape shape;
  shape.block = {64, 1, 1};
  const Run run = machine.launch(shape, out);
  REQUIRE_CLEAN(run);
  Report report;
  report.add(machine.last, run);
  std::size_t found = 0;
  for (const EmulatedInstruction& i : report.build().instructions) {
    INFO(i.text);
    CHECK(known(i.family));
    if (i.text != "add.u32" && i.text != "mov.u32") continue;
    ++found;
    CHECK(i.warps == 2);
    CHECK(i.threads == 64);
    CHECK(i.family == (i.text == "add.u32" ? "int" : "other"));
  }
  CHECK(found == 2);
}
