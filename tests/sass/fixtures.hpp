// The checked-in cubins (tests/fixtures/cubins, made by tools/make_cubins.py).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

inline std::filesystem::path fixtures() {
  return std::filesystem::path(PTXBENCH_SOURCE_DIR) / "tests/fixtures";
}

inline std::vector<std::uint8_t> read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline std::vector<std::uint8_t> cubin_fixture(const std::string& name) {
  return read_bytes(fixtures() / "cubins" / (name + ".cubin"));
}

inline std::vector<std::filesystem::path> all_cubin_fixtures() {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures() / "cubins"))
    if (entry.path().extension() == ".cubin") paths.push_back(entry.path());
  return paths;
}
