// Functions that the system has and a kernel may call: vprintf, __assertfail. Their arguments lie in local
// memory.
#include "emulator/access.hpp"
#include "emulator/printf_format.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace ptxbench::emulator {

namespace {

// Operands: addresses of the results (Op::a of them) and of the arguments (Op::b), then as many constants:
// their offsets. Those are 64-bit constants.
struct Arguments {
  const Exec& x;
  unsigned count() const { return x.op.a + x.op.b; }
  std::uint64_t address(unsigned i, int lane) const { return x.src(i)[lane] + x.src64(count() + i)[0]; }
  Operand base(unsigned i) const { return x.operand(i); }
  // Argument or result number @p i as @p T. False: a fault was raised.
  template <class T>
  bool read(unsigned i, int lane, T& value) const {
    Span span;
    Place p;
    if (!resolve(x, Where::local, address(i, lane), lane, sizeof(T), sizeof(T), Access::read, span, p))
      return false;
    std::memcpy(&value, p.data, sizeof(T));
    return true;
  }
  template <class T>
  bool write(unsigned i, int lane, T value) const {
    Span span;
    Place p;
    if (!resolve(x, Where::local, address(i, lane), lane, sizeof(T), sizeof(T), Access::write, span, p))
      return false;
    std::memcpy(p.data, &value, sizeof(T));
    return now_holds(x, p, lane, sizeof(T), 0);
  }
};

// The string at a generic address. False: a fault was raised.
bool read_string(const Exec& x, int lane, std::uint64_t address, std::string& text) {
  constexpr std::size_t kLongest = 64 << 10;
  Span span;
  for (std::size_t n = 0; n < kLongest; ++n) {
    Place p;
    if (!resolve(x, Where::generic, address + n, lane, 1, 1, Access::read, span, p)) return false;
    if (*p.data == 0) return true;
    text += static_cast<char>(*p.data);
  }
  return true;
}

Flow run_vprintf(Exec& x) {
  const Arguments a{x};
  bool good = true;
  for_lanes(x.mask, [&](int i) {
    if (!good) return;
    std::uint64_t format_address = 0, buffer = 0;
    std::string format, text;
    good = a.read(x.op.a, i, format_address) && a.read(x.op.a + 1U, i, buffer) &&
           read_string(x, i, format_address, format);
    if (!good) return;
    PrintfSource source;
    source.argument = [&](std::uint64_t offset, unsigned bytes, std::uint64_t& value) {
      Span span;
      Place p;
      if (!resolve(x, Where::generic, buffer + offset, i, bytes, bytes, Access::read, span, p)) return false;
      value = 0;
      std::memcpy(&value, p.data, bytes);
      return true;
    };
    source.string = [&](std::uint64_t address, std::string& s) { return read_string(x, i, address, s); };
    int used = 0;
    good = format_printf(format, source, Run::kOutputLimit, text, used);
    if (!good) return;
    x.run.print(text);
    if (x.op.a != 0) good = a.write(0, i, std::int32_t{used});
  });
  return good ? Flow::next : Flow::stop;
}

// __assertfail(message, file, line, function, size of a character)
Flow run_assertfail(Exec& x) {
  if (x.mask == 0) return Flow::next;
  const Arguments a{x};
  const int i = __builtin_ctz(x.mask);
  std::uint64_t message = 0, file = 0, function = 0;
  std::uint32_t line = 0;
  std::string texts[3];
  const unsigned first = x.op.a;
  if (!a.read(first, i, message) || !a.read(first + 1, i, file) || !a.read(first + 2, i, line) ||
      !a.read(first + 3, i, function) || !read_string(x, i, message, texts[0]) ||
      !read_string(x, i, file, texts[1]) || !read_string(x, i, function, texts[2])) {
    return Flow::stop;
  }
  return x.fault(
      FaultKind::assertion, i,
      texts[1] + ":" + std::to_string(line) + ": " + texts[2] + ": assertion `" + texts[0] + "` failed");
}

Result<void> decode_call(Decoder& d, Handler run, std::size_t arguments, std::string_view family) {
  const auto& operands = d.instruction().operands;
  // [results,] function, arguments
  std::vector<const ptx::Operand*> lists;
  for (const ptx::Operand& o : operands) {
    if (o.kind == ptx::Operand::Kind::list) lists.push_back(&o);
  }
  if (lists.empty()) return d.bad("a call without arguments");
  const std::vector<ptx::Operand> none;
  const std::vector<ptx::Operand>& results = lists.size() > 1 ? lists[0]->parts : none;
  const std::vector<ptx::Operand>& given = lists.size() > 1 ? lists[1]->parts : lists[0]->parts;
  if (given.size() != arguments || results.size() > 1) {
    return d.bad("the function has " + std::to_string(arguments) + " arguments and at most one result");
  }
  Emit e;
  std::vector<std::int64_t> offsets;
  const auto take = [&](const ptx::Operand& o) -> Result<void> {
    PTXBENCH_TRY_ASSIGN(const Address at, d.address(e, o, ptx::Space::param));
    if (at.wide || at.space != ptx::Space::local)
      return d.unsupported("an argument that is no local parameter");
    offsets.push_back(e.imm);
    return {};
  };
  for (const ptx::Operand& o : results) PTXBENCH_TRY(take(o));
  for (const ptx::Operand& o : given) PTXBENCH_TRY(take(o));
  for (const std::int64_t o : offsets) e.operands.push_back(d.constant(static_cast<std::uint64_t>(o), 64));
  e.imm = 0;
  e.run = run;
  e.a = static_cast<std::uint8_t>(results.size());
  e.b = static_cast<std::uint8_t>(given.size());
  e.flags = kNone;
  return d.emit(e, family);
}

Result<void> decode_vprintf(Decoder& d) { return decode_call(d, run_vprintf, 2, "control"); }
Result<void> decode_assertfail(Decoder& d) { return decode_call(d, run_assertfail, 5, "control"); }

}  // namespace

void register_external(InstructionTable& table) {
  table.add("call:vprintf", decode_vprintf);
  table.add("call:__assertfail", decode_assertfail);
}

}  // namespace ptxbench::emulator
