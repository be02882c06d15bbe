// printf and assert of kernels.
#include "emulator/printf_format.hpp"
#include "emulator/support.hpp"

#include <bit>

using namespace ptxbench::testing;

namespace {

// What vprintf's buffer would hold: each argument at its natural alignment.
struct Packed {
  std::vector<std::uint8_t> bytes;
  template <class T>
  Packed& add(T v) {
    bytes.resize((bytes.size() + sizeof v - 1) / sizeof v * sizeof v);
    bytes.resize(bytes.size() + sizeof v);
    std::memcpy(bytes.data() + bytes.size() - sizeof v, &v, sizeof v);
    return *this;
  }
};

std::string formatted(std::string_view format, const Packed& arguments = {}, std::size_t most = 4096) {
  PrintfSource source;
  source.argument = [&](std::uint64_t offset, unsigned bytes, std::uint64_t& value) {
    if (offset + bytes > arguments.bytes.size()) return false;
    value = 0;
    std::memcpy(&value, arguments.bytes.data() + offset, bytes);
    return true;
  };
  source.string = [](std::uint64_t address, std::string& text) {
    text = "string" + std::to_string(address);
    return address < 100;
  };
  std::string out;
  int used = 0;
  return format_printf(format, source, most, out, used) ? out + "/" + std::to_string(used) : "refused";
}

// printf(format, arguments) in PTX: what compilers emit around the call.
std::string call_printf(const std::string& stores) {
  return stores + R"(
  mov.u64 %rd10, buffer;
  cvta.local.u64 %rd11, %rd10;
  mov.u64 %rd12, format;
  cvta.global.u64 %rd13, %rd12;
  { .reg .b32 temp;
    .param .b64 param0;
    st.param.b64 [param0+0], %rd13;
    .param .b64 param1;
    st.param.b64 [param1+0], %rd11;
    .param .b32 retval0;
    call.uni (retval0), vprintf, (param0, param1);
    ld.param.b32 %r10, [retval0+0];
  }
)";
}
std::string kernel_of(const std::string& format, const std::string& body) {
  std::string bytes;
  for (const char c : format) bytes += std::to_string(static_cast<unsigned char>(c)) + ", ";
  return R"(
.extern .func (.param .b32 func_retval0) vprintf (.param .b64 vprintf_param_0, .param .b64 vprintf_param_1);
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 format[)" +
         std::to_string(format.size() + 1) + "] = {" + bytes + R"(0};
.global .align 1 .b8 text[6] = {104, 101, 108, 108, 111, 0};
.visible .entry k(.param .u64 out) {
  .local .align 8 .b8 buffer[64];
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
)" + body +
         "\n  ret;\n}\n";
}

}  // namespace

TEST_CASE("formats as the device knows them") {
  CHECK(formatted("plain") == "plain/0");
  CHECK(formatted("100%%") == "100%/0");
  CHECK(formatted("%d %i", Packed().add(-5).add(7)) == "-5 7/2");
  CHECK(formatted("%u|%x|%X|%o|%#x", Packed().add(~0U).add(255).add(255).add(8).add(16)) ==
        "4294967295|ff|FF|10|0x10/5");
  CHECK(formatted("%lld %llu %ld %zu", Packed()
                                           .add(std::int64_t{-1})
                                           .add(~std::uint64_t{0})
                                           .add(std::int64_t{1} << 40)
                                           .add(std::uint64_t{3})) ==
        "-1 18446744073709551615 1099511627776 3/4");
  CHECK(formatted("%hhd %hd %hu", Packed().add(0x1ff).add(0x18000).add(0x1ffff)) == "-1 -32768 65535/3");
  CHECK(formatted("%5d|%-5d|%05d|%+d|% d", Packed().add(42).add(42).add(42).add(42).add(42)) ==
        "   42|42   |00042|+42| 42/5");
  CHECK(formatted("%*d|%.*f", Packed().add(6).add(1).add(2).add(3.14159)) == "     1|3.14/4");
  CHECK(formatted("%f %e %g %.3f %8.2f", Packed().add(1.5).add(1.5).add(0.0001).add(2.0).add(9.999)) ==
        "1.500000 1.500000e+00 0.0001 2.000    10.00/5");
  CHECK(formatted("%c%c", Packed().add(int{'o'}).add(int{'k'})) == "ok/2");
  CHECK(
      formatted(
          "%s|%10s|%-9s|%.3s",
          Packed().add(std::uint64_t{1}).add(std::uint64_t{2}).add(std::uint64_t{3}).add(std::uint64_t{4})) ==
      "string1|   string2|string3  |str/4");
  CHECK(formatted("%s", Packed().add(std::uint64_t{0})) == "(null)/1");
  CHECK(formatted("%p", Packed().add(std::uint64_t{0x1234})) == "0x1234/1");
  // An int in front of a double leaves four bytes free.
  CHECK(formatted("%d %f %d", Packed().add(1).add(2.0).add(3)) == "1 2.000000 3/3");
  CHECK(formatted("%y %") == "%y %/0");
  CHECK(formatted("%d") == "refused");
  CHECK(formatted("%s", Packed().add(std::uint64_t{1000})) == "refused");
  CHECK(formatted("abcdef", {}, 3) == "abc/0");
  CHECK(formatted("%999999999d", Packed().add(1)).size() < 600);
  CHECK(formatted("%.999999999f", Packed().add(1e300)).size() < 1600);
}

