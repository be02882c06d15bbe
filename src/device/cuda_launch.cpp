// Launches with every attribute that a plan can ask for.
#include "device/cuda_device.hpp"
#include "device/cuda_faults.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace ptxbench {
namespace {

std::string shape(const std::array<std::uint32_t, 3>& s) {
  return std::to_string(s[0]) + "x" + std::to_string(s[1]) + "x" + std::to_string(s[2]);
}

std::uint64_t product(const std::array<std::uint32_t, 3>& s) {
  return static_cast<std::uint64_t>(s[0]) * s[1] * s[2];
}

// What was asked for, so that a refusal can be acted on.
std::string describe_launch(const DeviceLaunch& launch, const KernelInfo& info) {
  std::string text = "launching " + std::string(launch.symbol) + " (grid " + shape(launch.grid) + ", block " +
                     shape(launch.block);
  if (launch.has_cluster) text += ", cluster " + shape(launch.cluster);
  if (launch.preferred_cluster) text += ", preferred cluster " + shape(*launch.preferred_cluster);
  text += ", shared " + std::to_string(launch.dynamic_shared_bytes) + " dynamic + " +
          std::to_string(info.static_shared_bytes) + " static bytes";
  if (info.registers > 0) text += ", " + std::to_string(info.registers) + " registers a thread";
  if (launch.cooperative) text += ", cooperative";
  return text + ")";
}

}  // namespace

DeviceOutcome CudaDevice::opt_in(Function& function, const std::string& name,
                                 std::uint64_t dynamic_shared_bytes, std::uint64_t cluster_ctas) {
  if (dynamic_shared_bytes > static_cast<std::uint64_t>(function.max_dynamic_shared)) {
    const int bytes = dynamic_shared_bytes > INT32_MAX ? INT32_MAX : static_cast<int>(dynamic_shared_bytes);
    const CUresult result =
        driver_->cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes);
    if (result != CUDA_SUCCESS) {
      DeviceFault fault =
          make_fault(*driver_, result,
                     name + ": " + std::to_string(dynamic_shared_bytes) + " bytes of dynamic and " +
                         std::to_string(function.info.static_shared_bytes) +
                         " of static shared memory are more than the device's " +
                         std::to_string(info_.limits.smem_optin_bytes));
      return fault;
    }
    function.max_dynamic_shared = bytes;
  }
  if (cluster_ctas > 8 && !function.non_portable_cluster) {
    const CUresult result =
        driver_->cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    if (result != CUDA_SUCCESS)
      return make_fault(*driver_, result,
                        name + ": a cluster of " + std::to_string(cluster_ctas) + " is not allowed here");
    function.non_portable_cluster = true;
  }
  return {};
}

Result<void> CudaDevice::local_memory_ready(const Function& function, std::string_view name) {
  if (!gate_closed_ || function.local_bytes <= local_bytes_ready_) return {};
  raise_flag();
  return make_error(ErrorCode::state,
                    std::string(name) + " uses " + std::to_string(function.local_bytes) +
                        " bytes of local memory a thread, and its first launch waits for the device "
                        "to make room: launch it once before closing the gate");
}

