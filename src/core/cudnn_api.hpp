// What we call of cuDNN's graph (backend) API, declared by hand: cuDNN is no build dependency. Names and
// numbers are those of cudnn_graph_v9.h (cuDNN 9.0 to 9.28 agree on them); enumerations travel as int, as in
// C.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace ptxbench::cudnn {

using Handle = void*;      // cudnnHandle_t
using Descriptor = void*;  // cudnnBackendDescriptor_t

// cudnnStatus_t. Since 9.0 the thousands are the category: 3xxx is "not supported", with the reason behind
// it.
inline constexpr int kSuccess = 0, kNotSupported = 3000;
constexpr bool is_not_supported(int status) { return status / 1000 == 3; }

enum class DataType : int { float32 = 0, float16 = 2, int32 = 4, bfloat16 = 9, boolean = 11 };

enum class PointwiseMode : int {
  add = 0,
  mul = 1,
  div = 6,
  sub = 9,
  exp = 13,
  log = 15,
  identity = 21,
  compare_ge = 303,
  gen_index = 501,
  binary_select = 601,  // t ? x : b
};

enum class ReductionOperator : int { add = 0, max = 3 };

enum class HeuristicMode : int { fallback = 2, a = 3 };

enum class DescriptorType : int {
  pointwise = 0,
  engine = 2,
  engine_config = 3,
  engine_heuristics = 4,
  execution_plan = 5,
  knob_choice = 7,
  operation_pointwise = 13,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  matmul = 18,
  operation_matmul = 19,
  reduction = 21,
  operation_reduction = 22,
  operation_reshape = 31,
};

enum class AttributeType : int {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  void_pointer = 6,
  heuristic_mode = 8,
  knob_type = 9,
  pointwise_mode = 14,
  descriptor = 15,
  reduction_operator = 18,
};

enum class Attribute : int {
  pointwise_mode = 0,
  pointwise_math_precision = 1,
  pointwise_axis = 9,
  heuristics_mode = 200,
  heuristics_operation_graph = 201,
  heuristics_results = 202,
  engine_config_engine = 300,
  engine_config_knob_choices = 302,
  plan_handle = 400,
  plan_engine_config = 401,
  plan_workspace_size = 402,
  knob_choice_type = 600,
  knob_choice_value = 601,
  operation_pointwise_descriptor = 750,
  operation_pointwise_x = 751,
  operation_pointwise_b = 752,
  operation_pointwise_y = 753,
  operation_pointwise_t = 758,
  operation_graph_handle = 800,
  operation_graph_operations = 801,
  tensor_byte_alignment = 900,
  tensor_data_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_unique_id = 906,
  tensor_is_virtual = 907,
  tensor_is_by_value = 908,
  variant_pack_unique_ids = 1000,
  variant_pack_data_pointers = 1001,
  variant_pack_workspace = 1003,
  engine_global_index = 1301,
  matmul_compute_type = 1500,
  operation_matmul_a = 1520,
  operation_matmul_b = 1521,
  operation_matmul_c = 1522,
  operation_matmul_descriptor = 1523,
  reduction_operator = 1600,
  reduction_compute_type = 1601,
  operation_reduction_x = 1610,
  operation_reduction_y = 1611,
  operation_reduction_descriptor = 1612,
  operation_reshape_x = 2200,
  operation_reshape_y = 2201,
};

// cudnnBackendKnobType_t, as short names for messages; null for a number that we do not know.
constexpr const char* knob_name(int type) {
  switch (type) {
    case 1:
      return "swizzle";
    case 2:
      return "tile_size";
    case 14:
      return "stages";
    case 24:
      return "kernel_cfg";
    case 27:
      return "tile_cga_m";
    case 28:
      return "tile_cga_n";
    case 38:
      return "stream_k";
    case 40:
      return "tile_m";
    case 41:
      return "tile_n";
    case 42:
      return "warp_spec_cfg";
    default:
      return nullptr;
  }
}

// The types of the functions, each named as the function without its prefix. Descriptors and handles belong
// to who made them; none of them throws.
using Create = int(Handle*);
using Destroy = int(Handle);
using SetStream = int(Handle, CUstream);
using GetVersion = std::size_t();
using GetErrorString = const char*(int status);
using GetLastErrorString = void(char* message, std::size_t capacity);
using BackendCreateDescriptor = int(DescriptorType, Descriptor*);
using BackendDestroyDescriptor = int(Descriptor);
using BackendSetAttribute = int(Descriptor, Attribute, AttributeType, std::int64_t count,
                                const void* elements);
using BackendGetAttribute = int(Descriptor, Attribute, AttributeType, std::int64_t requested,
                                std::int64_t* count, void* elements);
using BackendFinalize = int(Descriptor);
using BackendExecute = int(Handle, Descriptor plan, Descriptor variant_pack);

}  // namespace ptxbench::cudnn
