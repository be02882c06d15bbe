// pack.json, parsed and checked, before any other file of the pack is read.
#pragma once

#include <ptxbench/pack.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace ptxbench {

// A file that pack.json names, and where.
struct PackFile {
  std::string path;     // relative, '/' between its parts, inside the folder by its text
  std::string pointer;  // in pack.json
};

struct PackManifest {
  std::string name, title;
  std::vector<std::string> architectures;
  struct Device {
    PackDevice device;  // without the text of its notes
    PackFile notes;     // path empty: none
  };
  std::vector<Device> devices;
  struct Document {
    std::string title;
    PackFile file;
  };
  std::vector<Document> documents;
  Document launch_plan;
  PackFile include;  // a folder
  std::vector<Contract> contracts;
};

inline constexpr std::size_t kMostPackFileBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMostPackBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMostPackFiles = 256;

Result<PackManifest> parse_pack_manifest(std::string_view text, const std::string& file);

}  // namespace ptxbench
