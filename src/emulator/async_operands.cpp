#include "emulator/async_operands.hpp"


namespace ptxbench::emulator {

Result<void> AddressOperands::add(const ptx::Operand& operand, ptx::Space space) {
  e_.imm = 0;
  PTXBENCH_TRY_ASSIGN(const Address address, d_.address(e_, operand, space));
  if (address.wide) e_.d |= static_cast<std::uint8_t>(1u << offsets_.size());
  if (e_.imm < INT32_MIN || e_.imm > INT32_MAX)
    return d_.bad("an address offset of " + std::to_string(e_.imm) + " does not fit 32 bits");
  offsets_.push_back(static_cast<Operand>(e_.imm));
  e_.imm = 0;
  return {};
}

void AddressOperands::finish() { e_.operands.insert(e_.operands.end(), offsets_.begin(), offsets_.end()); }

std::uint64_t address_of(const Exec& x, unsigned k, unsigned i, unsigned first_offset, int lane) {
  const auto offset = static_cast<std::int64_t>(x.operand(first_offset + k));
  if ((x.op.d >> k & 1) != 0) return x.src64(i)[lane] + static_cast<std::uint64_t>(offset);
  return static_cast<std::uint32_t>(x.src(i)[lane] + static_cast<std::uint32_t>(offset));
}

bool defined(const Exec& x, unsigned i, const char* what) {
  const Mask undefined = x.undefined_of(x.operand(i)) & x.mask;
  if (undefined == 0) return true;
  x.fault(FaultKind::undefined_value, __builtin_ctz(undefined),
          std::string(what) + " is a value that was never written");
  return false;
}

bool defined(const Exec& x, unsigned from, unsigned to, const char* what) {
  for (unsigned i = from; i < to; ++i)
    if (!defined(x, i, what)) return false;
  return true;
}

void set_issuer(AsyncOp& op, const Exec& x, int lane) {
  op.site = x.site(lane);
  op.cta = static_cast<std::uint16_t>(x.cta.rank);
  op.warp = x.warp.index;
}

bool shared_from_generic(std::uint64_t address, std::uint32_t& shared) {
  if (address < kSharedWindow || address - kSharedWindow > UINT32_MAX) return false;
  shared = static_cast<std::uint32_t>(address - kSharedWindow);
  return true;
}

}  // namespace ptxbench::emulator
