// Numbers of a plan as bits of an element type or as text of a C++ literal.
#pragma once

#include "plan/model.hpp"

#include <cstdint>
#include <string>

namespace ptxbench::plan {

// The bits of `value` as one element of `dtype`, in the low bits of the result; rounded to nearest even. A
// value beyond the type's range is an error without a place (code invalid_argument, rule plan_invalid).
Result<std::uint64_t> encode(DType dtype, const Number& value);

// "0.1f", "2.0f", "1e+30f": the shortest literal that reads back as the same float. `value` must fit a float.
std::string float_literal(double value);

// The type of a scalar argument as an element type, and its key in the plan ("i32", "bool").
DType scalar_dtype(ScalarType type);
std::string_view scalar_key(ScalarType type);

// A value of a definition's scalar as the kind that its dtype says: a float for float32, whatever the
// record's number looks like.
Result<Number> number_of_dtype(DType dtype, const Number& value);

}  // namespace ptxbench::plan
