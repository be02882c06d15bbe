// Any text is a rule or an error at a column of it; what is a rule comes to a result with every verdict, and
// is the same rule when it is read again.
#include "pack/contract_list.hpp"
#include "trace/sample_verdict.hpp"

#include <cstdlib>

using namespace ptxbench;

namespace {

void hold(const Contract& contract, const Verdict& verdict) {
  const ContractResult result = contract.check(verdict);
  if ((result.state == ContractState::not_checked) != result.value.empty()) std::abort();
  if ((result.state == ContractState::not_checked) == result.reason.empty()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const Verdict filled = test::filled_verdict(), empty;
  const auto contract = Contract::parse(text, "s", {}, {"fuzz", "/x", 0, 0});
  if (!contract) {
    const Location& where = contract.error().where;
    if (where.column < 1 || static_cast<std::size_t>(where.column) > size + 1 || where.pointer != "/x")
      std::abort();
  } else {
    hold(*contract, filled);
    hold(*contract, empty);
    if (contract->check(empty).state == ContractState::met) std::abort();
  }
  if (const auto document = json::parse(text))
    if (const auto list = read_contracts(json::Cursor(*document))) {
      json::Writer out;
      write_contracts(out, *list);
      const auto again = json::parse(out.str());
      if (!again || !read_contracts(json::Cursor(*again))) std::abort();
    }
  return 0;
}