TEST_CASE("printf of a kernel: lanes in order, its result, strings") {
  Machine m(kernel_of("t%d %s %.1f\n", call_printf(R"(
  st.local.u32 [buffer], %r1;
  mov.u64 %rd2, text;
  cvta.global.u64 %rd3, %rd2;
  st.local.u64 [buffer+8], %rd3;
  st.local.f64 [buffer+16], 0d3FF8000000000000;
)") + "mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd4, %rd1; st.global.u32 [%rd4], %r10;"));
  const std::uint64_t out = m.allocate(64);
  LaunchShape shape;
  shape.block = {3, 1, 1};
  const Run run = m.launch(shape, out);
  REQUIRE_CLEAN(run);
  CHECK(run.output == "t0 hello 1.5\nt1 hello 1.5\nt2 hello 1.5\n");
  CHECK(m.read<std::uint32_t>(out, 3) == std::vector<std::uint32_t>{3, 3, 3});
}

TEST_CASE("printf with a bad pointer is a fault, and its output is bounded") {
  Machine bad(kernel_of("%s", call_printf("mov.b64 %rd2, 64; st.local.u64 [buffer], %rd2;")));
  const Run run = bad.launch({}, std::uint64_t{0});
  REQUIRE(run.fault);
  CHECK(run.fault->kind == FaultKind::out_of_bounds);

  Machine much(kernel_of(std::string(1000, 'x'), call_printf("")));
  LaunchShape shape;
  shape.block = {128, 1, 1};
  const Run long_run = much.launch(shape, std::uint64_t{0});
  REQUIRE_CLEAN(long_run);
  CHECK(long_run.output.size() <= Run::kOutputLimit);
  CHECK(long_run.output_cut);
}

TEST_CASE("a failed assertion says what, where and who") {
  Machine m(kernel_of("x > 0", R"(
  setp.ne.u32 %p1, %r1, 5;
  @%p1 bra DONE;
  mov.u64 %rd2, format;
  mov.u64 %rd3, text;
  cvta.global.u64 %rd2, %rd2;
  cvta.global.u64 %rd3, %rd3;
  { .param .b64 param0; st.param.b64 [param0+0], %rd2;
    .param .b64 param1; st.param.b64 [param1+0], %rd3;
    .param .b32 param2; st.param.b32 [param2+0], 42;
    .param .b64 param3; st.param.b64 [param3+0], %rd3;
    .param .b64 param4; st.param.b64 [param4+0], 1;
    call.uni __assertfail, (param0, param1, param2, param3, param4);
  }
DONE:
)"));
  const Run run = m.launch({}, std::uint64_t{0});
  REQUIRE(run.fault);
  CHECK(run.fault->kind == FaultKind::assertion);
  CHECK(run.fault->site.lane == 5);
  INFO(run.fault->message);
  CHECK(run.fault->message.find("hello:42: hello: assertion `x > 0` failed") != std::string::npos);
}