Result<DeviceOutcome> CudaDevice::launch(const DeviceLaunch& launch) {
  if (lost_) return DeviceOutcome(*lost_);
  PTXBENCH_TRY_ASSIGN(Module * module, module_at(launch.module));
  const auto found = module->functions.find(launch.symbol);
  if (found == module->functions.end())
    return make_error(ErrorCode::not_found, module->source + " has no kernel " + std::string(launch.symbol));
  Function& function = found->second;
  std::size_t parameter_bytes = function.info.parameter_bytes;
  for (const KernelParameter& p : function.info.parameters)
    parameter_bytes = std::max(parameter_bytes, std::size_t{p.offset} + p.size);
  if (launch.parameters.size() < parameter_bytes)
    return make_error(ErrorCode::invalid_argument,
                      std::string(launch.symbol) + " takes " + std::to_string(parameter_bytes) +
                          " bytes of parameters, " + std::to_string(launch.parameters.size()) +
                          " were given");
  PTXBENCH_TRY(local_memory_ready(function, launch.symbol));
  PTXBENCH_TRY(count_queued(1, "launching", launch.parameters.size()));
  Current current(*this);

  // Every fault that is none of a running kernel's is a refusal of this launch.
  const auto refused = [&](DeviceFault fault) -> DeviceOutcome {
    raise_flag();
    if (fault.sticky) return lose(std::move(fault));  // of an earlier launch: it only shows here
    if (fault.kind == DeviceFault::Kind::other) fault.kind = DeviceFault::Kind::launch_refused;
    return fault;
  };

  std::uint64_t ctas = launch.has_cluster ? product(launch.cluster) : 1;
  if (launch.preferred_cluster) ctas = std::max(ctas, product(*launch.preferred_cluster));
  if (function.info.required_cluster) ctas = std::max(ctas, product(*function.info.required_cluster));
  if (DeviceOutcome fault = opt_in(function, std::string(launch.symbol), launch.dynamic_shared_bytes, ctas))
    return refused(std::move(*fault));

  std::array<CUlaunchAttribute, 6> attributes;
  std::memset(static_cast<void*>(attributes.data()), 0, sizeof(attributes));
  unsigned count = 0;
  if (launch.has_cluster) {
    CUlaunchAttribute& a = attributes[count++];
    a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    a.value.clusterDim.x = launch.cluster[0];
    a.value.clusterDim.y = launch.cluster[1];
    a.value.clusterDim.z = launch.cluster[2];
  }
  if (launch.preferred_cluster) {
    CUlaunchAttribute& a = attributes[count++];
    a.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION;
    a.value.preferredClusterDim.x = (*launch.preferred_cluster)[0];
    a.value.preferredClusterDim.y = (*launch.preferred_cluster)[1];
    a.value.preferredClusterDim.z = (*launch.preferred_cluster)[2];
  }
  if (launch.cluster_policy != 0) {
    CUlaunchAttribute& a = attributes[count++];
    a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    a.value.clusterSchedulingPolicyPreference = static_cast<CUclusterSchedulingPolicy>(launch.cluster_policy);
  }
  if (launch.cooperative) {
    CUlaunchAttribute& a = attributes[count++];
    a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    a.value.cooperative = 1;
  }
  if (launch.pdl) {
    CUlaunchAttribute& a = attributes[count++];
    a.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    a.value.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.carveout) {
    CUlaunchAttribute& a = attributes[count++];
    a.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
    a.value.sharedMemCarveout = static_cast<unsigned>(*launch.carveout);
  }

  // A plan's grid counts CTAs. The driver multiplies by the cluster where the kernel is compiled to count
  // those.
  std::array<std::uint32_t, 3> grid = launch.grid;
  if (function.grid_counts_clusters && function.info.required_cluster)
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint32_t size = std::max(1u, (*function.info.required_cluster)[i]);
      if (grid[i] % size != 0)
        return refused(
            make_fault(*driver_, CUDA_ERROR_INVALID_CLUSTER_SIZE, describe_launch(launch, function.info)));
      grid[i] /= size;
    }

  if (launch.beside && beside_ == nullptr)
    if (const CUresult result = driver_->cuStreamCreate(&beside_, CU_STREAM_NON_BLOCKING); result != CUDA_SUCCESS)
      return failed(result, "making a second stream");
  CUlaunchConfig config{};
  config.gridDimX = grid[0];
  config.gridDimY = grid[1];
  config.gridDimZ = grid[2];
  config.blockDimX = launch.block[0];
  config.blockDimY = launch.block[1];
  config.blockDimZ = launch.block[2];
  config.sharedMemBytes = static_cast<unsigned>(launch.dynamic_shared_bytes);
  config.hStream = launch.beside ? beside_ : stream_;
  config.attrs = count == 0 ? nullptr : attributes.data();
  config.numAttrs = count;

  // One pointer a parameter, so that the driver places each where the code reads it (a map aligned to 128 may
  // make the first one start behind the buffer's beginning).
  std::vector<void*> pointers;
  for (const KernelParameter& parameter : function.info.parameters)
    pointers.push_back(const_cast<std::uint8_t*>(launch.parameters.data()) + parameter.offset);
  const CUresult result = driver_->cuLaunchKernelEx(&config, function.handle,
                                                    pointers.empty() ? nullptr : pointers.data(), nullptr);
  if (result == CUDA_SUCCESS) {
    local_bytes_ready_ = std::max(local_bytes_ready_, function.local_bytes);
    return DeviceOutcome{};
  }
  if (is_sticky(result))
    return refused(
        make_fault(*driver_, result, "running what was queued before " + std::string(launch.symbol)));
  return refused(make_fault(*driver_, result, describe_launch(launch, function.info)));
}

