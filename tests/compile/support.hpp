// Helpers of the compile tests. Everything here runs NVRTC in this process, on sources that it survives.
#pragma once

#include "support/catch.hpp"

#include <ptxbench/compile.hpp>

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace ptxbench::test {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline CompileRequest request_of(std::string path, std::string text) {
  CompileRequest request;
  request.toolkit.cuda_home = PTXBENCH_TEST_CUDA_HOME;
  BoundSource source;
  source.path = path;
  request.sources.push_back(source);
  request.files.push_back({std::move(path), std::move(text)});
  return request;
}

inline Compiled compile(const CompileRequest& request) {
  Result<Compiled> compiled = compile_in_process(request);
  if (!compiled) FAIL(compiled.error().to_string());
  return std::move(*compiled);
}

inline Compiled compile_cuda(std::string text, std::vector<std::string> names = {}) {
  CompileRequest request = request_of("k.cu", std::move(text));
  request.sources[0].name_expressions = std::move(names);
  return compile(request);
}

inline std::string all_messages(const Compiled& compiled) {
  std::string out;
  for (const Diagnostic& d : compiled.diagnostics)
    out += d.file + ":" + std::to_string(d.line) + ":" + std::to_string(d.column) + ": " + d.message + "\n";
  for (const Finding& f : compiled.findings) out += f.code + ": " + f.message + "\n";
  return out;
}

inline const Finding* finding(const Compiled& compiled, const std::string& code) {
  const auto found = std::find_if(compiled.findings.begin(), compiled.findings.end(),
                                  [&](const Finding& f) { return f.code == code; });
  return found == compiled.findings.end() ? nullptr : &*found;
}

struct TempFolder {
  std::filesystem::path path;
  TempFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ptxbench-compile-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace ptxbench::test
