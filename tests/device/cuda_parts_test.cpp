// What of the CUDA device can be tested without a GPU.
#include "device/cuda_device.hpp"
#include "device/cuda_faults.hpp"
#include "device/ptx_globals.hpp"
#include "support/catch.hpp"

#include <ptxbench/device.hpp>

using namespace ptxbench;
using Kind = DeviceFault::Kind;

TEST_CASE("results of the driver become faults, sticky where the context dies") {
  REQUIRE(classify_fault(CUDA_ERROR_ILLEGAL_ADDRESS).kind == Kind::illegal_address);
  REQUIRE(classify_fault(CUDA_ERROR_MISALIGNED_ADDRESS).kind == Kind::misaligned);
  REQUIRE(classify_fault(CUDA_ERROR_ILLEGAL_INSTRUCTION).kind == Kind::illegal_instruction);
  REQUIRE(classify_fault(CUDA_ERROR_LAUNCH_FAILED).kind == Kind::trap);
  REQUIRE(classify_fault(CUDA_ERROR_ASSERT).kind == Kind::trap);
  REQUIRE(classify_fault(CUDA_ERROR_INVALID_PC).kind == Kind::launch_failed);
  REQUIRE(classify_fault(CUDA_ERROR_LAUNCH_TIMEOUT).kind == Kind::timeout);
  for (int code : {700, 702, 710, 714, 715, 716, 717, 718, 719, 214, 220})
    REQUIRE(is_sticky(static_cast<CUresult>(code)));
  for (int code : {1, 2, 701, 720, 912, 400, 600, 999}) REQUIRE_FALSE(is_sticky(static_cast<CUresult>(code)));
  for (int code : {1, 701, 720, 912})
    REQUIRE(classify_fault(static_cast<CUresult>(code)).kind == Kind::launch_refused);
}

TEST_CASE("a fault carries the driver's number even where the driver does not name it") {
  const CudaDriver none;  // no library: no function is there
  const DeviceFault fault = make_fault(none, CUDA_ERROR_ILLEGAL_ADDRESS, "running");
  REQUIRE(fault.code == 700);
  REQUIRE(fault.sticky);
  REQUIRE_FALSE(fault.name.empty());
  REQUIRE(fault.message.find("running") == 0);
  REQUIRE(driver_error(none, CUDA_ERROR_OUT_OF_MEMORY, "x").code == ErrorCode::no_memory);
  REQUIRE(driver_error(none, CUDA_ERROR_UNKNOWN, "x").code == ErrorCode::driver);
}

TEST_CASE("a device is chosen by place, by UUID in any case, or as the first") {
  CudaDeviceList list;
  for (const char* id :
       {"cuda:GPU-11111111-aaaa-bbbb-cccc-222222222222", "cuda:GPU-33333333-dddd-eeee-ffff-444444444444"}) {
    CudaDeviceEntry entry;
    entry.device = static_cast<CUdevice>(list.devices.size());
    entry.info.id = id;
    entry.info.name = "NVIDIA Test";
    list.devices.push_back(entry);
  }
  for (const char* first : {"auto", "cuda", "cuda:0", "cuda:GPU-11111111-AAAA-bbbb-cccc-222222222222"})
    REQUIRE(choose_cuda_device(list, first)->device == 0);
  REQUIRE(choose_cuda_device(list, "cuda:1")->device == 1);
  REQUIRE(choose_cuda_device(list, "cuda:gpu-33333333-DDDD-eeee-ffff-444444444444")->device == 1);
  for (const char* missing : {"cuda:2", "cuda:GPU-1", "cuda:", "cuda:-1", "cuda:99999999999999999999"}) {
    const auto chosen = choose_cuda_device(list, missing);
    REQUIRE_FALSE(chosen);
    REQUIRE(chosen.error().code == ErrorCode::no_device);
    REQUIRE(chosen.error().message.find("GPU-33333333") != std::string::npos);  // says what there is
  }
  REQUIRE(choose_cuda_device(list, "emulator:h200").error().code == ErrorCode::invalid_argument);
  REQUIRE(choose_cuda_device({}, "auto").error().code == ErrorCode::no_device);
}

TEST_CASE("without a usable driver, listing and opening say what is missing and where it was looked for") {
  const auto list = list_cuda_devices();
  if (list) {
    WARN("there is a GPU; nothing is missing");
    REQUIRE_FALSE(list->empty());
    return;
  }
  REQUIRE((list.error().code == ErrorCode::no_device || list.error().code == ErrorCode::toolkit));
  REQUIRE(list.error().message.find("libcuda") != std::string::npos);
  const auto device = open_cuda_device("auto");
  REQUIRE_FALSE(device);
  REQUIRE(device.error().code == list.error().code);
}

TEST_CASE("globals are found in PTX text") {
  const std::string ptx = R"(//
// .global .u32 in_a_comment;
.version 9.0
.target sm_90a
.address_size 64
/* .global .u32 in_another; */
.extern .global .align 4 .u32 elsewhere;
.extern .shared .align 16 .b8 smem[];
.visible .global .align 4 .u32 counter = 5;
.global .align 4 .b8 hidden[12];
.visible .const .align 16 .b8 table[16] = {1, 2, 3, 4};
.global .align 8 .u64 pointer = generic(counter);
.visible .entry k(
	.param .u64 k_param_0
)
.maxntid 128
{
	.reg .b32 	%r<3>;
	.shared .align 4 .b8 tile[64];
	ld.global.u32 	%r1, [counter];
	ret;
}
.file	1 "a;b.cu"
.global .align 1 .b8 last[2];
)";
  REQUIRE(ptx_globals(ptx) == std::vector<std::string>{"counter", "hidden", "table", "pointer", "last"});
  REQUIRE(ptx_globals("").empty());
  const std::string clusters =
      ".visible .entry k2(\n)\n{\n}\n.visible .entry k(\n)\n.blocksareclusters\n.reqntid 64\n{\n}\n";
  REQUIRE(ptx_blocks_are_clusters(clusters, "k"));
  REQUIRE_FALSE(ptx_blocks_are_clusters(clusters, "k2"));
  REQUIRE_FALSE(ptx_blocks_are_clusters(clusters, "absent"));
  REQUIRE_FALSE(ptx_blocks_are_clusters(".entry", "k"));
  REQUIRE(ptx_globals("/* never closed .global .u32 x;").empty());
  REQUIRE(ptx_globals("}}} .global .u32 x; \"").empty());
}
