// Any text either parses and evaluates to a value or an error; nothing crashes, overflows or runs out of
// stack.
#include "core/expr.hpp"

#include <cstdint>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptxbench;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto e = expr::Expression::parse(text, {"fuzz", "/x", 0, 0});
  if (!e) return 0;
  expr::Environment environment;
  environment.lookup = [](std::string_view name) -> Result<expr::Number> {
    if (name.size() % 3 == 0) return expr::Number(std::int64_t{-3});
    if (name.size() % 3 == 1) return expr::Number(2.5);
    return expr::Number(true);
  };
  const auto v = e->evaluate(environment);
  if (v && v->index() == 1) {
    // A float prints so that it reads back the same.
    const auto again = expr::Expression::parse(expr::to_string(*v), {});
    if (!again || *again->evaluate_double({}) != std::get<1>(*v)) std::abort();
  }
  (void)e->names();
  (void)e->kernels();
  (void)e->evaluate_int({});
  return 0;
}
