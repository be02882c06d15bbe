// PTX for tests: modules from few lines, and what went wrong as one line.
#pragma once

#include "ptx/module.hpp"
#include "support/catch.hpp"

#include <string>
#include <string_view>

namespace ptxbench::testing {

// Three lines, so that what a test adds begins on line 4.
inline constexpr std::string_view kHeader = ".version 9.0\n.target sm_90a\n.address_size 64\n";

inline ptx::Module parse_module(std::string_view text) {
  auto module = ptx::parse(std::string(kHeader) + std::string(text), "test.ptx");
  if (!module) FAIL(module.error().to_string());
  return std::move(module).value();
}

// A kernel with registers r0..r9, d0..d9 (64 bits), f0..f9, p0..p9, whose body begins on line 6, column 1.
inline std::string kernel(std::string_view body) {
  return ".visible .entry k(.param .u64 q, .param .u32 n) {\n"
         ".reg .b32 %r<10>; .reg .b64 %d<10>; .reg .f32 %f<10>; .reg .pred %p<10>;\n" +
         std::string(body) + "\n}\n";
}

inline ptx::Function parse_body(std::string_view body) { return parse_module(kernel(body)).functions.at(0); }

// "line:column: message" of the error, or "" where there is none.
inline std::string error_of(std::string_view text) {
  const auto module = ptx::parse(std::string(kHeader) + std::string(text), "test.ptx");
  if (module) return "";
  CHECK(module.error().code == ErrorCode::parse);
  CHECK(module.error().where.file == "test.ptx");
  return std::to_string(module.error().where.line) + ":" + std::to_string(module.error().where.column) +
         ": " + module.error().message;
}
inline std::string body_error(std::string_view body) { return error_of(kernel(body)); }

}  // namespace ptxbench::testing
