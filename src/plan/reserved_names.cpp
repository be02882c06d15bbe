#include "plan/reserved_names.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace ptxbench::plan {
namespace {

constexpr std::string_view kExpressionWords[] = {
    "ceil_div",    "exp",
    "exp2",        "false",
    "i",           "l2_bytes",
    "ln",          "log2",
    "max",         "max_active_clusters",
    "min",         "occupancy",
    "regs_per_sm", "round_down",
    "round_up",    "rsqrt",
    "sm_count",    "smem_optin_bytes",
    "sqrt",        "true",
};

constexpr std::string_view kKeywords[] = {
    "alignas",      "alignof",   "and",           "and_eq",
    "asm",          "auto",      "bitand",        "bitor",
    "bool",         "break",     "case",          "catch",
    "char",         "char16_t",  "char32_t",      "char8_t",
    "class",        "co_await",  "co_return",     "co_yield",
    "compl",        "concept",   "const",         "const_cast",
    "consteval",    "constexpr", "constinit",     "continue",
    "decltype",     "default",   "defined",       "delete",
    "do",           "double",    "dynamic_cast",  "else",
    "enum",         "explicit",  "export",        "extern",
    "false",        "float",     "for",           "friend",
    "goto",         "if",        "inline",        "int",
    "long",         "mutable",   "namespace",     "new",
    "noexcept",     "not",       "not_eq",        "nullptr",
    "operator",     "or",        "or_eq",         "private",
    "protected",    "public",    "register",      "reinterpret_cast",
    "requires",     "return",    "short",         "signed",
    "sizeof",       "static",    "static_assert", "static_cast",
    "struct",       "switch",    "template",      "this",
    "thread_local", "throw",     "true",          "try",
    "typedef",      "typeid",    "typename",      "union",
    "unsigned",     "using",     "virtual",       "void",
    "volatile",     "wchar_t",   "while",         "xor",
    "xor_eq",
};

// clang-format off
// Identifiers of CUDA 13.0's cuda_bf16, cuda_fp16, cuda_fp8, cuda_fp6, cuda_fp4, cooperative_groups, mma,
// vector_types and math headers outside of comments and strings, without those that begin with an underscore
// (is_language_name refuses these); and of the small standard headers of a candidate's include path.
constexpr std::string_view kHeaderNames[] = {
    "AlignHint", "Alignment", "ArgType", "Args", "B", "CG_DEBUG", "CHAR_BIT", "CHAR_MAX", "CHAR_MIN",
    "CUDARTAPI", "CUDART_INF_BF16", "CUDART_INF_FP16", "CUDART_MAX_NORMAL_BF16", "CUDART_MAX_NORMAL_FP16",
    "CUDART_MIN_DENORM_BF16", "CUDART_MIN_DENORM_FP16", "CUDART_NAN_BF16", "CUDART_NAN_FP16",
    "CUDART_NEG_ZERO_BF16", "CUDART_NEG_ZERO_FP16", "CUDART_ONE_BF16", "CUDART_ONE_FP16", "CUDART_ZERO_BF16",
    "CUDART_ZERO_FP16", "CUDA_NO_BFLOAT16", "CUDA_NO_HALF", "CUdeviceptr", "CUstream_st", "CUtensorMap",
    "CUtensorMap_st", "Cond", "DBL_DECIMAL_DIG", "DBL_DIG", "DBL_EPSILON", "DBL_MANT_DIG", "DBL_MAX",
    "DBL_MAX_10_EXP", "DBL_MAX_EXP", "DBL_MIN", "DBL_MIN_10_EXP", "DBL_MIN_EXP", "DBL_TRUE_MIN",
    "DECIMAL_DIG", "DP_INF_BITS", "DstLayout", "EXCLUDE_FROM_RTC", "FLT_DECIMAL_DIG", "FLT_DIG",
    "FLT_EPSILON", "FLT_MANT_DIG", "FLT_MAX", "FLT_MAX_10_EXP", "FLT_MAX_EXP", "FLT_MIN", "FLT_MIN_10_EXP",
    "FLT_MIN_EXP", "FLT_RADIX", "FLT_TRUE_MIN", "FP4_DP_HALF_ULP", "FP4_EXP_BIAS", "FP4_MANTISSA_MASK",
    "FP4_MAXNORM", "FP4_MINDENORM_O2", "FP4_MINNORM", "FP4_OVERFLOW_THRESHOLD", "FP4_SIGNIFICAND_BITS",
    "FP6_DP_HALF_ULP", "FP6_EXP_BIAS", "FP6_MANTISSA_MASK", "FP6_MAXNORM", "FP6_MINDENORM_O2", "FP6_MINNORM",
    "FP6_OVERFLOW_THRESHOLD", "FP6_SIGNIFICAND_BITS", "FP8_DP_HALF_ULP", "FP8_EXP_BIAS", "FP8_MANTISSA_MASK",
    "FP8_MAXNORM", "FP8_MINDENORM_O2", "FP8_MINNORM", "FP8_OVERFLOW_THRESHOLD", "FP8_SIGNIFICAND_BITS", "Fn",
    "FragEleType", "GrandParent", "Group", "GroupId", "GroupT", "HUGE_VAL", "HUGE_VALF", "HiReg", "Hint",
    "IF_DEVICE_OR_CUDACC", "INFINITY", "INT16_C", "INT16_MAX", "INT16_MIN", "INT32_C", "INT32_MAX",
    "INT32_MIN", "INT64_C", "INT64_MAX", "INT64_MIN", "INT8_C", "INT8_MAX", "INT8_MIN", "INTMAX_C",
    "INTMAX_MAX", "INTMAX_MIN", "INTPTR_MAX", "INTPTR_MIN", "INT_MAX", "INT_MIN", "InMem",
    "IntegralOptimized", "InterWarpLambda", "IsIntegralPlus", "IsMultiWarp", "IsNative", "LLONG_MAX",
    "LLONG_MIN", "LOAD_ENVREG", "LONG_MAX", "LONG_MIN", "LaneMask", "Layout", "LoReg", "M_1_PI", "M_2_PI",
    "M_E", "M_LN10", "M_LN2", "M_LOG10E", "M_LOG2E", "M_PI", "M_PI_2", "M_PI_4", "M_SQRT1_2", "M_SQRT2",
    "MaxAlignment", "MaxBlockSize", "MinAlignment", "N", "NAN", "NDEBUG", "NULL", "NUMBER",
    "NV_IF_ELSE_TARGET", "NV_IF_TARGET", "NV_INT_OR_BOOL", "NV_IS_DEVICE", "NV_MATH_BEGIN_NAMESPACE_STD",
    "NV_MATH_END_NAMESPACE_STD", "NV_MATH_NOEXCEPT", "NV_MATH_NOEXCEPT_OR_THROW", "NV_NO_TARGET",
    "NV_PROVIDES_SM_53", "NV_PROVIDES_SM_60", "NV_PROVIDES_SM_70", "NV_PROVIDES_SM_75", "NV_PROVIDES_SM_80",
    "NV_PROVIDES_SM_90", "OK", "OtherIsMultiWarp", "OtherParentT", "OtherSize", "PTRDIFF_MAX", "PTRDIFF_MIN",
    "Parent", "ParentSize", "ParentT", "RegId", "ResultType", "SCHAR_MAX", "SCHAR_MIN", "SHRT_MAX",
    "SHRT_MIN", "SIZE_MAX", "ScanType", "Sco", "Segment", "ShiftCount", "Size", "SrcLayout", "Stage",
    "StorageType", "Sz", "T", "ThisType", "TileCount", "TileMask", "Tp", "Ts", "Ty", "Ty1", "Ty2",
    "TyAtomic", "TyDst", "TyDstVal", "TyElem", "TyFn", "TyFnInput", "TyGroup", "TyId", "TyInputVal",
    "TyIntegral", "TyLhs", "TyOp", "TyPar", "TyPredicate", "TyRes", "TyResHandler", "TyRet", "TyRetVal",
    "TyRhs", "TyScan", "TyShflFn", "TySize", "TySizeT", "TyTrunc", "TyType", "TyVal", "U", "UCHAR_MAX",
    "UINT16_C", "UINT16_MAX", "UINT32_C", "UINT32_MAX", "UINT64_C", "UINT64_MAX", "UINT8_C", "UINT8_MAX",
    "UINTMAX_C", "UINTMAX_MAX", "UINTPTR_MAX", "UINT_MAX", "ULLONG_MAX", "ULONG_MAX", "USHRT_MAX", "Up",
    "Use", "UseElect", "Val", "WarpLambda", "WarpType", "a", "a0", "a1", "a2", "a4", "a6", "a8",
    "aShiftRound", "aShiftRoundBits", "a_f", "abort", "abs", "abs_a_raw", "absa", "absx",
    "accelerated_async_copy", "accelerated_op", "accumulator", "acos", "acosf", "acosh", "acoshf", "add",
    "add_const", "addr", "address", "address_as_uint", "address_as_us", "align", "alignOffset", "aligned",
    "alignment", "all", "ans", "any", "ar", "araw", "arg1", "arg2", "args", "array", "arrival_token",
    "arrived", "asin", "asinf", "asinh", "asinhf", "assert", "assert_if_not_arithmetic", "assumed",
    "asyncCount", "async_copy_group_supported", "async_copy_optimize_tile", "atan", "atan2", "atan2f",
    "atanf", "atanh", "atanhf", "atom_or_acq_rel_cta", "atomic", "atomicAdd", "atomicAdd_block",
    "atomicAdd_system", "atomicAnd", "atomicAnd_block", "atomicAnd_system", "atomicCAS", "atomicCAS_block",
    "atomicCAS_system", "atomicDec_block", "atomicDec_system", "atomicExch", "atomicExch_block",
    "atomicExch_system", "atomicInc_block", "atomicInc_system", "atomicMax_block", "atomicMax_system",
    "atomicMin_block", "atomicMin_system", "atomicOr", "atomicOr_block", "atomicOr_system",
    "atomicSub_block", "atomicSub_system", "atomicXor_block", "atomicXor_system", "atomic_cas_fallback",
    "atomic_ref", "atomic_store", "atomic_supported", "atomic_update", "atomic_update_dispatch", "b", "b1",
    "b_big", "b_f", "back", "back_int", "ballot", "bar", "bar_has_flipped", "barrier", "barrier_arrive",
    "barrier_t", "barrier_wait", "barriers", "base", "base1", "base2", "base_offset", "begLane", "begin",
    "bias_difference", "binary_partition", "bit_and", "bit_idx", "bit_or", "bit_xor", "bits", "blockDim",
    "blockIdx", "blockIndex", "block_dim", "block_index", "block_rank", "block_tile_memory",
    "bmmaAccumulateOp", "bmmaAccumulateOpPOPC", "bmmaBitOp", "bmmaBitOpAND", "bmmaBitOpXOR", "bmma_sync",
    "bool_constant", "build_mask", "c", "cbrt", "cbrtf", "ceil", "ceilf", "cg", "ch", "char1", "char2",
    "char3", "char4", "check_async_reduce_params", "check_reduce_params", "check_scan_params",
    "check_scan_update_params", "cl", "cluster", "clusterDim", "clusterIdx", "cluster_cta_mask",
    "cluster_group", "cluster_group_id", "cluster_index", "cluster_rank", "cnt", "coalesced",
    "coalesced_group", "coalesced_group_id", "coalesced_inclusive_scan", "coalesced_reduce",
    "coalesced_threads", "coalesced_tile", "col_major", "collectives_scheme", "communication_memory",
    "communication_size", "communication_type", "compare", "compiler", "conditional", "conditional_t",
    "construct_from_mask", "conversion", "convert_inclusive_to_exclusive", "cooperative_groups", "copy",
    "copy_like", "copysign", "copysignf", "cos", "cosf", "cosh", "coshf", "cospi", "cospif", "count", "cptr",
    "cta", "cuda", "cudaError_t", "cudaKernel_t", "cudaRoundMinInf", "cudaRoundMode", "cudaRoundNearest",
    "cudaRoundPosInf", "cudaRoundZero", "cudaStream_t", "current_arrive", "cuuint32_t", "cuuint64_t",
    "cyl_bessel_i0", "cyl_bessel_i0f", "cyl_bessel_i1", "cyl_bessel_i1f", "d", "dadd", "data", "decay",
    "decay_t", "declval", "default_max_block_size", "define", "delta", "den", "denorm_min", "deprecated",
    "details", "diff", "digits", "digits10", "dim", "dim3", "dimBlocks", "dimClusters", "dim_blocks",
    "dim_clusters", "dim_threads", "disable", "disable_tile_optimization", "dispatch", "dmul", "double1",
    "double2", "double2int", "double2ll", "double2uint", "double2ull", "double3", "double4", "double4_16a",
    "double4_32a", "dst", "dstCount", "dstIsNotShared", "dstLayout", "dsub", "dx", "elect_group_supported",
    "elect_one", "elem", "element_type", "elif", "empty", "enable_if", "enable_if_integral",
    "enable_if_not_void", "enable_if_t", "enable_if_void", "enable_tile_optimization", "end", "endif",
    "epsilon", "eq", "equ", "erf", "erfc", "erfcf", "erfcinv", "erfcinvf", "erfcx", "erfcxf", "erff",
    "erfinv", "erfinvf", "err", "ex2", "exclusive", "exclusive_scan", "exclusive_scan_update", "exp",
    "exp10", "exp10f", "exp2", "exp2f", "expected", "experimental", "expf", "expm1", "expm1f", "exponent",
    "ext", "f", "fa", "fabs", "fabsf", "false_type", "fb", "fdim", "fdimf", "fdivide", "fdividef", "fh",
    "fhi", "file", "fill_argument_type", "fill_fragment", "find_best_alignment", "first", "fl", "flo",
    "float1", "float2", "float2double", "float3", "float4", "floor", "floorf", "flt_ln2", "flt_log10_2",
    "fma", "fmaf", "fmax", "fmaxf", "fmin", "fminf", "fmod", "fmodf", "fn", "forward", "fp4_interpretation",
    "fp6_interpretation", "fp6e2m3", "fp8_interpretation", "fr", "fragment", "frexp", "frexpf", "front",
    "fullMask", "fun", "func", "fv", "fx", "fx_with_sticky", "g", "gMask", "ge", "get", "get_grid_workspace",
    "get_group_mask", "get_mask", "get_scratch_location", "get_scratch_ptr", "get_sync_location", "get_type",
    "geu", "gg", "gg_data", "gpu_master", "greater", "grid", "gridDim", "gridWs", "gridWsAbiAddress",
    "grid_dim", "grid_group", "grid_group_id", "grid_workspace", "group", "groupSize", "group_data",
    "group_dim", "group_index", "group_mask", "group_size", "gt", "gtu", "h", "h2ceil", "h2cos", "h2exp",
    "h2exp10", "h2exp2", "h2floor", "h2log", "h2log10", "h2log2", "h2r", "h2rcp", "h2rint", "h2rsqrt",
    "h2sin", "h2sqrt", "h2tanh", "h2tanh_approx", "h2trunc", "ha", "half", "half2", "half2_storage",
    "halfLane", "halfMask", "hb", "hceil", "hcos", "helper", "helper_traits", "hexp", "hexp10", "hexp2",
    "hfloor", "hi", "hi_float", "high", "hlog", "hlog10", "hlog2", "hr", "hrcp", "hrint", "hrsqrt", "hsin",
    "hsqrt", "htanh", "htanh_approx", "htrunc", "hypot", "hypotf", "hzero", "i", "id", "idx", "ifdef",
    "ifndef", "ignored", "ilogb", "ilogbf", "img_tmp", "impl", "in", "inclusive", "inclusive_scan",
    "inclusive_scan_contiguous", "inclusive_scan_non_contiguous", "inclusive_scan_update", "index",
    "infinity", "init_barriers", "inline_copy", "int1", "int16_t", "int2", "int2double", "int3", "int32_t",
    "int4", "int64_t", "int8_t", "intSized", "int_fast16_t", "int_fast32_t", "int_fast64_t", "int_fast8_t",
    "int_least16_t", "int_least32_t", "int_least64_t", "int_least8_t", "integral_constant",
    "integral_optimized_scan", "inter_warp_lambda", "internal_thread_block_tile", "intmax_t", "intptr_t",
    "invoke_one", "invoke_one_broadcast", "invoke_one_impl", "invoke_shuffle", "iptr", "isLeader", "isReal",
    "is_arithmetic", "is_arithmetic_v", "is_const", "is_cta_master", "is_float_or_half", "is_floating_point",
    "is_floating_point_v", "is_iec559", "is_integral", "is_integral_v", "is_leader", "is_lvalue_reference",
    "is_master", "is_op_type_same", "is_pointer", "is_same", "is_same_v", "is_signed", "is_tiled",
    "is_trivially_copyable", "is_unsigned", "is_valid", "is_void", "isfinite", "isinf", "isnan", "j", "j0",
    "j0f", "j1", "j1f", "jn", "jnf", "k", "kernel", "l", "lMask", "labeled_partition", "labs", "lane",
    "laneId", "laneMask", "lane_ballot", "lane_bit", "lane_match", "laneid", "lanemask", "lanemask32_eq",
    "lanemask32_lt", "last_thread_id", "layout", "layout_t", "ld_acquire_cta", "ldexp", "ldexpf", "ldm",
    "le", "leaderLaneId", "leaderMask", "leader_lane", "less", "leu", "lf", "lg2", "lgamma", "lgammaf", "lh",
    "line", "ll2double", "llabs", "llmax", "llmin", "llrint", "llrintf", "llround", "llroundf", "lo",
    "lo_float", "load_env_reg", "load_env_reg64", "load_matrix_sync", "log", "log10", "log10_2", "log10f",
    "log1p", "log1pf", "log2", "log2e_up", "log2f", "logb", "logbf", "logf", "long1", "long2", "long3",
    "long4", "long4_16a", "long4_32a", "longlong1", "longlong2", "longlong3", "longlong4", "longlong4_16a",
    "longlong4_32a", "low", "lowest", "lrint", "lrintf", "lround", "lroundf", "lt", "ltu", "m",
    "make_bfloat162", "make_char1", "make_char2", "make_char3", "make_char4", "make_double1", "make_double2",
    "make_double3", "make_double4", "make_double4_16a", "make_double4_32a", "make_float1", "make_float2",
    "make_float3", "make_float4", "make_half2", "make_int1", "make_int2", "make_int3", "make_int4",
    "make_long1", "make_long2", "make_long3", "make_long4", "make_long4_16a", "make_long4_32a",
    "make_longlong1", "make_longlong2", "make_longlong3", "make_longlong4", "make_longlong4_16a",
    "make_longlong4_32a", "make_short1", "make_short2", "make_short3", "make_short4", "make_signed",
    "make_signed_t", "make_uchar1", "make_uchar2", "make_uchar3", "make_uchar4", "make_uint1", "make_uint2",
    "make_uint3", "make_uint4", "make_ulong1", "make_ulong2", "make_ulong3", "make_ulong4",
    "make_ulong4_16a", "make_ulong4_32a", "make_ulonglong1", "make_ulonglong2", "make_ulonglong3",
    "make_ulonglong4", "make_ulonglong4_16a", "make_ulonglong4_32a", "make_unsigned", "make_unsigned_t",
    "make_ushort1", "make_ushort2", "make_ushort3", "make_ushort4", "mantissa", "map_shared_rank", "mask",
    "masklength", "match_all", "match_any", "matrix_a", "matrix_b", "max", "maxSubwarpRank", "max_align_t",
    "max_block_size", "max_val", "maxval", "mem_col_major", "mem_row_major", "member_pack", "member_rank",
    "members", "memcpy", "memcpy_async", "memory_barriers_count", "memory_order_relaxed", "metaGroupRank",
    "metaGroupSize", "meta_group_rank", "meta_group_size", "mgRank", "mgSize", "min", "min_val", "minval",
    "mma_sync", "mode", "modf", "modff", "modify_meta_group", "move", "msb", "msg", "mul",
    "multi_tile_group_id", "multi_warp_collectives_helper", "multi_warp_scratch",
    "multi_warp_scratch_location_getter", "multi_warp_sync_location_getter", "n", "nIndex", "name", "nan",
    "nanf", "nb", "ne", "nearbyint", "nearbyintf", "neu", "new_val", "next", "nextafter", "nextafterf",
    "nodiscard", "noreturn", "norm", "norm3d", "norm3df", "norm4d", "norm4df", "normcdf", "normcdff",
    "normcdfinv", "normcdfinvf", "normf", "nptr", "nullptr_t", "numThreads", "numWarps", "num_blocks",
    "num_clusters", "num_elements", "num_storage_elements", "num_threads", "num_warps", "numeric_limits",
    "nv", "nv_bfloat16", "nv_bfloat162", "nv_diag_suppress", "nv_diagnostic", "nv_half", "nv_half2",
    "nvcuda", "offset", "offsetof", "old", "oldArrive", "old_arrive", "one", "op", "op_picker", "opaque",
    "option", "out", "p", "packed_size", "pair", "parent", "pick_redux", "pipe", "pipeline", "plan", "plus",
    "pop", "pow", "pow2_tilesz", "powf", "precision", "pred", "predMask", "pred_hi", "pred_lo", "predicate",
    "previous_warps_sum", "printf", "ptr", "ptrdiff_t", "ptx", "push", "px", "py", "q", "quadrant",
    "query_shared_rank", "quiet_NaN", "quo", "r", "ra", "radix", "random", "rank", "raw", "raw_fix", "rb",
    "rcbrt", "rcbrtf", "rcp", "rd", "real_tmp", "recursive_sliced_shuffle_helper", "red_and_relaxed_cta",
    "red_and_release_cta", "red_or_release_cta", "reduce", "reduce_group_supported", "reduce_store_async",
    "reduce_update_async", "redux", "redux_group_optimized", "redux_is_add_supported",
    "redux_is_logical_supported", "redux_is_not_usable", "redux_is_usable", "redux_op_supported",
    "registerHi", "registerLo", "remainder", "remainderf", "remove_const", "remove_cv", "remove_cv_t",
    "remove_pointer", "remove_qual", "remove_reference", "remove_reference_t", "remove_volatile", "remquo",
    "remquof", "res", "res_handler", "reserved", "reserved_shared_ptr", "result", "ret", "retval", "rh",
    "rhi", "rhypot", "rhypotf", "rint", "rintf", "rlo", "rn", "rn_raw", "rnorm", "rnorm3d", "rnorm3df",
    "rnorm4d", "rnorm4df", "rnormf", "round", "roundf", "rounding", "row_major", "rsqrt", "rsqrtf", "ru",
    "rz", "s", "s4", "satf", "saturate", "scalbln", "scalblnf", "scalbn", "scalbnf", "scan",
    "scan_choose_convertion", "scan_dispatch", "scan_group_supported", "scan_result", "scan_update_dispatch",
    "scope", "scratch", "scratch_id", "scratch_num_reserved_bytes", "scratch_size_needed", "second",
    "seen_lanes", "set", "setMask", "sh", "sharedMem", "shfl", "shfl_down", "shfl_helper", "shfl_impl",
    "shfl_up", "shfl_xor", "shi", "shift", "shiftCount", "shifter", "shifterBits", "short1", "short2",
    "short3", "short4", "shuffle_dispatch", "sign", "signaling_NaN", "signbit", "sin", "sincos", "sincosf",
    "sincospi", "sincospif", "sinf", "sinh", "sinhf", "sinpi", "sinpif", "size", "size_t", "sl", "slo",
    "spc", "sptr", "sqrt", "sqrtf", "src", "srcCount", "srcIsNotGlobal", "srcLane", "srcLayout", "srcRank",
    "src_hi", "src_lo", "src_rank", "src_warp", "stage", "staticParentBaseT", "staticSizeBaseT",
    "staticTileBaseT", "std", "storage", "storage_element_type", "storage_type", "store_lambda",
    "store_matrix_sync", "stream", "stride", "sub", "subMask", "subTile", "subWarpMask", "subwarp",
    "subwarpCopies", "swap", "sync", "sync_grids_arrive", "sync_grids_wait", "sync_id", "sync_location",
    "sync_memory_size", "sync_warps", "sync_warps_arrive", "sync_warps_last_releases", "sync_warps_release",
    "sync_warps_reset", "sync_warps_wait", "sync_warps_wait_for_specific_warp", "t", "tag", "tagp", "tan",
    "tanf", "tanh", "tanhf", "targetAlignment", "target_block_rank", "temp1", "temp2", "templates", "tf32",
    "tg_data", "tgamma", "tgammaf", "th", "thisMask", "this_cluster", "this_grid", "this_thread",
    "this_thread_block", "threadIdx", "thread_block", "thread_block_id", "thread_block_tile",
    "thread_block_tile_impl", "thread_group", "thread_group_base", "thread_index", "thread_rank",
    "thread_scope", "thread_scope_block", "thread_scope_device", "thread_scratch_location", "thread_val",
    "threads", "tile", "tileCount", "tileMask", "tileRank", "tile_async_reduce_dispatch", "tile_helpers",
    "tile_memory", "tile_reduce_dispatch", "tiled_partition", "tiled_partition_impl",
    "tiled_partition_internal", "tilesz", "tmp", "token", "totalCount", "tr", "true_type", "trunc", "truncf",
    "tuple", "two_126", "type", "u", "u4", "ua", "uchar1", "uchar2", "uchar3", "uchar4", "uf", "uint1",
    "uint16_t", "uint2", "uint2double", "uint3", "uint32_t", "uint4", "uint64_t", "uint8_t", "uint_fast16_t",
    "uint_fast32_t", "uint_fast64_t", "uint_fast8_t", "uint_least16_t", "uint_least32_t", "uint_least64_t",
    "uint_least8_t", "uintmax_t", "uintptr_t", "ull2double", "ullmax", "ullmin", "ulong1", "ulong2",
    "ulong3", "ulong4", "ulong4_16a", "ulong4_32a", "ulonglong1", "ulonglong2", "ulonglong3", "ulonglong4",
    "ulonglong4_16a", "ulonglong4_32a", "ulp", "umax", "umin", "undef", "underlying_type", "unused",
    "update_lambda", "ur", "ures", "use_native_shuffle", "user_scratch", "ushort1", "ushort2", "ushort3",
    "ushort4", "ux", "v", "v1", "v2", "val", "valid", "value", "value_type", "var", "vec3_to_linear",
    "verify_thread_block_tile_size", "void_t", "vx", "vy", "vz", "w", "wait", "wait_mask", "wait_prior",
    "wait_warp_id", "warning", "warp", "warpCopies", "warpSize", "warpType", "warp_bit", "warp_id",
    "warp_lambda", "warp_master", "warp_scan", "warp_scratch_location", "warp_size", "width", "wmma",
    "wsSize", "x", "x2", "x_is_not_nan", "xbits", "y", "y0", "y0f", "y1", "y1f", "yn", "ynf", "z",
};
// clang-format on

// Whole families of names that CUDA's headers, or ours, keep for themselves.
constexpr std::string_view kHeaderPrefixes[] = {"CU_", "CUDA", "cuda",      "nvcuda",
                                                "NV_", "nv_",  "PTXBENCH_", "ptxbench_"};

template <std::size_t N>
constexpr bool sorted(const std::string_view (&table)[N]) {
  for (std::size_t i = 1; i < N; ++i)
    if (!(table[i - 1] < table[i])) return false;
  return true;
}
static_assert(sorted(kExpressionWords) && sorted(kKeywords) && sorted(kHeaderNames));

template <std::size_t N>
bool has(const std::string_view (&table)[N], std::string_view name) {
  return std::binary_search(std::begin(table), std::end(table), name);
}

}  // namespace

bool is_expression_word(std::string_view name) { return has(kExpressionWords, name); }

bool is_language_name(std::string_view name) {
  const bool reserved = name.find("__") != std::string_view::npos ||
                        (name.size() >= 2 && name[0] == '_' && name[1] >= 'A' && name[1] <= 'Z');
  return reserved || has(kKeywords, name);
}

bool is_header_name(std::string_view name) {
  return has(kHeaderNames, name) ||
         std::any_of(std::begin(kHeaderPrefixes), std::end(kHeaderPrefixes),
                     [&](std::string_view p) { return name.substr(0, p.size()) == p; });
}

}  // namespace ptxbench::plan