DeviceQueries CudaDevice::queries(std::vector<DeviceModule> modules) {
  // The device must outlive the answers (device.hpp).
  const auto function_of = [this, modules](const OccupancyQuery& query) -> Result<Function*> {
    if (query.module >= modules.size()) return make_error(ErrorCode::invalid_argument, "no such module");
    PTXBENCH_TRY_ASSIGN(Module * module, module_at(modules[query.module]));
    const auto found = module->functions.find(query.symbol);
    if (found == module->functions.end())
      return make_error(ErrorCode::not_found, module->source + " has no kernel " + query.symbol);
    return &found->second;
  };
  DeviceQueries queries;
  queries.occupancy = [this, function_of](const OccupancyQuery& query) -> Result<std::int64_t> {
    PTXBENCH_TRY_ASSIGN(Function * function, function_of(query));
    Current current(*this);
    if (opt_in(*function, query.symbol, query.dynamic_shared_bytes, product(query.cluster)))
      return std::int64_t{0};  // no CTA fits
    int ctas = 0;
    const CUresult result = driver_->cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &ctas, function->handle, static_cast<int>(product(query.block)), query.dynamic_shared_bytes);
    if (result != CUDA_SUCCESS) return failed(result, "the occupancy of " + query.symbol);
    return std::int64_t{ctas};
  };
  queries.max_active_clusters = [this, function_of](const OccupancyQuery& query) -> Result<std::int64_t> {
    PTXBENCH_TRY_ASSIGN(Function * function, function_of(query));
    Current current(*this);
    if (opt_in(*function, query.symbol, query.dynamic_shared_bytes, product(query.cluster)))
      return std::int64_t{0};
    CUlaunchAttribute attribute;
    std::memset(static_cast<void*>(&attribute), 0, sizeof(attribute));
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = query.cluster[0];
    attribute.value.clusterDim.y = query.cluster[1];
    attribute.value.clusterDim.z = query.cluster[2];
    CUlaunchConfig config{};
    // Only whether the grid divides matters here.
    config.gridDimX = query.cluster[0];
    config.gridDimY = query.cluster[1];
    config.gridDimZ = query.cluster[2];
    config.blockDimX = query.block[0];
    config.blockDimY = query.block[1];
    config.blockDimZ = query.block[2];
    config.sharedMemBytes = static_cast<unsigned>(query.dynamic_shared_bytes);
    config.hStream = stream_;
    config.attrs = &attribute;
    config.numAttrs = 1;
    int clusters = 0;
    const CUresult result = driver_->cuOccupancyMaxActiveClusters(&clusters, function->handle, &config);
    if (result == CUDA_ERROR_INVALID_CLUSTER_SIZE) return std::int64_t{0};
    if (result != CUDA_SUCCESS) return failed(result, "the number of active clusters of " + query.symbol);
    return std::int64_t{clusters};
  };
  return queries;
}

}  // namespace ptxbench
