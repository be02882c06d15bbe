// A list of contracts as JSON: in pack.json, and in the options of an evaluation.
#pragma once

#include "core/json.hpp"

#include <ptxbench/pack/contract.hpp>

#include <vector>

namespace ptxbench {

inline constexpr std::size_t kMostContracts = 64;

// [{"rule": "spills == 0", "sentence": "...", "op_types": ["gemm"]}, ...]; `op_types` may be left out.
Result<std::vector<Contract>> read_contracts(const json::Cursor& list);
void write_contracts(json::Writer& out, const std::vector<Contract>& contracts);

}  // namespace ptxbench
