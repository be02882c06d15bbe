// What a register holds at an instruction, where that is the same constant whichever way the code came.
#pragma once

#include "sass/control_flow.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace ptxbench::sass {

// A constant, or an address in the parameter buffer (its lower half, as an offset from the buffer's start).
struct TracedValue {
  bool in_parameters = false;
  std::uint32_t value = 0;
  bool operator==(const TracedValue&) const = default;
};

class ValueTracer {
 public:
  ValueTracer(int sm, const ControlFlow& flow) : sm_(sm), flow_(flow) {}

  // Of register or uniform register @p slot, before instruction @p at is executed. Nothing: not the same
  // always, or by a way that we do not follow.
  std::optional<TracedValue> before(std::size_t at, std::uint32_t slot);

 private:
  enum class State : std::uint8_t { none, known, unknown };
  struct Result {
    State state = State::none;  // none: only this definition itself, copied around
    TracedValue value;
  };
  struct Active {
    std::size_t definition;
    std::uint32_t slot, arithmetic;  // operations other than copies on the way, when it began
  };

  Result trace(std::size_t at, std::uint32_t slot);
  Result evaluate(std::size_t definition, std::uint32_t slot);
  Result compute(std::size_t definition, std::uint32_t slot);
  Result copy_of(std::size_t definition, int first, bool uniform);
  std::optional<TracedValue> source(std::size_t definition, int first, bool uniform);
  std::optional<TracedValue> arithmetic(std::size_t definition);
  static void meet(Result& all, const Result& one);

  int sm_;
  const ControlFlow& flow_;
  std::vector<Active> active_;
  std::uint32_t arithmetic_ = 0;
  std::uint64_t budget_ = 0;
};

}  // namespace ptxbench::sass
